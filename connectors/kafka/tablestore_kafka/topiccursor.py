"""Reads the topic from given positions, many records at a time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tablestore.log.logstore import LogTruncated
from tablestore.log.record import (
    KIND_HEADER,
    LOCATION_HEADER,
    ORDINAL_HEADER,
    SNAPSHOT_HEADER,
    TABLE_HEADER,
    UUID_HEADER,
    Mark,
    Offsets,
    RawRecords,
    Tail,
)
from tablestore.types.rowkind import RowKind
from tablestore_kafka.client import consume, translated

_KINDS = {kind.symbol.encode(): int(kind) for kind in RowKind}
_SHORT = 16
# The client makes an object of every record. So many at a time stay in the processor's cache until they are taken apart.
_AT_ONCE = 500
_LOST = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._NO_OFFSET)


Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Described:
    """The facts that a record's headers say of it; all None for a record of somebody else."""

    table: bytes | None
    mark: Mark | None
    kind: int


def describe(message: Message) -> Described:
    """The headers of one record."""
    headers = _headers(message)
    snapshot, ordinal = headers.get(SNAPSHOT_HEADER, b""), headers.get(ORDINAL_HEADER, b"")
    mark = Mark(int(snapshot), int(ordinal)) if snapshot.isdigit() and ordinal.isdigit() else None
    return Described(headers.get(TABLE_HEADER), mark, _KINDS.get(headers.get(KIND_HEADER, b""), -1))


def tail_of(message: Message) -> Tail:
    """The record as the last one of its partition."""
    headers, described = _headers(message), describe(message)
    return Tail(
        table=described.table,
        mark=described.mark,
        next_offset=(message.offset() or 0) + 1,
        snapshot_uuid=_header_text(headers, UUID_HEADER),
        location=_header_text(headers, LOCATION_HEADER),
    )


class KafkaCursor:
    """A consumer with fixed partitions, outside of any group."""

    def __init__(self, consumer: Consumer, topic: str, offsets: Offsets, servers: str, *, dense: bool, keys: bool = False) -> None:
        self._consumer, self._topic, self._servers, self._dense, self._keys = consumer, topic, servers, dense, keys
        # -1 is no partition.
        self._only = next(iter(offsets)) if len(offsets) == 1 else -1
        try:
            consumer.assign([TopicPartition(topic, bucket, offset) for bucket, offset in offsets.items()])
        except KafkaException as error:
            consumer.close()
            raise translated(error, f"reading topic {topic}", servers) from error

    def poll(self, timeout_s: float, max_records: int) -> Sequence[RawRecords]:
        """The records that are visible now; waits only while there is none."""
        by_bucket: dict[int, list[RawRecords | _Stretch]] = defaultdict(list)
        count = 0
        while count < max_records:
            wait_s, most = 0 if count else timeout_s, min(_AT_ONCE, max_records - count)
            messages = consume(self._consumer, most, timeout_s=wait_s, topic=self._topic, servers=self._servers)
            if not messages:
                break
            count += len(messages)
            if (parts := by_bucket.get(self._only)) and isinstance(parts[-1], _Stretch) and parts[-1].takes(messages):
                continue
            for part in self._taken_apart(messages):
                by_bucket[part.bucket].append(part)
        return [_joined(parts) for _, parts in sorted(by_bucket.items())]

    def _taken_apart(self, messages: Sequence[Message]) -> Iterator["RawRecords | _Stretch"]:
        if self._only >= 0 and self._dense and not self._keys and (whole := _stretch(self._only, messages)) is not None:
            yield whole
            return
        by_bucket: dict[int, list[Message]] = defaultdict(list)
        for message in messages:
            if (fault := message.error()) is None:
                by_bucket[message.partition() or 0].append(message)
            elif fault.code() in _LOST:
                raise LogTruncated(
                    f"partition {message.partition()} of topic {self._topic} no longer holds the position asked for: its retention "
                    "has passed; read the changes from the table's snapshots instead",
                )
            elif not fault.retriable() and fault.code() != KafkaError._PARTITION_EOF:
                raise translated(KafkaException(fault), f"reading topic {self._topic}", self._servers)
        for bucket, bucket_messages in by_bucket.items():
            yield _records(bucket, bucket_messages, dense=self._dense, all_keys=self._keys)

    def close(self) -> None:
        """Gives up the connection."""
        self._consumer.close()


def _records(bucket: int, messages: Sequence[Message], *, dense: bool, all_keys: bool) -> RawRecords:
    # The client hands out objects: what they hold is taken out once, into columns.
    count = len(messages)
    offsets = np.fromiter((message.offset() for message in messages), dtype=np.int64, count=count)
    columns = _Columns(messages)
    columns.fill(0, count, dense=dense)
    keys, values = _contents(messages, all_keys=all_keys)
    return RawRecords(
        bucket=bucket,
        offsets=offsets,
        tables=columns.tables,
        snapshots=columns.snapshots,
        ordinals=columns.ordinals,
        kinds=columns.kinds,
        keys=keys,
        values=values,
        next_offset=int(offsets[-1]) + 1,
    )


@dataclass(slots=True)
class _Stretch:
    """Records that follow one another without a gap, in offsets and in ordinals, from ``begin`` and ``mark`` on."""

    bucket: int
    begin: int
    table: bytes | None
    mark: Mark
    keys: list[bytes | None]
    values: list[bytes | None]

    def takes(self, messages: Sequence[Message]) -> bool:
        """Takes the messages if they are more of this stretch."""
        last = messages[-1]
        apart = len(self.values) + len(messages) - 1
        if last.error() is not None or last.offset() != self.begin + apart:
            return False
        described = describe(last)
        if described.table != self.table or described.mark != Mark(self.mark.snapshot_id, self.mark.ordinal + apart):
            return False
        keys, values = _contents(messages, all_keys=False)
        self.keys += keys
        self.values += values
        return True

    def records(self) -> RawRecords:
        """The records as columns."""
        count = len(self.values)
        return RawRecords(
            bucket=self.bucket,
            offsets=np.arange(self.begin, self.begin + count),
            tables=[self.table] * count,
            snapshots=np.full(count, self.mark.snapshot_id, dtype=np.int64),
            ordinals=np.arange(self.mark.ordinal, self.mark.ordinal + count),
            kinds=np.full(count, -1, dtype=np.int8),
            keys=self.keys,
            values=self.values,
            next_offset=self.begin + count,
        )


def _stretch(bucket: int, messages: Sequence[Message]) -> _Stretch | None:
    """The messages as a stretch; None unless the first and the last one prove that they are one.

    Their ordinals (of a snapshot that leaves none out) and their offsets are as far apart as there are messages: then nothing
    else, no fault either, lies between them, and nobody needs to look at the headers of those in the middle.
    """
    apart, first, last = len(messages) - 1, messages[0], messages[-1]
    if first.error() is not None or last.error() is not None:
        return None
    begin, end = first.offset() or 0, last.offset() or 0
    low, high = describe(first), describe(last)
    if low.mark is None or end - begin != apart or low.table != high.table:
        return None
    if high.mark != Mark(low.mark.snapshot_id, low.mark.ordinal + apart):
        return None
    keys, values = _contents(messages, all_keys=False)
    return _Stretch(bucket, begin, low.table, low.mark, keys, values)


def _contents(messages: Sequence[Message], *, all_keys: bool) -> tuple[list[bytes | None], list[bytes | None]]:
    values = [message.value() for message in messages]
    # Faster than looking for None, which asks every value whether it equals it.
    if not all_keys and all(values):
        # A key is only needed where it is all that there is.
        return [None] * len(values), values
    return [message.key() if all_keys or value is None else None for value, message in zip(values, messages, strict=True)], values


def _joined(parts: Sequence["RawRecords | _Stretch"]) -> RawRecords:
    batches = [part.records() if isinstance(part, _Stretch) else part for part in parts]
    return batches[0] if len(batches) == 1 else _concatenated(batches)


def _concatenated(parts: Sequence[RawRecords]) -> RawRecords:
    return RawRecords(
        bucket=parts[0].bucket,
        offsets=np.concatenate([part.offsets for part in parts]),
        tables=[table for part in parts for table in part.tables],
        snapshots=np.concatenate([part.snapshots for part in parts]),
        ordinals=np.concatenate([part.ordinals for part in parts]),
        kinds=np.concatenate([part.kinds for part in parts]),
        keys=[key for part in parts for key in part.keys],
        values=[value for part in parts for value in part.values],
        next_offset=parts[-1].next_offset,
    )


class _Columns:
    """The values of the headers of some messages, as columns. Unpacking headers costs more than all the rest of reading."""

    def __init__(self, messages: Sequence[Message]) -> None:
        count = len(messages)
        self._messages = messages
        self.tables: list[bytes | None] = [None] * count
        self.snapshots: Numbers = np.full(count, -1, dtype=np.int64)
        self.ordinals: Numbers = np.full(count, -1, dtype=np.int64)
        self.kinds: npt.NDArray[np.int8] = np.full(count, -1, dtype=np.int8)

    def fill(self, start: int, stop: int, *, dense: bool) -> None:
        """Fills in the messages ``start`` to ``stop``.

        ``dense``: the ordinals of a snapshot have no gaps. Then a stretch whose ends are as many ordinals apart as it has
        messages holds every one of them and nothing else, and those between need not be looked at.
        """
        if not dense or stop - start <= _SHORT:
            for position in range(start, stop):
                self._fill_one(position)
            return
        first, last = self._fill_one(start), self._fill_one(stop - 1)
        is_one_table = first.mark is not None and last.mark is not None and first.table == last.table
        if is_one_table and first.mark is not None and last.mark is not None:
            apart = last.mark.ordinal - first.mark.ordinal
            if first.mark.snapshot_id == last.mark.snapshot_id and apart == stop - 1 - start:
                self.tables[start:stop] = [first.table] * (stop - start)
                self.snapshots[start:stop] = first.mark.snapshot_id
                self.ordinals[start:stop] = np.arange(first.mark.ordinal, last.mark.ordinal + 1)
                return
        middle = (start + stop) // 2
        self.fill(start, middle, dense=True)
        self.fill(middle, stop, dense=True)

    def _fill_one(self, position: int) -> Described:
        described = describe(self._messages[position])
        self.tables[position] = described.table
        if described.mark is not None:
            self.snapshots[position], self.ordinals[position] = described.mark.snapshot_id, described.mark.ordinal
        self.kinds[position] = described.kind
        return described


def _headers(message: Message) -> dict[str, bytes]:
    # The client's stubs promise less than it gives: a list of pairs, or None.
    pairs: Any = message.headers()
    return {name: value for name, value in pairs or () if isinstance(value, bytes)}


def _header_text(headers: dict[str, bytes], name: str) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode(errors="replace")
