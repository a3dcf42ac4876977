"""Reads from the schema of an Avro file which columns it has, as the Avro specification and Spark mean them.

date, time-millis                   DATE, TIME(3)          timestamp-millis, -micros         TIMESTAMP_LTZ(3), (6)
decimal (bytes, fixed)              DECIMAL                local-timestamp-millis, -micros   TIMESTAMP(3), (6)
union of null and one other type    the other, nullable    map, array, record                MAP<STRING, …>, ARRAY, ROW
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import fastavro

from tablestore.errors import FormatError, UnsupportedError
from tablestore.types.datatypes import MAX_LENGTH, ArrayType, AtomicType, DataType, Field, MapType, RowType, TypeRoot

_ROOTS = {
    "boolean": TypeRoot.BOOLEAN,
    "int": TypeRoot.INT,
    "long": TypeRoot.BIGINT,
    "float": TypeRoot.FLOAT,
    "double": TypeRoot.DOUBLE,
}
_TIMES = {
    ("int", "date"): (TypeRoot.DATE, None),
    ("int", "time-millis"): (TypeRoot.TIME, 3),
    ("long", "timestamp-millis"): (TypeRoot.TIMESTAMP_LTZ, 3),
    ("long", "timestamp-micros"): (TypeRoot.TIMESTAMP_LTZ, 6),
    ("long", "local-timestamp-millis"): (TypeRoot.TIMESTAMP, 3),
    ("long", "local-timestamp-micros"): (TypeRoot.TIMESTAMP, 6),
}


def avro_fields(source: BinaryIO, file_name: str) -> list[Field]:
    """The columns of a file. Raises FormatError for another file, UnsupportedError for a type that no table has."""
    try:
        schema: Any = fastavro.reader(source).writer_schema
    except Exception as error:
        raise FormatError(f"{file_name}: expected a readable Avro file, found: {error}; restore it from a copy") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _unmapped(file_name, schema)
    return list(_fields(schema, file_name, {}))


def _fields(record: Mapping[str, Any], where: str, named: dict[str, Any]) -> Iterator[Field]:
    for place, field in enumerate(record["fields"]):
        yield Field(id=place, name=field["name"], type=_type(field["type"], f"{where}, column {field['name']!r:.100}", named))


def _type(schema: Any, where: str, named: dict[str, Any], *, nullable: bool = False) -> DataType:
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        if len(others) != 1:
            raise _unmapped(where, schema)
        return _type(others[0], where, named, nullable=len(others) < len(schema))
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    kind, logical = schema.get("type"), schema.get("logicalType")
    if isinstance(schema.get("name"), str):
        named[schema["name"]] = schema
    match kind:
        case "bytes" | "fixed" if logical == "decimal":
            return AtomicType(root=TypeRoot.DECIMAL, nullable=nullable, precision=schema["precision"], scale=schema.get("scale", 0))
        case "bytes":
            return AtomicType(root=TypeRoot.VARBINARY, nullable=nullable, length=MAX_LENGTH)
        case "string":
            return AtomicType(root=TypeRoot.VARCHAR, nullable=nullable, length=MAX_LENGTH)
        case "int" | "long" if (kind, logical) in _TIMES:
            root, precision = _TIMES[kind, logical]
            return AtomicType(root=root, nullable=nullable, precision=precision)
        case "array":
            return ArrayType(element=_type(schema["items"], where, named), nullable=nullable)
        case "map":
            key = AtomicType(root=TypeRoot.VARCHAR, nullable=False, length=MAX_LENGTH)
            return MapType(key=key, value=_type(schema["values"], where, named), nullable=nullable)
        case "record":
            return RowType(fields=tuple(_fields(schema, where, named)), nullable=nullable)
        case str() if kind in _ROOTS and (logical is None or not logical.startswith("time")):
            return AtomicType(root=_ROOTS[kind], nullable=nullable)
    raise _unmapped(where, schema)


def _unmapped(where: str, schema: Any) -> UnsupportedError:
    text = str(schema)
    return UnsupportedError(
        f"{where}: expected a type of Avro that tables have, found {text:.200}; leave the column out where the file is written, or "
        "read it with another program",
        kind="file-format",
    )
