"""Rows get one number if they are the same, whichever column tells them apart."""

import pyarrow as pa
import pytest

from tablestore.lsm.functions import valuecodes
from tablestore.lsm.functions.valuecodes import row_codes


@pytest.mark.parametrize(
    ("columns", "codes"),
    [
        ([[1, 1, 1], ["a", "b", "a"], [0.0, 0.0, -0.0]], [0, 1, 2]),
        ([[1, 1, 1], ["a", "b", "a"], [0.0, 0.0, 0.0]], [0, 1, 0]),
        ([[1, 2, 3], ["a", "a", "a"]], [0, 1, 2]),
        ([[3, None, None], ["a", "a", "a"]], [0, 1, 1]),
        ([[None, 5], [1, 1]], [0, 1]),
        ([[7], [None]], [0]),
    ],
)
def test_equal_rows_have_equal_numbers(columns: list[list[object]], codes: list[int]) -> None:
    assert row_codes([pa.chunked_array([column]) for column in columns]).tolist() == codes


def test_structs_that_are_all_there_are_not_taken_for_different_ones() -> None:
    column = pa.chunked_array([pa.array([{"a": 1}, {"a": 1}])])
    assert row_codes([column, column]).tolist() == [0, 0]


def test_columns_behind_one_in_which_nothing_comes_twice_are_not_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered: list[pa.Array] = []
    value_codes = valuecodes.value_codes
    monkeypatch.setattr(valuecodes, "value_codes", lambda array: numbered.append(array) or value_codes(array))
    assert row_codes([pa.chunked_array([values]) for values in ([1, 1], [2, 3], [4, 4])]).tolist() == [0, 1]
    assert len(numbered) == 2
