"""Of which kind is an expression, as far as its text and the columns of its tables tell?

None is every expression that is not understood, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from tablestore.sql.duckdb.columnnames import Columns, Names, Open
from tablestore.sql.duckdb.kinds import (
    ARRAY,
    BIGINT,
    DATE,
    DOUBLE,
    FRACTION,
    INT,
    INTERVAL,
    MAP,
    ROW,
    SINGLE,
    TEXT,
    TIMESTAMP,
    Kind,
    typed,
    widest,
)
from tablestore.types.datatypes import MAX_PRECISION

_LEAST_SCALE = 6
_INTEGERS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_OTHERS = {
    "DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMPTZ": TIMESTAMP, "TIMESTAMPLTZ": TIMESTAMP, "DOUBLE": DOUBLE, "FLOAT": SINGLE,
    "ARRAY": ARRAY, "MAP": MAP, "STRUCT": ROW,
}  # fmt: skip
_DATES = (
    exp.TsOrDsAdd, exp.DateAdd, exp.DateSub, exp.AddMonths, exp.LastDay, exp.NextDay, exp.TsOrDsToDate, exp.CurrentDate,
    exp.DateFromUnixDate, exp.DateFromParts, exp.StrToDate,
)  # fmt: skip
INTS = (
    exp.Year, exp.Quarter, exp.Month, exp.WeekOfYear, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Hour, exp.Minute,
    exp.Second, exp.Length, exp.StrPosition, exp.Levenshtein, exp.ArraySize, exp.BitwiseCount, exp.RowNumber,
    exp.Rank, exp.DenseRank, exp.Ntile, exp.UnixDate, exp.Extract,
)  # fmt: skip
"""Functions whose result is an INT in Spark."""
_TEXTS = (
    exp.Upper, exp.Lower, exp.Initcap, exp.Trim, exp.Pad, exp.Substring, exp.Left, exp.Right, exp.Repeat, exp.Replace,
    exp.SplitPart, exp.Translate, exp.Overlay, exp.ConcatWs, exp.RegexpExtract, exp.RegexpReplace, exp.ArrayToString,
    exp.TimeToStr, exp.Chr, exp.Dayname, exp.Monthname, exp.JSONExtractScalar, exp.MD5, exp.SHA, exp.SHA2,
)  # fmt: skip
_BIGINTS = (exp.TimestampDiff, exp.Count, exp.CountIf, exp.ApproxDistinct, exp.IntDiv)
_DOUBLES = (
    exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sin, exp.Cos, exp.Tan, exp.Atan2, exp.Degrees, exp.Radians, exp.Pi,
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp,
    exp.PercentRank, exp.CumeDist, exp.Median,
)  # fmt: skip
_SAME = (
    exp.Paren, exp.Neg, exp.Abs, exp.Min, exp.Max, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.Lag, exp.Lead,
    exp.AnyValue, exp.Nullif, exp.Reverse,
)  # fmt: skip


@dataclass(slots=True)
class Kinds:
    """The kinds of expressions in one tree. ``tables``: the columns of tables by their names in small letters."""

    tree: exp.Expr
    tables: Mapping[str, Columns]
    _names: Names = field(init=False)
    _aliases: dict[str, list[exp.Expr]] = field(init=False)
    _given: set[str] = field(init=False)
    _known: dict[int, Kind | None] = field(default_factory=dict, init=False)
    _open: set[int] = field(default_factory=set, init=False)
    _circles: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._names, self._aliases = Names(self.tables, self.of), {}
        for alias in self.tree.find_all(exp.Alias):
            self._aliases.setdefault(alias.alias.casefold(), []).append(alias.this)
        self._given = {column.name.casefold() for alias in self.tree.find_all(exp.TableAlias) for column in alias.columns}
        self._given |= {column.casefold() for columns in self.tables.values() for column, _ in columns}

    def of(self, node: exp.Expr) -> Kind | None:
        """The kind of an expression. The tree may not change between two calls."""
        if id(node) in self._known:
            return self._known[id(node)]
        if id(node) in self._open:
            self._circles += 1
            return None
        before = self._circles
        self._open.add(id(node))
        try:
            kind = self._of(node)
        finally:
            self._open.discard(id(node))
        # A circle of aliases gives None inside of it, which says nothing about the node itself.
        if self._circles == before:
            self._known[id(node)] = kind
        return kind

    def columns(self, query: exp.Expr) -> Columns | None:
        """The columns of a query; None if they are not known."""
        return self._names.columns(query)

    def made(self, name: str) -> Sequence[exp.Expr]:
        """What stands in the tree under a name; nothing if a table has a column of this name too."""
        folded = name.casefold()
        return () if folded in self._given else [found for found in self._aliases.get(folded, ()) if not _hands_on(found, folded)]

    def _of(self, node: exp.Expr) -> Kind | None:
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Map() | exp.VarMap():
                return MAP
            case exp.Array() | exp.Struct():
                return ARRAY if isinstance(node, exp.Array) else ROW
            case exp.DateDiff():
                return INT if node.args.get("unit") is None else BIGINT
            case exp.CurrentTimestamp() | exp.TimestampTrunc() | exp.StrToTime():
                return TIMESTAMP
            case exp.Literal():
                return TEXT if node.is_string else _literal(str(node.this))
            case exp.Cast():
                return _cast(node.to)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._arithmetic(node)
            case exp.Sum() | exp.Avg():
                return _summed(node, self.of(summand(node)))
            case exp.Round() | exp.Floor() | exp.Ceil():
                return rounded(node, self.of(node.this))
            case exp.Coalesce() | exp.Greatest() | exp.Least() | exp.Case() | exp.If():
                return widest(self.of(part) for part in alternatives(node))
            case exp.Window() | exp.Filter():
                return self.of(node.this)
            case exp.Subquery(this=exp.Select()) if len(node.this.selects) == 1:
                only = node.this.selects[0]
                return self.of(only.this if isinstance(only, exp.Alias) else only)
            case exp.Anonymous() if str(node.this).lower() in ("weekday", "cardinality"):
                return INT
            case _ if isinstance(node, _DATES):
                return DATE
            case _ if isinstance(node, INTS):
                return INT
            case _ if isinstance(node, _TEXTS):
                return TEXT
            case exp.Concat() | exp.DPipe():
                # Arrays are joined to arrays only.
                parts = node.expressions if isinstance(node, exp.Concat) else (node.this, node.expression)
                return TEXT if any(self.of(part) == TEXT for part in parts) else None
            case _ if isinstance(node, _BIGINTS):
                return BIGINT
            case _ if isinstance(node, _DOUBLES):
                return DOUBLE
            case _ if isinstance(node, _SAME):
                return self.of(node.this)
            case _:
                return None

    def _column(self, node: exp.Column) -> Kind | None:
        kind = self._column_as_made(node)
        return typed(kind) if kind is not None else None

    def _column_as_made(self, node: exp.Column) -> Kind | None:
        try:
            return self._names.kind(node)
        except Open:
            # Whatever has this name anywhere agrees, or nothing is known.
            name = node.name.casefold()
            known = [kind for columns in self.tables.values() for one, kind in columns if one.casefold() == name]
            made = [found for found in self._aliases.get(name, ()) if not _hands_on(found, name)]
            kinds = {*known, *map(self.of, made)}
            return kinds.pop() if len(kinds) == 1 else None

    def _arithmetic(self, node: exp.Expr) -> Kind | None:
        left, right = self.of(node.this), self.of(node.expression)
        if left == DATE and isinstance(node, (exp.Add, exp.Sub)):
            if right == DATE:
                return INTERVAL
            moved = isinstance(node.expression, exp.Interval) and _is_of_days(node.expression)
            return DATE if moved or (right is not None and right.name == "integer") else None
        if DOUBLE in (left, right) or (SINGLE in (left, right) and isinstance(node, exp.Div)):
            return DOUBLE
        if SINGLE in (left, right):
            return SINGLE if left == right else DOUBLE if left and right and left.is_number and right.is_number else FRACTION
        if left is None or right is None or not (left.is_exact and right.is_exact):
            has_fraction = isinstance(node, exp.Div) or any(side is not None and side.name == "decimal" for side in (left, right))
            return FRACTION if has_fraction else None
        if left.name == right.name == "integer":
            return DOUBLE if isinstance(node, exp.Div) else widest((left, right))
        return _decimal(node, left, right)


def summand(node: exp.Expr) -> exp.Expr:
    """What a sum or an average adds up."""
    among: exp.Expr = node.this
    return among.expressions[0] if isinstance(among, exp.Distinct) else among


def alternatives(node: exp.Expr) -> list[exp.Expr]:
    """Those values of which the node is one. A NULL is of any type."""
    if isinstance(node, exp.Case):
        parts = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
    elif isinstance(node, exp.If):
        parts = [node.args["true"], node.args.get("false")]
    else:
        parts = [node.this, *node.expressions]
    return [part for part in parts if part is not None and not isinstance(part, exp.Null)]


def rounded(node: exp.Expr, kind: Kind | None) -> Kind | None:
    """The kind of ``round``, ``floor`` and ``ceil``. ``kind``: of what is rounded."""
    if kind is None or not kind.is_number:
        return None
    if isinstance(node, exp.Round):
        digits = round_digits(node)
        if kind.name != "decimal":
            return kind
        if digits is None:
            return None
        scale = max(min(kind.scale, digits), 0)
        # Rounding up may take one more digit.
        return Kind("decimal", min(max(kind.precision - kind.scale + 1, -digits + 1) + scale, MAX_PRECISION), scale)
    if kind.name == "decimal":
        return Kind("decimal", min(kind.precision - kind.scale + 1, MAX_PRECISION), 0)
    return None if kind == FRACTION else BIGINT


def round_digits(node: exp.Round) -> int | None:
    """The digits behind the point to which it rounds, where they stand in the text."""
    digits = node.args.get("decimals")
    sign = -1 if isinstance(digits, exp.Neg) else 1
    if digits is None:
        return 0
    number = digits.this if isinstance(digits, exp.Neg) else digits
    return sign * int(number.this) if isinstance(number, exp.Literal) and str(number.this).isdigit() else None


def _summed(node: exp.Expr, kind: Kind | None) -> Kind | None:
    if isinstance(node, exp.Avg):
        if kind is None or kind.name != "decimal":
            return DOUBLE
        return Kind("decimal", min(kind.precision + 4, MAX_PRECISION), min(kind.scale + 4, MAX_PRECISION))
    if kind is None or kind.name != "decimal":
        return BIGINT if kind is not None and kind.name == "integer" else DOUBLE if kind in (SINGLE, TEXT) else kind
    return Kind("decimal", min(kind.precision + 10, MAX_PRECISION), kind.scale)


def _hands_on(node: exp.Expr, name: str) -> bool:
    """An alias that only hands a column on under its own name says nothing new."""
    return isinstance(node, exp.Column) and node.name.casefold() == name


def _decimal(node: exp.Expr, left: Kind, right: Kind) -> Kind:
    """The type of a decimal result, by Spark's rules."""
    whole = max(left.precision - left.scale, right.precision - right.scale)
    match node:
        case exp.Mul():
            return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)
        case exp.Div():
            scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
            return _adjusted(left.precision - left.scale + right.scale + scale, scale)
        case exp.Mod():
            scale = max(left.scale, right.scale)
            return _adjusted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)
        case _:
            scale = max(left.scale, right.scale)
            return _adjusted(whole + scale + 1, scale)


def _adjusted(precision: int, scale: int) -> Kind:
    if precision <= MAX_PRECISION:
        return Kind("decimal", precision, scale)
    return Kind("decimal", MAX_PRECISION, max(MAX_PRECISION - (precision - scale), min(scale, _LEAST_SCALE)))


def _literal(text: str) -> Kind | None:
    if "e" in text.lower():
        return DOUBLE
    whole, _, fraction = text.partition(".")
    digits = len((whole.lstrip("0") + fraction).lstrip("0") if not whole.lstrip("0") else whole.lstrip("0") + fraction)
    return (
        Kind("decimal", max(digits, len(fraction), 1), len(fraction))
        if "." in text
        else Kind("integer", max(len(whole.lstrip("0")), 1), written=True)
    )


def _cast(to: exp.DataType) -> Kind | None:
    name = to.this.name
    if name == "DECIMAL":
        numbers = [int(part.name) for part in to.expressions]
        precision, scale = (*numbers, 0)[:2] if numbers else (10, 0)
        return Kind("decimal", precision, scale)
    if name in _INTEGERS:
        return Kind("integer", _INTEGERS[name])
    if name in ("TEXT", "VARCHAR", "CHAR"):
        return TEXT
    return _OTHERS.get(name)


def _is_of_days(interval: exp.Interval) -> bool:
    return str(interval.args.get("unit") or "").upper().rstrip("S") in ("DAY", "WEEK", "MONTH", "YEAR", "QUARTER")
