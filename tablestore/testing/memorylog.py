"""A log store in this process: what it promises is in ``tablestore.testing.contracts.logstore``.

    broker = MemoryBroker("b1")          log.kafka.bootstrap.servers = b1
    broker.silent = True                 nobody answers
    broker.limit("shop.t", 50_000)       as an administrator does: the log takes no larger records from now on

A partition is a list of entries. A publish appends open entries and ends with a marker, which takes a position too: its entries are
then visible, or given up for good. Stores of one address share one broker, as files of one name do in ``MemoryFileStore``.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from itertools import count
from typing import Any

import numpy as np
import pytest

from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from tablestore.log.connector import GROUP
from tablestore.log.logstore import SlotFenced
from tablestore.log.record import LogRecords, Mark, Offsets, RawRecords, Since, Tail
from tablestore.log.recordlimit import RecordTooLarge

DEFAULT_RECORD_BYTES = 1_000_000
_brokers: dict[str, "MemoryBroker"] = {}
_ids = count(1)


@dataclass(slots=True)
class _Entry:
    """A record, or the marker of a transaction (``is_marker``)."""

    table: str = ""
    location: str | None = None
    mark: Mark | None = None
    kind: int = -1
    key: bytes | None = None
    value: bytes | None = None
    time_millis: int = 0
    snapshot_uuid: str | None = None
    is_marker: bool = False
    is_open: bool = True
    is_visible: bool = False


@dataclass(slots=True)
class _Topic:
    limit: int
    partitions: list[list[_Entry]]
    id: str = field(default_factory=lambda: f"log-{next(_ids)}")

    def stable(self, bucket: int) -> int:
        """The position of the first entry whose transaction is open, else the end."""
        entries = self.partitions[bucket]
        return next((place for place, entry in enumerate(entries) if entry.is_open), len(entries))


class MemoryBroker:
    """All logs of one address, and who holds their slots."""

    def __init__(self, address: str) -> None:
        self.silent = False
        self.topics: dict[str, _Topic] = {}
        # By the log's name: whoever holds a slot of a log is fenced also where it was dropped and made again.
        self.holders: dict[tuple[str, int], MemorySlot] = {}
        self.address = address
        _brokers[address] = self

    def close(self) -> None:
        """Nobody finds it any more."""
        _brokers.pop(self.address, None)

    def limit(self, name: str, record_bytes: int) -> None:
        """Another limit for the records of a log, from now on."""
        self.topics[name].limit = record_bytes

    def rows(self, name: str) -> list[Any]:
        """The rows that a plain reader of a log is told, bucket by bucket."""
        found = [entry.value for entries in self.topics[name].partitions for entry in entries if entry.is_visible]
        return [json.loads(value)["after"] for value in found if value is not None]

    def topic(self, name: str) -> _Topic:
        """Raises StorageError, NotFoundError."""
        if self.silent:
            raise StorageError(f"the broker {self.address} does not answer; try again later", kind="silent")
        if name not in self.topics:
            raise NotFoundError(f"{self.address} has no log {name}; `tablestore log rebuild` makes it again", kind="no-such-topic")
        return self.topics[name]


class MemoryLogStore:
    """One log of a broker. ``record_bytes``: what the settings say."""

    def __init__(self, broker: MemoryBroker, name: str, record_bytes: int | None = None) -> None:
        self._broker, self.name = broker, name
        self._record_bytes = record_bytes or DEFAULT_RECORD_BYTES

    @property
    def max_record_bytes(self) -> int | None:
        return self._record_bytes

    def answers(self, timeout_s: float) -> bool:
        return not self._broker.silent

    def create(self, *, partitions: int, retention_ms: int | None, ignore_if_exists: bool) -> bool:
        try:
            self._topic()
        except NotFoundError:
            self._broker.topics[self.name] = _Topic(self._record_bytes, [[] for _ in range(partitions)])
            return True
        if not ignore_if_exists:
            raise AlreadyExistsError(f"the log {self.name} exists; drop it, or choose another name", kind="topic-exists")
        self._check(partitions, len(self._topic().partitions) == partitions)
        return False

    def retain(self, retention_ms: int | None) -> None:
        self._topic().limit = self._record_bytes

    def drop(self, *, ignore_if_not_exists: bool) -> None:
        try:
            self._topic()
        except NotFoundError:
            if not ignore_if_not_exists:
                raise
            return
        del self._broker.topics[self.name]

    def incarnation(self, *, partitions: int) -> str:
        topic = self._topic()
        self._check(partitions, len(topic.partitions) >= partitions)
        return topic.id

    def open_slot(self, slot: int, buckets: Sequence[int], *, timeout_s: float) -> "MemorySlot":
        holders, place = self._broker.holders, (self.name, slot)
        if self._broker.silent:
            self._topic()
        if place in holders:
            holders[place].give_up()
        known = self._broker.topics.get(self.name)
        limit = min(self._record_bytes, known.limit) if known is not None else self._record_bytes
        holders[place] = MemorySlot(self._broker, self.name, slot, limit)
        return holders[place]

    def tails(self, buckets: Sequence[int], *, uncommitted: bool = False) -> dict[int, Tail]:
        topic = self._topic()
        return {bucket: _tail(topic.partitions[bucket], uncommitted=uncommitted) for bucket in buckets}

    def bounds(self, buckets: Sequence[int]) -> dict[int, tuple[int, int]]:
        topic = self._topic()
        return {bucket: (0, topic.stable(bucket)) for bucket in buckets}

    def since(self, time_millis: int, buckets: Sequence[int], *, table: bytes) -> dict[int, Since]:
        topic, found = self._topic(), {}
        for bucket in buckets:
            found[bucket] = Since(offset=topic.stable(bucket), whole=True)
            for place, entry in enumerate(topic.partitions[bucket]):
                if entry.is_visible and entry.table.encode() == table and entry.time_millis >= time_millis:
                    found[bucket] = Since(offset=place, mark=entry.mark, time_millis=entry.time_millis, whole=True)
                    break
        return found

    def open_cursor(
        self, offsets: Offsets, *, dense: bool = False, keys: bool = False, uncommitted: bool = False
    ) -> "MemoryCursor":
        return MemoryCursor(self._topic, offsets, keys=keys, uncommitted=uncommitted)

    def _topic(self) -> _Topic:
        return self._broker.topic(self.name)

    def _check(self, partitions: int, is_so: bool) -> None:
        if not is_so:
            raise InvalidInputError(
                f"the log {self.name} does not have {partitions} partition(s); give the table another one", kind="topic-partitions"
            )


class MemorySlot:
    """The holder of a slot, until another one opens it."""

    def __init__(self, broker: MemoryBroker, name: str, number: int, limit: int) -> None:
        self._broker, self._name, self._place = broker, name, (name, number)
        self.max_record_bytes: int | None = limit
        self._open: dict[int, list[_Entry]] = {}

    def claim(self, bucket: int, *, table: str, location: str) -> None:
        self._append(bucket, _Entry(table=table, location=location))
        self.give_up()

    def publish(self, records: Iterable[LogRecords], *, table: str, location: str | None = None) -> Offsets:
        behind = {}
        try:
            for batch in records:
                for place in range(len(batch)):
                    is_last = place == len(batch) - 1
                    behind[batch.bucket] = self._append(batch.bucket, _entry(batch, place, table, location if is_last else None))
            self._topic()
        except BaseException:
            self.give_up()
            raise
        self._end(visible=True)
        return behind

    def close(self) -> None:
        self.give_up()

    def give_up(self) -> None:
        """Nothing of what is open is ever visible."""
        self._end(visible=False)

    def _topic(self) -> _Topic:
        topic = self._broker.topic(self._name)
        if self._broker.holders.get(self._place) is not self:
            raise SlotFenced(f"slot {self._place[1]} of {self._name} was taken over")
        return topic

    def _append(self, bucket: int, entry: _Entry) -> int:
        topic = self._topic()
        if (size := len(entry.key or b"") + len(entry.value or b"")) > topic.limit:
            raise RecordTooLarge(f"a record of {size:,} bytes, the log {self._name} takes {topic.limit:,}; raise its limit")
        self._open.setdefault(bucket, []).append(entry)
        topic.partitions[bucket].append(entry)
        return len(topic.partitions[bucket])

    def _end(self, *, visible: bool) -> None:
        ended, self._open = self._open, {}
        topic = self._broker.topics.get(self._name)
        for bucket, entries in ended.items():
            for entry in entries:
                entry.is_open, entry.is_visible = False, visible
            # The log may be another one by now, where nothing was begun.
            if topic is not None and any(entry is entries[-1] for entry in topic.partitions[bucket]):
                topic.partitions[bucket].append(_Entry(is_marker=True, is_open=False))


class MemoryCursor:
    """Reads on; never waits, since who reads and who writes take turns."""

    def __init__(self, topic: Any, offsets: Offsets, *, keys: bool, uncommitted: bool) -> None:
        self._topic, self._offsets, self._keys, self._uncommitted = topic, dict(offsets), keys, uncommitted

    def poll(self, timeout_s: float, max_records: int) -> Sequence[RawRecords]:
        topic, found = self._topic(), []
        for bucket, begin in self._offsets.items():
            end = len(topic.partitions[bucket]) if self._uncommitted else topic.stable(bucket)
            entries = topic.partitions[bucket]
            seen = [place for place in range(begin, end) if self._is_seen(entries[place])][:max_records]
            if seen:
                found.append(_raw(bucket, entries, seen, keys=self._keys))
                self._offsets[bucket] = seen[-1] + 1
                max_records -= len(seen)
        return found

    def close(self) -> None:
        """Nothing is open."""

    def _is_seen(self, entry: _Entry) -> bool:
        return entry.is_visible or (self._uncommitted and not entry.is_marker)


def open_memory_log(topic: str, properties: Mapping[str, str]) -> MemoryLogStore:
    """Opens, as the entry point says, the log of that name of the broker at that address."""
    limit = properties.get("message.max.bytes")
    return MemoryLogStore(_brokers[properties["bootstrap.servers"]], topic, None if limit is None else int(limit))


@contextmanager
def memory_logs() -> Iterator[None]:
    """The log stores of tables are those of this module, found as others find a connector that is installed."""
    point = EntryPoint(name="kafka", value=f"{__name__}:{open_memory_log.__name__}", group=GROUP)
    with pytest.MonkeyPatch.context() as m:
        m.setattr("tablestore.log.connector.entry_points", lambda group: [point])
        yield


def _entry(batch: LogRecords, place: int, table: str, location: str | None) -> _Entry:
    return _Entry(
        table=table,
        location=location,
        mark=Mark(batch.snapshot_id, int(batch.ordinals[place])),
        kind=int(batch.kinds[place]),
        key=batch.keys[place],
        value=batch.values[place],
        time_millis=batch.time_millis,
        snapshot_uuid=batch.snapshot_uuid if place == len(batch) - 1 else None,
    )


def _tail(entries: Sequence[_Entry], *, uncommitted: bool) -> Tail:
    for place in reversed(range(len(entries))):
        entry = entries[place]
        if entry.is_visible or (uncommitted and not entry.is_marker):
            return Tail(
                table=entry.table.encode(),
                mark=entry.mark,
                next_offset=place + 1,
                snapshot_uuid=entry.snapshot_uuid,
                location=entry.location,
            )
    return Tail(next_offset=0, empty=True)


def _raw(bucket: int, entries: Sequence[_Entry], places: Sequence[int], *, keys: bool) -> RawRecords:
    found = [entries[place] for place in places]
    return RawRecords(
        bucket=bucket,
        offsets=np.array(places, dtype=np.int64),
        tables=[entry.table.encode() for entry in found],
        snapshots=np.array([entry.mark.snapshot_id if entry.mark else -1 for entry in found], dtype=np.int64),
        ordinals=np.array([entry.mark.ordinal if entry.mark else -1 for entry in found], dtype=np.int64),
        kinds=np.array([entry.kind for entry in found], dtype=np.int8),
        keys=[entry.key if keys or entry.value is None else None for entry in found],
        values=[entry.value for entry in found],
        next_offset=places[-1] + 1,
    )
