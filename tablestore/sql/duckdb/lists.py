"""Writes functions of arrays with Spark's meaning."""

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.sqltypes import Type
from tablestore.sql.duckdb.calls import call, failing, in_own_text, refusal


def subscript(node: exp.Bracket, kind: Type) -> exp.Expr:
    """A constant subscript; one behind the end of an array is an error.

    sqlglot counts from one where Spark counts from zero, but cannot know of what is computed.
    """
    (index,) = node.expressions if len(node.expressions) == 1 else (None,)
    if kind is not None and kind.name == "map" and isinstance(index, exp.Literal) and index.is_string:
        return node
    if not isinstance(index, exp.Literal) or (kind is not None and kind.name == "map"):
        raise refusal("a subscript that is computed, or a number for a map")
    if index.is_string or node.args.get("safe"):
        return node
    least = int(index.name) + 1 - (node.args.get("offset") or 0)
    if least < 1:
        raise InvalidInputError("element_at counts from 1, or from -1 at the end: expected another place than 0", kind="query")
    is_behind = exp.LT(this=call("ARRAY_LENGTH", node.this.copy()), expression=exp.Literal.number(least))
    message = f"expected an array of {least} elements or more, found fewer (try_element_at gives NULL){in_own_text(node)}"
    return failing(is_behind, message, node)


def size(value: exp.Expr) -> exp.Expr:
    """The number of elements of an array or a map, as an INT."""
    return exp.Cast(this=call("CARDINALITY", value), to=exp.DataType.build("INT"))


def contains(node: exp.ArrayContains) -> exp.Expr:
    """The condition that an array has a value; NULL if it may be one that is NULL."""
    unknown = exp.And(this=exp.Not(this=node), expression=_has_null(node.this))
    return exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=node.copy())


def or_empty(node: exp.Expr) -> exp.Expr:
    """The array that an aggregate collects, empty instead of NULL where there is no value."""
    return exp.Coalesce(this=node, expressions=[exp.Array()])


def flatten(node: exp.Flatten) -> exp.Expr:
    """The elements of arrays: NULL if one of the arrays is."""
    return exp.Case(ifs=[exp.If(this=_has_null(node.this), true=exp.null())], default=node)


def with_lambda(node: exp.Transform | exp.ArrayFilter) -> exp.Expr:
    """A function that is applied to each element. Raises UnsupportedError if it takes the place of the element too."""
    if isinstance(node.expression, exp.Lambda) and len(node.expression.expressions) > 1:
        raise refusal("a function of elements and their places, which it counts from one")
    return node


def _has_null(array: exp.Expr) -> exp.Expr:
    return exp.NEQ(this=call("LEN", array.copy()), expression=call("LIST_COUNT", array.copy()))


def slice_of(node: exp.ArraySlice) -> exp.Expr:
    """Writes ``slice`` whose place is a positive number and whose length a number, both written out."""
    numbers = [
        part for part in (node.args.get("start"), node.args.get("end")) if isinstance(part, exp.Literal) and part.name.isdecimal()
    ]
    if len(numbers) != 2 or numbers[0].name == "0":
        raise refusal("slice from a place that is no positive number")
    return node


def series(node: exp.GenerateSeries) -> exp.Expr:
    """Writes a ``sequence`` that counts up by one between ends that are written out. Spark counts down where the first is the
    larger one."""
    ends = [node.args.get("start"), node.args.get("end")]
    if node.args.get("step") is not None or not all(isinstance(end, exp.Literal) for end in ends):
        raise refusal("sequence with computed ends, which may count down")
    first, last = (int(end.name) for end in ends if end is not None)
    if first > last:
        raise refusal("a sequence that counts down")
    return node if last >= 2**31 else exp.Cast(this=node, to=exp.DataType.build("INT[]"))
