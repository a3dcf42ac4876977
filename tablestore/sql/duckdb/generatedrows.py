"""Makes rows of lists, one a column, where a function that gives rows stands: in a SELECT's list, in FROM, or beside other rows."""

from collections.abc import Sequence

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import call

_GENERATED = "__tablestore_generated"


def generated(lists: Sequence[tuple[str, exp.Expr]]) -> exp.Expr:
    """The node that stands for a call until the query around it makes rows of it. ``lists``: the columns by their names."""
    return call(_GENERATED, *(exp.alias_(one, name, quoted=True) for name, one in lists))


def is_generated(node: exp.Expr | None) -> bool:
    """True for a node that stands for lists."""
    return isinstance(node, exp.Anonymous) and node.this == _GENERATED


def generated_items(node: exp.Expr, names: Sequence[str]) -> list[exp.Expr]:
    """The items of a SELECT's list of such a node. Raises InvalidInputError where there are names for other columns than it has."""
    columns = node.expressions
    if names and len(names) != len(columns):
        own = ", ".join(column.alias for column in columns)
        raise InvalidInputError(f"expected {len(columns)} names for the columns {own}, found {len(names)}", kind="query")
    names = names or [column.alias for column in columns]
    lists = [column.this for column in columns]
    if all(isinstance(one, exp.Array) and len(one.expressions) == 1 for one in lists):
        # Of one row for each: the values themselves, of which DuckDB computes the same parts once.
        return [exp.alias_(one.expressions[0], name, quoted=True) for one, name in zip(lists, names, strict=True)]
    return [exp.alias_(call("UNNEST", one), name, quoted=True) for one, name in zip(lists, names, strict=True)]
