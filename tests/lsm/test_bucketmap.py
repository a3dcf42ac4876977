"""Buckets for keys as they arrive, against a plain dict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.errors import FormatError, InvalidInputError
from tablestore.lsm import bucketmap
from tablestore.lsm.bucketmap import NO_BUCKET, BucketMap, BucketPolicy

HASHES = st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-5, 5), max_size=40)


def array(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


@given(
    batches=st.lists(HASHES, max_size=6),
    target=st.integers(1, 8),
    initial=st.integers(1, 4),
    most=st.none() | st.integers(1, 5),
)
def test_a_hash_keeps_its_bucket_and_buckets_fill_up_one_after_the_other(
    batches: list[list[int]], target: int, initial: int, most: int | None
) -> None:
    policy = BucketPolicy(target_rows=target, initial_buckets=initial, max_buckets=most)
    groups = min(initial, most) if most else initial
    made, model = BucketMap(), {}
    for batch in batches:
        before = dict(model)
        for hash_, bucket in zip(batch, made.assign(array(*batch), policy).tolist(), strict=True):
            assert model.setdefault(hash_, bucket) == bucket
        assert before.items() <= model.items()
        counts = np.bincount(list(model.values()), minlength=1) if model else np.zeros(1, int)
        assert most is None or len(counts) <= most
        for hash_ in model.keys() - before.keys():
            assert model[hash_] % groups == hash_ % groups
        if most is None:
            assert counts.max() <= target
            # No bucket is begun while one before it has room.
            for group in range(groups):
                assert (np.trim_zeros(counts[group::groups], "b")[:-1] == target).all()
    assert len(made) == len(model)
    assert made.find(array(*model)).tolist() == list(model.values())


def test_unknown_hashes_are_told() -> None:
    made = BucketMap.of({4: array(-7, 3), 0: array(5)}, "t")
    assert made.find(array(3, 4, 5, -7, 2**31 - 1)).tolist() == [4, NO_BUCKET, 0, 4, NO_BUCKET]
    assert BucketMap().find(array(1)).tolist() == [NO_BUCKET]
    assert len(made) == 3


def test_a_bucket_that_others_left_room_in_is_filled_first() -> None:
    made = BucketMap.of({0: array(1, 2), 2: array(3)}, "t")
    assert made.assign(array(10, 11, 12, 13), BucketPolicy(target_rows=2)).tolist() == [1, 1, 2, 3]


def test_full_buckets_share_what_is_left_where_no_more_may_be_made() -> None:
    made = BucketMap.of({0: array(1), 1: array(2)}, "t")
    policy = BucketPolicy(target_rows=1, max_buckets=2)
    assert sorted(made.assign(np.arange(10, 20, dtype=np.int32), policy).tolist()) == [0] * 5 + [1] * 5


def test_a_hash_in_two_buckets_is_refused() -> None:
    with pytest.raises(FormatError, match="two buckets"):
        BucketMap.of({0: array(1, 2), 1: array(2)}, "t")


def test_too_many_buckets_are_refused_with_the_option_to_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucketmap, "MOST_BUCKETS", 3)
    made = BucketMap()
    made.assign(array(1, 2, 3), BucketPolicy(target_rows=1))
    with pytest.raises(InvalidInputError, match=r"dynamic-bucket\.target-row-num"):
        made.assign(array(4), BucketPolicy(target_rows=1))
    assert made.assign(array(2), BucketPolicy(target_rows=1)).tolist() == [1]
