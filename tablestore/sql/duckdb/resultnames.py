"""Names the columns of a result that have no alias.

As in Spark, whose name is the expression as it understands it:

    a+1, T.a + 1             (a + 1)             each operator in parentheses, columns without the table
    COUNT(*), sum( a )       count(1), sum(a)    functions in small letters, arguments as written
    CAST(a AS INT)           a                   around a column; otherwise CAST((a + 1) AS INT)
    'x', 2L, DATE '2024-…'   x, 2, DATE '2024-…'
    (SELECT …), IN (SELECT)  scalarsubquery(), (a IN (listquery()))

    sum(a) OVER (ORDER BY b)  sum(a) OVER (ORDER BY b ASC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    transform(a, x -> x + 1)  transform(a, lambdafunction((namedlambdavariable() + 1), namedlambdavariable()))
    INTERVAL 2 HOURS, X'A'    INTERVAL '02' HOUR, X'0A'    (``literalnames``)

An expression with anything else in it (windows by their names) has its own text for a name: with one blank where it has blanks,
without comments, and subqueries as ``(…)``.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from decimal import Decimal

import numpy as np
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import function_name
from tablestore.sql.duckdb.literalnames import UNITS, bytes_name, interval_name, moment_name
from tablestore.sql.parse.tokens import Kind, Token, name_of
from tablestore.sql.query.dialect import GENERATORS, WRITTEN, Spark4
from tablestore.sql.query.functions import as_written, without_prefix
from tablestore.sql.query.tokenstream import QUERY_WORDS, Tokens

_NAMED = (exp.Alias, exp.Aliases, exp.Column, exp.Star, exp.Posexplode, exp.Inline)
_COMPARISONS = {"=": "=", "==": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "<=>": "<=>", "<>": "<>", "!=": "<>"}
# From the loosest to the tightest.
_SHIFTS = ("<<", ">>", ">>>")
_LEVELS = (("|",), ("^",), ("&",), _SHIFTS, ("+", "-", "||"), ("*", "/", "%", "DIV"))
_JOINED = frozenset({"<=", ">=", "<>", "!=", "==", "<=>"})
_CONSTANTS = {
    "NULL": "NULL", "TRUE": "true", "FALSE": "false", "CURRENT_DATE": "current_date()", "CURRENT_TIMESTAMP": "current_timestamp()",
}  # fmt: skip
_SUFFIX = re.compile(r"(?:bd|[lsydf])$", re.IGNORECASE)
_CASTS = frozenset({
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "timestamp", "binary",
})  # fmt: skip
_TYPES = {
    "INTEGER": "INT", "LONG": "BIGINT", "SHORT": "SMALLINT", "BYTE": "TINYINT", "REAL": "FLOAT", "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL", "VARCHAR": "STRING", "CHAR": "STRING", "CHARACTER": "STRING", "TIMESTAMP_LTZ": "TIMESTAMP",
}  # fmt: skip
_NESTED = ("ARRAY", "MAP", "STRUCT")
_CAPITALS = frozenset({
    "atan2", "cbrt", "ceil", "cos", "degrees", "exp", "floor", "log", "log10", "log2", "pi", "power", "radians", "regexp_like",
    "rlike", "signum", "sin", "sqrt", "tan", "rank", "dense_rank", "percent_rank", "acos", "acosh", "asin", "asinh", "atan",
    "atanh", "cosh", "cot", "csc", "e", "expm1", "hypot", "log1p", "regexp", "sec", "sinh", "tanh",
})  # fmt: skip
_OTHER_NAMES = {
    "array_agg": "collect_list", "curdate": "current_date", "dateadd": "date_add", "random": "rand", "to_varchar": "to_char",
}  # fmt: skip
# Functions whose second argument is no part of the name, and those whose arguments are none.
_OF_ONE = frozenset({
    "first", "last", "first_value", "last_value", "any_value", "from_json", "from_csv", "from_xml", "to_xml", "to_csv",
    "schema_of_csv", "schema_of_json",
})  # fmt: skip
_WORDS_BETWEEN = {
    "overlay": ("PLACING", "FROM", "FOR"), "substring": ("FROM", "FOR"), "substr": ("FROM", "FOR"),
}  # fmt: skip
_OF_NONE = frozenset({"rank", "dense_rank", "percent_rank"})
# Frames of their own.
_BY_ROWS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "ntile"})
_FROM_START = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_VARIABLE = "namedlambdavariable()"
# Arguments that Spark adds, by the number of those that are there.
_ADDED = {
    ("round", 1): "0", ("percentile", 2): "1", ("percentile_approx", 2): "10000", ("split", 2): "-1",
    ("sort_array", 1): "true", ("substring", 2): "2147483647", ("substr", 2): "2147483647", ("position", 2): "1",
    ("locate", 2): "1", ("lpad", 2): " ", ("rpad", 2): " ", ("regexp_extract", 2): "1", ("regexp_replace", 3): "1",
    ("replace", 2): "", ("overlay", 3): "-1", ("months_between", 2): "true", ("unix_timestamp", 1): "yyyy-MM-dd HH:mm:ss",
    ("to_unix_timestamp", 1): "yyyy-MM-dd HH:mm:ss", ("hmac", 2): "SHA-256", ("vector_norm", 1): "2.0",
    ("vector_normalize", 1): "2.0", ("listagg", 1): "NULL", ("string_agg", 1): "NULL", ("approx_top_k", 1): "5, 10000",
    ("approx_top_k", 2): "10000", ("approx_top_k_accumulate", 1): "10000", ("approx_top_k_estimate", 1): "5",
    ("from_unixtime", 1): "yyyy-MM-dd HH:mm:ss", ("current_time", 0): "6", ("theta_union_agg", 1): "12", ("theta_union", 2): "12",
    ("theta_sketch_agg", 1): "12", ("hll_sketch_agg", 1): "12", ("hll_union", 2): "false", ("hll_union_agg", 1): "false",
    **{
        (f"tuple_{name}_{kind}", count): added
        for kind in ("double", "integer")
        for name, count, added in (
            ("intersection_agg", 1, "sum"), ("union_agg", 1, "12, sum"), ("sketch_agg", 2, "12, sum"), ("intersection", 2, "sum"),
            ("intersection_theta", 2, "sum"), ("union", 2, "12, sum"), ("union_theta", 2, "12, sum"), ("sketch_summary", 1, "sum"),
        )
    },
    **{("mask", count): ", ".join(("X", "x", "n", "NULL")[count - 1 :]) for count in range(1, 5)},
    **{
        (name, count): ", ".join(added[count - 2 :])
        for name, added in (
            ("aes_decrypt", ("GCM", "DEFAULT", "")), ("try_aes_decrypt", ("GCM", "DEFAULT", "")),
            ("aes_encrypt", ("GCM", "DEFAULT", "", "")),
        )
        for count in range(2, 2 + len(added))
    },
    **{("make_dt_interval", count): ", ".join(("0", "0", "0", "0.000000")[count:]) for count in range(4)},
    ("str_to_map", 1): ",, :", ("str_to_map", 2): ":", ("st_asbinary", 1): "NDR", ("st_geomfromwkb", 1): "0",
    ("regexp_instr", 2): "0", ("regexp_extract_all", 2): "1",
    ("lag", 1): "1, NULL", ("lag", 2): "NULL", ("lead", 1): "1, NULL", ("lead", 2): "NULL",
    ("aggregate", 3): f"lambdafunction({_VARIABLE}, {_VARIABLE})", ("reduce", 3): f"lambdafunction({_VARIABLE}, {_VARIABLE})",
}  # fmt: skip


DISTINCT_ROWS = "count(DISTINCT *)"
"""The name of a count of distinct rows, in which the names of all columns stand in the place of the star."""
NAMED_HERE = "tablestore_named"
"""The mark of an alias that is the name of an expression."""


class _NotNamed(Exception):
    """Signals a part of an expression that only its own text can name."""


def name_results(tree: exp.Expr, tokens: Tokens) -> None:
    """Gives each column of each query that has no alias the name that Spark gives it. ``tokens``: of the text of the tree."""
    for pivot in list(tree.find_all(exp.Pivot)):
        _name_aggregates(pivot)
    if not [one for select in tree.find_all(exp.Select) for one in select.expressions if not _is_named(one)]:
        return
    starts = {tokens[at].start: at for at in range(len(tokens))}
    ends = {tokens[at].end: at + 1 for at in range(len(tokens))}
    for select in list(tree.find_all(exp.Select)):
        tables = {part.alias_or_name.casefold() for part in sources(select)}
        columns = select.expressions
        used_names = {one.alias_or_name.casefold() for one in columns if isinstance(one, (exp.Alias, exp.Column, exp.Star))}
        named = []
        for column in columns:
            start, end = column.meta.get(WRITTEN, (-1, -1))
            if not _is_named(column) and start in starts and end in ends:
                naming = _Naming(tokens, starts[start], ends[end], tables)
                column = _with_name(column, naming, used_names, "col" if type(column) is exp.Explode else None)
            named.append(column)
        select.set("expressions", named)


def _name_aggregates(pivot: exp.Pivot) -> None:
    """Gives each of several aggregates of a PIVOT the name that its columns end with."""
    fields, count = pivot.args.get("fields") or [], len(pivot.expressions)
    if pivot.args.get("unpivot") or count < 2 or len(fields) != 1:
        return
    names = []
    for place, item in enumerate(pivot.expressions):
        if not isinstance(item, exp.Alias):
            name = exp.to_identifier(name_of_result(item.sql(dialect=Spark4)), quoted=True)
            pivot.expressions[place].replace(exp.Alias(this=item.copy(), alias=name))
        names.append(pivot.expressions[place].alias)
    values = [value.alias or value.name for value in fields[0].expressions]
    pivot.set("columns", [exp.to_identifier(f"{value}_{name}", quoted=True) for value in values for name in names])


def _is_named(column: exp.Expr) -> bool:
    """True if a column has a name, or columns that it stands for have."""
    return isinstance(column, _NAMED) or function_name(column) in GENERATORS


def sources(query: exp.Select) -> Iterator[exp.Expr]:
    """The sources that a query reads."""
    start = query.args.get("from_")
    for clause in [*([start] if start else []), *(query.args.get("joins") or ())]:
        yield clause.this
        yield from (join.this for join in clause.this.args.get("joins") or ())


def _with_name(column: exp.Expr, naming: "_Naming", used_names: set[str], generated: str | None) -> exp.Expr:
    name = generated or naming.result()
    # What is sorted by a column that is there too is not to be sorted by its cast.
    if naming.casts is not None and not {naming.casts.casefold(), "*"} & used_names:
        name = naming.casts
        used_names.add(name.casefold())
    if not name:
        return column
    alias = exp.Alias(this=column, alias=exp.to_identifier(name, quoted=True))
    alias.meta[NAMED_HERE] = True
    return alias


def name_of_result(text: str, tables: Collection[str] = ()) -> str:
    """The name of an expression. ``tables``: names, in small letters, that may stand before a column's."""
    tokens = Tokens(text)
    naming = _Naming(tokens, 0, len(tokens), tables)
    name = naming.result()
    return name if naming.casts is None else naming.casts


class _Naming:
    """Reads an expression and says it in Spark's words: each method takes what it is named after."""

    def __init__(self, tokens: Tokens, at: int, end: int, tables: Collection[str]) -> None:
        self._tokens, self._at, self._end, self._tables = tokens, at, end, tables
        self._whole = at, end
        # The name of the column that what was read last is, or casts.
        self._column: str | None = None
        self._variable: str | None = None
        self._is_field = False
        self._variables: tuple[str, ...] = ()
        self.casts: str | None = None

    def result(self) -> str:
        """The name of the whole expression. Of a cast of a column, ``casts`` is that of the column."""
        try:
            name = self._condition()
            if self._at != self._end:
                raise _NotNamed
        except (_NotNamed, InvalidInputError):
            self._composed("")
            return as_written(self._tokens.line(*self._whole))
        return name if self._column is None else self._column

    def _key(self, ahead: int = 0) -> str:
        return self._tokens.key(self._at + ahead) if self._at + ahead < self._end else ""

    def _token(self, ahead: int = 0) -> Token:
        if self._at + ahead >= self._end:
            raise _NotNamed
        return self._tokens[self._at + ahead]

    def _take(self, *words: str) -> bool:
        """Takes these words if they stand here; True if so."""
        matches = all(self._key(place) == word for place, word in enumerate(words))
        self._at += len(words) if matches else 0
        return matches

    def _expect(self, *words: str) -> None:
        if not self._take(*words):
            raise _NotNamed

    def _composed(self, name: str, *, cast: str | None = None) -> str:
        self._column, self._variable, self.casts, self._is_field = None, None, cast, False
        return name

    def _condition(self) -> str:
        return self._chain("OR", lambda: self._chain("AND", self._negation))

    def _chain(self, word: str, operand: Callable[[], str]) -> str:
        parts = [operand()]
        while self._take(word):
            parts.append(operand())
        return parts[0] if len(parts) == 1 else self._composed(_balanced(word, parts))

    def _negation(self) -> str:
        is_not = self._take("NOT") or self._take("!")
        return self._composed(f"(NOT {self._negation()})") if is_not else self._predicate()

    def _predicate(self) -> str:
        left = self._compared()
        while True:
            is_not = self._take("NOT")
            test_name = self._test(left)
            if test_name is None:
                if is_not:
                    raise _NotNamed
                return left
            is_quantified = test_name.startswith(("likeall(", "likeany("))
            left = self._composed(f"not{test_name}" if is_not and is_quantified else f"(NOT {test_name})" if is_not else test_name)

    def _test(self, left: str) -> str | None:
        if self._take("BETWEEN"):
            low = self._computed(0)
            self._expect("AND")
            return f"between({left}, {low}, {self._computed(0)})"
        if self._take("IN", "("):
            return f"({left} IN ({self._among()}))"
        if self._take("LIKE"):
            return self._like(left)
        if self._take("RLIKE") or self._take("REGEXP"):
            return f"RLIKE({left}, {self._computed(0)})"
        if self._take("ILIKE"):
            pattern = self._computed(0)
            if self._take("ESCAPE"):
                self._computed(0)
            return f"ilike({left}, {pattern})"
        return self._state(left) if self._take("IS") else None

    def _state(self, left: str) -> str:
        is_not = self._take("NOT")
        if self._take("NULL"):
            return f"({left} IS {'NOT ' * is_not}NULL)"
        if self._take("DISTINCT", "FROM"):
            is_not, right = not is_not, self._computed(0)
        elif self._key() in ("TRUE", "FALSE"):
            right = self._computed(0)
        else:
            raise _NotNamed
        return f"(NOT ({left} <=> {right}))" if is_not else f"({left} <=> {right})"

    def _like(self, left: str) -> str:
        if self._key() in ("ANY", "SOME", "ALL"):
            quantifier = "all" if self._key() == "ALL" else "any"
            self._at += 1
            self._expect("(")
            self._list()
            return f"like{quantifier}({left})"
        pattern = self._computed(0)
        if not self._take("ESCAPE"):
            return f"{left} LIKE {pattern}"
        return f"{left} LIKE {pattern} ESCAPE '{self._computed(0)}'"

    def _among(self) -> str:
        if self._key() in QUERY_WORDS:
            self._skip_group()
            return "listquery()"
        return ", ".join(self._list())

    def _compared(self) -> str:
        left = self._computed(0)
        while (sign := _COMPARISONS.get(joined := self._sign())) is not None:
            self._at += len(joined) - ("=>" in joined)
            right = self._computed(0)
            left = self._composed(f"(NOT ({left} = {right}))" if sign == "<>" else f"({left} {sign} {right})")
        return left

    def _sign(self) -> str:
        """The comparison that stands here, of which each character is a token (but for ``=>``)."""
        parts = [self._key()]
        while (behind := self._key(len(parts))) and "".join([*parts, behind]) in _JOINED and self._touches(len(parts)):
            parts.append(behind)
        return "".join(parts)

    def _shift(self) -> str:
        """The signs of a shift that stand here, of which each is a token."""
        count = 1
        if self._key() not in ("<", ">"):
            return ""
        while count < 3 and self._key(count) == self._key() and self._touches(count):
            count += 1
        return self._key() * count

    def _touches(self, ahead: int) -> bool:
        return self._token(ahead - 1).end == self._token(ahead).start

    def _computed(self, level: int) -> str:
        if level == len(_LEVELS):
            return self._unary()
        left = self._computed(level + 1)
        while (sign := self._shift() if _LEVELS[level] is _SHIFTS else self._key()) in _LEVELS[level]:
            self._at += len(sign) if sign in _SHIFTS else 1
            right = self._computed(level + 1)
            is_moved = sign in ("+", "-") and left.startswith("TIMESTAMP") and right.startswith("INTERVAL")
            text = f"{left} {sign.lower()} {right}"
            left = self._composed(f"concat({left}, {right})" if sign == "||" else text if is_moved else f"({text})")
        return left

    def _unary(self) -> str:
        sign = self._key()
        if sign == "-" and self._token(1).kind is Kind.NUMBER:
            self._at += 1
            return f"-{self._parts()}"
        if sign in ("-", "+", "~"):
            self._at += 1
            operand = self._unary()
            return self._composed(f"~{operand}" if sign == "~" else f"({sign} {operand})")
        return self._parts()

    def _parts(self) -> str:
        """An operand with what stands behind it: ``a[0].b::INT``."""
        text = self._operand()
        while True:
            if self._take("["):
                text = self._composed(f"{text}[{self._condition()}]")
                self._expect("]")
            elif self._key() == "." and self._token(1).kind in (Kind.WORD, Kind.NAME):
                text = self._composed(f"{text}.{name_of(self._token(1))}")
                self._at += 2
            elif self._take("::"):
                text = self._converted("CAST", text)
            else:
                return text

    def _operand(self) -> str:
        token, key = self._token(), self._key()
        if key == "(":
            return self._parenthesis()
        self._at += 1
        if token.kind is Kind.NUMBER:
            return self._composed(_number(token.text))
        if token.kind is Kind.TEXT:
            text = self._tokens.value(self._at - 1)
            while self._at < self._end and self._token().kind is Kind.TEXT:
                text += self._tokens.value(self._at)
                self._at += 1
            return self._composed(text)
        if key == ":":
            return self._parameter()
        if token.kind is not Kind.NAME:
            return self._word(token)
        return self._name()

    def _parameter(self) -> str:
        name = name_of(self._token())
        self._at += 1
        # A question mark has been counted.
        return self._composed("?" if name.startswith("_") and name[1:].isdecimal() else f":{name}")

    def _word(self, word: Token) -> str:
        if word.kind is not Kind.WORD or word.key in ("NOT", "DISTINCT"):
            raise _NotNamed
        if word.key == "CASE":
            return self._case()
        if word.key == "INTERVAL" and (self._key() == "-" or self._token().kind in (Kind.TEXT, Kind.NUMBER)):
            return self._interval()
        if self._at < self._end and self._token().kind is Kind.TEXT:
            self._at += 1
            text = self._tokens.value(self._at - 1)
            return self._known(bytes_name(text) if word.key == "X" else moment_name(word.key, text))
        if self._key() == "(" and word.key in ("CAST", "TRY_CAST", "EXISTS", "EXTRACT"):
            return self._special(word.key)
        if word.key in _CONSTANTS and self._key() not in ("(", "."):
            return self._composed(_CONSTANTS[word.key])
        return self._name()

    def _known(self, name: str | None) -> str:
        if name is None:
            raise _NotNamed
        return self._composed(name)

    def _interval(self) -> str:
        """Names an interval that is written, behind its word: amounts with their units, or a text."""
        amounts, units, is_span = list[str](), list[str](), False
        while not amounts or self._token_is_amount():
            sign = self._take("-")
            token = self._token()
            if token.kind not in (Kind.TEXT, Kind.NUMBER):
                raise _NotNamed
            amounts.append("-" * sign + (self._tokens.value(self._at) if token.kind is Kind.TEXT else token.text))
            self._at += 1
            if self._key() not in UNITS:
                break
            units.append(self._key())
            self._at += 1
            if self._take("TO"):
                is_span = True
                units.append(self._key())
                self._at += 1
                break
        return self._known(interval_name(amounts, units, is_span=is_span))

    def _token_is_amount(self) -> bool:
        ahead = int(self._key() == "-")
        return self._key(ahead + 1) in UNITS and self._token(ahead).kind in (Kind.TEXT, Kind.NUMBER)

    def _special(self, word: str) -> str:
        """Names what looks like a function and has keywords inside."""
        self._at += 1
        if word == "EXISTS":
            if self._key() not in QUERY_WORDS:
                return self._call("exists")
            self._skip_group()
            return self._composed("exists()")
        if word == "EXTRACT":
            part = self._token().text
            self._at += 1
            self._expect("FROM")
            text = f"extract({part} FROM {self._condition()})"
            self._expect(")")
            return self._composed(text)
        value = self._condition()
        self._expect("AS")
        text = self._converted(word, value)
        self._expect(")")
        return text

    def _converted(self, word: str, value: str) -> str:
        column = None if self._is_field else self._column
        type_name = self._type()
        return self._composed(value if type_name in _NESTED else f"{word}({value} AS {type_name})", cast=column)

    def _parenthesis(self) -> str:
        self._at += 1
        if self._key() in QUERY_WORDS:
            self._skip_group()
            return self._composed("scalarsubquery()")
        inner = self._condition()
        if self._key() == ",":
            return self._row(inner)
        self._expect(")")
        return inner

    def _row(self, first: str) -> str:
        """Names a row of several values, of which the first is read."""
        parts = [(self._column or self._variable, first)]
        while self._take(","):
            value = self._condition()
            parts.append((self._column or self._variable, value))
        self._expect(")")
        named = (f"{name or f'col{place}'}, {value}" for place, (name, value) in enumerate(parts, 1))
        return self._composed(f"named_struct({', '.join(named)})")

    def _name(self) -> str:
        """Names a column or a call, whose first word is taken already."""
        parts = [self._tokens.name(self._at - 1)]
        while self._key() == "." and self._token(1).kind in (Kind.WORD, Kind.NAME):
            parts.append(name_of(self._token(1)))
            self._at += 2
        if self._take("("):
            return self._call(without_prefix(".".join(parts)).lower())
        if parts[0].casefold() in self._variables:
            self._composed("")
            self._variable = parts[-1]
            return ".".join([_VARIABLE, *parts[1:]])
        if len(parts) > 1 and parts[0].casefold() in self._tables:
            parts = parts[1:]
        self._composed("")
        self._column = parts[-1]
        self._is_field = len(parts) > 1 and not any(part.casefold() in self._tables for part in parts[:-1])
        return ".".join(parts)

    def _call(self, name: str) -> str:
        is_distinct = self._take("DISTINCT")
        if name == "trim":
            return self._trim()
        words = [self._tokens.key(at) for at in range(self._at, self._tokens.close(self._at - 1))]
        is_in = name == "position" and "IN" in words
        name = "locate" if is_in else "substring" if name == "substr" and "FROM" in words else name
        has_star = name == "count" and self._take("*", ")")
        if has_star and is_distinct:
            return self._composed(DISTINCT_ROWS)
        arguments = ["1"] if has_star else self._list(("IN",) if is_in else _WORDS_BETWEEN.get(name, ()), aliases=name == "struct")
        if name == "from_json" and len(arguments) > 1 and arguments[1].lstrip().upper().startswith("MAP<"):
            return self._composed("entries")
        if name in _OF_ONE:
            del arguments[1:]
        if name in ("variant_get", "try_variant_get"):
            del arguments[2:]
        if name in _OF_NONE:
            arguments.clear()
        if name in _CASTS and len(arguments) == 1:
            # What a function casts has its own name.
            return self._composed(arguments[0], cast=self._column)
        if name == "identifier" and len(arguments) == 1:
            self._column = arguments[0].rpartition(".")[2]
            return self._column
        name = "timestampadd" if name in ("dateadd", "date_add") and len(arguments) == 3 else _OTHER_NAMES.get(name, name)
        if name == "log" and len(arguments) == 1:
            arguments.insert(0, "E()")
        if (added := _ADDED.get((name, len(arguments)))) is not None:
            arguments.append(added)
        if name == "string_agg" and self._key() == "WITHIN":
            name = "listagg"
        between = " FROM " if name == "datepart" else ", "
        text = "DISTINCT " * is_distinct + between.join(arguments)
        if name == "positive":
            call_text = f"(+ {text})"
        elif name == "like" and len(arguments) == 2:
            call_text = " LIKE ".join(arguments)
        elif name in ("isnull", "isnotnull"):
            call_text = f"({text} IS {'NOT ' * (name == 'isnotnull')}NULL)"
        else:
            is_capital = name in _CAPITALS and not (name in ("ceil", "floor") and len(arguments) == 2)
            call_text = f"(IF({text}))" if name == "if" else f"{name.upper() if is_capital else name}({text})"
        if self._take("WITHIN", "GROUP", "(", "ORDER", "BY"):
            call_text += f" WITHIN GROUP (ORDER BY {self._within(name)})"
            self._expect(")")
        if self._take("FILTER", "(", "WHERE"):
            call_text += f" FILTER (WHERE {self._condition()})"
            self._expect(")")
        if name in _OF_ONE:
            self._take("IGNORE", "NULLS")
            self._take("RESPECT", "NULLS")
        if self._take("OVER"):
            self._expect("(")
            call_text += f" OVER ({self._window(name, arguments)})"
        return self._composed(call_text)

    def _window(self, function: str, arguments: Sequence[str]) -> str:
        """Names what stands in the parentheses of a window, and takes the closing one."""
        text = ""
        if self._take("PARTITION", "BY") or self._take("DISTRIBUTE", "BY"):
            text += f"PARTITION BY {', '.join(self._several(self._condition))} "
        is_ordered = self._take("ORDER", "BY") or self._take("SORT", "BY")
        if is_ordered:
            text += f"ORDER BY {', '.join(self._several(self._order))} "
        if self._key() in ("ROWS", "RANGE"):
            text += f"{self._key()} "
            self._at += 1
            is_range = self._take("BETWEEN")
            text += f"BETWEEN {self._bound()} AND "
            if is_range:
                self._expect("AND")
            text += self._bound() if is_range else "CURRENT ROW"
        elif function in _BY_ROWS:
            text += f"ROWS {_FROM_START}"
        elif function in ("lag", "lead"):
            place = arguments[1].partition(",")[0]
            place = place if function == "lead" else _negative(place)
            text += f"ROWS BETWEEN {place} FOLLOWING AND {place} FOLLOWING"
        else:
            text += f"RANGE {_FROM_START}" if is_ordered else "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        self._expect(")")
        return text

    def _within(self, function: str) -> str:
        """Names the order of an aggregate."""
        if function in ("listagg", "string_agg"):
            return ", ".join(self._several(self._order))
        value = self._condition()
        is_last = self._take("DESC")
        self._take("ASC")
        return value + " DESC" * (is_last != (function == "mode"))

    def _order(self) -> str:
        value = self._condition()
        direction = "DESC" if self._take("DESC") else "ASC"
        self._take("ASC")
        nulls = "FIRST" if direction == "ASC" else "LAST"
        if self._take("NULLS"):
            nulls = self._key()
            self._at += 1
        return f"{value} {direction} NULLS {nulls}"

    def _bound(self) -> str:
        for words in (("CURRENT", "ROW"), ("UNBOUNDED", "PRECEDING"), ("UNBOUNDED", "FOLLOWING")):
            if self._take(*words):
                return " ".join(words)
        value = self._computed(0)
        direction = self._key()
        if direction not in ("PRECEDING", "FOLLOWING"):
            raise _NotNamed
        self._at += 1
        return f"{value} {direction}"

    def _several(self, take: Callable[[], str]) -> list[str]:
        names = [take()]
        while self._take(","):
            names.append(take())
        return names

    def _lambda(self) -> str | None:
        """Names a function that is written in an argument: ``x -> x + 1``."""
        start = self._at
        variables = [self._key().casefold()]
        if self._take("("):
            end = self._tokens.close(start)
            variables = [self._tokens.name(at).casefold() for at in range(start + 1, end, 2) if self._tokens.is_name(at)]
            self._at = end
        self._at += 1
        if not (self._key() == "->" or (self._key() == "-" and self._key(1) == ">")):
            self._at = start
            return None
        self._at += len("->") // len(self._key())
        outer, self._variables = self._variables, (*self._variables, *variables)
        body = self._condition()
        self._variables = outer
        return self._composed(f"lambdafunction({', '.join([body, *[_VARIABLE] * len(variables)])})")

    def _trim(self) -> str:
        """Names ``trim``, behind its parenthesis: of blanks, or of characters from a side of a text."""
        side = next((word for word in ("BOTH", "LEADING", "TRAILING") if self._take(word)), "")
        characters = "" if self._key() == "FROM" else self._condition()
        if not self._take("FROM"):
            # Its comma is that of other texts.
            if side or self._key() != ")":
                raise _NotNamed
            self._at += 1
            return self._composed(f"trim({characters})")
        text = self._condition()
        self._expect(")")
        if characters:
            return self._composed(f"TRIM({side or 'BOTH'} {characters} FROM {text})")
        return self._composed(f"{ {'LEADING': 'ltrim', 'TRAILING': 'rtrim'}.get(side, 'trim') }({text})")

    def _list(self, words: Sequence[str] = (), *, aliases: bool = False) -> list[str]:
        """Expressions up to the closing parenthesis, which is taken too. ``words``: some that stand for commas."""
        names: list[str] = []
        while not self._take(")"):
            if names:
                if self._key() in words:
                    self._at += 1
                else:
                    self._expect(",")
            names.append(self._lambda() or self._condition())
            if aliases and self._take("AS"):
                names[-1] += f" AS {name_of(self._token())}"
                self._at += 1
        return names

    def _case(self) -> str:
        subject = None if self._key() == "WHEN" else self._condition()
        text = "CASE"
        while self._take("WHEN"):
            test = self._condition()
            self._expect("THEN")
            text += f" WHEN {test if subject is None else f'({subject} = {test})'} THEN {self._condition()}"
        if self._take("ELSE"):
            text += f" ELSE {self._condition()}"
        self._expect("END")
        return self._composed(f"{text} END")

    def _type(self) -> str:
        word = self._token()
        self._at += 1
        if word.kind is not Kind.WORD:
            raise _NotNamed
        type_name = _TYPES.get(word.key, word.key)
        if self._take("("):
            digits = self._list()
            type_name += f"({','.join(digits)})" * (type_name != "STRING")
        elif type_name in _NESTED:
            # A cast to it is named by what it casts.
            depth = 0
            while depth or self._key() == "<":
                depth += (self._key() == "<") - (self._key() == ">")
                self._token()
                self._at += 1
        return f"{type_name}(10,0)" if type_name == "DECIMAL" else type_name

    def _skip_group(self) -> None:
        """Moves behind the parenthesis that a query stands in, whose first word stands here."""
        self._at = self._tokens.close(self._at - 1) + 1


def _negative(number: str) -> str:
    return number.removeprefix("-") if number.startswith("-") else f"-{number}"


def _number(text: str) -> str:
    """A number as Spark writes its value: a float as Java does, all others by their digits."""
    suffix = _SUFFIX.search(text)
    kind = suffix[0].lower() if suffix is not None else "d" if "e" in text.lower() else ""
    digits = _SUFFIX.sub("", text)
    if kind not in ("d", "f"):
        number = Decimal(digits)
        exponent = number.as_tuple().exponent
        return f"{number:f}" if isinstance(exponent, int) and exponent > 0 else str(number)
    value = float(digits)
    if not math.isfinite(value):
        raise _NotNamed
    # The shortest digits that stand for the value: those of a FLOAT are fewer.
    shortest = Decimal(str(np.float32(value)) if kind == "f" else repr(value))
    if value == 0 or 1e-3 <= value < 1e7:
        plain = f"{shortest.normalize():f}"
        return plain if "." in plain else f"{plain}.0"
    _, figures, _ = shortest.normalize().as_tuple()
    first, *more_figures = map(str, figures)
    return f"{first}.{''.join(more_figures) or 0}E{shortest.adjusted()}"


def _balanced(word: str, parts: Sequence[str]) -> str:
    """A chain of one operator as Spark reads it: halves of halves."""
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    return f"({_balanced(word, parts[:middle])} {word} {_balanced(word, parts[middle:])})"
