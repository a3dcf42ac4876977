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


class _Vectors:
    """Columns of vectors. ``lengths``: theirs, by row; ``are_null``: rows in which a vector, or a number of one, is NULL."""

    def __init__(self, column: pa.Array) -> None:
        lists = column.cast(pa.large_list(pa.float32()))
        self.are_null = np.asarray(lists.is_null())
        ends = np.asarray(lists.offsets)
        self.starts = ends[:-1]
        self.lengths = np.where(self.are_null, 0, ends[1:] - ends[:-1])
        self.numbers = np.asarray(lists.values.fill_null(0.0), np.float32)
        if lists.values.null_count:
            missing = np.concatenate(([0], np.cumsum(np.asarray(lists.values.is_null()))))
            self.are_null = self.are_null | (missing[self.starts + self.lengths] > missing[self.starts])

    def by_length(self) -> "Iterator[tuple[_Numbers, int]]":
        """The rows that have vectors of a length, and the length."""
        for length in np.unique(self.lengths):
            yield np.nonzero((self.lengths == length) & ~self.are_null)[0], int(length)

    def matrix(self, rows: _Numbers, length: int) -> _Numbers:
        """The vectors of some rows, as doubles: those of one place behind the other, as they are added."""
        count = len(rows) * length
        if count and self.starts[rows[-1]] + length - self.starts[rows[0]] == count:
            # They lie one behind the other.
            first = int(self.starts[rows[0]])
            return np.asfortranarray(self.numbers[first : first + count].reshape(len(rows), length), np.float64)
        return self.numbers[self.starts[rows][:, None] + np.arange(length)].astype(np.float64)


def _added(terms: _Numbers) -> _Numbers:
    """The sums of rows: of eight numbers at a time, and of each of those that are left."""
    sums = np.zeros(len(terms))
    whole = terms.shape[1] - terms.shape[1] % _AT_ONCE
    for first in range(0, whole, _AT_ONCE):
        eight = terms[:, first].copy()
        for at in range(first + 1, first + _AT_ONCE):
            eight += terms[:, at]
        sums += eight
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


def _normed(vectors: pa.Array, degrees: pa.Array) -> pa.Array:
    columns = _Vectors(vectors)
    powers, no_power = _degrees("vector_norm", degrees)
    results, are_null = np.zeros(len(powers), np.float64), columns.are_null | no_power
    with np.errstate(all="ignore"):
        for rows, length in columns.by_length():
            for degree in (1.0, 2.0, np.inf):
                some = rows[powers[rows] == degree]
                results[some] = _norms(columns.matrix(some, length), degree)
        return pa.array(results.astype(np.float32), pa.float32(), mask=are_null)


def _normalized(vectors: pa.Array, degrees: pa.Array) -> pa.Array:
    columns = _Vectors(vectors)
    powers, no_power = _degrees("vector_normalize", degrees)
    are_null = columns.are_null | no_power
    ends = np.concatenate(([0], np.cumsum(columns.lengths)))
    values = np.zeros(int(ends[-1]), np.float32)
    with np.errstate(all="ignore"):
        for rows, length in columns.by_length():
            for degree in (1.0, 2.0, np.inf) if length else ():
                some = rows[powers[rows] == degree]
                matrix = columns.matrix(some, length)
                norms = _norms(matrix, degree)
                are_null[some] |= norms == 0
                values[ends[some][:, None] + np.arange(length)] = matrix / norms[:, None]
    lists = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(values), mask=pa.array(are_null))
    return lists.cast(pa.list_(pa.float32()))


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


_NORM = ArrowFunction(name="vector_norm", arguments=(_VECTOR, FLOAT), result=FLOAT, call=_normed)
_NORMALIZE = ArrowFunction(name="vector_normalize", arguments=(_VECTOR, FLOAT), result=_VECTOR, call=_normalized)
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
_CERTAIN = """CASE WHEN {within} CAST({low} AS FLOAT) = CAST({high} AS FLOAT) THEN CAST({result} AS FLOAT) END"""
_BY_SUMS = f"""COALESCE(
    TRY(LIST_EXTRACT(LIST_TRANSFORM([CASE WHEN LEN($0) <= {_MOST_NUMBERS} THEN {{sums}} END], LAMBDA _sum: {_CERTAIN}), 1)),
    CASE WHEN {{null}} THEN NULL ELSE $1 END
)"""
_RELATIVE = {"within": "", "low": "_sum * CAST(1 - 1e-12 AS DOUBLE)", "high": "_sum * CAST(1 + 1e-12 AS DOUBLE)", "result": "_sum"}
_ROOT = {name: text and f"SQRT({text})" for name, text in _RELATIVE.items()}
# It is NaN where a vector is zero.
_ABSOLUTE = {
    "within": "_sum < 2 AND",
    "low": "_sum - CAST(1e-12 AS DOUBLE)",
    "high": "_sum + CAST(1e-12 AS DOUBLE)",
    "result": "_sum",
}
_BOUNDED = {"within": "", "low": "_sum.product - _sum.bound", "high": "_sum.product + _sum.bound", "result": "_sum.product"}
# Sums of numbers that are no products often lie in the middle between two floats: they are left to the Arrow function.
_NORM_IN_SQL = {"2.0": _BY_SUMS.format(sums=f"LIST_INNER_PRODUCT({_LEFT}, {_LEFT})", null="$0 IS NULL", **_ROOT)}
_EITHER = "$0 IS NULL OR $2 IS NULL"
_IS_ZERO = (
    f"LEN($0) = LEN($2) AND (TRY(LIST_INNER_PRODUCT({_LEFT}, {_LEFT})) = 0 OR TRY(LIST_INNER_PRODUCT({_RIGHT}, {_RIGHT})) = 0)"
)
_SIZES = f"SQRT(LIST_INNER_PRODUCT({_LEFT}, {_LEFT})) * SQRT(LIST_INNER_PRODUCT({_RIGHT}, {_RIGHT}))"
_PAIRS_IN_SQL = {
    "vector_l2_distance": _BY_SUMS.format(sums=f"LIST_DISTANCE({_LEFT}, {_RIGHT})", null=_EITHER, **_RELATIVE),
    "vector_cosine_similarity": _BY_SUMS.format(
        sums=f"LIST_COSINE_SIMILARITY({_LEFT}, {_RIGHT})", null=f"{_EITHER} OR {_IS_ZERO}", **_ABSOLUTE
    ),
    "vector_inner_product": _BY_SUMS.format(
        sums=f"{{'product': LIST_INNER_PRODUCT({_LEFT}, {_RIGHT}), 'bound': {_SIZES} * CAST(1e-12 AS DOUBLE)}}",
        null=_EITHER,
        **_BOUNDED,
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
        degree = call.value(1) if len(call.values) > 1 else exp.cast(exp.Literal.number(2), "FLOAT")
        value = function.of(_vector(call, 0), degree)
        written = call.values[1].unnest() if len(call.values) > 1 else exp.Literal.number("2.0")
        written = written.this if isinstance(written, exp.Cast) else written
        in_sql = _NORM_IN_SQL.get(written.name) if function is _NORM and isinstance(written, exp.Literal) else None
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
ARROW = (_NORM, _NORMALIZE, *_PAIRS, *_SUMS)
