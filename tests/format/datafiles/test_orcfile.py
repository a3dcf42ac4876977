"""ORC data files: columns by name, bounded batches, damage. What Java writes is read in tests/interop/test_fileformats.py."""

import io
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from tablestore.errors import FormatError, TablestoreError
from tablestore.format.datafiles.datafilereader import open_data_file
from tablestore.format.datafiles.orcfile import OrcFileReader

NAME = "data-1.orc"


def written(rows: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    orc.write_table(rows, sink, **options)
    return sink.getvalue()


def opened(data: bytes, **options: Any) -> OrcFileReader:
    return OrcFileReader(pa.BufferReader(data), file_name=NAME, **options)


def test_columns_come_in_the_order_that_is_asked_for_whatever_their_names_are() -> None:
    rows = pa.table(
        {
            "z.b": pa.array(["x", None]),
            "z": pa.array([{"b": 1}, None], pa.struct([("b", pa.int32())])),
            "a": pa.array([{"b": 1, "c": "x"}, None], pa.struct([("b", pa.int32()), ("c", pa.string())])),
            "a.b": pa.array([10, 20], pa.int64()),
            "A": pa.array([True, None]),
            "é `": pa.array(["", None]),
        }
    )
    reader = opened(written(rows))
    for names in (["z.b"], ["z", "z.b"], ["z"], ["a.b", "a"], ["a"], ["A", "a"], ["é `", "a.b"], rows.column_names):
        read = pa.Table.from_batches(list(reader.read(names)))
        assert read.column_names == names
        assert read.to_pylist() == rows.select(names).to_pylist()


def test_batches_are_bounded_over_all_stripes() -> None:
    rows = pa.table({"n": range(200_000), "s": [f"row {number}" for number in range(200_000)]})
    data = written(rows, stripe_size=64 * 1024)
    reader = opened(data, size=len(data), batch_bytes=256 * 1024)
    batches = list(reader.read(["n", "s"]))
    assert reader.row_count == 200_000
    assert max(batch.nbytes for batch in batches) <= 256 * 1024
    assert pa.Table.from_batches(batches).equals(rows)
    assert [group.row_count for group in reader.row_groups] == [200_000]
    assert list(reader.read(["n"], row_groups=[])) == []


def test_an_empty_file_has_no_rows_and_its_columns() -> None:
    reader = opened(written(pa.table({"n": pa.array([], pa.int64())})))
    assert (reader.row_count, reader.schema.names, list(reader.read())) == (0, ["n"], [])


def test_a_file_of_another_size_or_with_other_columns_is_damaged() -> None:
    data = written(pa.table({"n": [1]}))
    with pytest.raises(FormatError, match="cut or replaced"):
        opened(data, size=len(data) + 1)
    with pytest.raises(FormatError, match="expected the columns m, found only n"):
        list(opened(data).read(["m"]))


def test_a_flipped_bit_of_the_footer_is_an_error_of_ours_or_another_value() -> None:
    # Not of the streams in front of it: Arrow's reader may crash over these (SECURITY.md).
    data = written(pa.table({"n": range(100), "s": ["x" * 5] * 100}), compression="zstd")
    file = orc.ORCFile(pa.BufferReader(data))
    for place in range(len(data) - file.file_footer_length - file.file_postscript_length - 1, len(data)):
        damaged = data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :]
        try:
            rows = list(opened(damaged).read())
        except TablestoreError:
            continue
        assert sum(batch.num_rows for batch in rows) >= 0


def test_the_name_says_which_reader_opens_a_file() -> None:
    reader = open_data_file(pa.BufferReader(written(pa.table({"n": [1]}))), file_name="x.zstd.orc", fields=tuple)
    assert isinstance(reader, OrcFileReader)
    with pytest.raises(TablestoreError, match="format 'csv'; tablestore reads parquet, orc, avro"):
        open_data_file(pa.BufferReader(b""), file_name="data-1.csv", fields=tuple)
