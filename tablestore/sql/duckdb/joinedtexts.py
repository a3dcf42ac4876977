"""Casts values to texts where Spark does: beside ``||``, and in ``concat``, ``concat_ws``, ``array_join`` and ``repeat``.

    1e7D || ''              1.0E7 in Spark, 10000000.0 in DuckDB: refused, as CAST is
    concat(at, '')          without the time zone
    repeat(X'61', 2)        a text; DuckDB repeats the bytes

Texts of other values are the same in both.
"""

from collections.abc import Iterator

from sqlglot import exp

from tablestore.sql.binding.binder import Bound
from tablestore.sql.binding.sqltypes import BINARY, BOOLEAN, DATE, STRING, TIMESTAMP_NTZ, VOID, SqlType, Type, array
from tablestore.sql.duckdb.calls import refusal, unknown_operand

_ALIKE = (STRING, VOID, BOOLEAN, DATE, TIMESTAMP_NTZ)


def texts_of(node: exp.Expr, bound: Bound) -> dict[int, tuple[SqlType, SqlType]]:
    """The operands of a node that are cast to texts, or to arrays of them, by their ids: the types that they have and get.

    Raises UnsupportedError for an operand of a type that is not known.
    """
    casts: dict[int, tuple[SqlType, SqlType]] = {}
    for operand in _joined(node, bound):
        kind = bound.of(operand)
        if kind is None or not kind.is_known:
            raise unknown_operand("the text", operand)
        if _is_written_otherwise(kind):
            if isinstance(node, exp.ConcatWs) and kind.name == "array":
                raise refusal(f"concat_ws of {kind}")
            casts[id(operand)] = kind, array(STRING) if kind.name == "array" else STRING
    return casts


def _joined(node: exp.Expr, bound: Bound) -> Iterator[exp.Expr]:
    """The operands that Spark has as texts."""
    match node:
        case exp.Concat() | exp.DPipe() if _gives_text(bound.of(node)):
            yield from node.expressions if isinstance(node, exp.Concat) else (node.this, node.expression)
        case exp.ConcatWs():
            yield from node.expressions
        case exp.ArrayToString() | exp.Repeat():
            yield node.this


def _gives_text(kind: Type) -> bool:
    return kind is None or (kind != BINARY and kind.name != "array")


def _is_written_otherwise(kind: SqlType) -> bool:
    """True if DuckDB may write values of a type, or the elements of an array, in another way."""
    written = kind.parts[0] if kind.name == "array" else kind
    has_whole = written is not None and written.is_decimal and written.scale < written.precision
    return written is not None and not (written in _ALIKE or written.is_integer or has_whole)
