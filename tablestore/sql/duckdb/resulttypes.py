"""Which type of number has a column of a result in Spark, where DuckDB gives another one?

    SELECT year(day) AS y, sum(price) AS total …        BIGINT and DECIMAL(38, 2) in DuckDB, INT and DECIMAL(20, 2) in Spark

A table that is made from a query has its types, so they have to be the same whoever runs it. Only columns of the result are asked
for: inside of a query the types of numbers do not show, and DuckDB knows its own ones best. A star hands on the columns of the
queries that it stands for.
"""

from collections.abc import Iterator

from sqlglot import exp

from tablestore.sql.duckdb.columnnames import common_query, sources
from tablestore.sql.duckdb.expressionkinds import INTS, Kinds
from tablestore.sql.duckdb.kinds import BIGINT, DOUBLE, INT

_COMPUTED = (exp.Sum, exp.Mul, exp.Mod, exp.Add, exp.Sub, exp.IntDiv, exp.Sign, exp.Anonymous, exp.DateDiff, *INTS)
_NAMES = {INT: "INT", BIGINT: "BIGINT", DOUBLE: "DOUBLE"}
_HANDED_ON = (exp.Alias, exp.Paren, exp.Max, exp.Min, exp.Window, exp.Filter)
_MOST_STEPS = 12


def named_results(query: exp.Expr) -> Iterator[exp.Alias | exp.Column]:
    """The columns of a query that have a name: by AS, or that of the column that they are."""
    match query:
        case exp.SetOperation():
            yield from named_results(query.left)
            yield from named_results(query.right)
        case exp.Subquery():
            yield from named_results(query.this)
        case exp.CTE():
            yield from named_results(query.this)
        case exp.Select():
            for column in query.expressions:
                if column.is_star:
                    yield from _behind_a_star(query, column)
                elif isinstance(column, (exp.Alias, exp.Column)):
                    yield column


def _behind_a_star(query: exp.Select, star: exp.Expr) -> Iterator[exp.Alias | exp.Column]:
    """Those columns of queries in FROM that ``*`` or ``q.*`` hands on. Other columns of such a query get their type too."""
    table = star.table.casefold() if isinstance(star, exp.Column) else ""
    for read in sources(query):
        if table not in ("", read.alias_or_name.casefold()):
            continue
        if isinstance(read, exp.Subquery):
            yield from named_results(read)
        elif isinstance(read, exp.Table) and not read.db and (made := common_query(read)) is not None:
            yield from named_results(made)


def typed_result(column: exp.Alias | exp.Column, name: str) -> None:
    """Cast a column of a query to a type."""
    value = column.this if isinstance(column, exp.Alias) else column.copy()
    cast = exp.Cast(this=value, to=exp.DataType.build(name))
    if isinstance(column, exp.Alias):
        column.set("this", cast)
    else:
        column.replace(exp.alias_(cast, column.name, quoted=True))


def result_type(value: exp.Expr, kinds: Kinds, steps: int = 0) -> str | None:
    """Spark's type of a value, where it is a number and DuckDB's may be another one; None otherwise."""
    match value:
        case _ if steps > _MOST_STEPS:
            return None
        case _ if isinstance(value, _COMPUTED):
            kind = kinds.of(value)
            if kind is not None and kind.name == "decimal":
                return f"DECIMAL({kind.precision}, {kind.scale})"
            return _NAMES.get(kind) if kind is not None else None
        case exp.Subquery(this=exp.Select()) if len(value.this.selects) == 1:
            return result_type(value.this.selects[0], kinds, steps + 1)
        case _ if isinstance(value, _HANDED_ON):
            return result_type(value.this, kinds, steps + 1)
        case exp.Column():
            made = kinds.made(value.name)
            found = {result_type(one, kinds, steps + 1) for one in made}
            return found.pop() if len(found) == 1 else None
        case _:
            return None
