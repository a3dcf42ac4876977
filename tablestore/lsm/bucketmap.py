"""Assigns key hashes to dynamic buckets, which are created as keys arrive. Pure.

    known hash               its bucket
    new hash                 the first bucket that holds fewer than ``target_rows`` hashes, a new one if need be
    all full, no new one     spread over the buckets there are (``max_buckets``)

With ``initial_buckets`` = k above 1 the new hashes of a partition are spread at once: the remainder of the hash says which of
the buckets r, r + k, r + 2k, … it may go to. Keys with equal hashes share a bucket, so a key never lies in two.

Memory: 8 bytes a hash, and as much again while hashes are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablestore.errors import FormatError, InvalidInputError
from tablestore.format.bucket import Hashes
from tablestore.types.sortedsets import distinct

Buckets = npt.NDArray[np.int32]

NO_BUCKET = -1
# Others keep bucket numbers in 16 bits.
MOST_BUCKETS = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPolicy:
    """The rule by which new buckets are created. ``max_buckets`` None: one whenever the others are full."""

    target_rows: int = 2_000_000
    initial_buckets: int = 1
    max_buckets: int | None = None


class BucketMap:
    """The buckets of one partition's hashes."""

    __slots__ = ("_buckets", "_counts", "_hashes")

    def __init__(self) -> None:
        self._hashes: Hashes = np.empty(0, np.int32)
        self._buckets: Buckets = np.empty(0, np.int32)
        self._counts = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._hashes)

    @classmethod
    def of(cls, parts: Mapping[int, Hashes], where: str) -> "BucketMap":
        """Builds the map from the distinct hashes of each bucket. FormatError if one lies in two buckets: a key could then do
        so too."""
        bucket_map = cls()
        buckets = [np.full(len(hashes), bucket, np.int32) for bucket, hashes in parts.items()]
        bucket_map._add(np.concatenate([*parts.values(), bucket_map._hashes]), np.concatenate([*buckets, bucket_map._buckets]))
        if (bucket_map._hashes[1:] == bucket_map._hashes[:-1]).any():
            raise FormatError(
                f"{where}: the hash index has a key in two buckets, so rows written now might be doubled; overwrite the partition, "
                "which builds the index anew",
                kind="hash-index",
            )
        return bucket_map

    def find(self, hashes: Hashes) -> Buckets:
        """The bucket of each hash, ``NO_BUCKET`` (-1) for those that have none. Fastest for sorted hashes."""
        if not len(self._hashes):
            return np.full(len(hashes), NO_BUCKET, np.int32)
        places = np.searchsorted(self._hashes, hashes)
        places[places == len(self._hashes)] = 0
        buckets: Buckets = np.where(self._hashes[places] == hashes, self._buckets[places], np.int32(NO_BUCKET))
        return buckets

    def assign(self, hashes: Hashes, policy: BucketPolicy) -> Buckets:
        """The bucket of each hash; those that have none get one, for good."""
        keys, inverse = np.unique(hashes, return_inverse=True)
        buckets = self.find(keys)
        new = np.flatnonzero(buckets == NO_BUCKET)
        if len(new):
            buckets[new] = self._place(keys[new], policy)
            self._add(keys[new], buckets[new])
        assigned: Buckets = buckets[inverse]
        return assigned

    def _place(self, hashes: Hashes, policy: BucketPolicy) -> Buckets:
        """Buckets for new hashes."""
        groups = policy.initial_buckets if policy.max_buckets is None else min(policy.initial_buckets, policy.max_buckets)
        if groups == 1:
            return self._fill(len(hashes), 0, 1, policy)
        placed = np.empty(len(hashes), np.int32)
        group_of = np.mod(hashes.astype(np.int64), groups)
        for group in distinct(group_of).tolist():
            members = np.flatnonzero(group_of == group)
            placed[members] = self._fill(len(members), group, groups, policy)
        return placed

    def _fill(self, count: int, group: int, groups: int, policy: BucketPolicy) -> Buckets:
        limit = MOST_BUCKETS if policy.max_buckets is None else min(policy.max_buckets, MOST_BUCKETS)
        needed = len(self._counts) + groups * (count // policy.target_rows + 2)
        buckets = np.arange(group, min(needed, limit), groups, dtype=np.int32)
        row_counts = np.zeros(len(buckets), np.int64)
        existing = buckets < len(self._counts)
        row_counts[existing] = self._counts[buckets[existing]]
        filled = np.repeat(buckets, np.minimum(np.maximum(policy.target_rows - row_counts, 0), count))[:count]
        if len(filled) == count:
            return filled
        if policy.max_buckets is None:
            raise InvalidInputError(
                f"the rows of one partition need more than {MOST_BUCKETS} buckets of {policy.target_rows} rows: raise "
                "dynamic-bucket.target-row-num, or partition the table",
                kind="too-many-buckets",
            )
        return np.concatenate([filled, np.resize(buckets, count - len(filled))])

    def _add(self, hashes: Hashes, buckets: Buckets) -> None:
        # Both parts are sorted, or nearly so: a stable sort merges them.
        all_hashes = np.concatenate([self._hashes, hashes])
        order = np.argsort(all_hashes, kind="stable")
        self._hashes = all_hashes[order]
        self._buckets = np.concatenate([self._buckets, buckets])[order]
        added = np.bincount(buckets, minlength=len(self._counts)).astype(np.int64)
        added[: len(self._counts)] += self._counts
        self._counts = added
