"""Rows are found by key where they lie, and nowhere else is read."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore.errors import FormatError, InvalidInputError
from tablestore.format.parquet.parquetfile import DataFileOptions
from tablestore.format.parquet.parquetread import ParquetFileReader
from tablestore.io.memory import MemoryFileStore
from tablestore.store.scan.lookup import find_rows, match_sorted, sorted_keys
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.table import Table
from tablestore.testing.lab import Lab

ROWS_PER_GROUP = 50


@pytest.fixture
def files(request):
    return MemoryFileStore(request.node.name)


def _table(lab):
    """A handle that writes small row groups, so that a small table has many."""
    table = lab.open()
    settings = replace(table.context.settings, data_files=DataFileOptions(row_group_rows=ROWS_PER_GROUP))
    return Table(replace(table.context, settings=settings), "lab")


def _entries(context):
    return context.manifests.live(context.snapshots.latest())


def _lookup(context, keys, columns=None):
    """All that is found: per file name the (position, key) pairs, and the rows."""
    fields = context.schema.key_fields
    rows = keys.sort_by([(f.name, "ascending") for f in fields])
    entries = _entries(context)
    found = list(
        find_rows(
            SplitReader.of(context, (), None),
            entries[0].partition,
            0,
            [e.file for e in entries],
            sorted_keys(rows, fields),
            columns,
        )
    )
    return rows, found


def _stored(context, file):
    path = f"{SplitReader.of(context, (), None).directory(_entries(context)[0].partition, 0)}/{file.file_name}"
    reader = SplitReader.of(context, (), None).open_file(path, file)
    try:
        return pa.Table.from_batches(list(reader.read(None))).to_pylist()
    finally:
        reader.close()


def _numbers(rng, count):
    return rng.choice(100_000, count, replace=False)


KEYS = {
    "bigint": ([pa.field("k", pa.int64(), nullable=False)], lambda rng, n: [_numbers(rng, n) - 50_000]),
    "text": (
        [pa.field("k", pa.string(), nullable=False)],
        lambda rng, n: [[f"é{'x' * int(i % 40)}{i}" for i in _numbers(rng, n)]],
    ),
    "decimal, timestamp": (
        [pa.field("k", pa.decimal128(30, 2), nullable=False), pa.field("t", pa.timestamp("us"), nullable=False)],
        lambda rng, n: [
            pa.array(_numbers(rng, n) % 40 - 20).cast(pa.decimal128(28, 0)).cast(pa.decimal128(30, 2)),
            pa.array(_numbers(rng, n), pa.timestamp("us")),
        ],
    ),
    "int, text": (
        [pa.field("k", pa.int32(), nullable=False), pa.field("t", pa.string(), nullable=False)],
        lambda rng, n: [(_numbers(rng, n) % 7).astype("int32"), [f"{i % 900}" for i in _numbers(rng, n)]],
    ),
    "double": ([pa.field("k", pa.float64(), nullable=False)], lambda rng, n: [(_numbers(rng, n) - 50_000) / 8]),
}


def _rows(fields, make, rng, count):
    schema = pa.schema([*fields, pa.field("v", pa.string()), pa.field("w", pa.int32())])
    keys = [pa.array(values, field.type) for values, field in zip(make(rng, count), fields, strict=True)]
    values = [[f"v{i}" if i % 3 else None for i in range(count)], pa.array(rng.integers(0, 9, count), pa.int32())]
    return pa.Table.from_arrays([*keys, *values], schema=schema)


@pytest.mark.deep_after(7)
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_rows_of_the_keys_are_found_with_their_positions_and_values(files, kind, seed):
    fields, make = KEYS[kind]
    rng = np.random.default_rng(seed)
    names = [field.name for field in fields]
    lab = Lab(files, schema=pa.schema([*fields, pa.field("v", pa.string()), pa.field("w", pa.int32())]), primary_key=names)
    table = _table(lab)
    parts = [_rows(fields, make, rng, count) for count in (700, 120, 9)]
    for part in parts:
        table.upsert(part)
    known = pa.concat_tables([part.select(names) for part in parts])
    asked = (
        pa.concat_tables([known.take(rng.choice(known.num_rows, 150)), _rows(fields, make, rng, 150).select(names)])
        .group_by(names)
        .aggregate([])
    )
    context = table.context
    keys, found = _lookup(context, asked, ["w", *names, "v"])
    wanted = [tuple(row.values()) for row in keys.to_pylist()]
    expected, seen = [], []
    for entry in _entries(context):
        for position, row in enumerate(_stored(context, entry.file)):
            key = tuple(row[name] for name in names)
            if key in wanted:
                expected.append((entry.file.file_name, position, wanted.index(key), row["_SEQUENCE_NUMBER"], row["v"], row["w"]))
    for hit in found:
        assert hit.rows.schema.names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "w", *names, "v"]
        for position, key, row in zip(hit.positions.tolist(), hit.keys.tolist(), hit.rows.to_pylist(), strict=True):
            assert tuple(row[name] for name in names) == wanted[key]
            seen.append((hit.file.file_name, position, key, row["_SEQUENCE_NUMBER"], row["v"], row["w"]))
    assert expected, "the example finds nothing"
    assert seen == expected


class _Reads:
    def __init__(self, monkeypatch):
        self.calls, self.side_by_side = [], []
        read = ParquetFileReader.read

        def counted(reader, columns=None, row_groups=None, *, side_by_side=False):
            self.calls.append((tuple(columns), tuple(row_groups)))
            self.side_by_side.append(side_by_side)
            return read(reader, columns, row_groups, side_by_side=side_by_side)

        monkeypatch.setattr(ParquetFileReader, "read", counted)


def _three_files(lab):
    table = _table(lab)
    for start in (0, 1000, 2000):
        table.upsert(lab.rows(*((i, f"v{i}") for i in range(start, start + 500))))
    return table.context


def test_only_row_groups_that_can_hold_a_key_are_read_and_values_only_where_one_was_found(files, monkeypatch):
    context = _three_files(Lab(files))
    reads = _Reads(monkeypatch)
    # 60 and 90 lie in row group 1 of the first file; 1499 in the last one of the second; 2700 and 700 in none.
    keys = pa.table({"id": pa.array([60, 90, 700, 1499, 2700], pa.int64())})
    _, found = _lookup(context, keys, ["v"])
    assert [(hit.positions.tolist(), hit.rows.column("v").to_pylist()) for hit in found] == [
        ([60, 90], ["v60", "v90"]),
        ([499], ["v1499"]),
    ]
    assert reads.calls == [
        (("id",), (1,)),
        (("_SEQUENCE_NUMBER", "_VALUE_KIND", "v"), (1,)),
        (("id",), (9,)),
        (("_SEQUENCE_NUMBER", "_VALUE_KIND", "v"), (9,)),
    ]
    assert reads.side_by_side == [False, True, False, True], "the values, which are several columns"


@pytest.mark.parametrize("thin", ["true", "false"])
def test_a_key_with_a_dot_in_its_name_is_not_taken_for_the_field_of_a_row(files, thin):
    schema = pa.schema([pa.field("a.b", pa.int64(), nullable=False), ("a", pa.struct([("b", pa.int64()), ("c", pa.int64())]))])
    lab = Lab(files, schema=schema, primary_key=["a.b"], options={"data-file.thin-mode": thin})
    table = _table(lab)
    numbers = np.arange(3 * ROWS_PER_GROUP)
    inner = pa.StructArray.from_arrays([pa.array(numbers + 10_000), pa.array(numbers)], fields=list(schema.field("a").type))
    table.upsert(pa.table([pa.array(numbers), inner], schema=schema))
    keys, found = _lookup(table.context, pa.table([pa.array(numbers)], schema=pa.schema([schema.field("a.b")])), ["a"])
    assert sum(len(hit.keys) for hit in found) == len(keys)
    assert [row["a"]["b"] for hit in found for row in hit.rows.to_pylist()] == (numbers + 10_000).tolist()


def test_values_are_not_read_where_no_key_is_found(files, monkeypatch):
    lab = Lab(files)
    table = _table(lab)
    table.upsert(lab.rows(*((2 * i, "v") for i in range(200))))
    reads = _Reads(monkeypatch)
    _, found = _lookup(table.context, pa.table({"id": pa.array([1, 3, 399], pa.int64())}), ["v"])
    assert not found
    assert [columns for columns, _ in reads.calls] == [("id",)]


def test_positions_alone_need_the_key_columns_only(files, monkeypatch):
    context = _three_files(Lab(files))
    reads = _Reads(monkeypatch)
    _, found = _lookup(context, pa.table({"id": pa.array(range(0, 500, 7), pa.int64())}))
    assert np.concatenate([hit.positions for hit in found]).tolist() == list(range(0, 500, 7))
    assert all(hit.rows is None for hit in found)
    assert {columns for columns, _ in reads.calls} == {("id",)}
    assert len(reads.calls) == 10, "each row group once"


def test_no_key_finds_nothing_and_keys_out_of_order_are_refused(files):
    context = _three_files(Lab(files))
    assert _lookup(context, pa.table({"id": pa.array([], pa.int64())}), ["v"])[1] == []
    for wrong in ([2, 1], [1, 1]):
        with pytest.raises(InvalidInputError, match="distinct keys in key order"):
            sorted_keys(pa.table({"id": pa.array(wrong, pa.int64())}), context.schema.key_fields)


def test_a_file_that_is_not_sorted_is_refused_and_not_searched(files):
    lab = Lab(files)
    table = _table(lab)
    table.upsert(lab.rows(*((i, "v") for i in range(60))))
    context = table.context
    (entry,) = _entries(context)
    path = f"bucket-0/{entry.file.file_name}"
    reader = SplitReader.of(context, (), None).open_file(path, entry.file)
    rows = pa.Table.from_batches(list(reader.read(None)))
    reader.close()
    sink = pa.BufferOutputStream()
    pq.write_table(rows.take([1, 0, *range(2, 60)]), sink)
    lab.files.delete(path)
    lab.files.write(path, sink.getvalue().to_pybytes())
    foreign = replace(entry.file, file_size=sink.getvalue().size, footer_digest=None)
    keys = sorted_keys(pa.table({"id": pa.array([0, 5], pa.int64())}), context.schema.key_fields)
    with pytest.raises(FormatError, match="not in strictly ascending key order"):
        list(find_rows(SplitReader.of(context, (), None), entry.partition, 0, [foreign], keys))


def test_shared_keys_are_matched_whichever_side_is_longer():
    few, many = np.array([3, 5, 9]), np.arange(0, 100, 3)
    for left, right in ((few, many), (many, few)):
        at_left, at_right = match_sorted([left], [right])
        assert left[at_left].tolist() == right[at_right].tolist() == [3, 9]
    words = [[pa.array([b"a" * 40 + bytes([i]) for i in values], pa.binary())] for values in ((1, 2, 9), (0, 2, 3, 9))]
    assert [places.tolist() for places in match_sorted(*words)] == [[1, 2], [1, 3]]
