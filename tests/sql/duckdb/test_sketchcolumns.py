"""Columns of KLL, tuple and HLL sketches: what is computed for all rows at once is what is computed row by row."""

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import UnsupportedError
from tablestore.sql.duckdb.functions import countcolumns
from tablestore.sql.duckdb.functions.functiontable import ARROW_FUNCTIONS

KLL_VALUES: dict[str, list[Any]] = {
    "bigint": [0, 1, -1, 7, 2**63 - 1, -(2**63), 100],
    "float": [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 8.0],
    "double": [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 1e300, 5e-324],
}
KINDS = {"bigint": pa.int64(), "float": pa.float32(), "double": pa.float64()}
SEVERAL = 40
SIZES = [0, 1, 1, 2, 2, 5, 9, 9, 14, 14] * 2


def _lists(values: list[Any], seed: int) -> list[Any]:
    chance = random.Random(seed)
    lists: list[Any] = [[chance.choice([*values, None]) for _ in range(chance.choice([0, 1, 2, 3, 20]))] for _ in range(SEVERAL)]
    return [None, [], [None], *lists, *([one] for one in values)]


def _slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes sketches be read one by one."""
    for module in ("quantilecolumns", "tuplecolumns", "countcolumns"):
        monkeypatch.setattr(f"tablestore.sql.duckdb.functions.{module}.read", lambda *_, **__: None)
    monkeypatch.setattr("tablestore.sql.duckdb.functions.quantilecolumns.write", lambda *_: None)
    monkeypatch.setattr("tablestore.sql.duckdb.functions.countcolumns.write", lambda *_: None)
    monkeypatch.setattr("tablestore.sql.duckdb.functions.tuplecolumns.of_rows", lambda *_: None)


def _same(at_once: list[list[Any]], one_by_one: list[list[Any]]) -> None:
    for place, (left, right) in enumerate(zip(at_once, one_by_one, strict=True)):
        assert list(map(repr, left)) == list(map(repr, right)), place


def _constant(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    return pa.array([value] * count, kind)


@pytest.mark.parametrize("kind", list(KLL_VALUES))
def test_kll_sketches_of_a_column_are_those_of_its_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers() -> list[Any]:
        lists = pa.array(_lists(KLL_VALUES[kind], 1), pa.list_(KINDS[kind]))
        sketches = ARROW_FUNCTIONS[f"kll_sketch_agg_{kind}"].call(lists, _constant(100, len(lists), pa.int32()))
        others = sketches.take(pa.array([*range(1, len(sketches)), None]))
        filled = pa.array([one for one in sketches.to_pylist() if not one[3] & 1], pa.binary())
        groups = pa.array([sketches.to_pylist()[at : at + 4] for at in range(0, 40, 4)] + [None, [], [None]], pa.list_(pa.binary()))
        call = {name: ARROW_FUNCTIONS[f"kll_{name}_{kind}"].call for name in ("merge_agg", "sketch_merge", "sketch_get_n")}
        given = [sketches, call["sketch_merge"](sketches, others), call["sketch_get_n"](others)]
        given += [call["merge_agg"](groups, _constant(size, len(groups), pa.int32())) for size in (None, 300)]
        for share in (0.0, 0.3, 0.5, 1.0):
            share_column = _constant(share, len(filled), pa.float64())
            given.append(ARROW_FUNCTIONS[f"kll_sketch_get_quantile_{kind}"].call(filled, share_column))
        for value in (0, 1, -5):
            value_column = _constant(value, len(filled), KINDS[kind])
            given.append(ARROW_FUNCTIONS[f"kll_sketch_get_rank_{kind}"].call(filled, value_column))
        return [one.to_pylist() for one in given]

    at_once = answers()
    _slowly(monkeypatch)
    _same(at_once, answers())


NUMBERS: dict[str, list[Any]] = {
    "double": [0.0, 1.0, -2.0, 3.0, 1e6],
    "odd double": [0.0, -0.0, 0.1, 2.5, math.inf, -math.inf],
    "integer": [0, 1, -1, 2**31 - 1, -(2**31)],
}
HASHES = [1, 5, 128, 129, 1 << 40, (1 << 63) - 1, 0, None]


@pytest.mark.parametrize(
    ("numbers", "mode"),
    [("double", 0), ("double", 1), ("odd double", 0), ("odd double", 2), ("integer", 0), ("integer", 2), ("integer", 3)],
)
def test_tuple_sketches_of_a_column_are_those_of_its_rows(numbers: str, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = numbers.split()[-1]
    form = pa.struct([("key", pa.int64()), ("number", pa.float64() if kind == "double" else pa.int32())])

    def called(name: str, *columns: Any) -> list[Any]:
        arrays = [one if isinstance(one, pa.Array) else _constant(one, len(columns[0]), pa.int32()) for one in columns]
        try:
            return list(ARROW_FUNCTIONS[f"tuple_{name}_{kind}"].call(*arrays).to_pylist())
        except UnsupportedError as error:
            return [str(error)]

    def answers() -> list[Any]:
        chance = random.Random(mode)
        some = [
            [{"key": chance.choice(HASHES), "number": chance.choice([*NUMBERS[numbers], None])} for _ in range(n)] for n in SIZES
        ]
        # Sums of them are the same in each order.
        some = [one for one in some if len(one) < 3] if numbers == "odd double" else some
        sketches = pa.array(called("sketch_agg", pa.array([None, *some], pa.list_(form)), 4, mode), pa.binary())
        others = sketches.take(pa.array([*range(2, len(sketches)), 0, None]))
        listed = sketches.to_pylist()
        groups = pa.array([None, [], *([*listed[at : at + 3], None] for at in range(len(listed)))], pa.list_(pa.binary()))
        keys = pa.array([[one for one in HASHES[:5] if chance.random() < 0.5] for _ in listed], pa.list_(pa.int64()))
        thetas = ARROW_FUNCTIONS["theta_sketch_agg"].call(keys, _constant(12, len(keys), pa.int32()))
        return [
            listed,
            *(called("union_agg", groups, lg_size, mode) for lg_size in (2, 12)),
            called("intersection_agg", groups, mode),
            called("difference", sketches, others),
            called("union_theta", sketches, thetas, 12, mode),
            called("intersection_theta", sketches, thetas, mode),
            called("difference_theta", sketches, thetas),
            *(called(name, others) for name in ("sketch_estimate", "sketch_theta")),
            *(called("sketch_summary", others, how) for how in range(4)),
        ]

    at_once = answers()
    _slowly(monkeypatch)
    _same(at_once, answers())


@pytest.mark.parametrize("most", [3, 30, 200])
def test_hll_sketches_of_a_column_are_those_of_its_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(most)
    words = pa.array([chance.randrange(most) * 7919 for _ in range(1200)], pa.int64())
    coupons = ARROW_FUNCTIONS["hll_hash_bigint"].call(words).to_pylist()

    def answers() -> list[Any]:
        lengths = [0, 1, 3, 7, 8, 9, 24, 25, most, most, 2 * most, *[40] * 8]
        listed = [None, [None, 0], *([chance.choice(coupons) for _ in range(length)] for length in lengths)]
        lists = pa.array(listed, pa.list_(pa.int64()))
        sizes = _constant(12, len(lists), pa.int32())
        sketches = ARROW_FUNCTIONS["hll_sketch_agg"].call(lists, sizes)
        data = sketches.to_pylist()
        groups = pa.array([None, [], *([*data[at : at + 3], None] for at in range(len(data)))], pa.list_(pa.binary()))
        strict = _constant(False, len(groups), pa.bool_())
        mixed = pa.array([data[:3] + ARROW_FUNCTIONS["hll_sketch_agg"].call(lists[:4], pa.array([4] * 4, pa.int32())).to_pylist()])
        estimates = ARROW_FUNCTIONS["hll_sketch_estimate"].call(pa.array([*data, None], pa.binary()))
        united = [ARROW_FUNCTIONS[name].call(groups, strict).to_pylist() for name in ("hll_union_agg", "hll_union")]
        return [data, *united, ARROW_FUNCTIONS["hll_union_agg"].call(mixed, pa.array([True])).to_pylist(), estimates.to_pylist()]

    chance.seed(1)
    at_once = answers()
    _slowly(monkeypatch)
    chance.seed(1)
    _same(at_once, answers())


@pytest.mark.parametrize("most", [7, 24, 25, 48, 49, 200, 1000])
def test_tables_of_hll_sketches_are_filled_as_one_by_one(most: int) -> None:
    chance = random.Random(most)
    groups = [
        [1 + chance.randrange(5) << 26 | chance.randrange(4000) << chance.randrange(9) for _ in range(most)] for _ in range(9)
    ]
    groups += [groups[0][:8], groups[0][:1], [63 << 26 | 5] * 9, []]
    rows = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    coupons = np.array([coupon for group in groups for coupon in group], np.int64)
    column = countcolumns.of_coupons(np.full(len(groups), 21), rows, coupons)
    written = countcolumns.write(column)
    assert written is not None
    for group, octets in zip(groups, written.to_pylist(), strict=True):
        known = list(dict.fromkeys(group))
        table = countcolumns.table_of(known) if len(known) >= 8 else [*known, *[0] * (8 - len(known))]
        assert octets[-4 * len(table) :] == np.array(table, np.int64).astype("<u4").tobytes()
