"""Records are cut into transactions that are bounded by records and by bytes, also within one row group."""

import random

import numpy as np
import pytest

from tablestore.log.logstore import cut_into_transactions
from tablestore.log.record import LogRecords
from tablestore.log.recordlimit import RecordTooLarge, refused_record, within_limit


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


def test_what_comes_before_a_record_that_is_too_large_is_sent_and_its_key_is_named() -> None:
    large = batch(0, [10, 100, 101, 5], first=7)
    large.keys[2] = b'{"id":42}'
    large.values[2] = b"x" * 101
    too_large: list[RecordTooLarge] = []
    found = list(within_limit([batch(1, [3]), large, batch(1, [4])], 100, too_large, log="topic", table="t"))
    assert [sizes_of([one]) for one in found] == [[3], [10, 100]]
    (error,) = too_large
    assert error.kind == "log-record-too-large" and 'key {"id":42} makes a record of 110 bytes' in str(error)


def test_nothing_is_sent_of_a_batch_that_begins_too_large() -> None:
    too_large: list[RecordTooLarge] = []
    assert list(within_limit([batch(0, [101, 5])], 100, too_large, log="topic", table="t")) == []
    assert len(too_large) == 1


def test_of_a_transaction_that_the_log_refuses_the_largest_record_is_named() -> None:
    group = [batch(0, [3, 50]), batch(1, [7, 90, 4])]
    group[1].keys[1] = b'{"id":8}'
    error = refused_record(group, log="topic", table="t")
    assert error.kind == "log-record-too-large" and 'key {"id":8} makes a record of 98 bytes, the largest' in str(error)
