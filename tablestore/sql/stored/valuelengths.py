"""Bounds how long the values are that an expression computes, from its text alone: no engine stops inside of one call.

    repeat('-', 20)                   20
    v || '!'                          v + 1
    replace(v, 'a', 'bbb')            v * 3
    replace(v, 'a', w)                v * w, which nothing bounds: refused
    transform(xs, x -> x || '!')      xs + 1 for each element
    aggregate(xs, '', (a, x) -> a||a) doubles with each element: refused

A length is a sum of what is written, and of multiples of the values that a row holds. It counts characters and elements; a number
counts as a few. What would be a product of two values of a row, in its length or in the time that it takes, is refused, and what is
longer than a limit.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import count

from sqlglot import exp

from tablestore.sql.query.dialect import CALL, Call, Spark4
from tablestore.sql.query.functions import FUNCTION_PREFIX

MOST_TIMES = 1_000
"""The most times that the values of a row may stand in one value that is computed of them."""
MOST_ADDED = 20_000
"""The most characters that one value may be longer than that: an engine computes thousands of rows at once."""
MOST_WRITTEN = 10_000_000
"""The most characters of a value that is computed of written ones alone, once for all rows."""
# How much more all values of a text may be together: an engine keeps them while it computes a row.
_IN_ALL = {"added": 5, "written": 5, "times": 20}

_WRITTEN, ROW = "", "*"
_SHORT = 8
_COLLECTED = 100
_NUMBERED = {"repeat": 1, "array_repeat": 1, "space": 0, "randstr": 0}
_ADDED = {"lpad": 1, "rpad": 1, "array_insert": 1, "format_number": 1, "round": 1, "bround": 1, "ceil": 1, "ceiling": 1, "floor": 1}
_CUT = {"left": 1, "right": 1, "substr": 2, "substring": 2}
_GROWING = {"hex": 2, "base64": 2, "to_base32": 2, "bin": 8, "encode": 4, "quote": 2, "to_json": 6, "url_encode": 3}
_FORMATS = ("format_string", "printf")
_COLLECTING = frozenset(["array_agg", "collect_list", "collect_set", "collect_union", "listagg", "string_agg"])
_CHOOSING = frozenset(
    ["case", "coalesce", "greatest", "if", "ifnull", "least", "nullif", "nvl", "nvl2", "zeroifnull", "nullifzero", "elt", "decode"]
)
_FILTERING = frozenset(["array_sort", "filter", "map_filter"])
_TESTING = frozenset(["exists", "forall", "any", "all"])
_SHORT_RESULTS = frozenset("""
    array_contains array_position array_size arrays_overlap ascii avg bit_count bit_length cardinality char_length
    character_length contains corr count count_if crc32 date_diff datediff day dayofmonth dayofweek dayofyear endswith find_in_set
    hash hour instr isnan isnotnull isnull json_array_length len length locate map_contains_key md5 median minute mod month
    months_between octet_length percentile pmod position power pow quarter rank regexp regexp_count regexp_instr regexp_like rlike
    row_number second sha sha1 sha2 sign size sqrt startswith stddev sum typeof unix_timestamp variance weekday weekofyear xxhash64
    year
""".split())  # noqa: SIM905
# Functions and operators whose results are short, and which look through all that they are given.
_LOOKING_THROUGH = frozenset("""
    array_contains array_position arrays_overlap char_length character_length contains crc32 endswith find_in_set hash instr length
    locate map_contains_key md5 position regexp regexp_count regexp_instr regexp_like rlike sha sha1 sha2 startswith xxhash64
""".split())  # noqa: SIM905
_PAIRING_TEXTS = frozenset(["levenshtein", "jaro_winkler_similarity"])
_PAIRING_ELEMENTS = frozenset(["array_distinct", "array_except", "array_intersect", "array_union", "arrays_overlap"])
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike, exp.In)
_SHORT_OPERATORS = (
    *(exp.Predicate, exp.Connector, exp.Not, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift),
)
_LONG_TYPES = (*exp.DataType.TEXT_TYPES, *exp.DataType.NESTED_TYPES, exp.DataType.Type.BINARY, exp.DataType.Type.VARBINARY)
_LONG_TYPES = (*_LONG_TYPES, exp.DataType.Type.VARIANT, exp.DataType.Type.UNKNOWN, exp.DataType.Type.USERDEFINED)
_LOOKING_AROUND = re.compile(r"\(\?<?[=!]")
_REFERENCE = re.compile(r"[$\\]")
_DIGITS = re.compile(r"[0-9]+")
_CUT_HINT = "left(…, a written number) of it"


class TooLong(Exception):
    """Signals a value that may be too long: the part of the text that computes it, and what to write."""

    def __init__(self, node: exp.Expr, expected: str) -> None:
        self.found, self.wanted = node.sql(dialect=Spark4)[:80], expected
        super().__init__(f"expected {expected}, found {self.found}")


@dataclass(frozen=True, slots=True)
class Length:
    """A bound of a length: how often each of its variables stands in it. ``is_written``: it is that of written values alone."""

    parts: Mapping[str, int]
    is_written: bool = False

    def times(self, factor: int) -> "Length":
        """The length of so many of them."""
        return Length({name: factor * number for name, number in self.parts.items()}, self.is_written)

    @property
    def added(self) -> int:
        """The part beside the values of a row."""
        return self.parts.get(_WRITTEN, 0)

    @property
    def is_fixed(self) -> bool:
        """True if it depends on no value of a row."""
        return not any(number for name, number in self.parts.items() if name != _WRITTEN)


def written(number: int) -> Length:
    """The length of what is written."""
    return Length({_WRITTEN: number}, is_written=True)


def of_row(times: int = 1, added: int = 0) -> Length:
    """The length of what depends on the values of a row."""
    return Length({ROW: times, _WRITTEN: added})


def total(lengths: Sequence[Length]) -> Length:
    """The length of values behind each other."""
    parts: dict[str, int] = {}
    for length in lengths:
        for name, number in length.parts.items():
            parts[name] = parts.get(name, 0) + number
    return Length(parts, all(length.is_written for length in lengths))


def longest(lengths: Sequence[Length]) -> Length:
    """The length of one of some values."""
    parts: dict[str, int] = {}
    for length in lengths:
        for name, number in length.parts.items():
            parts[name] = max(parts.get(name, 0), number)
    return Length(parts, all(length.is_written for length in lengths))


@dataclass(slots=True)
class ValueLengths:
    """Computes lengths. ``column``: that of a column. ``query``: that of a subquery."""

    column: Callable[[exp.Column], Length]
    query: Callable[[exp.Query], Length] = field(default=lambda _: of_row())
    seen: set[int] = field(default_factory=set)
    _parameters: dict[str, list[Length]] = field(default_factory=dict)
    _peaks: list[list[Length]] = field(default_factory=list)
    _spent: dict[str, int] = field(default_factory=dict)
    _variables: Iterator[int] = field(default_factory=count)

    def of(self, node: exp.Expr) -> Length:
        """The length of a value. Raises TooLong."""
        self.seen.add(id(node))
        match node:
            case exp.Column():
                return self.column(node)
            case exp.Identifier():
                lengths = self._parameters.get(node.name.lower())
                return lengths[-1] if lengths else of_row()
            case exp.Literal():
                return written(max(len(node.name), 1))
            case exp.Boolean() | exp.Null() | exp.DataType():
                return written(1)
            case exp.Paren() | exp.Alias() | exp.Ordered():
                return self.of(node.this)
            case exp.Dot() if isinstance(node.expression, exp.Identifier):
                # A field is no longer than what it is a part of.
                return self.of(node.this)
            case exp.Query() if not isinstance(node, exp.Subquery) or isinstance(node.this, exp.Query):
                return self.query(node)
            case exp.Table() | exp.Star():
                return of_row()
        length = self._computed(node)
        self.check(node, length)
        return length

    def check(self, node: exp.Expr, length: Length, what: str = "a value") -> None:
        """Raises TooLong for a value that is too long, or where all of them are."""
        most = MOST_WRITTEN if length.is_written else MOST_ADDED
        if length.added > most:
            raise TooLong(node, f"{what} of at most {most:,} characters")
        times = max((number for name, number in length.parts.items() if name != _WRITTEN), default=0)
        if times > MOST_TIMES:
            raise TooLong(node, f"{what} that multiplies the values of a row at most {MOST_TIMES:,} times")
        if self._peaks:
            self._peaks[-1].append(length)
        kind = "written" if length.is_written else "added"
        for name, more, limit in ((kind, length.added, most), ("times", times, MOST_TIMES)):
            self._spent[name] = self._spent.get(name, 0) + more
            if self._spent[name] > limit * _IN_ALL[name]:
                raise TooLong(node, f"values that are together at most {_IN_ALL[name]} times as long as one may be")

    @contextmanager
    def named(self, names: Mapping[str, Length]) -> Iterator[None]:
        """Lets names of a lambda's stand for values."""
        for name, length in names.items():
            self._parameters.setdefault(name.lower(), []).append(length)
        try:
            yield
        finally:
            for name in names:
                self._parameters[name.lower()].pop()

    def _computed(self, node: exp.Expr) -> Length:
        call = node.meta.get(CALL)
        name = call.name.lower() if isinstance(call, Call) else str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        arguments = arguments_of(node)
        if name in ("aggregate", "reduce"):
            return self._aggregated(node, arguments)
        if any(isinstance(argument, exp.Lambda) for argument in arguments):
            return self._of_lambdas(node, name, arguments)
        if isinstance(node, exp.Case):
            return self._chosen(node)
        if name == "sequence":
            return written(_SHORT * _elements(node, arguments))
        lengths = [self.of(argument) for argument in arguments]
        if name in _PAIRING_TEXTS:
            self.check(node, _product(lengths[:1], lengths[1:2], node, f"{name} of {_CUT_HINT}"))
            return _short(lengths)
        if name in _PAIRING_ELEMENTS:
            # Each element is looked for among the others.
            self.check(node, _product(lengths, lengths, node, f"{name} of arrays of a written length"))
        if self._peaks and (name in _LOOKING_THROUGH or isinstance(node, _PATTERNS)):
            # A lambda does so for each element: this is the time that it takes.
            self._peaks[-1].append(total(lengths))
        if isinstance(node, _SHORT_OPERATORS) or name in _SHORT_RESULTS:
            return _short(lengths)
        if isinstance(node, exp.Cast):
            return _short(lengths) if node.to.this not in _LONG_TYPES else total(lengths)
        if isinstance(node, (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
            return lengths[0] if lengths else of_row()
        return self._called(node, name, arguments, lengths)

    def _called(self, node: exp.Expr, name: str, arguments: Sequence[exp.Expr], lengths: Sequence[Length]) -> Length:
        if name.startswith(FUNCTION_PREFIX):
            return total([of_row(), *lengths])
        if name in _COLLECTING:
            # As long as all rows together; what is made of it may not be much longer.
            return total([of_row(_COLLECTED), *lengths])
        if name in _CHOOSING or isinstance(node, (exp.Coalesce, exp.If, exp.Cube, exp.Rollup)):
            return longest(lengths)
        if name in _NUMBERED:
            factor = counted(node, name, arguments, _NUMBERED[name])
            return total([one for place, one in enumerate(lengths) if place != _NUMBERED[name]] or [written(1)]).times(factor)
        if name in _ADDED:
            return total([*lengths, written(_padded(node, name, arguments))])
        if name in _CUT and (most := _least(arguments, _CUT[name])) is not None:
            return Length({_WRITTEN: most}, all(one.is_written for one in lengths))
        if name in ("replace", "regexp_replace"):
            return _replaced(node, name, arguments, lengths)
        if name == "regexp_extract_all" and not _looks_at_one(arguments):
            raise TooLong(node, "a written pattern of regexp_extract_all that does not look around ((?=…))")
        if name in ("array_join", "concat_ws"):
            values, separators = (lengths[:1], lengths[1:]) if name == "array_join" else (lengths[1:], lengths[:1])
            expected = f"a written separator of {name}, or {_CUT_HINT}"
            return total([*lengths, _product([total(values)], separators, node, expected)])
        if name in _FORMATS and arguments:
            return _formatted(node, name, arguments, lengths)
        return total(lengths).times(_GROWING.get(name, 1)) if lengths else of_row(0, _SHORT)

    def _chosen(self, node: exp.Case) -> Length:
        lengths = [self.of(part) for part in (node.args.get("this"), *(one.this for one in node.args["ifs"])) if part is not None]
        values = [self.of(one.args["true"]) for one in node.args["ifs"]]
        default = node.args.get("default")
        values += [] if default is None else [self.of(default)]
        return Length(longest(values).parts, all(one.is_written for one in (*lengths, *values)))

    def _of_lambdas(self, node: exp.Expr, name: str, arguments: Sequence[exp.Expr]) -> Length:
        """The length of what calls lambdas, each for every element of what stands beside it."""
        values = [argument for argument in arguments if not isinstance(argument, exp.Lambda)]
        input_length = total([self.of(value) for value in values])
        elements = written(_elements(values[0], arguments_of(values[0]))) if _is_counted(values) else input_length
        result_lengths: list[Length] = []
        for one in arguments:
            if isinstance(one, exp.Lambda):
                variable, length, peak = self._body(one, [parameter.name for parameter in one.expressions])
                # What is computed on the way to it is there for all elements at once.
                expected = f"a lambda of {name} that computes nothing long of a column: {_CUT_HINT}, or compute it outside"
                self.check(node, _for_each(peak, variable, input_length, elements, node, expected))
                result_lengths.append(_for_each(length, variable, input_length, elements, node, expected))
        if name == "array_sort":
            self.check(node, _product([input_length], [elements], node, "array_sort by a lambda of an array of a written length"))
        if name in _TESTING:
            return _short([input_length])
        return input_length if name in _FILTERING else total(result_lengths)

    def _aggregated(self, node: exp.Expr, arguments: Sequence[exp.Expr]) -> Length:
        values = [argument for argument in arguments if not isinstance(argument, exp.Lambda)]
        lambdas = [argument for argument in arguments if isinstance(argument, exp.Lambda)]
        expected = "a lambda of aggregate or reduce whose result has the value before once, and else what is written or an element"
        if len(values) != 2 or not lambdas or len(lambdas[0].expressions) != 2:
            raise TooLong(node, expected)
        input_length, result = (self.of(value) for value in values)
        elements = written(_elements(values[0], arguments_of(values[0]))) if _is_counted(values[:1]) else input_length
        kept = f"kept {next(self._variables)}"
        before, element = (parameter.name for parameter in lambdas[0].expressions)
        with self.named({before: Length({kept: 1})}):
            variable, length, peak = self._body(lambdas[0], [element])
        if length.parts.get(kept, 0) > 1:
            raise TooLong(node, expected)
        if _only_chooses(lambdas[0].this):
            result = longest([result, input_length])
        else:
            steps = _for_each(_without(length, kept), variable, input_length, elements, node, expected)
            result = total([result, steps]) if length.parts.get(kept) else longest([result, steps])
            self.check(node, _for_each(_without(peak, kept), variable, input_length, elements, node, expected))
        if length.parts.get(kept) and not _only_chooses(lambdas[0].this):
            # Each step copies what the steps before it have made.
            expected = "a list of a written length in aggregate or reduce whose result grows; array_join joins the texts of any"
            self.check(node, _product([result.times(max(peak.parts.get(kept, 0), 1))], [elements], node, expected))
        for finish in lambdas[1:]:
            with self.named({parameter.name: result for parameter in finish.expressions}):
                result = self.of(finish.this)
        return result

    def _body(self, lambda_node: exp.Lambda, names: Sequence[str]) -> tuple[str, Length, Length]:
        """The variable for an element, the length of what a lambda gives, and that of the longest that it computes on the way."""
        variable = f"element {next(self._variables)}"
        self.seen.add(id(lambda_node))
        self._peaks.append([])
        try:
            with self.named(dict.fromkeys(names, Length({variable: 1}))):
                length = self.of(lambda_node.this)
        finally:
            peaks = self._peaks.pop()
        return variable, length, longest(peaks)


def arguments_of(node: exp.Expr) -> list[exp.Expr]:
    """The values that an expression is made of."""
    parts = node.expressions if isinstance(node, exp.Anonymous) else node.iter_expressions()
    return [part for part in parts if not isinstance(part, (exp.DataType, exp.TableAlias, exp.WindowSpec, exp.Var))]


def written_number(number: exp.Expr) -> int | None:
    """A whole number, or the day of a date, that is written, or the least of such a number and others."""
    plain = number.unnest()
    if isinstance(plain, exp.Neg):
        inner = written_number(plain.this)
        return None if inner is None else -inner
    if isinstance(plain, exp.Least):
        numbers = [one for one in map(written_number, (plain.this, *plain.expressions)) if one is not None]
        return min(numbers, default=None)
    if isinstance(plain, exp.Literal) and not plain.is_string and plain.name.isdecimal():
        return int(plain.name) if len(plain.name) < 19 else 10**18
    is_date = isinstance(plain, exp.Cast) and plain.to.is_type("date") and isinstance(plain.this, exp.Literal)
    try:
        return date.fromisoformat(plain.this.name).toordinal() if is_date else None
    except ValueError:
        return None


def counted(node: exp.Expr, name: str, arguments: Sequence[exp.Expr], place: int) -> int:
    """The number that an argument of a call is. Raises TooLong for one that is not written."""
    number = written_number(arguments[place]) if place < len(arguments) else 1
    if number is None:
        raise TooLong(node, f"a count of {name} that is written, or least(…, a written number)")
    return max(number, 0)


def _padded(node: exp.Expr, name: str, arguments: Sequence[exp.Expr]) -> int:
    place = _ADDED[name]
    if place >= len(arguments) or (isinstance(arguments[place], exp.Literal) and arguments[place].is_string):
        return 0
    number = written_number(arguments[place])
    # A number of digits may be below zero.
    return counted(node, name, arguments, place) if number is None else abs(number)


def _elements(node: exp.Expr, arguments: Sequence[exp.Expr]) -> int:
    """The number of elements of a list that is written, or of a sequence."""
    if isinstance(node, exp.Array):
        return len(arguments)
    ends = [written_number(one) for one in arguments[:2]]
    first, last = ends if len(ends) == 2 else (None, None)
    if first is None or last is None:
        raise TooLong(node, "the ends of sequence as written whole numbers or dates; the table function range takes any")
    return abs(last - first) + 1


def _is_counted(values: Sequence[exp.Expr]) -> bool:
    return len(values) == 1 and isinstance(values[0], (exp.Array, exp.GenerateSeries))


def _only_chooses(body: exp.Expr) -> bool:
    """True if a lambda gives one of its values as it is."""
    plain = body.unnest()
    if isinstance(plain, exp.Case):
        parts = [one.args["true"] for one in plain.args["ifs"]] + [plain.args.get("default") or exp.null()]
    elif isinstance(plain, exp.If):
        parts = [plain.args["true"], plain.args.get("false") or exp.null()]
    elif isinstance(plain, (exp.Greatest, exp.Least, exp.Coalesce)):
        parts = [plain.this, *plain.expressions]
    else:
        return isinstance(plain, (exp.Identifier, exp.Literal, exp.Null))
    return all(map(_only_chooses, parts))


def _least(arguments: Sequence[exp.Expr], place: int) -> int | None:
    number = written_number(arguments[place]) if place < len(arguments) else None
    return None if number is None else max(number, 0)


def _short(lengths: Sequence[Length]) -> Length:
    return Length({_WRITTEN: _SHORT}, all(length.is_written for length in lengths))


def _product(values: Sequence[Length], factors: Sequence[Length], node: exp.Expr, expected: str) -> Length:
    """The product of two lengths, of which one is known."""
    left, right = total(values), total(factors)
    if not left.is_fixed and not right.is_fixed:
        raise TooLong(node, expected)
    fixed, other = (left, right) if left.is_fixed else (right, left)
    product = other.times(fixed.added)
    return Length(product.parts, left.is_written and right.is_written)


def _without(length: Length, variable: str) -> Length:
    return Length({name: number for name, number in length.parts.items() if name != variable}, length.is_written)


def _for_each(length: Length, variable: str, input_length: Length, elements: Length, node: exp.Expr, expected: str) -> Length:
    """The lengths of what is computed of each element, together."""
    other_length = _without(length, variable)
    of_elements = input_length.times(length.parts.get(variable, 0))
    return total([of_elements, _product([other_length], [elements], node, expected)])


def _text(arguments: Sequence[exp.Expr], place: int) -> str | None:
    argument = arguments[place].unnest() if place < len(arguments) else None
    return argument.name if isinstance(argument, exp.Literal) and argument.is_string else None


def _looks_at_one(arguments: Sequence[exp.Expr]) -> bool:
    """True if a pattern is written, and what it finds lies in what it matches, so that none is found twice."""
    pattern = _text(arguments, 1)
    return pattern is not None and not _LOOKING_AROUND.search(pattern)


def _replaced(node: exp.Expr, name: str, arguments: Sequence[exp.Expr], lengths: Sequence[Length]) -> Length:
    """The length of a text in which parts are replaced."""
    if len(arguments) < 3:
        return lengths[0]
    new = lengths[2]
    if not new.is_fixed:
        raise TooLong(node, f"a written replacement of {name}, or {_CUT_HINT}")
    text = _text(arguments, 2)
    if name == "replace":
        old = _text(arguments, 1)
        factor = max(1, -(-new.added // max(1, len(old or ""))))
        if text is not None and old is not None and (inner := _escaped(arguments[0], old)) is not None:
            # Texts of one character that no replacement before contains: each is replaced once.
            factor = -(-max(factor, inner) // inner)
        return Length(lengths[0].times(factor).parts, all(one.is_written for one in lengths))
    if text != "" and (text is None or _REFERENCE.search(text)) and not _looks_at_one(arguments):
        expected = f"a written pattern of {name} that does not look around ((?=…)), or a written replacement without $ and \\"
        raise TooLong(node, expected)
    # A pattern may match between any two characters, which stay.
    grown = lengths[0].times(new.added + 1 if new.added and text != "" else 1)
    return total([Length(grown.parts, all(one.is_written for one in lengths)), Length({_WRITTEN: new.added}, new.is_written)])


def _escaped(node: exp.Expr, old: str) -> int | None:
    """The factor by which a chain of written replacements multiplies its text, if none of them makes one character ``old``."""
    factor, is_chain = 1, False
    plain = node.unnest()
    while isinstance(plain, exp.Replace):
        arguments = arguments_of(plain)
        before, new = _text(arguments, 1), _text(arguments, 2)
        if before is None or new is None or len(before) != 1 or len(old) != 1 or old in new:
            return None
        factor, is_chain = max(factor, len(new)), True
        plain = arguments[0].unnest()
    return factor if is_chain else None


def _formatted(node: exp.Expr, name: str, arguments: Sequence[exp.Expr], lengths: Sequence[Length]) -> Length:
    text = _text(arguments, 0)
    numbers = [int(digits[:9]) for digits in _DIGITS.findall(text or "")]
    if text is None or any(number > 9_999 for number in numbers):
        raise TooLong(node, f"a written format of {name}, whose widths have at most four digits")
    return total([*[total(lengths[1:])] * text.count("%"), written(len(text) + sum(numbers))])
