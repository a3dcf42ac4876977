"""Plans the columns that a table lacks for the values of records. Pure.

    a name that is new                           a column at the end, that takes NULL
    a value that a column is too narrow for      its type widened, if every stored value stays what it is
    anything else                                nothing: the record is at fault

Only records that become rows count, here or with a wider type: what goes to the dead letters changes no table. A table takes a
thousand columns, further names are skipped. The schema of a record says the type of a column. Without one it is what JSON says:
BOOLEAN, BIGINT, DOUBLE, or STRING, also for objects, lists and what looks like a time. Whole numbers beyond BIGINT are
DECIMAL(38, 0), longer ones STRING, and so are numbers that need a DOUBLE beside a whole one that it would change. Columns of the
key are never widened.
"""

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tablestore.cdc.records.wirevalues import WIDEST_DIGITS
from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.json.jsonvalues import WrittenNumber
from tablestore.types.arrays import Places
from tablestore.types.datatypes import AtomicType, DataType, TypeRoot, with_nullable
from tablestore.types.evolution.evolve import evolve
from tablestore.types.evolution.schemachanges import AddColumn, ChangeType, SchemaChange
from tablestore.types.evolution.widening import is_same, keeps_values
from tablestore.types.newschema import check_column_name
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import parse_type, type_to_sql

Found = Mapping[str, Set[DataType]]
"""Types of values by the name of their column."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Values of one type in the column ``name`` of the records at ``places``. ``is_new``: the table has no such column.
    ``beyond_double``: numbers that a DOUBLE would change."""

    name: str
    type: DataType
    places: Places
    is_new: bool
    beyond_double: bool = False

    def at(self, places: Places) -> "Sighting":
        """The same, its places being those of some among all records."""
        return replace(self, places=places[self.places])


def types_seen(sightings: Sequence[Sighting], faults: Container[int], narrow: Container[int]) -> Found:
    """The types that count: of new columns in records that are not at fault, of others also in those at fault only because a column
    is too ``narrow``. Of new columns no more than a table takes."""
    types: dict[str, set[DataType]] = {}
    beyond_double = set()
    for sighting in sightings:
        if sighting.is_new and sighting.name not in types and len(types) >= MOST_COLUMNS:
            continue
        if any(place not in faults or (not sighting.is_new and place in narrow) for place in sighting.places.tolist()):
            types.setdefault(sighting.name, set()).add(sighting.type)
            if sighting.is_new and sighting.beyond_double:
                beyond_double.add(sighting.name)
    for name in beyond_double:
        if _DOUBLE in types[name]:
            types[name].add(_STRING)
    return types


def why_no_column(name: str) -> str | None:
    """The reason why a table cannot have a column of this name, None if it can."""
    try:
        check_column_name(name)
    except InvalidInputError as error:
        return str(error)
    return None


# A table does not grow without end by records that are not what they should be.
MOST_COLUMNS = 1_000
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
DECIMAL = f"{_CONNECT}Decimal"
_LONGEST_NUMBER = 9
_NAMES: Mapping[str, str] = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "float32": "FLOAT",
    "double": "DOUBLE",
    "float64": "DOUBLE",
    "boolean": "BOOLEAN",
    "bytes": "BYTES",
    f"{_CONNECT}Date": "DATE",
    f"{_CONNECT}Time": "TIME(3)",
    f"{_CONNECT}Timestamp": "TIMESTAMP(3)",
    f"{_DEBEZIUM}Date": "DATE",
    f"{_DEBEZIUM}Time": "TIME(3)",
    f"{_DEBEZIUM}Timestamp": "TIMESTAMP(3)",
    f"{_DEBEZIUM}MicroTimestamp": "TIMESTAMP(6)",
    f"{_DEBEZIUM}NanoTimestamp": "TIMESTAMP(9)",
    f"{_DEBEZIUM}ZonedTimestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}
_OF_SCHEMA = {name: parse_type(text) for name, text in _NAMES.items()}
_BIGINT, _DOUBLE, _STRING = parse_type("BIGINT"), parse_type("DOUBLE"), parse_type("STRING")
_WIDE = parse_type("DECIMAL(38, 0)")
_IN_BIGINT, _IN_WIDE = range(-(2**63), 2**63), range(1 - 10**38, 10**38)


def type_of_schema(field: Mapping[str, Any]) -> DataType:
    """The type of a column that a record's schema describes; what has none of ours is text."""
    name = field.get("name")
    if name == DECIMAL:
        parameters = parameters_of(field)
        scale, precision = digits_of(parameters.get("scale", "0")), digits_of(parameters.get("connect.decimal.precision", "38"))
        if scale is not None and precision is not None and scale <= precision <= 38 and precision:
            return parse_type(f"DECIMAL({precision}, {scale})")
    return _OF_SCHEMA.get(str(name)) or _OF_SCHEMA.get(str(field.get("type"))) or _STRING


def parameters_of(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters that the schema of a column adds to its type; nothing where that is no object."""
    parameters = field.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def digits_of(text: Any) -> int | None:
    """The number of digits that a schema says, from 0 to those of the widest decimal; None for anything else."""
    digits = str(text)
    # Other alphabets have digits too, and a long row of them is a number that nothing is made for.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER and int(digits) <= WIDEST_DIGITS):
        return None
    return int(digits)


def type_of_json(kind: pa.DataType) -> DataType | None:
    """The type of a column as a JSON reader saw it; None if it saw only nulls."""
    if pa.types.is_null(kind):
        return None
    if pa.types.is_boolean(kind):
        return parse_type("BOOLEAN")
    return _BIGINT if pa.types.is_integer(kind) else _DOUBLE if pa.types.is_floating(kind) else _STRING


def type_of_value(value: Any) -> DataType | None:
    """The same, of a value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return parse_type("BOOLEAN")
    if isinstance(value, int):
        return _BIGINT if value in _IN_BIGINT else _WIDE if value in _IN_WIDE else _STRING
    if isinstance(value, (str, dict, list)) and not isinstance(value, WrittenNumber):
        return _STRING
    return _DOUBLE


def widened(old: DataType, seen_type: DataType) -> DataType | None:
    """The type of both kinds of values, None where the old one has to stay."""
    if not isinstance(old, AtomicType) or not isinstance(seen_type, AtomicType):
        return None
    if is_same(old, seen_type) or not keeps_values(old, seen_type) or _is_text(old, seen_type):
        return None
    return with_nullable(seen_type, old.nullable)


def plan_evolution(schema: TableSchema, column_types: Found) -> tuple[SchemaChange, ...]:
    """The changes after which a table has a place for columns of these types."""
    by_name = {field.name: field for field in schema.fields}
    changes: list[SchemaChange] = []
    for name, kinds in column_types.items():
        field = by_name.get(name)
        if field is None:
            if len(by_name) + len(changes) < MOST_COLUMNS:
                changes.append(AddColumn((name,), with_nullable(_one_for(kinds), True)))
            continue
        wider = field.type
        # In any order that is always the same: what does not widen it is at fault.
        for kind in sorted(kinds, key=type_to_sql):
            wider = widened(wider, kind) or wider
        if wider != field.type:
            changes.append(ChangeType((name,), wider))
    return tuple(change for change in changes if _goes(schema, change))


def _one_for(kinds: Set[DataType]) -> DataType:
    """The type of a new column with values of several kinds."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds <= {_BIGINT, _WIDE}:
        return _WIDE
    return _DOUBLE if kinds <= {_BIGINT, _WIDE, _DOUBLE} else _STRING


def _is_text(old: AtomicType, new: AtomicType) -> bool:
    """True if a number would become text: whoever reads it expects a number."""
    return new.root is TypeRoot.VARCHAR and old.root not in (TypeRoot.VARCHAR, TypeRoot.CHAR)


def _goes(schema: TableSchema, change: SchemaChange) -> bool:
    try:
        evolve(schema, change, has_data=True, time_millis=schema.time_millis)
    except TablestoreError:
        return False
    return True
