"""Encodes predicates as the JSON that Paimon's clients decode.

    {"kind": "LEAF", "transform": {"name": "FIELD_REF", "fieldRef": {"index": 0, "name": "id", "type": "BIGINT"}},
     "function": "EQUAL", "literals": [7]}
    {"kind": "COMPOUND", "function": "AND", "children": [...]}

Clients know no NOT and no third truth value: negations are pushed to the leaves, and a leaf that is unknown keeps no row. A client
that cannot decode a literal reads nothing, so only such types are written that Java's and Python's clients both decode. The day of
a DATE is compared as text (``CAST(day AS STRING)``), which has the same order: Java's client takes a JSON text for no date.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from tablestore.errors import UnsupportedError
from tablestore.types.datatypes import FLOAT_ROOTS, INTEGER_ROOTS, MAX_LENGTH, TEXT_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.filter.predicate import (
    And,
    Comparison,
    Computed,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    push_negation,
)
from tablestore.types.typestring import type_to_json

_FUNCTIONS: dict[Operator, str] = {
    "=": "EQUAL",
    "!=": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_OR_EQUAL",
}
_PLAIN_ROOTS = {TypeRoot.BOOLEAN} | INTEGER_ROOTS | FLOAT_ROOTS | TEXT_ROOTS
_STRING = AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH)
# Texts of other years do not have the order of their days.
_FIRST_DAY, _LAST_DAY = date(1, 1, 1), date(9999, 12, 31)


def predicate_json(predicate: Predicate, fields: Sequence[Field]) -> str:
    """The JSON text. Raises UnsupportedError for a condition that clients could not carry out."""
    places = {column.name: (index, column) for index, column in enumerate(fields)}
    return json.dumps(_encoded(push_negation(predicate), places), separators=(",", ":"))


def field_reference(index: int, column: Field) -> dict[str, object]:
    """A column as predicates and transforms name it."""
    return {"index": index, "name": column.name, "type": type_to_json(column.type)}


_Places = Mapping[str, tuple[int, Field]]


def _encoded(predicate: Predicate, places: _Places) -> dict[str, object]:
    match predicate:
        case And(children) | Or(children) if children:
            function = "AND" if isinstance(predicate, And) else "OR"
            return {"kind": "COMPOUND", "function": function, "children": [_encoded(child, places) for child in children]}
        case And() | Constant(True):
            return _constant(True)
        case Or() | Constant():
            return _constant(False)
        case Comparison(op, name, literal):
            return _leaf(name, _FUNCTIONS[op], [literal], places)
        case IsIn(name, values):
            return _leaf(name, "IN", [value for value in values if value is not None], places)
        case Not(IsIn(name, values)):
            # Unknown for every row if there is a NULL among them.
            return _constant(False) if None in values else _leaf(name, "NOT_IN", list(values), places)
        case IsNull(name):
            return _leaf(name, "IS_NULL", [], places)
        case Not(IsNull(name)):
            return _leaf(name, "IS_NOT_NULL", [], places)
        case StartsWith(name, prefix):
            return _leaf(name, "STARTS_WITH", [prefix], places)
        case Like(name, pattern):
            return _leaf(name, "LIKE", [pattern], places)
        case Not(Like() | StartsWith()):
            raise _unsupported("NOT LIKE", "say what is to be seen, instead of what is not")
        case Computed() | Not():
            raise _unsupported("a computed condition", "compare columns with literals, or keep what is computed in a column")
    raise AssertionError(f"a predicate is one of these: {predicate}")


def _constant(value: bool) -> dict[str, object]:
    return {"kind": "LEAF", "transform": {"name": "NULL"}, "function": "TRUE" if value else "FALSE", "literals": []}


def _leaf(name: str, function: str, literals: Sequence[Any], places: _Places) -> dict[str, object]:
    index, column = places[name]
    reference = field_reference(index, column)
    transform: dict[str, object] = {"name": "FIELD_REF", "fieldRef": reference}
    if literals and isinstance(column.type, AtomicType) and column.type.root is TypeRoot.DATE:
        transform = {"name": "CAST", "fieldRef": reference, "type": type_to_json(_STRING)}
    texts = [_literal(value, column) for value in literals]
    return {"kind": "LEAF", "transform": transform, "function": function, "literals": texts}


def _literal(value: Any, column: Field) -> object:
    root = column.type.root if isinstance(column.type, AtomicType) else None
    if root is TypeRoot.DATE and isinstance(value, date):
        if not _FIRST_DAY <= value <= _LAST_DAY:
            raise _unsupported(f"the day {value}", "use one of the years 1 to 9999")
        return value.isoformat()
    if root not in _PLAIN_ROOTS:
        about = f"a comparison of {column.name!r} ({type_to_json(column.type)})"
        raise _unsupported(about, "compare booleans, integers, floats, texts or days")
    if isinstance(value, float) and not math.isfinite(value):
        raise _unsupported(f"the number {value}", "JSON has none such")
    return value


def _unsupported(about: str, advice: str) -> UnsupportedError:
    return UnsupportedError(f"{about} cannot be told to the clients of the service; {advice}", kind="unsupported-filter")
