"""Data files hold what the format says, byte for byte checkable, and come back as they went in."""

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore.errors import FormatError, InvalidInputError
from tablestore.format.parquet.parquetfile import DataFileOptions, ParquetFileWriter, with_system_columns
from tablestore.format.parquet.parquetread import open_parquet_file
from tablestore.format.parquet.parquetschema import file_schema
from tablestore.format.parquet.projection import Projection
from tablestore.types.datatypes import ArrayType, AtomicType, Field, MapType, RowType, TypeRoot
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema

NAME = "data-00000000-0000-8000-8000-000000000000-0.parquet"
MOMENT = datetime(2024, 1, 2, 3, 4, 5, 678000)

COLUMNS: dict[str, tuple[pa.DataType, object, str]] = {
    # name: type, value, physical and logical type as Parquet tells it
    "bool": (pa.bool_(), True, "BOOLEAN None"),
    "tiny": (pa.int8(), -1, "INT32 Int(bitWidth=8, isSigned=true)"),
    "small": (pa.int16(), -2, "INT32 Int(bitWidth=16, isSigned=true)"),
    "int": (pa.int32(), 3, "INT32 None"),
    "float": (pa.float32(), 0.5, "FLOAT None"),
    "double": (pa.float64(), 0.25, "DOUBLE None"),
    "text": (pa.string(), "é", "BYTE_ARRAY String"),
    "bytes": (pa.binary(), b"\0\xff", "BYTE_ARRAY None"),
    "dec9": (pa.decimal128(9, 2), Decimal("-1.25"), "INT32 Decimal(precision=9, scale=2)"),
    "dec18": (pa.decimal128(18, 2), Decimal("1.25"), "INT64 Decimal(precision=18, scale=2)"),
    "dec38": (pa.decimal128(38, 2), Decimal("1.25"), "FIXED_LEN_BYTE_ARRAY Decimal(precision=38, scale=2)"),
    "date": (pa.date32(), date(1969, 12, 31), "INT32 Date"),
    "time": (pa.time32("ms"), time(1, 2, 3, 4000), "INT32 Time(isAdjustedToUTC=false, timeUnit=milliseconds)"),
    "millis": (pa.timestamp("ms"), MOMENT, "INT64 Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds"),
    "micros": (pa.timestamp("us"), MOMENT, "INT64 Timestamp(isAdjustedToUTC=false, timeUnit=microseconds"),
    "instant": (
        pa.timestamp("us", "UTC"),
        MOMENT.replace(tzinfo=UTC),
        "INT64 Timestamp(isAdjustedToUTC=true, timeUnit=microseconds",
    ),
    "items": (pa.list_(pa.timestamp("ms")), [MOMENT, None], ""),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", None)], ""),
    "row": (pa.struct([("x", pa.timestamp("us", "UTC")), ("y", pa.string())]), {"x": None, "y": "z"}, ""),
}
NANOS = {"nanos": (pa.timestamp("ns"), np.datetime64("2024-01-02T03:04:05.123456789"), "INT96 None")}


def _schema(columns) -> TableSchema:
    fields = [
        pa.field("id", pa.int64(), nullable=False),
        *(pa.field(name, kind) for name, (kind, *_) in columns.items()),
    ]
    return new_schema(schema=pa.schema(fields), primary_key=["id"])


def _rows(schema: TableSchema, columns, count: int = 5) -> pa.Table:
    data = {"id": pa.array(range(count), pa.int64())}
    for name, (kind, value, _) in columns.items():
        data[name] = pa.array([value, None] * count, type=kind)[:count].cast(schema.arrow_schema.field(name).type)
    return pa.table(data, schema=schema.arrow_schema)


def _write(schema: TableSchema, rows: pa.Table, *, thin=True, options=None, name=NAME):
    sink = io.BytesIO()
    layout = file_schema(schema, thin=thin)
    writer = ParquetFileWriter(sink, layout, file_name=name, options=options, unique_columns=frozenset({"id"}))
    writer.write(with_system_columns(rows, layout, sequence=7, kinds=np.zeros(rows.num_rows, np.int8)))
    return sink, writer.close()


def _open(data: bytes, footer, name=NAME):
    return open_parquet_file(pa.py_buffer(data), file_name=name, footer_digest=footer.digest, size=footer.file_size)


def _table(reader, columns=None) -> pa.Table:
    return pa.Table.from_batches(list(reader.read(columns)), schema=None)


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS | NANOS], ids=["without nanoseconds", "with nanoseconds"])
def test_every_type_has_its_physical_type_and_survives(columns):
    schema = _schema(columns)
    rows = _rows(schema, columns)
    sink, footer = _write(schema, rows)
    stored = pq.ParquetFile(sink).schema
    by_name = {stored.column(i).path: stored.column(i) for i in range(len(stored))}
    for name, (_, _, expected) in columns.items():
        if expected:
            found = by_name[name]
            assert f"{found.physical_type} {found.logical_type}".startswith(expected), name
    assert by_name["items.list.element"].physical_type == "INT64"
    projection = Projection(schema.fields, schema.fields)
    reader = _open(sink.getvalue(), footer)
    read = pa.Table.from_batches([projection.apply(batch) for batch in reader.read(projection.file_columns)])
    assert read.equals(rows)
    assert read.schema.equals(rows.schema)


def test_columns_of_a_keyed_file_have_their_order_ids_and_nullability():
    schema = _schema({"a": (pa.list_(pa.int32()), None, ""), "m": COLUMNS["map"], "r": COLUMNS["row"]})
    layout = file_schema(schema, thin=False)
    ids = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in layout}
    assert ids == {"_KEY_id": 1073741823, "_SEQUENCE_NUMBER": 2147483646, "_VALUE_KIND": 2147483645} | {
        field.name: field.id for field in schema.fields
    }
    assert [field.name for field in layout if not field.nullable] == [
        "_KEY_id",
        "_SEQUENCE_NUMBER",
        "_VALUE_KIND",
        "id",
    ]
    assert layout.field("_VALUE_KIND").type == pa.int8()
    element = layout.field("a").type.value_field
    assert int(element.metadata[b"PARQUET:field_id"]) == 536870911 + 1024 * 1 + 1
    key, value = layout.field("m").type.key_field, layout.field("m").type.item_field
    assert int(key.metadata[b"PARQUET:field_id"]) == 536870911 - 1024 * 2 - 1
    assert int(value.metadata[b"PARQUET:field_id"]) == 536870911 + 1024 * 2 + 1
    assert file_schema(schema, thin=True).names == layout.names[1:]


def test_an_append_file_has_the_table_columns_only():
    schema = new_schema(schema=pa.schema([("a", pa.int32())]))
    assert file_schema(schema, thin=False).names == ["a"]


def test_row_groups_are_bounded_and_carry_key_statistics_without_dictionary():
    schema = _schema({"text": COLUMNS["text"]})
    rows = _rows(schema, {"text": COLUMNS["text"]}, 1000)
    sink, layout = io.BytesIO(), file_schema(schema, thin=True)
    writer = ParquetFileWriter(
        sink, layout, file_name=NAME, options=DataFileOptions(row_group_rows=300), unique_columns=frozenset({"id"})
    )
    for start in range(0, 1000, 77):
        part = rows.slice(start, 77)
        writer.write(with_system_columns(part, layout, sequence=7, kinds=np.zeros(part.num_rows, np.int8)))
    footer = writer.close()
    assert footer.row_count == 1000
    assert footer.file_size == len(sink.getvalue())
    assert writer.reached(footer.file_size) and not writer.reached(footer.file_size + 1)
    reader = _open(sink.getvalue(), footer)
    assert [group.row_count for group in reader.row_groups] == [300, 300, 300, 100]
    assert [group.bounds["id"] for group in reader.row_groups] == [(0, 299), (300, 599), (600, 899), (900, 999)]
    group = pq.ParquetFile(sink).metadata.row_group(0)
    found = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert not found["id"].has_dictionary_page
    assert found["text"].has_dictionary_page
    assert found["_SEQUENCE_NUMBER"].has_dictionary_page
    assert {column.compression for column in found.values()} == {"ZSTD"}
    assert _table(reader, ["text", "id"]).equals(rows.select(["text", "id"]))
    assert [batch.num_rows for batch in reader.read(["id"], row_groups=[3])] == [100]


def test_a_file_without_rows_can_be_read():
    schema = _schema({})
    sink, footer = _write(schema, _rows(schema, {}, 0))
    reader = _open(sink.getvalue(), footer)
    assert reader.row_count == 0
    assert sum(batch.num_rows for batch in reader.read(["id"])) == 0


def test_a_null_in_a_not_null_column_is_refused():
    schema = _schema({})
    rows = pa.table({"id": pa.array([None], pa.int64())})
    with pytest.raises(InvalidInputError, match=NAME):
        _write(schema, rows)


def test_a_file_under_another_name_is_refused():
    schema = _schema({})
    sink, footer = _write(schema, _rows(schema, {}))
    with pytest.raises(FormatError, match="changed places") as caught:
        _open(sink.getvalue(), footer, name="data-other-0.parquet")
    assert caught.value.kind == "swapped"


def test_files_of_others_have_neither_name_nor_digest():
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    reader = open_parquet_file(sink, file_name="x.parquet", footer_digest=None, size=None)
    assert _table(reader).to_pydict() == {"a": [1, 2]}


def test_a_column_that_the_file_does_not_have_is_named():
    schema = _schema({})
    sink, footer = _write(schema, _rows(schema, {}))
    with pytest.raises(FormatError, match="nope"):
        list(_open(sink.getvalue(), footer).read(["nope"]))


@pytest.mark.deep
def test_a_flipped_bit_is_found_or_harmless():
    columns = {name: COLUMNS[name] for name in ("text", "double", "items")}
    schema = _schema(columns)
    rows = _rows(schema, columns, 40)
    sink, footer = _write(schema, rows, options=DataFileOptions(row_group_rows=16))
    data = sink.getvalue()
    expected = _table(_open(data, footer))
    found = 0
    for bit in range(0, 8 * len(data), 7):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            read = _table(_open(bytes(damaged), footer))
        except FormatError as error:
            found += NAME in str(error)
        else:
            assert read.equals(expected), bit
    assert found > 0.8 * len(range(0, 8 * len(data), 7))


@pytest.mark.parametrize("size", [0, 3, 11, 200])
def test_a_truncated_file_is_refused(size):
    schema = _schema({})
    sink, footer = _write(schema, _rows(schema, {}))
    with pytest.raises(FormatError, match="expected"):
        open_parquet_file(pa.py_buffer(sink.getvalue()[:size]), file_name=NAME, footer_digest=footer.digest, size=None)


def test_old_columns_are_found_by_id_renamed_widened_added_and_dropped():
    def atomic(root, **parts):
        return AtomicType(root=root, **parts)

    integer, bigint = atomic(TypeRoot.INT), atomic(TypeRoot.BIGINT)
    old = (
        Field(id=0, name="k", type=integer),
        Field(id=1, name="gone", type=integer),
        Field(
            id=2,
            name="r",
            type=RowType(fields=(Field(id=3, name="x", type=integer), Field(id=4, name="y", type=integer))),
        ),
        Field(id=5, name="l", type=ArrayType(element=integer)),
        Field(id=6, name="m", type=MapType(key=integer, value=integer)),
        Field(id=7, name="t", type=atomic(TypeRoot.TIMESTAMP, precision=3)),
    )
    new = (
        Field(id=7, name="when", type=atomic(TypeRoot.TIMESTAMP, precision=6)),
        Field(id=0, name="key", type=bigint),
        Field(id=8, name="gone", type=integer),
        Field(
            id=2,
            name="r",
            type=RowType(fields=(Field(id=9, name="x", type=bigint), Field(id=3, name="z", type=bigint))),
        ),
        Field(id=5, name="l", type=ArrayType(element=bigint)),
        Field(id=6, name="m", type=MapType(key=integer, value=bigint)),
    )
    batch = pa.record_batch(
        {
            "_VALUE_KIND": pa.array([0, 0, 0, 0], pa.int8()),
            "k": pa.array([1, 2, 3, 4], pa.int32()),
            "gone": pa.array([9, 9, 9, 9], pa.int32()),
            "r": pa.array(
                [{"x": 1, "y": 2}, None, {"x": None, "y": 1}, {"x": 5, "y": 5}],
                pa.struct([("x", pa.int32()), ("y", pa.int32())]),
            ),
            "l": pa.array([[1, None], None, [], [7]], pa.list_(pa.int32())),
            "m": pa.array([[(1, 2)], None, [], [(3, None)]], pa.map_(pa.int32(), pa.int32())),
            "t": pa.array([1, None, 3, 4], pa.timestamp("ms")),
        }
    )
    projection = Projection(old, new, keep=("_VALUE_KIND",))
    assert set(projection.file_columns) == {"_VALUE_KIND", "t", "k", "r", "l", "m"}
    for part in (batch, batch.slice(1)):
        found = projection.apply(part).to_pylist()
        assert [row["key"] for row in found] == part["k"].to_pylist()
        assert [row["gone"] for row in found] == [None] * part.num_rows
        assert [row["r"] for row in found] == [None if row is None else {"x": None, "z": row["x"]} for row in part["r"].to_pylist()]
        assert [row["l"] for row in found] == part["l"].to_pylist()
        assert [row["m"] for row in found] == part["m"].to_pylist()
        assert [row["when"] for row in found] == part["t"].to_pylist()


def test_a_projection_that_changes_nothing_copies_nothing():
    fields = (Field(id=0, name="a", type=AtomicType(root=TypeRoot.BIGINT)),)
    batch = pa.record_batch({"a": pa.array([1, 2])})
    found = Projection(fields, fields).apply(batch)
    assert found["a"].buffers()[1].address == batch["a"].buffers()[1].address


def test_more_digits_than_declared_are_cut_when_read():
    fields = (Field(id=0, name="a", type=AtomicType(root=TypeRoot.TIMESTAMP, precision=3)),)
    batch = pa.record_batch({"a": pa.array([1_234_567, -1], pa.timestamp("us"))})
    assert Projection(fields, fields).apply(batch)["a"].cast(pa.int64()).to_pylist()[0] == 1234


@pytest.fixture
def two_cores():
    cores = pa.cpu_count()
    pa.set_cpu_count(2)
    yield
    pa.set_cpu_count(cores)


def _threads(monkeypatch):
    """Whether each call for batches decodes side by side."""
    calls = []
    iter_batches = pq.ParquetFile.iter_batches

    def counted(file, *args, **named):
        calls.append(named["use_threads"])
        return iter_batches(file, *args, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    return calls


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("batch_bytes", [64, 64 << 20], ids=["probed", "whole"])
def test_columns_decoded_side_by_side_are_those_that_one_core_decodes(batch_bytes, two_cores, monkeypatch):
    schema = _schema(COLUMNS)
    sink, footer = _write(schema, _rows(schema, COLUMNS, 700), options=DataFileOptions(row_group_rows=100))
    data = pa.py_buffer(sink.getvalue())
    calls = _threads(monkeypatch)
    reader = open_parquet_file(data, file_name=NAME, footer_digest=footer.digest, batch_bytes=batch_bytes)
    one_core = pa.Table.from_batches(list(reader.read()))
    assert calls and not any(calls)
    calls.clear()
    batches = list(reader.read(side_by_side=True))
    assert calls and all(calls)
    assert pa.Table.from_batches(batches).equals(one_core)
    assert batch_bytes > 64 or len(batches) > 7, "still in bounded batches"


def test_a_single_column_a_single_core_and_a_remote_file_are_decoded_in_a_row(two_cores, monkeypatch):
    schema = _schema({"int": COLUMNS["int"]})
    sink, footer = _write(schema, _rows(schema, {"int": COLUMNS["int"]}))
    calls = _threads(monkeypatch)
    local = _open(sink.getvalue(), footer)
    assert _table_of(local, ["id"]).num_rows == 5
    remote = open_parquet_file(io.BytesIO(sink.getvalue()), file_name=NAME, footer_digest=footer.digest)
    assert _table_of(remote, ["id", "int"]).num_rows == 5
    pa.set_cpu_count(1)
    assert _table_of(local, ["id", "int"]).num_rows == 5
    assert calls == [False, False, False]


def test_a_damaged_page_is_found_side_by_side(two_cores):
    schema = _schema({"int": COLUMNS["int"]})
    sink, footer = _write(schema, _rows(schema, {"int": COLUMNS["int"]}, 500))
    column = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata.row_group(0).column(3)
    damaged = bytearray(sink.getvalue())
    damaged[column.data_page_offset + column.total_compressed_size - 2] ^= 1
    with pytest.raises(FormatError):
        _table_of(_open(bytes(damaged), footer), ["id", "int"])


def _table_of(reader, columns):
    return pa.Table.from_batches(list(reader.read(columns, side_by_side=True)))


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
def test_reading_holds_few_row_groups_however_many_there_are(remote, tmp_path):
    layout = file_schema(new_schema(schema=pa.schema([("n", pa.int64())])), thin=False)
    numbers = np.random.default_rng(5).integers(0, 2**60, 256 * 8192)
    with (tmp_path / NAME).open("wb") as sink:
        writer = ParquetFileWriter(sink, layout, file_name=NAME, options=DataFileOptions(row_group_rows=8192))
        writer.write(pa.table({"n": numbers}, schema=layout))
        footer = writer.close()
    path = str(tmp_path / NAME)
    source = pa.PythonFile(io.BytesIO((tmp_path / NAME).read_bytes()), mode="r") if remote else pa.OSFile(path)
    reader = open_parquet_file(source, file_name=NAME, footer_digest=footer.digest)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for batch in reader.read(["n"]):
        rows += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    reader.close()
    assert rows == len(numbers)
    # 16 MiB in all; a batch of 128 k rows, with what it is decoded from, is 2 MiB.
    assert most < 6 << 20
