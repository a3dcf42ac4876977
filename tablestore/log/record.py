"""Log records: changes of one bucket, each with its place in the table's history.

A change is named by (snapshot, ordinal): the snapshot that made it, and its running number among the changes of that snapshot in
its bucket. Records are handed around in batches of one bucket.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablestore.types.arrays import Kinds

Ordinals = npt.NDArray[np.int64]

# Stored in every record, never renamed. Values are text, numbers in decimal.
TABLE_HEADER = "table"
SNAPSHOT_HEADER = "snapshot"
ORDINAL_HEADER = "ordinal"
KIND_HEADER = "row-kind"
# Headers of the last record sent together of one bucket and snapshot: which snapshot of that id, and where the table lies.
UUID_HEADER = "snapshot-uuid"
LOCATION_HEADER = "location"

# In a row that was sent while it was written, before its snapshot (log.consistency = eventual), this takes the place of the
# snapshot, and the id of the schema that of the ordinal. Snapshots count from 1.
EARLY_SNAPSHOT = 0
# Ordinals from here on take back early rows: what the table holds for their keys, behind all changes of the snapshot.
FIRST_REPAIR = 2**62


def sizes_of(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> npt.NDArray[np.int64]:
    """Bytes of the key and value of each record."""
    # The client's own objects: there is no array of them.
    of_keys = np.fromiter((len(key) if key else 0 for key in keys), dtype=np.int64, count=len(keys))
    return of_keys + np.fromiter((len(value) if value else 0 for value in values), dtype=np.int64, count=len(values))


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in one bucket's changes: everything up to and including this change."""

    snapshot_id: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecords:
    """Encoded changes of one bucket and one snapshot, ascending by ordinal. The sequences are of one length.

    ``snapshot_uuid`` identifies the snapshot among all that ever had its id.
    """

    bucket: int
    snapshot_id: int
    time_millis: int
    ordinals: Ordinals
    kinds: Kinds
    keys: list[bytes | None]
    values: list[bytes | None]
    snapshot_uuid: str | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Bytes of the key and value of each record."""
        return sizes_of(self.keys, self.values)

    def behind(self, mark: Mark | None) -> "LogRecords":
        """The changes that come after ``mark``, alone."""
        if mark is None or mark.snapshot_id < self.snapshot_id:
            return self
        start = (
            int(np.searchsorted(self.ordinals, mark.ordinal, side="right")) if mark.snapshot_id == self.snapshot_id else len(self)
        )
        return self.slice(start, len(self))

    def slice(self, start: int, stop: int) -> "LogRecords":
        """The records ``start`` to ``stop`` (exclusive), without a copy of their rows."""
        return LogRecords(
            bucket=self.bucket,
            snapshot_id=self.snapshot_id,
            time_millis=self.time_millis,
            ordinals=self.ordinals[start:stop],
            kinds=self.kinds[start:stop],
            keys=self.keys[start:stop],
            values=self.values[start:stop],
            snapshot_uuid=self.snapshot_uuid,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecords:
    """The records that a reader found in one bucket, in the order of the log, not yet decoded.

    ``offsets`` are positions in the log; ``snapshots``, ``ordinals`` and ``kinds`` are -1 and ``tables`` None where a record says
    nothing of them (others may write to a topic too). ``keys`` are given where there is no value. ``next_offset`` is where to go
    on, also behind records that were skipped.
    """

    bucket: int
    offsets: Ordinals
    tables: list[bytes | None]
    snapshots: Ordinals
    ordinals: Ordinals
    kinds: Kinds
    keys: list[bytes | None]
    values: list[bytes | None]
    next_offset: int

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The last record that readers see in one bucket of the log; ``empty`` if they see none.

    ``table`` and ``mark`` are None for a record that no tablestore has written. ``next_offset`` is the position behind the record;
    of an empty bucket, the first one that there is. ``snapshot_uuid`` and ``location`` are None where the record does not say.
    """

    table: bytes | None = None
    mark: Mark | None = None
    next_offset: int
    empty: bool = False
    snapshot_uuid: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """The place in one bucket of the log where the changes at or after a time begin.

    ``mark`` and ``time_millis`` are those of the first record that readers see of them; None if there is none, ``offset`` is then
    the end. ``whole``: none of them has been lost to retention.
    """

    offset: int
    mark: Mark | None = None
    time_millis: int | None = None
    whole: bool


Offsets = Mapping[int, int]
"""Position in the log by bucket: that of the next record."""
