"""Rewrites calls of text functions, LIKE and regular expressions that sqlglot has a node for, with Spark's meaning in DuckDB.

The others are rules of :mod:`tablestore.sql.duckdb.functions.textfunctions`.
"""

import re

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import call, failing, is_not_null, not_negative, refusal, refused_where
from tablestore.sql.duckdb.functions.functionrule import from_text

_PATH = re.compile(r"\$(?:\.[^.\[\]*'\"\\]+|\[[0-9]+\])+")
_LONG_CAPITALS = "ŉǰΐΰևẖ-ẚὐ-ὖᾀ-ῼﬀ-ﬗ"
_NAME_IN_BRACKETS = re.compile(r"\['([A-Za-z_]\w*)'\]")
_STEP = re.compile(r"\.([^.\[]+)")
# Java's patterns that RE2 does not have: look-around, atomic groups, back references, possessive repetitions, sets of sets.
_NOT_RE2 = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9kGZ]|[*+?}]\+|&&")


def like(node: exp.Expr) -> exp.Expr:
    """Writes ``LIKE``, in which a backslash escapes; DuckDB's has no such sign unless it is named."""
    pattern = node.expression
    patterns = pattern.unnest()
    if isinstance(patterns, (exp.Any, exp.All)) and isinstance(patterns.this, exp.Tuple) and not patterns.this.expressions:
        raise InvalidInputError("LIKE: expected a pattern in ANY (…), SOME (…) or ALL (…), found none", kind="query")
    if isinstance(node.parent, exp.Escape) or (isinstance(pattern, exp.Literal) and "\\" not in pattern.name):
        return node
    if isinstance(patterns, (exp.Any, exp.All, exp.Tuple)):
        if any("\\" in literal.name for literal in pattern.find_all(exp.Literal)):
            raise refusal("LIKE ANY or LIKE ALL with an escape character")
        return node
    return escaped(exp.Escape(this=node, expression=exp.Literal.string("\\")))


def escaped(node: exp.Escape) -> exp.Expr:
    """Writes ``LIKE … ESCAPE``, whose escape character stands before %, _ and itself; DuckDB takes it before any character."""
    pattern, escape = node.this.expression, node.expression
    if not isinstance(escape, exp.Literal) or len(escape.name) != 1:
        raise InvalidInputError("LIKE: expected one character as text behind ESCAPE", kind="query")
    if isinstance(pattern.unnest(), (exp.Any, exp.All, exp.Tuple)):
        raise refusal("LIKE ANY or LIKE ALL with an escape character")
    name = "a backslash" if escape.name == "\\" else repr(escape.name)
    expected = f"LIKE: expected %, _ or {name} behind each {name.removeprefix('a ')} of the pattern"
    sign = re.escape(escape.name)
    form = f"(?s)(?:[^{sign}]|{sign}[{sign}%_])*"
    if not isinstance(pattern, exp.Literal):
        is_other = exp.Not(this=call("REGEXP_FULL_MATCH", pattern.copy(), exp.Literal.string(form)))
        return failing(is_other, expected, node)
    if not re.fullmatch(form, pattern.name):
        raise InvalidInputError(f"{expected}, found {pattern.name!r}", kind="query")
    return node


def substring(node: exp.Substring) -> exp.Expr:
    """Writes ``substring``, whose place 0 is place 1 in Spark."""
    start = node.args.get("start")
    if isinstance(start, exp.Literal):
        if start.name == "0":
            node.set("start", exp.Literal.number(1))
    elif start is not None and not isinstance(start.unnest(), exp.Neg):
        is_zero = exp.EQ(this=exp.paren(start.copy()), expression=exp.Literal.number(0))
        node.set("start", exp.Case(ifs=[exp.If(this=is_zero, true=exp.Literal.number(1))], default=start))
    if (length := node.args.get("length")) is not None:
        node.set("length", not_negative(length))
    elif not isinstance(start, exp.Literal):
        # Behind the least INT so many characters end before the last one.
        node.set("length", exp.Literal.number(2**31 - 1))
    return node


def end(node: exp.Left | exp.Right) -> exp.Expr:
    """Writes ``left`` and ``right``: a negative length is 0. DuckDB counts it from the other end."""
    node.set("expression", not_negative(node.expression))
    return node


def replace(node: exp.Replace) -> exp.Expr:
    """Writes ``replace``: without a replacement it takes the text out."""
    if node.args.get("replacement") is None:
        node.set("replacement", exp.Literal.string(""))
    return node


def split_part(node: exp.SplitPart) -> exp.Expr:
    """Writes ``split_part``: the place 0 is an error. DuckDB gives an empty text."""
    text, by, place = node.this, node.args["delimiter"], node.args["part_index"]
    parts: exp.Expr = node
    if not isinstance(by, exp.Literal) or not by.name:
        parts = refused_where(exp.EQ(this=by.copy(), expression=exp.Literal.string("")), "split_part by an empty text", parts)
    if not isinstance(place, exp.Literal) or place.name == "0":
        is_zero = exp.EQ(this=exp.paren(place.copy()), expression=exp.Literal.number(0))
        is_wrong_place = exp.and_(is_zero, is_not_null(text.copy()), is_not_null(by.copy()))
        parts = failing(is_wrong_place, "split_part counts from 1, or from -1 at the end: expected another place than 0", parts)
    return parts


def character(node: exp.Chr) -> exp.Expr:
    """The character of a number's lowest byte; the empty text for a negative number."""
    number = node.expressions[0]
    is_negative = exp.LT(this=exp.paren(number), expression=exp.Literal.number(0))
    low = exp.Mod(this=exp.paren(number.copy()), expression=exp.Literal.number(256))
    return exp.Case(ifs=[exp.If(this=is_negative, true=exp.Literal.string(""))], default=call("CHR", low))


def checked_pattern(node: exp.Expr) -> exp.Expr:
    """Checks a function's regular expression: RE2 has to read it as Java does. Raises UnsupportedError for another one."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or _NOT_RE2.search(pattern.name):
        raise refusal("a regular expression that is computed, or has look-around, back references or possessive repetitions")
    return node


def extracted(node: exp.RegexpExtract) -> exp.Expr:
    """Writes ``regexp_extract`` of a group that is written out, and that the pattern has."""
    checked_pattern(node)
    group = node.args.get("group")
    if group is not None and not (isinstance(group, exp.Literal) and group.name.isdecimal() and int(group.name) <= _groups(node)):
        raise refusal("regexp_extract of a group that is computed, or that the pattern does not have")
    return node


def _groups(node: exp.Expr) -> int:
    """The least number of groups that the pattern has."""
    try:
        return re.compile(node.expression.name).groups
    except re.error:
        return 0


def replaced(node: exp.RegexpReplace) -> exp.Expr:
    """Writes ``regexp_replace``: a group is ``$1`` in Java's replacements, and ``\\1`` in RE2's."""
    checked_pattern(node)
    replacement = node.args.get("replacement")
    if not isinstance(replacement, exp.Literal) or "\\" in replacement.name:
        raise refusal("regexp_replace with a replacement that is computed or has a backslash")
    node.set("replacement", exp.Literal.string(re.sub(r"\$(\d)", r"\\\1", replacement.name)))
    if not replacement.name or not _matches_nothing(node.expression.name):
        return node
    # Java looks between the two halves of a character that has two.
    beyond = call("REGEXP_MATCHES", node.this.copy(), exp.Literal.string("[\U00010000-\U0010ffff]"))
    return refused_where(beyond, "regexp_replace of nothing in a text with characters beyond U+FFFF", node)


def _matches_nothing(pattern: str) -> bool:
    """True if a pattern may match an empty text."""
    try:
        return re.compile(pattern).match("") is not None
    except re.error:
        return True


def upper(node: exp.Upper) -> exp.Expr:
    """Writes ``upper``. Of the characters whose capital is several ones, only ß is written so."""
    text = node.this
    capital = exp.Upper(this=exp.Replace(this=text, expression=exp.Literal.string("ß"), replacement=exp.Literal.string("SS")))
    return _refused_for(text, f"[{_LONG_CAPITALS}]", "capitals of ligatures and letters with several marks", capital)


def lower(node: exp.Lower) -> exp.Expr:
    """Writes ``lower``: Σ has two small letters, and İ one of two characters."""
    return _refused_for(node.this, "[Σİ]", "the small letters of Σ and İ", node)


def initcap(node: exp.Initcap) -> exp.Expr:
    """Writes ``initcap``, where no word begins with a letter that has several as its capital."""
    return _refused_for(node.this, f"(^| )[ß{_LONG_CAPITALS}]|[Σİ]", "initcap of ß, Σ, İ and ligatures", node)


def _refused_for(text: exp.Expr, pattern: str, operation: str, value: exp.Expr) -> exp.Expr:
    if isinstance(text, exp.Literal) and text.name.isascii():
        return value
    return refused_where(call("REGEXP_MATCHES", text.copy(), exp.Literal.string(pattern)), operation, value)


def position(node: exp.StrPosition) -> exp.Expr:
    """Writes ``locate`` and ``position``, from a place that is written out and positive."""
    start = node.args.get("position")
    if start is not None and not (isinstance(start, exp.Literal) and start.name.isdecimal() and int(start.name) > 0):
        raise refusal("locate from a place that is computed or not positive")
    return node


def joined(node: exp.ArrayToString) -> exp.Expr:
    """Writes ``array_join`` by texts that are written out. Of NULLs alone it is empty, where DuckDB gives NULL."""
    instead = node.args.get("null")
    if any(not isinstance(one, exp.Literal) for one in (node.expression, instead) if one is not None):
        raise refusal("array_join by a text that is computed")
    if instead is not None:
        return node
    text = "CASE WHEN LIST_COUNT($0) > 0 THEN ARRAY_TO_STRING($0, $1) WHEN $0 IS NOT NULL THEN '' END"
    return from_text(text, node.this, node.expression)


def short(node: exp.Expr) -> exp.Expr:
    """The name of a day or a month in three letters."""
    return exp.Left(this=node, expression=exp.Literal.number(3))


def levenshtein(node: exp.Levenshtein) -> exp.Expr:
    """The distance of two texts in characters. DuckDB counts bytes, which are the same in ASCII."""
    longer = [
        exp.NEQ(this=call("STRLEN", side.copy()), expression=call("LENGTH", side.copy())) for side in (node.this, node.expression)
    ]
    return refused_where(exp.or_(*longer), "levenshtein of characters beside ASCII", node)


def json_part(node: exp.JSONExtractScalar) -> exp.Expr:
    """Writes ``get_json_object`` of a path that is written out, with names and places only."""
    path = node.expression
    if isinstance(path, exp.Null) or (isinstance(path, exp.Literal) and not path.name.startswith("$")):
        return exp.cast(exp.null(), "TEXT")
    if isinstance(path, exp.Literal):
        path = exp.Literal.string(_NAME_IN_BRACKETS.sub(r".\1", path.name))
    if not isinstance(path, exp.Literal) or not _PATH.fullmatch(path.name):
        raise refusal("get_json_object with a path that is computed, or is not of names and numbers behind a $ ($.a.b[0])")
    value = call("JSON_EXTRACT_STRING", node.this, exp.Literal.string(_STEP.sub(r'."\1"', path.name)))
    # A scalar has no parts. What Spark reads in JSON that is not well-formed depends on how far it has to read.
    is_valid = exp.If(this=call("JSON_VALID", node.this.copy()), true=value)
    begins = call("REGEXP_MATCHES", node.this.copy(), exp.Literal.string(r"^\s*[\[{]"))
    return exp.Case(ifs=[is_valid], default=refused_where(begins, "get_json_object of JSON that is not well-formed", exp.null()))
