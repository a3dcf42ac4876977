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
_PLAIN = (
    f"(?P<PROTOCOL>https?|ftp)://(?P<AUTHORITY>(?:(?P<USERINFO>{_USER})@)?(?P<HOST>{_HOST})(?::[0-9]{{1,5}})?)"
    f"(?P<FILE>(?P<PATH>(?:/[{_LETTERS}]*)?)(?:\\?(?P<QUERY>[&{_LETTERS}]*))?)(?:#(?P<REF>[&{_LETTERS}]*))?"
)
_GROUPS = re.compile(_PLAIN).groupindex
_IN_RE2 = re.sub(r"\?P<\w+>", "", _PLAIN)
# Those of which a NULL is told from an empty text by the sign before it.
_SIGNS = {"QUERY": "?", "REF": "#"}


def _plain_part(call: RuleCall, beyond: str) -> exp.Expr | None:
    """A part that a regular expression finds; None for a part that is computed, and for a key."""
    part = call.values[1]
    if len(call.values) > 2 or not isinstance(part, exp.Literal) or part.name not in _GROUPS:
        return None
    matched = f"REGEXP_EXTRACT($0, '^{_IN_RE2}$', {_GROUPS[part.name]})"
    if part.name == "USERINFO":
        matched = f"NULLIF({matched}, '')"
    elif part.name in _SIGNS:
        matched = f"CASE WHEN CONTAINS($0, '{_SIGNS[part.name]}') THEN {matched} END"
    return call.text(
        f"CASE WHEN REGEXP_FULL_MATCH($0, '{_IN_RE2}') THEN {matched} ELSE {beyond}($0, $1) END", text(call, 0), text(call, 1)
    )


def _part(call: RuleCall) -> exp.Expr:
    function = _PARTS[call.name][len(call.values) - 2]
    plain = _plain_part(call, function.engine_name)
    if plain is not None:
        return plain
    return function.of(*(text(call, place) for place in range(len(call.values))))


# ASCII, and letters of two bytes, that are escaped or not.
_ESCAPED = "%[0-7][0-9A-Fa-f]|%(?:[Cc][2-9A-Fa-f]|[Dd][0-9A-Fa-f])%[89ABab][0-9A-Fa-f]"
_IS_PLAIN = f"REGEXP_FULL_MATCH($0, '(?:[^%]|{_ESCAPED})*')"


def _decoded(call: RuleCall, beyond: ArrowFunction) -> exp.Expr:
    decoded = f"CASE WHEN {_IS_PLAIN} THEN URL_DECODE(REPLACE($0, '+', ' ')) ELSE {beyond.engine_name}($0) END"
    return call.text(decoded, text(call, 0))


RULES = (
    FunctionRule(name="parse_url", bounds=(2, 3), result=always(STRING), write=_part),
    FunctionRule(name="try_parse_url", bounds=(2, 3), result=always(STRING), write=_part),
    FunctionRule(name="url_encode", bounds=(1, 1), result=always(STRING), write=lambda call: call.text(_ENCODED, text(call, 0))),
    FunctionRule(name="url_decode", bounds=(1, 1), result=always(STRING), write=lambda call: _decoded(call, _DECODE)),
    FunctionRule(name="try_url_decode", bounds=(1, 1), result=always(STRING), write=lambda call: _decoded(call, _TRY_DECODE)),
)
ARROW = (*_PARTS["parse_url"], *_PARTS["try_parse_url"], _DECODE, _TRY_DECODE)
