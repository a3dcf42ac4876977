"""Buckets: published vectors, and the vectorised hash against the scalar one over encoded rows."""

from datetime import UTC, date, datetime
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.binaryrow import encode_row
from tablestore.format.bucket import bucket_of, hash_columns
from tablestore.types.datatypes import MAX_LENGTH, ArrayType, AtomicType, TypeRoot

BOOLEAN = AtomicType(root=TypeRoot.BOOLEAN)
TINYINT = AtomicType(root=TypeRoot.TINYINT)
SMALLINT = AtomicType(root=TypeRoot.SMALLINT)
INT = AtomicType(root=TypeRoot.INT)
BIGINT = AtomicType(root=TypeRoot.BIGINT)
FLOAT = AtomicType(root=TypeRoot.FLOAT)
DOUBLE = AtomicType(root=TypeRoot.DOUBLE)
STRING = AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH)
BYTES = AtomicType(root=TypeRoot.VARBINARY, length=MAX_LENGTH)
DATE = AtomicType(root=TypeRoot.DATE)
TIME = AtomicType(root=TypeRoot.TIME, precision=3)
DECIMAL_10 = AtomicType(root=TypeRoot.DECIMAL, precision=10, scale=2)
DECIMAL_25 = AtomicType(root=TypeRoot.DECIMAL, precision=25, scale=2)
DECIMAL_38 = AtomicType(root=TypeRoot.DECIMAL, precision=38, scale=5)
TIMESTAMP_3 = AtomicType(root=TypeRoot.TIMESTAMP, precision=3)
TIMESTAMP_6 = AtomicType(root=TypeRoot.TIMESTAMP, precision=6)
TIMESTAMP_9 = AtomicType(root=TypeRoot.TIMESTAMP, precision=9)
LTZ_3 = AtomicType(root=TypeRoot.TIMESTAMP_LTZ, precision=3)
LTZ_6 = AtomicType(root=TypeRoot.TIMESTAMP_LTZ, precision=6)

ARROW = {
    BOOLEAN: pa.bool_(),
    TINYINT: pa.int8(),
    SMALLINT: pa.int16(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BYTES: pa.binary(),
    DATE: pa.date32(),
    TIME: pa.time32("ms"),
    DECIMAL_10: pa.decimal128(10, 2),
    DECIMAL_25: pa.decimal128(25, 2),
    DECIMAL_38: pa.decimal128(38, 5),
    TIMESTAMP_3: pa.timestamp("ms"),
    TIMESTAMP_6: pa.timestamp("us"),
    TIMESTAMP_9: pa.timestamp("ns"),
    LTZ_3: pa.timestamp("ms", tz="UTC"),
    LTZ_6: pa.timestamp("us", tz="UTC"),
}

Z = "0000000000000000"
N = "0001000000000000"
VECTORS = [
    ([INT], [0], Z + Z, -300363099, 3),
    ([INT], [1], Z + "0100000000000000", 1465514398, 6),
    ([INT], [-1], Z + "ffffffff00000000", 1133687267, 3),
    ([INT], [42], Z + "2a00000000000000", 907821237, 5),
    ([INT], [2147483647], Z + "ffffff7f00000000", -1125657321, 1),
    ([INT], [-2147483648], Z + "0000008000000000", 916225219, 3),
    ([BIGINT], [0], Z + Z, -300363099, 3),
    ([BIGINT], [-1], Z + "ffffffffffffffff", -821098432, 0),
    ([BIGINT], [1234567890123], Z + "cb04fb711f010000", -1873221036, 4),
    ([BIGINT], [9223372036854775807], Z + "ffffffffffffff7f", -1566569095, 7),
    ([STRING], [""], Z + "0000000000000080", 302122119, 7),
    ([STRING], ["a"], Z + "6100000000000081", 943281246, 6),
    ([STRING], ["abcdefg"], Z + "6162636465666787", -1431907323, 3),
    ([STRING], ["abcdefgh"], Z + "0800000010000000" + "6162636465666768", -843760178, 2),
    ([STRING], ["hello world"], Z + "0b00000010000000" + "68656c6c6f20776f726c640000000000", 161593394, 2),
    ([STRING], ["中文"], Z + "e4b8ade696870086", 1956728004, 4),
    ([INT, STRING], [1, "a"], Z + "0100000000000000" + "6100000000000081", -948407462, 6),
    (
        [INT, STRING],
        [7, "abcdefgh"],
        Z + "0700000000000000" + "0800000018000000" + "6162636465666768",
        -231975178,
        2,
    ),
    (
        [BIGINT, STRING, INT],
        [5, "longer than seven", -3],
        Z + "0500000000000000" + "1100000020000000" + "fdffffff00000000" + b"longer than seven".hex() + "00" * 7,
        860701526,
        6,
    ),
    (
        [STRING, STRING],
        ["k1", "0123456789"],
        Z + "6b31000000000082" + "0a00000018000000" + "30313233343536373839000000000000",
        -979286807,
        7,
    ),
    ([DATE], [date(2024, 1, 1)], Z + "0b4d000000000000", -1439008885, 5),
    ([DECIMAL_10], [Decimal("123.45")], Z + "3930000000000000", 767607022, 6),
    ([DECIMAL_25], [Decimal("-123.45")], Z + "0200000010000000" + "cfc7000000000000" + Z, -605613085, 5),
    ([TIMESTAMP_3], [datetime(2024, 1, 1, 0, 0, 0, 123000)], Z + "7bf451c28c010000", 985649424, 0),
    (
        [TIMESTAMP_6],
        [datetime(2024, 1, 1, 0, 0, 0, 123456)],
        Z + "40f5060010000000" + "7bf451c28c010000",
        941252157,
        5,
    ),
    ([BOOLEAN], [True], Z + "0100000000000000", 1465514398, 6),
    ([DOUBLE], [1.5], Z + "000000000000f83f", 1860889473, 1),
    ([INT], [None], N + Z, -1748325344, 0),
    ([STRING], [None], N + Z, -1748325344, 0),
    ([TIMESTAMP_6], [None], N + "0000000010000000" + Z, -340882661, 5),
    ([DECIMAL_25], [None], N + "0000000010000000" + Z + Z, -1380280760, 0),
]


def murmur(data: bytes) -> int:
    """Murmur3 (x86, 32 bits) with seed 42 of whole words: the definition."""
    mask, state = 0xFFFFFFFF, 42
    for word in np.frombuffer(data, "<u4").tolist():
        word = word * 0xCC9E2D51 & mask
        state ^= (word << 15 | word >> 17) * 0x1B873593 & mask
        state = ((state << 13 | state >> 19) * 5 + 0xE6546B64) & mask
    state ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        state = (state ^ state >> shift) * factor & mask
    return state - (1 << 32) if state >= 1 << 31 else state


@pytest.mark.parametrize(("types", "values", "row", "expected_hash", "bucket"), VECTORS)
def test_published_vectors_hold_for_bytes_hash_and_bucket(types, values, row, expected_hash, bucket):
    encoded = encode_row(values, types)
    assert encoded == len(types).to_bytes(4, "big") + bytes.fromhex(row)
    assert murmur(encoded[4:]) == expected_hash
    columns = [pa.array([value], ARROW[data_type]) for value, data_type in zip(values, types, strict=True)]
    assert hash_columns(columns, types).tolist() == [expected_hash]
    assert bucket_of(columns, types, 8).tolist() == [bucket]


def test_null_of_a_wide_type_without_projection_is_a_plain_zero_slot():
    encoded = encode_row([None], [TIMESTAMP_6], java_projection=False)
    assert encoded[4:] == bytes.fromhex(N + Z)
    assert murmur(encoded[4:]) == -1748325344


_WIDE = Context(prec=60)


def _decimals(precision, scale):
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda unscaled: Decimal(unscaled).scaleb(-scale, _WIDE))


_TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))


def _to_millis(value):
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


VALUES = {
    BOOLEAN: st.booleans(),
    TINYINT: st.integers(-128, 127),
    SMALLINT: st.integers(-(2**15), 2**15 - 1),
    INT: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(width=32),
    DOUBLE: st.floats(),
    STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    BYTES: st.binary(max_size=40),
    DATE: st.dates(),
    TIME: st.times().map(_to_millis),
    DECIMAL_10: _decimals(10, 2),
    DECIMAL_25: _decimals(25, 2),
    DECIMAL_38: _decimals(38, 5),
    TIMESTAMP_3: _TIMES.map(_to_millis),
    TIMESTAMP_6: _TIMES,
    TIMESTAMP_9: st.integers(-(2**62), 2**62).map(lambda nanos: np.datetime64(nanos, "ns")),
    LTZ_3: _TIMES.map(lambda value: _to_millis(value).replace(tzinfo=UTC)),
    LTZ_6: _TIMES.map(lambda value: value.replace(tzinfo=UTC)),
}


@st.composite
def _rows(draw):
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    row = st.tuples(*(st.none() | VALUES[data_type] for data_type in types))
    return types, draw(st.lists(row, min_size=1, max_size=30))


@pytest.mark.deep
@settings(max_examples=150, deadline=None)
@given(_rows(), st.integers(0, 3))
def test_vectorised_hash_equals_the_scalar_hash_of_the_encoded_row(case, skipped):
    types, rows = case
    columns = [
        pa.array([rows[0][index]] * skipped + [row[index] for row in rows], ARROW[data_type]).slice(skipped)
        for index, data_type in enumerate(types)
    ]
    assert hash_columns(columns, types).tolist() == [murmur(encode_row(row, types)[4:]) for row in rows]


@pytest.mark.parametrize("function", ["default", "hive"])
@pytest.mark.parametrize(
    ("data_type", "dtype", "nans", "canonical"),
    [
        (FLOAT, np.float32, [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF], "0000c07f00000000"),
        (DOUBLE, np.float64, [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, 2**64 - 1], "000000000000f87f"),
    ],
    ids=["float", "double"],
)
def test_a_nan_of_any_bits_hashes_as_java_s_one_nan(function, data_type, dtype, nans, canonical):
    values = pa.array(np.array(nans, np.uint32 if dtype is np.float32 else np.uint64).view(dtype))
    assert encode_row([float(values[1].as_py())], [data_type])[4:] == bytes.fromhex(Z + canonical)
    assert set(hash_columns([values], [data_type]).tolist()) == {murmur(bytes.fromhex(Z + canonical))}
    assert len(set(bucket_of([values], [data_type], 1000, function).tolist())) == 1
    zeros = pa.array(np.array([0.0, -0.0], dtype))
    assert len(set(hash_columns([zeros], [data_type]).tolist())) == 2


def test_many_long_strings_of_all_lengths_hash_as_their_rows():
    texts = ["é" * (size % 700) for size in range(0, 90_000, 7)] + ["x" * 100_000, None]
    hashes = hash_columns([pa.array(texts)], [STRING])
    picked = [0, 1, 5, 99, 100, 101, 5000, len(texts) - 2, len(texts) - 1]
    assert [int(hashes[i]) for i in picked] == [murmur(encode_row([texts[i]], [STRING])[4:]) for i in picked]


def test_more_than_one_block_of_rows_hashes_as_single_rows():
    values = np.arange(100_000, dtype=np.int64) * 7_919
    hashes = hash_columns([pa.array(values)], [BIGINT])
    picked = [0, 32_767, 32_768, 65_535, 65_536, 99_999]
    assert [int(hashes[i]) for i in picked] == [murmur(encode_row([int(values[i])], [BIGINT])[4:]) for i in picked]


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([["alpha", None], ["a longer text than seven"]]),
        pa.chunked_array([], pa.string()),
        pa.array(["alpha", None, "a longer text than seven"]).dictionary_encode(),
        pa.array(["alpha", None, "a longer text than seven"], pa.large_string()),
        pa.array(["alpha", None, "a longer text than seven"], pa.string_view()),
        pa.array([b"alpha", None, b"a longer text than seven"], pa.large_binary()),
    ],
)
def test_layout_of_the_column_does_not_change_the_hash(column):
    plain = pa.array(column.cast(pa.string()).to_pylist(), pa.string())
    assert hash_columns([column], [STRING]).tolist() == hash_columns([plain], [STRING]).tolist()


def test_integers_are_widened_to_the_declared_type_and_refused_when_too_large():
    assert hash_columns([pa.array([5], pa.int8())], [BIGINT]).tolist() == hash_columns([pa.array([5])], [BIGINT]).tolist()
    with pytest.raises(InvalidInputError):
        hash_columns([pa.array([2**40])], [INT])


def test_no_rows_have_no_buckets():
    assert bucket_of([pa.array([], pa.int64()), pa.array([], pa.string())], [BIGINT, STRING], 4).tolist() == []


def test_buckets_stay_in_range_for_the_most_negative_hash():
    buckets = bucket_of([pa.array(np.arange(200_000))], [BIGINT], 7)
    assert buckets.min() == 0
    assert buckets.max() == 6


def test_mod_is_the_floor_remainder_of_one_integer_column():
    assert bucket_of([pa.array([-1, 0, 5, None], pa.int32())], [INT], 4, "mod").tolist() == [3, 0, 1, 0]
    with pytest.raises(InvalidInputError, match="INT or BIGINT"):
        bucket_of([pa.array(["a"])], [STRING], 4, "mod")


def _hive_text(data):
    state = 0
    for byte in data:
        state = (state * 31 + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return state


def test_hive_hash_combines_columns_by_31():
    texts = ["", "a", "中文 text", None]
    numbers = [0, -1, 2**40 + 5, None]
    expected = []
    for text, number in zip(texts, numbers, strict=True):
        first = 0 if text is None else _hive_text(text.encode())
        second = 0 if number is None else ((number & (2**64 - 1)) >> 32 ^ number) & 0xFFFFFFFF
        expected.append((first * 31 + second & 0x7FFFFFFF) % 5)
    assert bucket_of([pa.array(texts), pa.array(numbers)], [STRING, BIGINT], 5, "hive").tolist() == expected


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        (BOOLEAN, True, 1),
        (INT, -5, -5 & 0x7FFFFFFF),
        (DATE, date(1970, 1, 11), 10),
        (FLOAT, 1.0, 0x3F800000),
        (DOUBLE, -0.0, 0),
        (DOUBLE, 1.0, 0x3FF00000),
        (DECIMAL_10, Decimal("1.50"), 31 * 15 + 1),
        (DECIMAL_10, Decimal("0.00"), 0),
        (DECIMAL_10, Decimal("-2.00"), -62 & 0x7FFFFFFF),
        (BYTES, b"\xff\x01", (-1 * 31 + 1) & 0x7FFFFFFF),
    ],
)
def test_hive_hash_of_single_values_is_java_s(data_type, value, expected):
    buckets = 2**31 - 1
    found = bucket_of([pa.array([value], ARROW[data_type])], [data_type], buckets, "hive").tolist()
    assert found == [expected % buckets]


def test_hive_refuses_types_that_it_has_no_hash_for():
    with pytest.raises(UnsupportedError, match="TIMESTAMP"):
        bucket_of([pa.array([datetime(2024, 1, 1)])], [TIMESTAMP_6], 4, "hive")


def test_bad_arguments_are_refused_with_typed_errors():
    with pytest.raises(UnsupportedError, match="default, mod, hive"):
        bucket_of([pa.array([1])], [BIGINT], 4, "md5")
    with pytest.raises(InvalidInputError):
        bucket_of([pa.array([1])], [BIGINT], 0)
    with pytest.raises(InvalidInputError):
        hash_columns([], [])
    with pytest.raises(InvalidInputError):
        hash_columns([pa.array([1]), pa.array([1, 2])], [BIGINT, BIGINT])
    with pytest.raises(UnsupportedError):
        hash_columns([pa.array([[1]])], [ArrayType(element=BIGINT)])
