"""Ranges of rows in order: of about the same size, and no value in two of them."""

import random

import pyarrow as pa
import pytest

from tablestore.lsm.rangecuts import RangeCuts


def ends(values: pa.Array, count: int, batches: list[int], also: pa.Array | None = None) -> list[int]:
    rows = pa.record_batch({"a": values} if also is None else {"a": values, "b": also})
    cuts = RangeCuts(rows.schema.names, count=count, row_count=rows.num_rows)
    result, start = [], 0
    for size in batches:
        result += [start + end for end in cuts.ends(rows.slice(start, size))]
        start += size
    return result


@pytest.mark.parametrize(
    ("values", "count", "expected"),
    [
        ([1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 4, 5], 4, [3, 10]),
        ([1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 4, 5], 3, [5, 10]),
        ([*range(12)], 3, [4, 8]),
        ([*range(12)], 1, []),
        ([*range(12)], 0, []),
        ([*range(12)], 99, [*range(1, 12)]),
        ([7] * 12, 4, []),
        ([None] * 6 + [0.0] * 6, 2, [6]),
        ([None, None, -0.0, 0.0, 0.0, 0.0, 1.0, float("inf"), float("inf"), float("nan"), float("nan"), float("nan")], 2, [6]),
        ([1.0] * 4 + [float("nan")] * 8, 3, [4]),
        ([None, 1.0] + [float("nan")] * 10, 2, []),
        (["", "", "", "a", "b", "c", "d", "e", "f", "g", "h", "i"], 6, [3, 4, 6, 8, 10]),
    ],
)
def test_a_range_ends_where_the_value_changes(values: list[object], count: int, expected: list[int]) -> None:
    for batches in ([12], [3, 3, 3, 3], [1] * 12, [2, 0, 10]):
        assert ends(pa.array(values), count, batches) == expected


def test_the_next_column_parts_what_the_first_does_not() -> None:
    assert ends(pa.array([1] * 6), 3, [6], pa.array([1, 1, 1, 1, 2, None])) == [4]


def test_batches_do_not_matter() -> None:
    rng = random.Random(3)
    for _ in range(50):
        values = pa.array(sorted(rng.randrange(20) for _ in range(60)))
        count, left, sizes = rng.randrange(1, 12), 60, []
        while left:
            sizes.append(min(rng.randrange(9), left))
            left -= sizes[-1]
        assert ends(values, count, sizes) == ends(values, count, [60])
