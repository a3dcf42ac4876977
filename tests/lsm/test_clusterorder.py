"""Codes that order rows by several columns: what they are, and that every value has one."""

from datetime import date, datetime
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError
from tablestore.lsm.clusterorder import ClusterOrder, RowCodes


def grid(side: int, columns: int) -> pa.Table:
    points = np.array(list(product(range(side), repeat=columns)))
    return pa.table({f"c{number}": points[:, number] for number in range(columns)})


def in_order(table: pa.Table, strategy: str) -> np.ndarray:
    order = ClusterOrder(tuple(table.column_names), strategy)
    places = RowCodes(order, table).sorted_places(table)
    return np.stack([np.asarray(column) for column in table.columns], axis=1)[places]


@pytest.mark.parametrize("columns", [2, 3])
def test_neighbours_on_the_hilbert_curve_differ_by_one_step(columns: int) -> None:
    # Ranks begin at 1, so the cube of a power of two is cut off at one corner, where the curve leaves and comes back.
    steps = np.abs(np.diff(in_order(grid(8, columns), "hilbert"), axis=0)).sum(axis=1)
    assert np.mean(steps == 1) > 0.9


def test_zorder_keeps_a_square_in_few_stretches_where_an_order_by_one_column_does_not() -> None:
    def stretches(strategy: str) -> int:
        points = in_order(grid(32, 2), strategy)
        inside = (points < 8).all(axis=1)
        return int(np.count_nonzero(np.diff(inside.astype(int)) == 1) + inside[0])

    assert stretches("zorder") < 8 <= stretches("order")


def test_order_is_by_the_values_themselves_nulls_last() -> None:
    rows = pa.table({"a": [2, None, 1, 2, 1], "b": ["x", "y", None, "a", "b"]})
    places = RowCodes(ClusterOrder(("a", "b"), "order"), rows).sorted_places(rows)
    assert rows.take(pa.array(places)).to_pylist() == [
        {"a": 1, "b": "b"},
        {"a": 1, "b": None},
        {"a": 2, "b": "a"},
        {"a": 2, "b": "x"},
        {"a": None, "b": "y"},
    ]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**63 - 1, -(2**63), 0, None]),
        pa.array([float("nan"), -0.0, 0.0, float("inf"), float("-inf"), 5e-324, None]),
        pa.array([True, False, None]),
        pa.array(["", "a", "a\0", "é", "x" * 300, None]),
        pa.array([b"", b"\xff" * 20, None]),
        pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), None], pa.decimal128(38, 0)),
        pa.array([Decimal("1.5"), Decimal("-1.5"), None], pa.decimal128(5, 1)),
        pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
        pa.array([datetime(1, 1, 1), datetime(9999, 12, 31), None], pa.timestamp("us")),
        pa.array([1, None], pa.int32()).cast(pa.time32("ms")),
        pa.array([None, None], pa.int32()),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_values_of_every_type_have_codes_in_their_order(values: pa.Array, strategy: str) -> None:
    rows = pa.table({"c": values})
    codes = RowCodes(ClusterOrder(("c",), strategy), rows)
    code = codes.of(rows)
    assert sorted(codes.sorted_places(rows)) == list(range(len(values)))
    first = rows.filter(pa.compute.is_valid(rows["c"]))
    if strategy != "hilbert" and first.num_rows > 1 and not pa.types.is_floating(values.type):
        ranked = np.asarray(pa.compute.rank(first["c"], tiebreaker="dense"))
        assert (np.diff(codes.of(first)[np.argsort(ranked)].astype(np.int64)) >= 0).all()
    assert all(code[place] == 0 for place in np.flatnonzero(np.asarray(values.is_null())))


def test_skewed_columns_divide_rows_evenly() -> None:
    rng = np.random.default_rng(5)
    rows = pa.table({"c": np.where(rng.random(20_000) < 0.5, 0, rng.lognormal(0, 5, 20_000).astype(np.int64))})
    code = RowCodes(ClusterOrder(("c",), "order"), rows).of(rows)
    _, counts = np.unique(code[np.asarray(rows["c"]) > 10_000], return_counts=True)
    assert counts.max() < 100


def test_many_columns_fit_into_a_code() -> None:
    rows = pa.table({f"c{number}": [number % 2, 1, 0] for number in range(70)})
    for strategy in ("order", "zorder", "hilbert"):
        order = ClusterOrder(tuple(rows.column_names), strategy)
        assert len(RowCodes(order, rows).of(rows)) == 3


def test_auto_is_what_suits_the_number_of_columns() -> None:
    assert ClusterOrder.of(["a"]).strategy == "order"
    assert ClusterOrder.of(["a", "b"]).strategy == "zorder"
    assert ClusterOrder.of(list("abcde"), " AUTO ").strategy == "hilbert"


@pytest.mark.parametrize(("columns", "strategy"), [([], "auto"), (["a", "a"], "auto"), (["a"], "peano")])
def test_what_is_no_order_is_refused(columns: list[str], strategy: str) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        ClusterOrder.of(columns, strategy)
