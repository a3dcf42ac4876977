"""Writes functions of addresses with Spark's meaning."""

import re

from sqlglot import exp

from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import STRING
from tablestore.sql.duckdb.functions import urlvalues
from tablestore.sql.duckdb.functions.argumenttypes import text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall
from tablestore.sql.duckdb.functions.valuefunctions import by_value

_PARTS = {
    "parse_url": (
        by_value("parse_url", (STRING,) * 2, STRING, urlvalues.parse_url),
        by_value("parse_url_key", (STRING,) * 3, STRING, urlvalues.parse_url_key),
    ),
    "try_parse_url": (
        by_value("try_parse_url", (STRING,) * 2, STRING, urlvalues.try_parse_url),
        by_value("try_parse_url_key", (STRING,) * 3, STRING, urlvalues.try_parse_url_key),
    ),
}
_DECODE = by_value("url_decode", (STRING,), STRING, urlvalues.url_decode)
_TRY_DECODE = by_value("try_url_decode", (STRING,), STRING, urlvalues.try_url_decode)
_ENCODED = "REPLACE(REPLACE(REPLACE(URL_ENCODE($0), '%20', '+'), '%2A', '*'), '~', '%7E')"


# Addresses of a form in which the parts are what a regular expression finds; others are for the Arrow functions.
_HOST = "[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*(?:\\.[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)*\\.[A-Za-z]+"
_USER = "[A-Za-z0-9_.]+"
_LETTERS = "A-Za-z0-9_.~,;=+$!*()/-"
_PLAIN = f"(?:https?|ftp)://(?:{_USER}@)?{_HOST}(?::[0-9]{{1,5}})?(?:/[{_LETTERS}]*)?(?:\\?[&{_LETTERS}]*)?"
_IN_RE2 = f"{_PLAIN}(?:#[&{_LETTERS}]*)?"
_WITHOUT_KEYS_BEHIND = f"{_PLAIN}(?:#[{_LETTERS}]*)?"
# Their parts, by the signs that stand before and behind them and nowhere else.


def _split(value: str, sign: str, place: int) -> str:
    # Not SPLIT_PART, which DuckDB makes an expression with its text in three places.
    return f"LIST_EXTRACT(STRING_SPLIT({value}, '{sign}'), {place})"


_AUTHORITY = _split(_split(_split("$0", "/", 3), "?", 1), "#", 1)
_PATH = f"""LIST_TRANSFORM([{_split(_split("$0", "#", 1), "?", 1)}], LAMBDA _head: CASE
    WHEN INSTR(SUBSTRING(_head, 9), '/') = 0 THEN '' ELSE SUBSTRING(_head, 8 + INSTR(SUBSTRING(_head, 9), '/'))
END)[1]"""
_QUERY = _split(_split("$0", "#", 1), "?", 2)
_PART_OF_PLAIN = {
    "PROTOCOL": _split("$0", ":", 1),
    "AUTHORITY": _AUTHORITY,
    "USERINFO": f"CASE WHEN CONTAINS($0, '@') THEN {_split(_AUTHORITY, '@', 1)} END",
    "HOST": _split(_split(_AUTHORITY, "@", -1), ":", 1),
    "FILE": f"{_PATH} || CASE WHEN CONTAINS($0, '?') THEN '?' || {_QUERY} ELSE '' END",
    "PATH": _PATH,
    "QUERY": f"CASE WHEN CONTAINS($0, '?') THEN {_QUERY} END",
    "REF": f"CASE WHEN CONTAINS($0, '#') THEN {_split('$0', '#', 2)} END",
}


def _plain_part(call: RuleCall, beyond: str) -> exp.Expr | None:
    """A part that a regular expression finds; None for a part that is computed."""
    part = call.values[1]
    if not isinstance(part, exp.Literal) or part.name not in _PART_OF_PLAIN:
        return None
    return call.text(
        f"""CASE WHEN $0 IS NULL THEN NULL WHEN REGEXP_FULL_MATCH($0, '{_IN_RE2}') THEN {_PART_OF_PLAIN[part.name]}
        ELSE {beyond}($0, $1) END""",
        text(call, 0),
        text(call, 1),
    )


def _plain_value(call: RuleCall, beyond: str) -> exp.Expr | None:
    """The value of a key that is written in the query of a plain address; None for another call."""
    part, key = call.values[1:]
    if not (isinstance(part, exp.Literal) and part.name == "QUERY" and isinstance(key, exp.Literal) and key.is_string):
        return None
    if not re.fullmatch(r"\w+", key.name, re.ASCII):
        return None
    # The key with the sign before it stands in the query alone.
    first, other = (
        f"CONTAINS($0, '{sign}{key.name}=') THEN {_split(_split(_split('$0', f'{sign}{key.name}=', 2), '&', 1), '#', 1)}"
        for sign in "?&"
    )
    return call.text(
        f"""CASE WHEN $0 IS NULL THEN NULL WHEN REGEXP_FULL_MATCH($0, '{_WITHOUT_KEYS_BEHIND}')
        THEN CASE WHEN {first} WHEN {other} END
        ELSE {beyond}($0, $1, $2) END""",
        *(text(call, place) for place in range(3)),
    )


def _part(call: RuleCall) -> exp.Expr:
    function = _PARTS[call.name][len(call.values) - 2]
    plain = (_plain_part if len(call.values) == 2 else _plain_value)(call, function.engine_name)
    if plain is not None:
        return plain
    return function.of(*(text(call, place) for place in range(len(call.values))))


# ASCII, and letters of two bytes, that are escaped or not.
_ESCAPED = "%[0-7][0-9A-Fa-f]|%(?:[Cc][2-9A-Fa-f]|[Dd][0-9A-Fa-f])%[89ABab][0-9A-Fa-f]"
_IS_PLAIN = f"REGEXP_FULL_MATCH($0, '(?:[^%]|{_ESCAPED})*')"


def _decoded(call: RuleCall, beyond: ArrowFunction) -> exp.Expr:
    decoded = (
        f"CASE WHEN $0 IS NULL THEN NULL WHEN {_IS_PLAIN} THEN URL_DECODE(REPLACE($0, '+', ' ')) ELSE {beyond.engine_name}($0) END"
    )
    return call.text(decoded, text(call, 0))


RULES = (
    FunctionRule(name="parse_url", bounds=(2, 3), result=always(STRING), write=_part),
    FunctionRule(name="try_parse_url", bounds=(2, 3), result=always(STRING), write=_part),
    FunctionRule(name="url_encode", bounds=(1, 1), result=always(STRING), write=lambda call: call.text(_ENCODED, text(call, 0))),
    FunctionRule(name="url_decode", bounds=(1, 1), result=always(STRING), write=lambda call: _decoded(call, _DECODE)),
    FunctionRule(name="try_url_decode", bounds=(1, 1), result=always(STRING), write=lambda call: _decoded(call, _TRY_DECODE)),
)
ARROW = (*_PARTS["parse_url"], *_PARTS["try_parse_url"], _DECODE, _TRY_DECODE)
