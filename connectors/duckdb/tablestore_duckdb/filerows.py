"""Reads rows of files for DuckDB that it does not read itself: ORC and Avro, as Spark and other engines write them.

    file -> batches in the types of the file -> the declared columns, by name -> the values of folders behind them, as texts

ORC has no type for a clock's time or a time of day: Spark stores numbers and says beside the column what they are. Its moments are
what a clock shows in the zone of the writer's JVM.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError, InvalidInputError, StorageError, UnsupportedError
from tablestore.format.datafiles.orccalendar import days_of_table, has_dates, relisted, remapped
from tablestore.format.datafiles.orcfile import OrcFileReader
from tablestore.format.datafiles.orcwriter import SPARK_TYPE
from tablestore.format.datafiles.orczone import OrcClock, orc_clock
from tablestore.names import did_you_mean
from tablestore.types.arrowtypes import to_arrow_field
from tablestore.types.datatypes import Field
from tablestore.types.requiredfields import cast_required
from tablestore_duckdb.filetables import FileTable, partition_texts
from tablestore_duckdb.scans import RowStream

_UTC = ("UTC", "GMT", "Etc/UTC")


def int96_columns(file: str) -> frozenset[tuple[str, ...]]:
    """The columns and fields of a Parquet file that hold times in 96 bits; none of a file that is not readable."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            schema = opened.schema
            columns = [schema.column(place) for place in range(len(schema.names))]
    except (pa.ArrowException, OSError):
        # Whoever reads the rows says what it is.
        return frozenset()
    return frozenset(_logical_path(column.path) for column in columns if column.physical_type == "INT96")


def _logical_path(path: str) -> tuple[str, ...]:
    """The path of a leaf without the groups that lists and maps are made of."""
    parts = path.split(".")
    kept = [part for part, before in zip(parts, ["", *parts], strict=False) if not (part in _GROUPS and before)]
    return tuple("element" if part in _ELEMENTS and place else part for place, part in enumerate(kept))


_GROUPS, _ELEMENTS = ("list", "bag", "key_value"), ("element", "array_element", "item")


def file_rows(table: FileTable, files: Sequence[str]) -> RowStream:
    """The rows of files of a format that we read; the columns of folders are texts. Raises FormatError, UnsupportedError."""
    declared = table.stored_fields if table.fields is not None else None
    if declared is None:
        stored_schema = _types_of(files[0], table.file_format)
    else:
        stored_schema = pa.schema([to_arrow_field(field).with_nullable(True) for field in declared])
    texts = [pa.field(name, pa.string()) for name in table.partition_by]
    schema = pa.schema([*stored_schema, *texts])

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            values = [pa.scalar(text, pa.string()) for text in partition_texts(file, table.partition_by)]
            for batch in _batches(file, table, stored_schema):
                folders = [pa.repeat(value, batch.num_rows) for value in values]
                yield pa.RecordBatch.from_arrays([*batch.columns, *folders], schema=schema)

    return RowStream(schema, batches)


def _opened(file: str) -> BinaryIO:
    try:
        return open(file, "rb")
    except OSError as error:
        raise StorageError(f"{file} could not be read: {error}") from error


def _types_of(file: str, file_format: str) -> pa.Schema:
    """The columns of a file, which has to say them itself."""
    if file_format == "avro":
        from tablestore_duckdb.avrotypes import avro_fields

        with _opened(file) as source:
            return pa.schema([to_arrow_field(field) for field in avro_fields(source, file)])
    reader = OrcFileReader(_opened(file), file_name=file)
    try:
        return pa.schema([pa.field(field.name, _typed_as(field)) for field in reader.schema])
    finally:
        reader.close()


def _batches(file: str, table: FileTable, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if table.file_format == "avro":
        from tablestore.format.datafiles.avrofile import AvroFileReader
        from tablestore_duckdb.avrotypes import avro_fields

        with _opened(file) as source:
            fields = avro_fields(source, file)
            source.seek(0)
            stored = _by_name(schema, [field.name for field in fields], file, table)
            yield from _conformed(AvroFileReader(source, _only(fields, stored), file_name=file).read(stored), schema, file)
        return
    clock = _clock(file) if any(_is_moment(field) or has_dates(field.type) for field in schema) else OrcClock(frozenset(), True)
    zone = _zone(clock, file, table)
    reader = OrcFileReader(_opened(file), file_name=file)
    try:
        stored = _by_name(schema, reader.schema.names, file, table)
        marks = {name: reader.schema.field(name) for name in stored}
        for batch in reader.read(stored):
            if not clock.is_proleptic:
                batch = pa.RecordBatch.from_arrays(list(map(days_of_table, batch.columns)), names=stored)
            columns = [_as_spark_has_it(batch.column(place), marks[name], zone, file) for place, name in enumerate(stored)]
            yield from _conformed([pa.RecordBatch.from_arrays(columns, names=stored)], schema, file)
    finally:
        reader.close()


def _only(fields: Sequence[Field], names: Sequence[str]) -> list[Field]:
    return [field for field in fields if field.name in names]


def _by_name(schema: pa.Schema, names: Sequence[str], file: str, table: FileTable) -> list[str]:
    """The names in a file of the columns of a table. Raises InvalidInputError for one that it lacks."""
    folded: Mapping[str, str] = {name.casefold(): name for name in reversed(names)}
    exact = frozenset(names)
    if missing := [name for name in schema.names if name.casefold() not in folded]:
        raise InvalidInputError(
            f"table {table.name} declares the column {missing[0]!r}, which {file} does not "
            f"have{did_you_mean(missing[0], names)}; there are {', '.join(names)}",
            kind="unknown-column",
        )
    return [name if name in exact else folded[name.casefold()] for name in schema.names]


def _conformed(batches: Any, schema: pa.Schema, file: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        try:
            columns = [cast_required(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{file}: its values do not fit the columns that the table declares ({error}); declare them as the file has them",
                kind="column-type",
            ) from error
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_moment(field: pa.Field) -> bool:
    return _has_type(field.type, lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None)


def _has_type(kind: pa.DataType, is_one: Any) -> bool:
    return bool(is_one(kind)) or any(_has_type(kind.field(place).type, is_one) for place in range(kind.num_fields))


def _clock(file: str) -> OrcClock:
    with _opened(file) as source:
        return orc_clock(source, file)


def _zone(clock: OrcClock, file: str, table: FileTable) -> str | None:
    """The zone of the clock that a file's timestamps are of. Raises UnsupportedError where there are several."""
    if len(clock.zones) > 1:
        raise UnsupportedError(
            f"{file} of table {table.name} holds timestamps of clocks in several zones ({', '.join(sorted(clock.zones))}); run the "
            "statement on the engine spark",
            kind="file-format",
        )
    return next(iter(clock.zones), None)


def _mark(field: pa.Field) -> str:
    mark: bytes = (field.metadata or {}).get(SPARK_TYPE, b"")
    return mark.decode("utf-8", "replace")


def _typed_as(field: pa.Field) -> pa.DataType:
    """The type that a column of an ORC file has, as the one who wrote it says."""
    mark, kind = _mark(field), field.type
    if mark == "timestamp_ntz" and pa.types.is_int64(kind):
        return pa.timestamp("us")
    if mark.startswith("time(") and pa.types.is_int64(kind):
        return pa.time32("ms")
    if pa.types.is_timestamp(kind):
        is_moment = kind.tz is not None or mark in ("", "timestamp")
        return pa.timestamp("us", "UTC" if is_moment else None)
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_typed_as(part)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field.with_type(_typed_as(kind.key_field)), kind.item_field.with_type(_typed_as(kind.item_field)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_typed_as(kind.value_field)))
    return kind


def _as_spark_has_it(column: pa.Array, field: pa.Field, zone: str | None, file: str) -> pa.Array:
    """A column in the type that :func:`_typed_as` says."""
    target = _typed_as(field)
    if target == field.type:
        return column
    if pa.types.is_struct(target):
        children = [_as_spark_has_it(child, part, zone, file) for child, part in zip(column.flatten(), field.type, strict=True)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if pa.types.is_map(target):
        lists = column.cast(pa.list_(pa.struct([field.type.key_field, field.type.item_field])))
        keys, items = lists.flatten().flatten()
        return remapped(
            lists,
            _as_spark_has_it(keys, field.type.key_field, zone, file),
            _as_spark_has_it(items, field.type.item_field, zone, file),
            target,
        )
    if pa.types.is_list(target):
        return relisted(column, _as_spark_has_it(column.flatten(), field.type.value_field, zone, file), target)
    if pa.types.is_time(target):
        # Nanoseconds of the day; a TIME of a table has whole milliseconds.
        return column.cast(pa.time64("ns")).cast(target, safe=False)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(field.type):
        return _moments(column, field.type, target, zone, file)
    return column.cast(target)


def _moments(column: pa.Array, kind: pa.DataType, target: pa.DataType, zone: str | None, file: str) -> pa.Array:
    """Timestamps of ORC: what a clock of the zone shows is a moment, unless the file says that it is one already."""
    if kind.tz is not None or target.tz is None:
        return column.cast(target, safe=False)
    if zone is None or zone in _UTC:
        return column.cast(pa.timestamp("us"), safe=False).cast(target)
    try:
        return pc.assume_timezone(column, zone).cast(target, safe=False)
    except (pa.ArrowException, ValueError) as error:
        raise FormatError(
            f"{file}: expected moments that a clock in {zone} shows once ({str(error).splitlines()[0]}); read "
            "the table on the engine spark",
            kind="file-format",
        ) from error
