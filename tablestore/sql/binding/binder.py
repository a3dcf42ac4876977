"""Binds a query: finds the column that each name stands for, and the type that each expression has in Spark.

From the bottom up, each part once: a query gives its columns to the scope of the one that reads it, an expression has the type that
Spark's rule makes of those of its operands (``functiontypes``), and a set operation widens. Nothing is found by looking for a name
anywhere else in the tree, so it takes time in proportion to the query.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from sqlglot import exp

from tablestore.sql.binding.coercion import common, literal
from tablestore.sql.binding.functiontypes import NAMED, RESULTS, element
from tablestore.sql.binding.scopes import Columns, Meaning, Scope, ScopedTable
from tablestore.sql.binding.signatures import Signature, arguments_of, function_name
from tablestore.sql.binding.sqltypes import BIGINT, BOOLEAN, INT, STRING, Type, array
from tablestore.sql.query.dialect import GENERATORS, STACK

_NO_EXPRESSIONS = (exp.DataType, exp.Identifier, exp.Var, exp.TableAlias, exp.Hint, exp.Pivot)


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound tree, which may not change before its types have been asked for.

    ``columns`` of queries and of what FROM reads; None where they are not known. ``of`` an expression of the tree.
    """

    _types: Mapping[int, Type]
    _columns: Mapping[int, Columns | None]
    _meanings: Mapping[int, Meaning]

    def of(self, node: exp.Expr) -> Type:
        """The type of an expression."""
        return self._types.get(id(node))

    def columns(self, query: exp.Expr) -> Columns | None:
        """The names and types of the columns of a query."""
        return self._columns.get(id(query))

    def meaning(self, name: exp.Column) -> Meaning | None:
        """The meaning of a name; None where it stands in no expression."""
        return self._meanings.get(id(name))


def bind_types(
    tree: exp.Expr,
    tables: Mapping[str, Columns | None],
    *,
    functions: Mapping[str, Type] | None = None,
    parameters: Mapping[str, Type] | None = None,
    signatures: Mapping[str, Signature] | None = None,
) -> Bound:
    """Binds a query. ``tables``: the columns of tables by their names in small letters; ``functions``: the types that functions of
    the user's give, by their names; ``parameters``: the types of parameters, by their names; ``signatures``: the types of Spark's
    functions that the engine has rules for, by their names in small letters."""
    binder = _Binder(tables, functions or {}, parameters or {}, signatures or {})
    binder.query(tree, Scope())
    return Bound(binder.types, binder.columns, binder.meanings)


def tables_of_others(tree: exp.Expr, tables: Mapping[str, Columns | None]) -> Iterator[exp.Table]:
    """The tables of a query that are neither in ``tables``, nor queries of a WITH in whose scope they stand, nor calls."""
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Func) and _full_name(table) not in tables and query_of_with(table) is None:
            yield table


def query_of_with(table: exp.Table) -> exp.CTE | None:
    """The query of a WITH that a table stands for, as DuckDB binds names; None if it stands for none.

    A query sees those before it, also in a WITH that is RECURSIVE: there it sees itself too, in what follows its UNION. Letters
    beside ASCII have one case: DuckDB takes what it does not know for the name of a file, so nothing else may count as known.
    """
    name = _in_small_ascii(table.name)
    path: list[exp.Expr] = [table]
    node = table.parent
    while node is not None and not table.db:
        before: Sequence[exp.Expr] = ()
        if isinstance(node, exp.With):
            position = next(at for at, query in enumerate(node.expressions) if query is path[-1])
            sees_itself = node.args.get("recursive") and _is_behind_union(path)
            before = node.expressions[: position + 1 if sees_itself else position]
        elif (clause := node.args.get("with_")) is not None and clause is not path[-1]:
            before = clause.expressions
        for query in before:
            if _in_small_ascii(query.alias) == name:
                return cast(exp.CTE, query)
        path.append(node)
        node = node.parent
    return None


def _is_behind_union(path: Sequence[exp.Expr]) -> bool:
    """True if a path up to a query of a WITH comes from the second part of its UNION."""
    return len(path) > 2 and isinstance(path[-2], exp.Union) and path[-2].expression is path[-3]


def _in_small_ascii(name: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in name)


@dataclass(slots=True)
class _Binder:
    tables: Mapping[str, Columns | None]
    functions: Mapping[str, Type]
    parameters: Mapping[str, Type]
    signatures: Mapping[str, Signature]
    types: dict[int, Type] = field(default_factory=dict)
    columns: dict[int, Columns | None] = field(default_factory=dict)
    meanings: dict[int, Meaning] = field(default_factory=dict)

    def query(self, node: exp.Expr, outer: Scope) -> Columns | None:
        """The columns of a query, or of what stands in FROM."""
        if node.args.get("with_") is not None:
            outer = self._with(node.args["with_"], outer)
        columns = _renamed(node, self._pivoted(node, self._query(node, outer), outer))
        self.columns[id(node)] = columns
        return columns

    def _query(self, node: exp.Expr, outer: Scope) -> Columns | None:
        match node:
            case exp.Select():
                return self._select(node, outer)
            case exp.SetOperation():
                columns = self._set_operation(node, outer)
                self._rest(node, {"this", "expression", "with_"}, _over(columns, outer))
                return columns
            case exp.Subquery():
                columns = self._inner(node, outer)
                self._rest(node, {"this", "with_", "joins"}, _over(columns, outer))
                return columns
            case exp.Values():
                return self._written(node, outer)
            case exp.Table():
                return self._table(node, outer)
            case exp.Lateral():
                return self._generated(node, outer)
            case _:
                self._children(node, outer)
                return None

    def _with(self, clause: exp.Expr, outer: Scope) -> Scope:
        columns_by_name: dict[str, Columns | None] = {}
        scope = Scope(outer, common=columns_by_name)
        for query in clause.expressions:
            name, inner = query.alias.casefold(), query.this
            if clause.args.get("recursive") and isinstance(inner, exp.SetOperation):
                # The rows of itself that it reads have the types of the query that it begins with.
                columns_by_name[name] = _renamed(query, self.query(inner.left, scope))
            columns_by_name[name] = _renamed(query, self.query(inner, scope))
            self.columns[id(query)] = columns_by_name[name]
        return scope

    def _set_operation(self, node: exp.SetOperation, outer: Scope) -> Columns | None:
        left = self.columns[id(node.left)] if id(node.left) in self.columns else self.query(node.left, outer)
        right = self.query(node.right, outer)
        if left is None or right is None:
            return None
        if node.args.get("by_name"):
            theirs = {name.casefold(): kind for name, kind in right}
            ours = {name.casefold() for name, _ in left}
            widened = [(name, common((kind, theirs.get(name.casefold(), kind)))) for name, kind in left]
            return [*widened, *((name, kind) for name, kind in right if name.casefold() not in ours)]
        if len(left) != len(right):
            return None
        return [(name, common((kind, other))) for (name, kind), (_, other) in zip(left, right, strict=True)]

    def _inner(self, node: exp.Subquery, outer: Scope) -> Columns | None:
        """The columns of what stands in parentheses: a query, or joined tables."""
        is_joined = not isinstance(node.this, exp.Query) or (isinstance(node.this, exp.Subquery) and node.this.args.get("joins"))
        if not is_joined:
            return self.query(node.this, outer)
        scope = Scope(outer)
        self._read(node.this, scope)
        self._join(node.this.args.get("joins") or (), scope)
        return scope.star()

    def _written(self, node: exp.Values, outer: Scope) -> Columns:
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
        types = [[self.expression(value, outer) for value in row] for row in rows]
        return [(f"col{place}", common(column)) for place, column in enumerate(zip(*types, strict=False), 1)]

    def _table(self, node: exp.Table, outer: Scope) -> Columns | None:
        if not isinstance(node.this, exp.Identifier):
            self._children(node.this, outer)
            return self._of_generator(node.this)
        if not node.db:
            is_common, columns = outer.common_query(node.name.casefold())
            if is_common:
                return columns
        return self.tables.get(_full_name(node))

    def _generated(self, node: exp.Lateral, outer: Scope) -> Columns | None:
        if isinstance(node.this, exp.Query):
            return self.query(node.this, outer)
        self._children(node.this, outer)
        return self._of_generator(node.this)

    def _of_generator(self, function: exp.Expr) -> Columns | None:
        """The columns of a function that gives rows."""
        signature = self.signatures.get(function_name(function) or "")
        if signature is not None and signature.columns is not None:
            arguments = arguments_of(function)
            return signature.columns([self.types.get(id(one)) for one in arguments], arguments)
        operand = self.types.get(id(function.this)) if isinstance(function.this, exp.Expr) else None
        match function:
            case exp.Anonymous() if str(function.this).lower() == "range":
                return [("id", BIGINT)]
            case exp.Posexplode() | exp.Explode():
                place = [("pos", INT)] if isinstance(function, exp.Posexplode) else []
                if operand is not None and operand.name == "map":
                    return [*place, *zip(("key", "value"), operand.parts, strict=True)]
                return [*place, ("col", element(operand))]
            case exp.Inline():
                row = element(operand)
                return list(zip(row.fields, row.parts, strict=True)) if row is not None and row.name == "struct" else None
            case _:
                return None

    def _select(self, node: exp.Select, outer: Scope) -> Columns | None:
        scope = Scope(outer, query=node)
        if (start := node.args.get("from_")) is not None:
            self._read(start.this, scope)
            self._join(start.this.args.get("joins") or (), scope)
        self._join(node.args.get("joins") or (), scope)
        for lateral in node.args.get("laterals") or ():
            self._read(lateral, scope)
        columns = self._selected(node, scope)
        ordered = _over(columns, scope, names=scope.aliases)
        for key in _AFTER:
            if isinstance(part := node.args.get(key), exp.Expr):
                self._children(part, ordered)
        self._rest(node, {"from_", "joins", "laterals", "expressions", "with_", *_AFTER}, scope)
        return columns

    def _read(self, node: exp.Expr, scope: Scope) -> None:
        """The source that an item of FROM is. The item sees those before it."""
        columns = self.query(node, scope)
        name = node.alias_or_name if not isinstance(node.this, exp.Func) else node.alias
        scope.sources.append(ScopedTable(name.casefold(), columns))

    def _join(self, joins: Iterable[exp.Join], scope: Scope) -> None:
        for join in joins:
            before = list(scope.sources)
            self._read(join.this, scope)
            self._join(join.this.args.get("joins") or (), scope)
            using = [name.name.casefold() for name in join.args.get("using") or ()]
            if join.method == "NATURAL":
                ours = {name.casefold() for one in before for name, _ in one.columns or ()}
                using = [name.casefold() for name, _ in scope.sources[-1].columns or () if name.casefold() in ours]
            for name in using:
                left = scope.joined.get(name) or next((kind for one in before for kind in one.types(name)), None)
                right = next(iter(scope.sources[-1].types(name)), None)
                side = join.side
                scope.joined[name] = right if side == "RIGHT" else common((left, right)) if side == "FULL" else left
            if join.kind in ("SEMI", "ANTI"):
                self._rest(join, {"this", "using"}, scope)
                del scope.sources[len(before) :]
            else:
                self._rest(join, {"this", "using"}, scope)

    def _selected(self, node: exp.Select, scope: Scope) -> Columns | None:
        columns: list[tuple[str, Type]] = []
        is_known = True
        for one in node.expressions:
            item_columns = self._columns_of(one, scope)
            is_known &= item_columns is not None
            columns += item_columns or ()
            if isinstance(one, exp.Alias):
                scope.aliases[one.alias.casefold()] = self.types.get(id(one))
        return columns if is_known else None

    def _columns_of(self, item: exp.Expr, scope: Scope) -> Columns | None:
        """The columns that an item of a SELECT's list stands for."""
        if item.is_star:
            star = item.this if isinstance(item, exp.Column) else item
            replaced = {part.alias.casefold(): self.expression(part, scope) for part in star.args.get("replace") or ()}
            left_out = {part.name.casefold() for part in star.args.get("except_") or ()}
            columns = scope.star(item.table.casefold() if isinstance(item, exp.Column) else "")
            if columns is None or star.args.get("rename"):
                return None
            return [(name, replaced.get(name.casefold(), kind)) for name, kind in columns if name.casefold() not in left_out]
        kind = self.expression(item, scope)
        inner = item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item
        if isinstance(inner, (exp.Explode, exp.Posexplode, exp.Inline, STACK)) or function_name(inner) in GENERATORS:
            columns = self._of_generator(inner)
            names = [part.name for part in item.expressions] if isinstance(item, exp.Aliases) else []
            names = [item.alias] if isinstance(item, exp.Alias) else names
            if columns is None or (names and len(names) != len(columns)):
                return columns
            return [(name, kind) for name, (_, kind) in zip(names, columns, strict=True)] if names else columns
        return [(item.alias_or_name, kind)]

    def _pivoted(self, node: exp.Expr, columns: Columns | None, outer: Scope) -> Columns | None:
        """The columns of a table behind its PIVOT or UNPIVOT."""
        for pivot in node.args.get("pivots") or ():
            scope = _over(columns, outer)
            self._children(pivot, scope)
            alias = pivot.args.get("alias")
            columns = _unpivoted(pivot, columns) if pivot.args.get("unpivot") else self._aggregated(pivot, columns)
            if columns is not None and isinstance(alias, exp.TableAlias) and alias.columns:
                columns = [(name.name, kind) for name, (_, kind) in zip(alias.columns, columns, strict=False)]
        return columns

    def _aggregated(self, pivot: exp.Pivot, columns: Columns | None) -> Columns | None:
        """The columns of a PIVOT: those that it neither aggregates nor pivots by, and a column for each aggregate of each value."""
        if columns is None or len(pivot.args.get("fields") or ()) != 1:
            return None
        used = {column.name.casefold() for column in pivot.find_all(exp.Column)}
        kinds = [self.types.get(id(one)) for one in pivot.expressions]
        pivot_names = [name.name for name in pivot.args.get("columns") or ()]
        kept = [(name, kind) for name, kind in columns if name.casefold() not in used]
        return [*kept, *((name, kinds[place % len(kinds)]) for place, name in enumerate(pivot_names))]

    def expression(self, node: exp.Expr, scope: Scope) -> Type:
        """The type of an expression, and of all that is inside it."""
        kind = self._typed(node, scope)
        self.types[id(node)] = kind
        return kind

    def _typed(self, node: exp.Expr, scope: Scope) -> Type:
        if (signature := self.signatures.get(function_name(node) or "")) is not None:
            return self._of_signature(node, signature, scope)
        match node:
            case exp.Column():
                if isinstance(node.this, exp.Star):
                    return None
                meaning = self.meanings[id(node)] = scope.column(node)
                return meaning.type
            case exp.Star():
                self.columns[id(node)] = scope.star()
            case exp.Identifier():
                return scope.variable(node.name.casefold())
            case exp.Literal():
                return STRING if node.is_string else literal(str(node.this))
            case exp.Query():
                columns = self.query(node, scope)
                return columns[0][1] if columns is not None and len(columns) == 1 else None
            case exp.Placeholder() | exp.Parameter():
                return self.parameters.get(node.name)
            case exp.Transform() | exp.ArrayFilter() | exp.ArraySort() | exp.Exists() | exp.Reduce():
                return self._with_lambdas(node, scope)
        self._children(node, scope)
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            rule = NAMED.get(name)
            return rule(node, self._known_type) if rule is not None else self.functions.get(name)
        rule = RESULTS.get(type(node))
        return rule(node, self._known_type) if rule is not None else None

    def _of_signature(self, node: exp.Expr, signature: Signature, scope: Scope) -> Type:
        """The type of a call that a rule is there for, whose lambdas come behind the values that they are applied to."""
        arguments, types = arguments_of(node), list[Type]()
        for place, argument in enumerate(arguments):
            if isinstance(argument, exp.Lambda) and signature.variables is not None:
                types.append(self._applied(argument, signature.variables(place, types), scope))
                self.types[id(argument)] = types[-1]
            else:
                types.append(self.expression(argument, scope))
        return signature.result(types, arguments)

    def _with_lambdas(self, node: exp.Expr, scope: Scope) -> Type:
        """The type of a function that takes lambdas, whose variables have the types of what they stand for."""
        operand = self.expression(node.this, scope)
        if isinstance(node, exp.Reduce):
            initial = self.expression(node.args["initial"], scope)
            self._applied(node.args.get("merge"), (initial, element(operand)), scope)
            finish = node.args.get("finish")
            return initial if finish is None else self._applied(finish, (initial,), scope)
        places = (element(operand), element(operand) if isinstance(node, exp.ArraySort) else INT)
        result = self._applied(node.args.get("expression"), places, scope)
        match node:
            case exp.Transform():
                return array(result)
            case exp.Exists():
                return BOOLEAN
            case _:
                return operand

    def _applied(self, function: exp.Expr | None, values: Iterable[Type], scope: Scope) -> Type:
        """The type that a function gives for values."""
        if not isinstance(function, exp.Lambda):
            return None if function is None else self.expression(function, scope)
        names = [name.name.casefold() for name in function.expressions]
        return self.expression(function.this, Scope(scope, variables=dict(zip(names, values, strict=False))))

    def _known_type(self, node: exp.Expr) -> Type:
        return self.types.get(id(node))

    def _rest(self, node: exp.Expr, done: Iterable[str], scope: Scope) -> None:
        """Binds the clauses that are not bound yet."""
        for key, value in node.args.items():
            if key not in done:
                for part in value if isinstance(value, list) else (value,):
                    if isinstance(part, exp.Expr) and not isinstance(part, _NO_EXPRESSIONS):
                        self.expression(part, scope)

    def _children(self, node: exp.Expr, scope: Scope) -> None:
        for part in node.iter_expressions():
            if not isinstance(part, _NO_EXPRESSIONS) or _is_variable(part, node):
                self.expression(part, scope)


def _full_name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts).casefold()


# Clauses in which an alias comes before a column.
_AFTER = ("order", "cluster", "sort", "distribute")


def _is_variable(part: exp.Expr, node: exp.Expr) -> bool:
    """True if a bare name is the variable of a lambda, for which sqlglot has no column."""
    if isinstance(node, exp.PropertyEQ):
        return isinstance(part, exp.Identifier) and part.arg_key == "expression"
    return isinstance(part, exp.Identifier) and not (
        part.arg_key == "alias" or (isinstance(node, exp.Dot) and part.arg_key == "expression") or isinstance(node, _NAMES)
    )


_NAMES = (exp.Column, exp.Table, exp.TableAlias, exp.Alias, exp.PivotAlias, exp.Pivot, exp.Interval, exp.Aliases)


def _over(columns: Columns | None, outer: Scope, names: Mapping[str, Type] | None = None) -> Scope:
    """The scope behind a query, in which its columns come before what it reads."""
    if columns is None:
        return Scope(outer, aliases=dict(names)) if names is not None else Scope(outer, sources=[ScopedTable("", None)])
    return Scope(outer, sources=[ScopedTable("", columns)])


def _unpivoted(pivot: exp.Pivot, columns: Columns | None) -> Columns | None:
    """The columns of an UNPIVOT: those that are left, the name and the value."""
    fields = list(pivot.args.get("fields") or ())
    if columns is None or len(fields) != 1 or len(pivot.expressions) != 1 or isinstance(pivot.expressions[0], exp.Tuple):
        return None
    among = fields[0]
    unpivoted_names = {column.name.casefold() for column in among.find_all(exp.Column)}
    value = common(kind for name, kind in columns if name.casefold() in unpivoted_names)
    kept = [(name, kind) for name, kind in columns if name.casefold() not in unpivoted_names]
    return [*kept, (among.this.name, STRING), (pivot.expressions[0].name, value)]


def _renamed(node: exp.Expr, columns: Columns | None) -> Columns | None:
    alias = node.args.get("alias")
    names = alias.columns if isinstance(alias, exp.TableAlias) else []
    if columns is None or not names:
        return columns
    return [(name.name, kind) for name, (_, kind) in zip(names, columns, strict=False)]
