"""The log store protocol: what a log system outside of the file store must be able to do, which connectors implement.

    create -> slots -> publish -> close            drop
                 │
                 └ fences whoever held the slot before

The log of one table has one partition per bucket. It is written through *slots*: a slot owns the buckets b with
``b mod slots == slot``, and opening it ends whatever a predecessor was about to do. What one ``publish`` sends becomes visible to
readers together or not at all. The log is derived from the table's snapshots and can be made again from them, so nothing here
decides what the table holds.

Errors: NotFoundError (no such log), AlreadyExistsError, SlotFenced (another process has taken the slot: leave), StorageError
(the system does not answer: try again later), LogTruncated (its retention has passed), InvalidInputError (settings, partitions).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from tablestore.errors import ConflictError, NotFoundError
from tablestore.log.record import LogRecords, Offsets, RawRecords, Since, Tail


class SlotFenced(ConflictError):
    """Another process has opened this slot; nothing of the interrupted publish is visible."""

    default_kind = "fenced"


class LogTruncated(NotFoundError):
    """The log no longer holds the position asked for: its retention has passed."""

    default_kind = "log-truncated"


class LogSlot(Protocol):
    """The right to write to the buckets of one slot. Not thread-safe."""

    @property
    def max_record_bytes(self) -> int | None:
        """Key and value of a record may have so many bytes together, as the log itself said when the slot was opened; None if it
        did not say."""
        ...

    def claim(self, bucket: int, *, table: str, location: str) -> None:
        """Say in a bucket whose log it is, the table with this uuid in this place: for tails that look at what was given up.

        No reader of visible records sees it. Raises SlotFenced, StorageError.
        """
        ...

    def publish(self, records: Iterable[LogRecords], *, table: str, location: str | None = None) -> Offsets:
        """Send records of the table with this uuid, visible together; the position behind them in each bucket.

        ``location``: where the table lies, which the last record of each batch carries.

        Raises SlotFenced, StorageError, InvalidInputError of kind ``log-record-too-large``; after an error the slot must be opened
        again.
        """
        ...

    def close(self) -> None:
        """Give up the connection. What was not published is not visible."""
        ...


class LogCursor(Protocol):
    """Reads on from given positions. Not thread-safe."""

    def poll(self, timeout_s: float, max_records: int) -> Sequence[RawRecords]:
        """The records that have become visible since: at most ``max_records``, per bucket in order; empty after ``timeout_s``
        without any."""
        ...

    def close(self) -> None:
        """Give up the connection."""
        ...


class LogStore(Protocol):
    """The log of one table."""

    @property
    def name(self) -> str:
        """The name that people call it by: a topic name."""
        ...

    @property
    def max_record_bytes(self) -> int | None:
        """Key and value of a record may have so many bytes together, by the settings alone; None if they do not say."""
        ...

    def answers(self, timeout_s: float) -> bool:
        """True if the log system can be reached within so long."""
        ...

    def create(self, *, partitions: int, retention_ms: int | None, ignore_if_exists: bool) -> bool:
        """Make the log; False if it was there and may be used. Raises AlreadyExistsError, InvalidInputError, StorageError."""
        ...

    def retain(self, retention_ms: int | None) -> None:
        """Keep changes for so long from now on; None: as long as the system does by itself. The limit of records becomes that of
        this store's settings. Raises NotFoundError, StorageError."""
        ...

    def drop(self, *, ignore_if_not_exists: bool) -> None:
        """Remove the log and its records."""
        ...

    def incarnation(self, *, partitions: int) -> str:
        """Identifies this log among all that ever had its name. Raises NotFoundError, InvalidInputError (partition count)."""
        ...

    def open_slot(self, slot: int, buckets: Sequence[int], *, timeout_s: float) -> LogSlot:
        """Take over a slot: ends the transactions of its last holder, also where the system has lost track of it in these
        buckets.

        What was not visible before may be gone afterwards: only the tails say what the log holds. Raises StorageError.
        """
        ...

    def tails(self, buckets: Sequence[int], *, uncommitted: bool = False) -> dict[int, Tail]:
        """The last visible record of each bucket. ``uncommitted``: the last one of all, also where its publish was given up."""
        ...

    def bounds(self, buckets: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Per bucket the positions of the first record that is still there and behind the last one that is visible."""
        ...

    def since(self, time_millis: int, buckets: Sequence[int], *, table: bytes) -> dict[int, Since]:
        """The positions where the records of a table (its uuid) at or after a time begin, per bucket. Raises NotFoundError,
        StorageError."""
        ...

    def open_cursor(self, offsets: Offsets, *, dense: bool = False, keys: bool = False, uncommitted: bool = False) -> LogCursor:
        """Read on from these positions.

        ``dense``: within a snapshot and bucket no ordinal is left out, and row kinds need not be given beyond what values say:
        a cursor may then leave most headers unread. ``keys``: give the key of every record. ``uncommitted``: also records of a
        publish that is still going on, or was given up.
        """
        ...


def cut_into_transactions(records: Iterable[LogRecords], *, max_records: int, max_bytes: int) -> Iterator[list[LogRecords]]:
    """Records in groups of at most so many records and bytes of keys and values, in order; a record above the bound is alone."""
    group: list[LogRecords] = []
    count = size = 0
    for batch in records:
        ends, start = np.cumsum(batch.sizes), 0
        while start < len(batch):
            before = int(ends[start - 1]) if start else 0
            fits = int(np.searchsorted(ends, before + max_bytes - size, side="right"))
            stop = min(len(batch), start + max_records - count, max(fits, start if group else start + 1))
            if stop > start:
                group.append(batch if start == 0 and stop == len(batch) else batch.slice(start, stop))
                count += stop - start
                size += int(ends[stop - 1]) - before
                start = stop
            if start < len(batch) or count >= max_records or size >= max_bytes:
                yield group
                group, count, size = [], 0, 0
    if group:
        yield group
