"""Builds the nodes that have rules from the tree of a query, or says why there is no rule."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tablestore.sql.incremental.determinism import is_aggregate
from tablestore.sql.incremental.nodes import Block, Equality, Input, Keyed, Node, Union, aliased
from tablestore.sql.incremental.outerjoins import APART, write_as_left_joins
from tablestore.sql.incremental.reading import NO_SUBQUERY, conjuncts
from tablestore.sql.incremental.shapes import PREFIX, NoRuleError

_CLAUSES = frozenset({"expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "distinct"})
_WITHOUT_RULE = {
    "limit": "it has a LIMIT, which counts over all rows",
    "offset": "it has an OFFSET, which counts over all rows",
    "windows": "it names its windows in a WINDOW clause",
}


def build(query: exp.Expr, *, top: bool = True) -> Node:
    """The nodes of a query. Raises NoRuleError."""
    if isinstance(query, exp.Subquery):
        return build(query.this, top=top)
    if query.args.get("order") is not None and query.args.get("limit") is None:
        # The rows of a table, as those of a derived table, have no order.
        query.set("order", None)
    if isinstance(query, exp.Union):
        _check_clauses(query, {"this", "expression", "distinct"})
        sides = (build(query.left, top=False), build(query.right, top=False))
        flat = tuple(part for side in sides for part in (side.sides if isinstance(side, Union) else (side,)))
        if not query.args.get("distinct"):
            return Union(flat, query.meta.get(APART, ()))
        return _distinct_over(Union(flat))
    if not isinstance(query, exp.Select):
        raise NoRuleError(f"it has {type(query).__name__.upper()}, for which there is no rule")
    return _select(query, top=top)


def _select(select: exp.Select, *, top: bool = False) -> Node:
    _check_clauses(select, _CLAUSES)
    if select.args.get("from_") is None:
        raise NoRuleError("a SELECT of it reads no table")
    write_as_left_joins(select)
    block = Block(select, tuple(_inputs(select)))
    windows = [window for part in _own_parts(select) for window in part.find_all(exp.Window)]
    grouped = select.args.get("group") is not None or any(_aggregates(select))
    distinct = select.args.get("distinct")
    if select.args.get("laterals") and (grouped or windows or distinct):
        raise NoRuleError("it has a LATERAL VIEW beside groups, windows or DISTINCT; name the query with the view in a WITH")
    if (grouped or windows or distinct) and any(one.find(exp.Explode, exp.Posexplode) for one in select.expressions):
        raise NoRuleError("it makes rows of a value beside groups, windows or DISTINCT; name the query that makes them in a WITH")
    if distinct is not None:
        if distinct.args.get("on"):
            raise NoRuleError("it has DISTINCT ON")
        if grouped or windows:
            inner = select.copy()
            inner.set("distinct", None)
            return _distinct_over(_select(inner))
        return Keyed(block, tuple(one.unalias() for one in select.expressions))
    if grouped and windows:
        raise NoRuleError("it has groups and windows in one SELECT; name the groups in a WITH")
    if grouped:
        return Keyed(block, _group_keys(select, top=top), is_grouped=True)
    if windows:
        return Keyed(block, _window_keys(windows))
    return block


def _distinct_over(node: Node) -> Node:
    columns = [exp.alias_(exp.column(name, table="all_rows", quoted=True), name, quoted=True) for name in node.columns]
    # The rows that the select reads take the place of this query whenever it is written.
    place = aliased(exp.select("1"), "all_rows")
    block = Block(exp.select(*columns).from_(place).distinct(), (Input("all_rows", node),))
    return Keyed(block, tuple(one.unalias() for one in columns))


def _check_clauses(query: exp.Query, supported: "frozenset[str] | set[str]") -> None:
    for clause, value in query.args.items():
        if value and clause not in supported:
            raise NoRuleError(_WITHOUT_RULE.get(clause, f"it has a clause without a rule ({clause.strip('_').upper()})"))


def _inputs(select: exp.Select) -> list[Input]:
    inputs = [_input(select.args["from_"].this)]
    for join in select.args.get("joins") or ():
        kind, side = (join.args.get("kind") or "").upper(), (join.args.get("side") or "").upper()
        if (
            join.args.get("method")
            or join.args.get("using")
            or side in ("RIGHT", "FULL")
            or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")
        ):
            words = " ".join(filter(None, (join.args.get("method"), side, kind)))
            raise NoRuleError(f"it has a {words} JOIN, for which there is no rule")
        joined_input = _input(join.this)
        if side == "LEFT" or kind in ("SEMI", "ANTI"):
            word = {"SEMI": "a SEMI", "ANTI": "an ANTI"}.get(kind, "an outer")
            joined_input = replace(joined_input, equalities=_equalities(join, [one.alias for one in inputs], word))
        inputs.append(joined_input)
    aliases = [one.alias for one in inputs]
    laterals = {alias.name for one in select.args.get("laterals") or () if (alias := one.args.get("alias")) is not None}
    for name, value in select.args.items():
        if name != "from_":
            _check_expressions(value, name, {*aliases, *laterals})
    return inputs


def _check_expressions(value: object, clause: str, aliases: set[str]) -> None:
    """Raises for subqueries in expressions, and for columns of a query around this one."""
    for part in value if isinstance(value, list) else [value]:
        expression = part.args.get("on") if clause == "joins" and isinstance(part, exp.Join) else part
        if not isinstance(expression, exp.Expr):
            continue
        if expression.find(exp.Query, exp.Subquery, exp.Exists) is not None:
            raise NoRuleError(NO_SUBQUERY)
        for column in expression.find_all(exp.Column):
            if column.table not in aliases:
                raise NoRuleError(f"{column.name} is not a column of the tables beside it")


def _input(place: exp.Expr) -> Input:
    nested = isinstance(place, exp.Subquery) and isinstance(place.this, exp.Table)
    if nested or place.args.get("joins") or place.args.get("pivots") or place.args.get("sample"):
        raise NoRuleError("it has joins in parentheses, a PIVOT or a TABLESAMPLE")
    if isinstance(place, exp.Subquery):
        return Input(place.alias_or_name, build(place.this, top=False))
    number = place.name.removeprefix(PREFIX)
    if not isinstance(place, exp.Table) or number == place.name or not number.isdecimal():
        raise NoRuleError(f"it reads {place.sql()}, which is no managed table")
    return Input(place.alias_or_name, int(number))


def _equalities(join: exp.Join, before: Sequence[str], word: str) -> tuple[Equality, ...]:
    alias, equalities = join.this.alias_or_name, []
    for condition in conjuncts(join.args.get("on")):
        if isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
            for outer, inner in ((condition.left, condition.right), (condition.right, condition.left)):
                if _tables(inner) == {alias} and (tables := _tables(outer)) and tables <= set(before):
                    equalities.append(Equality(outer, inner, type(condition)))
                    break
    if not equalities:
        raise NoRuleError(f"it has {word} JOIN without an equality between its sides")
    return tuple(equalities)


def _tables(expression: exp.Expr) -> set[str]:
    return {column.table for column in expression.find_all(exp.Column)}


def _own_parts(select: exp.Select) -> list[exp.Expr]:
    """The parts that a query computes itself, without the queries in its FROM."""
    return [*select.expressions, *(select.args[name] for name in ("having", "qualify") if select.args.get(name) is not None)]


def _aggregates(select: exp.Select) -> list[exp.Expr]:
    functions = (one for part in _own_parts(select) for one in part.find_all(exp.AggFunc))
    return [one for one in functions if is_aggregate(one) and one.find_ancestor(exp.Window) is None]


def _group_keys(select: exp.Select, *, top: bool) -> tuple[exp.Expr, ...]:
    group = select.args.get("group")
    if group is None or (not group.expressions and not any(group.args.values())):
        if not top:
            raise NoRuleError("a part of it aggregates all rows in one group, on which all that reads it depends")
        return ()
    if {name for name, value in group.args.items() if value} != {"expressions"} or group.find(
        exp.Rollup, exp.Cube, exp.GroupingSets
    ):
        raise NoRuleError("it has GROUP BY ALL, ROLLUP, CUBE or GROUPING SETS")
    return tuple(group.expressions)


def _window_keys(windows: Sequence[exp.Window]) -> tuple[exp.Expr, ...]:
    common = {key.sql(): key for key in windows[0].args.get("partition_by") or ()}
    for window in windows:
        if window.args.get("alias") is not None and not isinstance(window.this, exp.Func):
            raise NoRuleError(_WITHOUT_RULE["windows"])
        texts = {key.sql() for key in window.args.get("partition_by") or ()}
        common = {text: key for text, key in common.items() if text in texts}
    if not common:
        raise NoRuleError("it has a window over all rows: no PARTITION BY that its windows share")
    return tuple(common.values())
