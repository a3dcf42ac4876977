"""Reads and writes types as text, for schema files and for SQL.

Atomic types and VARIANT are text (``"DECIMAL(10, 2) NOT NULL"``), constructed types are JSON objects
(``{"type": "ARRAY NOT NULL", "element": …}``). Nullable is the default. Writing gives the one canonical form;
reading is case-insensitive and accepts the aliases that other writers use:

    type    = name [ "(" int [ "," int ] ")" ] [ zone ] [ [ "NOT" ] "NULL" ]
    zone    = "WITH" "LOCAL" "TIME" "ZONE" | "WITHOUT" "TIME" "ZONE"
    aliases = INTEGER, DEC, NUMERIC, STRING, BYTES, DOUBLE PRECISION, TIMESTAMP_LTZ(p)

A stored type without a length has the length 1, as the format says. A person who declares a VARCHAR means text of any length.

Types that Paimon knows and tablestore does not are refused by name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from tablestore.errors import FormatError, UnsupportedError
from tablestore.types.datatypes import (
    FLOAT_ROOTS,
    INTEGER_ROOTS,
    LENGTH_ROOTS,
    MAX_LENGTH,
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    Field,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VariantType,
)

JsonType = str | dict[str, object]

MAX_TYPE_DEPTH = 64
_VARIANT = "VARIANT"
_UNSUPPORTED = frozenset({"BLOB", "VECTOR", "GEOMETRY", "GEOGRAPHY"})
_PLAIN = {root.value: root for root in (TypeRoot.BOOLEAN, *INTEGER_ROOTS, *FLOAT_ROOTS, TypeRoot.DATE)}
_PLAIN |= {"INTEGER": TypeRoot.INT, "DOUBLE PRECISION": TypeRoot.DOUBLE}
_LENGTHY = {root.value: root for root in LENGTH_ROOTS}
_DECIMALS = frozenset({"DECIMAL", "NUMERIC", "DEC"})
_ATOMIC = re.compile(
    r"""\s* (?P<name> [A-Z_]+ (?:\s+PRECISION)? ) \s*
        (?: \( \s* (?P<first>\d{1,10}) \s* (?: , \s* (?P<second>\d{1,10}) \s* )? \) \s* )?
        (?P<zone> WITH \s+ LOCAL \s+ TIME \s+ ZONE | WITHOUT \s+ TIME \s+ ZONE )? \s*
        (?P<null> (?:NOT\s+)? NULL )? \s*""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_CONSTRUCTED = re.compile(r"\s*(?P<name>[A-Z_]+)\s*(?P<null>(?:NOT\s+)?NULL)?\s*", re.IGNORECASE | re.ASCII)

ELSEWHERE = {
    **dict.fromkeys(("TEXT", "UUID", "JSON", "NVARCHAR", "CLOB"), "STRING"),
    **dict.fromkeys(("BLOB", "BYTEA"), "BYTES"),
    **dict.fromkeys(("TIMESTAMPTZ", "DATETIMEOFFSET"), "TIMESTAMP_LTZ"),
    **dict.fromkeys(("INT8", "INT64", "UINT32", "UINTEGER", "SERIAL"), "BIGINT"),
    **dict.fromkeys(("INT4", "INT32", "MEDIUMINT"), "INT"),
    "DATETIME": "TIMESTAMP",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "BOOL": "BOOLEAN",
    "HUGEINT": "DECIMAL(38, 0)",
}
"""Types of ours by the names that other databases have for them."""


def parse_type(json: object) -> DataType:
    """The type that the ``type`` key of a field holds.

    Raises FormatError for anything else, UnsupportedError for types that tablestore does not support.
    """
    return _parse(json, depth=0)


def declared_type(text: str) -> DataType:
    """The atomic type that a person declares: without a length, VARCHAR is STRING and the types of bytes are BYTES.

    Raises as :func:`parse_type`, and FormatError for a CHAR without a length, which databases understand in several ways.
    """
    parsed = parse_type(text)
    if "(" in text or not isinstance(parsed, AtomicType) or parsed.root not in LENGTH_ROOTS:
        return parsed
    if parsed.root is TypeRoot.CHAR:
        raise FormatError(f"the type {text.strip()!r:.200} lacks its length; write STRING for any text, CHAR(1) for one character")
    return replace(parsed, length=MAX_LENGTH, root=TypeRoot.VARCHAR if parsed.root in TEXT_ROOTS else TypeRoot.VARBINARY)


def type_to_json(data_type: DataType) -> JsonType:
    """The canonical ``type`` value of a schema file: text for atomic types, an object for constructed ones."""
    suffix = "" if data_type.nullable else " NOT NULL"
    match data_type:
        case AtomicType():
            return atomic_text(data_type) + suffix
        case VariantType():
            return _VARIANT + suffix
        case ArrayType():
            return {"type": "ARRAY" + suffix, "element": type_to_json(data_type.element)}
        case MapType():
            return {
                "type": "MAP" + suffix,
                "key": type_to_json(data_type.key),
                "value": type_to_json(data_type.value),
            }
        case MultisetType():
            return {"type": "MULTISET" + suffix, "element": type_to_json(data_type.element)}
        case RowType():
            return {"type": "ROW" + suffix, "fields": [field_to_json(field) for field in data_type.fields]}


def field_to_json(field: Field) -> dict[str, object]:
    """The field object of a schema file; optional keys are left out rather than written as null."""
    json: dict[str, object] = {"id": field.id, "name": field.name, "type": type_to_json(field.type)}
    if field.description is not None:
        json["description"] = field.description
    if field.default_value is not None:
        json["defaultValue"] = field.default_value
    return json


def parse_field(json: object) -> Field:
    """The column or nested field that a field object describes."""
    return _parse_field(json, depth=0)


def type_to_sql(data_type: DataType, *, about: Callable[[Field], str] = lambda field: "") -> str:
    """The type as people write it in DDL: ``ROW<`a` INT, `b` ARRAY<STRING NOT NULL>> NOT NULL``.

    ``about``: what follows the type of a nested field, such as its comment.
    """
    suffix = "" if data_type.nullable else " NOT NULL"
    match data_type:
        case AtomicType():
            return atomic_text(data_type) + suffix
        case VariantType():
            return _VARIANT + suffix
        case ArrayType():
            return f"ARRAY<{type_to_sql(data_type.element, about=about)}>{suffix}"
        case MapType():
            return f"MAP<{type_to_sql(data_type.key, about=about)}, {type_to_sql(data_type.value, about=about)}>{suffix}"
        case MultisetType():
            return f"MULTISET<{type_to_sql(data_type.element, about=about)}>{suffix}"
        case RowType():
            inner = ", ".join(f"{quote_identifier(f.name)} {type_to_sql(f.type, about=about)}{about(f)}" for f in data_type.fields)
            return f"ROW<{inner}>{suffix}"


def quote_identifier(name: str) -> str:
    """A column name between backticks."""
    return "`" + name.replace("`", "``") + "`"


def sql_name(name: str) -> str:
    """A name as one writes it in a statement: between backticks where it is not a plain word."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quote_identifier(name)


def atomic_text(data_type: AtomicType) -> str:
    """The canonical text of an atomic type, without its nullability."""
    root = data_type.root
    match root:
        case TypeRoot.DECIMAL:
            return f"DECIMAL({data_type.precision}, {data_type.scale})"
        case TypeRoot.VARCHAR if data_type.length == MAX_LENGTH:
            return "STRING"
        case TypeRoot.VARBINARY if data_type.length == MAX_LENGTH:
            return "BYTES"
        case TypeRoot.CHAR | TypeRoot.VARCHAR | TypeRoot.BINARY | TypeRoot.VARBINARY:
            return f"{root.value}({data_type.length})"
        case TypeRoot.TIME | TypeRoot.TIMESTAMP:
            return f"{root.value}({data_type.precision})"
        case TypeRoot.TIMESTAMP_LTZ:
            return f"TIMESTAMP({data_type.precision}) WITH LOCAL TIME ZONE"
        case _:
            return root.value


def _parse(json: object, *, depth: int) -> DataType:
    if depth > MAX_TYPE_DEPTH:
        raise FormatError(f"a type is nested more than {MAX_TYPE_DEPTH} levels deep", kind="limit")
    if isinstance(json, str):
        return _parse_atomic(json)
    if not isinstance(json, Mapping) or not isinstance(json.get("type"), str):
        raise FormatError(f"expected a type (text, or an object with a 'type' text), found {json!r:.200}")
    text = str(json["type"])
    match = _CONSTRUCTED.fullmatch(text)
    name = match["name"].upper() if match else ""
    nullable = _nullable(match["null"]) if match else True
    match name:
        case "ARRAY":
            return ArrayType(element=_part(json, "element", depth), nullable=nullable)
        case "MULTISET":
            return MultisetType(element=_part(json, "element", depth), nullable=nullable)
        case "MAP":
            return MapType(key=_part(json, "key", depth), value=_part(json, "value", depth), nullable=nullable)
        case "ROW":
            fields = json.get("fields")
            if not isinstance(fields, list):
                raise FormatError(f"expected a list of fields in a ROW type, found {fields!r:.200}")
            return RowType(fields=tuple(_parse_field(f, depth=depth + 1) for f in fields), nullable=nullable)
        case _:
            _refuse_unsupported(name or text.split("(")[0].strip().upper(), text)
            raise FormatError(f"expected ARRAY, MAP, MULTISET or ROW as a constructed type, found {text!r:.200}")


def _part(json: Mapping[str, object], key: str, depth: int) -> DataType:
    if key not in json:
        raise FormatError(f"the type {json['type']!r:.200} lacks its {key!r}")
    return _parse(json[key], depth=depth + 1)


def _parse_field(json: object, *, depth: int) -> Field:
    if not isinstance(json, Mapping):
        raise FormatError(f"expected a field object, found {json!r:.200}")
    field_id, name = json.get("id"), json.get("name")
    if not isinstance(field_id, int) or isinstance(field_id, bool) or field_id < 0 or not isinstance(name, str):
        raise FormatError(f"expected a field with an integer 'id' and a text 'name', found {dict(json)!r:.200}")
    if "type" not in json:
        raise FormatError(f"the field {name!r} lacks its 'type'")
    description, default_value = json.get("description"), json.get("defaultValue")
    return Field(
        id=field_id,
        name=name,
        type=_parse(json["type"], depth=depth),
        description=None if description is None else str(description),
        default_value=None if default_value is None else str(default_value),
    )


def _parse_atomic(text: str) -> AtomicType | VariantType:
    match = _ATOMIC.fullmatch(text)
    if match is None:
        word = re.match(r"\s*(\w*)", text)
        _refuse_unsupported(word[1].upper() if word else "", text)
        raise _no_type(text, word[1].upper() if word else "")
    name = " ".join(match["name"].upper().split())
    _refuse_unsupported(name, text)
    first = None if match["first"] is None else int(match["first"])
    second = None if match["second"] is None else int(match["second"])
    zone = match["zone"].upper() if match["zone"] else ""
    if name == _VARIANT and first is None and not zone:
        return VariantType(nullable=_nullable(match["null"]))
    parsed = _atomic_of(name, first, second, zone, text)
    return parsed if _nullable(match["null"]) else replace(parsed, nullable=False)


def _atomic_of(name: str, first: int | None, second: int | None, zone: str, text: str) -> AtomicType:
    if name in _PLAIN and first is None and not zone:
        return AtomicType(root=_PLAIN[name])
    if name in ("STRING", "BYTES") and first is None and not zone:
        return AtomicType(root=TypeRoot.VARCHAR if name == "STRING" else TypeRoot.VARBINARY, length=MAX_LENGTH)
    if name in _LENGTHY and second is None and not zone:
        length = _within(1 if first is None else first, 1, MAX_LENGTH, "length", text)
        return AtomicType(root=_LENGTHY[name], length=length)
    if name in _DECIMALS and not zone:
        precision = _within(10 if first is None else first, 1, 38, "precision", text)
        scale = _within(0 if second is None else second, 0, precision, "scale", text)
        return AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale)
    if name == "TIME" and second is None and not zone.startswith("WITH "):
        return AtomicType(root=TypeRoot.TIME, precision=_within(first or 0, 0, 9, "precision", text))
    if (name == "TIMESTAMP" or (name == "TIMESTAMP_LTZ" and not zone)) and second is None:
        local = name == "TIMESTAMP_LTZ" or zone.startswith("WITH ")
        precision = _within(6 if first is None else first, 0, 9, "precision", text)
        return AtomicType(root=TypeRoot.TIMESTAMP_LTZ if local else TypeRoot.TIMESTAMP, precision=precision)
    raise _no_type(text, name)


def _no_type(text: str, name: str) -> FormatError:
    instead = f"; write {ELSEWHERE[name]}" if name in ELSEWHERE else ""
    return FormatError(f"expected a type such as INT, DECIMAL(10, 2) or STRING NOT NULL, found {text!r:.200}{instead}")


def _within(value: int, low: int, high: int, quantity: str, text: str) -> int:
    if not low <= value <= high:
        raise FormatError(f"expected a {quantity} from {low} to {high} in the type {text!r:.200}, found {value}")
    return value


def _nullable(null: str | None) -> bool:
    return null is None or not null.upper().startswith("NOT")


def _refuse_unsupported(name: str, text: str) -> None:
    if name in _UNSUPPORTED:
        raise UnsupportedError(
            f"the type {text.strip()!r:.200} is not supported by tablestore; "
            f"read the table with an engine that knows {name}, or drop the column there",
            kind="unsupported-type",
        )
