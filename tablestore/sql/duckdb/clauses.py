"""Rewrites clauses of a query whose form is another one in DuckDB."""

from collections.abc import Collection, Iterable, Sequence

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import function_name
from tablestore.sql.duckdb.calls import aggregate_of, call, is_not_null, refusal
from tablestore.sql.duckdb.generatedrows import generated_items, generated_query, is_generated
from tablestore.sql.duckdb.usercalls import unnested
from tablestore.sql.freshnames import fresh_name
from tablestore.sql.query.functions import kind_of_name


def group(node: exp.Group) -> exp.Expr:
    """Writes ``GROUP BY a, b WITH ROLLUP`` as ``GROUP BY ROLLUP (a, b)``."""
    for key, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if any(not part.expressions for part in node.args.get(key) or ()):
            node.set("expressions", [kind(expressions=node.expressions)])
            node.set(key, None)
    return node


def sort_whole(query: exp.Query) -> None:
    """Writes SORT BY and CLUSTER BY as ORDER BY: each of DuckDB's results is one part of Spark's, which these sort."""
    for key in ("sort", "cluster"):
        clause = query.args.get(key)
        if clause is not None:
            keys = [one if isinstance(one, exp.Ordered) else exp.Ordered(this=one, nulls_first=True) for one in clause.expressions]
            query.set(key, None)
            query.set("order", exp.Order(expressions=keys))
    query.set("distribute", None)


def goes_by_order(node: exp.Select) -> bool:
    """True if an aggregate of a query goes by the order of its rows."""
    return any(function_name(call) in _BY_ORDER for call in node.find_all(exp.Func))


def sets_of_groups(node: exp.Select, *, in_order: bool) -> exp.Select:
    """A query with ``ROLLUP``, ``CUBE`` or several grouping sets: of no rows Spark makes no group, not even the total.

    ``in_order``: each set gets its rows in their order. DuckDB makes the smaller sets of the groups of a larger one, but where the
    distinct values of an aggregate are counted.
    """
    groups = node.args.get("group")
    parts = groups.expressions if groups is not None else ()
    sets = [one for part in parts if isinstance(part, (exp.Rollup, exp.Cube, exp.GroupingSets)) for one in part.expressions]
    if not sets or (len(parts) == len(sets) == 1 and isinstance(sets[0], exp.Tuple) and not sets[0].expressions):
        return node
    counted = exp.Distinct(expressions=[exp.Literal.number(1)]) if in_order else exp.Star()
    has_rows = exp.GT(this=exp.Count(this=counted), expression=exp.Literal.number(0))
    having = node.args.get("having")
    node.set("having", exp.Having(this=has_rows if having is None else exp.and_(having.this, has_rows, copy=False)))
    return node


_BY_ORDER = frozenset({
    "first", "first_value", "last", "last_value", "any_value", "collect_list", "array_agg", "listagg", "string_agg", "max_by",
    "min_by", "mode",
})  # fmt: skip


def name_columns(rows: exp.Values) -> None:
    """Gives the columns of VALUES in FROM the names that Spark has for them: DuckDB counts from 0."""
    alias = rows.args.get("alias")
    if not isinstance(rows.parent, (exp.From, exp.Join)) or (alias is not None and alias.columns):
        return
    first = rows.expressions[0]
    count = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    name = rows.alias or _unused("_values", rows)
    columns = [exp.to_identifier(f"col{place}") for place in range(1, count + 1)]
    rows.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns))


def sampled(node: exp.TableSample) -> exp.TableSample:
    """A sample of a share of the rows, each of which is taken or not; one that a seed decides is refused."""
    if node.args.get("bucket_numerator") is not None:
        share = [node.args[f"bucket_{part}"].name for part in ("numerator", "denominator")]
        if (
            node.args.get("bucket_field") is not None
            or not all(map(str.isdecimal, share))
            or not 0 <= int(share[0]) <= int(share[1])
        ):
            raise refusal("TABLESAMPLE of buckets by a column, or beyond their number")
        node = exp.TableSample(percent=exp.Literal.number(100 * int(share[0]) / int(share[1])), seed=node.args.get("seed"))
    percent = node.args.get("percent")
    if not isinstance(percent, exp.Literal):
        return node
    if float(percent.name) not in (0, 100) and node.args.get("seed") is not None:
        raise refusal("TABLESAMPLE with REPEATABLE, of whose rows the generator of Java decides")
    return exp.TableSample(percent=percent, method=exp.var("BERNOULLI"))


def pivot_around(node: exp.Expr) -> exp.Pivot | None:
    """The PIVOT that an aggregate belongs to."""
    around = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    return around if isinstance(around, exp.Pivot) else None


def counted_in_pivot(node: exp.Expr, *, of_none: bool) -> exp.Expr:
    """An aggregate of a PIVOT, which takes one of DuckDB's: NULL where there are no rows, or what it is ``of_none``."""
    value, zero, one = node.this, exp.Literal.number(0), exp.Literal.number(1)
    if isinstance(node, (exp.ArrayAgg, exp.ArrayUniqueAgg)):
        listed = exp.Distinct(expressions=[value]) if isinstance(node, exp.ArrayUniqueAgg) else value
        there = exp.Where(this=is_not_null(value.copy()))
        return exp.Coalesce(this=exp.Filter(this=call("LIST", listed), expression=there), expressions=[exp.Array()])
    if of_none:
        return node if isinstance(node, exp.Count) else exp.Count(this=exp.Case(ifs=[exp.If(this=value, true=one)]))
    if isinstance(value, exp.Distinct):
        return exp.cast(call("LIST_UNIQUE", call("LIST", *value.expressions)), "BIGINT")
    condition = value if isinstance(node, exp.CountIf) else is_not_null(value)
    counted = one if isinstance(value, exp.Star) else exp.Case(ifs=[exp.If(this=condition, true=one)], default=zero)
    return exp.cast(exp.Sum(this=counted), "BIGINT")


def table_function(node: exp.Table) -> exp.Expr:
    """Writes ``range``, whose column has the name ``id`` in Spark, and ``explode``, whose column is ``col``."""
    function = node.this
    name = str(function.this).lower() if isinstance(function, exp.Anonymous) else ""
    if kind_of_name(name) == "table":
        return exp.Subquery(this=unnested(function), alias=node.args.get("alias"), joins=node.args.get("joins"))
    if name == "error" or (name not in ("range",) and not isinstance(function, exp.Explode)):
        raise refusal(f"the table-valued function {name or function.sql_name().lower()}")
    if name == "range":
        # How many parts Spark makes of it changes no row.
        function.set("expressions", function.expressions[:3])
    if node.args.get("alias") is None or not node.args["alias"].columns:
        column = "id" if name == "range" else "col"
        table = exp.to_identifier(node.alias or name or "explode")
        node.set("alias", exp.TableAlias(this=table, columns=[exp.to_identifier(column)]))
    return node


def exploded(join: exp.Join, *, of_map: bool = False) -> exp.Expr:
    """A generator beside its rows: ``LATERAL VIEW explode(a) t AS c``, ``JOIN LATERAL explode(a) AS t (c)``."""
    lateral = join.this
    function = lateral.this
    alias = lateral.args.get("alias")
    columns = [column.name for column in alias.columns] if alias is not None else []
    table = alias.name if alias is not None and alias.name else _unused("_generated", join)
    if is_generated(function):
        rows = generated_query(function, columns)
        return _beside(join, rows, table)
    if isinstance(function, exp.Anonymous) and kind_of_name(str(function.this)) == "table":
        beside = _beside(join, unnested(function), table)
        beside.this.args["alias"].set("columns", [exp.to_identifier(column, quoted=True) for column in columns])
        return beside
    array = function.this
    # An array has no two columns.
    of_map |= type(function) is exp.Explode and len(columns) == 2
    if of_map and (type(function) is exp.Explode or (isinstance(function, exp.Posexplode) and join.side != "LEFT")):
        rows = exp.select(*_entries(array, columns, has_place=isinstance(function, exp.Posexplode)))
    elif isinstance(function, exp.Posexplode) and join.side != "LEFT" and len(columns) in (0, 2):
        rows = exp.select(*_counted(array, *(columns or ("pos", "col"))))
    elif type(function) is exp.Explode and len(columns) < 2:
        rows = exp.select(exp.alias_(call("UNNEST", array), columns[0] if columns else "col", quoted=True))
    else:
        raise refusal(f"the generator {function.sql_name().lower() if not isinstance(function, exp.Anonymous) else function.this}")
    return _beside(join, rows, table)


def rows_of_table(node: exp.Table) -> exp.Expr:
    """Writes a function in FROM that gives rows of several columns."""
    alias = node.args.get("alias")
    names = [column.name for column in alias.columns] if alias is not None else []
    name = alias.name if alias is not None and alias.name else _unused("_generated", node)
    named = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    return exp.Subquery(this=generated_query(node.this, names), alias=named)


def _beside(join: exp.Join, rows: exp.Select, table: str) -> exp.Join:
    """Rows beside those of the tables before them, from which they are made."""
    named = exp.TableAlias(this=exp.to_identifier(table, quoted=True))
    outer = join.side == "LEFT"
    return exp.Join(
        this=exp.Lateral(this=exp.Subquery(this=rows), alias=named),
        side="LEFT" if outer else None,
        kind=None if outer or join.args.get("on") else "CROSS",
        on=join.args.get("on") or (exp.true() if outer else None),
    )


def _unused(preferred: str, node: exp.Expr) -> str:
    """A name that nothing has in the query around a node."""
    return fresh_name(preferred, *(name.name for name in node.root().find_all(exp.Identifier)))


def generated_columns(node: exp.Select, of_maps: Collection[int]) -> exp.Select:
    """Writes generators in a list of columns as their columns: a place is an INT, and counts from 0.

    ``of_maps``: where those that take a map stand.
    """
    columns: list[exp.Expr] = []
    items = [item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item for item in node.expressions]
    if any(map(is_generated, items)) and sum(isinstance(item, exp.Explode) or is_generated(item) for item in items) > 1:
        raise InvalidInputError("expected one function that gives rows in a SELECT, found several", kind="query")
    for at, column in enumerate(node.expressions):
        function = column.this if isinstance(column, (exp.Alias, exp.Aliases)) else column
        has_place = isinstance(function, exp.Posexplode)
        names = [name.name for name in column.expressions] if isinstance(column, exp.Aliases) else []
        if is_generated(function):
            columns += generated_items(function, [column.alias] if isinstance(column, exp.Alias) else names)
        elif at in of_maps:
            # A single alias that says so is that of a generator without one.
            named = [column.alias] if isinstance(column, exp.Alias) and column.alias != "col" else names
            columns += _entries(function.this, named, has_place=has_place)
        elif has_place:
            columns += _counted(function.this, *(names or ("pos", "col")))
        else:
            columns.append(column)
    node.set("expressions", columns)
    return node


def _entries(entries: exp.Expr, names: Sequence[str], *, has_place: bool = False) -> list[exp.Expr]:
    """The columns of a generator that takes a map."""
    default_names = ["pos", "key", "value"] if has_place else ["key", "value"]
    if names and len(names) != len(default_names):
        raise InvalidInputError(
            f"expected {len(default_names)} names for the columns of a map ({', '.join(default_names)}), found {len(names)}",
            kind="query",
        )
    keys, values = (call(parts, entries.copy()) for parts in ("MAP_KEYS", "MAP_VALUES"))
    *place, key, value = names or default_names
    columns = [_counted(keys.copy(), place[0], "_")[0]] if place else []
    return [*columns, *(exp.alias_(call("UNNEST", of), name, quoted=True) for of, name in ((keys, key), (values, value)))]


def map_function(node: exp.Table) -> exp.Expr:
    """Writes ``explode`` of a map in FROM."""
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("explode"))
    return exp.Subquery(this=exp.select(*_entries(node.this.this, [])), alias=alias)


def _counted(array: exp.Expr, place: str, value: str) -> list[exp.Expr]:
    number = exp.Sub(this=call("GENERATE_SUBSCRIPTS", array.copy(), exp.Literal.number(1)), expression=exp.Literal.number(1))
    counted = exp.Cast(this=exp.paren(number), to=exp.DataType.build("INT"))
    return [exp.alias_(counted, place, quoted=True), exp.alias_(call("UNNEST", array), value, quoted=True)]


def of_counted_rows(node: exp.Filter) -> None:
    """Computes arguments of an aggregate from the rows that its FILTER leaves. DuckDB does so from all, and may fail on one."""
    aggregate, condition = aggregate_of(node), node.expression.this
    holders = [aggregate, *(part for part in aggregate.iter_expressions() if isinstance(part, exp.Distinct))]
    arguments = [part for one in holders for part in one.iter_expressions() if part.arg_key in _ARGUMENTS]
    for argument in arguments:
        if not isinstance(argument, _COMPUTE_NOTHING):
            argument.replace(exp.Case(ifs=[exp.If(this=condition.copy(), true=argument.copy())]))


_ARGUMENTS = ("this", "expression", "expressions")
_COMPUTE_NOTHING = (exp.Column, exp.Literal, exp.Null, exp.Star, exp.Distinct, exp.DataType, exp.Identifier, exp.Lambda)


def chains_in_order(failing: Iterable[exp.Expr]) -> set[int]:
    """The ids of the chains of AND and OR in which what stands before decides whether one of these nodes is computed.

    In WHERE, HAVING, QUALIFY, the conditions of CASE and of joins DuckDB computes one after the other, elsewhere all.
    """
    chains: set[int] = set()
    for one in failing:
        node, is_first = one, True
        while node.parent is not None and not isinstance(node, exp.Query):
            around = node.parent
            if isinstance(around, (exp.And, exp.Or)):
                is_first &= node.arg_key == "this"
                is_end = not isinstance(_outside(around), type(around))
                if is_end and not is_first and not _is_filter(around):
                    chains.add(id(around))
                is_first |= is_end
            node = around
    return chains


def in_order(chain: exp.Expr) -> exp.Expr:
    """A chain of AND or OR whose parts are computed only where no part before decides."""
    parts = list(chain.flatten())
    is_and = isinstance(chain, exp.And)
    decided: exp.Expr = exp.false() if is_and else exp.true()
    tests = [exp.paren(part.copy()) for part in parts[:-1]]
    branches = [exp.If(this=exp.Not(this=test) if is_and else test, true=decided.copy()) for test in tests]
    return exp.Case(ifs=branches, default=chain)


def _outside(node: exp.Expr) -> exp.Expr | None:
    """The node around a node and its parentheses."""
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return around


def _is_filter(node: exp.Expr) -> bool:
    """True if DuckDB computes the parts of a condition one after the other."""
    inner, around = node, node.parent
    while isinstance(around, (exp.And, exp.Or, exp.Paren)):
        inner, around = around, around.parent
    match around:
        case exp.Where():
            return not isinstance(around.parent, exp.Filter)
        case exp.Having() | exp.Qualify() | exp.Join():
            # True for an outer join too: it has to find the columns that are equal.
            return True
        case exp.If():
            is_subject = isinstance(around.parent, exp.Case) and around.parent.this is not None
            return inner.arg_key == "this" and not is_subject
        case _:
            return False
