"""Computes the functions of vectors, which are arrays of FLOAT, over columns: norms, products, distances, sums, averages.

Vectors of one length are one matrix. Of two vectors Spark adds up eight products at a time, as doubles; rows it adds up as floats.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import FLOAT, SqlType, array
from tablestore.sql.duckdb.calls import call as call_of
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, from_text

_VECTOR = array(FLOAT)
_AT_ONCE = 8
_BY_ORDER = "the last digits go by the order of the rows"
_Numbers: TypeAlias = "npt.NDArray[Any]"
_Degrees: TypeAlias = "Callable[[_Numbers], Iterator[tuple[_Numbers, float]]]"


class _Vectors:
    """Columns of vectors. ``lengths``: theirs, by row; ``are_null``: rows in which a vector, or a number of one, is NULL."""

    def __init__(self, column: pa.Array) -> None:
        self.are_null = np.asarray(column.is_null()) if column.null_count else np.zeros(len(column), np.bool_)
        ends = np.asarray(column.offsets)
        self.starts = ends[:-1]
        self.lengths = ends[1:] - ends[:-1]
        if column.null_count:
            self.lengths[self.are_null] = 0
        numbers = column.values
        self.numbers = np.asarray(numbers.fill_null(0.0) if numbers.null_count else numbers)
        if numbers.null_count:
            missing = np.concatenate(([0], np.cumsum(np.asarray(numbers.is_null()))))
            self.are_null = self.are_null | (missing[self.starts + self.lengths] > missing[self.starts])

    def by_length(self) -> "Iterator[tuple[_Numbers, int]]":
        """The rows that have vectors of a length, and the length."""
        rows = np.flatnonzero(~self.are_null)
        lengths = self.lengths[rows]
        if len(rows) and (lengths == lengths[0]).all():
            yield rows, int(lengths[0])
            return
        for length in np.unique(lengths):
            yield rows[lengths == length], int(length)

    def matrix(self, rows: _Numbers, length: int) -> _Numbers:
        """The vectors of some rows, as doubles: those of one place behind the other, as they are added."""
        return np.asfortranarray(self.rows(rows, length), np.float64)

    def rows(self, rows: _Numbers, length: int) -> _Numbers:
        """The vectors of some rows."""
        part = _part_of(self.starts, rows, length)
        return self.numbers[self.starts[rows][:, None] + np.arange(length) if part is None else part].reshape(len(rows), length)


def _part_of(starts: _Numbers, rows: _Numbers, length: int) -> "slice | None":
    """The place of the numbers of vectors of a length, if these lie one behind the other."""
    first, count = int(starts[rows[0]]) if len(rows) else 0, len(rows) * length
    return slice(first, first + count) if count and starts[rows[-1]] + length - first == count else None


def _added(terms: _Numbers) -> _Numbers:
    """The sums of rows: of eight numbers at a time, and of each of those that are left."""
    sums = np.zeros(len(terms))
    whole = terms.shape[1] - terms.shape[1] % _AT_ONCE
    for first in range(0, whole, _AT_ONCE):
        # Over the first axis NumPy adds one after the other.
        sums += np.add.reduce(terms.T[first : first + _AT_ONCE], axis=0)
    for at in range(whole, terms.shape[1]):
        sums += terms[:, at]
    return sums


def _norms(matrix: _Numbers, degree: float) -> _Numbers:
    if degree == 2:
        return np.sqrt(_added(matrix * matrix))
    sizes = np.abs(matrix)
    return _added(sizes) if degree == 1 else np.max(sizes, axis=1, initial=0.0)


def _degrees(name: str, column: pa.Array) -> "tuple[_Numbers, _Numbers]":
    """The degrees of norms, and where they are NULL. Raises InvalidInputError for one that is none."""
    degrees, are_null = np.asarray(column.fill_null(2.0), np.float64), np.asarray(column.is_null())
    others = ~np.isin(degrees, (1.0, 2.0, np.inf))
    if others.any():
        raise InvalidInputError(
            f"the function `{name}`: expected the degree 1.0, 2.0 or float('inf'), found {degrees[others][0]}", kind="query"
        )
    return degrees, are_null


def _of_degrees(rows: _Numbers, powers: _Numbers) -> "Iterator[tuple[_Numbers, float]]":
    """Some rows by the degrees of their norms."""
    for degree in (1.0, 2.0, np.inf):
        yield rows[powers[rows] == degree], degree


def _by_degree(name: str, compute: "Callable[[_Vectors, _Degrees], pa.Array]") -> "Callable[[pa.Array, pa.Array], pa.Array]":
    """A function of vectors and the degrees of their norms."""

    def over(vectors: pa.Array, degrees: pa.Array) -> pa.Array:
        columns = _Vectors(vectors)
        powers, no_power = _degrees(name, degrees)
        columns.are_null = columns.are_null | no_power
        with np.errstate(all="ignore"):
            return compute(columns, lambda rows: _of_degrees(rows, powers))

    return over


def _of_one_degree(degree: float, compute: "Callable[[_Vectors, _Degrees], pa.Array]") -> "Callable[[pa.Array], pa.Array]":
    """A function of vectors alone, whose norms have a degree that is written: each column that DuckDB hands over costs."""

    def over(vectors: pa.Array) -> pa.Array:
        with np.errstate(all="ignore"):
            return compute(_Vectors(vectors), lambda rows: iter([(rows, degree)]))

    return over


def _normed(columns: _Vectors, by_degree: "_Degrees") -> pa.Array:
    results = np.zeros(len(columns.lengths), np.float64)
    for rows, length in columns.by_length():
        for some, degree in by_degree(rows):
            results[some] = _norms(columns.matrix(some, length), degree)
    return pa.array(results.astype(np.float32), pa.float32(), mask=columns.are_null)


def _normalized(columns: _Vectors, by_degree: "_Degrees") -> pa.Array:
    are_null = columns.are_null
    ends = np.concatenate(([0], np.cumsum(columns.lengths)))
    values = np.zeros(int(ends[-1]), np.float32)
    for rows, length in columns.by_length():
        for some, degree in by_degree(rows) if length else ():
            matrix = columns.matrix(some, length)
            norms = _norms(matrix, degree)
            if not norms.all():
                are_null[some[norms == 0]] = True
            matrix /= norms[:, None]
            part = _part_of(ends, some, length)
            if part is None:
                values[ends[some][:, None] + np.arange(length)] = matrix
            else:
                values[part].reshape(-1, length)[...] = matrix
    return pa.ListArray.from_arrays(
        pa.array(ends.astype(np.int32)), pa.array(values), type=pa.list_(pa.float32()), mask=pa.array(are_null)
    )


def _of_two(name: str, compute: "Callable[[_Numbers, _Numbers], tuple[_Numbers, _Numbers]]") -> ArrowFunction:
    """A function of two vectors. ``compute``: gives the values of rows, and where they are NULL."""

    def over(left: pa.Array, right: pa.Array) -> pa.Array:
        ones, others = _Vectors(left), _Vectors(right)
        differ = (ones.lengths != others.lengths) & ~np.asarray(left.is_null()) & ~np.asarray(right.is_null())
        if differ.any():
            at = int(np.nonzero(differ)[0][0])
            raise InvalidInputError(
                f"the function `{name}`: expected vectors of the same dimension, found {ones.lengths[at]} and {others.lengths[at]}",
                kind="query",
            )
        ones.are_null = are_null = ones.are_null | others.are_null
        results = np.zeros(len(are_null))
        with np.errstate(all="ignore"):
            for rows, length in ones.by_length():
                results[rows], are_null[rows] = compute(ones.matrix(rows, length), others.matrix(rows, length))
            return pa.array(results.astype(np.float32), pa.float32(), mask=are_null)

    return ArrowFunction(name=name, arguments=(_VECTOR, _VECTOR), result=FLOAT, call=over)


def _inner_product(left: _Numbers, right: _Numbers) -> "tuple[_Numbers, _Numbers]":
    return _added(left * right), np.zeros(len(left), np.bool_)


def _distance(left: _Numbers, right: _Numbers) -> "tuple[_Numbers, _Numbers]":
    return np.sqrt(_added((left - right) ** 2)), np.zeros(len(left), np.bool_)


def _cosine(left: _Numbers, right: _Numbers) -> "tuple[_Numbers, _Numbers]":
    squares = _added(left * left), _added(right * right)
    return _added(left * right) / np.sqrt(squares[0] * squares[1]), (squares[0] == 0) | (squares[1] == 0)


def _combined_groups(
    vectors: _Vectors,
    rows: _Numbers,
    groups: "tuple[_Numbers, _Numbers]",
    length: int,
    combine: "Callable[[_Numbers, _Numbers, int], _Numbers]",
) -> _Numbers:
    """The vectors of groups combined one by one: the next of all groups at once.

    ``groups``: their first places in ``rows``, and how many vectors they have, the most first.
    """
    firsts, counts = groups
    starts = vectors.starts[rows]
    places = np.arange(length)
    result = vectors.numbers[starts[firsts][:, None] + places]
    # How many groups have so many vectors.
    active = len(counts) - np.searchsorted(counts[::-1], np.arange(1, int(counts[0])), side="right")
    for step, many in enumerate(active, 1):
        result[:many] = combine(result[:many], vectors.numbers[starts[firsts[:many] + step][:, None] + places], step + 1)
    return result


def _rows_combined(name: str, combine: "Callable[[_Numbers, _Numbers, int], _Numbers]") -> ArrowFunction:
    """An aggregate over vectors that are collected. ``combine``: takes what is there, the next vector, and how many it makes."""

    def over(groups: pa.Array) -> pa.Array:
        lists = groups.cast(pa.large_list(pa.large_list(pa.float32())))
        vectors = _Vectors(lists.values)
        ends = np.asarray(lists.offsets)
        sizes = np.where(np.asarray(lists.is_null()), 0, np.diff(ends))
        of_group = np.repeat(np.arange(len(sizes)), sizes)
        rows = np.arange(int(sizes.sum())) + np.repeat(ends[:-1] - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
        are_kept = ~vectors.are_null[rows]
        rows, of_group = rows[are_kept], of_group[are_kept]
        counts = np.bincount(of_group, minlength=len(sizes))
        firsts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        lengths = vectors.lengths[rows]
        length_of = np.where(counts > 0, lengths[np.minimum(firsts, max(len(rows) - 1, 0))], 0) if len(rows) else counts
        differ = np.flatnonzero(lengths != length_of[of_group])
        if len(differ):
            at = int(differ[0])
            raise InvalidInputError(
                f"the function `{name}`: expected vectors of the same dimension, found {length_of[of_group[at]]} and {lengths[at]}",
                kind="query",
            )
        out = np.concatenate(([0], np.cumsum(np.where(counts > 0, length_of, 0))))
        values = np.zeros(int(out[-1]), np.float32)
        with np.errstate(all="ignore"):
            for length in np.unique(length_of[counts > 0]):
                # The largest groups first: those that have another vector are the first ones.
                some = np.flatnonzero((counts > 0) & (length_of == length))
                some = some[np.argsort(-counts[some], kind="stable")]
                result = _combined_groups(vectors, rows, (firsts[some], counts[some]), int(length), combine)
                values[out[some][:, None] + np.arange(length)] = result
        are_empty = pa.array(np.append(counts == 0, False))
        offsets = pc.if_else(are_empty, None, pa.array(out.astype(np.int32)))
        return pa.ListArray.from_arrays(offsets, pa.array(values))

    return ArrowFunction(name=name, arguments=(array(_VECTOR),), result=_VECTOR, call=over)


def _next_average(average: _Numbers, vector: _Numbers, count: int) -> _Numbers:
    return average + (vector - average) * (np.float32(1) / np.float32(count))


_NORM = ArrowFunction(name="vector_norm", arguments=(_VECTOR, FLOAT), result=FLOAT, call=_by_degree("vector_norm", _normed))
_NORMALIZE = ArrowFunction(
    name="vector_normalize", arguments=(_VECTOR, FLOAT), result=_VECTOR, call=_by_degree("vector_normalize", _normalized)
)
_OF_DEGREES = {
    (function.name, degree): ArrowFunction(
        name=f"{function.name}_{degree[0]}",
        arguments=(_VECTOR,),
        result=function.result,
        call=_of_one_degree(float(degree), compute),
    )
    for function, compute in ((_NORM, _normed), (_NORMALIZE, _normalized))
    for degree in ("1.0", "2.0")
}
_PAIRS = (
    _of_two("vector_inner_product", _inner_product),
    _of_two("vector_cosine_similarity", _cosine),
    _of_two("vector_l2_distance", _distance),
)
_SUMS = (
    _rows_combined("vector_sum", lambda total, vector, count: total + vector),
    _rows_combined("vector_avg", _next_average),
)


# DuckDB adds up in another order, also as doubles: of so many numbers the two sums differ by less than 1e-12 of what the terms are
# without their signs. What both ends of that are as floats is the result; of other rows the Arrow function adds up in order.
# $0 and $2 are vectors, $1 is their value by the Arrow function.
_MOST_NUMBERS = 2000
_LEFT, _RIGHT = "CAST($0 AS DOUBLE[])", "CAST($2 AS DOUBLE[])"
# Where no row is left out, DuckDB computes what stands behind ELSE in place, without a copy.
_CERTAIN = """CASE WHEN {outside} CAST({low} AS FLOAT) <> CAST({high} AS FLOAT) THEN NULL ELSE CAST({result} AS FLOAT) END"""
_OF_FEW = f"[CASE WHEN LEN($0) > {_MOST_NUMBERS} THEN NULL ELSE {{sums}} END]"
_BY_SUM = f"""COALESCE(
    TRY(LIST_EXTRACT(LIST_TRANSFORM({{sums}}, LAMBDA _sum: {_CERTAIN}), 1)),
    CASE WHEN {{null}} THEN NULL ELSE COALESCE({{exact}} $1) END
)"""


def _by_sum(added: str, null: str, ends: dict[str, str], exact: str = "") -> str:
    """``exact``: the result for rows in which the order does not matter, NULL for others, and a comma."""
    return _BY_SUM.format(sums=_OF_FEW.format(sums=added), null=null, exact=exact, **ends)


_RELATIVE = {"outside": "", "low": "_sum * CAST(1 - 1e-12 AS DOUBLE)", "high": "_sum * CAST(1 + 1e-12 AS DOUBLE)", "result": "_sum"}
_ROOT = {name: text and f"SQRT({text})" for name, text in _RELATIVE.items()}
# It is NaN where a vector is zero.
_ABSOLUTE = {
    "outside": "_sum >= 2 OR",
    "low": "_sum - CAST(1e-12 AS DOUBLE)",
    "high": "_sum + CAST(1e-12 AS DOUBLE)",
    "result": "_sum",
}
# A term of a product is a double without loss, and an addition of the two sums loses 1.2e-16 at most of what the terms are without
# their signs. That is at most half the squares of both vectors, which are the square of their distance and twice the product: of so
# many numbers 5e-13 of it, twice what is lost, which leaves room for what the distance loses as a float. The square of the margin
# is 2.5e-13 of that of the distance, and more than the smallest float: on both sides of zero the ends differ. Squares that are too
# small for a float are less than 1e-34.
_BOUNDED = {
    "outside": "",
    "low": "_sum.product * CAST(1 - 5e-13 AS DOUBLE) - _sum.margin * _sum.margin",
    "high": "_sum.product * CAST(1 + 5e-13 AS DOUBLE) + _sum.margin * _sum.margin",
    "result": "_sum.product",
}
# The product with the signs is the sum of the sizes, and raises for a number that is NULL as others do.
_SIZES = f"LIST_INNER_PRODUCT({_LEFT}, CAST(LIST_TRANSFORM($0, LAMBDA _number: SIGN(_number)) AS DOUBLE[]))"
# Sums of numbers that are no products often lie in the middle between two floats. A float is a multiple of 2**-24 of its size: as
# long as all are multiples of a number that goes into their sum fewer than 2**53 times, no addition loses anything.
_SMALLEST = "LIST_MIN(LIST_TRANSFORM($0, LAMBDA _number: CASE WHEN _number = 0 THEN NULL ELSE ABS(CAST(_number AS DOUBLE)) END))"
_SIZES_EXACTLY = f"""TRY(LIST_EXTRACT(LIST_TRANSFORM(
    [{{'sum': {_SIZES}, 'smallest': {_SMALLEST}}}],
    LAMBDA _sizes: CASE WHEN _sizes.sum < {1 << 28} * _sizes.smallest THEN CAST(_sizes.sum AS FLOAT) END
), 1)),"""
_NORM_IN_SQL = {
    "1.0": _by_sum(_SIZES, "$0 IS NULL", _RELATIVE, _SIZES_EXACTLY),
    "2.0": _by_sum(f"LIST_INNER_PRODUCT({_LEFT}, {_LEFT})", "$0 IS NULL", _ROOT),
}
_EITHER = "$0 IS NULL OR $2 IS NULL"
_IS_ZERO = (
    f"LEN($0) = LEN($2) AND (TRY(LIST_INNER_PRODUCT({_LEFT}, {_LEFT})) = 0 OR TRY(LIST_INNER_PRODUCT({_RIGHT}, {_RIGHT})) = 0)"
)
_PRODUCT = f"LIST_INNER_PRODUCT({_LEFT}, {_RIGHT})"
_MARGIN = "CAST(LIST_DISTANCE($0, $2) AS DOUBLE) * CAST(5e-7 AS DOUBLE) + CAST(5e-21 AS DOUBLE)"
_TERMS = f"{{'product': {_PRODUCT}, 'margin': {_MARGIN}}}"
_PAIRS_IN_SQL = {
    "vector_l2_distance": _by_sum(f"LIST_DISTANCE({_LEFT}, {_RIGHT})", _EITHER, _RELATIVE),
    "vector_cosine_similarity": _by_sum(f"LIST_COSINE_SIMILARITY({_LEFT}, {_RIGHT})", f"{_EITHER} OR {_IS_ZERO}", _ABSOLUTE),
    "vector_inner_product": _by_sum(
        _TERMS,
        _EITHER,
        _BOUNDED,
        # Of a vector of zeros it is no more than its bound.
        exact=f"CASE WHEN TRY({_PRODUCT}) = 0 AND {_IS_ZERO} THEN CAST(0 AS FLOAT) END,",
    ),
}


def _vector(call: RuleCall, place: int) -> exp.Expr:
    if call.type(place) != _VECTOR:
        raise call.mismatch(place, "an ARRAY<FLOAT>")
    return call.value(place)


def _of_degree(function: ArrowFunction) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        if len(call.values) > 1 and call.type(1) != FLOAT:
            raise call.mismatch(1, "a FLOAT")
        written = call.values[1].unnest() if len(call.values) > 1 else exp.Literal.number("2.0")
        written = written.this if isinstance(written, exp.Cast) else written
        name = written.name if isinstance(written, exp.Literal) else ""
        of_degree = _OF_DEGREES.get((function.name, name))
        value = function.of(_vector(call, 0), call.value(1)) if of_degree is None else of_degree.of(_vector(call, 0))
        in_sql = _NORM_IN_SQL.get(name) if function is _NORM else None
        return value if in_sql is None else from_text(in_sql, _vector(call, 0), value)

    return write


def _of_pair(function: ArrowFunction) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        vectors = _vector(call, 0), _vector(call, 1)
        return from_text(_PAIRS_IN_SQL[function.name], vectors[0], function.of(*(one.copy() for one in vectors)), vectors[1])

    return write


def _collected(function: ArrowFunction) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        value = _vector(call, 0)
        vectors = exp.Distinct(expressions=[value]) if call.is_distinct else value
        return function.of(call.around(call_of("LIST", vectors)))

    return write


def _rule(function: ArrowFunction, bounds: tuple[int, int], result: SqlType, write: Callable[[RuleCall], exp.Expr]) -> FunctionRule:
    return FunctionRule(name=function.name, bounds=bounds, result=always(result), write=write)


RULES = (
    _rule(_NORM, (1, 2), FLOAT, _of_degree(_NORM)),
    _rule(_NORMALIZE, (1, 2), _VECTOR, _of_degree(_NORMALIZE)),
    *(_rule(one, (2, 2), FLOAT, _of_pair(one)) for one in _PAIRS),
    *(
        FunctionRule(name=one.name, bounds=(1, 1), result=always(_VECTOR), write=_collected(one), is_aggregate=True, note=_BY_ORDER)
        for one in _SUMS
    ),
)
ARROW = (_NORM, _NORMALIZE, *_OF_DEGREES.values(), *_PAIRS, *_SUMS)
