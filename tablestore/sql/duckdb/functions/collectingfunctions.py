"""Writes aggregates that collect values."""

from sqlglot import exp

from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import STRING, VOID
from tablestore.sql.duckdb.calls import aggregate_of, call
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall


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


RULES = (
    FunctionRule(name="listagg", bounds=(1, 2), result=always(STRING), write=_listed, aliases=("string_agg",), is_aggregate=True),
)
REFUSED = {
    "histogram_numeric": "its bins depend on the order of the rows",
}
