"""Refuses rows whose log records would be larger than the log takes.

    write      rows -> at most so many bytes of text each (from their lengths) ── within the limit: nothing more is done
                                                                               └─ else: encoded, and measured exactly
    publish    records, whose sizes are known

A row that a log does not take stops everything behind it, since changes are in order: it is refused while nothing has landed, and
where that was not possible it is named.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore.bounds import BATCH_BYTES, BATCH_ROWS, TEXT_BYTES
from tablestore.errors import InvalidInputError
from tablestore.json.jsontext import text_bounds, text_bytes
from tablestore.log.changemessages import ENVELOPE_BYTES, ChangelogMode, LogFormat, encode_changes
from tablestore.log.record import LogRecords, sizes_of
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext
from tablestore.types.arrays import Kinds
from tablestore.types.rebatch import slices_of

_SHOWN_KEY_BYTES = 200


class RecordTooLarge(InvalidInputError):
    """A row is larger than its log takes."""

    default_kind = "log-record-too-large"


def refuse_large_rows(
    context: TableContext, settings: LogSettings, rows: pa.Table, kinds: pa.Array | pa.ChunkedArray | None, *, limit: int
) -> None:
    """Raise RecordTooLarge for the first row whose record has more than ``limit`` bytes, if readers of changes see its partition.

    Merged rows (aggregates, partial updates) may be larger than what is written: of those the publisher names the first.
    """
    schema = context.schema
    codes = None if kinds is None else np.asarray(kinds.to_numpy(zero_copy_only=False), dtype=np.int8)
    for row in large_rows(rows, codes, key=schema.primary_keys, mode=settings.mode, limit=limit, form=settings.form):
        # One row at a time: these are few, and mostly the first one ends it.
        partition = tuple(rows.column(name)[row.position].as_py() for name in schema.partition_keys)
        if context.settings.tracking.includes(partition):
            raise RecordTooLarge(
                f"table {context.files.root_uri}: {row} makes a record of {row.size:,} bytes, expected at most {limit:,} for its "
                f"log, topic {settings.topic}; the row is not written. Raise the limit: alter log.kafka.message.max.bytes of the "
                "table, which the topic follows (where the topic was altered by hand, `tablestore log publish` looks at it anew); "
                "or keep what is written from readers of changes (change-tracking = false), or end the log (log.system = filestore)"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRow:
    """A row whose record has ``size`` bytes of key and value. ``position``: its place among the rows that were looked at."""

    position: int
    key: bytes | None
    size: int

    def __str__(self) -> str:
        return f"the row with key {shown_key(self.key)}" if self.key is not None else f"row {self.position} of those given"


def large_rows(
    rows: pa.Table,
    kinds: Kinds | None,
    *,
    key: Sequence[str],
    mode: ChangelogMode,
    limit: int,
    form: LogFormat = "debezium-json",
) -> Iterator[LargeRow]:
    """The rows whose records have more than ``limit`` bytes, in order. ``kinds`` are row kind codes, None: all are inserts."""
    first = 0
    for part in slices_of(rows, max_rows=BATCH_ROWS, max_bytes=BATCH_BYTES):
        batch = part.combine_chunks()
        # The key has two texts, one in the value.
        bounds = text_bounds(batch) + text_bounds(batch.select(list(key))) + ENVELOPE_BYTES
        places = np.flatnonzero(bounds > limit)
        of_part = np.zeros(batch.num_rows, dtype=np.int8) if kinds is None else kinds[first : first + batch.num_rows]
        stop = 0
        for suspects in slices_of(batch.take(places), max_rows=BATCH_ROWS, max_bytes=TEXT_BYTES, size_of=text_bytes):
            start, stop = stop, stop + suspects.num_rows
            chosen = places[start:stop]
            messages = encode_changes(suspects, of_part[chosen], key=key, mode=mode, form=form)
            sizes = sizes_of(messages.keys, messages.values)
            for index in np.flatnonzero(sizes > limit).tolist():
                position = first + int(chosen[messages.places[index]])
                yield LargeRow(position=position, key=messages.keys[index], size=int(sizes[index]))
        first += batch.num_rows


def within_limit(
    batches: Iterable[LogRecords], limit: int | None, too_large: list[RecordTooLarge], *, log: str, table: str
) -> Iterator[LogRecords]:
    """The records up to the first one that the log does not take, which is then named in ``too_large``.

    What comes before it is sent; what comes behind it waits, since changes are in order.
    """
    for records in batches:
        sizes = records.sizes
        if limit is None or sizes.max(initial=0) <= limit:
            yield records
            continue
        first = int(np.argmax(sizes > limit))
        if first:
            yield records.slice(0, first)
        too_large.append(_unpublished(records, first, f"expected at most {limit:,} in {log}", table=table))
        return


def refused_record(group: Sequence[LogRecords], *, log: str, table: str) -> RecordTooLarge:
    """The log system took a transaction for too large and does not say at which record: the largest one is named."""
    largest = max(group, key=lambda records: int(records.sizes.max(initial=0)))
    place = int(np.argmax(largest.sizes))
    return _unpublished(largest, place, f"the largest of those that {log} refused as too large", table=table)


def _unpublished(records: LogRecords, place: int, why: str, *, table: str) -> RecordTooLarge:
    return RecordTooLarge(
        f"snapshot {records.snapshot_id} of table {table}: the row with key {shown_key(records.keys[place])} makes a record of "
        f"{int(records.sizes[place]):,} bytes, {why}. It and what was written after it are not in the log, and their snapshots are "
        "kept until they are, also if the row is overwritten. Raise the limit: alter log.kafka.message.max.bytes of the table, "
        "which the topic follows; or give the row up: set log.system = filestore, which ends the log and lets expiry go on, then "
        "log.system = kafka, which begins another behind what is there now"
    )


def shown_key(key: bytes | None) -> str:
    """A key as messages name it."""
    return "none, the table has no primary key" if key is None else key.decode(errors="replace")[:_SHOWN_KEY_BYTES]
