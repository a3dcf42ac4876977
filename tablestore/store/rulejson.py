"""Decodes the filters and masks that a catalog service hands to its clients: predicates and transforms of Paimon, as JSON.

    {"kind": "LEAF", "transform": {"name": "FIELD_REF", "fieldRef": {"name": "id", …}}, "function": "EQUAL", "literals": [7]}
    {"kind": "COMPOUND", "function": "AND", "children": [...]}
    {"name": "UPPER", "inputs": [{"name": "region", …}]}        the mask of a column

Columns are known by their names; the number beside one is what it was for others. What is not known here is refused: a rule that
cannot be carried out lets nothing through. :mod:`tablestore.server.access` writes what a service of tablestore hands out.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from tablestore.errors import FormatError, InvalidInputError, TablestoreError, UnsupportedError
from tablestore.format.limits import parse_json_bounded
from tablestore.types.datatypes import FLOAT_ROOTS, INTEGER_ROOTS, TEXT_ROOTS, AtomicType, DataType, Field, TypeRoot
from tablestore.types.expression.expression import Call, Cast, Column, Expression, Value
from tablestore.types.filter.filters import MAX_FILTER_DEPTH, parse_filter
from tablestore.types.filter.predicate import (
    FALSE,
    TRUE,
    Comparison,
    IsIn,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
    StartsWith,
    all_of,
    any_of,
)
from tablestore.types.typestring import parse_type

_COMPARISONS: Mapping[str, Operator] = {
    "EQUAL": "=",
    "NOT_EQUAL": "!=",
    "LESS_THAN": "<",
    "LESS_OR_EQUAL": "<=",
    "GREATER_THAN": ">",
    "GREATER_OR_EQUAL": ">=",
}
_LITERALS: tuple[tuple[frozenset[TypeRoot], tuple[type, ...]], ...] = (
    (frozenset({TypeRoot.BOOLEAN}), (bool,)),
    (frozenset(INTEGER_ROOTS), (int,)),
    (frozenset(FLOAT_ROOTS), (int, float)),
    (frozenset(TEXT_ROOTS), (str,)),
)


def decode_filter(text: str, fields: Sequence[Field]) -> Predicate:
    """The condition of a row filter over the columns ``fields``. Raises FormatError, InvalidInputError, UnsupportedError."""
    by_name = {field.name: field for field in fields}
    predicate = parse_filter(_predicate(_parsed(text), by_name, MAX_FILTER_DEPTH), fields)
    assert predicate is not None, "a predicate was decoded"
    return predicate


def decode_mask(text: str, column: str, fields: Sequence[Field]) -> Expression:
    """The value that stands in for a column. Raises FormatError, InvalidInputError, UnsupportedError."""
    by_name = {field.name: field for field in fields}
    target = _known(by_name, column)
    transform = _object(_parsed(text))
    match transform.get("name"):
        case "NULL":
            return Value(pa.scalar(None))
        case "FIELD_REF":
            return Column(_referred(transform.get("fieldRef"), by_name).name)
        case "CAST":
            return Cast(Column(_referred(transform.get("fieldRef"), by_name).name), _type(transform.get("type")))
        case "UPPER" | "LOWER" | "CONCAT" as name if _is_text(target):
            inputs = tuple(_text_input(one, by_name) for one in _list(transform.get("inputs")))
            if name == "CONCAT" and inputs:
                return inputs[0] if len(inputs) == 1 else Call("||", inputs)
            if name != "CONCAT" and len(inputs) == 1:
                return Call(name.lower(), inputs)
    raise _unsupported("mask", transform)


def _predicate(value: object, fields: Mapping[str, Field], levels: int) -> Predicate:
    source = _object(value)
    if not levels:
        raise UnsupportedError(f"a row filter is nested more than {MAX_FILTER_DEPTH} levels deep", kind="query-rules")
    match source.get("kind"), source.get("function"):
        case "COMPOUND", "AND" | "OR" as function:
            children = [_predicate(child, fields, levels - 1) for child in _list(source.get("children"))]
            return all_of(children) if function == "AND" else any_of(children)
        case "LEAF", str(function):
            return _leaf(source, function, fields)
    raise _unsupported("row filter", source)


def _leaf(source: Mapping[str, Any], function: str, fields: Mapping[str, Field]) -> Predicate:
    transform, literals = _object(source.get("transform")), _list(source.get("literals") or [])
    if transform.get("name") == "NULL" and function in ("TRUE", "FALSE") and not literals:
        return TRUE if function == "TRUE" else FALSE
    field = _referred(transform.get("fieldRef"), fields)
    is_day = _is_day(transform, field)
    if transform.get("name") != "FIELD_REF" and not is_day:
        raise _unsupported("row filter", source)
    name = field.name
    if function in _COMPARISONS and len(literals) == 1:
        return Comparison(_COMPARISONS[function], name, _literal(literals[0], field, is_day=is_day))
    match function, literals:
        case "IN", _:
            return IsIn(name, tuple(_literal(one, field, is_day=is_day) for one in literals))
        case "NOT_IN", _:
            return Not(IsIn(name, tuple(_literal(one, field, is_day=is_day) for one in literals)))
        case "BETWEEN", [low, high]:
            return _between(field, low, high, is_day=is_day)
        case "NOT_BETWEEN", [low, high]:
            return Not(_between(field, low, high, is_day=is_day))
        case "IS_NULL", []:
            return IsNull(name)
        case "IS_NOT_NULL", []:
            return Not(IsNull(name))
        case "STARTS_WITH", [str(prefix)] if _is_text(field):
            return StartsWith(name, prefix)
        case "LIKE", [str(pattern)] if _is_text(field):
            return Like(name, pattern)
    raise _unsupported("row filter", source)


def _between(field: Field, low: object, high: object, *, is_day: bool) -> Predicate:
    return all_of(
        [
            Comparison(">=", field.name, _literal(low, field, is_day=is_day)),
            Comparison("<=", field.name, _literal(high, field, is_day=is_day)),
        ]
    )


def _is_day(transform: Mapping[str, Any], field: Field) -> bool:
    """True if days are compared as the texts that they are as strings, which have the same order."""
    if transform.get("name") != "CAST" or not isinstance(field.type, AtomicType) or field.type.root is not TypeRoot.DATE:
        return False
    kind = _type(transform.get("type"))
    return isinstance(kind, AtomicType) and kind.root is TypeRoot.VARCHAR and (kind.length or 0) >= len("9999-12-31")


def _literal(value: object, field: Field, *, is_day: bool) -> object:
    root = field.type.root if isinstance(field.type, AtomicType) else None
    if is_day and isinstance(value, str):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            day = None
        # Another spelling of a day has another place among texts.
        if day is not None and day.isoformat() == value:
            return day
    for roots, classes in _LITERALS:
        # A truth value is a whole number to Python.
        if root in roots and type(value) in classes:
            return value
    raise UnsupportedError(
        f"a row filter compares {field.name!r} with {value!r:.80}; no more is read of the table than its rules are understood",
        kind="query-rules",
    )


def _text_input(value: object, fields: Mapping[str, Field]) -> Expression:
    if isinstance(value, str):
        return Value(pa.scalar(value))
    field = _referred(value, fields)
    if not _is_text(field):
        raise _unsupported("mask", value)
    return Column(field.name)


def _referred(value: object, fields: Mapping[str, Field]) -> Field:
    name = _object(value).get("name")
    return _known(fields, name)


def _known(fields: Mapping[str, Field], name: object) -> Field:
    if not isinstance(name, str) or name not in fields:
        raise InvalidInputError(
            f"a rule of the table names the column {name!r:.140}, which it does not have; the rules of the service are to be "
            "changed with the columns",
            kind="query-rules",
        )
    return fields[name]


def _is_text(field: Field) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root in TEXT_ROOTS


def _type(value: object) -> DataType:
    try:
        return parse_type(value)
    except TablestoreError as error:
        raise FormatError(f"a rule of the table names the type {value!r:.80}: {error.message}", kind="query-rules") from error


def _parsed(text: str) -> object:
    return parse_json_bounded(text.encode(), "a rule of the table")


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FormatError(f"expected an object in a rule of the table, found {value!r:.80}", kind="query-rules")
    return value


def _list(value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise FormatError(f"expected a list in a rule of the table, found {value!r:.80}", kind="query-rules")
    return value


def _unsupported(what: str, source: object) -> UnsupportedError:
    return UnsupportedError(
        f"the {what} {source!r:.200} of the table is none that this release carries out, so nothing is read; read with a client "
        "that knows it, or write the rule with less",
        kind="query-rules",
    )
