"""Writes functions of regular expressions with Spark's meaning, where RE2 finds what Java does (:mod:`patterns`)."""

import re

from sqlglot import exp

from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import BOOLEAN, INT, STRING, VOID, array
from tablestore.sql.duckdb.calls import failing
from tablestore.sql.duckdb.functions.argumenttypes import integer, text, written_integer
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall
from tablestore.sql.duckdb.functions.valuefunctions import by_value
from tablestore.sql.duckdb.patterns import Re2Pattern, translated

_REPLACED = re.compile(r"\$(\d)")
# Patterns that Python reads as Java does, and that match no empty text: letters and sets of them, with or without repetition.
_SIMPLE = re.compile(r"(?:(?:[A-Za-z0-9 ,;:_/|@#%=-]|\\[.|$*+?()\[\]{}^]|\[[A-Za-z0-9 ,;:._/@#%=]+(?:-[A-Za-z0-9])?\])\+?)+")

# One character, whatever stands beside it: a letter, a set of them, or an escape of one.
_ONE_CHARACTER = re.compile(r"[A-Za-z0-9 ,;:_/@#%=-]|\\[dDwW]|\[\^?[A-Za-z0-9 ,;:._/@#%=-]+\]")


def _split_at_most(value: str, pattern: str, limit: int) -> list[str]:
    if limit == 1:
        return [value]
    return re.split(pattern, value, maxsplit=max(limit - 1, 0))


def _characters_at_most(value: str, limit: int) -> list[str]:
    count = len(value) if limit <= 0 else min(limit, max(len(value), 1))
    return [*value[: count - 1], value[count - 1 :]] if value else [value]


_SPLIT = by_value("split_at_most", (STRING, STRING, INT), array(STRING), _split_at_most)
_CHARACTERS = by_value("characters_at_most", (STRING, INT), array(STRING), _characters_at_most)


def _is_null(call: RuleCall) -> bool:
    return VOID in call.types[:2]


def _pattern(call: RuleCall) -> Re2Pattern:
    return translated(call.values[1])


def _literal(pattern: Re2Pattern) -> exp.Expr:
    return exp.Literal.string(pattern.text)


def _like(call: RuleCall) -> exp.Expr:
    if _is_null(call):
        return call.as_result(exp.null())
    pattern, value = _pattern(call), text(call, 0)
    return pattern.refused_for(value, call.text("REGEXP_MATCHES($0, $1)", value, _literal(pattern)))


def _substr(call: RuleCall) -> exp.Expr:
    if _is_null(call):
        return call.as_result(exp.null())
    pattern, value = _pattern(call), text(call, 0)
    return pattern.refused_for(value, call.text("NULLIF(REGEXP_EXTRACT($0, $1, 0), '')", value, _literal(pattern)))


def _group(call: RuleCall, pattern: Re2Pattern) -> int:
    group = written_integer(call, 2, "a group") if len(call.values) > 2 else 1
    if not 0 <= group <= pattern.groups:
        raise call.refusal("of a group that the pattern does not have")
    return group


def _extracted(call: RuleCall) -> exp.Expr:
    if _is_null(call):
        return call.as_result(exp.null())
    pattern, value = _pattern(call), text(call, 0)
    group = _group(call, pattern)
    return pattern.refused_for(value, call.text(f"REGEXP_EXTRACT($0, $1, {group})", value, _literal(pattern)))


def _all_extracted(call: RuleCall) -> exp.Expr:
    if _is_null(call):
        return call.as_result(exp.null())
    pattern, value = _pattern(call), text(call, 0)
    group = _group(call, pattern)
    if pattern.matches_nothing:
        raise call.refusal("with a pattern that matches nothing")
    parts = f"LIST_TRANSFORM(REGEXP_EXTRACT_ALL($0, $1, {group}), LAMBDA _part: COALESCE(_part, ''))"
    return pattern.refused_for(value, call.text(parts, value, _literal(pattern)))


def _counted(call: RuleCall) -> exp.Expr:
    if _is_null(call):
        return call.as_result(exp.null())
    pattern, value = _pattern(call), text(call, 0)
    if pattern.matches_nothing:
        raise call.refusal("with a pattern that matches nothing")
    if _ONE_CHARACTER.fullmatch(str(call.values[1].this)):
        # Those that follow each other go at once.
        runs = exp.Literal.string(f"(?:{pattern.text})+")
        count = call.text("CAST(LENGTH($0) - LENGTH(REGEXP_REPLACE($0, $1, '', 'g')) AS INT)", value, runs)
    else:
        count = call.text("CAST(LEN(REGEXP_EXTRACT_ALL($0, $1)) AS INT)", value, _literal(pattern))
    return pattern.refused_for(value, count)


def _placed(call: RuleCall) -> exp.Expr:
    if _is_null(call):
        return call.as_result(exp.null())
    pattern, value = _pattern(call), text(call, 0)
    if not (pattern.matches_nothing or pattern.is_of_place):
        # Where the text of the first match stands first, the pattern matches too.
        place = "CASE WHEN $0 IS NOT NULL THEN CAST(COALESCE(INSTR($0, NULLIF(REGEXP_EXTRACT($0, $1), '')), 0) AS INT) END"
        return pattern.refused_for(value, call.text(place, value, _literal(pattern)), by_place=True)
    before = exp.Literal.string(rf"(?s)^(.*?)(?:{pattern.text})")
    place = (
        "CAST(CASE WHEN REGEXP_MATCHES($0, $1) THEN LENGTH(REGEXP_EXTRACT($0, $1, 1)) + 1 WHEN $0 IS NOT NULL THEN 0 END AS INT)"
    )
    return pattern.refused_for(value, call.text(place, value, before), by_place=True)


def _replaced(call: RuleCall) -> exp.Expr:
    if _is_null(call) or VOID in call.types:
        return call.as_result(exp.null())
    pattern, value, replacement = _pattern(call), text(call, 0), call.values[2]
    if not isinstance(replacement, (exp.Literal, exp.RawString)) or "\\" in str(replacement.this):
        raise call.refusal("with a replacement that is computed or has a backslash")
    if re.search(r"\$(?!\d)|\$\d\d", str(replacement.this)) or any(
        int(group) > pattern.groups for group in _REPLACED.findall(str(replacement.this))
    ):
        raise call.refusal("with a replacement that names other groups than those of the pattern")
    instead = exp.Literal.string(_REPLACED.sub(r"\\\1", str(replacement.this)))
    by_place = pattern.matches_nothing and bool(str(replacement.this))
    if len(call.values) == 3:
        whole = call.text("REGEXP_REPLACE($0, $1, $2, 'g')", value, _literal(pattern), instead)
        return pattern.refused_for(value, whole, by_place=by_place)
    start = exp.cast(exp.Literal.number(written_integer(call, 3, "a place")), "INT")
    behind = "REGEXP_REPLACE(SUBSTRING($0, $3), $1, $2, 'g')"
    part = call.text(
        f"CASE WHEN $3 > LENGTH($0) THEN $0 ELSE SUBSTRING($0, 1, $3 - 1) || {behind} END", value, _literal(pattern), instead, start
    )
    is_before = call.text("$0 < 1", start)
    part = failing(is_before, "the function `regexp_replace`: expected a place from 1 on", part)
    return pattern.refused_for(value, part, by_place=True)


def _split(call: RuleCall) -> exp.Expr:
    if _is_null(call) or (len(call.values) > 2 and call.types[2] == VOID):
        return call.as_result(exp.null())
    pattern, value = _pattern(call), text(call, 0)
    if len(call.values) == 2:
        if pattern.matches_nothing and pattern.text:
            raise call.refusal("with a pattern that matches nothing")
        if not pattern.text:
            return _CHARACTERS.of(value, exp.cast(exp.Literal.number(-1), "INT"))
        return pattern.refused_for(value, call.text("STRING_SPLIT_REGEX($0, $1)", value, _literal(pattern)))
    limit = integer(call, 2)
    written = str(call.values[1].this)
    if not written:
        return _CHARACTERS.of(value, limit)
    if not _SIMPLE.fullmatch(written) or "|" in written.replace("\\|", ""):
        raise call.refusal("with a limit and a pattern of more than letters and sets of letters")
    return _SPLIT.of(value, exp.Literal.string(written), limit)


RULES = (
    FunctionRule(name="regexp_like", aliases=("regexp", "rlike"), bounds=(2, 2), result=always(BOOLEAN), write=_like),
    FunctionRule(name="regexp_substr", bounds=(2, 2), result=always(STRING), write=_substr),
    FunctionRule(name="regexp_extract", bounds=(2, 3), result=always(STRING), write=_extracted),
    FunctionRule(name="regexp_extract_all", bounds=(2, 3), result=always(array(STRING)), write=_all_extracted),
    FunctionRule(name="regexp_count", bounds=(2, 2), result=always(INT), write=_counted),
    FunctionRule(name="regexp_instr", bounds=(2, 2), result=always(INT), write=_placed),
    FunctionRule(name="regexp_replace", bounds=(3, 4), result=always(STRING), write=_replaced),
    FunctionRule(name="split", bounds=(2, 3), result=always(array(STRING)), write=_split),
)
ARROW = (_SPLIT, _CHARACTERS)
