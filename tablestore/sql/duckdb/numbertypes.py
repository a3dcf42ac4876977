"""Casts numbers to the types that Spark has for them, where DuckDB has others.

    SELECT year(day), sum(price)          BIGINT and DECIMAL(38, 2) in DuckDB, INT and DECIMAL(20, 2) in Spark
    SELECT a FROM t UNION ALL SELECT b    both sides have the type that holds the values of both

A table that is made from a query has the types of its columns, so they have to be the same whoever runs it. An expression is cast
where it stands, everywhere alike: so it stays the same expression in SELECT, GROUP BY and HAVING.
"""

from collections.abc import Sequence
from typing import TypeAlias

from sqlglot import exp

from tablestore.sql.binding.binder import Bound
from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.functiontypes import alternatives
from tablestore.sql.binding.scopes import Columns
from tablestore.sql.binding.sqltypes import DOUBLE, FLOAT, INT, VOID, SqlType, Type, decimal, engine_words

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
_CHOICES = (exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If, exp.Nvl2, exp.Array)
# DuckDB has the type of their operands too.
_OF_OPERANDS = (
    exp.Cast, exp.Max, exp.Min, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.Lag, exp.Lead, exp.AnyValue, exp.ArgMax,
    exp.ArgMin, exp.Nullif, exp.Abs, exp.Round, exp.Bracket, exp.Explode, exp.Case, exp.If,
)  # fmt: skip
_HANDED_ON_BY = (exp.Select, exp.Alias, exp.PropertyEQ, exp.Tuple, exp.Paren, exp.Neg, *_CHOICES)

# Digits that DuckDB computes in 64 bits.
_SHORT = 18

Widened: TypeAlias = tuple[exp.Expr, Columns, Sequence[Type]]


def cast_to(data_type: SqlType, node: exp.Expr) -> exp.Cast:
    """A node as a value of a type."""
    return exp.Cast(this=node, to=engine_words(data_type))


def casts_of(node: exp.Expr, bound: Bound) -> dict[int, SqlType]:
    """The types to which a node or parts of it are to be cast, by their ids."""
    if isinstance(node, exp.Values):
        return _widened_rows(node, bound)
    kind = _wider_operand(node, bound) or _sparks_type(node, bound) or _beside_a_number(node, bound)
    return {} if kind is None else {id(node): kind}


def _sparks_type(node: exp.Expr, bound: Bound) -> SqlType | None:
    """The type to which a node is to be cast; None where it has Spark's anyhow, or no number in it."""
    kind = bound.of(node)
    if kind is None or not kind.has_numbers or not _is_plain(kind) or _is_inside(node):
        return None
    match _computed(node):
        case exp.Literal():
            is_short = kind.is_decimal and kind.precision == kind.scale and isinstance(node.parent, _HANDED_ON_BY)
            return kind if is_short else None
        case (exp.Add() | exp.Sub() | exp.Mul() | exp.Mod()) as computed:
            sides = {bound.of(computed.this), bound.of(computed.expression)}
            return None if sides == {kind} and not kind.is_decimal else kind
        case computed if isinstance(computed, _CHOICES):
            of_parts = {bound.of(part) for part in alternatives(computed)} - {VOID}
            is_branch = isinstance(computed, exp.If) and isinstance(computed.parent, exp.Case)
            return None if is_branch or of_parts == {kind if not isinstance(computed, exp.Array) else kind.parts[0]} else kind
        case exp.Sum() | exp.Sign() | exp.IntDiv():
            return kind
        case exp.Func() as computed if kind == INT and not isinstance(computed, _OF_OPERANDS):
            return kind
        case _:
            return None


def _wider_operand(node: exp.Expr, bound: Bound) -> SqlType | None:
    """The type of the first decimal of a sum or product: of two short ones DuckDB computes no more than 18 digits."""
    parent, kind = node.parent, bound.of(node)
    if not isinstance(parent, (exp.Add, exp.Sub, exp.Mul)) or kind is None or not kind.is_decimal:
        return None
    other, result = bound.of(parent.expression if node is parent.this else parent.this), bound.of(parent)
    is_first = node is parent.this or (other is not None and not other.is_decimal)
    if not is_first or result is None or not result.is_decimal or result.precision <= _SHORT or kind.precision > _SHORT:
        return None
    return decimal(_SHORT + 1, kind.scale)


def _beside_a_number(node: exp.Expr, bound: Bound) -> SqlType | None:
    """The type to which a small number is cast beside a written one, which is an INT: DuckDB would make that one small, too."""
    parent, kind = node.parent, bound.of(node)
    if not isinstance(parent, _ARITHMETIC) or kind is None or not kind.is_integer:
        return None
    of_parent = bound.of(parent)
    return of_parent if of_parent is not None and of_parent.is_integer and of_parent != kind else None


def _is_plain(kind: SqlType) -> bool:
    """True if all parts of a type are known, and none has a meaning that depends on the session."""
    if kind.name in ("timestamp", "timestamp_ntz", "interval", "void"):
        return False
    return all(part is not None and _is_plain(part) for part in kind.parts)


def _computed(node: exp.Expr) -> exp.Expr:
    """The function inside of its window and behind its filter."""
    while isinstance(node, (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        node = node.this
    return node


def _is_inside(node: exp.Expr) -> bool:
    """True if a function stands in a window or behind a filter, which is cast with it."""
    return isinstance(node.parent, (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)) and node.arg_key == "this"


def _widened_rows(node: exp.Values, bound: Bound) -> dict[int, SqlType]:
    """The numbers in VALUES that are cast to the type of their column."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    casts: dict[int, SqlType] = {}
    for column in zip(*rows, strict=False):
        column_type = common(map(bound.of, column))
        if column_type is not None:
            casts |= {id(value): column_type for value in column if _is_widened(bound.of(value), column_type)}
    return casts


def widened_queries(node: exp.Expr, bound: Bound) -> list[Widened]:
    """The queries under a node in which columns are to be cast: with their columns, and the types that these are to have."""
    if isinstance(node, exp.SetOperation):
        return _widened_sides(node, bound)
    among = node.args.get("query") if isinstance(node, exp.In) else None
    if among is None or bound.of(among) != FLOAT or bound.of(node.this) == FLOAT:
        return []
    return [(among.unnest(), bound.columns(among) or (), [DOUBLE])]


def _widened_sides(node: exp.SetOperation, bound: Bound) -> list[Widened]:
    columns = bound.columns(node)
    sides: list[Widened] = []
    for side in (node.left, node.right):
        side_columns = bound.columns(side)
        if columns is None or side_columns is None:
            continue
        if node.args.get("by_name"):
            by_name = {name.casefold(): kind for name, kind in columns}
            target_types = [by_name[name.casefold()] for name, _ in side_columns]
        else:
            target_types = [kind for _, kind in columns]
        if any(_is_widened(kind, to) for (_, kind), to in zip(side_columns, target_types, strict=True)):
            sides.append((side, side_columns, target_types))
    return sides


def widen(side: exp.Expr, side_columns: Columns, target_types: Sequence[Type]) -> None:
    """Casts the columns of a query to types: in its SELECT, or around it where it has none or a star."""
    if (
        isinstance(side, exp.Select)
        and len(side.expressions) == len(side_columns)
        and not side.is_star
        and not side.args.get("distinct")
    ):
        for item, (_, kind), to in zip(side.expressions, side_columns, target_types, strict=True):
            if _is_widened(kind, to):
                _cast_item(item, to)
        return
    names = [exp.to_identifier(f"_column{place}") for place in range(len(side_columns))]
    items = []
    for column, (name, kind), to in zip(names, side_columns, target_types, strict=True):
        value: exp.Expr = exp.column(column.copy())
        items.append(exp.alias_(cast_to(to, value) if to is not None and _is_widened(kind, to) else value, name, quoted=True))
    inner = side.this if isinstance(side, exp.Subquery) and not side.alias else side
    around = exp.select(*items)
    side.replace(exp.Subquery(this=around) if isinstance(side, exp.Subquery) else around)
    alias = exp.TableAlias(this=exp.to_identifier("_side"), columns=names)
    around.set("from_", exp.From(this=exp.Subquery(this=inner, alias=alias)))


def _cast_item(item: exp.Expr, to: Type) -> None:
    if to is None:
        return
    if isinstance(item, exp.Alias):
        item.set("this", cast_to(to, item.this))
    else:
        cast = cast_to(to, item.copy())
        item.replace(exp.alias_(cast, item.name, quoted=True) if isinstance(item, exp.Column) else cast)


def _is_widened(kind: Type, to: Type) -> bool:
    return to is not None and kind is not None and kind != to and kind != VOID and to.has_numbers and _is_plain(to)
