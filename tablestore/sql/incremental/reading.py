"""Reads the text of a query into a tree in which every column says where it comes from.

names of tables      tablestore_relation_0, …: one for each source, whatever the query calls it
stars, USING, aliases, numbers in GROUP BY      written out
WITH                 its queries stand in the places of their names
IN (SELECT …), EXISTS (SELECT …)      LEFT SEMI JOIN, NOT EXISTS a LEFT ANTI JOIN
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from tablestore.sql.depth import deep
from tablestore.sql.incremental.determinism import check_deterministic
from tablestore.sql.incremental.shapes import PREFIX, NoRuleError, SourceShape
from tablestore.sql.query.dialect import Spark4
from tablestore.sql.query.edits import prefix_edits, quote_name, relation_edits
from tablestore.sql.query.sparktypes import spark_type
from tablestore.sql.query.tablereferences import references_in
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import apply_edits

NO_SUBQUERY = "it has a subquery in an expression that is no IN or EXISTS of its WHERE"


def read_query(text: str, source_of: Sequence[int], sources: Sequence[SourceShape]) -> exp.Query:
    """The tree of a query. ``source_of``: the source that each of its table references reads. Raises NoRuleError."""
    if "|>" in text:
        raise NoRuleError("it has pipes (|>)")
    schema: dict[str, object] = {f"{PREFIX}{number}": _columns(source) for number, source in enumerate(sources)}
    with deep():
        try:
            tree = sqlglot.parse_one(_named(text, source_of, sources), read=Spark4)
            check_deterministic(tree)
            _check_joins(tree)
            tree = qualify(tree, dialect=Spark4, schema=schema, expand_stars=True)
        except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise NoRuleError("its text is not understood by the planner of incremental refreshes") from error
        if not isinstance(tree, exp.Query):
            raise NoRuleError("it is no query of SELECT and UNION")
        tree = _without_with(tree, {})
        numbers = count()
        for select in list(tree.find_all(exp.Select)):
            _join_subqueries(select, numbers)
        return tree


def _check_joins(query: exp.Expr) -> None:
    """Raises NoRuleError for USING behind a join after which a column of that name is none of one table."""
    for select in query.find_all(exp.Select):
        outer = ""
        for join in select.args.get("joins") or ():
            if outer and (join.args.get("using") or join.method):
                raise NoRuleError(f"it has a JOIN with USING, or a NATURAL one, behind a {outer} JOIN; write its condition with ON")
            outer = outer or (join.side.upper() if join.side.upper() in ("RIGHT", "FULL") else "")


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions that AND combines."""
    if isinstance(condition, exp.Where):
        condition = condition.this
    if isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    elif condition is not None:
        yield condition


def _columns(source: SourceShape) -> dict[str, str]:
    folded = {field.name.lower() for field in source.fields}
    if len(folded) < len(source.fields):
        raise NoRuleError(f"{source.name} has columns whose names are equal but for their case")
    return {quote_name(field.name): spark_type(field.type) for field in source.fields}


def _named(text: str, source_of: Sequence[int], sources: Sequence[SourceShape]) -> str:
    tokens = Tokens(text)
    references = references_in(tokens)
    for reference, number in zip(references, source_of, strict=True):
        if reference.time_travel is not None or reference.options or reference.call is not None:
            raise NoRuleError(f"it reads {sources[number].name} as of a snapshot, or its changes")
        if reference.sampled:
            raise NoRuleError("it has a TABLESAMPLE")
    edits = [edit for place, reference in enumerate(references) for edit in relation_edits(reference, place)]
    paths = [(reference, tuple(sources[number].name.split("."))) for reference, number in zip(references, source_of, strict=True)]
    edits += prefix_edits(tokens, references, paths)
    return apply_edits(text, sorted(edits, key=lambda edit: edit.span), lambda place: f"{PREFIX}{source_of[place]}")


def _without_with(query: exp.Query, bound: Mapping[str, exp.Query]) -> exp.Query:
    """The query with the queries of its WITH, and the ``bound`` ones, in the places of their names."""
    clause = query.args.get("with_")
    if clause is not None:
        if clause.args.get("recursive"):
            raise NoRuleError("it has a recursive WITH")
        clause.pop()
        queries = dict(bound)
        for item in clause.expressions:
            queries[item.alias] = _without_with(item.this, queries)
        bound = queries
    for table in list(query.find_all(exp.Table)):
        inner = table.find_ancestor(exp.Query)
        while inner is not None and inner is not query and inner.args.get("with_") is None:
            inner = inner.find_ancestor(exp.Query)
        # Names in a query with a WITH of its own are left to that.
        if inner is query and not table.db and table.name in bound:
            table.replace(bound[table.name].copy().subquery(table.alias_or_name, copy=False))
    for nested in list(query.find_all(exp.Query)):
        if nested is not query and nested.args.get("with_") is not None:
            nested.replace(_without_with(nested.copy(), bound))
    return query


def _join_subqueries(select: exp.Select, numbers: Iterator[int]) -> None:
    """Makes joins of the conditions IN and EXISTS of a WHERE."""
    where = select.args.get("where")
    kept: list[exp.Expr] = []
    for condition in list(conjuncts(where)):
        kind, inner = ("ANTI", condition.this) if isinstance(condition, exp.Not) else ("SEMI", condition)
        name = f"tablestore_sub_{next(numbers)}"
        if isinstance(inner, exp.In) and inner.args.get("query") is not None and kind == "SEMI":
            select.append("joins", _in_join(inner, name))
        elif isinstance(inner, exp.Exists):
            select.append("joins", _exists_join(inner, kind, name))
        else:
            kept.append(condition)
    if where is not None and len(kept) < len(list(conjuncts(where))):
        select.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)


def _in_join(condition: exp.In, name: str) -> exp.Join:
    query = condition.args["query"].this
    left = condition.this.expressions if isinstance(condition.this, exp.Tuple) else [condition.this]
    right = [exp.column(column, table=name, quoted=True) for column in query.named_selects]
    if len(left) != len(right):
        raise NoRuleError("an IN (SELECT …) has another number of columns than values")
    on = exp.and_(*(exp.EQ(this=value, expression=column) for value, column in zip(left, right, strict=True)), copy=False)
    return exp.Join(this=query.subquery(name, copy=False), side="LEFT", kind="SEMI", on=on)


def _exists_join(condition: exp.Exists, kind: str, name: str) -> exp.Join:
    query = condition.this
    plain = isinstance(query, exp.Select) and not query.args.get("joins")
    extra = {key for key, value in query.args.items() if value} - {"expressions", "from_", "where", "distinct"}
    if not plain or extra or query.args.get("from_") is None:
        raise NoRuleError("an EXISTS reads more than the rows of one table by a condition")
    source, where = query.args["from_"].this, query.args.get("where")
    if where is None:
        raise NoRuleError("an EXISTS has no equality between its rows and those outside")
    alias = source.alias_or_name
    for column in where.find_all(exp.Column):
        if column.table == alias:
            column.set("table", exp.to_identifier(name, quoted=True))
    source.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    return exp.Join(this=source, side="LEFT", kind=kind, on=where.this)
