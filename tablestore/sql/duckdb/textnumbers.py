"""Casts texts to numbers where Spark does: beside a number, and where a function counts.

    id = '1.5'          a BIGINT beside a whole number: an error. DuckDB would round a text that is written, and find the row of 2
    price > v           a DOUBLE beside any other number
    repeat(s, '2')      an INT
    sum(s), -s          a DOUBLE

What Spark compares with nothing is refused: a number with a BOOLEAN, arithmetic of two texts, or a text as the place of an element.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.binder import Bound
from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.functiontypes import alternatives
from tablestore.sql.binding.sqltypes import BOOLEAN, DOUBLE, INT, STRING, SqlType
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.query.dialect import Spark4

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div, exp.IntDiv)
_CHOICES = (exp.Coalesce, exp.Case, exp.If, exp.Nvl2, exp.Array)
_OF_ONE_TYPE = (exp.Greatest, exp.Least)
OF_DOUBLES = (
    exp.Abs, exp.Neg, exp.Round, exp.Ceil, exp.Floor, exp.Sum, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
    exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp,
)  # fmt: skip
"""The functions that take a text as the DOUBLE that it is."""
# The arguments that count something, by sqlglot's names.
_COUNTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.AddMonths: ("expression",),
    exp.ArraySlice: ("start", "end"),
    exp.BitwiseLeftShift: ("expression",),
    exp.BitwiseRightShift: ("expression",),
    exp.Left: ("expression",),
    exp.Pad: ("expression",),
    exp.Repeat: ("times",),
    exp.Right: ("expression",),
    exp.Round: ("decimals",),
    exp.SplitPart: ("part_index",),
    exp.StrPosition: ("position",),
    exp.Substring: ("start", "length"),
    exp.TsOrDsAdd: ("expression",),
}


def texts_as_numbers(node: exp.Expr, bound: Bound) -> dict[int, SqlType]:
    """The texts among the operands of a node that are cast to a number first, by their ids. Raises InvalidInputError."""
    casts: dict[int, SqlType] = {}
    for values in _compared(node):
        _check_comparable(node, values, bound)
        casts |= _beside_numbers(values, bound)
    if isinstance(node, _ARITHMETIC):
        casts |= _beside_numbers((node.this, node.expression), bound)
    elif isinstance(node, _CHOICES):
        casts |= _beside_numbers(alternatives(node), bound)
    elif isinstance(node, _OF_ONE_TYPE) and _beside_numbers(values := alternatives(node), bound):
        raise _of_several_kinds(node, values, bound)
    elif isinstance(node, exp.Nullif) and _beside_numbers((node.this, node.expression), bound):
        # The cast value would be the result, too.
        raise refusal("nullif of a text and a number")
    elif isinstance(node, exp.DecodeCase) and _beside_numbers(_decoded(node), bound):
        raise refusal("decode of texts and numbers")
    elif isinstance(node, exp.BitwiseCount) and bound.of(node.this) == STRING:
        raise _of_another_kind(node, "a whole number or a BOOLEAN")
    elif isinstance(node, exp.Bracket) and _is_array(node.this, bound) and any(bound.of(one) == STRING for one in node.expressions):
        raise _of_another_kind(node, "a whole number as the place")
    if isinstance(node, _ARITHMETIC) and bound.of(node.this) == bound.of(node.expression) == STRING:
        raise _of_another_kind(node, "numbers")
    if isinstance(node, OF_DOUBLES) and not isinstance(node.parent, exp.Interval):
        counted = node.this.expressions if isinstance(node.this, exp.Distinct) else [node.this, node.args.get("expression")]
        casts |= {id(one): DOUBLE for one in counted if isinstance(one, exp.Expr) and bound.of(one) == STRING}
    for name in _COUNTS.get(type(node), ()):
        if (count := node.args.get(name)) is not None and bound.of(count) == STRING:
            casts[id(count)] = INT
    return casts


def _compared(node: exp.Expr) -> Iterator[Sequence[exp.Expr]]:
    """The values that a node compares with each other."""
    match node:
        case exp.Between():
            yield from ((node.this, node.args[bound]) for bound in ("low", "high"))
        case exp.In() if node.args.get("query") is None:
            yield (node.this, *node.expressions)
        case exp.Case() if node.this is not None:
            yield (node.this, *(branch.this for branch in node.args["ifs"]))
        case _ if isinstance(node, COMPARISONS):
            yield (node.this, node.expression)


def _decoded(node: exp.DecodeCase) -> Sequence[exp.Expr]:
    """The value of ``decode(value, search, result, …, default)`` and the values that it is compared with."""
    value, *pairs = node.expressions
    return (value, *pairs[: len(pairs) // 2 * 2 : 2])


def _beside_numbers(values: Sequence[exp.Expr], bound: Bound) -> dict[int, SqlType]:
    common_type = common(map(bound.of, values))
    if common_type is None or not common_type.is_number:
        return {}
    return {id(value): common_type for value in values if bound.of(value) == STRING}


def _check_comparable(node: exp.Expr, values: Sequence[exp.Expr], bound: Bound) -> None:
    kinds = [kind for value in values if (kind := bound.of(value)) is not None]
    if BOOLEAN in kinds and any(kind.is_number for kind in kinds):
        raise _of_several_kinds(node, values, bound)


def _is_array(node: exp.Expr, bound: Bound) -> bool:
    return (kind := bound.of(node)) is not None and kind.name == "array"


def _of_another_kind(node: exp.Expr, expected: str) -> InvalidInputError:
    return InvalidInputError(f"{_shown(node)}: expected {expected}, found a STRING; CAST it", kind="query")


def _of_several_kinds(node: exp.Expr, values: Sequence[exp.Expr], bound: Bound) -> InvalidInputError:
    kinds = " and ".join(dict.fromkeys(str(kind) for value in values if (kind := bound.of(value)) is not None))
    return InvalidInputError(f"{_shown(node)}: expected values of one kind, found {kinds}; CAST one of them", kind="query")


def _shown(node: exp.Expr) -> str:
    return f"{node.sql(dialect=Spark4):.80}"
