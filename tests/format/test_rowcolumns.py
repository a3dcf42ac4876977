"""Fields of many rows: the values in a form that has their order, for every type, and nothing but null from rows that are none."""

import itertools
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.format.binaryrow import EMPTY_ROW, encode_row, header_bytes
from tablestore.format.rowcolumns import has_order, literal_field, row_field, slices_of
from tablestore.types.datatypes import LENGTH_ROOTS, TIMESTAMP_ROOTS, ArrayType, AtomicType, DataType, TypeRoot
from tablestore.types.timevalues import nanoseconds
from tablestore.types.typestring import parse_type

EPOCH = datetime(1970, 1, 1)
LENGTHS = (0, 1, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17)
DATETIMES = st.datetimes() | st.sampled_from([datetime.min, datetime.max, EPOCH, EPOCH - timedelta(microseconds=1)])
NANOS = st.integers(-(2**63) + 1, 2**63 - 1).map(lambda count: np.datetime64(count, "ns"))
TEXTS = (
    st.text(max_size=14)
    | st.builds(lambda size, letter: letter * size, st.sampled_from(LENGTHS), st.sampled_from("aé中🦉\0"))
    | st.sampled_from(["x" * 100_000, "é" * 50_000 + "z"])
)
BYTES = st.binary(max_size=17) | st.sampled_from([b"\xff" * 100_000, b"\x80", b"\x7f"])


def _whole(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.integers(low, high) | st.sampled_from([low, high, -1, 0])


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(1 - 10**precision, 10**precision - 1).map(lambda number: Decimal(number).scaleb(-scale))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "TINYINT": _whole(8),
    "SMALLINT": _whole(16),
    "INT": _whole(32),
    "BIGINT": _whole(64),
    "DECIMAL(1, 0)": _decimals(1, 0),
    "DECIMAL(9, 4)": _decimals(9, 4),
    "DECIMAL(18, 18)": _decimals(18, 18),
    "DATE": st.dates() | st.sampled_from([date.min, date.max, date(1969, 12, 31)]),
    "TIME(0)": st.times().map(lambda t: t.replace(microsecond=0)),
    "TIME(3)": st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)) | st.just(time.max),
    "CHAR(20)": TEXTS,
    "VARCHAR(9)": TEXTS,
    "STRING": TEXTS,
    "BINARY(4)": BYTES,
    "BYTES": BYTES,
    **{f"TIMESTAMP({p})": NANOS if p > 6 else DATETIMES for p in (0, 3, 4, 6, 7, 9)},
    **{
        f"TIMESTAMP({p}) WITH LOCAL TIME ZONE": NANOS if p > 6 else DATETIMES.map(lambda t: t.replace(tzinfo=UTC))
        for p in (0, 3, 4, 6, 7, 9)
    },
}
OTHERS = ["FLOAT", "DOUBLE", "BOOLEAN", "DECIMAL(19, 0)", "DECIMAL(38, 3)"]


def _form(value: Any, data_type: DataType) -> Any:
    """A value in the form of row_field, by other means."""
    assert isinstance(data_type, AtomicType)
    if value is None:
        return None
    if data_type.root in LENGTH_ROOTS:
        return value.encode() if isinstance(value, str) else value
    if data_type.root in TIMESTAMP_ROOTS:
        return nanoseconds(value) // 1_000_000
    if data_type.root is TypeRoot.DECIMAL:
        return int(value.scaleb(data_type.scale or 0))
    if data_type.root is TypeRoot.DATE:
        return (value - date(1970, 1, 1)).days
    if data_type.root is TypeRoot.TIME:
        return (datetime.combine(EPOCH, value) - EPOCH) // timedelta(milliseconds=1)
    return value


def _order(value: Any) -> Any:
    """What Python orders as the column does: a text by its characters, a time by all of its digits."""
    return nanoseconds(value) if isinstance(value, datetime | np.datetime64) else value


FILLERS = ("INT", "STRING", "TIMESTAMP(6)", "DECIMAL(38, 3)")


@st.composite
def _rows(draw: st.DrawFn) -> tuple[DataType, int, int, list[Any], pa.Array]:
    """A type, the arity and the place of its field, the values, and the rows: somewhere inside of a larger array."""
    name = draw(st.sampled_from(list(VALUES)))
    data_type = parse_type(name)
    arity = draw(st.sampled_from([1, 2, 7, 56, 57, 60, 70, 300, 600]))
    index = draw(st.integers(0, arity - 1) | st.just(arity - 1))
    values = draw(st.lists(st.none() | VALUES[name], max_size=6))
    chance = draw(st.randoms(use_true_random=False))
    rows: list[bytes | None] = []
    for value in values:
        names = [chance.choice(FILLERS) for _ in range(arity)]
        row = [_filler(filler, chance) for filler in names]
        row[index] = value
        types = [parse_type(filler) for filler in names]
        types[index] = data_type
        rows.append(encode_row(row, types, java_projection=chance.random() < 0.5))
    if draw(st.booleans()):
        rows, values = [*rows, None], [*values, None]
    before, after = (
        draw(st.lists(st.none() | st.binary(max_size=40), max_size=3)),
        draw(st.lists(st.binary(max_size=9), max_size=2)),
    )
    array = pa.array([*before, *rows, *after], pa.binary()).slice(len(before), len(rows))
    return data_type, arity, index, values, array


def _filler(name: str, chance: random.Random) -> Any:
    values = {"INT": -1, "STRING": "filler" * 3, "TIMESTAMP(6)": datetime(1969, 1, 1, 1, 1, 1, 1), "DECIMAL(38, 3)": Decimal(-7)}
    return None if chance.random() < 0.5 else values[name]


@pytest.mark.deep
@settings(max_examples=60)
@given(_rows())
def test_field_of_rows_has_the_values_of_all_rows_in_a_form_with_their_order(
    case: tuple[DataType, int, int, list[Any], pa.Array],
) -> None:
    data_type, arity, index, values, rows = case
    field = row_field(rows, arity, index, data_type)
    field.validate(full=True)
    is_text = isinstance(data_type, AtomicType) and data_type.root in LENGTH_ROOTS
    assert field.type == (pa.binary() if is_text else pa.int64())
    forms = field.to_pylist()
    # Compared outside of the assert: pytest would spend minutes on showing how such texts differ.
    is_same = forms == [_form(value, data_type) for value in values]
    assert is_same
    pairs = [(value, form) for value, form in zip(values, forms, strict=True) if value is not None]
    for value, form in pairs:
        literal = literal_field(value, data_type)
        assert literal is not None and literal.type == field.type
        is_same = literal.as_py() == form
        assert is_same
    pairs.sort(key=lambda pair: _order(pair[0]))
    assert all(one[1] <= other[1] for one, other in itertools.pairwise(pairs))


def test_types_without_an_order_have_no_form() -> None:
    for name in OTHERS:
        assert not has_order(parse_type(name))
        assert literal_field(Decimal(1), parse_type(name)) is None
    assert not has_order(ArrayType(element=parse_type("INT")))
    assert all(has_order(parse_type(name)) for name in VALUES)
    assert set(TypeRoot) == {t.root for t in map(parse_type, [*VALUES, *OTHERS]) if isinstance(t, AtomicType)}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "INT"),
        (128, "TINYINT"),
        (-32769, "SMALLINT"),
        (2**31, "INT"),
        (2**63, "BIGINT"),
        (1.5, "INT"),
        ("1", "INT"),
        (Decimal("0.01"), "DECIMAL(5, 1)"),
        (Decimal("10000"), "DECIMAL(5, 1)"),
        (Decimal("NaN"), "DECIMAL(5, 1)"),
        (Decimal("Infinity"), "DECIMAL(5, 1)"),
        (Decimal("1E+999999"), "DECIMAL(5, 1)"),
        (1, "DECIMAL(5, 1)"),
        (b"x", "STRING"),
        ("x", "BYTES"),
        ("\ud800", "STRING"),
        (1, "STRING"),
        (datetime(2024, 1, 1), "DATE"),
        (date(2024, 1, 1), "TIMESTAMP(6)"),
        (np.datetime64(10**12, "Y"), "TIMESTAMP(9)"),
        ("10:00", "TIME(3)"),
    ],
)
def test_literal_that_is_no_value_of_the_type_has_no_form(value: Any, name: str) -> None:
    assert literal_field(value, parse_type(name)) is None


ROOTS = ["TINYINT", "BIGINT", "STRING", "BYTES", "TIMESTAMP(3)", "TIMESTAMP(6)", "DECIMAL(18, 0)", "DATE"]


def _slot(low: int, high: int, *, arity: int = 1, tail: bytes = b"") -> bytes:
    """A row whose first slot has these two numbers."""
    slots = low.to_bytes(4, "little", signed=True) + high.to_bytes(4, "little", signed=True) + bytes(8 * (arity - 1))
    return arity.to_bytes(4, "big") + bytes(header_bytes(arity)) + slots + tail


@pytest.mark.parametrize("name", ["STRING", "BYTES"])
@pytest.mark.parametrize(
    ("low", "high", "value"),
    [
        (8, 16, b"TAILTAIL"),
        (7, 17, b"AILTAIL"),
        (0, 24, b""),
        (9, 16, None),
        (8, 17, None),
        (1, 24, None),
        (-1, 16, None),
        (2**31 - 1, 16, None),
        (8, 2**31 - 1, None),
        (2**31 - 1, 2**31 - 1, None),
        # An inline text of 127 bytes, which the row has not.
        (0, -1, None),
    ],
)
def test_text_outside_of_its_row_is_null(name: str, low: int, high: int, value: bytes | None) -> None:
    row = _slot(low, high, tail=b"TAILTAIL")
    rows = pa.array([b"BEFORE" * 9, row, b"BEHIND" * 90], pa.binary())
    assert row_field(rows, 1, 0, parse_type(name)).to_pylist() == [None, value, None]


@pytest.mark.parametrize(("offset", "value"), [(16, -5), (15, None), (17, None), (-1, None), (-(2**31), None), (2**31 - 1, None)])
def test_timestamp_outside_of_its_row_is_null(offset: int, value: int | None) -> None:
    row = _slot(0, offset, tail=(-5).to_bytes(8, "little", signed=True))
    rows = pa.array([b"\1" * 50, row, b"\1" * 50], pa.binary())
    found = row_field(rows, 1, 0, parse_type("TIMESTAMP(6)")).to_pylist()
    assert found[1] == value or (offset == 15 and found[1] is not None), "an area between slots lies in the row"
    assert (found[0], found[2]) == (None, None)


def test_rows_of_another_arity_or_cut_short_are_null() -> None:
    types = [parse_type("INT")] * 600
    whole = encode_row([7] * 600, types)
    rows = pa.array([whole, whole[:-1], EMPTY_ROW, b"", None, encode_row([7], types[:1]), b"\xff" * 6000], pa.binary())
    for index in (0, 471, 599):
        assert row_field(rows, 600, index, types[0]).to_pylist() == [7, *[None] * 6]
    assert row_field(rows, 1, 0, types[0]).to_pylist() == [*[None] * 5, 7, None]


def _check_damage(rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    known = 0
    for _ in range(rounds):
        data_type, arity = parse_type(chance.choice(ROOTS)), chance.choice((1, 2, 60, 600))
        index = chance.randrange(arity)
        fixed = 4 + header_bytes(arity) + 8 * arity
        rows: list[bytes | None] = []
        for _ in range(chance.randint(0, 4)):
            row = bytearray(arity.to_bytes(4, "big") + bytes(fixed - 4) + b"\xee" * 24)
            at = 4 + header_bytes(arity) + 8 * index
            row[at : at + 8] = bytes(chance.choice((0, 1, 8, 24, 127, 255, chance.randrange(256))) for _ in range(8))
            if chance.random() < 0.5:
                row[at + 4 : at + 8] = (fixed - 4 + chance.randint(-9, 40)).to_bytes(4, "little", signed=True)
                row[at : at + 4] = chance.choice((0, 1, 8, 24, 25, 2**31 - 1, -1)).to_bytes(4, "little", signed=True)
            if chance.random() < 0.3:
                del row[chance.randrange(len(row)) :]
            if chance.random() < 0.2:
                row = bytearray(chance.randbytes(chance.randrange(64)))
            rows.append(None if chance.random() < 0.1 else bytes(row))
        field = row_field(pa.array(rows, pa.binary()), arity, index, data_type)
        field.validate(full=True)
        found = field.to_pylist()
        assert len(found) == len(rows)
        # A row by itself has nothing to read beside it.
        assert found == [row_field(pa.array([row], pa.binary()), arity, index, data_type)[0].as_py() for row in rows]
        for row, value in zip(rows, found, strict=True):
            known += value is not None
            assert not isinstance(value, bytes) or (row is not None and value in row)
    assert known > rounds // 5


def test_damaged_rows_are_null_or_a_value_of_their_own_bytes() -> None:
    _check_damage(500, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 14))
def test_much_damage_in_rows_is_null_or_a_value_of_their_own_bytes(seed: int) -> None:
    _check_damage(10_000, seed)


@pytest.mark.parametrize("name", ROOTS)
def test_no_rows_and_null_rows_have_a_field_too(name: str) -> None:
    data_type = parse_type(name)
    empty = [pa.array([], pa.binary()), pa.nulls(0, pa.binary()), pa.array([EMPTY_ROW], pa.binary()).slice(1)]
    assert [row_field(rows, 1, 0, data_type).to_pylist() for rows in empty] == [[], [], []]
    assert row_field(pa.nulls(3, pa.binary()), 1, 0, data_type).to_pylist() == [None] * 3


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 20), st.booleans())))
def test_slices_are_the_bytes_where_they_are_valid(parts: list[tuple[int, int, bool]]) -> None:
    data = bytes(range(100)) + bytes(12)
    starts, sizes, valid = (
        np.array([part[place] for part in parts], kind) for place, kind in enumerate((np.int64, np.int64, bool))
    )
    slices = slices_of(pa.py_buffer(data), starts, sizes, valid)
    slices.validate(full=True)
    assert slices.to_pylist() == [data[start : start + size] if ok else None for start, size, ok in parts]
