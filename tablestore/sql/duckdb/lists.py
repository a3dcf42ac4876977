"""Writes functions of arrays with Spark's meaning."""

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.sqltypes import Type, engine_words
from tablestore.sql.duckdb.calls import call, failing, in_own_text, refusal
from tablestore.sql.duckdb.functions.functionrule import from_text


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


def computed_subscript(node: exp.Bracket, kind: Type, index_type: Type) -> exp.Expr:
    """A subscript that is computed, counted from 0; a place that an array does not have is an error. Of a map, any key."""
    index = node.expressions[0]
    if kind is not None and kind.name == "map":
        key = kind.parts[0]
        if key is None or key.is_nested or common((key, index_type)) != key or (key != index_type and not key.is_number):
            raise refusal("a key of another type than those of the map")
        return from_text("MAP_EXTRACT_VALUE($0, $1)", node.this, exp.Cast(this=index, to=engine_words(key)))
    if index_type is None or not index_type.is_integer:
        raise refusal("a subscript of an array that is no whole number")
    message = exp.Literal.string(f"expected a place that the array has, counted from 0{in_own_text(node)}")
    null = str(refusal("a subscript that is NULL"))
    text = f"""CASE WHEN $0 IS NOT NULL AND $1 IS NULL THEN ERROR('{null}')
        WHEN $1 < 0 OR $1 >= LEN($0) THEN ERROR($2) ELSE LIST_EXTRACT($0, CAST($1 AS BIGINT) + 1) END"""
    return from_text(text, node.this, index, message)


def field_of_each(node: exp.Dot) -> exp.Expr:
    """A field of each row of an array."""
    return from_text(
        "LIST_TRANSFORM($0, LAMBDA _row: STRUCT_EXTRACT(_row, $1))", node.this, exp.Literal.string(node.expression.name)
    )


def size(value: exp.Expr) -> exp.Expr:
    """The number of elements of an array or a map, as an INT."""
    return exp.Cast(this=call("CARDINALITY", value), to=exp.DataType.build("INT"))


def or_empty(node: exp.Expr) -> exp.Expr:
    """The array that an aggregate collects, empty instead of NULL where there is no value."""
    return exp.Coalesce(this=node, expressions=[exp.Array()])


def flatten(node: exp.Flatten) -> exp.Expr:
    """The elements of arrays: NULL if one of the arrays is."""
    return exp.Case(ifs=[exp.If(this=_has_null(node.this), true=exp.null())], default=node)


def _has_null(array: exp.Expr) -> exp.Expr:
    return exp.NEQ(this=call("LEN", array.copy()), expression=call("LIST_COUNT", array.copy()))
