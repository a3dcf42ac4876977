"""Scalar expressions: the frozen tree of columns, literals, casts and function calls.

    expression = Column | Value | Cast | Call

A frozen tree. It has no types of its own: those of its columns say what its functions do, and :mod:`.evaluate` finds out by
computing over no rows. ``case`` has conditions and values in turns, and what holds otherwise last: ``case(c1, v1, c2, v2, v3)``.
``AND``, ``OR`` and ``||`` have all that they join. A tree has at most :data:`MOST_LEVELS` levels (``a + b + c`` has three), for
which those who walk over it make room.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from tablestore.recursion import deep_stack
from tablestore.types.datatypes import AtomicType, DataType, TypeRoot
from tablestore.types.expression.sqlwords import literal_text, name_text
from tablestore.types.typestring import type_to_sql


@dataclass(frozen=True, slots=True)
class Column:
    """A column; ``table`` where there are several tables: ``source``, ``target``."""

    name: str
    table: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A literal, as an Arrow scalar."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class Cast:
    """A value as one of another type; a value that does not fit is an error."""

    argument: "Expression"
    type: DataType


@dataclass(frozen=True, slots=True)
class Call:
    """A function (a key of :data:`~tablestore.types.expression.functions.FUNCTIONS`, or ``case``) of some values."""

    function: str
    arguments: "tuple[Expression, ...]"


Expression: TypeAlias = Column | Value | Cast | Call

MOST_LEVELS = 1000


def levels(expression: Expression) -> int:
    """The depth of the nesting of an expression."""
    depth, level = 0, [expression]
    while level:
        depth += 1
        level = [inner for part in level for inner in _operands(part)]
    return depth


def columns_of(expression: Expression) -> frozenset[Column]:
    """The columns that an expression looks at."""
    return frozenset(part for part in _parts(expression) if isinstance(part, Column))


def constants_of(expression: Expression) -> Iterator[Expression]:
    """The largest parts of an expression that look at no column."""
    stack = [expression]
    while stack:
        part = stack.pop()
        if columns_of(part):
            stack += _operands(part)
        else:
            yield part


def _parts(expression: Expression) -> Iterator[Expression]:
    stack = [expression]
    while stack:
        part = stack.pop()
        yield part
        stack += _operands(part)


def _operands(expression: Expression) -> "tuple[Expression, ...]":
    match expression:
        case Cast(argument):
            return (argument,)
        case Call(_, arguments):
            return arguments
        case _:
            return ()


def renamed_columns(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The same expression with its columns under other names; every one of them is in ``names``."""
    with deep_stack():
        return _renamed(expression, names)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case Column(name):
            return replace(expression, name=names[name])
        case Cast(argument):
            return replace(expression, argument=_renamed(argument, names))
        case Call(_, arguments):
            return replace(expression, arguments=tuple([_renamed(part, names) for part in arguments]))
        case _:
            return expression


_INFIX = frozenset("+ - * / % || = != < <= > >= <=> AND OR LIKE".split())  # noqa: SIM905


def expression_text(expression: Expression) -> str:
    """SQL text (Spark dialect) that means the same."""
    with deep_stack():
        return _text(expression)


def _text(expression: Expression) -> str:
    match expression:
        case Column(name, table):
            return f"{table}.{name_text(name)}" if table else name_text(name)
        case Value(value):
            return literal_text(value)
        case Cast(argument, kind):
            is_local = isinstance(kind, AtomicType) and kind.root is TypeRoot.TIMESTAMP
            return f"CAST({_text(argument)} AS {'TIMESTAMP_NTZ' if is_local else type_to_sql(kind)})"
        case Call(function, arguments):
            parts = [_text(part) for part in arguments]
            if function in _INFIX and len(parts) > 1:
                return f"({f' {function} '.join(parts)})"
            match function:
                case "IN":
                    return f"({parts[0]} IN ({', '.join(parts[1:])}))"
                case "NOT" | "-":
                    return f"({function} {parts[0]})"
                case "IS NULL":
                    return f"({parts[0]} IS NULL)"
                case "case":
                    whens = "".join(f" WHEN {c} THEN {v}" for c, v in zip(parts[:-1:2], parts[1::2], strict=True))
                    return f"CASE{whens} ELSE {parts[-1]} END"
                case _:
                    return f"{function}({', '.join(parts)})"
