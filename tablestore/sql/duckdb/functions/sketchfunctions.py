"""Writes functions of theta and tuple sketches with Spark's meaning (:mod:`thetasketches`).

An aggregate is DuckDB's list of the hashes of a group's values, made a sketch by an Arrow function: it holds the hashes of one
group's values in memory, and for a tuple sketch their numbers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import ResultOf, always
from tablestore.sql.binding.sqltypes import BIGINT, BINARY, DOUBLE, FLOAT, INT, STRING, VOID, SqlType, array, struct
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions import thetacolumns, thetasketches, tuplecolumns
from tablestore.sql.duckdb.functions.argumenttypes import written_integer, written_text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall
from tablestore.sql.duckdb.functions.sketchcolumns import by_blocks, flat, nulls_aside, spread
from tablestore.sql.duckdb.functions.sketchhashes import hashes_of_column, hashes_of_words
from tablestore.sql.duckdb.functions.thetacolumns import ThetaColumn
from tablestore.sql.duckdb.functions.thetasketches import MODES, BrokenSketchError, Sketch
from tablestore.sql.duckdb.functions.tuplecolumns import TupleColumn

_I64: TypeAlias = "npt.NDArray[np.int64]"
_LG_SIZE = 12
_LG_SIZES = range(4, 27)
_ORDER_NOTE = "the entries in the bytes of a sketch may come in another order than Spark's; it says the same"


def _words_hashed(values: pa.Array) -> pa.Array:
    return pa.array(_words_as_hashes(values), pa.int64(), mask=np.asarray(pc.is_null(values)))


def _words_as_hashes(values: pa.Array) -> _I64:
    """Hashes of whole numbers, or of doubles with one 0.0 and one NaN."""
    if pa.types.is_floating(values.type):
        numbers = np.asarray(pc.fill_null(values, 0.0)) + 0.0
        numbers = np.where(np.isnan(numbers), np.nan, numbers)
        words = numbers.view(np.uint64)
    else:
        words = np.asarray(pc.fill_null(values, 0)).astype(np.int64).view(np.uint64)
    hashes, _ = hashes_of_words(words)
    hashes >>= np.uint64(1)
    return hashes.view(np.int64)


def _bytes_hashed(values: pa.Array) -> pa.Array:
    """Hashes of bytes, and of texts in UTF-8; 0, which is none, for NULL and empty ones."""
    low, _, has_bytes = hashes_of_column(values)
    low >>= np.uint64(1)
    low *= has_bytes
    return pa.array(low.view(np.int64))


_HASHES = {
    kind: ArrowFunction(name=f"sketch_hash_{kind.name}", arguments=(kind,), result=BIGINT, call=call)
    for kind, call in ((BIGINT, _words_hashed), (DOUBLE, _words_hashed), (STRING, _bytes_hashed), (BINARY, _bytes_hashed))
}


def _over_rows(name: str, call: Callable[..., Any], result: pa.DataType, *, takes_null: bool = False) -> Callable[..., pa.Array]:
    """A function over columns by one over values; NULL where a value is, unless it takes them."""

    def over_columns(*columns: pa.Array) -> pa.Array:
        values = []
        # A sketch is read from its bytes: there is no other way than one value at a time.
        for row in zip(*(column.to_pylist() for column in columns), strict=True):
            try:
                values.append(None if not takes_null and None in row else call(*row))
            except BrokenSketchError as error:
                raise InvalidInputError(
                    f"the function `{name}`: expected the bytes of a sketch of its kind, as its aggregates make them", kind="query"
                ) from error
        return pa.array(values, result)

    return over_columns


def _function(
    name: str,
    arguments: tuple[SqlType, ...],
    result: SqlType,
    call: Callable[..., Any],
    *,
    takes_null: bool = False,
    at_once: "Callable[..., pa.Array | None] | None" = None,
) -> ArrowFunction:
    """A function. ``at_once``: computes it for columns without NULLs, or says with None that it does not."""
    arrow = {BINARY: pa.binary(), BIGINT: pa.int64(), DOUBLE: pa.float64()}[result]
    one_by_one = _over_rows(name, call, arrow, takes_null=takes_null)

    def over_columns(*columns: pa.Array) -> pa.Array:
        count = len(columns[0])
        rows, some = (np.arange(count), list(columns)) if takes_null else nulls_aside(columns)
        values = at_once(*some) if at_once is not None and len(rows) else None
        return one_by_one(*columns) if values is None else spread(values, rows, count)

    return ArrowFunction(name=name, arguments=arguments, result=result, call=over_columns)


def _theta_union(sketches: list[bytes | None] | None, lg_size: int) -> bytes:
    return thetasketches.write_theta(thetasketches.united(_thetas(sketches), lg_size))


def _theta_intersection(sketches: list[bytes | None] | None) -> bytes:
    return thetasketches.write_theta(thetasketches.common(_thetas(sketches)))


def _theta_difference(left: bytes, right: bytes) -> bytes:
    read = thetasketches.read_theta
    return thetasketches.write_theta(thetasketches.without(read(left), read(right)))


def _thetas(sketches: list[bytes | None] | None) -> Iterator[Sketch]:
    return (thetasketches.read_theta(one) for one in sketches or () if one is not None)


def _over_thetas(function: ArrowFunction, compute: "Callable[[ThetaColumn, ThetaColumn], ThetaColumn]") -> ArrowFunction:
    """A function of two columns of sketches, which are read at once; others are read one at a time."""

    def over_columns(left: pa.Array, right: pa.Array) -> pa.Array:
        rows, columns = nulls_aside((left, right))
        sketches = [thetacolumns.read(column) for column in columns]
        if sketches[0] is None or sketches[1] is None:
            return function.call(left, right)
        return spread(thetacolumns.write(compute(sketches[0], sketches[1])), rows, len(left))

    return replace(function, call=over_columns)


def _hashes_as_thetas(lists: pa.Array, sizes: pa.Array) -> pa.Array:
    rows, keys = flat(lists)
    return _thetas_written(len(lists), rows, np.asarray(keys), sizes)


def _thetas_written(count: int, rows: _I64, hashes: _I64, sizes: pa.Array) -> pa.Array:
    is_some = hashes != 0
    if not is_some.all():
        rows, hashes = rows[is_some], hashes[is_some]
    column = thetacolumns.of_keys(count, rows, hashes)
    return thetacolumns.write(thetacolumns.cut(column, sizes[0].as_py()) if len(sizes) else column)


def _numbers_as_thetas(lists: pa.Array, sizes: pa.Array) -> pa.Array:
    rows, numbers = flat(lists)
    return _thetas_written(len(lists), rows, _words_as_hashes(numbers), sizes)


def _thetas_united(lists: pa.Array, sizes: pa.Array) -> pa.Array:
    rows, values = flat(lists)
    column = thetacolumns.read(values)
    if column is None:
        return _over_rows("theta_union_agg", _theta_union, pa.binary(), takes_null=True)(lists, sizes)
    return thetacolumns.write(thetacolumns.united(column, rows, len(lists), sizes[0].as_py()))


def _common_thetas(lists: pa.Array) -> pa.Array | None:
    groups, values = flat(lists)
    sketches = thetacolumns.read(values)
    column = None if sketches is None else thetacolumns.common_of_groups(sketches, groups, len(lists))
    return None if column is None else thetacolumns.write(column)


def _theta_estimates(data: pa.Array) -> pa.Array:
    rows, columns = nulls_aside((data,))
    sketches = thetacolumns.read(columns[0])
    if sketches is None:
        call = _over_rows("theta_sketch_estimate", lambda one: _rounded(thetasketches.read_theta(one).estimate), pa.int64())
        return call(data)
    return spread(pa.array(np.floor(thetacolumns.estimates(sketches) + 0.5).astype(np.int64)), rows, len(data))


def _rounded(number: float) -> int:
    return math.floor(number + 0.5)


_THETA = ArrowFunction(name="theta_sketch_agg", arguments=(array(BIGINT), INT), result=BINARY, call=by_blocks(_hashes_as_thetas))
# Numbers are hashed by groups, which are larger than batches of rows.
_THETA_OF_NUMBERS = {
    kind: ArrowFunction(
        name=f"theta_sketch_agg_{kind.name}", arguments=(array(kind), INT), result=BINARY, call=by_blocks(_numbers_as_thetas)
    )
    for kind in (BIGINT, DOUBLE)
}
_THETA_UNION = ArrowFunction(name="theta_union_agg", arguments=(array(BINARY), INT), result=BINARY, call=_thetas_united)
_THETA_INTERSECTION = _function(
    "theta_intersection_agg", (array(BINARY),), BINARY, _theta_intersection, takes_null=True, at_once=_common_thetas
)
_THETA_COMMON = _over_thetas(
    _function("theta_intersection", (BINARY, BINARY), BINARY, lambda *both: _theta_intersection([*both])), thetacolumns.common
)
_THETA_DIFFERENCE = _over_thetas(_function("theta_difference", (BINARY, BINARY), BINARY, _theta_difference), thetacolumns.without)
_THETA_ESTIMATE = ArrowFunction(name="theta_sketch_estimate", arguments=(BINARY,), result=BIGINT, call=_theta_estimates)


def _lg_size(call: RuleCall, place: int) -> exp.Expr:
    size = written_integer(call, place, "a size") if len(call.values) > place else _LG_SIZE
    if size not in _LG_SIZES:
        raise call.mismatch(place, f"a number from {_LG_SIZES[0]} to {_LG_SIZES[-1]}")
    return exp.Literal.number(size)


def _mode(call: RuleCall, place: int) -> exp.Expr:
    mode = written_text(call, place, "a mode") if len(call.values) > place else "sum"
    if mode.lower() not in MODES:
        raise call.mismatch(place, f"one of {', '.join(MODES)}")
    return exp.Literal.number(MODES[mode.lower()])


def _hashed_type(call: RuleCall, place: int = 0) -> SqlType:
    """The type as which a value is hashed."""
    kind = call.type(place)
    wide = {INT: BIGINT, FLOAT: DOUBLE}.get(kind, kind)
    if kind.name == "array":
        raise call.refusal(f"of {kind}")
    if wide not in _HASHES:
        raise call.mismatch(place, "an INT, a BIGINT, a FLOAT, a DOUBLE, a text or bytes")
    return wide


def _hash(call: RuleCall, place: int = 0) -> exp.Expr:
    wide = _hashed_type(call, place)
    return _HASHES[wide].of(call.value(place, wide))


def _sketch(call: RuleCall, place: int) -> exp.Expr:
    if call.type(place) not in (BINARY, VOID):
        raise call.mismatch(place, "the bytes of a sketch")
    return call.value(place, BINARY)


def _listed(call: RuleCall, value: exp.Expr) -> exp.Expr:
    if call.is_distinct:
        raise call.refusal("with DISTINCT")
    return call.around(exp.Anonymous(this="LIST", expressions=[value]))


def _hashed_theta(call: RuleCall) -> exp.Expr:
    kind = _hashed_type(call)
    is_number = kind in _THETA_OF_NUMBERS
    value = call.value(0, kind) if is_number else _hash(call)
    listed = call.around(exp.Anonymous(this="LIST", expressions=[value]))
    return (_THETA_OF_NUMBERS[kind] if is_number else _THETA).of(listed, _lg_size(call, 1))


def _pair(call: RuleCall) -> exp.Expr:
    return call.text("CASE WHEN $0 IS NOT NULL AND $1 IS NOT NULL THEN [$0, $1] END", _sketch(call, 0), _sketch(call, 1))


def _unless_null(call: RuleCall, function: ArrowFunction, *rest: exp.Expr) -> exp.Expr:
    """A function of a list of two sketches; NULL if one of them is."""
    sketches = _pair(call)
    return call.text("CASE WHEN $0 IS NOT NULL THEN $1 END", sketches, function.of(sketches.copy(), *rest))


def _rule(
    name: str,
    bounds: tuple[int, int],
    result: ResultOf,
    write: Callable[[RuleCall], exp.Expr],
    *,
    is_aggregate: bool = False,
    note: str = "",
) -> FunctionRule:
    return FunctionRule(name=name, bounds=bounds, result=result, write=write, is_aggregate=is_aggregate, note=note)


_THETA_RULES = (
    _rule("theta_sketch_agg", (1, 2), always(BINARY), _hashed_theta, is_aggregate=True),
    _rule(
        "theta_union_agg",
        (1, 2),
        always(BINARY),
        lambda call: _THETA_UNION.of(_listed(call, _sketch(call, 0)), _lg_size(call, 1)),
        is_aggregate=True,
    ),
    _rule(
        "theta_intersection_agg",
        (1, 1),
        always(BINARY),
        lambda call: _THETA_INTERSECTION.of(_listed(call, _sketch(call, 0))),
        is_aggregate=True,
    ),
    _rule("theta_union", (2, 3), always(BINARY), lambda call: _unless_null(call, _THETA_UNION, _lg_size(call, 2))),
    _rule("theta_intersection", (2, 2), always(BINARY), lambda call: _THETA_COMMON.of(_sketch(call, 0), _sketch(call, 1))),
    _rule("theta_difference", (2, 2), always(BINARY), lambda call: _THETA_DIFFERENCE.of(_sketch(call, 0), _sketch(call, 1))),
    _rule("theta_sketch_estimate", (1, 1), always(BIGINT), lambda call: _THETA_ESTIMATE.of(_sketch(call, 0))),
)


def _first(column: pa.Array) -> int:
    """The value of a column that has one."""
    return int(column[0].as_py())


def _written_up_to(column: TupleColumn | None, sizes: pa.Array | None = None) -> pa.Array | None:
    """The bytes of sketches; None for none, and where one has more hashes than its size."""
    if column is None or (sizes is not None and (column.counts > 1 << _first(sizes)).any()):
        return None
    return tuplecolumns.write(column)


class _TupleFamily:
    """The functions of tuple sketches whose numbers have one type."""

    def __init__(self, name: str, kind: SqlType, total: SqlType) -> None:
        self.name, self.kind, self.total_kind = name, kind, total
        self.is_double = kind == DOUBLE
        self.row = struct(key=BIGINT, number=kind)
        binaries = array(BINARY)
        self.made = self._function(
            "sketch_agg", (array(self.row), INT, INT), BINARY, self._made, takes_null=True, at_once=self._made_at_once
        )
        self.union = self._function(
            "union_agg", (binaries, INT, INT), BINARY, self._union, takes_null=True, at_once=self._united_at_once
        )
        self.intersection = self._function(
            "intersection_agg", (binaries, INT), BINARY, self._intersection, takes_null=True, at_once=self._common_at_once
        )
        self.difference = self._function("difference", (BINARY, BINARY), BINARY, self._difference, at_once=self._differences)
        self.theta_union = self._function(
            "union_theta", (BINARY, BINARY, INT, INT), BINARY, self._theta_union, at_once=self._unions_with_thetas
        )
        self.theta_intersection = self._function(
            "intersection_theta", (BINARY, BINARY, INT), BINARY, self._theta_intersection, at_once=self._common_with_thetas
        )
        self.theta_difference = self._function(
            "difference_theta", (BINARY, BINARY), BINARY, self._theta_difference, at_once=self._without_thetas
        )
        self.estimate = self._function(
            "sketch_estimate", (BINARY,), DOUBLE, lambda data: self._read(data).estimate, at_once=self._estimates
        )
        self.theta = self._function("sketch_theta", (BINARY,), DOUBLE, lambda data: self._read(data).share, at_once=self._shares)
        self.summary = self._function("sketch_summary", (BINARY, INT), total, self._summary, at_once=self._summaries)

    @property
    def functions(self) -> tuple[ArrowFunction, ...]:
        return (
            self.made, self.union, self.intersection, self.difference, self.theta_union, self.theta_intersection,
            self.theta_difference, self.estimate, self.theta, self.summary,
        )  # fmt: skip

    def _function(
        self,
        what: str,
        arguments: tuple[SqlType, ...],
        result: SqlType,
        call: Callable[..., Any],
        *,
        takes_null: bool = False,
        at_once: "Callable[..., pa.Array | None] | None" = None,
    ) -> ArrowFunction:
        return _function(f"tuple_{what}_{self.name}", arguments, result, call, takes_null=takes_null, at_once=at_once)

    def _read_at_once(self, data: pa.Array) -> TupleColumn | None:
        return tuplecolumns.read(data, is_double=self.is_double)

    def _made_at_once(self, lists: pa.Array, sizes: pa.Array, modes: pa.Array) -> pa.Array | None:
        rows, entries = flat(lists)
        keys, numbers = entries.field(0), entries.field(1)
        is_there = np.asarray(keys.is_valid()) & np.asarray(numbers.is_valid())
        hashes = np.asarray(keys.fill_null(0))
        is_there &= hashes != 0
        values = np.asarray(numbers.fill_null(0))[is_there]
        column = tuplecolumns.of_rows(len(lists), rows[is_there], hashes[is_there], values, _first(modes))
        return _written_up_to(column, sizes)

    def _united_at_once(self, lists: pa.Array, sizes: pa.Array, modes: pa.Array) -> pa.Array | None:
        groups, data = flat(lists)
        column = self._read_at_once(data)
        return None if column is None else _written_up_to(tuplecolumns.united(column, groups, len(lists), _first(modes)), sizes)

    def _common_at_once(self, lists: pa.Array, modes: pa.Array) -> pa.Array | None:
        groups, data = flat(lists)
        column = self._read_at_once(data)
        return None if column is None else _written_up_to(tuplecolumns.common(column, groups, len(lists), _first(modes)))

    def _differences(self, left: pa.Array, right: pa.Array) -> pa.Array | None:
        column, other = self._read_at_once(left), self._read_at_once(right)
        return None if column is None or other is None else _written_up_to(tuplecolumns.without(column, other))

    def _beside_thetas(self, left: pa.Array, right: pa.Array, modes: pa.Array) -> "tuple[TupleColumn, _I64] | None":
        column, thetas = self._read_at_once(left), thetacolumns.read(right)
        other = None if thetas is None else tuplecolumns.of_thetas(thetas, _first(modes), is_double=self.is_double)
        return None if column is None or other is None else tuplecolumns.beside(column, other)

    def _unions_with_thetas(self, left: pa.Array, right: pa.Array, sizes: pa.Array, modes: pa.Array) -> pa.Array | None:
        both = self._beside_thetas(left, right, modes)
        return None if both is None else _written_up_to(tuplecolumns.united(*both, len(left), _first(modes)), sizes)

    def _common_with_thetas(self, left: pa.Array, right: pa.Array, modes: pa.Array) -> pa.Array | None:
        both = self._beside_thetas(left, right, modes)
        return None if both is None else _written_up_to(tuplecolumns.common(*both, len(left), _first(modes)))

    def _without_thetas(self, left: pa.Array, right: pa.Array) -> pa.Array | None:
        column, thetas = self._read_at_once(left), thetacolumns.read(right)
        if column is None or thetas is None or (thetas.thetas != thetasketches.WHOLE).any():
            return None
        return _written_up_to(tuplecolumns.without(column, thetas))

    def _estimates(self, data: pa.Array) -> pa.Array | None:
        column = self._read_at_once(data)
        return None if column is None else pa.array(column.counts.astype(np.float64))

    def _shares(self, data: pa.Array) -> pa.Array | None:
        return None if self._read_at_once(data) is None else pa.array(np.ones(len(data)))

    def _summaries(self, data: pa.Array, modes: pa.Array) -> pa.Array | None:
        column = self._read_at_once(data)
        if column is None:
            return None
        totals = tuplecolumns.totals(column, _first(modes))
        return None if totals is None else pa.array(totals)

    def _read(self, data: bytes) -> Sketch:
        return thetasketches.read_tuple(data, is_double=self.is_double)

    def _written(self, sketch: Sketch) -> bytes:
        return thetasketches.write_tuple(sketch, is_double=self.is_double)

    def _made(self, rows: list[dict[str, Any]] | None, lg_size: int, mode: int) -> bytes:
        pairs = [(row["key"], row["number"]) for row in rows or () if row["key"] and row["number"] is not None]
        if self.is_double and any(math.isnan(number) for _, number in pairs):
            raise refusal(f"the function tuple_sketch_agg_{self.name} of NaN")
        return self._written(thetasketches.of_rows(pairs, mode, lg_size))

    def _sketches(self, sketches: list[bytes | None] | None) -> Iterator[Sketch]:
        return (self._read(one) for one in sketches or () if one is not None)

    def _union(self, sketches: list[bytes | None] | None, lg_size: int, mode: int) -> bytes:
        return self._written(thetasketches.united(self._sketches(sketches), lg_size, mode))

    def _intersection(self, sketches: list[bytes | None] | None, mode: int) -> bytes:
        return self._written(thetasketches.common(self._sketches(sketches), mode))

    def _difference(self, left: bytes, right: bytes) -> bytes:
        return self._written(thetasketches.without(self._read(left), self._read(right)))

    def _theta_as_tuples(self, data: bytes, mode: int) -> Sketch:
        return thetasketches.as_tuples(thetasketches.read_theta(data), mode, is_double=self.is_double)

    def _theta_union(self, left: bytes, right: bytes, lg_size: int, mode: int) -> bytes:
        both = self._read(left), self._theta_as_tuples(right, mode)
        return self._written(thetasketches.united(both, lg_size, mode))

    def _theta_intersection(self, left: bytes, right: bytes, mode: int) -> bytes:
        return self._written(thetasketches.common((self._read(left), self._theta_as_tuples(right, mode)), mode))

    def _theta_difference(self, left: bytes, right: bytes) -> bytes:
        return self._written(thetasketches.without(self._read(left), thetasketches.read_theta(right)))

    def _summary(self, data: bytes, mode: int) -> "int | float":
        numbers = [summary[0] for summary in self._read(data).entries.values() if summary is not None]
        if mode == thetasketches.ALWAYS_ONE or not numbers:
            return self._number(len(numbers))
        if mode == thetasketches.SUM:
            if self.is_double:
                thetasketches.require_one_order(numbers)
            return self._number(sum(numbers))
        return self._number((min if mode == thetasketches.MIN else max)(numbers))

    def _number(self, number: "int | float") -> "int | float":
        return float(number) if self.is_double else number

    def _row(self, call: RuleCall) -> exp.Expr:
        kind = call.type(1)
        if kind not in (self.kind, VOID) and not (self.is_double and kind.is_number):
            raise call.refusal(f"with numbers of the type {kind}")
        return call.text("{'key': $0, 'number': $1}", _hash(call), call.value(1, self.kind))

    def rules(self) -> Iterator[FunctionRule]:
        """The rules of the functions."""
        binary = always(BINARY)
        name = self.name
        yield _rule(
            f"tuple_sketch_agg_{name}",
            (2, 4),
            binary,
            lambda call: self.made.of(_listed(call, self._row(call)), _lg_size(call, 2), _mode(call, 3)),
            is_aggregate=True,
            note=_ORDER_NOTE,
        )
        yield _rule(
            f"tuple_union_agg_{name}",
            (1, 3),
            binary,
            lambda call: self.union.of(_listed(call, _sketch(call, 0)), _lg_size(call, 1), _mode(call, 2)),
            is_aggregate=True,
            note=_ORDER_NOTE,
        )
        yield _rule(
            f"tuple_intersection_agg_{name}",
            (1, 2),
            binary,
            lambda call: self.intersection.of(_listed(call, _sketch(call, 0)), _mode(call, 1)),
            is_aggregate=True,
            note=_ORDER_NOTE,
        )
        pairs: tuple[tuple[str, int, Callable[[RuleCall], exp.Expr]], ...] = (
            ("union", 4, lambda call: _unless_null(call, self.union, _lg_size(call, 2), _mode(call, 3))),
            ("intersection", 3, lambda call: _unless_null(call, self.intersection, _mode(call, 2))),
            ("difference", 2, lambda call: self.difference.of(_sketch(call, 0), _sketch(call, 1))),
            (
                "union_theta",
                4,
                lambda call: self.theta_union.of(_sketch(call, 0), _sketch(call, 1), _lg_size(call, 2), _mode(call, 3)),
            ),
            (
                "intersection_theta",
                3,
                lambda call: self.theta_intersection.of(_sketch(call, 0), _sketch(call, 1), _mode(call, 2)),
            ),
            ("difference_theta", 2, lambda call: self.theta_difference.of(_sketch(call, 0), _sketch(call, 1))),
        )
        for what, most, write in pairs:
            yield _rule(f"tuple_{what}_{name}", (2, most), binary, write, note=_ORDER_NOTE)
        yield _rule(f"tuple_sketch_estimate_{name}", (1, 1), always(DOUBLE), lambda call: self.estimate.of(_sketch(call, 0)))
        yield _rule(f"tuple_sketch_theta_{name}", (1, 1), always(DOUBLE), lambda call: self.theta.of(_sketch(call, 0)))
        yield _rule(
            f"tuple_sketch_summary_{name}",
            (1, 2),
            always(self.total_kind),
            lambda call: self.summary.of(_sketch(call, 0), _mode(call, 1)),
        )


_FAMILIES = (_TupleFamily("double", DOUBLE, DOUBLE), _TupleFamily("integer", INT, BIGINT))
RULES = (*_THETA_RULES, *(rule for family in _FAMILIES for rule in family.rules()))
ARROW = (
    *_HASHES.values(), _THETA, *_THETA_OF_NUMBERS.values(), _THETA_UNION, _THETA_INTERSECTION, _THETA_COMMON, _THETA_DIFFERENCE,
    _THETA_ESTIMATE,
    *(function for family in _FAMILIES for function in family.functions),
)  # fmt: skip
