"""Points that are read a column at a time are those that are read one by one."""

import math
import struct

import pyarrow as pa
import pytest

from tablestore.errors import TablestoreError
from tablestore.sql.duckdb.functions.functiontable import ARROW_FUNCTIONS

NAMES = ("st_little_endian", "st_big_endian", "st_on_earth", "st_on_earth_big_endian")
PLACES = (0.0, -0.0, 90.0, -90.0, 5e-324)
FAR = (math.nextafter(90, 91), 180.0, math.nextafter(180, 181), 1e308, math.inf, math.nan)


def _point(order: str, longitude: float, latitude: float, kind: int = 1) -> bytes:
    return struct.pack(f"{order}BIdd", order == "<", kind, longitude, latitude)


@pytest.mark.parametrize("name", NAMES)
def test_points_of_a_column_are_written_as_one_by_one(name: str) -> None:
    for orders in ("<", ">", "<>"):
        _check(name, orders)


def _check(name: str, orders: str) -> None:
    points = [None, *(_point(order, one, other) for order in orders for one in PLACES for other in PLACES), None]
    column = pa.array([b"not read", *points], pa.binary()).slice(1)
    written = ARROW_FUNCTIONS[name].call(column).to_pylist()
    order = ">" if name.endswith("big_endian") else "<"
    for point, one in zip(points, written, strict=True):
        assert one == (None if point is None else _point(order, *struct.unpack_from("<dd" if point[0] else ">dd", point, 5)))


@pytest.mark.parametrize("name", NAMES)
def test_a_point_that_is_none_among_others_is_found(name: str) -> None:
    others = [_point("<", 1.0, 2.0)] * 3
    for place in FAR:
        column = pa.array([*others, _point("<", 1.0, place)])
        if math.isfinite(place) and "earth" not in name:
            assert len(ARROW_FUNCTIONS[name].call(column)) == 4
        else:
            with pytest.raises(TablestoreError):
                ARROW_FUNCTIONS[name].call(column)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_that_are_no_point_are_refused_among_points(name: str) -> None:
    for data in (b"", b"\x01", b"\x02" + bytes(20), _point("<", 1, 1, kind=2), _point(">", 1, 1) + b"x"):
        with pytest.raises(TablestoreError):
            ARROW_FUNCTIONS[name].call(pa.array([_point("<", 1.0, 2.0), data]))
