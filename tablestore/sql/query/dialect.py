"""Spark 4's dialect for sqlglot, where sqlglot's own is that of an older Spark."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from tablestore.errors import UnsupportedError
from tablestore.sql.query.tokenstream import Tokens

WRITTEN = "written"
"""Under this key the meta of a column of a result has where it begins and ends in the text."""


def check_extensible(parser_file: str) -> None:
    """Raises UnsupportedError where sqlglot's parser, a module of this file, is compiled: no class of Python can inherit from
    it."""
    if not parser_file.endswith(".py"):
        raise UnsupportedError(
            "sqlglot has its compiled parser here, which cannot be extended to Spark 4's SQL; run `pip uninstall sqlglotc` "
            "(the same parser then runs in Python)",
            kind="sqlglot-compiled",
        )


check_extensible(parser.__file__)


STACK: type[exp.Expression] = getattr(exp, "Stack", exp.Inline)
"""The node of ``stack(…)``, which older versions of sqlglot read as a call of any function."""
CALL = "call"
"""Under this key the meta of what is written as a call of a function has the :class:`Call`."""
OPERATORS = frozenset({
    "And", "Array", "Case", "Cast", "Coalesce", "Concat", "Cube", "If", "Or", "RegexpLike", "Rollup", "TimeStrToTime", "TryCast",
    "TsOrDsToDate", "Xor",
})  # fmt: skip
"""The functions of sqlglot's that are none elsewhere: operators, clauses, and parts of what is written as one call."""
_AROUND_A_CALL = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it is written: sqlglot has one name for several functions. ``named``: True if it names arguments with ``=>``."""

    name: str
    arguments: int
    named: bool


def _call_at(tokens: Sequence[Token], first: int) -> Call:
    """The call whose name is the first token."""
    depth, commas, named, end = 0, 0, False, first + 1
    for end in range(first + 1, len(tokens)):
        kind = tokens[end].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth <= 0:
            break
        commas += depth == 1 and kind is TokenType.COMMA
        named = named or (depth == 1 and kind is TokenType.FARROW)
    return Call(tokens[first].text.lower(), commas + (end > first + 2), named)


_TEXTS = frozenset({exp.DType.CHAR, exp.DType.VARCHAR})
_LITERALS = frozenset({TokenType.NUMBER, TokenType.STRING})
_ENDS_OF_ITEMS = frozenset({TokenType.COMMA, TokenType.R_PAREN})
_UNSIGNED, _UNSIGNED_SHIFT = ">>>", "shiftrightunsigned"
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def _as_text(token: Token) -> Token:
    if token.token_type is not TokenType.RAW_STRING:
        return token
    return Token(TokenType.STRING, token.text, token.line, token.col, token.start, token.end, token.comments)


def _cast_to(name: str, arguments: Sequence[exp.Expr]) -> exp.Cast:
    """Parses ``bigint(x)`` as a cast: sqlglot does so for other types."""
    return exp.Cast(this=arguments[0] if len(arguments) == 1 else None, to=exp.DataType.build(name))


_PLAIN_CALLS = frozenset("""
    to_json aggregate element_at exists forall get reduce sequence slice try_element_at array_sort zip_with
    acosh approx_percentile array_append array_compact array_distinct array_except array_insert array_intersect array_max array_min
    array_position array_prepend array_remove arrays_zip asinh atanh base64 bit_get bit_length bitmap_bit_position
    bitmap_bucket_number bitmap_count collation convert_timezone cosh cot csc current_catalog current_database current_schema
    current_time current_timezone current_user elt encode equal_null factorial format_string from_base32 from_json from_unixtime
    getbit grouping_id json_object_keys localtime localtimestamp make_interval make_timestamp map_contains_key map_from_arrays
    map_from_entries nanvl negative parse_json parse_url percentile_approx rand randn random randstr regexp_count regexp_extract_all
    regexp_instr regexp_substr rint sec session_user shuffle sinh soundex space str_to_map substring_index tanh time_diff time_trunc
    to_base32 to_binary to_char to_number try_add try_divide try_multiply try_subtract typeof unbase64 uniform unix_micros
    unix_millis unix_seconds uuid width_bucket date_format to_unix_timestamp unix_timestamp
""".split())  # noqa: SIM905
_PLAIN_AGGREGATES = frozenset("""
    approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate bit_and bit_or bit_xor
    bitmap_and_agg bitmap_construct_agg bitmap_or_agg collect_union count_min_sketch histogram_numeric hll_sketch_agg hll_union_agg
    kurtosis listagg mode percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy skewness std string_agg try_avg try_sum vector_avg vector_sum
""".split())  # noqa: SIM905
PLAIN_CALLS = _PLAIN_CALLS | _PLAIN_AGGREGATES
"""Functions of which the call is kept as it is written: sqlglot would give them the names, or the arguments, of others."""


GENERATORS = frozenset({
    "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode_outer", "stack", "variant_explode",
    "variant_explode_outer",
})  # fmt: skip
"""Functions that give rows of several columns, which have names of their own."""


def _plain_call(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _truncating(name: str, unit: int, build: Callable[[list[exp.Expr]], exp.Expr]) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Parses a call with a unit at a place. sqlglot would take the name of a column for the unit."""

    def parse(arguments: list[exp.Expr]) -> exp.Expr:
        is_written = len(arguments) <= unit or isinstance(arguments[unit], exp.Literal)
        return build(arguments) if is_written else _plain_call(name, arguments)

    return parse


def _with_pattern(name: str, build: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Parses a call that may have a pattern of dates, whose letters sqlglot would translate."""

    def parse(arguments: list[exp.Expr], dialect: Dialect) -> exp.Expr:
        return build(arguments, dialect) if len(arguments) < 2 else _plain_call(name, arguments)

    return parse


def _plain_aggregate(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    return exp.AnonymousAggFunc(this=name, expressions=list(arguments))


_STRENGTHS = {
    exp.DPipe: 4,
    exp.BitwiseLeftShift: 3,
    exp.BitwiseRightShift: 3,
    exp.BitwiseAnd: 2,
    exp.BitwiseXor: 1,
    exp.BitwiseOr: 0,
}
_BIT_OPERATORS = tuple(_STRENGTHS)


def _by_precedence(parsed: exp.Binary) -> exp.Expr:
    """A chain of operators of bits as Spark reads it: shifts before ``&``, that before ``^``, that before ``|``.

    sqlglot, and DuckDB, take them from the left.
    """
    operators: list[exp.Binary] = []
    part: exp.Expr = parsed
    while isinstance(part, _BIT_OPERATORS):
        operators.append(part)
        part = part.this
    is_unsigned = any(isinstance(one.expression, exp.Kwarg) for one in operators)
    if len({_STRENGTHS[type(one)] for one in operators}) == 1 and not is_unsigned:
        return parsed
    values: list[exp.Expr] = [part]
    waiting: list[exp.Binary] = []

    def join() -> None:
        operator, right, left = waiting.pop(), values.pop(), values.pop()
        if isinstance(right, exp.Kwarg):
            joined: exp.Expr = exp.Anonymous(this=_UNSIGNED_SHIFT, expressions=[left, right.expression])
            joined.meta[CALL] = Call(_UNSIGNED_SHIFT, 2, named=False)
        else:
            operator.set("this", _wrapped(left))
            operator.set("expression", _wrapped(right))
            joined = operator
        values.append(joined)

    for operator in reversed(operators):
        while waiting and _STRENGTHS[type(waiting[-1])] >= _STRENGTHS[type(operator)]:
            join()
        waiting.append(operator)
        values.append(operator.expression)
    while waiting:
        join()
    return values[0]


def _wrapped(operand: exp.Expr) -> exp.Expr:
    return exp.Paren(this=operand) if isinstance(operand, _BIT_OPERATORS) else operand


_ONE_AMOUNT = re.compile(r"\s*-?[0-9]+(\.[0-9]+)?\s+[a-zA-Z]+\s*")


class Spark4(Spark):
    """The dialect of Spark 4: a quote inside of a text may be doubled, and in its ANSI mode a CAST that fails is an error."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    class Parser(SparkParser):
        STRICT_CAST = True
        # The name of a parameter may be any word.
        COLON_PLACEHOLDER_TOKENS: ClassVar = {
            *SparkParser.COLON_PLACEHOLDER_TOKENS,
            *(token for word, token in Spark.Tokenizer.KEYWORDS.items() if word.isidentifier()),
        }
        # sqlglot would read more into a path than Spark does.
        FUNCTIONS: ClassVar = {
            **SparkParser.FUNCTIONS,
            "GET_JSON_OBJECT": exp.JSONExtractScalar.from_arg_list,
            **{name: partial(_cast_to, name) for name in ("BIGINT", "SMALLINT")},
            **{name.upper(): partial(_plain_call, name) for name in _PLAIN_CALLS},
            **{name.upper(): partial(_plain_aggregate, name) for name in _PLAIN_AGGREGATES},
            **{
                name.upper(): _truncating(name, unit, SparkParser.FUNCTIONS[name.upper()])
                for name, unit in (("trunc", 1), ("date_trunc", 0))
            },
            **{name.upper(): _with_pattern(name, SparkParser.FUNCTIONS[name.upper()]) for name in ("to_date", "to_timestamp")},
        }
        FUNCTION_PARSERS: ClassVar = {
            name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name.lower() not in PLAIN_CALLS
        }

        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            # A text that is written raw is one like any other, also beside others.
            return super().parse([_as_text(token) for token in raw_tokens], sql)

        def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            first = self._index
            called = super()._parse_function_call(*args, **kwargs)
            if called is not None:
                inner = called
                while isinstance(inner, _AROUND_A_CALL):
                    inner = inner.this
                inner.meta.setdefault(CALL, _call_at(self._tokens, first))
            return called

        def _parse_types(self, check_func: bool = False, schema: bool = False, *args: Any, **kwargs: Any) -> exp.Expr | None:
            # Hive's parser makes texts of them too, and parses both of these words for each type that it finds.
            parsed = parser.Parser._parse_types(self, check_func, schema, *args, **kwargs)
            for node in () if parsed is None or schema else parsed.find_all(exp.DataType):
                if node.this in _TEXTS:
                    node.set("this", exp.DType.TEXT)
                    node.set("expressions", None)
            return parsed

        def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
            # sqlglot looks for one amount anywhere in a text, and drops what is around it.
            if this.is_string and exp.INTERVAL_STRING_RE.search(this.name) and not _ONE_AMOUNT.fullmatch(this.name):
                return self.expression(exp.Interval(this=this))
            return super()._parse_interval_span(this, parse_function_unit=parse_function_unit)

        def _parse_assignment(self) -> exp.Expr | None:
            # A literal of a list, which is the whole expression: sqlglot would ask thirty methods what else it may begin.
            if self._curr.token_type in _LITERALS and self._next.token_type in _ENDS_OF_ITEMS:
                return self._parse_primary()
            return super()._parse_assignment()

        def _parse_term(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            # sqlglot has read two signs of `>>>`, which are a shift, and asks for what it shifts by.
            places = self._tokens[max(self._index - 2, 0) : self._index + 1]
            is_unsigned = len(places) == 3 and [place.text for place in places] == [">"] * 3
            if not is_unsigned or places[2].end - places[0].start != 2:
                return super()._parse_term(*args, **kwargs)
            self._advance()
            places_by = super()._parse_term(*args, **kwargs)
            return None if places_by is None else exp.Kwarg(this=exp.to_identifier(_UNSIGNED), expression=places_by)

        def _parse_bitwise(self) -> exp.Expr | None:
            parsed = super()._parse_bitwise()
            return _by_precedence(parsed) if isinstance(parsed, _BIT_OPERATORS) else parsed

        def _parse_lambda(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            parsed = super()._parse_lambda(*args, **kwargs)
            if not isinstance(parsed, exp.Lambda) or not isinstance(parsed.this, exp.Tuple):
                return parsed
            names = parsed.this.expressions
            # A row of variables is one as `struct` makes it.
            if len({one.name.casefold() for one in names if isinstance(one, (exp.Column, exp.Identifier))}) == len(names) > 0:
                written_row = exp.Struct(expressions=names)
                written_row.meta[CALL] = Call("struct", len(names), named=False)
                parsed.set("this", written_row)
            return parsed

        def _parse_value(self, values: bool = True) -> exp.Tuple | None:
            if self._curr.token_type == TokenType.L_PAREN:
                return super()._parse_value(values)
            # In `VALUES 1, 2 AS t(x)` the alias is that of the table.
            value = self._parse_assignment()
            return None if value is None else self.expression(exp.Tuple(expressions=[value]))

        def _parse_expression(self) -> exp.Expr | None:
            first = self._curr
            expression = super()._parse_expression()
            if expression is not None:
                expression.meta[WRITTEN] = (first.start, self._prev.end + 1)
            return expression


def spans_of(nodes: Iterable[exp.Expr], tokens: Tokens) -> dict[int, tuple[int, int]]:
    """The first and last tokens of expressions, by their ``id``. ``nodes``: parts come before what they are parts of.

    sqlglot knows where names, numbers, texts and most functions stand. Of what has other parts (NULL, parameters) nothing is known.
    """
    starts = {tokens[at].start: at for at in range(len(tokens))}
    spans: dict[int, tuple[int, int]] = {}
    for node in nodes:
        at = starts.get(node.meta.get("start", -1))
        if at is not None and tokens.key(at + 1) == "(":
            spans[id(node)] = at, tokens.close(at + 1) + 1
            continue
        parts = [spans.get(id(part)) for part in node.iter_expressions() if not isinstance(part, exp.DataType)]
        known_spans = [part for part in parts if part is not None] + ([(at, at + 1)] if at is not None else [])
        if known_spans and None not in parts:
            spans[id(node)] = _with_signs(node, min(first for first, _ in known_spans), max(end for _, end in known_spans), tokens)
    return spans


def _with_signs(node: exp.Expr, first: int, end: int, tokens: Tokens) -> tuple[int, int]:
    """An expression with the parentheses and brackets that belong to it."""
    if isinstance(node, exp.Cast) and tokens.key(end) == "::":
        return first, tokens.after_group(end + 2)
    if isinstance(node, exp.Bracket) and tokens.key(end) == "]":
        return first, end + 1
    if tokens.key(first - 1) == "(" and tokens.close(first - 1) >= end:
        if isinstance(node, exp.Paren):
            return first - 1, tokens.close(first - 1) + 1
        if isinstance(node, exp.Cast) and tokens.key(first - 2) in ("CAST", "TRY_CAST"):
            return first - 2, tokens.close(first - 1) + 1
    return first, end
