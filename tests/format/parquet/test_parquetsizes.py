"""Batches and row groups are bounded by what rows take once they are decoded, however small their file is."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore.format.parquet.chunksizes import DecodedSizes
from tablestore.format.parquet.parquetfile import DataFileOptions, ParquetFileWriter
from tablestore.format.parquet.parquetread import open_parquet_file

KIB, MIB = 1 << 10, 1 << 20
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "0"}),
        pa.field("v", pa.string(), metadata={"PARQUET:field_id": "1"}),
    ]
)
# About 16 MiB each.
WIDTHS = [(100, 160_000), (10_000, 1_600), (1_000_000, 16)]


def repeated(width: int, rows: int) -> pa.Table:
    """Rows of one text each, which a dictionary writes down once."""
    return pa.table({"id": np.arange(rows), "v": pa.repeat(pa.scalar("x" * width), rows)}, schema=SCHEMA)


def foreign(rows: pa.Table, **options: object) -> pa.Buffer:
    """One row group of any size, as other writers make them."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=max(rows.num_rows, 1), **options)
    return sink.getvalue()


@pytest.mark.parametrize(("width", "rows"), WIDTHS)
def test_a_row_group_is_bounded_by_the_bytes_of_its_rows(width: int, rows: int) -> None:
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, SCHEMA, file_name="f", options=DataFileOptions(row_group_bytes=2 * MIB))
    given = repeated(width, rows)
    for start in range(0, rows, 1000):
        writer.write(given.slice(start, 1000))
    footer = writer.close()
    data = pa.py_buffer(sink.getvalue())
    metadata = pq.read_metadata(pa.BufferReader(data))
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert max(groups) * (width + 12) <= 2 * MIB + width
    assert min(groups[:-1]) * (width + 12) >= MIB / 2, "nor are they many small ones"
    reader = open_parquet_file(data, file_name="f", footer_digest=footer.digest)
    assert pa.Table.from_batches(reader.read()).equals(given.cast(reader.schema))


@pytest.mark.parametrize(("width", "rows"), WIDTHS)
@pytest.mark.parametrize("bound", [64 * KIB, 2 * MIB])
def test_a_batch_is_bounded_although_the_file_is_a_thousand_times_smaller(width: int, rows: int, bound: int) -> None:
    given = repeated(width, rows)
    data = foreign(given)
    assert data.size * 4 < given.nbytes
    reader = open_parquet_file(data, file_name="f", batch_bytes=bound)
    start = pa.total_allocated_bytes()
    held = seen = 0
    for batch in reader.read():
        assert batch.nbytes <= max(bound, width + 100)
        held = max(held, pa.total_allocated_bytes() - start)
        seen += batch.num_rows
    assert seen == rows
    # What is held besides the batch: the dictionary and a page of each column.
    assert held <= 2 * max(bound, width) + 4 * MIB


def test_sizes_that_nobody_counted_are_felt_out() -> None:
    data = foreign(repeated(10_000, 1_600))
    reader = open_parquet_file(data, file_name="f", batch_bytes=MIB)
    reader._sizes = DecodedSizes(pq.read_metadata(pa.BufferReader(data)), lambda: b"")
    assert reader._sizes.of(0, ["v"], MIB).total_bytes is None
    batches = list(reader.read())
    assert max(batch.nbytes for batch in batches) <= MIB
    assert sum(batch.num_rows for batch in batches) == 1_600
    assert len(batches) < 40, "once it is known how large rows are, batches are as large as they may be"


def test_lists_count_with_all_their_values() -> None:
    values = pa.array([[7] * 100_000] * 50, pa.list_(pa.int64()))
    data = foreign(pa.table({"v": values}))
    assert data.size < 100_000
    reader = open_parquet_file(data, file_name="f", batch_bytes=2 * MIB)
    batches = list(reader.read())
    assert max(batch.nbytes for batch in batches) <= 2 * MIB
    assert sum(batch.num_rows for batch in batches) == 50


def test_row_groups_that_are_small_are_read_as_one_batch_and_large_ones_never() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(repeated(10_000, 1_000), sink, row_group_size=10)
    sizes = [batch.nbytes for batch in open_parquet_file(sink.getvalue(), file_name="f", batch_bytes=MIB).read()]
    assert max(sizes) <= MIB
    assert len(sizes) <= 15


def test_a_row_that_is_larger_than_the_bound_comes_alone() -> None:
    data = foreign(repeated(MIB, 5))
    assert [batch.num_rows for batch in open_parquet_file(data, file_name="f", batch_bytes=1000).read()] == [1] * 5


def test_pages_of_wide_rows_are_not_a_thousand_rows_long() -> None:
    rng = np.random.default_rng(3)
    given = pa.table({"id": np.arange(300), "v": [rng.bytes(50_000).hex() for _ in range(300)]}, schema=SCHEMA)
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, SCHEMA, file_name="f", options=DataFileOptions())
    writer.write(given)
    writer.close()
    reader = open_parquet_file(pa.py_buffer(sink.getvalue()), file_name="f", batch_bytes=MIB)
    start = pa.total_allocated_bytes()
    held = max(pa.total_allocated_bytes() - start for _ in reader.read())
    assert held <= 8 * MIB


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "RLE_DICTIONARY"])
def test_a_decoded_size_is_never_guessed_too_low(encoding: str) -> None:
    given = pa.table({"v": [f"common prefix {'y' * 500} {i % 7}" for i in range(2_000)], "n": [None] * 2_000})
    plain = {"use_dictionary": False, "column_encoding": {"v": encoding}}
    options = {"use_dictionary": True} if encoding == "RLE_DICTIONARY" else plain
    data = foreign(given.cast(pa.schema([("v", pa.string()), ("n", pa.int32())])), **options)
    reader = open_parquet_file(data, file_name="f")
    size = reader._sizes.of(0, ["v", "n"], 1000)
    assert size.total_bytes is not None
    assert given.column("v").nbytes <= size.total_bytes <= 2 * given.column("v").nbytes
    largest = reader._sizes.of(0, ["v"], 1000).largest_row_bytes
    assert largest >= 500
