"""Keys compare as the format says, whatever form they are packed into."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError, UnsupportedError
from tablestore.lsm.functions.survivors import WindowKeys
from tablestore.lsm.keys import concat_plain, key_at, plain_columns, rows_up_to, to_words
from tablestore.lsm.sorting import ascending, sort_by_group_and_key
from tests.support.keycases import KEY_CASES, KeyCase, order_of

cases = pytest.mark.parametrize("case", KEY_CASES, ids=str)


def _plain(case: KeyCase, keys):
    return plain_columns(case.columns(keys), [field.type.nullable for field in case.fields])


def _words(words):
    return list(zip(*(column.at().tolist() for column in words.columns), strict=True)) or [()] * words.row_count


def _ranks(words):
    rows = _words(words)
    distinct = sorted(set(rows))
    return [distinct.index(row) for row in rows]


@pytest.mark.deep_after(5)
@cases
@settings(max_examples=25)
@given(data=st.data())
def test_words_of_several_chunks_compare_as_the_format_says(case: KeyCase, data):
    chunks = data.draw(st.lists(st.lists(case.keys, min_size=1, max_size=12), min_size=1, max_size=3))
    expected = [order_of(key) for chunk in chunks for key in chunk]
    ranks = _ranks(to_words(concat_plain([_plain(case, chunk) for chunk in chunks])))
    distinct = sorted(set(expected))
    assert ranks == [distinct.index(key) for key in expected]


@pytest.mark.deep_after(7)
@cases
@settings(max_examples=25)
@given(data=st.data())
def test_packing_does_not_depend_on_slices(case: KeyCase, data):
    keys = data.draw(st.lists(case.keys, min_size=3, max_size=12))
    nullable = [field.type.nullable for field in case.fields]
    sliced = plain_columns([column.slice(1, len(keys) - 2) for column in case.columns(keys)], nullable)
    assert _words(to_words(sliced)) == _words(to_words(_plain(case, keys[1:-1])))


@pytest.mark.deep_after(4)
@cases
@settings(max_examples=25)
@given(data=st.data())
def test_a_window_is_cut_behind_the_last_key_within_the_bound(case: KeyCase, data):
    keys = sorted(data.draw(st.lists(case.keys, min_size=1, max_size=20)), key=order_of)
    bound = data.draw(st.one_of(st.sampled_from(keys), case.keys))
    start = data.draw(st.integers(0, len(keys)))
    plain = _plain(case, keys)
    cut = rows_up_to(plain, key_at(_plain(case, [bound]), 0), start, len(keys))
    assert cut == start + sum(order_of(key) <= order_of(bound) for key in keys[start:])
    cut = rows_up_to(plain, key_at(_plain(case, [bound]), 0), start, len(keys), include_equal=False)
    assert cut == start + sum(order_of(key) < order_of(bound) for key in keys[start:])


@pytest.mark.parametrize("low", [2**53, 2**60, 2**63 - 1, 2**63, 2**64 - 5])
@pytest.mark.parametrize("high", [0, -1, 2**62])
def test_wide_decimals_that_differ_in_the_last_digit_are_cut_apart(low, high):
    first = high * 2**64 + low
    keys = pa.array([Decimal(first + step) for step in range(5)], pa.decimal128(38, 0))
    plain = plain_columns([keys], [False])
    for row in range(5):
        assert rows_up_to(plain, key_at(plain, row), 0, 5) == row + 1
        assert rows_up_to(plain, key_at(plain, row), 0, 5, include_equal=False) == row


@pytest.mark.deep_after(7)
@cases
@settings(max_examples=25)
@given(data=st.data())
def test_rows_sort_by_group_then_key_then_arrival(case: KeyCase, data):
    keys = data.draw(st.lists(case.keys, min_size=1, max_size=30))
    groups = data.draw(st.lists(st.integers(0, 4), min_size=len(keys), max_size=len(keys)))
    words = to_words(_plain(case, keys))
    done = sort_by_group_and_key(np.array(groups, dtype=np.uint64), 5, words)
    ranked = [(group, order_of(key)) for group, key in zip(groups, keys, strict=True)]
    expected = sorted(range(len(keys)), key=lambda row: ranked[row])
    assert done.order.tolist() == expected
    assert done.repeats.tolist() == [ranked[a] == ranked[b] for a, b in pairwise(expected)]


@given(st.lists(st.binary(max_size=60).map(lambda tail: b"same prefix of all " + tail), min_size=1))
def test_keys_wider_than_a_word_keep_their_order(keys):
    words = to_words(plain_columns([pa.array(keys, pa.binary())], [False]))
    assert sort_by_group_and_key(None, 1, words).order.tolist() == sorted(range(len(keys)), key=lambda i: keys[i])


def test_codes_with_a_shared_prefix_fit_one_word():
    codes = pa.array([f"item-{n:08d}" for n in range(0, 10**8, 999_983)])
    assert to_words(plain_columns([codes], [False])).total_bits <= 40


@pytest.mark.deep_after(5)
@cases
@settings(max_examples=25)
@given(data=st.data())
def test_strictly_ascending_runs_are_told_from_others(case: KeyCase, data):
    chunks = data.draw(st.lists(st.lists(case.keys, min_size=1, max_size=6), min_size=1, max_size=3))
    if data.draw(st.booleans()):
        chunks = [sorted({order_of(key): key for key in chunk}.values(), key=order_of) for chunk in chunks]
    expected = all(order_of(a) < order_of(b) for chunk in chunks for a, b in pairwise(chunk))
    keys = WindowKeys([_plain(case, chunk) for chunk in chunks])
    assert keys.ascending() == expected
    assert ascending(keys.words, keys.bounds) == expected


def test_a_null_in_a_not_null_key_is_refused():
    with pytest.raises(FormatError, match="NOT NULL holds 1 null"):
        plain_columns([pa.array([1, None])], [False])


def test_a_nested_key_is_refused():
    with pytest.raises(UnsupportedError, match="list"):
        plain_columns([pa.array([[1]])], [False])
