"""Writes functions of addresses with Spark's meaning."""

from sqlglot import exp

from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import STRING
from tablestore.sql.duckdb.functions import urlvalues
from tablestore.sql.duckdb.functions.argumenttypes import text
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


def _part(call: RuleCall) -> exp.Expr:
    function = _PARTS[call.name][len(call.values) - 2]
    return function.of(*(text(call, place) for place in range(len(call.values))))


RULES = (
    FunctionRule(name="parse_url", bounds=(2, 3), result=always(STRING), write=_part),
    FunctionRule(name="try_parse_url", bounds=(2, 3), result=always(STRING), write=_part),
    FunctionRule(name="url_encode", bounds=(1, 1), result=always(STRING), write=lambda call: call.text(_ENCODED, text(call, 0))),
    FunctionRule(name="url_decode", bounds=(1, 1), result=always(STRING), write=lambda call: _DECODE.of(text(call, 0))),
    FunctionRule(name="try_url_decode", bounds=(1, 1), result=always(STRING), write=lambda call: _TRY_DECODE.of(text(call, 0))),
)
ARROW = (*_PARTS["parse_url"], *_PARTS["try_parse_url"], _DECODE, _TRY_DECODE)
