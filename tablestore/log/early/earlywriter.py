"""Sends the rows of one write to the log before it lands (``log.consistency = eventual``).

    send, send, … ── landed      the outbox follows with the same rows in their place
                  └─ otherwise   the next publish takes them back

At most one write of a host runs ahead at a time; another one that begins meanwhile, or one whose slot was taken over, is published
when it has landed, as every write is. Whatever fails here never fails the write.
"""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import Protocol

import numpy as np
import pyarrow as pa

from tablestore.bounds import TEXT_BYTES
from tablestore.format.bucket import bucket_of
from tablestore.json.jsontext import text_bytes
from tablestore.log.changemessages import encode_changes
from tablestore.log.early.earlypublisher import EarlyPublisher
from tablestore.log.logstore import SlotFenced
from tablestore.log.publish.publishers import SlotPublisher
from tablestore.log.publish.slotlocks import SlotLocks, try_lock
from tablestore.log.record import EARLY_SNAPSHOT, LogRecords
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext
from tablestore.types.rebatch import slices_of

LOG = logging.getLogger(__name__)

# So many rows are encoded at once, if their text is not too much.
_ROWS = 50_000


class Publishing(Protocol):
    """The operations on the log of the written table that early rows need."""

    def use(self, slot: int) -> AbstractContextManager[SlotPublisher]:
        """The publisher of a slot."""
        ...

    def publish(self) -> object:
        """Send the changes that the log lacks, and take back early rows that did not land."""
        ...

    def note_error(self, error: Exception) -> None:
        """The log has failed a writer."""
        ...


class EarlyRows:
    """Sends the rows of one write after another. One writer, one thread."""

    def __init__(self, context: TableContext, settings: LogSettings, publishing: Publishing, locks: SlotLocks) -> None:
        self._context, self._settings, self._publishing = context, settings, publishing
        self._lock = locks.early_writer(context.table_uuid, settings.topic)
        self._begun = self._silent = False

    def send(self, rows: pa.Table, kinds: pa.Array | None) -> None:
        """Send rows that were written, before they land. ``kinds`` None: all are inserts."""
        if self._silent or not rows.num_rows:
            return
        try:
            first = not self._begun
            if first and not self._begin():
                return
            for part in self._records(rows, kinds):
                with self._publishing.use(0) as publisher:
                    assert isinstance(publisher, EarlyPublisher)
                    publisher.send_early(part, first=first)
                first = False
        except SlotFenced as error:
            self._silent = True
            LOG.info("rows written to %s are seen when they have landed: %s", self._context.files.root_uri, error)
        except Exception as error:  # Rows that are not sent early are sent in time, whatever failed.
            self._silent = True
            with suppress(Exception):
                self._publishing.note_error(error)
            LOG.warning("rows written to %s are seen when they have landed, not before (%s)", self._context.files.root_uri, error)

    def ended(self, *, landed: bool) -> None:
        """Ends the write. If it has not landed, the next publish takes its rows back."""
        begun, self._begun, self._silent = self._begun, False, False
        if not begun:
            return
        try:
            if landed:
                with self._publishing.use(0) as publisher:
                    assert isinstance(publisher, EarlyPublisher)
                    publisher.landed()
        finally:
            self._lock.release()

    def take_back(self) -> None:
        """Takes the rows of a failed write back, now if that can be done."""
        if not self._begun:
            self._silent = False
            return
        self.ended(landed=False)
        try:
            self._publishing.publish()
        except Exception as error:  # The write has failed: that is what its caller has to hear.
            LOG.warning(
                "a write to %s has failed, and readers of its log have seen rows of it: %s; the next publisher takes them back: "
                "the next write, or `tablestore log publish`",
                self._context.files.root_uri,
                error,
            )

    def _begin(self) -> bool:
        if not try_lock(self._lock):
            # Another write of this host runs ahead.
            self._silent = True
            return False
        self._begun = True
        return True

    def _records(self, rows: pa.Table, kinds: pa.Array | None) -> Iterator[list[LogRecords]]:
        context, settings = self._context, self._settings
        schema = context.schema
        codes = np.zeros(rows.num_rows, dtype=np.int8) if kinds is None else np.asarray(kinds.to_numpy(zero_copy_only=False))
        now_ms = context.clock.now_ms()
        stop = 0
        for stretch in slices_of(rows, max_rows=_ROWS, max_bytes=TEXT_BYTES, size_of=text_bytes):
            start, stop = stop, stop + stretch.num_rows
            part, of_part = stretch.combine_chunks(), codes[start:stop].astype(np.int8)
            buckets = bucket_of(
                [part.column(name).combine_chunks() for name in schema.bucket_keys],
                [schema.field(name).type for name in schema.bucket_keys],
                settings.partitions,
                function=context.settings.bucket_function,
            )
            by_bucket = []
            for bucket in np.unique(buckets).tolist():
                chosen = buckets == bucket
                bucket_rows = part.filter(pa.array(chosen))
                messages = encode_changes(
                    bucket_rows, of_part[chosen], key=schema.primary_keys, mode=settings.mode, form=settings.form
                )
                by_bucket.append(
                    LogRecords(
                        bucket=int(bucket),
                        snapshot_id=EARLY_SNAPSHOT,
                        time_millis=now_ms,
                        ordinals=np.full(len(messages.values), schema.id, dtype=np.int64),
                        kinds=messages.kinds,
                        keys=messages.keys,
                        values=messages.values,
                    )
                )
            yield [records for records in by_bucket if len(records)]
