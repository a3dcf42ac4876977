"""Merge engines: the Java core, pypaimon and tablestore give the same rows for what either side writes and compacts.

pypaimon lacks most functions and all retractions, so it reads along where it can. Lists and maps that have no order (collect
with distinct, merge_map, nested_update) are compared as bags.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasketches
import numpy as np
import pytest
from canonical import Row, comparable
from oracles import JavaOracle, OracleError, PypaimonOracle
from ours import Ours
from pyroaring import BitMap
from random_tables import number_fields

import tablestore as ts
from tablestore.format.index.roaring64 import decode_bitmap64, encode_bitmap64

pytestmark = pytest.mark.interop

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))]
KEYS = 8
NESTED = {"type": "ARRAY", "element": {"type": "ROW", "fields": [{"name": "k", "type": "INT"}, {"name": "v", "type": "INT"}]}}
TYPES: dict[str, Any] = {
    "n": "INT",
    "m": "BIGINT",
    "price": "DECIMAL(20, 2)",
    "x": "DOUBLE",
    "s": "STRING",
    "flag": "BOOLEAN",
    "g": "INT",
    "h": "BIGINT",
    "tags": {"type": "ARRAY", "element": "STRING"},
    "entries": {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"},
    "lines": NESTED,
}


def _value(rng: random.Random, name: str) -> Any:
    if rng.random() < 0.25:
        return None
    match name:
        case "price":
            return f"{rng.randrange(-10_000, 10_000) / 100:.2f}"
        case "x":
            return rng.randrange(-64, 64) / 8
        case "s":
            return rng.choice("abc")
        case "flag":
            return rng.random() < 0.5
        case "tags":
            return [rng.choice("pqr") for _ in range(rng.randrange(4))]
        case "entries":
            return [[key, rng.randrange(9)] for key in sorted(rng.sample("uvw", rng.randrange(4)))]
        case "lines":
            return [{"k": key, "v": rng.randrange(9)} for key in rng.sample(range(3), rng.randrange(3))]
    return rng.randrange(-20, 20)


@dataclass
class Case:
    """A table, and which changes are written to it. ``in_order``: this column never goes back."""

    name: str
    columns: tuple[str, ...]
    options: dict[str, str]
    retracts: bool = False
    in_order: str | None = None
    last: dict[int, int] = field(default_factory=dict)
    alive: dict[int, Row] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def batch(self, rng: random.Random, count: int) -> tuple[list[Row], list[str]]:
        """Some changes. A retraction takes back an addition that was made before, once."""
        rows, kinds = [], []
        for _ in range(count):
            key = rng.randrange(KEYS)
            if self.retracts and key in self.alive and rng.random() < 0.3:
                row = dict(self.alive.pop(key))
                kind = rng.choice(["-D", "-U"]) if "remove" not in self.name else "-D"
            else:
                row = {"k": key, **{name: _value(rng, name) for name in self.columns}}
                kind = rng.choice(["+I", "+U"])
                self.alive[key] = row
            if self.in_order is not None and row[self.in_order] is not None:
                self.last[key] = self.last.get(key, 0) + rng.randrange(3)
                row[self.in_order] = self.last[key]
            rows.append(dict(row))
            kinds.append(kind)
        return rows, kinds


def _functions(**functions: str) -> dict[str, str]:
    return {"merge-engine": "aggregation", **{f"fields.{name}.aggregate-function": f for name, f in functions.items()}}


GROUPS = {"merge-engine": "partial-update", "fields.g.sequence-group": "n,s", "fields.h.sequence-group": "x"}
CASES = [
    Case("partial-update", ("n", "s", "tags"), {"merge-engine": "partial-update"}),
    Case("ignore-delete", ("n", "s"), {"merge-engine": "partial-update", "ignore-delete": "true"}, retracts=True),
    Case("sequence groups", ("n", "s", "g", "x", "h", "m"), GROUPS),
    Case("sequence groups with retractions", ("n", "s", "g", "x", "h"), GROUPS, retracts=True),
    Case(
        "sequence groups with functions",
        ("n", "s", "g", "x", "h"),
        GROUPS | {"fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "max"},
    ),
    Case(
        "numbers",
        ("n", "m", "price", "x", "flag"),
        _functions(n="sum", m="max", price="sum", x="min", flag="bool_or"),
    ),
    Case("sums with retractions", ("n", "price", "x"), _functions(n="sum", price="sum", x="sum"), retracts=True),
    Case("values", ("n", "m", "s", "x"), _functions(n="first_value", m="first_non_null_value", s="last_value", x="min")),
    Case("texts", ("s", "tags"), _functions(s="listagg", tags="collect") | {"fields.s.list-agg-delimiter": "; "}),
    Case(
        "distinct",
        ("s", "tags"),
        _functions(s="listagg", tags="collect") | {"fields.s.distinct": "true", "fields.tags.distinct": "true"},
    ),
    Case(
        "maps and rows",
        ("entries", "lines"),
        _functions(entries="merge_map", lines="nested_update") | {"fields.lines.nested-key": "k"},
    ),
    Case(
        "aggregation with sequence.field",
        ("n", "s", "g"),
        _functions(n="sum", s="last_non_null_value") | {"sequence.field": "g"},
        in_order="g",
    ),
    Case(
        "ignoring retractions",
        ("n", "m"),
        _functions(n="max", m="sum") | {"fields.n.ignore-retract": "true"},
        retracts=True,
    ),
]
cases = pytest.mark.parametrize("case", CASES, ids=str)
# What pypaimon refuses without its native code.
PURE_LACKS = ("sequence groups", "sequence groups with functions", "maps and rows")
UNORDERED = ("entries", "lines", "tags")


def _bag(rows: list[Row]) -> list[str]:
    return comparable(
        [
            {
                name: sorted(value, key=repr) if name in UNORDERED and isinstance(value, list) else value
                for name, value in row.items()
            }
            for row in rows
        ]
    )


def _create(where: Any, path: Path, case: Case) -> None:
    columns = [{"name": "k", "type": "INT NOT NULL"}, *({"name": name, "type": TYPES[name]} for name in case.columns)]
    options = {key: value for key, value in case.options.items() if not key.startswith("fields.m.") or "m" in case.columns}
    where.create(path, number_fields(columns), primary_key=["k"], options={"bucket": "1", **options})


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("seed", SEEDS)
@cases
def test_java_reads_and_compacts_what_we_write(java: JavaOracle, warehouse: Path, case: Case, seed: int) -> None:
    print(f"{case} seed {seed}")
    rng = random.Random(f"we write {case} {seed}")
    case = Case(case.name, case.columns, case.options, case.retracts, case.in_order)
    path, us = warehouse / "db.db" / "ours", Ours()
    _create(us, path, case)
    for step in range(6):
        rows, kinds = case.batch(rng, 12)
        us.write(path, rows, kinds=kinds)
        assert _bag(us.read(path)) == _bag(java.read(path)), f"after commit {step}"
        if step in (2, 5):
            before = _bag(us.read(path))
            (java if step == 2 else us).compact(path)
            assert _bag(us.read(path)) == _bag(java.read(path)) == before, f"compacted after commit {step}"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("seed", SEEDS)
@cases
def test_we_read_and_compact_what_java_writes(java: JavaOracle, warehouse: Path, case: Case, seed: int) -> None:
    print(f"{case} seed {seed}")
    rng = random.Random(f"java writes {case} {seed}")
    case = Case(case.name, case.columns, case.options, case.retracts, case.in_order)
    path, us = warehouse / "db.db" / "theirs", Ours()
    _create(java, path, case)
    for step in range(6):
        rows, kinds = case.batch(rng, 12)
        java.write(path, rows, kinds=kinds, options={"write-only": "true"})
        assert _bag(us.read(path)) == _bag(java.read(path)), f"after commit {step}"
        if step in (2, 5):
            before = _bag(us.read(path))
            (us if step == 2 else java).compact(path)
            assert _bag(us.read(path)) == _bag(java.read(path)) == before, f"compacted after commit {step}"


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_a_delete_removes_the_row_for_java_too(java: JavaOracle, warehouse: Path, engine: str) -> None:
    """What comes after a delete starts anew, also for readers that would begin with the values of the deleted row."""
    path, us = warehouse / "db.db" / "removed", Ours()
    columns = [{"name": "k", "type": "INT NOT NULL"}, {"name": "n", "type": "INT"}, {"name": "s", "type": "STRING"}]
    options = {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true", "bucket": "1"}
    if engine == "aggregation":
        options["fields.n.aggregate-function"] = "sum"
    us.create(path, number_fields(columns), primary_key=["k"], options=options)
    us.write(path, [{"k": 1, "n": 5, "s": "a"}, {"k": 2, "n": 7, "s": "b"}])
    ts.open_table(str(path)).delete("k = 1")
    assert _bag(us.read(path)) == _bag(java.read(path)) == _bag([{"k": 2, "n": 7, "s": "b"}])
    us.write(path, [{"k": 1, "n": 3, "s": None}])
    expected = _bag([{"k": 1, "n": 3, "s": None}, {"k": 2, "n": 7, "s": "b"}])
    assert _bag(us.read(path)) == _bag(java.read(path)) == expected
    java.compact(path)
    assert _bag(us.read(path)) == expected


@pytest.mark.deep
@pytest.mark.parametrize("native", [False, True], ids=["pure", "native"])
@pytest.mark.parametrize("case", [case for case in CASES if not case.retracts], ids=str)
def test_pypaimon_reads_what_we_write_or_says_that_it_cannot(
    pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle, warehouse: Path, case: Case, native: bool
) -> None:
    reader = pypaimon_native if native else pypaimon_pure
    rng = random.Random(f"pypaimon reads {case}")
    case = Case(case.name, case.columns, case.options, in_order=case.in_order)
    path, us = warehouse / "db.db" / "read", Ours()
    _create(us, path, case)
    for _ in range(4):
        rows, kinds = case.batch(rng, 12)
        us.write(path, rows, kinds=kinds)
    if not native and case.name in PURE_LACKS:
        with pytest.raises(OracleError):
            reader.read(path)
        return
    assert _bag(reader.read(path)) == _bag(us.read(path))


def _sketches(count: int, step: int) -> dict[str, bytes]:
    theta, hll = datasketches.update_theta_sketch(12), datasketches.hll_sketch(12)
    for value in range(count, count + step):
        theta.update(value)
        hll.update(value)
    return {
        "bits": bytes(BitMap(range(count, count + step)).serialize()),
        "wide": encode_bitmap64(np.arange(count, count + step, dtype=np.uint64) << np.uint64(14)),
        "theta": bytes(theta.compact().serialize()),
        "hll": bytes(hll.serialize_compact()),
    }


def _sizes(rows: list[Row]) -> list[tuple[int, ...]]:
    """How many values the sets hold, or are thought to hold."""
    return [
        (
            len(BitMap.deserialize(bytes.fromhex(row["bits"]))),
            len(decode_bitmap64(bytes.fromhex(row["wide"]))),
            round(datasketches.compact_theta_sketch.deserialize(bytes.fromhex(row["theta"])).get_estimate()),
            round(datasketches.hll_sketch.deserialize(bytes.fromhex(row["hll"])).get_estimate()),
        )
        for row in rows
    ]


def test_java_and_we_unite_each_others_sketches(java: JavaOracle, warehouse: Path) -> None:
    path, us = warehouse / "db.db" / "sketches", Ours()
    columns = [
        {"name": "k", "type": "INT NOT NULL"},
        *({"name": name, "type": "BYTES"} for name in ("bits", "wide", "theta", "hll")),
    ]
    options = _functions(bits="rbm32", wide="rbm64", theta="theta_sketch", hll="hll_sketch") | {"bucket": "1"}
    us.create(path, number_fields(columns), primary_key=["k"], options=options)

    def row(count: int, step: int) -> Row:
        return {"k": 1, **{name: value.hex() for name, value in _sketches(count, step).items()}}

    us.write(path, [row(0, 10), row(5, 10)])
    us.write(path, [row(10, 10)])
    assert _sizes(us.read(path)) == _sizes(java.read(path)) == [(20, 20, 20, 20)]
    us.compact(path)
    java.write(path, [row(30, 5)])
    assert _sizes(us.read(path)) == _sizes(java.read(path)) == [(25, 25, 25, 25)]
    java.compact(path)
    us.write(path, [row(100, 3000)])
    found = _sizes(us.read(path))
    assert found == _sizes(java.read(path))
    assert found[0][:2] == (3025, 3025)
    assert all(abs(estimate - 3025) < 200 for estimate in found[0])
