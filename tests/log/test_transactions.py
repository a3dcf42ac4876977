"""Records are cut into transactions that are bounded by records and by bytes, also within one row group."""

import random

import numpy as np
import pytest

from tablestore.log.logstore import cut_into_transactions
from tablestore.log.record import LogRecords


def batch(bucket: int, sizes: list[int], first: int = 0) -> LogRecords:
    return LogRecords(
        bucket=bucket,
        snapshot_id=1,
        time_millis=0,
        ordinals=np.arange(first, first + len(sizes)),
        kinds=np.zeros(len(sizes), dtype=np.int8),
        keys=[b"" for _ in sizes],
        values=[b"x" * size for size in sizes],
    )


def sizes_of(group: list[LogRecords]) -> list[int]:
    return [len(value or b"") for records in group for value in records.values]


def test_a_row_group_of_large_values_is_cut_by_bytes() -> None:
    groups = list(cut_into_transactions([batch(0, [40, 40, 40, 10, 200, 5])], max_records=100, max_bytes=100))
    assert [sizes_of(group) for group in groups] == [[40, 40], [40, 10], [200], [5]]


def test_a_tombstone_counts_by_its_key_alone() -> None:
    records = batch(0, [1, 1])
    records.values[:] = [None, None]
    assert records.sizes.tolist() == [0, 0]
    assert [sum(map(len, group)) for group in cut_into_transactions([records], max_records=1, max_bytes=10)] == [1, 1]


@pytest.mark.parametrize("seed", range(50))
def test_every_transaction_is_within_its_bounds_and_nothing_is_lost_or_moved(seed: int) -> None:
    chance = random.Random(seed)
    batches, first = [], 0
    for _ in range(chance.randrange(1, 6)):
        sizes = [chance.choice((0, 1, 5, 49, 50, 51, 120)) for _ in range(chance.randrange(0, 30))]
        batches.append(batch(chance.randrange(3), sizes, first))
        first += len(sizes)
    max_records = chance.choice((1, 3, 1000))
    groups = list(cut_into_transactions(batches, max_records=max_records, max_bytes=50))
    for group in groups:
        found = sizes_of(group)
        assert 0 < len(found) <= max_records and all(len(records) for records in group)
        assert sum(found) <= 50 or len([size for size in found if size]) == 1
    ordinals = [int(i) for group in groups for records in group for i in records.ordinals]
    assert ordinals == list(range(first))
