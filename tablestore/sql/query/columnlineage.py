"""Finds the columns that each column of a query is from, through views, subqueries, WITH, unions and ``*``.

    SELECT id, sum(price) AS s FROM (SELECT * FROM t WHERE day > 1) GROUP BY id
        id   t.id IDENTITY              rows   t.day FILTER, t.id GROUP_BY
        s    t.price AGGREGATION

A column whose sources are in doubt is left out: one of a generator, of a table whose columns are not known, of syntax that sqlglot
does not resolve. Nothing here refuses a query. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp, parse_one
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from tablestore.sql.depth import deep
from tablestore.sql.query.dialect import Spark4
from tablestore.sql.sqldialect import SqlDialect
from tablestore.telemetry.lineage import ColumnSources, ColumnUse, How, LineageDataset

_TABLE = "tablestore_lineage_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable:
    """A table that a query reads; ``dataset`` None: rows that are nobody's. ``columns``: all of its names; empty: not known."""

    dataset: LineageDataset | None
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQuery:
    """A query whose relations are called ``prefix`` and their number in its text; in the place of a view stands its query."""

    text: str
    prefix: str
    dialect: SqlDialect
    relations: "tuple[ReadTable | ReadQuery, ...]"


def column_lineage(query: ReadQuery, columns: Sequence[str], names: Sequence[str] | None = None) -> ColumnSources:
    """The sources of those of the query's columns that are among ``columns``, whatever their case. ``names``: what its columns are
    called, in order, in place of their own names."""
    try:
        with deep():
            return _Search().of(query, columns, names)
    except Exception:
        # sqlglot raises what it likes on what it does not know.
        return ColumnSources()


class _DoubtError(Exception):
    """Signals a column whose sources are not known."""


_Uses = dict[ColumnUse, None]
"""Uses in the order in which they were found, each once."""
_DIRECT = (How.IDENTITY, How.TRANSFORMATION, How.AGGREGATION)
_PARTS = (("where", How.FILTER), ("having", How.FILTER), ("qualify", How.FILTER), ("group", How.GROUP_BY), ("order", How.SORT))


@dataclass(slots=True)
class _Search:
    tables: dict[str, ReadTable] = field(default_factory=dict)
    outputs: dict[int, Mapping[str, _Uses | None]] = field(default_factory=dict)

    def of(self, query: ReadQuery, columns: Sequence[str], names: Sequence[str] | None) -> ColumnSources:
        tree = self._tree(query)
        schema: dict[str, object] = {
            name: dict.fromkeys(table.columns, "unknown") for name, table in self.tables.items() if table.columns
        }
        dialect = Spark4 if query.dialect is SqlDialect.SPARK else str(query.dialect)
        tree = qualify(
            tree, schema=schema, dialect=dialect, quote_identifiers=False, identify=False, validate_qualify_columns=False
        )
        scope = build_scope(tree)
        if scope is None:
            return ColumnSources()
        by_name = {name.casefold(): uses for name, uses in self._output(scope).items()}
        if names is not None:
            if len(by_name) != len(names):
                return ColumnSources()
            by_name = {name.casefold(): uses for name, uses in zip(names, by_name.values(), strict=True)}
        rows: _Uses = {}
        for one in scope.traverse():
            rows |= dict.fromkeys(self._rows_of(one))
        return ColumnSources(
            columns={name: tuple(uses) for name in columns if (uses := by_name.get(name.casefold()))}, rows=tuple(rows)
        )

    def _tree(self, query: ReadQuery) -> exp.Expr:
        """The tree of a query, with names of their own for its tables and the queries of its views in their place."""
        tree = parse_one(query.text, read=Spark4 if query.dialect is SqlDialect.SPARK else str(query.dialect))
        for table in list(tree.find_all(exp.Table)):
            number = table.name.removeprefix(query.prefix)
            if not table.name.startswith(query.prefix) or not number.isdecimal():
                continue
            relation = query.relations[int(number)]
            if isinstance(relation, ReadTable):
                name = f"{_TABLE}{len(self.tables)}"
                self.tables[name] = relation
                table.set("this", exp.to_identifier(name))
            else:
                rest = {key: value for key, value in table.args.items() if key in ("joins", "pivots", "sample") and value}
                alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
                view = exp.Subquery(this=self._tree(relation), alias=alias, **rest)
                if table is tree:
                    return view
                table.replace(view)
        return tree

    def _output(self, scope: Scope) -> Mapping[str, _Uses | None]:
        """The uses of each column of a query, in order; None: in doubt."""
        if id(scope) not in self.outputs:
            self.outputs[id(scope)] = self._output_of(scope)
        return self.outputs[id(scope)]

    def _output_of(self, scope: Scope) -> Mapping[str, _Uses | None]:
        expression = scope.expression
        if isinstance(expression, exp.SetOperation):
            left, right = (self._output(one) for one in _sides(scope))
            if len(left) != len(right):
                raise _DoubtError
            pairs = zip(left.items(), right.values(), strict=True)
            return {name: None if uses is None or more is None else uses | more for (name, uses), more in pairs}
        if not isinstance(expression, exp.Select):
            raise _DoubtError
        output: dict[str, _Uses | None] = {}
        for projection in expression.selects:
            if projection.is_star or not projection.alias_or_name or projection.alias_or_name in output:
                raise _DoubtError
            try:
                output[projection.alias_or_name] = dict.fromkeys(self._uses(scope, projection.unalias()))
            except _DoubtError:
                output[projection.alias_or_name] = None
        return output

    def _uses(self, scope: Scope, node: exp.Expr, how: How = How.IDENTITY) -> Iterator[ColumnUse]:
        """The uses of columns in an expression."""
        match node:
            case exp.Column():
                yield from (ColumnUse(use.dataset, use.column, _through(how, use.how)) for use in self._column(scope, node))
            case exp.Paren() | exp.Alias():
                yield from self._uses(scope, node.this, how)
            case exp.Query():
                yield from self._of_subquery(scope, node, how)
            case exp.If():
                yield from self._uses(scope, node.this, _through(How.CONDITIONAL, how))
                for branch in (node.args.get("true"), node.args.get("false")):
                    if branch is not None:
                        yield from self._uses(scope, branch, _through(how, How.TRANSFORMATION))
            case exp.Case():
                value = node.this
                for condition in node.args["ifs"]:
                    yield from self._uses(scope, condition, how)
                if value is not None:
                    yield from self._uses(scope, value, _through(How.CONDITIONAL, how))
                if (default := node.args.get("default")) is not None:
                    yield from self._uses(scope, default, _through(how, How.TRANSFORMATION))
            case exp.Window():
                yield from self._uses(scope, node.this, how)
                for part in (*(node.args.get("partition_by") or ()), node.args.get("order")):
                    if part is not None:
                        yield from self._uses(scope, part, How.WINDOW)
            case _:
                inner = How.AGGREGATION if isinstance(node, exp.AggFunc) else How.TRANSFORMATION
                for child in node.iter_expressions():
                    yield from self._uses(scope, child, _through(how, inner))

    def _column(self, scope: Scope, column: exp.Column) -> Iterator[ColumnUse]:
        name, around = column.table, scope
        while name not in around.sources:
            if around.parent is None:
                raise _DoubtError
            around = around.parent
        source = around.sources[name]
        if isinstance(source, Scope):
            output = self._output(source)
            uses = output.get(column.name, output.get(column.name.casefold()))
            if uses is None:
                raise _DoubtError
            yield from uses
            return
        table = self.tables.get(source.name) if isinstance(source, exp.Table) else None
        if table is None:
            raise _DoubtError
        written = next((one for one in table.columns if one.casefold() == column.name.casefold()), None)
        if written is None:
            raise _DoubtError
        if table.dataset is not None:
            yield ColumnUse(table.dataset, written, How.IDENTITY)

    def _of_subquery(self, scope: Scope, query: exp.Expr, how: How) -> Iterator[ColumnUse]:
        """The columns of a query in the place of a value, or of a list behind IN."""
        inner = next((one for one in scope.subquery_scopes if one.expression is query.unnest()), None)
        if inner is None:
            raise _DoubtError
        for uses in self._output(inner).values():
            if uses is None:
                raise _DoubtError
            yield from (ColumnUse(use.dataset, use.column, _through(how, _through(How.TRANSFORMATION, use.how))) for use in uses)

    def _rows_of(self, scope: Scope) -> Iterator[ColumnUse]:
        """The columns that decide which rows a query has, as far as they are known."""
        if not isinstance(scope.expression, exp.Select):
            return
        parts = [(scope.expression.args.get(name), how) for name, how in _PARTS]
        parts += [(join.args.get("on"), How.JOIN) for join in scope.expression.args.get("joins") or ()]
        for part, how in parts:
            if part is not None:
                try:
                    yield from tuple(self._uses(scope, part, how))
                except _DoubtError:
                    continue


def _sides(scope: Scope) -> Sequence[Scope]:
    """Both queries of a set operation; sqlglot 30.0 has them under another name than later versions."""
    name = "set_operation_scopes" if hasattr(scope, "set_operation_scopes") else "union_scopes"
    sides: Sequence[Scope] = getattr(scope, name)
    return sides


def _through(outer: How, inner: How) -> How:
    """The way of a column that goes ``inner`` into a value, which goes ``outer`` into another one."""
    for way in (outer, inner):
        if way not in _DIRECT:
            return way
    return max(outer, inner, key=_DIRECT.index)
