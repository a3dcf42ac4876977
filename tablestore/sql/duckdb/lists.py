"""Functions of arrays, as Spark has them."""

from sqlglot import exp

from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.kinds import Kind


def subscript(node: exp.Bracket, kind: Kind | None) -> exp.Expr:
    """A constant subscript: sqlglot counts from one where Spark counts from zero, but cannot know of what is computed."""
    (index,) = node.expressions if len(node.expressions) == 1 else (None,)
    if kind is not None and kind.name == "map" and isinstance(index, exp.Literal) and index.is_string:
        return node
    if not isinstance(index, exp.Literal) or (kind is not None and kind.name == "map"):
        raise refusal("a subscript that is computed, or a number for a map")
    return node


def slice_of(node: exp.ArraySlice) -> exp.Expr:
    """``slice`` whose place is a positive number and whose length a number, both written out."""
    numbers = [
        part for part in (node.args.get("start"), node.args.get("end")) if isinstance(part, exp.Literal) and part.name.isdecimal()
    ]
    if len(numbers) != 2 or numbers[0].name == "0":
        raise refusal("slice from a place that is no positive number")
    return node


def series(node: exp.GenerateSeries) -> exp.Expr:
    """``sequence`` that counts up by one between ends that are written out. Spark counts down where the first is the larger one."""
    ends = [node.args.get("start"), node.args.get("end")]
    if node.args.get("step") is not None or not all(isinstance(end, exp.Literal) for end in ends):
        raise refusal("sequence with computed ends, which may count down")
    first, last = (int(end.name) for end in ends if end is not None)
    if first > last:
        raise refusal("a sequence that counts down")
    return node
