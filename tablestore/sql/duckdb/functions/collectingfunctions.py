"""Writes aggregates that collect values."""

from sqlglot import exp

from tablestore.sql.binding.signatures import always, as_argument
from tablestore.sql.binding.sqltypes import STRING, VOID
from tablestore.sql.duckdb.calls import aggregate_of, call
from tablestore.sql.duckdb.functions.arrayfunctions import element_of
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, from_text


def _listed(call_: RuleCall) -> exp.Expr:
    kind = call_.type(0)
    if kind not in (STRING, VOID) and not kind.is_integer:
        raise call_.refusal(f"of {kind}")
    value, delimiter = call_.value(0, STRING), call_.value(1) if len(call_.values) > 1 else exp.Literal.string("")
    if isinstance(delimiter, exp.Null):
        delimiter = exp.Literal.string("")
    if not isinstance(delimiter, exp.Literal) or not delimiter.is_string:
        raise call_.refusal("with a delimiter that is no text that is written")
    node = call_.node.copy()
    group = node.find(exp.WithinGroup)
    if call_.is_distinct and group is not None and kind != STRING:
        raise call_.refusal("of DISTINCT numbers in an order")
    last = delimiter if group is None else exp.Order(this=delimiter, expressions=group.expression.expressions)
    aggregate = call("STRING_AGG", exp.Distinct(expressions=[value]) if call_.is_distinct else value, last)
    inner = group if group is not None else aggregate_of(node)
    if inner is node:
        return aggregate
    inner.replace(aggregate)
    return node


def _collected_union(call_: RuleCall) -> exp.Expr:
    """Writes ``collect_union``, whose values come in no order in Spark: here in their own."""
    element = element_of(call_)
    if element.is_nested or element.name == "interval":
        raise call_.refusal(f"of {call_.type(0)}")
    arrays = call_.around(call("LIST", call_.value(0)))
    values = from_text("COALESCE(FLATTEN(LIST_FILTER($0, LAMBDA _one: _one IS NOT NULL)), [])", arrays)
    if element.is_float:
        values = from_text(f"LIST_TRANSFORM($0, LAMBDA _one: _one + CAST(0 AS {element}))", values)
    return call_.as_result(from_text("LIST_SORT(LIST_DISTINCT($0))", values))


RULES = (
    FunctionRule(name="listagg", bounds=(1, 2), result=always(STRING), write=_listed, aliases=("string_agg",), is_aggregate=True),
    FunctionRule(
        name="collect_union", bounds=(1, 1), result=as_argument(), write=_collected_union, is_aggregate=True,
        note="the values are sorted; in Spark they come in no order",
    ),
)  # fmt: skip
REFUSED = {
    "histogram_numeric": "its bins depend on the order of the rows",
}
