"""Columns of arrays of whole numbers as VARIANT: the bytes are those of each value by itself."""

import random

import pyarrow as pa
import pytest

from tablestore.sql.duckdb.functions import variantarrays, variantformat

EDGES = [0, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)]


def _arrays(lengths: list[int]) -> list[list[int | None] | None]:
    chance = random.Random(1)
    many = [[chance.choice([None, *EDGES]) for _ in range(chance.choice(lengths))] for _ in range(40)]
    return [None, [], [None], EDGES, *many, None]


@pytest.mark.parametrize(
    "lengths",
    [
        pytest.param([0, 1, 5], id="short"),
        pytest.param([3, 30, 90, 300], id="of several widths"),
        pytest.param([300, 9000], id="long"),
    ],
)
def test_arrays_at_once_are_those_one_by_one(lengths: list[int]) -> None:
    arrays = _arrays(lengths)
    column = pa.array(arrays, pa.list_(pa.int64()))
    expected = [None if one is None else dict(zip(("value", "metadata"), variantformat.encode(one), strict=True)) for one in arrays]
    assert variantarrays.of_whole_numbers(column).to_pylist() == expected
    assert variantarrays.of_whole_numbers(column.slice(2, 20)).to_pylist() == expected[2:22]


def test_no_arrays_and_arrays_that_are_all_null_have_their_form() -> None:
    for values in ([], [None], [[]]):
        column = variantarrays.of_whole_numbers(pa.array(values, pa.list_(pa.int64())))
        assert column.null_count == values.count(None)
        assert len(column) == len(values)
