"""Reads records of Avro as columns: one schema, with which all of them were written.

    bare        the fields, one after another
    Confluent   0, the number of the schema in four bytes, then the fields

Avro does not say whether bytes fit a schema, and other bytes may well be read as something. So all bytes of a record have to be
used up, and a record that names its schema has to name this one. Logical types are read as what they are made of, with a meaning,
as it comes with the schema of a JSON record.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException

from tablestore.cdc.records.avrolimits import AvroLimits
from tablestore.cdc.records.evolving import Found
from tablestore.cdc.records.faults import Faults
from tablestore.cdc.records.jsonobjects import ObjectReader, Objects
from tablestore.cdc.records.schemaenvelope import column_types, meanings
from tablestore.cdc.records.wirevalues import ColumnMeaning
from tablestore.errors import InvalidInputError

_MAGIC, _HEADER_BYTES = 0, 5
_UNREADABLE = (EOFError, IndexError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError)
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
# As the schema of a JSON record calls them.
_LOGICAL: Mapping[str, str] = {
    "date": f"{_DEBEZIUM}Date",
    "time-millis": f"{_DEBEZIUM}Time",
    "time-micros": f"{_DEBEZIUM}MicroTime",
    "timestamp-millis": f"{_DEBEZIUM}Timestamp",
    "timestamp-micros": f"{_DEBEZIUM}MicroTimestamp",
    "timestamp-nanos": f"{_DEBEZIUM}NanoTimestamp",
    "local-timestamp-millis": f"{_DEBEZIUM}Timestamp",
    "local-timestamp-micros": f"{_DEBEZIUM}MicroTimestamp",
    "local-timestamp-nanos": f"{_DEBEZIUM}NanoTimestamp",
}
_PRIMITIVE: Mapping[str, str] = {"int": "int32", "long": "int64"}


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema, parsed. ``described``: as the schema of a JSON record says it. ``number``: that by which records name it, None if
    they do not."""

    parsed: Any
    described: Mapping[str, Any]
    number: int | None


def parse_avro_schema(text: str, number: int | None = None) -> AvroSchema:
    """The schema of a record. Raises InvalidInputError for other texts."""
    try:
        schema = json.loads(text)
        parsed = parse_schema(_without_logical_types(schema))
    except (ValueError, TypeError, KeyError, RecursionError, SchemaParseException) as error:
        raise InvalidInputError(f"expected a schema of Avro as JSON, found {text[:100]!r} ({error})", kind="avro-schema") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise InvalidInputError(
            f"expected the schema of a record, whose fields are columns, found {text[:100]!r}", kind="avro-schema"
        )
    return AvroSchema(parsed, _described_record(schema, {}), number)


class AvroReader:
    """Reads records of one schema. ``columns``: what their objects become; ``inside``: the names below which rows are, if they are
    below some."""

    def __init__(self, columns: ObjectReader, schema: AvroSchema, *, inside: Sequence[str] = ()) -> None:
        self._columns, self._schema, self._limits = columns, schema, AvroLimits(schema.parsed)
        self._meanings: Mapping[str, ColumnMeaning] = meanings(schema.described, inside=inside)
        self._types: Found = column_types(schema.described, inside=inside)

    def read(self, values: Sequence[bytes], _: Mapping[str, ColumnMeaning]) -> Objects:
        """Their rows. No reader takes several records at once, so this goes one by one."""
        objects: list[dict[str, Any]] = []
        faults: Faults = {}
        for number, value in enumerate(values):
            try:
                objects.append(self._object(value))
            except _UNREADABLE as error:
                faults[number] = f"not of the schema: {str(error) or type(error).__name__}"
                objects.append({})
        columns = self._columns.columns(objects, faults, self._meanings)
        # The schema knows more than the values.
        seen = [
            replace(sighting, type=kind) for sighting in columns.seen for kind in self._types.get(sighting.name, {sighting.type})
        ]
        return replace(columns, seen=seen)

    def _object(self, value: bytes) -> dict[str, Any]:
        start = 0
        if self._schema.number is not None:
            start, named = _HEADER_BYTES, int.from_bytes(value[1:_HEADER_BYTES], "big")
            if len(value) < _HEADER_BYTES or value[0] != _MAGIC or named != self._schema.number:
                raise ValueError(f"expected the number of the schema, {self._schema.number}, found {value[:_HEADER_BYTES].hex()}")
        self._limits.check(value[start:])
        stream = BytesIO(value[start:])
        record: Any = schemaless_reader(stream, self._schema.parsed, None)
        if stream.tell() != len(value) - start:
            raise ValueError(f"{len(value) - start - stream.tell()} bytes are left over")
        return dict(record)


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(member) for member in schema]
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return schema


def _described_record(record: Mapping[str, Any], named: dict[str, dict[str, Any]], space: str = "") -> dict[str, Any]:
    """A record as the schema of a JSON record describes it. ``named``: the records so far, to be found where they come again;
    ``space``: the namespace that it lies in."""
    described: dict[str, Any] = {"type": "struct"}
    space, name = str(record.get("namespace") or space), str(record.get("name"))
    named[name.rpartition(".")[2]] = named[f"{space}.{name}"] = named[name] = described
    described["fields"] = [_described(field, named, space) for field in record["fields"]]
    return described


def _described(field: Mapping[str, Any], named: dict[str, dict[str, Any]], space: str) -> dict[str, Any]:
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    # The other type of a union with null.
    kind = next((kind for kind in kinds if kind != "null"), "string")
    if isinstance(kind, dict) and kind.get("type") == "record":
        return {"field": field["name"], **_described_record(kind, named, space)}
    if not isinstance(kind, dict):
        if kind in named:
            return {"field": field["name"], **named[kind]}
        return {"field": field["name"], "type": _PRIMITIVE.get(str(kind), str(kind))}
    plain = str(kind.get("type"))
    described = {"field": field["name"], "type": _PRIMITIVE.get(plain, plain)}
    if kind.get("logicalType") == "decimal":
        parameters = {"scale": str(kind.get("scale", 0)), "connect.decimal.precision": str(kind.get("precision", 38))}
        return {**described, "name": f"{_CONNECT}Decimal", "parameters": parameters}
    name = _LOGICAL.get(str(kind.get("logicalType"))) or kind.get("connect.name")
    return described if name is None else {**described, "name": name}
