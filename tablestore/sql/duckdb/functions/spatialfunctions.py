"""Writes functions of points in space with Spark's meaning: GEOMETRY and GEOGRAPHY are rows of an SRID and WKB bytes here.

Points of two coordinates are read; other shapes are refused. A point cannot be a column of a result: its type has no Arrow words.
"""

import math
import struct as bytestruct
import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import always, as_argument
from tablestore.sql.binding.sqltypes import BINARY, INT, VOID, SqlType, struct
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions.argumenttypes import written_integer, written_text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, as_type, from_text

GEOMETRY, GEOGRAPHY = struct(geometry_srid=INT, wkb=BINARY), struct(geography_srid=INT, wkb=BINARY)
_POINT = 1
_POINT_BYTES = 21
_POINTS = {order: np.dtype([("order", np.uint8), ("kind", f"{order}u4"), ("place", f"{order}f8", (2,))]) for order in ("<", ">")}
_SWAPPED = np.array([0, *range(4, 0, -1), *range(12, 4, -1), *range(20, 12, -1)])
_GREATEST = sys.float_info.max
_EARTH, _NO_SRID = 4326, 0
# Under this key the meta of a row has its parts.
_PARTS = "parts"
_SRIDS = (_NO_SRID, _EARTH, 3857)


def _point(data: bytes) -> tuple[float, float]:
    order = "<" if data[:1] == b"\x01" else ">"
    if len(data) < 5 or data[0] > 1:
        raise InvalidInputError("expected the WKB bytes of a shape, found others", kind="query")
    (kind,) = bytestruct.unpack_from(f"{order}I", data, 1)
    if kind != _POINT:
        raise refusal("a function of shapes other than points of two coordinates")
    if len(data) != _POINT_BYTES:
        raise InvalidInputError("expected the WKB bytes of a point, found more or fewer", kind="query")
    longitude, latitude = bytestruct.unpack_from(f"{order}dd", data, 5)
    if not (math.isfinite(longitude) and math.isfinite(latitude)):
        raise refusal("a function of points without coordinates")
    return longitude, latitude


def _written(order: str) -> Callable[[bytes], bytes]:
    def write(data: bytes) -> bytes:
        return bytestruct.pack(f"{order}BIdd", order == "<", _POINT, *_point(data))

    return write


def _on_earth(order: str) -> Callable[[bytes], bytes]:
    return lambda data: _written(order)(_checked(data))


def _checked(data: bytes) -> bytes:
    longitude, latitude = _point(data)
    if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
        raise InvalidInputError(
            f"expected a longitude from -180 to 180 and a latitude from -90 to 90, found {longitude}, {latitude}", kind="query"
        )
    return data


class _Bytes:
    """A function of bytes: of points a column at a time, of others one by one, which says what is wrong with them."""

    def __init__(self, name: str, call: Callable[[bytes], bytes], order: str, *, is_on_earth: bool = False) -> None:
        self.of_one = call

        def over_column(column: pa.Array) -> pa.Array:
            written = _points_written(column, order, is_on_earth=is_on_earth)
            if written is not None:
                return written
            return pa.array([None if one is None else call(one) for one in column.to_pylist()], pa.binary())

        self.function = ArrowFunction(name=name, arguments=(BINARY,), result=BINARY, call=over_column)


def _points_written(column: pa.Array, order: str, *, is_on_earth: bool) -> pa.Array | None:
    """Points in an order of bytes; None if a row is no point that the functions take."""
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(bounds)
    are_points = lengths == _POINT_BYTES
    # NULLs have no bytes.
    if data is None or not (are_points | (lengths == 0)).all() or np.count_nonzero(are_points) != len(column) - column.null_count:
        return None
    octets = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]].reshape(-1, _POINT_BYTES)
    points = octets.view(_POINTS["<"])[:, 0]
    is_little = points["order"] == 1
    if not is_little.all():
        if is_little.any() or points["order"].any():
            return None
        points = octets.view(_POINTS[">"])[:, 0]
    places = np.abs(points["place"])
    ends_of_places = np.array((180.0, 90.0) if is_on_earth else (_GREATEST, _GREATEST))
    if (points["kind"] != _POINT).any() or not (places <= ends_of_places).all():
        return None
    if not len(points) or bool(is_little[0]) == (order == "<"):
        return column
    swapped = np.take(octets, _SWAPPED, axis=1)
    swapped[:, 0] = order == "<"
    buffers = [column.is_valid().buffers()[1], pa.py_buffer(bounds - bounds[0]), pa.py_buffer(swapped)]
    return pa.Array.from_buffers(pa.binary(), len(column), buffers)


_LITTLE = _Bytes("st_little_endian", _written("<"), "<")
_BIG = _Bytes("st_big_endian", _written(">"), ">")
_EARTHLY = _Bytes("st_on_earth", _on_earth("<"), "<", is_on_earth=True)
_EARTHLY_BIG = _Bytes("st_on_earth_big_endian", _on_earth(">"), ">", is_on_earth=True)
# What gives the same points in the other order.
_TURNED = {one.function.engine_name: other for one, other in ((_LITTLE, _BIG), (_EARTHLY, _EARTHLY_BIG))}


def _is_column(call: RuleCall) -> bool:
    return isinstance(call.node.parent, (exp.Select, exp.Alias))


def _read(bytes_: _Bytes, kind: SqlType, srid: int) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        if call.type(0) not in (BINARY, VOID):
            raise call.mismatch(0, "bytes")
        if _is_column(call):
            raise call.refusal("as a column")
        chosen = written_integer(call, 1, "an SRID") if len(call.values) > 1 else srid
        return _shaped(call, kind, chosen, bytes_.function.of(call.value(0, BINARY)))

    return write


def _shaped(call: RuleCall, kind: SqlType, srid: int, wkb: exp.Expr) -> exp.Expr:
    if srid not in _SRIDS:
        raise call.refusal(f"with the SRID {srid}")
    row = from_text(f"CASE WHEN $0 IS NOT NULL THEN {{'{kind.fields[0]}': CAST({srid} AS INT), 'wkb': $0}} END", wkb)
    row.meta[_PARTS] = {kind.fields[0]: as_type(exp.Literal.number(srid), INT), "wkb": wkb.copy()}
    return row


def _shape(call: RuleCall) -> SqlType:
    kind = call.type(0)
    if kind not in (GEOMETRY, GEOGRAPHY):
        raise call.mismatch(0, "a GEOMETRY or a GEOGRAPHY")
    return kind


def _part(call: RuleCall, name: str) -> exp.Expr:
    value = call.value(0)
    row = value.this if isinstance(value, exp.Cast) else value
    parts: dict[str, exp.Expr] | None = row.meta.get(_PARTS)
    if parts is None:
        return exp.Anonymous(this="STRUCT_EXTRACT", expressions=[value, exp.Literal.string(name)])
    # The row is not made, of which one part is read.
    part = parts[name]
    return part.copy() if name == "wkb" else from_text("CASE WHEN $0 IS NOT NULL THEN $1 END", parts["wkb"], part)


def _srid(call: RuleCall) -> exp.Expr:
    return call.value(0, INT) if call.type(0) == VOID else _part(call, _shape(call).fields[0])


def _with_srid(call: RuleCall) -> exp.Expr:
    kind = _shape(call)
    if _is_column(call):
        raise call.refusal("as a column")
    srid = written_integer(call, 1, "an SRID")
    if kind == GEOGRAPHY and srid != _EARTH:
        raise call.mismatch(1, f"{_EARTH} for a GEOGRAPHY")
    return _shaped(call, kind, srid, _part(call, "wkb"))


def _binary(call: RuleCall) -> exp.Expr:
    if call.type(0) == VOID:
        return call.value(0, BINARY)
    _shape(call)
    order = written_text(call, 1, "an order of bytes") if len(call.values) > 1 else "NDR"
    if order.upper() not in ("NDR", "XDR"):
        raise call.mismatch(1, "NDR or XDR")
    wkb = _part(call, "wkb")
    if order.upper() == "NDR":
        return wkb
    turned = _TURNED.get(wkb.name) if isinstance(wkb, exp.Anonymous) else None
    return _BIG.function.of(wkb) if turned is None else turned.function.of(*wkb.expressions)


RULES = (
    FunctionRule(name="st_geomfromwkb", bounds=(1, 2), result=always(GEOMETRY), write=_read(_LITTLE, GEOMETRY, _NO_SRID)),
    FunctionRule(name="st_geogfromwkb", bounds=(1, 1), result=always(GEOGRAPHY), write=_read(_EARTHLY, GEOGRAPHY, _EARTH)),
    FunctionRule(name="st_srid", bounds=(1, 1), result=always(INT), write=_srid),
    FunctionRule(name="st_setsrid", bounds=(2, 2), result=as_argument(), write=_with_srid),
    FunctionRule(name="st_asbinary", bounds=(1, 2), result=always(BINARY), write=_binary),
)
ARROW = tuple(one.function for one in (_LITTLE, _BIG, _EARTHLY, _EARTHLY_BIG))
