"""The table now, and every change after it from the log: the hybrid read without a gap.

    rows at snapshot N  |  log from the offsets that N noted, records of snapshots up to N left out  |  …
                                     └ truncated: the file store's changes fill the hole, and it is said

Every bucket has its own place: the next position in the log, and the last change (snapshot, ordinal) that was handed out. The place
is what makes the seam exact in both directions: into the log (skip what N holds) and out of it (what the log lost is read from the
snapshots behind that change). Batches are of one bucket; per key the order is that of the table.

Left to the file store: exact ``-U`` rows of an ``upsert`` log, whose old rows the LSM knows (see
:mod:`tablestore.log.follow.consumption`).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError, NotFoundError, UnsupportedError
from tablestore.format.parquet.projection import Projection
from tablestore.format.snapshot import Snapshot
from tablestore.log.events import does_not_fit
from tablestore.log.json.debezium import Changes, decode_changes
from tablestore.log.json.jsonrows import BadJson
from tablestore.log.logprogress import LogProgress, SlotProgress, decode_log_offsets
from tablestore.log.logstore import LogCursor, LogStore, LogTruncated
from tablestore.log.position import LogPlace
from tablestore.log.publish.changerecords import find_changes, published_changes, rows_behind
from tablestore.log.record import Mark, Offsets, RawRecords
from tablestore.log.settings import LogSettings
from tablestore.store.changes.changefeed import filtered_kinds, update_pairs
from tablestore.store.context import TableContext
from tablestore.store.history.holds import LOG_HOLD, Holds
from tablestore.store.snapshots import LOG_OFFSETS_PROPERTY
from tablestore.types.datatypes import Field
from tablestore.types.filter.predicate import Predicate, evaluate
from tablestore.types.filter.predicate import columns as columns_of
from tablestore.types.rowkind import RowKind, symbols_from_kinds
from tablestore.types.schema import TableSchema

LOG = logging.getLogger(__name__)

MAX_RECORDS = 10_000


def place_at(
    context: TableContext, log: LogStore, settings: LogSettings, snapshot: Snapshot | None, begins: Mapping[int, int]
) -> LogPlace:
    """Where the log goes on behind ``snapshot``: the offsets that it noted, or the newest earlier one's, else the beginning.

    ``begins``: positions before which the log holds nothing that comes behind ``snapshot``.
    """
    incarnation = log.incarnation(partitions=settings.partitions)
    noted = _noted(context, snapshot, incarnation)
    offsets = {bucket: max(noted.get(bucket, 0), begins.get(bucket, 0)) for bucket in range(settings.partitions)}
    return LogPlace(incarnation=incarnation, base=snapshot.id if snapshot else 0, offsets=offsets)


def _noted(context: TableContext, snapshot: Snapshot | None, incarnation: str) -> dict[int, int]:
    # A foreign commit notes nothing: an older bound is one too.
    while snapshot is not None:
        text = snapshot.properties.get(LOG_OFFSETS_PROPERTY)
        if text is not None:
            found, offsets = decode_log_offsets(text)
            return offsets if found == incarnation else {}
        snapshot = context.snapshots.find(snapshot.id - 1) if snapshot.id > 1 else None
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRows:
    """Decoded changes of one bucket and snapshot: ``rows`` with ``_row_kind`` first. ``place`` is the one behind them."""

    bucket: int
    snapshot_id: int
    rows: pa.RecordBatch
    place: LogPlace


class LogReader:
    """Reads a table's log from a place on, as the columns and rows that were asked for."""

    def __init__(
        self,
        context: TableContext,
        log: LogStore,
        settings: LogSettings,
        *,
        columns: tuple[str, ...],
        predicate: Predicate | None,
        schema: pa.Schema,
        pairs: bool = True,
    ) -> None:
        self._context, self._log, self._settings = context, log, settings
        self._columns, self._predicate, self._schema, self._pairs = columns, predicate, schema, pairs
        self._cursor: LogCursor | None = None
        self._schemas: dict[int, TableSchema] = {}
        self._said_foreign = False
        self._uuid = (context.table_uuid or "").encode()

    def open(self, place: LogPlace) -> None:
        """Begin at ``place``. Raises LogTruncated if the log no longer goes back so far, NotFoundError if it was replaced."""
        settings, log = self._settings, self._log
        incarnation = log.incarnation(partitions=settings.partitions)
        if incarnation != place.incarnation:
            raise LogTruncated(f"{log.name} was made anew since this position was taken")
        if place.base + 1 < (first := self.first_snapshot(incarnation)):
            raise LogTruncated(f"{log.name} begins with the changes of snapshot {first}, this position is behind {place.base}")
        bounds = log.bounds(sorted(place.offsets))
        for bucket, offset in place.offsets.items():
            if offset < bounds[bucket][0]:
                raise LogTruncated(f"bucket {bucket} of {log.name} begins at {bounds[bucket][0]}, this position is {offset}")
        self.close()
        self._cursor = self._open_cursor(place.offsets)

    def _open_cursor(self, offsets: Offsets) -> LogCursor:
        # Only new files of plain tables are logged whole; from changelog files -U rows are left out, and kinds tell more.
        settings = self._settings
        dense = settings.mode == "upsert" and self._context.settings.is_plain and not settings.eventual
        return self._log.open_cursor(offsets, dense=dense)

    def begins(self) -> dict[int, int]:
        """The first position that the log still holds, per bucket."""
        bounds = self._log.bounds(list(range(self._settings.partitions)))
        return {bucket: begin for bucket, (begin, _) in bounds.items()}

    def place_since(self, time_millis: int) -> LogPlace | None:
        """Before the changes of the first snapshot at or after a time that the log holds whole; None if it holds none."""
        log, settings = self._log, self._settings
        incarnation = log.incarnation(partitions=settings.partitions)
        buckets = list(range(settings.partitions))
        found = log.since(time_millis, buckets, table=self._uuid)
        while cut := [one for one in found.values() if not one.whole]:
            # Of a bucket that begins within these changes the first snapshot may be cut off too.
            times = [one.time_millis for one in cut if one.time_millis is not None]
            if len(times) < len(cut):
                return None
            found = log.since(max(times) + 1, buckets, table=self._uuid)
        marks = [one.mark for one in found.values() if one.mark is not None]
        if not marks:
            return None
        base = min(mark.snapshot_id for mark in marks) - 1
        return LogPlace(incarnation=incarnation, base=base, offsets={bucket: one.offset for bucket, one in found.items()})

    def from_store(self, snapshot: Snapshot, place: LogPlace) -> Iterator[LogRows]:
        """The changes of one snapshot behind ``place`` as the log would give them, from the file store."""
        context, settings = self._context, self._settings
        plan = published_changes(context, snapshot, settings.mode)
        for bucket in range(settings.partitions):
            for part in rows_behind(plan, snapshot.id, bucket, place.mark(bucket)):
                place = place.moved(bucket, place.offsets[bucket], Mark(snapshot.id, part.first + part.rows.num_rows - 1))
                rows, kinds = part.rows, part.kinds
                if plan.context.schema.fields != context.schema.fields:
                    then = plan.context.schema
                    rows = self._fitting(rows, then, then.fields, context.schema.fields)
                if settings.mode == "upsert":
                    kept = kinds != RowKind.UPDATE_BEFORE
                    rows, kinds = rows.filter(pa.array(kept)), kinds[kept]
                yield LogRows(bucket=bucket, snapshot_id=snapshot.id, rows=self.selected(rows, kinds), place=place)

    def close(self) -> None:
        """Give up the connection."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def poll(self, place: LogPlace, timeout_s: float) -> Iterator[LogRows]:
        """What is new behind ``place``, bucket by bucket. Raises LogTruncated, StorageError, FormatError (a poison message)."""
        assert self._cursor is not None, "open comes first"
        for raw in self._cursor.poll(timeout_s, MAX_RECORDS):
            fresh = self._fresh(raw, place.mark(raw.bucket))
            if not len(fresh):
                place = place.moved(raw.bucket, raw.next_offset, None)
                continue
            for start, stop in runs(self._schema_ids(raw.snapshots[fresh])):
                part = fresh[start:stop]
                if self._schema_of(first_id := int(raw.snapshots[part[0]])).id > self._context.schema.id:
                    # Whoever reads is told before values come that may not fit.
                    yield LogRows(bucket=raw.bucket, snapshot_id=first_id, rows=self._nothing, place=place)
                rows, changes = self._decoded(raw, part)
                for first, end in runs(raw.snapshots[part]):
                    last = int(part[end - 1])
                    mark = Mark(int(raw.snapshots[last]), int(raw.ordinals[last]))
                    is_last = last == int(fresh[-1])
                    place = place.moved(raw.bucket, raw.next_offset if is_last else int(raw.offsets[last]) + 1, mark)
                    low, high = np.searchsorted(changes.places, [first, end]).tolist()
                    chosen = self.selected(rows.slice(low, high - low), changes.kinds[low:high])
                    yield LogRows(bucket=raw.bucket, snapshot_id=mark.snapshot_id, rows=chosen, place=place)

    def schema_then(self, snapshot_id: int) -> TableSchema | None:
        """The columns that a snapshot's changes have; None for early rows."""
        return self._schema_of(snapshot_id)

    @property
    def _nothing(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self._schema)

    def _fitting(
        self, rows: pa.RecordBatch, written: TableSchema, fields: Sequence[Field], targets: Sequence[Field]
    ) -> pa.RecordBatch:
        """Rows of another schema with the columns of the reader's. Raises ConflictError if one is too wide for them."""
        try:
            return Projection(fields, targets, where=self._log.name).apply(rows)
        except (FormatError, UnsupportedError) as error:
            if written.id <= self._context.schema.id:
                raise
            raise does_not_fit(self._log.name, written.id, self._context.schema.id, error) from error

    def caught_up(self, place: LogPlace) -> LogPlace:
        """The place with its base raised to what all publishers had completed, as far as all of that was read."""
        complete = self._recorded(place.incarnation, (self._settings.slots,))
        if len(complete) < self._settings.slots:
            return place
        base = min(one.snapshot_id for one in complete)
        read = all(place.offsets.get(bucket, 0) >= offset for one in complete for bucket, offset in one.offsets.items())
        return place.at_base(base) if read and base > place.base else place

    def _recorded(self, incarnation: str, layouts: Iterable[int]) -> list[SlotProgress]:
        """How far each slot has come, of those that have begun."""
        progress = LogProgress(self._context.files)
        found = [progress.read(slot, slots) for slots in layouts for slot in range(slots)]
        return [one for one in found if one is not None and one.incarnation == incarnation]

    def _ever_recorded(self, incarnation: str) -> list[SlotProgress]:
        return self._recorded(incarnation, LogProgress(self._context.files).layouts())

    def first_snapshot(self, incarnation: str) -> int:
        """The snapshot that the log begins with; while nothing was published, the one that is to come first."""
        recorded = self._ever_recorded(incarnation)
        if recorded:
            return max(one.begins for one in recorded)
        registered = Holds(self._context.files).find(LOG_HOLD)
        return registered.next_snapshot if registered is not None else 1

    def newest_gap(self, place: LogPlace, upto: int) -> int | None:
        """The newest snapshot up to ``upto`` that does not tell all it changed, as those who publish have seen it; 0 if there is
        none, None if they have not come so far."""
        recorded = self._ever_recorded(place.incarnation)
        if not recorded or max(one.snapshot_id for one in recorded) < upto:
            return None
        return max(one.gap for one in recorded)

    def _fresh(self, raw: RawRecords, done: Mark) -> npt.NDArray[np.int64]:
        """Which records are this table's and not handed out yet."""
        if raw.tables.count(self._uuid) == len(raw):
            ours: npt.NDArray[np.bool_] = np.ones(len(raw), dtype=np.bool_)
        else:
            ours = np.fromiter((table == self._uuid for table in raw.tables), dtype=np.bool_, count=len(raw))
        foreign = len(raw) - int(ours.sum())
        if foreign and not self._said_foreign:
            self._said_foreign = True
            LOG.warning(
                "%s holds records that are not of table %s: they are left out", self._log.name, self._context.files.root_uri
            )
        later = (raw.snapshots > done.snapshot_id) | ((raw.snapshots == done.snapshot_id) & (raw.ordinals > done.ordinal))
        fresh: npt.NDArray[np.int64] = np.flatnonzero(ours & later)
        return fresh

    def _schema_ids(self, snapshots: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        ids = [np.full(stop - start, self._schema_of(int(snapshots[start])).id) for start, stop in runs(snapshots)]
        return np.concatenate(ids)

    def _schema_of(self, snapshot_id: int) -> TableSchema:
        """The columns that a snapshot's messages have."""
        if (known := self._schemas.get(snapshot_id)) is None:
            snapshot = find_changes(self._context, snapshot_id)
            schemas = self._context.schemas
            known = schemas.read(snapshot.schema_id) if snapshot is not None else self._schema_of_expired(snapshot_id)
            if len(self._schemas) > 10_000:
                self._schemas.clear()
            self._schemas[snapshot_id] = known
        return known

    def _schema_of_expired(self, snapshot_id: int) -> TableSchema:
        """As above, of a snapshot that is gone: between those of its neighbours, if that leaves no choice."""
        context = self._context
        oldest = max((known.id for other, known in self._schemas.items() if other < snapshot_id), default=0)
        later = context.snapshots.live_ids()
        newest = context.snapshots.read(later[0]).schema_id if later else context.schema.id
        candidates = [context.schemas.read(i) for i in context.schemas.ids() if oldest <= i <= newest]
        if len({schema.fields for schema in candidates}) > 1:
            raise NotFoundError(
                f"table {context.files.root_uri}: snapshot {snapshot_id} has expired, and which columns its records in "
                f"{self._log.name} have cannot be told any more, because they were altered at about that time; begin anew with "
                'scan="full", and read under a consumer_id so that expiry keeps what is to be read',
                kind="snapshot-expired",
            )
        return candidates[-1]

    def _decoded(self, raw: RawRecords, part: npt.NDArray[np.int64]) -> tuple[pa.RecordBatch, Changes]:
        """Records of one schema as rows of the reader's; the changes say which record each row is of."""
        written = self._schema_of(int(raw.snapshots[part[0]]))
        now = self._context.schema
        predicate = self._predicate
        wanted = set(self._columns) | (columns_of(predicate) if predicate is not None else frozenset()) | set(now.primary_keys)
        ids = {now.field(name).id for name in wanted}
        fields = [f for f in written.fields if f.id in ids]
        arrow_schema = written.arrow_schema
        places = None if len(part) == len(raw) else part.tolist()
        try:
            changes = decode_changes(
                raw.keys if places is None else [raw.keys[i] for i in places],
                raw.values if places is None else [raw.values[i] for i in places],
                pa.schema([arrow_schema.field(f.name) for f in fields]),
                key=written.primary_keys,
                kinds=raw.kinds[part],
            )
        except BadJson as error:
            offset = int(raw.offsets[part[error.position]])
            raise FormatError(
                f"record {offset} in bucket {raw.bucket} of {self._log.name} cannot be understood: {error.reason}; "
                "`tablestore log verify` finds others, `tablestore log rebuild` makes the log anew from the table",
                kind="bad-record",
            ) from error
        rows = pa.RecordBatch.from_struct_array(changes.rows.to_struct_array().combine_chunks())
        if written.fields != now.fields:
            targets = [now.field(name) for name in now.field_names if name in wanted]
            rows = self._fitting(rows, written, fields, targets)
        return rows, changes

    def selected(self, rows: pa.RecordBatch, kinds: npt.NDArray[np.int8]) -> pa.RecordBatch:
        """Of rows in the reader's schema: those that the filter lets through, with ``_row_kind`` and the columns asked for."""
        if self._predicate is not None:
            matches = evaluate(self._predicate, rows).fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
            kinds, kept = self._filtered(rows, kinds, matches)
            rows, kinds = rows.filter(pa.array(kept)), kinds[kept]
        if not self._pairs and (before := kinds == RowKind.UPDATE_BEFORE).any():
            rows, kinds = rows.filter(pa.array(~before)), kinds[~before]
        columns = [symbols_from_kinds(pa.array(kinds)), *(rows.column(name) for name in self._columns)]
        target = pa.schema([f if i == 0 else f.with_nullable(True) for i, f in enumerate(self._schema)])
        return pa.RecordBatch.from_arrays([pc.cast(c, f.type) for c, f in zip(columns, target, strict=True)], schema=target)

    def _filtered(
        self, rows: pa.RecordBatch, kinds: npt.NDArray[np.int8], matches: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
        schema, predicate = self._context.schema, self._predicate
        assert predicate is not None
        pairs = update_pairs(rows, kinds, schema.primary_keys)
        complete = self._settings.mode == "all" or not schema.is_keyed or columns_of(predicate) <= set(schema.primary_keys)
        new, kept = filtered_kinds(kinds, matches, pairs, known_before=complete)
        # A pair that was cut apart: its row before leaves, its row after enters.
        alone = ~pairs
        alone[1:] &= ~pairs[:-1]
        new[alone & kept & (kinds == RowKind.UPDATE_BEFORE)] = RowKind.DELETE
        return new, kept


def runs(values: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Stretches of equal neighbours as (start, stop)."""
    cuts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    yield from pairwise(cuts)


def missing_snapshot(context: TableContext, place: LogPlace) -> NotFoundError:
    """Neither the log nor the snapshots hold what comes behind ``place``."""
    return NotFoundError(
        f"table {context.files.root_uri}: the log no longer holds what comes behind snapshot {place.base}, and that snapshot's "
        'successor has expired; begin anew with scan="full", and read under a consumer_id so that expiry keeps what is to be read; '
        "`tablestore log rebuild` starts the log anew",
        kind="snapshot-expired",
    )
