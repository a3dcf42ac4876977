"""Computes with floats as Spark does, where DuckDB does it in another way.

A FLOAT beside any other number is a DOUBLE in Spark, so ``f = 0.1`` compares 0.10000000149 with 0.1. DuckDB makes the other one a
FLOAT. Spark rounds a double by the decimal that it is written as: 1.005 to 1.01. DuckDB rounds 1.00499999999999989. A variance
of one NaN is 0 in DuckDB.

-0.0 equals 0.0 for both. Where equal rows become one Spark has 0.0 for both, also in arrays and structs, and DuckDB the one that it
finds first:

    SELECT DISTINCT f, UNION, INTERSECT, EXCEPT      a column of the result
    GROUP BY f                                       the key, wherever the query uses it outside of aggregates
    collect_set(f), array_agg(DISTINCT f)            an element
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from tablestore.sql.binding.binder import Bound
from tablestore.sql.binding.functiontypes import alternatives, round_digits, rounded
from tablestore.sql.binding.scopes import Columns
from tablestore.sql.binding.sqltypes import FLOAT, SqlType, Type
from tablestore.sql.duckdb.calls import (
    aggregate_of,
    as_decimal,
    call,
    refusal,
    unknown_operand,
    with_aggregate,
    without_sign_of_zero,
)
from tablestore.sql.duckdb.resultnames import sources
from tablestore.sql.duckdb.textnumbers import COMPARISONS

DOUBLE_TYPE = exp.DataType.build("DOUBLE")
ROUNDED = (exp.Round, exp.Floor, exp.Ceil)
_COMPARISONS = (*COMPARISONS, exp.Nullif)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div)
_CHOICES = (exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If, exp.Nvl2, exp.Array)
# From here on every double is a whole number.
_ALL_WHOLE = 2**53
_MOST_ROUNDED = 15
_AROUND_KEYS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_BESIDE_GROUPS = ("expressions", "having", "qualify", "order")


def widened_operands(node: exp.Expr, bound: Bound) -> Iterator[exp.Expr]:
    """The FLOAT operands of a node that Spark makes DOUBLE first."""
    if isinstance(node, _ARITHMETIC):
        sides = (node.this, node.expression)
        yield from _singles(sides, bound, always=isinstance(node, exp.Div))
    elif isinstance(node, _COMPARISONS):
        yield from _compared((node.this, node.expression), bound)
    elif isinstance(node, exp.Between):
        yield from _compared((node.this, node.args["low"], node.args["high"]), bound)
    elif isinstance(node, exp.In):
        among = node.args.get("query")
        # The column of a query is cast inside of it (``numbertypes``).
        operands = _compared((node.this, *([among] if among is not None else node.expressions)), bound)
        yield from (one for one in operands if one is not among)
    elif isinstance(node, _CHOICES):
        yield from _singles(alternatives(node), bound)
        if isinstance(node, exp.Case) and node.this is not None:
            yield from _compared((node.this, *(branch.this for branch in node.args["ifs"])), bound)


def _compared(parts: Sequence[exp.Expr], bound: Bound) -> list[exp.Expr]:
    """The operands of a comparison to widen. A FLOAT equals another FLOAT as DOUBLE too: one that is not known to be a FLOAT is
    enough."""
    singles = [part for part in parts if bound.of(part) == FLOAT]
    return singles if len(singles) < len(parts) else []


def _singles(parts: Sequence[exp.Expr], bound: Bound, *, always: bool = False) -> list[exp.Expr]:
    """The values that are FLOAT where another one is known to be another number."""
    types_by_id = {id(part): bound.of(part) for part in parts}
    has_other = any(kind is not None and kind.is_number and kind != FLOAT for kind in types_by_id.values())
    return [part for part in parts if types_by_id[id(part)] == FLOAT] if always or has_other else []


def spread_as_spark(node: exp.Expr) -> exp.Expr:
    """A variance or deviation, in its window and behind its filter: NaN where its only value is."""
    among = aggregate_of(node).this
    value = among.expressions[0] if isinstance(among, exp.Distinct) else among
    greatest = with_aggregate(node, exp.Max(this=exp.Cast(this=value.copy(), to=DOUBLE_TYPE.copy())))
    return exp.paren(exp.Add(this=node, expression=exp.Mul(this=exp.Literal.number(0), expression=greatest)))


def round_as_spark(node: exp.Round | exp.Floor | exp.Ceil, kind: Type) -> exp.Expr:
    """Writes ``round``, ``floor`` and ``ceil``. ``kind``: the type of the value that is rounded."""
    if not isinstance(node, exp.Round) and node.args.get("decimals") is not None:
        raise refusal(f"{node.sql_name().lower()} with digits")
    result_type = rounded(node, kind)
    if kind is None:
        raise unknown_operand(f"{node.sql_name().lower()}", node)
    if result_type is None:
        return node
    if result_type.is_decimal:
        return as_decimal(node, result_type)
    if isinstance(node, exp.Round):
        return _rounded_float(node, kind) if kind.is_float else node
    # DuckDB makes a whole number a double to take its floor.
    if kind.is_integer:
        return exp.cast(node.this, "BIGINT")
    is_nan = exp.If(this=exp.IsNan(this=node.this.copy()), true=exp.Literal.number(0))
    return exp.cast(exp.Case(ifs=[is_nan], default=node), "BIGINT")


def _rounded_float(node: exp.Round, kind: Type) -> exp.Expr:
    digits = round_digits(node)
    if digits is None or digits > _MOST_ROUNDED:
        raise refusal(f"round of a float to digits that are computed or more than {_MOST_ROUNDED}")
    if digits <= 0:
        return exp.cast(without_sign_of_zero(exp.cast(node, "DOUBLE")), "FLOAT") if kind == FLOAT else without_sign_of_zero(node)
    double = exp.Cast(this=node.this, to=DOUBLE_TYPE.copy()) if kind == FLOAT else node.this
    size = exp.Abs(this=double.copy())
    # The shortest text of a double has 17 digits: all of them fit in.
    branches = [
        exp.If(this=exp.LT(this=size.copy(), expression=exp.Literal.number(bound)), true=_rounded_text(double, scale, digits))
        for bound, scale in ((1, 37), (_ALL_WHOLE, 22))
    ]
    result = exp.Case(ifs=branches, default=double)
    return exp.Cast(this=result, to=exp.DataType.build("FLOAT")) if kind == FLOAT else result


def _rounded_text(double: exp.Expr, scale: int, digits: int) -> exp.Expr:
    text = exp.Cast(this=double.copy(), to=exp.DataType.build("TEXT"))
    decimal = exp.Cast(this=text, to=exp.DataType.build(f"DECIMAL(38, {scale})"))
    return exp.Cast(this=exp.Round(this=decimal, decimals=exp.Literal.number(digits)), to=DOUBLE_TYPE.copy())


def has_zeros(kind: Type) -> bool:
    """True if a type is a float, or an array or struct with one."""
    if kind is None or kind.name == "map":
        return False
    return kind.is_float or any(map(has_zeros, kind.parts))


def without_signs(value: exp.Expr, kind: SqlType, depth: int = 0) -> exp.Expr:
    """A value of a type with zeros in which none has a sign."""
    if kind == FLOAT:
        return exp.paren(exp.Add(this=value, expression=exp.cast(exp.Literal.number(0), "FLOAT")))
    if kind.is_float:
        return without_sign_of_zero(value)
    name = f"_zero{depth}"
    if kind.name == "array" and (element := kind.parts[0]) is not None:
        inside = without_signs(exp.column(name), element, depth + 1)
        return exp.Transform(this=value, expression=exp.Lambda(this=inside, expressions=[exp.to_identifier(name)]))
    # Its fields are taken from one value, however long its text is.
    fields = [_field(exp.column(name), field, part, depth) for field, part in zip(kind.fields, kind.parts, strict=True)]
    is_null = exp.Is(this=exp.column(name), expression=exp.null())
    row = exp.Case(ifs=[exp.If(this=is_null, true=exp.null())], default=exp.Struct(expressions=fields))
    rows = exp.Transform(
        this=exp.Array(expressions=[value]), expression=exp.Lambda(this=row, expressions=[exp.to_identifier(name)])
    )
    return call("LIST_EXTRACT", rows, exp.Literal.number(1))


def map_of_keys(node: exp.Expr, kind: Type) -> exp.Expr:
    """A written map, whose keys have no zeros with signs. Those in arrays and rows keep them, as in Spark."""
    key = kind.parts[0] if kind is not None and kind.name == "map" else None
    if key is not None and key.is_float:
        keys = node.args["keys"]
        keys.set("expressions", [without_signs(exp.paren(one), key) for one in keys.expressions])
    return node


def _field(row: exp.Expr, name: str, kind: Type, depth: int) -> exp.Expr:
    value: exp.Expr = call("STRUCT_EXTRACT", row, exp.Literal.string(name))
    if kind is not None and has_zeros(kind):
        value = without_signs(value, kind, depth + 1)
    return exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value)


@dataclass(slots=True)
class Zeros:
    """The parts of a query whose zeros lose their sign.

    ``values`` by their ids, with their types; ``stars``, with the columns that are written behind REPLACE; ``rows`` that are no
    SELECT, with their columns.
    """

    values: dict[int, SqlType] = field(default_factory=dict)
    stars: list[tuple[exp.Expr, list[exp.Expr]]] = field(default_factory=list)
    rows: list[tuple[exp.Expr, Columns]] = field(default_factory=list)

    def note(self, node: exp.Expr, bound: Bound) -> None:
        """Notes what stands under a node, before anything changes."""
        match node:
            case exp.Select():
                self.values |= _keys_used(node, bound)
                if isinstance(node.args.get("distinct"), exp.Distinct):
                    self._note_columns(node, bound)
            case exp.SetOperation() if _tells_apart(node):
                for side in _sides(node):
                    self._note_columns(side, bound)
            case exp.ArrayUniqueAgg():
                self._note_value(node.this, bound)
            case exp.ArrayAgg(this=exp.Distinct()):
                for value in node.this.expressions:
                    self._note_value(value, bound)

    def take_signs(self) -> None:
        """Writes stars and rows, as soon as all else is written."""
        for star, columns in self.stars:
            star.set("replace", [*(star.args.get("replace") or ()), *columns])
        for query, columns_of_rows in self.rows:
            _written_around(query, columns_of_rows)

    def _note_value(self, value: exp.Expr, bound: Bound) -> None:
        kind = bound.of(value)
        if kind is not None and has_zeros(kind):
            self.values[id(value)] = kind

    def _note_columns(self, query: exp.Expr, bound: Bound) -> None:
        if not isinstance(query, exp.Select):
            columns = bound.columns(query)
            if columns is not None and any(has_zeros(kind) for _, kind in columns):
                self.rows.append((query, columns))
            return
        for item in query.expressions:
            if item.is_star:
                star = item.this if isinstance(item, exp.Column) else item
                if replaced := _replaced(query, item, star, bound):
                    self.stars.append((star, replaced))
            elif not isinstance(item.unalias(), (exp.Aliases, exp.Explode, exp.Inline)):
                self._note_value(item.unalias(), bound)


def _keys_used(query: exp.Select, bound: Bound) -> Iterator[tuple[int, SqlType]]:
    keys = [key for key in _keys(query, bound) if has_zeros(bound.of(key))]
    if not keys:
        return
    texts = {_text(key) for key in keys}
    columns = [key for key in keys if isinstance(key, exp.Column)]
    for clause in _BESIDE_GROUPS:
        among = query.args.get(clause)
        left = list(among) if isinstance(among, list) else [among] if isinstance(among, exp.Expr) else []
        while left:
            node = left.pop()
            if isinstance(node, exp.Query) or _is_aggregate(node):
                continue
            is_key = isinstance(node, exp.Condition) and _text(node) in texts
            is_key |= isinstance(node, exp.Column) and any(_is_same(node, key) for key in columns)
            kind = bound.of(node)
            if is_key and kind is not None and has_zeros(kind) and _is_of(query, node, bound):
                yield id(node), kind
            else:
                left += node.iter_expressions()


def _keys(query: exp.Select, bound: Bound) -> Iterator[exp.Expr]:
    """The expressions by which rows are grouped: also those that a number or an alias stands for."""
    group = query.args.get("group")
    if group is None:
        return
    items = query.expressions
    if group.args.get("all"):
        yield from (item.unalias() for item in items if not any(map(_is_aggregate, item.walk())))
    left = list(group.iter_expressions())
    while left:
        key = left.pop()
        meaning = bound.meaning(key) if isinstance(key, exp.Column) else None
        if isinstance(key, _AROUND_KEYS):
            left += key.iter_expressions()
        elif isinstance(key, exp.Literal) and not key.is_string and key.name.isdecimal() and 0 < int(key.name) <= len(items):
            yield items[int(key.name) - 1].unalias()
        elif meaning is not None and meaning.is_alias:
            yield from (item.this for item in items if isinstance(item, exp.Alias) and item.alias.casefold() == key.name.casefold())
        else:
            yield key


def _is_of(query: exp.Select, node: exp.Expr, bound: Bound) -> bool:
    """True if each name in a node means a column that the query reads: in ORDER BY it may mean one of the result."""
    meanings = [bound.meaning(name) for name in node.find_all(exp.Column)]
    return all(meaning is not None and meaning.query is query and not meaning.is_alias for meaning in meanings)


def _is_same(name: exp.Column, key: exp.Column) -> bool:
    """True if a name means a key that is a column, or a field of it: ``f`` and ``t.f``, ``st.p`` and ``st``.

    What a query uses beside its groups is made of its keys, so that the name of another key does no harm.
    """
    ours, theirs = ([part.name.casefold() for part in column.parts] for column in (name, key))
    length = min(len(ours), len(theirs))
    behind_table = ours[1 : len(theirs) + 1] == theirs or ours[: len(theirs) - 1] == theirs[1:] != []
    return ours[-length:] == theirs[-length:] or ours[:length] == theirs[:length] or behind_table


def _is_aggregate(node: exp.Expr) -> bool:
    """True if a node aggregates a group, and is no function of a window, which sees the keys of groups."""
    if not isinstance(node, (exp.AggFunc, exp.Grouping)):
        return False
    around = node.parent
    while isinstance(around, _WRAPPERS):
        around = around.parent
    return not (isinstance(around, exp.Window) and around.this.find(type(node)) is node)


def _text(node: exp.Expr) -> str:
    return node.sql().casefold()


def _tells_apart(node: exp.SetOperation) -> bool:
    return not isinstance(node, exp.Union) or node.args.get("distinct") is not False


def _sides(node: exp.SetOperation) -> Iterator[exp.Expr]:
    """The queries that a set operation takes its rows from, without those that tell their rows apart themselves."""
    left = [node.left, *([] if isinstance(node, exp.Except) else [node.right])]
    while left:
        side = left.pop()
        if isinstance(side, exp.SetOperation):
            left += [] if _tells_apart(side) else [side.left, side.right]
        elif isinstance(side, exp.Subquery) and isinstance(side.this, exp.Query) and not side.this.args.get("joins"):
            left.append(side.this)
        elif side.args.get("distinct") is None:
            yield side


def _replaced(query: exp.Select, item: exp.Expr, star: exp.Expr, bound: Bound) -> list[exp.Expr]:
    """The columns of a star that have zeros. One of several of the same name stays as it is."""
    table = item.args.get("table") if isinstance(item, exp.Column) else None
    read = [one for one in sources(query) if table is None or table.name.casefold() == one.alias_or_name.casefold()]
    columns = [column for one in read for column in bound.columns(one) or ()]
    names = [name.casefold() for name, _ in columns]
    done = {part.name.casefold() for part in star.args.get("except_") or ()}
    done |= {part.alias.casefold() for part in star.args.get("replace") or ()}
    return [
        exp.alias_(without_signs(exp.column(exp.to_identifier(name, quoted=True), table=table), kind), name, quoted=True)
        for name, kind in columns
        if kind is not None and has_zeros(kind) and names.count(name.casefold()) == 1 and name.casefold() not in done
    ]


def _written_around(query: exp.Expr, columns: Columns) -> None:
    names = [exp.to_identifier(f"_column{place}") for place in range(len(columns))]
    values: list[exp.Expr] = []
    for name, (column_name, kind) in zip(names, columns, strict=True):
        value: exp.Expr = exp.column(name.copy())
        if kind is not None and has_zeros(kind):
            value = without_signs(value, kind)
        values.append(exp.alias_(value, column_name, quoted=True))
    around = exp.select(*values)
    query.replace(around)
    alias = exp.TableAlias(this=exp.to_identifier("_rows"), columns=names)
    around.set("from_", exp.From(this=exp.Subquery(this=query, alias=alias)))
