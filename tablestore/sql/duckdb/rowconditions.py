"""Finds the columns through which a condition of a query may fail on a row. Pure.

    SELECT upper(s) FROM t                         no condition: nothing is computed before it is known which rows count
    … WHERE g = 5 AND name LIKE 'a%'               compares values of one type: that fails on no row
    … WHERE CAST(v AS INT) > 2, … WHERE v > 2      casts a text: any row may be one that this fails on, if v is a text
    SELECT id FROM (SELECT id, 10 / w AS n FROM t) WHERE n > 1       is put to what the query below computes

DuckDB pushes conditions as far down as it can, so they may see rows that a scan is still to leave out.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tablestore.sql.binding.binder import Bound
from tablestore.sql.binding.sqltypes import BOOLEAN, STRING, VOID, SqlType, Type
from tablestore.sql.duckdb.textnumbers import COMPARISONS
from tablestore.types.datatypes import MAX_PRECISION

_CLAUSES = (exp.Where, exp.Having, exp.Qualify, exp.Join)
# Nodes that fail on no row, whatever values they take.
_PLAIN = (
    exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Placeholder, exp.Parameter, exp.Paren, exp.And, exp.Or, exp.Not, exp.Is,
    exp.Exists, exp.IsNan, exp.Star, exp.Dot, exp.Query, exp.Subquery, exp.AggFunc,
)  # fmt: skip
# Nodes that fail on no row if they take values of one type.
_OF_ONE_TYPE = (*COMPARISONS, exp.In, exp.Between, exp.Case, exp.If, exp.Coalesce, exp.Nullif)
_WIDER = {"tinyint": 0, "smallint": 1, "int": 2, "bigint": 3, "float": 4, "double": 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowConditions:
    """The conditions of a query on rows. ``failing``: the columns, in small letters, through which one may fail; None: any may.

    ``filters``: there is a condition; ``computes``: the query gives something that is computed and may fail.
    """

    failing: frozenset[str] | None = frozenset()
    filters: bool = False
    computes: bool = False

    def inside(self, outer: "RowConditions") -> "RowConditions":
        """The conditions as those of a subquery, whose columns may have other names outside."""
        may_fail = outer.failing is None or bool(outer.failing) or (outer.filters and self.computes)
        return RowConditions(
            failing=None if may_fail else self.failing,
            filters=self.filters or outer.filters,
            computes=self.computes or outer.computes,
        )

    def may_fail(self, column: str) -> bool:
        """True if a condition on a column may fail on a row."""
        return self.failing is None or column.casefold() in self.failing


def failing_nodes(tree: exp.Expr, bound: Bound, casts: Collection[int]) -> list[exp.Expr]:
    """The nodes of a bound query that may fail on a value by themselves. ``casts``: the ids of texts that are cast to numbers."""
    return [node for node in tree.walk() if _may_fail(node, bound, casts)]


def row_conditions(tree: exp.Expr, bound: Bound, failing: Sequence[exp.Expr]) -> RowConditions:
    """The conditions that a bound query puts to rows of its tables. ``failing``: its nodes that may fail."""
    filters = any(isinstance(node, _CLAUSES) for node in tree.walk())
    if not failing:
        return RowConditions(filters=filters)
    queries = sum(isinstance(node, exp.Query) and not isinstance(node, exp.Subquery) for node in tree.walk())
    names = [name for node in failing if queries > 1 or node.find_ancestor(*_CLAUSES) for name in node.find_all(exp.Column)]
    # Below a query, or as an alias, a column has another name.
    is_any = bool(names) and (queries > 1 or any((meaning := bound.meaning(name)) is None or meaning.is_alias for name in names))
    return RowConditions(
        failing=None if is_any and filters else frozenset(name.name.casefold() for name in names) if filters else frozenset(),
        filters=filters,
        computes=True,
    )


def _may_fail(node: exp.Expr, bound: Bound, casts: Collection[int]) -> bool:
    """True if a node by itself may fail on a value. What stands in an aggregate is computed from rows that count."""
    if id(node) in casts:
        return True
    if not isinstance(node, (exp.Condition, exp.Func)) or isinstance(node, _PLAIN):
        return False
    if isinstance(node, _OF_ONE_TYPE):
        kinds = {bound.of(part) for part in _operands(node)}
        return not _are_of_one_kind(kinds - {VOID})
    match node:
        case exp.Like() | exp.ILike():
            return not isinstance(node.expression, exp.Literal) or bound.of(node.this) != STRING
        case exp.Neg():
            return not isinstance(node.this, exp.Literal)
        case exp.Cast():
            return not (isinstance(node.this, exp.Literal) or _widens(bound.of(node.this), bound.of(node)))
        case _:
            return True


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """The values of a node that are cast to one type; a literal is cast before any row is read."""
    parts: list[exp.Expr]
    match node:
        case exp.Case():
            tests = [node.this] if node.this is not None else []
            parts = [*tests, *(one.this for one in node.args["ifs"] if tests)]
        case exp.If():
            parts = []
        case _:
            parts = list(node.iter_expressions())
    if isinstance(node, (exp.Case, exp.If)):
        results = [node.args.get("default"), *(one.args.get("true") for one in node.args.get("ifs") or ())]
        parts += [part for part in results if part is not None]
    yield from (part for part in parts if not isinstance(part.unnest(), (exp.Literal, exp.Boolean, exp.Null)))


def _are_of_one_kind(kinds: Collection[Type]) -> bool:
    """True if values of these types are compared without a cast that may fail."""
    known_kinds = [kind for kind in kinds if kind is not None]
    if len(known_kinds) < len(kinds):
        return False
    decimals = [kind.as_decimal for kind in known_kinds if kind.is_decimal or kind.is_integer]
    if len(known_kinds) == len(decimals):
        digits = max((kind.precision - kind.scale for kind in decimals), default=0)
        return digits + max((kind.scale for kind in decimals), default=0) <= MAX_PRECISION
    return len(known_kinds) <= 1 or all(kind.is_number for kind in known_kinds)


def _widens(source_type: Type, target_type: Type) -> bool:
    """True if a cast fails on no value."""
    if source_type is None or target_type is None:
        return False
    return (
        source_type == target_type
        or _is_wider(source_type, target_type)
        or (target_type == STRING and (source_type.is_integer or source_type == BOOLEAN))
    )


def _is_wider(source_type: SqlType, target_type: SqlType) -> bool:
    return source_type.name in _WIDER and target_type.name in _WIDER and _WIDER[source_type.name] < _WIDER[target_type.name]
