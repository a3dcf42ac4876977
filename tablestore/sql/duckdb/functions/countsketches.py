"""Writes functions of the HLL sketches of Apache DataSketches with Spark's meaning, while a sketch holds the hashes of all values.

Such a sketch is a list of up to seven hashes ("coupons": 26 bits of a place, and the zeros behind them), then a table of them. What
it estimates beyond that depends on how Spark shares out the rows, and is refused. An aggregate holds the hashes of one group's
values in memory.
"""

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import BIGINT, BINARY, BOOLEAN, INT, STRING, VOID, SqlType, array
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions import countcolumns
from tablestore.sql.duckdb.functions.argumenttypes import written_integer
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.countcolumns import (
    CERTAIN,
    EMPTY,
    FAMILY,
    HLL_8,
    LG_LIST,
    LG_SIZES,
    LIST,
    LISTED,
    PLACE,
    SET,
    table_of,
)
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall
from tablestore.sql.duckdb.functions.sketchcolumns import by_blocks, flat, lists_of, nulls_aside, spread
from tablestore.sql.duckdb.functions.sketchhashes import AT_ONCE, hashes_of_column, hashes_of_words

_LG_SIZE = 12
_U64 = npt.NDArray[np.uint64]
_I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Sketch:
    lg_size: int
    coupons: tuple[int, ...] = ()


class _BrokenSketchError(Exception):
    """Signals bytes that are no sketch."""


def _words_hashed(values: pa.Array) -> pa.Array:
    return pa.array(_coupons_of(np.asarray(pc.fill_null(values, 0))), pa.int64(), mask=np.asarray(pc.is_null(values)))


def _bytes_hashed(values: pa.Array) -> pa.Array:
    """The coupons of bytes, and of texts in UTF-8; 0, which is none, for NULL and empty ones."""
    low, high, has_bytes = hashes_of_column(values)
    coupons = _coupons(low, high)
    coupons *= has_bytes
    return pa.array(coupons)


def _coupons_of(numbers: _I64) -> _I64:
    """The coupons of whole numbers: so many at once that they stay near the processor."""
    parts = [numbers[first : first + AT_ONCE].view(np.uint64) for first in range(0, len(numbers), AT_ONCE)]
    return np.concatenate([np.zeros(0, np.int64), *(_coupons(*hashes_of_words(part)) for part in parts)])


def _coupons(low: _U64, high: _U64) -> _I64:
    """Hashes as a sketch keeps them: a place, and how many zeros their second half begins with, and one."""
    upper = (high >> np.uint64(32)).view(np.int64)
    # A number of 32 bits is a double without loss, whose exponent is how many bits it has, less one: as the bits of a double it
    # stands 1023 too high.
    coupons: _I64 = upper.astype(np.float64).view(np.int64)
    coupons >>= 52
    np.subtract(1023 + 32, coupons, out=coupons)
    for place in [] if upper.all() else np.flatnonzero(upper == 0).tolist():
        coupons[place] = min(64 - int(high[place]).bit_length(), 62) + 1
    coupons <<= 26
    coupons |= (low & np.uint64(PLACE)).view(np.int64)
    return coupons


def _joined(lg_size: int, coupons: Iterable[int]) -> _Sketch:
    known = tuple(dict.fromkeys(coupons))
    most = LISTED - 1 if lg_size < 8 else 3 << lg_size - 5
    if len(known) > min(most, CERTAIN):
        raise refusal(f"an HLL sketch of more than {min(most, CERTAIN)} values, which estimates,")
    return _Sketch(lg_size, known)


def _written(sketch: _Sketch) -> bytes:
    count = len(sketch.coupons)
    if count < LISTED:
        flags = 0 if count else EMPTY
        head = bytes([2, 1, FAMILY, sketch.lg_size, LG_LIST, flags, count, HLL_8 | LIST])
        return head + struct.pack(f"<{LISTED}I", *sketch.coupons, *[0] * (LISTED - count))
    table = table_of(sketch.coupons)
    lg_table = len(table).bit_length() - 1
    head = bytes([3, 1, FAMILY, sketch.lg_size, lg_table, 0, 0, HLL_8 | SET])
    return head + struct.pack(f"<I{len(table)}I", count, *table)


def _read(data: bytes) -> _Sketch:
    if len(data) < 8 or data[1] != 1 or data[2] != FAMILY or data[3] not in LG_SIZES or data[7] & 3 > 2:
        raise _BrokenSketchError
    if data[7] & 3 > SET:
        raise refusal("functions of an HLL sketch of so many values that it estimates")
    at = 8 if data[7] & 3 == LIST else 12
    if (len(data) - at) % 4:
        raise _BrokenSketchError
    return _Sketch(data[3], tuple(filter(None, struct.unpack_from(f"<{(len(data) - at) // 4}I", data, at))))


def _made(coupons: list[int | None] | None, lg_size: int) -> bytes:
    return _written(_joined(lg_size, filter(None, coupons or ())))


def _united(name: str) -> Callable[[list[bytes | None] | None, bool], bytes]:
    def unite(sketches: list[bytes | None] | None, takes_sizes: bool) -> bytes:
        read = [_read(one) for one in sketches or () if one is not None]
        sizes = {sketch.lg_size for sketch in read}
        if len(sizes) > 1 and not takes_sizes:
            raise InvalidInputError(
                f"the function `{name}`: expected sketches of one size, found the sizes {', '.join(map(str, sorted(sizes)))}; "
                "to unite them pass true as argument 2",
                kind="query",
            )
        return _written(_joined(min(sizes, default=_LG_SIZE), (one for sketch in read for one in sketch.coupons)))

    return unite


def _estimated(data: bytes) -> int:
    sketch = _read(data)
    return len(_joined(sketch.lg_size, sketch.coupons).coupons)


def _made_at_once(lists: pa.Array, sizes: pa.Array) -> pa.Array | None:
    rows, listed = flat(lists)
    coupons = np.asarray(listed)
    if not coupons.all():
        is_some = coupons != 0
        rows, coupons = rows[is_some], coupons[is_some]
    return _written_at_once(sizes, rows, coupons)


def _written_at_once(sizes: pa.Array, rows: _I64, coupons: _I64) -> pa.Array | None:
    return countcolumns.write(countcolumns.of_coupons(np.asarray(sizes).astype(np.int64), rows, coupons))


def _united_at_once(lists: pa.Array, takes_sizes: pa.Array) -> pa.Array | None:
    groups, data = flat(lists)
    column = countcolumns.read(data)
    if column is None:
        return None
    least, greatest = (np.full(len(lists), size) for size in (LG_SIZES[-1], 0))
    np.minimum.at(least, groups, column.lg_sizes)
    np.maximum.at(greatest, groups, column.lg_sizes)
    if (least < greatest).any() and not takes_sizes[0].as_py():
        return None
    lg_sizes = np.where(greatest > 0, least, _LG_SIZE)
    return countcolumns.write(countcolumns.of_coupons(lg_sizes, groups[column.rows], column.coupons))


def _estimated_at_once(data: pa.Array) -> pa.Array | None:
    column = countcolumns.read(data)
    return pa.array(column.counts) if column is not None and column.are_certain else None


def _function(
    name: str,
    arguments: tuple[SqlType, ...],
    result: SqlType,
    call: Callable[..., Any],
    at_once: "Callable[..., pa.Array | None]",
    *,
    takes_null: bool = False,
) -> ArrowFunction:
    """A function. ``at_once``: computes it for columns without NULLs, or says with None that it does not."""
    arrow = pa.int64() if result == BIGINT else pa.binary()

    def over_columns(*columns: pa.Array) -> pa.Array:
        count = len(columns[0])
        places, some = (np.arange(count), list(columns)) if takes_null else nulls_aside(columns)
        values = at_once(*some) if len(places) else None
        if values is not None:
            return spread(values, places, count)
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            return pa.array([None if not takes_null and None in row else call(*row) for row in rows], arrow)
        except _BrokenSketchError as error:
            raise InvalidInputError(
                f"the function `{name}`: expected the bytes of an HLL sketch, as hll_sketch_agg makes them", kind="query"
            ) from error

    return ArrowFunction(name=name, arguments=arguments, result=result, call=over_columns)


HASHES = {
    kind.name: ArrowFunction(name=f"hll_hash_{kind.name}", arguments=(kind,), result=BIGINT, call=call)
    for kind, call in ((BIGINT, _words_hashed), (STRING, _bytes_hashed), (BINARY, _bytes_hashed))
}
_MADE = _function("hll_sketch_agg", (array(BIGINT), INT), BINARY, _made, _made_at_once, takes_null=True)
_AGG = replace(_MADE, call=by_blocks(_MADE.call))


def _numbers_made(lists: pa.Array, sizes: pa.Array) -> pa.Array:
    rows, numbers = flat(lists)
    coupons = _coupons_of(np.asarray(numbers))
    written = _written_at_once(sizes, rows, coupons)
    return _MADE.call(lists_of(coupons, rows, len(lists)), sizes) if written is None else written


# Whole numbers are hashed by groups, which are larger than batches of rows.
_AGG_OF_NUMBERS = ArrowFunction(
    name="hll_sketch_agg_bigint", arguments=(array(BIGINT), INT), result=BINARY, call=by_blocks(_numbers_made)
)
_UNION_AGG = _function(
    "hll_union_agg", (array(BINARY), BOOLEAN), BINARY, _united("hll_union_agg"), _united_at_once, takes_null=True
)
_UNION = _function("hll_union", (array(BINARY), BOOLEAN), BINARY, _united("hll_union"), _united_at_once)
_ESTIMATE = _function("hll_sketch_estimate", (BINARY,), BIGINT, _estimated, _estimated_at_once)


def _sketch(call: RuleCall, place: int) -> exp.Expr:
    if call.type(place) not in (BINARY, VOID):
        raise call.mismatch(place, "the bytes of a sketch")
    return call.value(place, BINARY)


def _hashed(call: RuleCall) -> exp.Expr:
    kind = BIGINT if call.type(0) == INT else call.type(0)
    if kind.name not in HASHES:
        raise call.mismatch(0, "an INT, a BIGINT, a text or bytes")
    size = written_integer(call, 1, "a size") if len(call.values) > 1 else _LG_SIZE
    if size not in LG_SIZES:
        raise call.mismatch(1, f"a number from {LG_SIZES[0]} to {LG_SIZES[-1]}")
    is_number = kind == BIGINT
    value = call.value(0, kind) if is_number else HASHES[kind.name].of(call.value(0, kind))
    listed = exp.Distinct(expressions=[value]) if call.is_distinct else value
    function = _AGG_OF_NUMBERS if is_number else _AGG
    return function.of(call.around(exp.Anonymous(this="LIST", expressions=[listed])), exp.Literal.number(size))


def _takes_sizes(call: RuleCall, place: int) -> exp.Expr:
    if len(call.values) <= place:
        return exp.false()
    if not isinstance(call.values[place], exp.Boolean):
        raise call.refusal("with an argument that is computed")
    return call.value(place)


def _union_of_rows(call: RuleCall) -> exp.Expr:
    if call.is_distinct:
        raise call.refusal("with DISTINCT")
    return _UNION_AGG.of(call.around(exp.Anonymous(this="LIST", expressions=[_sketch(call, 0)])), _takes_sizes(call, 1))


def _union_of_two(call: RuleCall) -> exp.Expr:
    pair = call.text("CASE WHEN $0 IS NOT NULL AND $1 IS NOT NULL THEN [$0, $1] END", _sketch(call, 0), _sketch(call, 1))
    return _UNION.of(pair, _takes_sizes(call, 2))


RULES = (
    FunctionRule(name="hll_sketch_agg", bounds=(1, 2), result=always(BINARY), write=_hashed, is_aggregate=True),
    FunctionRule(name="hll_union_agg", bounds=(1, 2), result=always(BINARY), write=_union_of_rows, is_aggregate=True),
    FunctionRule(name="hll_union", bounds=(2, 3), result=always(BINARY), write=_union_of_two),
    FunctionRule(
        name="hll_sketch_estimate", bounds=(1, 1), result=always(BIGINT), write=lambda call: _ESTIMATE.of(_sketch(call, 0))
    ),
)
ARROW = (*HASHES.values(), _AGG, _AGG_OF_NUMBERS, _UNION_AGG, _UNION, _ESTIMATE)
