"""Reading the topic from given positions, many records at a time."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tablestore.log.logstore import LogTruncated
from tablestore.log.record import KIND_HEADER, ORDINAL_HEADER, SNAPSHOT_HEADER, TABLE_HEADER, Mark, Offsets, RawRecords
from tablestore.types.rowkind import RowKind
from tablestore_kafka.client import translated

_KINDS = {kind.symbol.encode(): int(kind) for kind in RowKind}
_LOST = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._NO_OFFSET)


@dataclass(frozen=True, slots=True)
class Described:
    """What a record says of itself; all None for a record of somebody else."""

    table: bytes | None
    mark: Mark | None
    kind: int


def describe(message: Message) -> Described:
    """The headers of one record."""
    headers = _headers(message)
    snapshot, ordinal = headers.get(SNAPSHOT_HEADER, b""), headers.get(ORDINAL_HEADER, b"")
    mark = Mark(int(snapshot), int(ordinal)) if snapshot.isdigit() and ordinal.isdigit() else None
    return Described(headers.get(TABLE_HEADER), mark, _KINDS.get(headers.get(KIND_HEADER, b""), -1))


class KafkaCursor:
    """A consumer with fixed partitions, outside of any group."""

    def __init__(self, consumer: Consumer, topic: str, offsets: Offsets, servers: str) -> None:
        self._consumer, self._topic, self._servers = consumer, topic, servers
        try:
            consumer.assign([TopicPartition(topic, bucket, offset) for bucket, offset in offsets.items()])
        except KafkaException as error:
            consumer.close()
            raise translated(error, f"reading topic {topic}", servers) from error

    def poll(self, timeout_s: float, max_records: int) -> Sequence[RawRecords]:
        """What is visible now; waits only while there is nothing."""
        try:
            messages = self._consumer.consume(max_records, timeout=0)
            if not messages and (first := self._consumer.poll(timeout_s)) is not None:
                # consume() would wait for the whole number: the rest is what has come with the first.
                messages = [first, *(self._consumer.consume(max_records - 1, timeout=0) if max_records > 1 else ())]
        except KafkaException as error:
            raise translated(error, f"reading topic {self._topic}", self._servers) from error
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
        return [_records(bucket, found) for bucket, found in sorted(by_bucket.items())]

    def close(self) -> None:
        """Give up the connection."""
        self._consumer.close()


def _records(bucket: int, messages: Sequence[Message]) -> RawRecords:
    # The client hands out objects: what they hold is taken out once, into columns.
    offsets = np.fromiter((message.offset() for message in messages), dtype=np.int64, count=len(messages))
    headers = [_headers(message) for message in messages]
    return RawRecords(
        bucket=bucket,
        offsets=offsets,
        tables=[header.get(TABLE_HEADER) for header in headers],
        snapshots=_numbers([header.get(SNAPSHOT_HEADER) for header in headers]),
        ordinals=_numbers([header.get(ORDINAL_HEADER) for header in headers]),
        kinds=np.fromiter((_KINDS.get(header.get(KIND_HEADER, b""), -1) for header in headers), dtype=np.int8, count=len(headers)),
        times=np.fromiter((message.timestamp()[1] for message in messages), dtype=np.int64, count=len(messages)),
        keys=[message.key() for message in messages],
        values=[message.value() for message in messages],
        next_offset=int(offsets[-1]) + 1,
    )


def _headers(message: Message) -> dict[str, bytes]:
    # The client's stubs promise less than it gives: a list of pairs, or None.
    found: Any = message.headers()
    return {name: value for name, value in found or () if isinstance(value, bytes)}


def _numbers(texts: Sequence[bytes | None]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.fromiter((int(text) if text and text.isdigit() else -1 for text in texts), dtype=np.int64, count=len(texts))
