"""Encodes the mask of a column as the JSON of a transform that Paimon's clients decode.

    NULL                      {"name": "NULL"}
    other                     {"name": "FIELD_REF", "fieldRef": {...}}
    CAST(other AS type)       {"name": "CAST", "fieldRef": {...}, "type": "BIGINT"}
    upper(name), lower(name)  {"name": "UPPER", "inputs": [{...}]}
    '***', a || '-' || b      {"name": "CONCAT", "inputs": ["***"]}

The value has the type of the column that it stands in for.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.server.access.predicatejson import field_reference
from tablestore.types.datatypes import TEXT_ROOTS, AtomicType, DataType, Field
from tablestore.types.expression.expression import Call, Cast, Column, Expression, Value
from tablestore.types.expression.sqlexpression import parse_expression_text
from tablestore.types.typestring import type_to_json


def mask_json(mask: str | None, column: Field, fields: Sequence[Field]) -> str:
    """The JSON text of a mask of ``column``; None is NULL. Raises InvalidInputError, UnsupportedError for one that clients lack."""
    transform: dict[str, object] = {"name": "NULL"} if mask is None else _transform(mask, column, fields)
    return json.dumps(transform, separators=(",", ":"))


def _transform(mask: str, column: Field, fields: Sequence[Field]) -> dict[str, object]:
    places = {known.name: index for index, known in enumerate(fields)}

    def column_of(table: str, name: str) -> Column:
        if table or name not in places:
            raise InvalidInputError(
                f"the mask of {column.name!r} names the column {name!r}, which does not exist{did_you_mean(name, places)}",
                kind="unknown-column",
            )
        return Column(name)

    def reference(name: str) -> dict[str, object]:
        return field_reference(places[name], fields[places[name]])

    def text_input(part: Expression) -> object:
        match part:
            case Column(name) if _is_text(fields[places[name]].type):
                return reference(name)
            case Value(value) if value.is_valid and isinstance(value.as_py(), str):
                return value.as_py()
        raise _unsupported(mask, column)

    match parse_expression_text(mask, column_of, what="mask"):
        case Value(value) if not value.is_valid:
            return {"name": "NULL"}
        case Column(name) if _same(fields[places[name]].type, column.type):
            return {"name": "FIELD_REF", "fieldRef": reference(name)}
        case Cast(Column(name), kind) if _same(kind, column.type):
            return {"name": "CAST", "fieldRef": reference(name), "type": type_to_json(replace(column.type, nullable=True))}
        case Call("upper" | "lower" as function, (part,)) if _is_text(column.type):
            return {"name": function.upper(), "inputs": [text_input(part)]}
        case Call("||", parts) if _is_text(column.type):
            return {"name": "CONCAT", "inputs": [text_input(part) for part in parts]}
        case Value() as literal if _is_text(column.type):
            return {"name": "CONCAT", "inputs": [text_input(literal)]}
    raise _unsupported(mask, column)


def _is_text(kind: DataType) -> bool:
    return isinstance(kind, AtomicType) and kind.root in TEXT_ROOTS


def _same(kind: DataType, other: DataType) -> bool:
    """True for types that differ at most in whether they hold NULL."""
    return replace(kind, nullable=True) == replace(other, nullable=True)


def _unsupported(mask: str, column: Field) -> UnsupportedError:
    return UnsupportedError(
        f"the mask {mask!r:.200} of {column.name!r} ({type_to_json(column.type)}) cannot be told to the clients of the service; "
        "expected null, a column or CAST(column AS type) of that very type, or for a text upper(column), lower(column), a literal, "
        "or columns and literals joined by ||",
        kind="unsupported-mask",
    )
