"""Checks that the texts of computed columns and watermarks are each one scalar expression over the columns of their table.

Whoever can write into a warehouse can write any text in their place, and each reader of the table computes it. An expression

- is one: no second item, no name, no subquery, no star, no parameter, nothing behind a comment
- names columns of its table, its own lambdas' arguments, and functions of :data:`FUNCTIONS`
- is short, not deep, and makes no long values (``hex(hex(hex(…)))``, ``replace(v, 'a', v)``): :mod:`valuelengths`

The time that a pattern takes in Java is not bounded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tablestore.errors import InvalidInputError
from tablestore.sql.depth import deep
from tablestore.sql.query.dialect import CALL, OPERATORS, Call, Spark4
from tablestore.sql.query.tokenstream import QUERY_WORDS, Tokens
from tablestore.sql.stored.sparkreach import reaches
from tablestore.sql.stored.valuelengths import ROW, Length, TooLong, ValueLengths, of_row
from tablestore.types.expression.sqltree import shorten

MOST_CHARACTERS = 10_000
MOST_LEVELS = 500

FUNCTIONS = frozenset("""
    abs acos acosh add_months array array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort
    array_union arrays_overlap arrays_zip ascii asin asinh assert_true atan atan2 atanh base64 bigint bin binary bit_count bit_get
    bit_length boolean bround btrim cardinality case cast cbrt ceil ceiling char char_length character_length chr coalesce
    collation concat concat_ws contains conv convert_timezone cos cosh cot crc32 csc curdate current_date current_timestamp date
    date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname
    dayofmonth dayofweek dayofyear decimal decode degrees double e element_at elt encode endswith equal_null exists exp expm1
    extract factorial filter find_in_set flatten float floor forall format_number from_base32 from_csv from_json from_unixtime
    from_utc_timestamp get get_json_object getbit greatest hash hex hour hypot if ifnull ilike initcap instr int is_valid_utf8
    is_valid_variant is_variant_null isnan isnotnull isnull json_array_length json_object_keys lcase last_day least left len
    length levenshtein like ln localtime localtimestamp locate log log10 log1p log2 lower lpad ltrim luhn_check make_date
    make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval
    map map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask
    md5 minute mod month monthname months_between named_struct nanvl negative next_day now nullif nullifzero nvl nvl2 octet_length
    overlay parse_json parse_url pi pmod position positive pow power quarter quote radians raise_error regexp regexp_count
    regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rint rlike
    round rpad rtrim schema_of_csv schema_of_json schema_of_variant sec second sentences sha sha1 sha2 shiftleft shiftright
    shiftrightunsigned sign signum sin sinh size slice smallint sort_array soundex space split split_part sqrt startswith
    str_to_map string struct substr substring substring_index tan tanh time time_diff time_from_micros time_from_millis
    time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp timestamp_micros timestamp_millis
    timestamp_nanos timestamp_seconds timestampadd timestampdiff tinyint to_base32 to_binary to_char to_date to_json to_number
    to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar to_variant_object
    transform transform_keys transform_values translate trim trunc try_add try_cast try_divide try_element_at try_make_interval
    try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url try_subtract
    try_to_binary try_to_date try_to_number try_to_time try_to_timestamp try_url_decode try_variant_get typeof ucase unbase64 unhex
    unix_date unix_micros unix_millis unix_nanos unix_seconds unix_timestamp upper url_decode url_encode variant_get weekday
    weekofyear width_bucket xxhash64 year zeroifnull zip_with
""".split())  # noqa: SIM905
"""Spark's scalar functions of one row, without those that are by chance (``rand``, ``uuid``), that tell of the host
(``current_user``, ``version``, ``input_file_name``), that reach out (:mod:`sparkreach`), that read XML, that make as much as a
number says (``sequence``, ``randstr``, ``format_string``), and ``aggregate``, in which each step may double what the last one gave.
The time of day is let through. DuckDB's list of functions that it knows is shorter, and holds there too."""

_OPERATORS = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.HexString, exp.Var, exp.Interval),
    *(exp.Paren, exp.Tuple, exp.Unary, exp.Binary, exp.Between, exp.In, exp.If, exp.Bracket, exp.Slice, exp.Lambda),
    *(exp.DataType, exp.DataTypeParam, exp.ColumnDef, exp.IntervalSpan),
)


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """The result of checking one text: the expression on one line, without comments, or why it is none."""

    text: str = ""
    refusal: str | None = None


@lru_cache(maxsize=512)
def check_expressions(columns: tuple[str, ...], texts: tuple[tuple[str, str], ...]) -> Mapping[str, CheckedExpression]:
    """Checks the texts of a table by the names of what they compute. ``columns``: the stored ones. Pure.

    One may name another, as other writers have it, but not in a circle.
    """
    known_names = {name.casefold() for name in (*columns, *(name for name, _ in texts))}
    checked: dict[str, CheckedExpression] = {}
    trees: dict[str, exp.Expr] = {}
    with deep():
        for name, text in texts:
            try:
                trees[name.casefold()], line = _tree(text, known_names)
                checked[name] = CheckedExpression(line)
            except InvalidInputError as error:
                checked[name] = CheckedExpression(refusal=error.message)
        lengths = _Lengths(trees)
        for name, _ in texts:
            if checked[name].refusal is None and (why := lengths.refusal(name.casefold())) is not None:
                checked[name] = CheckedExpression(refusal=why)
    return checked


def check_expression(text: str, columns: Sequence[str]) -> str:
    """The expression of a text, on one line. Raises InvalidInputError of the kind ``stored-expression``."""
    checked = check_expressions(tuple(columns), (("", text),))[""]
    if checked.refusal is not None:
        raise _refused(checked.refusal)
    return checked.text


def _refused(why: str) -> InvalidInputError:
    return InvalidInputError(why, kind="stored-expression")


def _tree(text: str, columns: set[str]) -> tuple[exp.Expr, str]:
    """The expression that a text is, and its line. Raises InvalidInputError."""
    if len(text) > MOST_CHARACTERS:
        raise _refused(f"expected at most {MOST_CHARACTERS:,} characters, found {len(text):,}")
    tokens = Tokens(text)
    for reach in reaches(tokens):
        raise _refused(f"found {reach.what}")
    _check_tokens(tokens)
    line = tokens.line(0, len(tokens))
    try:
        trees = sqlglot.parse(f"SELECT ({line})", read=Spark4)
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _refused("it cannot be parsed") from error
    select = trees[0] if len(trees) == 1 else None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1 or any(_clauses(select)):
        raise _refused("expected one expression")
    tree = select.expressions[0]
    for node in tree.walk():
        if node.depth > MOST_LEVELS:
            raise _refused(f"it is nested more than {MOST_LEVELS} levels deep")
        _check_node(node, columns)
    return tree, line


def _check_tokens(tokens: Tokens) -> None:
    """Refuses by the tokens what a parser may read in another way than the engine does."""
    at, depth = 0, 0
    if len(tokens) == 0:
        raise _refused("expected an expression, found none")
    if tokens.hints:
        raise _refused("found a hint")
    while at < len(tokens):
        key = tokens.key(at)
        depth += (key in ("(", "[")) - (key in (")", "]"))
        if depth < 0 or key in (";", "{", "}", "?") or (depth == 0 and key in (",", "AS")):
            raise _refused(f"expected one expression, found {key!r}")
        if key == "(" and tokens.key(at + 1) in QUERY_WORDS and tokens.key(at + 2) not in (")", ",", "."):
            raise _refused("found a subquery")
        if tokens.is_name(at) and (behind := tokens.after_chain(at)) > at + 1:
            if tokens.key(behind) == "(":
                raise _refused(f"found a call of {tokens.name(at)}.{tokens.name(at + 2)}, which is no function of Spark's own")
            at = behind
        else:
            at += 1
    if depth:
        raise _refused("a parenthesis is not closed")


def _clauses(select: exp.Select) -> Iterator[object]:
    """The clauses of a SELECT besides its items."""
    return (value for key, value in select.args.items() if key != "expressions" and value)


def _check_node(node: exp.Expr, columns: set[str]) -> None:
    call = node.meta.get(CALL)
    if isinstance(node, (exp.Any, exp.All)) and isinstance(node.parent, (exp.Like, exp.ILike)):
        # The list of LIKE ANY (…), which is no function.
        return
    if isinstance(call, Call):
        if call.name not in FUNCTIONS:
            raise _refused(f"found the function {shorten(call.name)}, which is not among those that a stored expression calls")
    elif isinstance(node, exp.Func):
        if type(node).__name__ not in OPERATORS:
            raise _refused(f"found {node.sql_name()}")
    elif not isinstance(node, _OPERATORS) or (isinstance(node, exp.Lambda) and not isinstance(node.parent, exp.Func)):
        raise _refused(f"found {_name_of(node)}")
    if isinstance(node, exp.Column):
        name = node.parts[0].name if node.parts else ""
        if isinstance(node.this, exp.Star) or name.casefold() not in columns:
            raise _refused(f"found {shorten(node.sql(dialect=Spark4))}, which is no column of the table")


def _name_of(node: exp.Expr) -> str:
    """The kind of a node, in words."""
    if isinstance(node, exp.Query):
        return "a subquery"
    if isinstance(node, exp.Placeholder | exp.Parameter):
        return "a parameter"
    return "a name (AS)" if isinstance(node, exp.Alias) else type(node).__name__.upper()


@dataclass(slots=True)
class _Lengths:
    """Computes how long the values are that the expressions of a table give, by the names of its columns in small letters."""

    trees: Mapping[str, exp.Expr]
    _known: dict[str, Length | str] = field(default_factory=dict)

    def refusal(self, name: str) -> str | None:
        """The reason for which the values of a column may be too long; None if they are not."""
        length = self._of(name)
        return length if isinstance(length, str) else None

    def _of(self, name: str) -> Length | str:
        if name not in self.trees:
            return of_row()
        if name not in self._known:
            # What it is until it is known: whoever asks meanwhile stands in a circle.
            self._known[name] = "it names itself"
            try:
                length = ValueLengths(self._column).of(self.trees[name])
                self._known[name] = Length({ROW: 0, **length.parts})
            except TooLong as error:
                self._known[name] = f"it multiplies its values, or is long: {error}"
            except _Refused as error:
                self._known[name] = str(error)
        return self._known[name]

    def _column(self, node: exp.Column) -> Length:
        length = self._of(node.parts[0].name.casefold())
        if isinstance(length, str):
            raise _Refused(length)
        return length


class _Refused(Exception):
    """Signals an expression that names one which is refused, with the reason."""
