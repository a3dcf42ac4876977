"""Keys of every type, up to the ends of its range, for property tests: how to draw them and how they should compare.

The comparison is written down a second time here, with Python values, so that the engine's order is checked against
something that shares no code with it.
"""

import math
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import MAX_LENGTH, AtomicType, Field, TypeRoot


@dataclass(frozen=True)
class KeyCase:
    """A named key: its columns, and what a key (a tuple of values) is drawn from."""

    name: str
    fields: tuple[Field, ...]
    keys: st.SearchStrategy[tuple[Any, ...]]

    def __str__(self) -> str:
        return self.name

    def columns(self, keys: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        """The keys as Arrow columns."""
        return [
            pa.array([key[position] for key in keys], type=to_arrow_type(field.type)) for position, field in enumerate(self.fields)
        ]


def order_of(key: Sequence[Any]) -> tuple[Any, ...]:
    """A key as something that Python sorts, and finds equal, as the format demands."""
    return tuple((0,) if value is None else (1, *_order_of_value(value)) for value in key)


def _order_of_value(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        return (value.encode("utf-8"),)
    if isinstance(value, float):
        if math.isnan(value):
            return (1, 0.0, 0.0)
        return (0, value, math.copysign(1.0, value))
    return (value,)


def _atomic(root: TypeRoot, **parts: Any) -> AtomicType:
    return AtomicType(root=root, nullable=parts.pop("nullable", False), **parts)


def _case(name: str, *columns: tuple[AtomicType, st.SearchStrategy[Any]]) -> KeyCase:
    fields = tuple(Field(id=i, name=f"k{i}", type=data_type) for i, (data_type, _) in enumerate(columns))
    return KeyCase(name, fields, st.tuples(*(values for _, values in columns)))


_STRING = _atomic(TypeRoot.VARCHAR, length=MAX_LENGTH)
_BYTES = _atomic(TypeRoot.VARBINARY, length=MAX_LENGTH)
_INT = _atomic(TypeRoot.INT)
_BIGINT = _atomic(TypeRoot.BIGINT)


def _integers(least: int, greatest: int, *places: int) -> st.SearchStrategy[int]:
    """Any, and neighbours of each other: at both ends, around 0 and around ``places``, where comparisons may round."""
    near = st.builds(lambda place, step: place + step, st.sampled_from((least, greatest, 0, *places)), st.integers(-3, 3))
    return st.one_of(near.filter(lambda n: least <= n <= greatest), st.integers(least, greatest))


# From here on a float64 does not hold every integer.
_ROUNDED = (2**53, -(2**53), 2**60)
_small_ints = st.integers(-6, 6)
_bigints = _integers(-(2**63), 2**63 - 1, *_ROUNDED)
_short_text = st.text(st.sampled_from("ab\0é中𝄞"), max_size=4)
_codes = st.integers(0, 400).map(lambda n: f"item-{n:08d}")
_long_text = st.one_of(_short_text, st.text(st.sampled_from("xy\0"), min_size=125, max_size=140))
_decimals = _integers(-(10**18) + 1, 10**18 - 1, *_ROUNDED).map(lambda n: Decimal(f"{n}E-2"))
# Also where the lower of the two words of a decimal is full.
_WORDS = tuple(sign * 2**bits for bits in (60, 63, 64, 65, 100) for sign in (1, -1))
# One number to a float: often enough that several of them meet.
_one_float = st.integers(2**60, 2**60 + 5)
_wide_decimals = st.one_of(_one_float, _integers(-(10**38) + 1, 10**38 - 1, *_WORDS)).map(lambda n: Decimal(f"{n}E-5"))
_narrowest_wide = st.one_of(_one_float, _integers(-(10**19) + 1, 10**19 - 1, *_WORDS[:4])).map(lambda n: Decimal(f"{n}"))
_smallest_float, _largest_float = 2.0**-149, (2 - 2**-23) * 2.0**127
_nans = st.sampled_from([math.nan, -math.nan, struct.unpack("<d", bytes.fromhex("010000000000f07f"))[0]])
_ends = st.sampled_from([0.0, -0.0, math.inf, -math.inf, _smallest_float, -_smallest_float, _largest_float, -_largest_float])
_floats = st.one_of(_nans, _ends, st.floats(width=32))
_doubles = st.one_of(_floats, st.sampled_from([5e-324, -5e-324, sys.float_info.max, -sys.float_info.max]), st.floats())
_moments = st.one_of(st.sampled_from([datetime.min, datetime.max]), st.datetimes())
_nano_moments = st.one_of(
    st.sampled_from([datetime(1677, 9, 21, 0, 12, 44), datetime(2262, 4, 11, 23, 47, 16)]),
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
)
_days = st.one_of(st.sampled_from([date.min, date.max]), st.dates())
_times = st.one_of(st.sampled_from([0, 86_399_999]), st.integers(0, 86_399_999)).map(
    lambda millis: (datetime.min + timedelta(milliseconds=millis)).time()
)

KEY_CASES: tuple[KeyCase, ...] = (
    _case("int", (_INT, _integers(-(2**31), 2**31 - 1))),
    _case("small int", (_INT, st.integers(-20, 20))),
    _case("bigint", (_BIGINT, _bigints)),
    _case("smallint", (_atomic(TypeRoot.SMALLINT), _integers(-(2**15), 2**15 - 1))),
    _case("tinyint", (_atomic(TypeRoot.TINYINT), _integers(-128, 127))),
    _case("boolean", (_atomic(TypeRoot.BOOLEAN), st.booleans())),
    _case("date", (_atomic(TypeRoot.DATE), _days)),
    _case("time", (_atomic(TypeRoot.TIME, precision=3), _times)),
    _case("timestamp", (_atomic(TypeRoot.TIMESTAMP, precision=6), _moments)),
    _case(
        "timestamp with local time zone",
        (_atomic(TypeRoot.TIMESTAMP_LTZ, precision=6), _moments.map(lambda moment: moment.replace(tzinfo=UTC))),
    ),
    _case("timestamp in nanoseconds", (_atomic(TypeRoot.TIMESTAMP, precision=9), _nano_moments)),
    _case("decimal", (_atomic(TypeRoot.DECIMAL, precision=18, scale=2), _decimals)),
    _case("decimal of 19 digits", (_atomic(TypeRoot.DECIMAL, precision=19, scale=0), _narrowest_wide)),
    _case("wide decimal", (_atomic(TypeRoot.DECIMAL, precision=38, scale=5), _wide_decimals)),
    _case("float", (_atomic(TypeRoot.FLOAT), _floats)),
    _case("double", (_atomic(TypeRoot.DOUBLE), _doubles)),
    _case("string", (_STRING, _short_text)),
    _case("code", (_STRING, _codes)),
    _case("any text", (_STRING, st.text(max_size=40))),
    _case("long string", (_STRING, _long_text)),
    _case("binary", (_BYTES, st.binary(max_size=12))),
    _case("int and string", (_INT, _small_ints), (_STRING, _short_text)),
    _case("string and int", (_STRING, _short_text), (_INT, _small_ints)),
    _case("three strings", (_STRING, _short_text), (_STRING, st.text(max_size=12)), (_STRING, _codes)),
    _case("two bigints", (_BIGINT, _bigints), (_BIGINT, _bigints)),
    _case(
        "wide decimal and double",
        (_atomic(TypeRoot.DECIMAL, precision=38, scale=5), _wide_decimals),
        (_atomic(TypeRoot.DOUBLE), _doubles),
    ),
    _case("nullable double", (_atomic(TypeRoot.DOUBLE, nullable=True), st.one_of(st.none(), _doubles))),
    _case(
        "nullable wide decimal",
        (_atomic(TypeRoot.DECIMAL, precision=38, scale=5, nullable=True), st.one_of(st.none(), _wide_decimals)),
    ),
    _case(
        "nullable int and string",
        (_atomic(TypeRoot.INT, nullable=True), st.one_of(st.none(), _small_ints)),
        (_atomic(TypeRoot.VARCHAR, length=9, nullable=True), st.one_of(st.none(), _short_text)),
    ),
)
