"""Writes functions of arrays with Spark's meaning."""

from sqlglot import exp

from tablestore.sql.binding.signatures import as_argument
from tablestore.sql.binding.sqltypes import SqlType
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall


def element_of(call: RuleCall, place: int = 0) -> SqlType:
    """The type of the elements of an argument. Raises InvalidInputError if it is no array."""
    kind = call.type(place)
    if kind.name != "array":
        raise call.mismatch(place, "an array")
    element = kind.parts[0]
    assert element is not None, "the type of an argument is known"
    return element


def _compact(call: RuleCall) -> exp.Expr:
    element_of(call)
    return call.text("LIST_FILTER($0, LAMBDA _element: _element IS NOT NULL)")


RULES = (FunctionRule(name="array_compact", bounds=(1, 1), result=as_argument(), write=_compact),)
