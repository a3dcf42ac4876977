"""Reads the log of a bucket for a range of snapshots, for readers that know where to end.

    positions    begin ──────────────────────────── end
    snapshots    ≤ after │ after + 1 … upto         │ later
                 left out│ handed out               │ left out

The snapshots decide, the positions only narrow what is looked at: ``begin`` lies at or before the first record of ``after`` + 1,
``end`` at or behind the last one of ``upto``. What the log does not give, because its retention has passed, it was made anew, or it
does not answer, comes from the file store, from the change on that was handed out last.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tablestore.errors import StorageError
from tablestore.log.connector import open_log_store
from tablestore.log.follow.decoding import LogRows, RecordDecoder
from tablestore.log.follow.topicreader import LandedChanges, LogReader, missing_snapshot
from tablestore.log.logstore import LogStore, LogTruncated
from tablestore.log.position import LogPlace
from tablestore.log.publish.changerecords import find_published
from tablestore.log.settings import LogSettings, settings_of
from tablestore.store.context import TableContext
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.filter.predicate import Predicate
from tablestore.types.rowkind import ROW_KIND_COLUMN

LOG = logging.getLogger(__name__)

_POLL_S = 0.2
# A log that gives nothing for so long, although it should, is not waited for.
_SILENCE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """The changes of the snapshots behind ``after`` up to ``upto`` in a bucket of the log of that incarnation."""

    incarnation: str
    bucket: int
    begin: int
    end: int
    after: int
    upto: int


def read_log_range(
    context: TableContext,
    part: LogRange,
    *,
    columns: tuple[str, ...],
    predicate: Predicate | None,
    pairs: bool,
    log: LogStore | None = None,
) -> Iterator[pa.RecordBatch]:
    """The changes, ``_row_kind`` and then ``columns``. Raises NotFoundError where neither log nor snapshots hold them."""
    context.check_sees_all("reading of its log")
    settings = settings_of(context)
    log = log or open_log_store(settings)
    fields = to_arrow_schema([context.schema.field(name) for name in columns])
    schema = pa.schema([pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False), *fields])
    decoder = RecordDecoder(context, log.name, settings, columns=columns, predicate=predicate, schema=schema, pairs=pairs)
    reader = LogReader(context, log, settings, decoder, LandedChanges(context, settings, decoder))
    place = LogPlace(incarnation=part.incarnation, base=part.after, offsets={part.bucket: part.begin})
    try:
        for rows in _logged(context, reader, part, place):
            if rows is None:
                return
            place = rows.place
            if rows.rows.num_rows:
                yield rows.rows
        LOG.warning("%s has gone silent; what is left up to snapshot %d is read from the file store", log.name, part.upto)
    except (LogTruncated, StorageError) as error:
        LOG.warning("%s; the changes up to snapshot %d are read from the file store", error, part.upto)
    finally:
        reader.close()
    yield from _stored(context, reader, settings, part, place)


def _logged(context: TableContext, reader: LogReader, part: LogRange, place: LogPlace) -> Iterator[LogRows | None]:
    """The rows that the log gives, and None when that was all; without it the log has gone silent before."""
    reader.open(place)
    heard = context.clock.steady_s()
    while (reached := reader.reached(part.bucket)) < part.end:
        for rows in reader.poll(place, _POLL_S):
            if rows.snapshot_id > part.upto:
                yield None
                return
            place = rows.place
            yield rows
        if reader.reached(part.bucket) > reached:
            heard = context.clock.steady_s()
        elif context.clock.steady_s() - heard > _SILENCE_S:
            return
    yield None


def _stored(
    context: TableContext, reader: LogReader, settings: LogSettings, part: LogRange, place: LogPlace
) -> Iterator[pa.RecordBatch]:
    """The same changes from the file store, behind what was handed out."""
    for snapshot_id in range(part.after + 1, part.upto + 1):
        snapshot = find_published(context, snapshot_id, settings.mode)
        if snapshot is None:
            raise missing_snapshot(context, place)
        for rows in reader.from_store(snapshot, place):
            place = rows.place
            if rows.rows.num_rows:
                yield rows.rows
