"""Writes calls of a user's functions of groups, and of those that give rows, as DuckDB runs them.

    f(x, y) FILTER (WHERE c) OVER w     f(list(row(x, y)) FILTER (WHERE c) OVER w)
    FROM f(x) AS t (a, b)               FROM (SELECT unnest(f(x), max_depth := 2)) AS t (a, b)

DuckDB knows the functions as ones of a row: of a list of rows, and giving one.
"""

from sqlglot import exp, parse_one

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import AROUND_AN_AGGREGATE, call
from tablestore.sql.query.functions import kind_of_name, without_prefix

_ROWS = "SELECT UNNEST(__rows, max_depth := 2)"


def fold_groups(tree: exp.Expr) -> exp.Expr:
    """The tree with calls of functions of groups rewritten, in place but for its root."""
    for node in list(tree.find_all(exp.Anonymous)):
        if kind_of_name(str(node.this)) == "aggregate":
            tree = _of_group(tree, node)
    return tree


def check_gives_value(node: exp.Anonymous) -> None:
    """Raises InvalidInputError for a call of a function that gives rows, out of FROM."""
    if kind_of_name(str(node.this)) == "table" and not isinstance(node.parent, (exp.Table, exp.Lateral)):
        raise InvalidInputError(f"the function `{without_prefix(str(node.this))}` gives rows: expected it in FROM", kind="query")


def unnested(function: exp.Anonymous) -> exp.Select:
    """The query that makes rows of the list that a function gives."""
    select = parse_one(_ROWS, dialect="duckdb")
    placeholder = next(column for column in select.find_all(exp.Column) if column.name == "__rows")
    placeholder.replace(call(str(function.this), *function.expressions))
    assert isinstance(select, exp.Select), "it is written above"
    return select


def _of_group(tree: exp.Expr, node: exp.Anonymous) -> exp.Expr:
    outermost: exp.Expr = node
    while isinstance(outermost.parent, AROUND_AN_AGGREGATE) and outermost.arg_key == "this":
        outermost = outermost.parent
    arguments = node.expressions
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    row = call("ROW", *(arguments[0].expressions if distinct else arguments))
    collected = call("LIST", exp.Distinct(expressions=[row]) if distinct else row)
    parent, key, index = outermost.parent, outermost.arg_key, outermost.index
    name = str(node.this)
    if outermost is node:
        folded = call(name, collected)
    else:
        node.replace(collected)
        folded = call(name, outermost.copy())
    if parent is None:
        return folded
    parent.set(key or "", folded, index=index)
    return tree
