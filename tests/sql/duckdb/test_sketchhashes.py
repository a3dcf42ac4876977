"""Hashes of sketches: a column's are those of its values one by one."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.sql.duckdb.functions.countsketches import HASHES
from tablestore.sql.duckdb.functions.sketchhashes import hashes_of_bytes, hashes_of_column, hashes_of_words

_VALUES = st.lists(st.none() | st.binary(max_size=70) | st.binary(min_size=15, max_size=17), max_size=40)


@given(values=_VALUES, first=st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_hashes_of_a_column_are_those_of_its_values(values: list[bytes | None], first: int) -> None:
    column = pa.array(values, pa.binary())[first:]
    low, high, has_bytes = hashes_of_column(column)
    for place, value in enumerate(column.to_pylist()):
        assert bool(has_bytes[place]) == bool(value)
        if value:
            assert (int(low[place]), int(high[place])) == hashes_of_bytes(value)


def test_long_values_among_short_ones_have_their_hashes() -> None:
    values = [b"x" * size for size in (3, 16, 32, 1000, 1001, 40_003)] * 2 + [b"y" * 64] * 8
    low, high, _ = hashes_of_column(pa.array(values))
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [hashes_of_bytes(value) for value in values]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_of_each_length_have_their_hashes_among_nulls(kind: pa.DataType) -> None:
    texts = [None, "", *("é" * (size // 2) + "x" * (size % 2) for size in range(1, 201)), *["same"] * 20, None, "y" * (1 << 20)]
    low, high, has_bytes = hashes_of_column(pa.array(texts, kind))
    assert has_bytes.tolist() == [bool(text) for text in texts]
    hashes = [hashes_of_bytes(text.encode()) for text in texts if text]
    assert list(zip(low[has_bytes].tolist(), high[has_bytes].tolist(), strict=True)) == hashes


@pytest.mark.parametrize("values", [[], [None], [b""], [None, b"", None], [b"x" * 28] * 9 + [None], [None] * 9 + [b"x" * 40]])
def test_values_of_one_length_and_of_none_have_their_hashes(values: list[bytes | None]) -> None:
    low, high, has_bytes = hashes_of_column(pa.array(values, pa.binary()))
    hashes = [hashes_of_bytes(value) for value in values if value]
    assert list(zip(low[has_bytes].tolist(), high[has_bytes].tolist(), strict=True)) == hashes


@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_coupons_of_words_are_those_of_their_bytes(numbers: list[int]) -> None:
    column = pa.array(numbers, pa.int64())
    low, high = hashes_of_words(np.asarray(column).view(np.uint64))
    for place, number in enumerate(numbers):
        assert (int(low[place]), int(high[place])) == hashes_of_bytes(number.to_bytes(8, "little", signed=True))
    coupons = HASHES["bigint"].call(column).to_pylist()
    zeros = [min(64 - int(one).bit_length(), 62) + 1 for one in high]
    assert coupons == [count << 26 | int(one) & (1 << 26) - 1 for count, one in zip(zeros, low, strict=True)]
