"""Bounds of text are cut, and rows are found all the same. Tables from before they were cut open again.

What could not be read is not written.
"""

from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablestore as ts
from tablestore.errors import InvalidInputError
from tablestore.format.manifest.manifestfile import entry_bytes
from tablestore.format.stats import ColumnStats, decode_stats
from tablestore.io.memory import MemoryFileStore
from tablestore.store import manifests
from tablestore.store.write import runwriter
from tablestore.testing.lab import Lab

COLUMNS = pa.schema([pa.field("k", pa.string(), nullable=False), ("v", pa.string()), ("n", pa.int64())])
# Next to the gap of the surrogates, and the last character.
TEXT = st.text(st.sampled_from("aab\ud7ff\ue000\U0010ffff"), max_size=5)
NAMES = count()
OPERATORS = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _files() -> MemoryFileStore:
    return MemoryFileStore(f"bounds-{next(NAMES)}")


MODES = ["truncate(1)", "truncate(2)", "full", "counts", "none"]
FILTERED = {
    "flushes": st.lists(st.lists(st.tuples(TEXT, st.none() | TEXT), min_size=1, max_size=4), min_size=1, max_size=4),
    "mode": st.sampled_from(MODES),
    "modes_of_columns": st.dictionaries(st.sampled_from(["k", "v"]), st.sampled_from(MODES)),
    "keyed": st.booleans(),
    "column": st.sampled_from(["k", "v"]),
    "operator": st.sampled_from(list(OPERATORS)),
    # A number stands for a text that is stored: where bounds are cut, those are the ones to be missed.
    "literal": st.integers(0, 15) | TEXT,
}


@pytest.mark.deep
@settings(max_examples=60)
@given(**FILTERED)
def test_a_filter_finds_the_same_rows_whatever_statistics_are_kept(
    flushes, mode, modes_of_columns, keyed, column, operator, literal
) -> None:
    options = {"metadata.stats-mode": mode, **{f"fields.{name}.stats-mode": of for name, of in modes_of_columns.items()}}
    lab = Lab(_files(), schema=COLUMNS, primary_key=["k"], keyed=keyed, options=options)
    table, expected = lab.open(), []
    for number, rows in enumerate(flushes):
        # A key once a flush.
        last = dict(rows)
        values = [{"k": k, "v": v, "n": number} for k, v in last.items()]
        (table.upsert if keyed else table.append)(pa.Table.from_pylist(values, schema=COLUMNS))
        expected = [row for row in expected if not keyed or row["k"] not in last] + values
    if isinstance(literal, int):
        stored = [row[column] or "" for row in expected]
        literal = stored[literal % len(stored)]
    compare = OPERATORS[operator]
    wanted = [row for row in expected if row[column] is not None and compare(row[column], literal)]
    scan = table.scan(filter=f"{column} {operator} '{literal}'")
    assert sorted(scan.to_arrow().to_pylist(), key=repr) == sorted(wanted, key=repr)
    assert scan.count() == len(wanted)
    unwanted = [row for row in expected if row[column] is not None and not compare(row[column], literal)]
    negated = table.scan(filter=f"NOT ({column} {operator} '{literal}')")
    assert sorted(negated.to_arrow().to_pylist(), key=repr) == sorted(unwanted, key=repr)
    nulls = table.scan(filter=f"{column} IS NULL")
    assert nulls.count() == len([row for row in expected if row[column] is None])


def test_manifests_stay_small_whatever_texts_are_written() -> None:
    lab = Lab(_files(), schema=COLUMNS, primary_key=["k"])
    table = lab.open()
    table.upsert(pa.table({"k": ["a"], "v": ["v" * 300_000], "n": [1]}, schema=COLUMNS))
    (entry,) = table.context.manifests.live(table.context.snapshots.latest())
    assert entry_bytes(entry) < 2_000
    types = [field.type for field in table.context.schema.fields]
    key, value, number = decode_stats(entry.file.value_stats, types)
    assert (key, number) == (ColumnStats(min="a", max="a", null_count=0), ColumnStats(min=1, max=1, null_count=0))
    assert value == ColumnStats(min="v" * 128, max="v" * 127 + "w", null_count=0)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("keyed", [True, False])
def test_a_table_whose_bounds_were_not_cut_opens_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keyed: bool) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    schema = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
    keys = {"primary_key": ["p", "k"]} if keyed else {}
    table = catalog.create_table("shop.t", schema=schema, partition_by=["p"], **keys)
    with monkeypatch.context() as before:
        before.setattr(runwriter, "MAX_BOUND_CHARACTERS", 10**9)
        before.setattr("tablestore.options.MAX_BOUND_CHARACTERS", 10**9)
        before.setattr(manifests, "MANIFEST_BYTES", 10**12)
        before.setattr("tablestore.format.manifest.avro._check_readable", lambda *_: None)
        writing = catalog.table("shop.t")
        rows = {"p": range(64), "k": range(64), "v": ["v" * 300_000] * 64}
        (writing.upsert if keyed else writing.append)(pa.table(rows, schema=schema))
    table = ts.open_catalog(str(tmp_path)).table("shop.t")
    assert table.scan(filter="p = 7", columns=["k"]).to_arrow().to_pylist() == [{"k": 7}]
    assert table.scan(filter="v > 'w'").count() == 0
    one = pa.table({"p": [7], "k": [8], "v": ["w"]}, schema=schema)
    (table.upsert if keyed else table.append)(one)
    table.compact(full=True)
    assert table.refresh().scan(filter="p = 7").count() == 2
    table.rollback_to(1)
    assert table.refresh().scan(columns=["k"]).count() == 64


def _nested(depth: int) -> pa.DataType:
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.struct([("inner", kind)])
    return kind


@pytest.mark.parametrize(
    "options",
    [{"schema": pa.schema([("a", _nested(21))])}, {"schema": pa.schema([("a", pa.int64())]), "comment": "c" * (16 << 20)}],
)
def test_a_schema_that_could_not_be_read_is_refused_before_anything_is_written(tmp_path: Path, options: dict) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    with pytest.raises(InvalidInputError) as caught:
        catalog.create_table("shop.t", **options)
    assert caught.value.kind == "limit"
    assert catalog.list_tables("shop") == () or list(catalog.list_tables("shop")) == []
    made = catalog.create_table("shop.t", schema=pa.schema([("a", _nested(20))]))
    with pytest.raises(InvalidInputError) as caught:
        made.alter([ts.AddColumn("b", options["schema"].field("a").type), ts.SetTableComment(options.get("comment", "short"))])
    assert caught.value.kind == "limit"
    assert catalog.table("shop.t").schema.names == ["a"]


def test_a_commit_that_no_reader_would_take_publishes_nothing() -> None:
    lab = Lab(_files(), schema=COLUMNS, primary_key=["k"])
    table = lab.open()
    with pytest.raises(InvalidInputError) as caught:
        table.upsert(pa.table({"k": ["k" * (9 << 20)], "v": ["v"], "n": [1]}, schema=COLUMNS))
    assert caught.value.kind == "limit"
    assert table.refresh().snapshots() == ()
    table.upsert(pa.table({"k": ["k" * 500_000], "v": ["v"], "n": [1]}, schema=COLUMNS))
    assert table.scan(filter=f"k = '{'k' * 500_000}'", columns=["n"]).to_arrow().to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")])
def test_times_that_python_does_not_have_are_stored_and_found(kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("t", kind)])
    number = pa.int32() if kind == pa.date32() else pa.int64()
    ends = [-(2 ** (number.bit_width - 1)), 0, 2 ** (number.bit_width - 1) - 1, None]
    rows = pa.Table.from_arrays([pa.array(range(4)), pa.array(ends, number).cast(kind)], schema=schema)
    lab = Lab(_files(), schema=schema, primary_key=["k"])
    table = lab.open()
    table.upsert(rows)
    assert table.scan().to_arrow().sort_by("k").column("t").cast(number).to_pylist() == ends
    assert table.scan(filter="t IS NULL", columns=["k"]).to_arrow().to_pylist() == [{"k": 3}]
    assert table.scan(filter="k = 0", columns=["k"]).to_arrow().to_pylist() == [{"k": 0}]
    consumed = pa.Table.from_batches(batch.rows for batch in table.consume(follow=False))
    assert consumed.sort_by("k").column("t").cast(number).to_pylist() == ends
    keyed = pa.schema([pa.field("t", kind, nullable=False), ("k", pa.int64())])
    refusing = Lab(_files(), schema=keyed, primary_key=["t"]).open()
    with pytest.raises(InvalidInputError, match="key column 't'"):
        refusing.upsert(rows.slice(0, 1).select(["t", "k"]))
    assert refusing.refresh().snapshots() == ()
