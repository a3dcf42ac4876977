"""A table that is delivered into another one is there as it is, whatever key, order and merge engine that one has."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts

PRODUCERS = ["none", "lookup", "full-compaction", "input"]
# ``k`` is another key of the rows, ``g`` is shared by several.
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("k", pa.int64(), nullable=False),
        pa.field("g", pa.int64(), nullable=False),
        ("ts", pa.int64()),
        ("v", pa.int64()),
    ]
)
Row = dict[str, Any]


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    opened = ts.open_catalog(str(tmp_path / "wh"))
    opened.create_database("d")
    return opened


def table_of(catalog: ts.Catalog, name: str, key: list[str], **options: str) -> ts.Table:
    return catalog.create_table(name, schema=SCHEMA, primary_key=key, options={"bucket": "2", **options})


def row(id: int, k: int, *, g: int = 0, ts: int | None = 0, v: int = 0) -> Row:
    return {"id": id, "k": k, "g": g, "ts": ts, "v": v}


def content(table: ts.Table) -> list[Row]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda one: one["id"])


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("kind", ["none", "input"])
def test_a_row_that_gets_another_key_leaves_its_old_one(producer: str, kind: str, catalog: ts.Catalog) -> None:
    source = table_of(catalog, "d.s", ["id"], **{"changelog-producer": producer})
    target = table_of(catalog, "d.t", ["k"], **{"changelog-producer": kind})
    source.upsert([row(1, 10), row(2, 20), row(3, 30)])
    ts.deliver(source, target)
    source.upsert([row(1, 11)])
    source.upsert([row(1, 12), row(2, 20, v=5)])
    source.delete([{"id": 3}])
    source.compact(full=True)
    ts.deliver(source, target)
    assert content(target) == [row(1, 12), row(2, 20, v=5)]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("commit_rows", [1, 100])
def test_rows_that_swap_their_keys_both_stay(producer: str, commit_rows: int, catalog: ts.Catalog) -> None:
    source = table_of(catalog, "d.s", ["id"], **{"changelog-producer": producer})
    target = table_of(catalog, "d.t", ["k"])
    source.upsert([row(number, number) for number in range(8)])
    ts.deliver(source, target)
    for shift in (1, 3):
        source.upsert([row(number, (number + shift) % 8) for number in range(8)])
        source.compact(full=True)
    ts.deliver(source, target, commit_rows=commit_rows)
    assert content(target) == content(source)


@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_delete_reaches_a_table_with_an_order(producer: str, catalog: ts.Catalog) -> None:
    source = table_of(catalog, "d.s", ["id"], **{"changelog-producer": producer})
    target = table_of(catalog, "d.t", ["id"], **{"sequence.field": "ts"})
    source.upsert([row(1, 10, ts=5), row(2, 20, ts=5), row(3, 30, ts=None), row(4, 40, ts=1)])
    ts.deliver(source, target)
    source.upsert([row(1, 10, ts=6)])
    source.delete([{"id": 1}, {"id": 3}])
    source.delete("id = 2")
    source.compact(full=True)
    ts.deliver(source, target)
    assert content(target) == [row(4, 40, ts=1)]


def test_columns_that_find_or_order_the_rows_are_asked_for_at_the_start(catalog: ts.Catalog) -> None:
    source, target = table_of(catalog, "d.s", ["id"]), table_of(catalog, "d.t", ["k"], **{"sequence.field": "ts"})
    with pytest.raises(ts.InvalidInputError, match=r"lack k, ts, which find and order the rows of table .*d.db/t"):
        ts.deliver(source, target, columns=["id", "g", "v"])
    assert target.refresh().snapshots() == ()


SINKS: dict[str, tuple[list[str], dict[str, str]]] = {
    "same key": (["id"], {}),
    "other key": (["k"], {}),
    "longer key": (["k", "id"], {}),
    "order": (["id"], {"sequence.field": "ts"}),
    "other key and order": (["k"], {"sequence.field": "ts"}),
    "changelog": (["k"], {"changelog-producer": "input"}),
    "sums": (
        ["g"],
        {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "fields.default-aggregate-function": "last_value"},
    ),
}


@pytest.mark.deep
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize(("key", "options"), SINKS.values(), ids=SINKS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_random_changes_reach_another_table_as_a_dict_says(
    key: list[str], options: dict[str, str], producer: str, seed: int, catalog: ts.Catalog
) -> None:
    chance = random.Random(f"{key} {options} {producer} {seed}")
    source = table_of(catalog, "d.s", ["id"], **{"changelog-producer": producer})
    target = table_of(catalog, "d.t", key, **options)
    rows: dict[int, Row] = {}
    for clock in range(1, 13):
        chosen = chance.sample(range(8), chance.randint(1, 6))
        if chance.random() < 0.3:
            gone = [id for id in chosen if id in rows]
            if chance.random() < 0.5 or not gone:
                source.delete([{"id": id} for id in chosen])
            else:
                source.delete(f"id IN ({', '.join(map(str, gone))})")
            for id in gone:
                del rows[id]
        else:
            # Each value of k is that of one row at most, and rows take it from one another.
            free = [k for k in range(12) if k not in {one["k"] for id, one in rows.items() if id not in chosen}]
            ks = chance.sample(free, len(chosen))
            new = [row(id, k, g=chance.randrange(3), ts=clock, v=chance.randint(-5, 5)) for id, k in zip(chosen, ks, strict=True)]
            source.upsert(new)
            rows |= {one["id"]: one for one in new}
        if chance.random() < 0.2:
            source.compact(full=True)
        if chance.random() < 0.3:
            ts.deliver(source, target, commit_rows=chance.choice([1, 3, 100]))
        if chance.random() < 0.2:
            target.compact(full=True)
    source.compact(full=True)
    ts.deliver(source, target, commit_rows=chance.choice([1, 3, 100]))
    if "merge-engine" in options:
        found = {one["g"]: one["v"] for one in target.refresh().scan().to_arrow().to_pylist()}
        sums = {g: sum(one["v"] for one in rows.values() if one["g"] == g) for g in range(3)}
        assert {g: v for g, v in found.items() if v} == {g: v for g, v in sums.items() if v}
    else:
        assert content(target) == sorted(rows.values(), key=lambda one: one["id"])
