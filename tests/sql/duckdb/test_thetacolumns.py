"""Columns of theta sketches: they are read, combined and written as their sketches one by one."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.sql.duckdb.functions import thetacolumns, thetasketches
from tablestore.sql.duckdb.functions.thetacolumns import ThetaColumn
from tablestore.sql.duckdb.functions.thetasketches import WHOLE, Sketch

_KEYS = st.integers(1, 30) | st.integers(1, WHOLE - 1) | st.sampled_from([1, 2**32 - 1, 2**32, 2**62, WHOLE - 1])
_LIMITS = st.just(WHOLE) | st.sampled_from([20, 2**40, WHOLE - 1]) | st.integers(1, WHOLE)


@st.composite
def _sketches(draw: st.DrawFn) -> Sketch:
    theta = draw(_LIMITS)
    return Sketch(theta, dict.fromkeys(key for key in draw(st.lists(_KEYS, max_size=40)) if key < theta))


_SOME = st.lists(_sketches(), min_size=1, max_size=8)


def _column(sketches: list[Sketch]) -> ThetaColumn:
    keys = [key for sketch in sketches for key in sketch.entries]
    rows = np.repeat(np.arange(len(sketches)), [len(sketch.entries) for sketch in sketches])
    thetas = np.array([sketch.theta for sketch in sketches])
    return thetacolumns.of_keys(len(sketches), rows, np.array(keys, np.int64), thetas)


def _bytes(sketches: Iterable[Sketch]) -> list[bytes]:
    return [thetasketches.write_theta(sketch) for sketch in sketches]


@given(sketches=_SOME, first=st.integers(0, 1))
@settings(max_examples=100, deadline=None)
def test_sketches_are_written_and_read_as_one_by_one(sketches: list[Sketch], first: int) -> None:
    data = _bytes(sketches)
    assert thetacolumns.write(_column(sketches)).to_pylist() == data
    column = thetacolumns.read(pa.array(data)[first:])
    # A limit without hashes stands in bytes that are read one by one.
    if column is not None:
        assert thetacolumns.write(column).to_pylist() == data[first:]
        assert thetacolumns.estimates(column).tolist() == [sketch.estimate for sketch in sketches[first:]]
    else:
        assert len(sketches) == first or any(sketch.theta != WHOLE and not sketch.entries for sketch in sketches)


@given(left=_SOME, right=_SOME, lg_size=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_sketches_are_combined_as_one_by_one(left: list[Sketch], right: list[Sketch], lg_size: int) -> None:
    pairs = list(zip(left, right, strict=False))
    columns = _column([one for one, _ in pairs]), _column([other for _, other in pairs])
    assert thetacolumns.write(thetacolumns.without(*columns)).to_pylist() == _bytes(thetasketches.without(*pair) for pair in pairs)
    assert thetacolumns.write(thetacolumns.common(*columns)).to_pylist() == _bytes(map(thetasketches.common, pairs))
    groups = [left, right]
    whole = [[Sketch(WHOLE, sketch.entries) for sketch in group] for group in groups]
    shared = thetacolumns.common_of_groups(_column([*whole[0], *whole[1]]), np.repeat([0, 1], list(map(len, whole))), 2)
    assert shared is not None
    assert thetacolumns.write(shared).to_pylist() == _bytes(map(thetasketches.common, whole))
    united = thetacolumns.united(_column([*left, *right]), np.repeat([0, 1], [len(left), len(right)]), 2, lg_size)
    assert thetacolumns.write(united).to_pylist() == _bytes(thetasketches.united(group, lg_size) for group in groups)


@given(
    data=st.lists(st.binary(min_size=8, max_size=40), min_size=1, max_size=3), place=st.integers(0, 30), octet=st.integers(0, 255)
)
@settings(max_examples=100, deadline=None)
def test_other_bytes_are_left_to_be_read_one_by_one(data: list[bytes], place: int, octet: int) -> None:
    assert thetacolumns.read(pa.array(data)) is None or all(one[2] == 3 for one in data)
    broken = bytearray(thetasketches.write_theta(Sketch(WHOLE, dict.fromkeys([5, 900, 10_000]))))
    broken[place % len(broken)] = octet
    column = thetacolumns.read(pa.array([bytes(broken)]))
    if column is not None:
        expected = thetasketches.read_theta(bytes(broken))
        assert (column.keys.tolist(), column.thetas.tolist()) == (sorted(expected.entries), [expected.theta])
