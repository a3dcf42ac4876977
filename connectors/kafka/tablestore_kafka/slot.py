"""Sends to the topic in transactions, with one producer per slot.

begin -> produce … -> commit ─ done
            │            ├ timed out: the same commit again, until the deadline (its outcome is then known), or until it is in
            │            vain: no broker answers, or the topic is gone
            │            └ abortable: abort, StorageError
            └ fenced: SlotFenced, the present holder of the slot does the work

A broker that dies between acknowledging a commit and writing its markers can come back with the transaction complete in its books
and open in the partitions (seen with Apache Kafka 4.3.1 and one broker). Nobody ends such a transaction, and readers see nothing
behind its first record. The next transaction of the same slot ends it too, so an aborted one clears the way.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tablestore.clock import Clock
from tablestore.log.record import (
    KIND_HEADER,
    LOCATION_HEADER,
    ORDINAL_HEADER,
    SNAPSHOT_HEADER,
    TABLE_HEADER,
    UUID_HEADER,
    LogRecords,
    Offsets,
)
from tablestore.types.rowkind import RowKind
from tablestore_kafka.client import LOG, code_of, create_client, translated
from tablestore_kafka.clientsettings import BOOTSTRAP

_COMMIT_TRY_S = 5.0
_LOOK_S = 2.0
# A commit is given up when it was in vain to look so often in a row.
_SILENT_TRIES = 3
_QUEUE_FULL_WAIT_S = 0.05
# The kinds of records that no reader of committed records ever sees.
_ABORTED, _CLAIM = b"aborted", b"claim"
_KINDS = [kind.symbol.encode() for kind in RowKind]


class KafkaSlot:
    """A transactional producer of one slot."""

    def __init__(
        self,
        topic: str,
        transactional_id: str,
        settings: Mapping[str, Any],
        *,
        clock: Clock,
        timeout_s: float,
        record_bytes: int,
    ) -> None:
        self._topic, self._id, self._clock, self._timeout_s = topic, transactional_id, clock, timeout_s
        self._servers = str(settings[BOOTSTRAP])
        self._record_bytes = record_bytes
        self._behind: dict[int, int] = {}
        self._producer = create_client(lambda: Producer(dict(settings), logger=LOG), settings)
        try:
            self._producer.init_transactions(timeout_s)
        except KafkaException as error:
            raise translated(error, f"taking over publisher slot {transactional_id}", self._servers) from error

    @property
    def max_record_bytes(self) -> int | None:
        """Bytes of key and value that the producer and the topic take."""
        return self._record_bytes

    def claim(self, bucket: int, *, table: str, location: str) -> None:
        """Sends a record that says whose topic it is, and aborts it."""
        headers = [(TABLE_HEADER, table.encode()), (LOCATION_HEADER, location.encode()), (KIND_HEADER, _CLAIM)]
        self._send_in_vain([bucket], headers, f"claiming topic {self._topic} as {self._id}")

    def publish(self, records: Iterable[LogRecords], *, table: str, location: str | None = None) -> Offsets:
        """Sends records in one transaction. ``table`` is the uuid that every record carries."""
        doing = f"publishing to topic {self._topic} as {self._id}"
        self._behind.clear()
        try:
            self._producer.begin_transaction()
            for batch in records:
                self._send(batch, table.encode(), location)
            self._commit()
            return dict(self._behind)
        # A delivery report that meets a fatal error surfaces as SystemError.
        except (KafkaException, SystemError) as error:
            why = self._abort()
            # Records that meet a fatal error say no more than that; what it was, the transaction knows.
            shown = why if why is not None and code_of(error) == KafkaError._FATAL else error
            raise translated(shown, doing, self._servers) from error

    def abort_what_hangs(self, buckets: Sequence[int]) -> None:
        """Ends the transactions of this slot's predecessors that are still open in these buckets; nothing of them is visible."""
        self._send_in_vain(buckets, [(KIND_HEADER, _ABORTED)], f"ending open transactions of topic {self._topic} as {self._id}")

    def _send_in_vain(self, buckets: Sequence[int], headers: list[tuple[str, bytes]], doing: str) -> None:
        """Sends a record without a key or value to each bucket, and aborts that."""
        try:
            self._producer.begin_transaction()
            for bucket in buckets:
                self._producer.produce(self._topic, partition=bucket, headers=[*headers])
            # Without a record in the partition the marker would not reach it.
            self._producer.flush(self._timeout_s)
            self._producer.abort_transaction(self._timeout_s)
        except (KafkaException, SystemError) as error:
            raise translated(error, doing, self._servers) from error

    def close(self) -> None:
        """Gives up the connection; an open transaction is aborted by the broker or the next holder of the slot."""
        # Of a producer that was fenced even this fails; there is nothing left to do for it. That a transaction could not be
        # aborted was said before.
        with suppress(KafkaException, SystemError), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            self._producer.close()

    def _send(self, batch: LogRecords, table: bytes, location: str | None = None) -> None:
        snapshot = str(batch.snapshot_id).encode()
        ordinals = pa.array(batch.ordinals).cast(pa.string()).cast(pa.binary()).to_pylist()
        produce, topic, bucket, millis = self._producer.produce, self._topic, batch.bucket, batch.time_millis
        # The client takes one record at a time; everything that can be done for all of them at once is done before.
        last = len(batch) - 1
        for position, (key, value, ordinal, kind) in enumerate(
            zip(batch.keys, batch.values, ordinals, batch.kinds.tolist(), strict=True)
        ):
            # A report per record would cost as much as sending it: the last one says where the batch ends.
            reports = {"on_delivery": self._note_position} if position == last else {}
            headers = [(TABLE_HEADER, table), (SNAPSHOT_HEADER, snapshot), (ORDINAL_HEADER, ordinal), (KIND_HEADER, _KINDS[kind])]
            if position == last:
                # Whoever looks at the end of a partition learns from it whose it is.
                texts = {UUID_HEADER: batch.snapshot_uuid, LOCATION_HEADER: location}
                headers += [(name, text.encode()) for name, text in texts.items() if text is not None]
            while True:
                try:
                    produce(topic, value, key, bucket, timestamp=millis, headers=headers, **reports)
                    break
                except BufferError:
                    self._producer.poll(_QUEUE_FULL_WAIT_S)

    def _note_position(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._behind[message.partition() or 0] = (message.offset() or 0) + 1

    def _commit(self) -> None:
        deadline_s = self._clock.steady_s() + self._timeout_s
        silent = 0
        while True:
            try:
                self._producer.commit_transaction(_COMMIT_TRY_S)
                return
            except KafkaException as error:
                cause = error.args[0]
                if not (isinstance(cause, KafkaError) and cause.retriable()) or self._clock.steady_s() >= deadline_s:
                    raise
                silent = 0 if self._answers() else silent + 1
                if silent == _SILENT_TRIES:
                    raise

    def _answers(self) -> bool:
        try:
            metadata = self._producer.list_topics(self._topic, timeout=_LOOK_S)
        except KafkaException:
            return False
        # A topic that was deleted is waited for in vain, too.
        return metadata.topics[self._topic].error is None

    def _abort(self) -> Exception | None:
        """Aborts the transaction; returns the reason if that cannot be done."""
        try:
            self._producer.abort_transaction(_COMMIT_TRY_S)
        except (KafkaException, SystemError) as error:
            # Fatal, or the broker is away: the next holder of the slot aborts it. Closing would wait for what is still to be sent.
            self._producer.purge()
            return error
        return None
