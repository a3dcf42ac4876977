"""Keys compare as the format says, whatever form they are packed into."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.errors import FormatError, UnsupportedError
from tablestore.lsm.keys import key_at, pack, plain_columns, rows_up_to, to_words
from tablestore.lsm.sorting import sort_by_group_and_key
from tablestore.testing.keycases import KEY_CASES, KeyCase, order_of

cases = pytest.mark.parametrize("case", KEY_CASES, ids=str)


def _plain(case: KeyCase, keys):
    return plain_columns(case.columns(keys), [field.type.nullable for field in case.fields])


@cases
@given(data=st.data())
def test_packed_keys_of_several_chunks_compare_as_the_format_says(case: KeyCase, data):
    chunks = data.draw(st.lists(st.lists(case.keys, min_size=1, max_size=12), min_size=1, max_size=3))
    packed = np.concatenate(pack([_plain(case, chunk) for chunk in chunks]))
    expected = [order_of(key) for chunk in chunks for key in chunk]
    ranks = np.unique(packed, return_inverse=True)[1]
    assert len(packed) == len(expected)
    distinct = sorted(set(expected))
    assert ranks.tolist() == [distinct.index(key) for key in expected]


@cases
@given(data=st.data())
def test_packing_does_not_depend_on_slices(case: KeyCase, data):
    keys = data.draw(st.lists(case.keys, min_size=3, max_size=12))
    nullable = [field.type.nullable for field in case.fields]
    sliced = plain_columns([column.slice(1, len(keys) - 2) for column in case.columns(keys)], nullable)
    assert pack([sliced])[0].tolist() == pack([_plain(case, keys[1:-1])])[0].tolist()


@cases
@given(data=st.data())
def test_a_window_is_cut_behind_the_last_key_within_the_bound(case: KeyCase, data):
    keys = sorted(data.draw(st.lists(case.keys, min_size=1, max_size=20)), key=order_of)
    bound = data.draw(case.keys)
    start = data.draw(st.integers(0, len(keys)))
    plain = _plain(case, keys)
    cut = rows_up_to(plain, key_at(_plain(case, [bound]), 0), start, len(keys))
    assert cut == start + sum(order_of(key) <= order_of(bound) for key in keys[start:])


@cases
@given(data=st.data())
def test_rows_sort_by_group_then_key_then_arrival(case: KeyCase, data):
    keys = data.draw(st.lists(case.keys, min_size=1, max_size=30))
    groups = data.draw(st.lists(st.integers(0, 4), min_size=len(keys), max_size=len(keys)))
    words = to_words(_plain(case, keys))
    done = sort_by_group_and_key(np.array(groups, dtype=np.uint64), 5, words)
    ranked = [(group, order_of(key)) for group, key in zip(groups, keys, strict=True)]
    expected = sorted(range(len(keys)), key=lambda row: ranked[row])
    assert done.order.tolist() == expected
    assert done.repeats.tolist() == [ranked[a] == ranked[b] for a, b in zip(expected, expected[1:], strict=False)]


@given(st.lists(st.binary(min_size=20, max_size=30).map(lambda tail: b"same prefix of all " + tail), min_size=1))
def test_keys_wider_than_a_word_keep_their_order(keys):
    words = to_words(plain_columns([pa.array(keys, pa.binary())], [False]))
    assert sort_by_group_and_key(None, 1, words).order.tolist() == sorted(range(len(keys)), key=lambda i: keys[i])


def test_codes_with_a_shared_prefix_fit_one_word():
    codes = pa.array([f"item-{n:08d}" for n in range(0, 10**8, 999_983)])
    assert pack([plain_columns([codes], [False])])[0].dtype == np.uint64


def test_a_null_in_a_not_null_key_is_refused():
    with pytest.raises(FormatError, match="NOT NULL holds 1 null"):
        plain_columns([pa.array([1, None])], [False])


def test_a_nested_key_is_refused():
    with pytest.raises(UnsupportedError, match="list"):
        plain_columns([pa.array([[1]])], [False])
