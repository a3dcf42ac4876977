"""Rows and statistics: round trips, null forms, exact bounds, damage."""

import random
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.errors import FormatError, InvalidInputError, UnsupportedError
from tablestore.format.binaryrow import EMPTY_ROW, decode_row, encode_row
from tablestore.format.stats import (
    EMPTY_STATS,
    UNKNOWN_STATS,
    ColumnStats,
    StatsCollector,
    cut_upper,
    decode_stats,
    encode_stats,
)
from tablestore.types.datatypes import ArrayType, AtomicType, Field, TypeRoot


def _type(root, **parts):
    return AtomicType(root=TypeRoot[root], **parts)


INT, STRING, DOUBLE = _type("INT"), _type("VARCHAR"), _type("DOUBLE")
TYPED = [
    (_type("BOOLEAN"), False, pa.bool_()),
    (_type("TINYINT"), -128, pa.int8()),
    (_type("SMALLINT"), 32767, pa.int16()),
    (INT, -1, pa.int32()),
    (_type("BIGINT"), 2**63 - 1, pa.int64()),
    (_type("FLOAT"), 1.5, pa.float32()),
    (DOUBLE, -1e300, pa.float64()),
    (STRING, "longer than seven é", pa.string()),
    (_type("CHAR", length=3), "abc", pa.string()),
    (_type("VARBINARY"), b"\0\xff", pa.binary()),
    (_type("BINARY", length=9), b"123456789", pa.binary()),
    (_type("DATE"), date(1, 1, 1), pa.date32()),
    (_type("TIME", precision=3), time(23, 59, 59, 999000), pa.time32("ms")),
    (_type("DECIMAL", precision=10, scale=2), Decimal("-99999999.99"), pa.decimal128(10, 2)),
    (_type("DECIMAL", precision=38, scale=10), Decimal("-9999999999999999999999999999.9999999999"), pa.decimal128(38, 10)),
    (_type("TIMESTAMP", precision=3), datetime(1969, 12, 31, 23, 59, 59, 999000), pa.timestamp("ms")),
    (_type("TIMESTAMP", precision=6), datetime(1, 1, 1, 0, 0, 0, 1), pa.timestamp("us")),
    (_type("TIMESTAMP", precision=9), np.datetime64("1969-12-31T23:59:59.123456789", "ns"), pa.timestamp("ns")),
    (_type("TIMESTAMP_LTZ", precision=6), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), pa.timestamp("us", tz="UTC")),
]
TYPES = [data_type for data_type, _, _ in TYPED]
VALUES = tuple(value for _, value, _ in TYPED)


@pytest.mark.parametrize("java_projection", [True, False])
def test_rows_of_all_types_and_nulls_survive_in_both_null_forms(java_projection):
    nulls = tuple(None for _ in TYPES)
    mixed = tuple(value if index % 3 else None for index, value in enumerate(VALUES))
    for row in (VALUES, nulls, mixed):
        assert decode_row(encode_row(row, TYPES, java_projection=java_projection), TYPES) == row


def test_row_without_fields_is_the_empty_row():
    assert encode_row([], []) == EMPTY_ROW == bytes(12)
    assert decode_row(EMPTY_ROW, []) == ()


def test_timestamp_before_the_epoch_rounds_down():
    row = encode_row([datetime(1969, 12, 31, 23, 59, 59, 123456)], [_type("TIMESTAMP", precision=6)])
    assert int.from_bytes(row[-8:], "little", signed=True) == -877
    assert int.from_bytes(row[12:16], "little") == 456000


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (INT, 2**31),
        (INT, "1"),
        (_type("BOOLEAN"), 1),
        (STRING, b"x"),
        (_type("VARBINARY"), "x"),
        (_type("DATE"), datetime(2024, 1, 1)),
        (_type("DECIMAL", precision=4, scale=2), Decimal("100.00")),
        (_type("DECIMAL", precision=4, scale=2), Decimal("1.005")),
        (_type("DECIMAL", precision=4, scale=2), Decimal("NaN")),
        (_type("DECIMAL", precision=4, scale=2), 1.5),
        (_type("FLOAT"), 1e300),
        (_type("TIMESTAMP", precision=3), date(2024, 1, 1)),
    ],
)
def test_value_that_does_not_fit_its_type_is_refused(data_type, value):
    with pytest.raises(InvalidInputError, match="field 0"):
        encode_row([value], [data_type])


def test_nested_values_have_no_place_in_a_row_but_their_nulls_do():
    nested = ArrayType(element=INT)
    with pytest.raises(UnsupportedError):
        encode_row([[1]], [nested])
    assert decode_row(encode_row([None], [nested]), [nested]) == (None,)


def test_damaged_rows_raise_nothing_but_format_errors():
    seed = random.Random(5)
    data = encode_row(VALUES, TYPES)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(seed.randint(1, 5)):
            damaged[seed.randrange(len(damaged))] = seed.randrange(256)
        if seed.random() < 0.3:
            del damaged[seed.randrange(len(damaged)) :]
        try:
            decode_row(bytes(damaged), TYPES)
        except FormatError:
            refused += 1
    assert refused > 800


def collect_stats(table, fields, *, characters=128):
    collector = StatsCollector(fields, [characters] * len(fields))
    collector.add(table)
    return collector.result()


def _fields(types):
    return [Field(id=index, name=f"c{index}", type=data_type) for index, data_type in enumerate(types)]


def test_collected_statistics_are_exact_for_every_type():
    table = pa.table({f"c{i}": pa.array([None, value], arrow) for i, (_, value, arrow) in enumerate(TYPED)})
    stats = collect_stats(table, _fields(TYPES))
    # Of bytes only the nulls are told: the Java core would compare bounds as signed bytes.
    bounds = [None if isinstance(value, bytes) else value for value in VALUES]
    assert stats == [ColumnStats(min=bound, max=bound, null_count=1) for bound in bounds]
    stored = encode_stats(stats, TYPES)
    assert decode_stats(stored, TYPES) == stats


def test_bounds_order_text_by_bytes_and_cover_chunks():
    column = pa.chunked_array([["b", "é"], ["a", None], ["z"]])
    assert collect_stats(pa.table({"c0": column}), _fields([STRING])) == [ColumnStats(min="a", max="é", null_count=1)]
    encoded = pa.table({"c0": column.combine_chunks().dictionary_encode()})
    assert collect_stats(encoded, _fields([STRING])) == [ColumnStats(min="a", max="é", null_count=1)]


def test_columns_of_nulls_and_empty_tables_have_no_bounds():
    table = pa.table({"c0": pa.array([None, None], pa.int32())})
    assert collect_stats(table, _fields([INT])) == [ColumnStats(null_count=2)]
    assert collect_stats(table.slice(0, 0), _fields([INT])) == [ColumnStats(null_count=0)]


def test_nan_makes_bounds_unknown_and_zero_covers_both_zeros():
    nan = pa.table({"c0": pa.array([1.0, float("nan"), None])})
    assert collect_stats(nan, _fields([DOUBLE])) == [ColumnStats(null_count=1)]
    for value in (0.0, -0.0):
        (stats,) = collect_stats(pa.table({"c0": pa.array([value])}), _fields([DOUBLE]))
        assert (str(stats.min), str(stats.max)) == ("-0.0", "0.0")


def test_nested_columns_have_a_null_count_only():
    nested = ArrayType(element=INT)
    table = pa.table({"c0": pa.array([[1], None], pa.list_(pa.int32()))})
    stats = collect_stats(table, _fields([nested]))
    assert stats == [ColumnStats(null_count=1)]
    assert decode_stats(encode_stats(stats, [nested]), [nested]) == stats


def test_statistics_over_no_column_are_unknown_for_every_column():
    assert encode_stats([], []) == EMPTY_STATS
    assert decode_stats(EMPTY_STATS, [INT, STRING]) == [UNKNOWN_STATS, UNKNOWN_STATS]


def test_missing_null_counts_are_unknown_and_a_wrong_arity_is_refused():
    stored = encode_stats([ColumnStats(min=1, max=2)], [INT])
    assert stored.null_counts == (None,)
    assert decode_stats(type(stored)(min_values=stored.min_values, max_values=stored.max_values, null_counts=()), [INT]) == [
        ColumnStats(min=1, max=2)
    ]
    with pytest.raises(FormatError, match="2 fields"):
        decode_stats(stored, [INT, INT])


def test_bounds_that_are_unknown_in_a_piece_stay_unknown():
    fields = _fields([DOUBLE, STRING])
    pieces = StatsCollector(fields, [128, 0])
    for number, text in ((5.0, "a"), (float("nan"), None), (-1.0, "b")):
        pieces.add(pa.table({"c0": [number], "c1": pa.array([text], pa.string())}))
    assert pieces.result() == [ColumnStats(null_count=0), ColumnStats(null_count=1)]


TEXTS = st.text(st.sampled_from("ab\ud7ff\ue000\U0010ffff"), max_size=6)


@given(st.lists(st.none() | TEXTS, min_size=1, max_size=6), st.integers(1, 7), st.integers(0, 6))
def test_cut_bounds_hold_every_text_and_can_be_stored(texts, characters, split):
    fields = [Field(id=0, name="t", type=STRING)]
    column = pa.table({"t": pa.array(texts, pa.string())})
    (stats,) = collect_stats(column, fields, characters=characters)
    pieces = StatsCollector(fields, [characters])
    pieces.add(column.slice(0, split))
    pieces.add(column.slice(split))
    known = [text for text in texts if text is not None]
    for found in (stats, pieces.result()[0]):
        assert decode_stats(encode_stats([found], [STRING]), [STRING]) == [found], "it is valid UTF-8"
        assert found.null_count == len(texts) - len(known)
        assert (found.min is None) == (found.max is None)
        if found.min is None:
            assert not known or any(set(text[:characters]) == {"\U0010ffff"} for text in known if len(text) > characters)
            continue
        assert all(found.min <= text <= found.max for text in known)
        assert len(found.min) <= characters and len(found.max) <= characters
        if all(len(text) <= characters for text in known):
            assert (found.min, found.max) == (min(known), max(known)), "short texts are not touched"


def test_the_upper_bound_skips_what_is_no_character():
    assert cut_upper("a\ud7ffx", 2) == "a\ue000"
    assert cut_upper("a\U0010ffffx", 2) == "b"
    assert cut_upper("\U0010ffff\U0010ffffx", 2) is None
