"""Data files in ORC and Avro as we write them: every value comes back, damage is found, what cannot be held is refused by name.

What others read of them: tests/interop/test_writtenformats.py.
"""

import datetime
import decimal
import io
import math
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

import tablestore as ts
from tablestore.errors import FormatError, InvalidInputError, StorageError, TablestoreError
from tablestore.format.datafiles.datafilereader import open_data_file
from tablestore.format.datafiles.datafilewriter import create_data_file
from tablestore.format.parquet.parquetfile import DataFileOptions, FileFooter
from tablestore.format.parquet.parquetschema import file_schema
from tablestore.format.parquet.projection import Projection
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema

MOST = decimal.Decimal("9" * 38)
FORMATS = ("orc", "avro")
ENDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), [-128, 127]),
    "smallint": (pa.int16(), [-(2**15), 2**15 - 1]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), [0.0, -0.0, math.inf, 1.5]),
    "double": (pa.float64(), [0.0, -0.0, -math.inf, 5e-324]),
    "short": (pa.decimal128(9, 2), [decimal.Decimal("-0.01"), decimal.Decimal("9999999.99"), decimal.Decimal("1.28")]),
    "long": (pa.decimal128(38, 0), [MOST, MOST.copy_negate(), decimal.Decimal(0), decimal.Decimal(-128), decimal.Decimal(255)]),
    "string": (pa.string(), ["", "é\0中𝄞", "x" * 70_000]),
    "bytes": (pa.binary(), [b"", b"\0\xff" * 100]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "time": (pa.time32("ms"), [datetime.time(0), datetime.time(23, 59, 59, 999000)]),
    "ms": (pa.timestamp("ms"), [datetime.datetime(1678, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)]),
    "us": (pa.timestamp("us", "UTC"), [datetime.datetime(2261, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.UTC)]),
    "list": (pa.list_(pa.list_(pa.int16())), [[], [None], [[], [1, None]]]),
    "texts": (pa.map_(pa.string(), pa.int64()), [[], [("", 1), ("b", None)]]),
    "numbers": (pa.map_(pa.int32(), pa.list_(pa.string())), [[], [(-1, ["a", None]), (0, None)]]),
    "row": (
        pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.decimal128(20, 3))]))]),
        [{"a": None, "b": None}, {"a": 1, "b": {"c": decimal.Decimal("1.500")}}],
    ),
    "rows": (pa.list_(pa.struct([("a", pa.string())])), [[None, {"a": None}, {"a": "x"}]]),
}


def table_schema(columns: pa.Schema, **options: str) -> TableSchema:
    return new_schema(schema=columns, primary_key=(), partition_by=(), options=options, comment=None, time_millis=0)


def written(schema: TableSchema, rows: pa.Table, file_format: str, **options: Any) -> tuple[bytes, FileFooter]:
    sink = io.BytesIO()
    writer = create_data_file(
        sink, file_schema(schema, thin=False), file_name=f"data-1.{file_format}", options=DataFileOptions(**options)
    )
    writer.write(rows)
    footer = writer.close()
    assert (footer.row_count, footer.file_size) == (rows.num_rows, len(sink.getvalue()))
    return sink.getvalue(), footer


def read(schema: TableSchema, data: bytes, footer: FileFooter, file_format: str) -> pa.Table:
    reader = open_data_file(
        pa.BufferReader(data),
        file_name=f"data-1.{file_format}",
        fields=lambda: schema.fields,
        footer_digest=footer.digest,
        size=footer.file_size,
    )
    projection = Projection(schema.fields, schema.fields, file_names=reader.schema.names)
    batches = [projection.apply(batch) for batch in reader.read(projection.file_columns)]
    reader.close()
    return pa.Table.from_batches(batches, to_arrow_schema(schema.fields))


def ends(count: int = 0) -> pa.Table:
    """Every type, each value of it and NULL in some row."""
    columns = {}
    for name, (kind, values) in ENDS.items():
        cycle = [*values, None]
        columns[name] = pa.array([cycle[place % len(cycle)] for place in range(max(count, 6))], kind)
    return pa.table(columns)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "gzip", "none"])
def test_ends_of_all_types_come_back(file_format: str, compression: str) -> None:
    if (file_format, compression) == ("avro", "lz4"):
        pytest.skip("refused when the table is created: test_what_a_format_does_not_hold_is_refused_when_a_table_is_made")
    rows = ends()
    schema = table_schema(rows.schema)
    data, footer = written(schema, rows, file_format, compression=compression)
    assert read(schema, data, footer, file_format).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("file_format", FORMATS)
def test_nan_is_nan_and_zeros_keep_their_signs(file_format: str) -> None:
    rows = pa.table({"d": [math.nan, -0.0, 0.0, None], "f": pa.array([math.nan, 0.0, -0.0, None], pa.float32())})
    schema = table_schema(rows.schema)
    back = read(schema, *written(schema, rows, file_format), file_format)
    for name in rows.column_names:
        expected = rows[name].drop_null().to_numpy()
        assert np.array_equal(back[name].drop_null().to_numpy().view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("file_format", FORMATS)
def test_slices_and_chunks_of_rows_come_back(file_format: str) -> None:
    """Arrow's writer of ORC takes the nulls of a sliced row from the start of its buffer."""
    rows = ends(3_000)
    schema = table_schema(rows.schema)
    part = pa.concat_tables([rows.slice(1_001, 900), rows.slice(3, 7), rows.slice(0, 0), rows.slice(2_900)])
    part = part.drop_columns("string")
    schema = table_schema(part.schema)
    assert read(schema, *written(schema, part, file_format), file_format).to_pylist() == part.to_pylist()


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_without_rows_and_one_of_many_columns(file_format: str) -> None:
    empty = ends().slice(0, 0)
    schema = table_schema(empty.schema)
    assert read(schema, *written(schema, empty, file_format), file_format).equals(empty.cast(to_arrow_schema(schema.fields)))
    wide = pa.table({f"c{place}": pa.array([place, None], pa.int32()) for place in range(700)})
    schema = table_schema(wide.schema)
    assert read(schema, *written(schema, wide, file_format), file_format).to_pylist() == wide.to_pylist()


@pytest.mark.parametrize("file_format", FORMATS)
def test_damage_at_the_end_of_a_file_is_found_before_it_is_decoded(file_format: str) -> None:
    rows = pa.table({"n": range(2_000)})
    schema = table_schema(rows.schema)
    data, footer = written(schema, rows, file_format)
    for place in range(0, len(data), max(len(data) // 40, 1)):
        damaged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(FormatError, match="not those that the manifest names"):
            read(schema, damaged, footer, file_format)


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_timestamps_that_orc_readers_do_not_hold_are_refused_with_their_column(unit: str) -> None:
    rows = pa.table({"far": pa.array([datetime.datetime(9999, 12, 31)], pa.timestamp(unit))})
    schema = table_schema(rows.schema)
    with pytest.raises(InvalidInputError, match="'far': expected timestamps of the years 1678 to 2261") as raised:
        written(schema, rows, "orc")
    assert raised.value.kind == "out-of-range"
    assert read(schema, *written(schema, rows, "avro"), "avro").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("us"),
        pa.list_(pa.timestamp("ns", "UTC")),
        pa.map_(pa.string(), pa.struct([("t", pa.timestamp("us"))])),
    ],
)
def test_old_timestamps_that_others_misread_in_orc_are_refused(kind: pa.DataType) -> None:
    def row(value: datetime.datetime) -> Any:
        return value if pa.types.is_timestamp(kind) else [("a", {"t": value})] if pa.types.is_map(kind) else [value]

    zone = datetime.UTC if pa.types.is_list(kind) else None
    whole = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=zone)
    rows = pa.table({"old": pa.array([row(whole), None, row(datetime.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=zone))], kind)})
    schema = table_schema(rows.schema)
    assert read(schema, *written(schema, rows, "orc"), "orc").to_pylist() == rows.to_pylist()
    finer = pa.table({"old": pa.array([row(whole.replace(microsecond=999001))], kind)})
    with pytest.raises(InvalidInputError, match="'old': expected timestamps before 1970 to end in whole milliseconds") as raised:
        written(schema, finer, "orc")
    assert raised.value.kind == "out-of-range"


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_ends_before_a_reader_could_not_hold_it(file_format: str) -> None:
    """Rows that compress to nothing: few bytes, and many in memory."""
    rows = pa.table({"s": pa.array(["x" * 100_000], pa.string()).take(pa.array(np.zeros(300, np.int64)))})
    layout = file_schema(table_schema(rows.schema), thin=False)
    writer = create_data_file(io.BytesIO(), layout, file_name=f"data-1.{file_format}", options=DataFileOptions())
    writes = 0
    while not writer.reached(1 << 40):
        writer.write(rows)
        writes += 1
    assert 4 <= writes <= 12
    assert writer.close().row_count == writes * 300


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_stores_own_error_comes_out(file_format: str) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise StorageError("the disk is full")

    rows = pa.table({"n": range(10)})
    with pytest.raises(StorageError, match="the disk is full"):
        sink = Full()
        schema = file_schema(table_schema(rows.schema), thin=False)
        writer = create_data_file(sink, schema, file_name=f"data-1.{file_format}", options=DataFileOptions())
        writer.write(rows)
        writer.close()


@pytest.mark.parametrize("file_format", FORMATS)
def test_other_columns_are_no_rows_of_the_file(file_format: str) -> None:
    schema = table_schema(pa.schema([("n", pa.int64())]))
    for rows in (pa.table({"n": ["x"]}), pa.table({"n": [1], "m": [2]}).select([])):
        with pytest.raises(InvalidInputError, match="do not have the columns of the file"):
            written(schema, rows, file_format)


def test_avro_files_have_the_schema_of_the_java_core() -> None:
    rows = ends()
    schema = table_schema(rows.schema)
    data, _ = written(schema, rows, "avro")
    reader = fastavro.reader(io.BytesIO(data))
    record: Any = reader.writer_schema
    assert record["name"] == "org.apache.paimon.avro.generated.record"
    assert '"name":"record","namespace":"org.apache.paimon.avro.generated"' in reader.metadata["avro.schema"]
    types = {field["name"]: field["type"][1] for field in record["fields"]}
    assert types["us"] == {"type": "long", "logicalType": "local-timestamp-micros"}
    assert types["time"] == {"type": "int", "logicalType": "time-millis"}
    assert types["short"] == {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    assert types["row"]["name"] == "org.apache.paimon.avro.generated.record_row"
    assert types["numbers"]["logicalType"] == "map"
    assert sum(1 for _ in reader) == rows.num_rows


def test_orc_files_have_the_field_ids_and_types_of_the_java_core() -> None:
    rows = ends()
    data, _ = written(table_schema(rows.schema), rows, "orc")
    stored = orc.ORCFile(pa.BufferReader(data)).schema
    assert [field.metadata[b"paimon.id"] for field in stored][:3] == [b"0", b"1", b"2"]
    assert (stored.field("time").type, stored.field("ms").type) == (pa.int32(), pa.timestamp("ns"))
    assert stored.field("us").type == pa.timestamp("ns", "UTC")


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"t": pa.timestamp("ns")}, {}, "'t' of type TIMESTAMP"),
        ({"r": pa.list_(pa.struct([("t", pa.timestamp("ns", "UTC"))]))}, {}, "'r' of type TIMESTAMP"),
        ({"a b": pa.int32()}, {}, "'a b'"),
        ({"m": pa.map_(pa.string(), pa.struct([("é", pa.int32())]))}, {}, "'é'"),
        ({"n": pa.int32()}, {"file.compression": "lz4"}, "file.compression = lz4"),
    ],
)
def test_what_a_format_does_not_hold_is_refused_when_a_table_is_made(
    tmp_path: Path, columns: dict[str, pa.DataType], options: dict[str, str], words: str
) -> None:
    catalog = ts.open_catalog(f"memory://{tmp_path.name}")
    catalog.create_database("d")
    schema = pa.schema(list(columns.items()))
    with pytest.raises(TablestoreError, match=words) as raised:
        catalog.create_table("d.t", schema=schema, options={"file.format": "avro", **options})
    assert raised.value.kind == "file-format"
    with pytest.raises(TablestoreError, match=r"no ` in the names of columns with file.format = orc, found 'a`b'"):
        catalog.create_table("d.q", schema=pa.schema([("r", pa.struct([("a`b", pa.int32())]))]), options={"file.format": "orc"})
    table = catalog.create_table("d.t", schema=schema, options={"file.format": "orc", **options})
    with pytest.raises(TablestoreError, match=words):
        table.alter(ts.SetOption("file.format", "avro"))
