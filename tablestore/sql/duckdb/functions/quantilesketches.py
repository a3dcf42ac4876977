"""Writes functions of the KLL sketches of Apache DataSketches with Spark's meaning, while a sketch holds all of its values.

That is up to its size ``k``; behind it a sketch keeps values by chance, and is refused. Its bytes are those of ``KllLongsSketch``,
``KllFloatsSketch`` and ``KllDoublesSketch``. An aggregate holds the values of one group in memory.
"""

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import ResultOf, Types, always
from tablestore.sql.binding.sqltypes import BIGINT, BINARY, DOUBLE, FLOAT, INT, STRING, VOID, SqlType, Type, array
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions import quantilecolumns
from tablestore.sql.duckdb.functions.argumenttypes import written_integer
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall
from tablestore.sql.duckdb.functions.quantilecolumns import FAMILY, IS_EMPTY, IS_SINGLE, LEAST_LEVEL, QuantileColumn
from tablestore.sql.duckdb.functions.sketchcolumns import by_row, flat, nulls_aside, spread, starts_of

_SIZE = 200
_SIZES = range(8, 65536)
_ROUNDED = 1e7
_SUMMARY = """
### Kll{name} Summary:
   K                      : {k}
   Dynamic min K          : {k}
   M                      : 8
   N                      : {n}
   Epsilon                : {epsilon:.3f}%
   Epsilon PMF            : {pmf:.3f}%
   Empty                  : {is_empty}
   Estimation Mode        : false
   Levels                 : 1
   Level 0 Sorted         : false
   Capacity Items         : {k}
   Retained Items         : {n}
   Free Space             : {free}
   ReadOnly               : false
   Updatable Storage Bytes: {updatable}
   Compact Storage Bytes  : {compact}
   Min Item               : {least}
   Max Item               : {greatest}
### End sketch summary
"""


@dataclass(frozen=True, slots=True)
class _Sketch:
    k: int
    values: tuple[Any, ...] = ()


class _BrokenSketchError(Exception):
    """Signals bytes that are no sketch."""


def _order(value: Any) -> tuple[Any, float]:
    """Values in Java's order: -0.0 before 0.0."""
    return value, math.copysign(1, value)


class _Family:
    """The functions of sketches whose values have one type."""

    def __init__(self, name: str, kind: SqlType, code: str, arrow: pa.DataType, java_name: str) -> None:
        self.name, self.kind, self.java_name = name, kind, java_name
        self.form = struct.Struct(f"<{code}")
        binary, whole, double, text = pa.binary(), pa.int64(), pa.float64(), pa.string()
        self.made = self._function(
            "sketch_agg", (array(kind), INT), BINARY, binary, self._made, takes_null=True, at_once=self._made_at_once
        )
        self.merged = self._function(
            "merge_agg", (array(BINARY), INT), BINARY, binary, self._merged, takes_null=True, at_once=self._merged_at_once
        )
        self.pair = self._function("sketch_merge", (BINARY, BINARY), BINARY, binary, self._pair, at_once=self._pairs)
        self.count = self._function("sketch_get_n", (BINARY,), BIGINT, whole, self._count, at_once=self._counts)
        self.summary = self._function("sketch_to_string", (BINARY,), STRING, text, self._summary, at_once=self._summaries)
        self.quantile = self._function(
            "sketch_get_quantile", (BINARY, DOUBLE), kind, arrow, self._quantile, at_once=self._quantiles_at_once
        )
        self.rank = self._function("sketch_get_rank", (BINARY, kind), DOUBLE, double, self._rank, at_once=self._ranks_at_once)
        self.quantiles = self._function(
            "sketch_get_quantiles", (BINARY, array(DOUBLE)), array(kind), pa.list_(arrow), partial(self._each, self._quantile)
        )
        self.ranks = self._function(
            "sketch_get_ranks", (BINARY, array(kind)), array(DOUBLE), pa.list_(double), partial(self._each, self._rank)
        )

    @property
    def functions(self) -> tuple[ArrowFunction, ...]:
        return (
            self.made, self.merged, self.pair, self.count, self.summary, self.quantile, self.rank, self.quantiles, self.ranks,
        )  # fmt: skip

    def _function(
        self,
        what: str,
        arguments: tuple[SqlType, ...],
        result: SqlType,
        arrow: pa.DataType,
        call: Callable[..., Any],
        *,
        takes_null: bool = False,
        at_once: "Callable[..., pa.Array | None] | None" = None,
    ) -> ArrowFunction:
        """A function. ``at_once``: computes it for columns without NULLs, or says with None that it does not."""
        name = f"kll_{what}_{self.name}"

        def over_columns(*columns: pa.Array) -> pa.Array:
            if at_once is not None:
                count = len(columns[0])
                places, some = (np.arange(count), list(columns)) if takes_null else nulls_aside(columns)
                values = at_once(*some) if len(places) else None
                if values is not None:
                    return spread(values, places, count)
            rows = zip(*(column.to_pylist() for column in columns), strict=True)
            try:
                return pa.array([None if not takes_null and None in row else call(*row) for row in rows], arrow)
            except (_BrokenSketchError, struct.error) as error:
                raise InvalidInputError(
                    f"the function `{name}`: expected the bytes of a sketch with values, as kll_sketch_agg_{self.name} makes them",
                    kind="query",
                ) from error

        return ArrowFunction(name=name, arguments=arguments, result=result, call=over_columns)

    def _made_at_once(self, lists: pa.Array, sizes: pa.Array) -> pa.Array | None:
        rows, listed = flat(lists)
        values = np.asarray(listed)
        if values.dtype.kind == "f":
            is_number = ~np.isnan(values)
            rows, values = rows[is_number], values[is_number]
        counts = np.bincount(rows, minlength=len(lists))
        return quantilecolumns.write(QuantileColumn(np.asarray(sizes).astype(np.int64), counts, values))

    def _read_at_once(self, data: pa.Array) -> QuantileColumn | None:
        return quantilecolumns.read(data, self.form.format)

    def _merged_at_once(self, lists: pa.Array, sizes: pa.Array) -> pa.Array | None:
        rows, data = flat(lists)
        column = self._read_at_once(data)
        if column is None:
            return None
        # Each value goes before those that are there.
        counts = np.bincount(rows[column.rows], minlength=len(lists))
        values = quantilecolumns.reversed_groups(column.values, counts)
        first = np.searchsorted(rows, np.arange(len(lists)))
        has_one = np.bincount(rows, minlength=len(lists)) > 0
        own = np.where(has_one, column.sizes[np.minimum(first, len(rows) - 1)], _SIZE)
        chosen = own if sizes.null_count else np.asarray(sizes).astype(np.int64)
        return quantilecolumns.write(QuantileColumn(chosen, counts, values))

    def _pairs(self, left: pa.Array, right: pa.Array) -> pa.Array | None:
        both = self._read_at_once(left), self._read_at_once(right)
        if both[0] is None or both[1] is None:
            return None
        values = quantilecolumns.reversed_groups(both[1].values, both[1].counts), both[0].values
        rows = np.concatenate((both[1].rows, both[0].rows))
        order = by_row(rows, np.arange(len(rows)))
        counts = both[0].counts + both[1].counts
        return quantilecolumns.write(QuantileColumn(both[0].sizes, counts, np.concatenate(values)[order]))

    def _counts(self, data: pa.Array) -> pa.Array | None:
        column = self._read_at_once(data)
        return None if column is None else pa.array(column.counts)

    def _quantiles_at_once(self, data: pa.Array, shares: pa.Array) -> pa.Array | None:
        column, share = self._read_at_once(data), np.asarray(shares)
        if column is None or (column.counts == 0).any() or not ((share >= 0) & (share <= 1)).all():
            return None
        ranks = np.ceil(np.floor(share * column.counts * _ROUNDED + 0.5) / _ROUNDED).astype(np.int64)
        return pa.array(column.in_order()[starts_of(column.counts) + np.maximum(ranks, 1) - 1])

    def _ranks_at_once(self, data: pa.Array, values: pa.Array) -> pa.Array | None:
        column, value = self._read_at_once(data), np.asarray(values)
        if column is None or (column.counts == 0).any() or (value != value).any():
            return None
        is_below = column.values <= np.repeat(value, column.counts)
        return pa.array(np.bincount(column.rows[is_below], minlength=len(data)) / column.counts)

    def _summaries(self, data: pa.Array) -> pa.Array | None:
        column = self._read_at_once(data)
        if column is None or (column.counts == 0).any():
            return None
        least, greatest = (ends.tolist() for ends in quantilecolumns.ends_of(column))
        lengths = np.asarray(pc.binary_length(data)).tolist()
        rows = zip(column.sizes.tolist(), column.counts.tolist(), lengths, least, greatest, strict=True)
        return pa.array([self._summary_of(k, n, length, self._text(low), self._text(high)) for k, n, length, low, high in rows])

    def _read(self, data: bytes) -> _Sketch:
        words, _, family, flags, k = struct.unpack_from("<BBBBH", data)
        size = self.form.size
        if family != FAMILY or len(data) < 8 or data[6] != LEAST_LEVEL:
            raise _BrokenSketchError
        if flags & IS_EMPTY:
            return _Sketch(k)
        if flags & IS_SINGLE:
            return _Sketch(k, self.form.unpack_from(data, 8))
        if words != 5 or len(data) < 20:
            raise _BrokenSketchError
        count, _, levels = struct.unpack_from("<QHB", data, 8)
        if levels > 1 or count > k:
            raise refusal(f"functions of a KLL sketch of more values than its size ({k})")
        if len(data) != 24 + (count + 2) * size:
            raise _BrokenSketchError
        return _Sketch(k, tuple(value for (value,) in self.form.iter_unpack(data[24 + 2 * size :])))

    def _written(self, sketch: _Sketch) -> bytes:
        count, k = len(sketch.values), sketch.k
        if count > k:
            raise refusal(f"a KLL sketch of more values than its size ({k})")
        if count < 2:
            head = struct.pack("<BBBBHBB", 2, 1 + count, FAMILY, IS_SINGLE if count else IS_EMPTY, k, LEAST_LEVEL, 0)
            return head + b"".join(map(self.form.pack, sketch.values))
        head = struct.pack("<BBBBHBBQHBBI", 5, 1, FAMILY, 0, k, LEAST_LEVEL, 0, count, k, 1, 0, k - count)
        ends = min(sketch.values, key=_order), max(sketch.values, key=_order)
        return head + b"".join(map(self.form.pack, (*ends, *sketch.values)))

    def _made(self, values: list[Any] | None, k: int) -> bytes:
        kept = tuple(one for one in values or () if one is not None and one == one)
        return self._written(_Sketch(k, kept))

    def _merged(self, sketches: list[bytes | None] | None, k: int | None) -> bytes:
        merged: _Sketch | None = None if k is None else _Sketch(k)
        for data in sketches or ():
            if data is not None:
                sketch = self._read(data)
                merged = _Sketch(sketch.k if merged is None else merged.k, self._joined(merged, sketch))
        return self._written(merged or _Sketch(_SIZE))

    def _joined(self, left: _Sketch | None, right: _Sketch) -> tuple[Any, ...]:
        # Each value goes before those that are there.
        return (*reversed(right.values), *(left.values if left is not None else ()))

    def _pair(self, left: bytes, right: bytes) -> bytes:
        first = self._read(left)
        return self._written(_Sketch(first.k, self._joined(first, self._read(right))))

    def _count(self, data: bytes) -> int:
        return len(self._read(data).values)

    def _sorted(self, data: bytes) -> list[Any]:
        values = sorted(self._read(data).values, key=_order)
        if not values:
            raise _BrokenSketchError
        return values

    def _quantile(self, data: bytes, share: float) -> Any:
        values = self._sorted(data)
        if not 0 <= share <= 1:
            raise InvalidInputError(
                f"the function `kll_sketch_get_quantile_{self.name}`: expected a share from 0 to 1, found {share}", kind="query"
            )
        rank = math.ceil(math.floor(share * len(values) * _ROUNDED + 0.5) / _ROUNDED)
        return values[max(rank, 1) - 1]

    def _rank(self, data: bytes, value: Any) -> float:
        values = self._sorted(data)
        if value != value:
            raise refusal(f"the function kll_sketch_get_rank_{self.name} of NaN")
        return float(sum(one <= value for one in values) / len(values))

    def _each(self, call: Callable[[bytes, Any], Any], data: bytes, arguments: list[Any]) -> list[Any]:
        if None in arguments:
            raise refusal(f"functions of a KLL sketch with a NULL in an array ({self.name})")
        return [call(data, one) for one in arguments]

    def _summary(self, data: bytes) -> str:
        sketch = self._read(data)
        values = sorted(sketch.values, key=_order)
        least, greatest = (self._text(values[0]), self._text(values[-1])) if values else ("NaN", "NaN")
        return self._summary_of(sketch.k, len(values), len(data), least, greatest)

    def _summary_of(self, k: int, n: int, length: int, least: str, greatest: str) -> str:
        return _SUMMARY.format(
            name=self.java_name,
            k=k,
            n=n,
            epsilon=100 * 2.296 / k**0.9723,
            pmf=100 * 2.446 / k**0.9433,
            is_empty="false" if n else "true",
            free=k - n,
            updatable=28 + (k + 2) * self.form.size,
            compact=length,
            least=least,
            greatest=greatest,
        )

    def _text(self, value: Any) -> str:
        """A value as Java writes it."""
        if self.kind == BIGINT:
            return str(value)
        if (value != 0 and not 1 <= abs(value) < 10**7) or value * 1000 != int(value * 1000):
            raise refusal(f"the function kll_sketch_to_string_{self.name} of numbers with many digits")
        return repr(round(value, 3))

    def _argument(self, call: RuleCall) -> exp.Expr:
        kind = call.type(0)
        fits = {BIGINT: kind.is_integer, FLOAT: kind == FLOAT, DOUBLE: kind.is_float}[self.kind]
        if not fits:
            raise call.mismatch(0, f"a value of the type {self.kind}")
        return call.value(0, self.kind)

    def _of_values(self, call: RuleCall) -> exp.Expr:
        distinct = exp.Distinct(expressions=[self._argument(call)]) if call.is_distinct else self._argument(call)
        return self.made.of(call.around(exp.Anonymous(this="LIST", expressions=[distinct])), _size(call))

    def _of_sketches(self, call: RuleCall) -> exp.Expr:
        if call.is_distinct:
            raise call.refusal("with DISTINCT")
        size = _size(call) if len(call.values) > 1 else exp.cast(exp.null(), "INT")
        return self.merged.of(call.around(exp.Anonymous(this="LIST", expressions=[_sketch(call, 0)])), size)

    def _at(self, one: ArrowFunction, several: ArrowFunction) -> Callable[[RuleCall], exp.Expr]:
        def write(call: RuleCall) -> exp.Expr:
            if any(True for _ in call.values[1].find_all(exp.Column)):
                raise call.mismatch(1, "a constant")
            function = several if call.type(1).name == "array" else one
            return function.of(_sketch(call, 0), call.value(1, function.arguments[1]))

        return write

    def rules(self) -> Iterator[FunctionRule]:
        """The rules of the functions."""

        def rule(
            what: str, most: int, result: ResultOf, write: Callable[[RuleCall], exp.Expr], *, is_aggregate: bool = False
        ) -> FunctionRule:
            least = 1 if is_aggregate else most
            return FunctionRule(
                name=f"kll_{what}_{self.name}", bounds=(least, most), result=result, write=write, is_aggregate=is_aggregate
            )

        yield rule("sketch_agg", 2, always(BINARY), self._of_values, is_aggregate=True)
        yield rule("merge_agg", 2, always(BINARY), self._of_sketches, is_aggregate=True)
        yield rule("sketch_merge", 2, always(BINARY), lambda call: self.pair.of(_sketch(call, 0), _sketch(call, 1)))
        yield rule("sketch_get_n", 1, always(BIGINT), lambda call: self.count.of(_sketch(call, 0)))
        yield rule("sketch_to_string", 1, always(STRING), lambda call: self.summary.of(_sketch(call, 0)))
        yield rule("sketch_get_quantile", 2, _as_shares(self.kind), self._at(self.quantile, self.quantiles))
        yield rule("sketch_get_rank", 2, _as_shares(DOUBLE), self._at(self.rank, self.ranks))


def _as_shares(kind: SqlType) -> ResultOf:
    def result(types: Types, values: Sequence[exp.Expr]) -> Type:
        share = types[1] if len(types) > 1 else None
        return None if share is None else array(kind) if share.name == "array" else kind

    return result


def _size(call: RuleCall) -> exp.Expr:
    size = written_integer(call, 1, "a size") if len(call.values) > 1 else _SIZE
    if size not in _SIZES:
        raise call.mismatch(1, f"a number from {_SIZES[0]} to {_SIZES[-1]}")
    return exp.Literal.number(size)


def _sketch(call: RuleCall, place: int) -> exp.Expr:
    if call.type(place) not in (BINARY, VOID):
        raise call.mismatch(place, "the bytes of a sketch")
    return call.value(place, BINARY)


_FAMILIES = (
    _Family("bigint", BIGINT, "q", pa.int64(), "KllLongsSketch"),
    _Family("float", FLOAT, "f", pa.float32(), "KllFloatsSketch"),
    _Family("double", DOUBLE, "d", pa.float64(), "KllDoublesSketch"),
)
RULES = tuple(rule for family in _FAMILIES for rule in family.rules())
ARROW = tuple(function for family in _FAMILIES for function in family.functions)
