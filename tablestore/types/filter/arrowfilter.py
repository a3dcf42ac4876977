"""Parses filters that are given as a ``pyarrow.compute.Expression``.

pyarrow has no way to walk an expression. Its pickle form, however, is a documented Arrow IPC file whose schema
metadata is the tree in pre-order, unambiguous for any name or text:

    call: and_kleene   call: greater   field_ref: price   literal: 0   end: greater   …   end: and_kleene

``literal: n`` points to column n of the file's one row, ``options: n`` to a struct of the call's options. The
metadata is read from the bytes, because pyarrow shows it as a dict and repeated keys get lost. Anything that a
predicate cannot express exactly is refused by name.

Arrow's semantics are kept: NaN is neither equal to nor greater than anything, and ``isin`` matches nulls to nulls and floats
bit for bit.
"""

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.datatypes import Field, is_float
from tablestore.types.expression.instant import Instant
from tablestore.types.filter.binding import always, bind_comparison, bind_in, bind_like, bind_prefix, never
from tablestore.types.filter.predicate import (
    FLIPPED,
    UNKNOWN,
    And,
    Comparison,
    Constant,
    IsIn,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
)

_COMPARISONS: dict[str, Operator] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


# A part of an expression while it is being read: a Predicate, a Field or a pa.Scalar (which has no type hints).
_Part = Any


def parse_expression(expression: pc.Expression, field_of: Callable[[str], Field]) -> Predicate:
    """The predicate of an Arrow expression over the columns that ``field_of(name)`` gives.

    Raises UnsupportedError for functions that a predicate cannot express, InvalidInputError for anything but a condition.
    """

    def column(names: Sequence[str]) -> Field:
        if len(names) > 1:
            raise _refusal(f"a nested field ref ({'.'.join(names)})")
        return field_of(names[0])

    return condition(read_expression(expression, column, call_of))


def read_expression(
    expression: pc.Expression,
    column: Callable[[Sequence[str]], _Part],
    call: Callable[[str, Sequence[_Part], dict[str, Any]], _Part],
) -> _Part:
    """An Arrow expression, read from its leaves up: ``column(names)`` is made of a column, or of a field inside of one, and
    ``call(function, parts, options)`` of a function. Literals are Arrow scalars.

    Raises UnsupportedError for an expression that pyarrow cannot write down.
    """
    # Calls being read, innermost last: name, parts, options.
    calls: list[tuple[str, list[_Part], dict[str, Any]]] = [("", [], {})]
    pairs, values = _serialised(expression)
    items = iter(pairs)
    for key, text in items:
        name, parts, options = calls[-1]
        match key:
            case "call":
                calls.append((text, [], {}))
            case "field_ref":
                parts.append(column((text,)))
            case "nested_field_ref":
                parts.append(column([step for _, step in islice(items, int(text))]))
            case "literal":
                parts.append(values.column(int(text))[0])
            case "options":
                options.update({k: values.column(int(text))[0][k] for k in values.column(int(text))[0]})
            case "end" if len(calls) > 1 and text == name:
                calls.pop()
                calls[-1][1].append(call(name, parts, options))
            case _:
                raise _refusal(f"a {key.replace('_', ' ')} ({text})")
    if len(calls) != 1 or len(calls[0][1]) != 1:
        raise _refusal("an expression that this version of pyarrow writes in an unknown form")
    return calls[0][1][0]


def _refusal(operation: str) -> UnsupportedError:
    return UnsupportedError(
        f"the filter expression uses {operation}; filters take comparisons of columns with literals, isin, is_null, "
        "is_valid, is_nan, starts_with, match_like, &, | and ~; compute the rest on the rows that come back",
        kind="unsupported-filter",
    )


def condition(part: _Part) -> Predicate:
    """A column or a literal as a condition; a predicate is one. Raises InvalidInputError."""
    match part:
        case Field():
            return bind_comparison("=", part, True)
        case pa.Scalar():
            if not pa.types.is_boolean(part.type) and not pa.types.is_null(part.type):
                raise InvalidInputError(f"expected a condition as filter, found the literal {part}")
            return Constant(part.as_py())
    predicate: Predicate = part
    return predicate


def call_of(name: str, parts: Sequence[_Part], options: dict[str, Any]) -> Predicate:
    """A function of columns, literals and predicates as a predicate. Raises UnsupportedError, InvalidInputError."""
    if name in ("and_kleene", "or_kleene"):
        children = tuple(condition(part) for part in parts)
        kind = And if name == "and_kleene" else Or
        # A chain stays flat however long it is.
        flat = tuple(leaf for child in children for leaf in (child.children if isinstance(child, kind) else (child,)))
        return kind(flat)
    if name == "invert" and len(parts) == 1:
        return Not(condition(parts[0]))
    if name in _COMPARISONS and len(parts) == 2:
        return _comparison(_COMPARISONS[name], parts[0], parts[1])
    field = parts[0] if parts else None
    if len(parts) != 1 or not isinstance(field, Field):
        raise _refusal(f"the function {name} on something else than a column")
    match name:
        case "is_null" if is_float(field.type) and options.get("nan_is_null") and options["nan_is_null"].as_py():
            return Or((IsNull(field.name), Comparison("=", field.name, math.nan)))
        case "is_null":
            return IsNull(field.name)
        case "is_valid":
            return Not(IsNull(field.name))
        case "is_nan" if is_float(field.type):
            return Comparison("=", field.name, math.nan)
        case "true_unless_null":
            return always(field.name)
        case "is_in":
            return _is_in(field, options)
        case "starts_with" | "match_like" if not options["ignore_case"].as_py():
            pattern = options["pattern"].as_py()
            pattern = pattern.decode() if isinstance(pattern, bytes) else pattern
            return bind_prefix(field, pattern) if name == "starts_with" else bind_like(field, pattern)
        case _:
            raise _refusal(f"the function {name}")


def _comparison(op: Operator, left: _Part, right: _Part) -> Predicate:
    if isinstance(left, pa.Scalar):
        left, right, op = right, left, FLIPPED[op]
    if not isinstance(left, Field) or not isinstance(right, pa.Scalar):
        raise _refusal("a comparison of something else than a column with a literal")
    raw = raw_value(right)
    if isinstance(raw, float) and math.isnan(raw):
        return always(left.name) if op == "!=" else never(left.name)
    bound = bind_comparison(op, left, raw)
    if is_float(left.type) and op in (">", ">=") and bound != UNKNOWN:
        # In predicates NaN is greater than every number, in Arrow it is not.
        return And((bound, Comparison("!=", left.name, math.nan)))
    return bound


def _is_in(field: Field, options: dict[str, Any]) -> Predicate:
    raws = [raw_value(value) for value in options["value_set"].values]
    behaviour = options["null_matching_behavior"].as_py()
    has_null = any(raw is None for raw in raws)
    plain = _by_bits(bind_in(field, [raw for raw in raws if raw is not None]))
    # Arrow's codes: 0 MATCH, 1 SKIP, 2 EMIT_NULL, 3 INCONCLUSIVE.
    match behaviour:
        case 0 if has_null:
            return Or((IsNull(field.name), plain))
        case 0 | 1:
            return And((Not(IsNull(field.name)), plain))
        case 2:
            return plain
        case 3:
            return _by_bits(bind_in(field, raws))
        case _:
            raise _refusal(f"isin with the null matching behaviour {behaviour}")


def _by_bits(predicate: Predicate) -> Predicate:
    return replace(predicate, by_bits=True) if isinstance(predicate, IsIn) else predicate


def raw_value(scalar: pa.Scalar) -> object:
    """The Python value of a literal, timestamps of any unit as an Instant."""
    if not scalar.is_valid:
        return None
    arrow_type = scalar.type
    if pa.types.is_dictionary(arrow_type):
        return raw_value(scalar.value)
    if pa.types.is_timestamp(arrow_type):
        return Instant(scalar.value * _UNIT_NS[arrow_type.unit], arrow_type.tz is not None)
    if pa.types.is_nested(arrow_type) or pa.types.is_duration(arrow_type):
        raise _refusal(f"a literal of type {arrow_type}")
    try:
        return scalar.as_py()
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"a literal of type {arrow_type} in the filter is out of range: {error}") from error


def _serialised(expression: pc.Expression) -> tuple[list[tuple[str, str]], pa.RecordBatch]:
    """The metadata items in order, and the row of literals and options."""
    try:
        data = expression.__reduce__()[1][0]
        batch = pa.ipc.open_file(data).get_batch(0)
        items = list(_schema_metadata(bytes(data)))
    except (pa.ArrowException, TypeError, IndexError, ValueError, struct.error) as error:
        raise _refusal(f"an expression that pyarrow cannot serialise ({error})") from error
    return items, batch


def _schema_metadata(data: bytes) -> Iterator[tuple[str, str]]:
    """Key-value pairs of the schema of an Arrow IPC file, in order and with repetitions.

    File: ``ARROW1``, padding, then messages: marker -1, length, flatbuffer Message(version, type, header: Schema).
    """
    if data[:6] != b"ARROW1" or data[8:12] != b"\xff\xff\xff\xff":
        raise ValueError("no Arrow IPC file")
    message = _Table(data, 16 + _int(data, 16))
    schema = message.table(2)
    pairs = schema.field(2)
    start = pairs + _int(data, pairs)
    for i in range(_int(data, start)):
        slot = start + 4 + 4 * i
        pair = _Table(data, slot + _int(data, slot))
        yield pair.text(0), pair.text(1)


class _Table:
    """A flatbuffer table: fields are found through its vtable."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def field(self, index: int) -> int:
        """The position of the field."""
        vtable = self._position - _int(self._data, self._position)
        slot = 4 + 2 * index
        (size,) = struct.unpack_from("<H", self._data, vtable)
        offset = struct.unpack_from("<H", self._data, vtable + slot)[0] if slot < size else 0
        if not offset:
            raise ValueError(f"the flatbuffer table has no field {index}")
        return int(self._position + offset)

    def table(self, index: int) -> "_Table":
        """A field that is a table."""
        position = self.field(index)
        return _Table(self._data, position + _int(self._data, position))

    def text(self, index: int) -> str:
        """A field that is a string."""
        position = self.field(index)
        start = position + _int(self._data, position)
        length = _int(self._data, start)
        return self._data[start + 4 : start + 4 + length].decode("utf-8")


def _int(data: bytes, position: int) -> int:
    return int(struct.unpack_from("<i", data, position)[0])
