"""Append tables whose compactions order rows: the same rows, in files that queries leave out."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError
from tablestore.table.inspect.check import check_table

SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.float64()), ("s", pa.string()), ("pad", pa.binary())])
CLUSTERED = {"clustering.columns": "a,b", "clustering.incremental": "true"}


def _rows(first: int, count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng([seed, first])
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "a": pa.array(rng.integers(0, 1_000_000, count), mask=rng.random(count) < 0.02),
            "b": rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2e300], count),
            "s": rng.integers(0, 100, count).astype(str),
            "pad": [rng.bytes(200)] * count if seed else list(map(bytes, rng.integers(0, 256, (count, 200), dtype=np.uint8))),
        },
        schema=SCHEMA,
    )


def _catalog(path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("db")
    return catalog


def _create(path: Path, **options: str) -> ts.Table:
    return _catalog(path).create_table("db.t", SCHEMA, options={"write-only": "true", **CLUSTERED, **options})


def _by_id(table: ts.Table) -> list[str]:
    return [str(row) for row in table.scan().to_arrow().sort_by("id").to_pylist()]


def _read_bytes(table: ts.Table, filter: str) -> int:
    plan = table.scan(filter=filter)
    return sum(split.size_bytes for split in plan.splits())


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_a_filter_on_a_clustered_column_reads_few_files(tmp_path: Path, strategy: str) -> None:
    table = _create(tmp_path, **{"clustering.strategy": strategy, "target-file-size": "64 kb", "file.block-size": "256 kb"})
    for first in range(0, 30_000, 5_000):
        table.append(_rows(first, 5_000))
    before, whole = _by_id(table), _read_bytes(table, "a BETWEEN 500000 AND 510000")
    report = table.compact()
    assert report.tasks == 1 and report.files_written > 3
    assert _by_id(table) == before
    assert _read_bytes(table, "a BETWEEN 500000 AND 510000") < whole / 2
    assert not check_table(table.context)
    assert table.compact().tasks == 0


def test_new_rows_are_ordered_with_those_of_their_size_and_not_with_all(tmp_path: Path) -> None:
    table = _create(tmp_path)
    for first in range(0, 25_000, 5_000):
        table.append(_rows(first, 5_000))
    table.compact()
    large = {file["file_path"] for file in table.files().to_pylist()}
    for first in range(25_000, 25_500, 100):
        table.append(_rows(first, 100))
    table.compact()
    files = {file["file_path"]: file["level"] for file in table.files().to_pylist()}
    assert large < set(files) and set(files.values()) == {4, 5}
    assert [row["id"] for row in table.scan(columns=["id"]).to_arrow().sort_by("id").to_pylist()] == list(range(25_500))


def test_writers_order_what_they_wrote(tmp_path: Path) -> None:
    table = _create(tmp_path, **{"write-only": "false"})
    for first in range(0, 500, 100):
        table.append(_rows(first, 100))
    assert {file["level"] for file in table.files().to_pylist()} == {5}


def test_rows_are_ordered_on_demand_by_any_columns(tmp_path: Path) -> None:
    table = _create(tmp_path, **{"clustering.incremental": "false", "target-file-size": "32 kb"})
    table.append(_rows(0, 20_000))
    before = _by_id(table)
    assert table.compact(full=True).tasks <= 1
    table.compact(order_by="s, a", order_strategy="order")
    assert _by_id(table) == before
    texts = table.scan(columns=["s"]).to_arrow()["s"].to_pylist()
    assert sum(left != right for left, right in pairwise(texts)) < 200
    assert table.compact(order_by=["b"]).tasks == 1


def test_random_lives_keep_their_rows(tmp_path: Path) -> None:
    rng = random.Random(4)
    table = _create(tmp_path, **{"deletion-vectors.enabled": rng.choice(["true", "false"])})
    model: dict[int, dict[str, object]] = {}
    for step in range(30):
        match rng.choice(["append", "append", "append", "delete", "update", "compact", "full", "order", "alter"]):
            case "append":
                rows = _rows(step * 1000, rng.choice([1, 50, 400]), seed=7)
                table.append(rows)
                model |= {row["id"]: row for row in rows.to_pylist()}
            case "delete":
                low = rng.randrange(1_000_000)
                table.delete(f"a >= {low} AND a < {low + 200_000}")
                model = {i: row for i, row in model.items() if row["a"] is None or not low <= row["a"] < low + 200_000}
            case "update":
                table.update({"s": "'changed'"}, "b = 1.5")
                model = {i: {**row, "s": "changed"} if row["b"] == 1.5 else row for i, row in model.items()}
            case "compact":
                table.compact()
            case "full":
                table.compact(full=True)
            case "order":
                table.compact(order_by=rng.choice([["a"], ["s", "b"], ["b", "a", "s", "id"]]))
            case "alter":
                table.alter([ts.SetOption("clustering.columns", rng.choice(["a", "b,s", "s"]))])
        table = table.refresh()
        assert _by_id(table) == [str(model[number]) for number in sorted(model)]
    assert not check_table(table.context, deep=True)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        ({"options": {"clustering.columns": "nope"}}, "nope"),
        ({"options": {"clustering.columns": "a,a"}}, "more than once"),
        ({"options": {"clustering.columns": "l"}}, "nested"),
        ({"options": {"clustering.columns": "p"}, "partition_by": ["p"]}, "partition columns"),
        ({"options": {"clustering.columns": "a"}, "primary_key": ["a"]}, "order of its key"),
        ({"options": {"clustering.columns": "a", "bucket": "2", "bucket-key": "a"}}, "stay in their order"),
        ({"options": {"clustering.incremental": "true"}}, "needs the option clustering.columns"),
        ({"options": {"clustering.columns": "a", "clustering.strategy": "peano"}}, "peano"),
    ],
)
def test_what_cannot_be_ordered_is_refused_where_it_is_said(tmp_path: Path, create: dict[str, object], message: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("p", pa.string()), ("l", pa.list_(pa.int64()))])
    with pytest.raises(InvalidInputError, match=message):
        _catalog(tmp_path).create_table("db.t", schema, **create)  # type: ignore[arg-type]


def test_keyed_tables_are_not_ordered_on_demand(tmp_path: Path) -> None:
    table = _catalog(tmp_path).create_table("db.t", SCHEMA, primary_key=["id"])
    with pytest.raises(InvalidInputError, match="order_by"):
        table.compact(order_by="a")


def test_a_clustering_column_cannot_be_dropped_and_follows_its_name(tmp_path: Path) -> None:
    table = _create(tmp_path)
    with pytest.raises(InvalidInputError, match=r"clustering\.columns"):
        table.alter([ts.DropColumn("a")])
    table.alter([ts.RenameColumn("a", to="z")])
    assert table.refresh().options()["clustering.columns"] == "z,b"
