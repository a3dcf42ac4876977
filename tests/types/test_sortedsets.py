"""Sets of numbers as ascending arrays, against Python's sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tablestore.types.sortedsets import contained, distinct, union

NUMBERS = st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3))


def array(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.int32)


@given(NUMBERS, NUMBERS)
def test_they_are_what_sets_are(one: list[int], other: list[int]) -> None:
    assert distinct(array(one)).tolist() == sorted(set(one))
    assert union(array(one), array(other)).tolist() == sorted({*one, *other})
    assert contained(array(one), distinct(array(other))).tolist() == [number in other for number in one]
    assert distinct(array(one)).dtype == np.int32
