"""Makes rows of lists, one a column, where a function that gives rows stands: in a SELECT's list, in FROM, or beside other rows."""

from collections.abc import Sequence

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import call

_GENERATED = "__tablestore_generated"
_ROW = "_row"
# Under this key the meta of a list has the name of the field whose values it has.
_FIELD = "field"


def generated(lists: Sequence[tuple[str, exp.Expr]]) -> exp.Expr:
    """The node that stands for a call until the query around it makes rows of it. ``lists``: the columns by their names."""
    return call(_GENERATED, *(exp.alias_(one, name, quoted=True) for name, one in lists))


def generated_fields(rows: exp.Expr, names: Sequence[str]) -> exp.Expr:
    """The node of a call that gives a list of rows: its columns are fields of theirs."""
    lists = []
    for name in names:
        field = call("STRUCT_EXTRACT", exp.column(_ROW), exp.Literal.string(name))
        one = call("LIST_TRANSFORM", rows.copy(), exp.Lambda(this=field, expressions=[exp.to_identifier(_ROW)]))
        one.meta[_FIELD] = name
        lists.append((name, one))
    return generated(lists)


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


def generated_query(node: exp.Expr, names: Sequence[str]) -> exp.Select:
    """The query of the rows of such a node. A list of rows is computed once, and not for each of its fields."""
    items = generated_items(node, names)
    lists = [one.this for one in node.expressions]
    fields = [one.meta.get(_FIELD) for one in lists]
    if None in fields or any(one.expressions[0] != lists[0].expressions[0] for one in lists):
        return exp.select(*items)
    rows = exp.select(exp.alias_(call("UNNEST", lists[0].expressions[0]), _ROW))
    parts = [call("STRUCT_EXTRACT", exp.column(_ROW), exp.Literal.string(field)) for field in fields]
    columns = [exp.alias_(part, item.alias, quoted=True) for part, item in zip(parts, items, strict=True)]
    return exp.select(*columns).from_(rows.subquery(_ROW))
