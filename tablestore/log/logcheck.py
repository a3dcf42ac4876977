"""Reports how far a table's log is, and verifies that it says what the table says.

*Status* compares progress files and tails with the snapshots: cheap, reads no change. *Verify* reads the log once: per bucket its
records must ascend without a repeat, and the last record of every key must be what the table holds for it as of the snapshot that
is published. Where the log goes back to the first snapshot and nothing was left out, the keys must be the same too.

Memory of verify: the rows of one bucket, and as many of its log's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.log.changemessages import avro_schema
from tablestore.log.early.earlypublisher import unsettled_keys
from tablestore.log.follow.decoding import LogRows, RecordDecoder
from tablestore.log.follow.topicreader import LandedChanges, LogReader
from tablestore.log.logprogress import LogProgress
from tablestore.log.logstore import LogStore
from tablestore.log.position import LogPlace
from tablestore.log.publish.changerecords import published_changes, published_gap, rows_behind
from tablestore.log.publish.ownercheck import log_problem
from tablestore.log.record import Mark
from tablestore.log.settings import LogSettings
from tablestore.lsm.merge.rowdiff import equal_values
from tablestore.store.changes.changeplan import change_rule
from tablestore.store.context import TableContext
from tablestore.store.postcommit import PostCommitTask, read_undone
from tablestore.store.scan.scanplan import WantedFiles, plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.types.rowkind import ROW_KIND_COLUMN

_SHOWN = 5
_WHOLE = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketStatus:
    """One bucket's log. ``published``: the snapshot up to which everything is in it; lags are behind the newest snapshot."""

    bucket: int
    published: int
    end_offset: int
    lag_snapshots: int
    lag_records: int | None
    lag_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """A table's log. ``format``: that of its messages; ``avro_schema``: theirs, where they are Avro; ``latest``: the newest
    snapshot; ``problem``: why nothing is published to it, and the ways out."""

    system: str
    name: str
    mode: str
    slots: int
    latest: int
    buckets: tuple[BucketStatus, ...]
    format: str = "debezium-json"
    avro_schema: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheck:
    """The result of a verification. ``complete``: the log goes back to the first snapshot, so the keys were compared too."""

    snapshot_id: int
    records: int
    keys: int
    complete: bool
    problems: tuple[str, ...]


def log_status(context: TableContext, log: LogStore, settings: LogSettings, *, count_records: bool) -> LogStatus:
    """The status of the log: how far it is. Raises StorageError if it does not answer."""
    latest = context.snapshots.latest()
    progress = LogProgress(context.files)
    ends = log.bounds(list(range(settings.partitions)))
    rows = []
    for bucket in range(settings.partitions):
        recorded = progress.read(bucket % settings.slots, settings.slots)
        published = recorded.snapshot_id if recorded else 0
        lagging = latest is not None and latest.id > published
        published_snapshot = context.snapshots.find(published) if published else None
        behind = (
            latest.time_millis - (published_snapshot.time_millis if published_snapshot else latest.time_millis)
            if latest and lagging
            else 0
        )
        rows.append(
            BucketStatus(
                bucket=bucket,
                published=published,
                end_offset=ends[bucket][1],
                lag_snapshots=latest.id - published if latest else 0,
                lag_records=_lag_records(context, settings, bucket, published, latest) if count_records else None,
                lag_seconds=behind / 1000,
            )
        )
    return LogStatus(
        system=settings.system,
        name=log.name,
        mode=settings.mode,
        slots=settings.slots,
        latest=latest.id if latest else 0,
        buckets=tuple(rows),
        format=settings.form,
        avro_schema=avro_schema(context.schema.arrow_schema) if settings.form == "avro" else None,
        problem=_problem(context, log, settings, published=min(row.published for row in rows), latest=latest),
    )


def _problem(context: TableContext, log: LogStore, settings: LogSettings, *, published: int, latest: Snapshot | None) -> str | None:
    """The reason why nothing is published: the log is not this table's, or the last publish failed and nobody has caught up
    since."""
    if (problem := log_problem(context, log, settings)) is not None:
        return str(problem)
    if latest is None or published >= latest.id:
        return None
    return next((task.error for task in read_undone(context.files) if task.task == PostCommitTask.PUBLISH.label), None)


def _lag_records(context: TableContext, settings: LogSettings, bucket: int, published: int, latest: Snapshot | None) -> int:
    records = 0
    for snapshot_id in range(published + 1, latest.id + 1 if latest else 0):
        snapshot = context.snapshots.find(snapshot_id)
        if snapshot is None:
            continue
        plan = published_changes(context, snapshot, settings.mode)
        records += sum(part.rows.num_rows for part in rows_behind(plan, snapshot_id, bucket, None))
    return records


def verify_log(context: TableContext, log: LogStore, settings: LogSettings) -> LogCheck:
    """Compare the log with the table as of the newest snapshot that is published everywhere.

    Raises UnsupportedError for tables without a key, FormatError for records that cannot be understood, StorageError.
    """
    if not context.schema.is_keyed:
        raise UnsupportedError(
            f"table {context.files.root_uri} has no primary key: its log can be counted, not folded; compare "
            "table.changes(0).count() with the log's length"
        )
    progress = LogProgress(context.files)
    recorded = [progress.read(slot, settings.slots) for slot in range(settings.slots)]
    base = min((slot_progress.snapshot_id if slot_progress else 0 for slot_progress in recorded), default=0)
    snapshot = context.snapshots.read(base) if base else None
    last_gap = _last_gap(context, settings, base)
    problem = log_problem(context, log, settings)
    problems: list[str] = [] if problem is None else [str(problem)]
    records = keys = 0
    complete = last_gap == 0 and 1 in context.snapshots.live_ids()
    for bucket in range(settings.partitions):
        logged, record_count = _read_bucket(context, log, settings, bucket, base, problems)
        records += record_count
        begin = log.bounds([bucket])[bucket][0]
        whole = (
            complete and begin == 0 and all(slot_progress is not None and slot_progress.begins == 1 for slot_progress in recorded)
        )
        complete = complete and whole
        expected = _frame(context, snapshot, bucket)
        keys += logged.num_rows
        _compare(context, bucket, logged, expected, last_gap, whole, problems)
        if settings.eventual:
            _check_settled(context, log, bucket, problems)
    return LogCheck(snapshot_id=base, records=records, keys=keys, complete=complete, problems=tuple(problems))


def _check_settled(context: TableContext, log: LogStore, bucket: int, problems: list[str]) -> None:
    uuid = (context.table_uuid or "").encode()
    early = [key for _, keys in unsettled_keys(log, bucket, 0, uuid, stretch=_WHOLE) for key in keys]
    if early:
        problems.append(
            f"bucket {bucket}: {len(early)} keys end with a row that was sent early and have not landed, for example "
            f"{[key.decode(errors='replace') for key in early[:_SHOWN]]}: a writer is at work, or it has died and `tablestore log "
            "publish` takes them back"
        )


def _last_gap(context: TableContext, settings: LogSettings, upto: int) -> int:
    """The newest snapshot whose changes are not all in the log; keys last seen before it may have changed since."""
    for snapshot_id in range(upto, 0, -1):
        snapshot = context.snapshots.find(snapshot_id)
        if snapshot is None:
            return 0
        if published_gap(context, snapshot, settings.mode) is not None:
            return snapshot_id
    return 0


def _read_bucket(
    context: TableContext, log: LogStore, settings: LogSettings, bucket: int, base: int, problems: list[str]
) -> tuple[pa.Table, int]:
    """The last change of each key in the log up to ``base``, with ``_snapshot``; and how many records there are."""
    names = context.schema.field_names
    schema = pa.schema([pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False), *context.schema.arrow_schema])
    decoder = RecordDecoder(context, log.name, settings, columns=names, predicate=None, schema=schema)
    reader = LogReader(context, log, settings, decoder, LandedChanges(context, settings, decoder))
    begin, end = log.bounds([bucket])[bucket]
    # Behind the last record there may be nothing but the marker of its transaction: no reader gets so far.
    end = min(end, log.tails([bucket], uncommitted=True)[bucket].next_offset)
    incarnation = log.incarnation(partitions=settings.partitions)
    place = LogPlace(incarnation=incarnation, base=reader.first_snapshot(incarnation) - 1, offsets={bucket: begin})
    state: pa.Table | None = None
    records, last = 0, Mark(0, -1)
    reader.open(place)
    try:
        for rows in _until(reader, place, bucket, end):
            mark = rows.place.mark(bucket)
            records += rows.rows.num_rows
            if mark < last:
                problems.append(f"bucket {bucket}: a record of snapshot {mark.snapshot_id} lies behind one of {last.snapshot_id}")
            last = max(last, mark)
            if rows.snapshot_id <= base:
                part = pa.Table.from_batches([rows.rows]).append_column(
                    "_snapshot", pa.repeat(pa.scalar(rows.snapshot_id, pa.int64()), rows.rows.num_rows)
                )
                state = _last_of_keys(part if state is None else pa.concat_tables([state, part]), context.schema.primary_keys)
    finally:
        reader.close()
    empty = pa.schema([*[f.with_nullable(True) for f in schema], ("_snapshot", pa.int64())]).empty_table()
    return empty if state is None else state, records


def _until(reader: LogReader, place: LogPlace, bucket: int, end: int) -> Iterator[LogRows]:
    idle = 0
    while idle < 2 and place.offsets[bucket] < end:
        idle += 1
        for rows in reader.poll(place, 1.0):
            idle = 0
            place = rows.place
            yield rows


def _last_of_keys(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    places = rows.append_column("_place", pa.array(np.arange(rows.num_rows, dtype=np.int64)))
    # A -U is followed by its +U: what counts is the last row of the key either way.
    last = places.group_by(list(key), use_threads=False).aggregate([("_place", "max")]).column("_place_max")
    return rows.take(last.combine_chunks())


def _frame(context: TableContext, snapshot: Snapshot | None, bucket: int) -> pa.Table:
    """The rows of one bucket that the changes up to a snapshot add up to."""
    names = context.schema.field_names
    if snapshot is None:
        return context.schema.arrow_schema.empty_table()
    rule = change_rule(context)
    plan = plan_scan(context, snapshot, wanted=WantedFiles(in_place=lambda place: place[1] == bucket, at_level=rule.in_frame))
    reader = SplitReader.whole(context, names, None)
    return pa.Table.from_batches((batch for split in plan.splits for batch in reader.read(split)), schema=reader.arrow_schema)


def _compare(
    context: TableContext, bucket: int, logged: pa.Table, expected: pa.Table, last_gap: int, whole: bool, problems: list[str]
) -> None:
    key = list(context.schema.primary_keys)
    recent = logged.filter(pc.greater(logged.column("_snapshot"), last_gap))
    adds = pc.is_in(recent.column(ROW_KIND_COLUMN), value_set=pa.array(["+I", "+U"]))
    added, deleted = recent.filter(adds), recent.filter(pc.invert(adds))
    numbered = expected.append_column("_row", pa.array(np.arange(expected.num_rows, dtype=np.int64)))
    keys_there = numbered.select([*key, "_row"])
    missing = added.select(key).join(keys_there, key, join_type="left anti")
    _say(problems, bucket, missing, "keys whose last record adds them are not in the table")
    lasting = deleted.select(key).join(keys_there, key, join_type="left semi")
    _say(problems, bucket, lasting, "keys whose last record deletes them are in the table")
    if whole:
        unknown = keys_there.select(key).join(added.select(key), key, join_type="left anti")
        _say(problems, bucket, unknown, "keys of the table have no record")
    numbered_log = added.append_column("_record", pa.array(np.arange(added.num_rows, dtype=np.int64)))
    both = numbered_log.select([*key, "_record"]).join(keys_there, key, join_type="inner")
    logged_rows = added.take(both.column("_record").combine_chunks())
    held = expected.take(both.column("_row").combine_chunks())
    for name in context.schema.field_names:
        same = equal_values(
            logged_rows.column(name).combine_chunks(), held.column(name).combine_chunks().cast(logged_rows.column(name).type)
        )
        _say(
            problems, bucket, held.select(key).filter(pa.array(~same)), f"rows differ from their last record in the column {name!r}"
        )


def _say(problems: list[str], bucket: int, rows: pa.Table, description: str) -> None:
    if rows.num_rows:
        problems.append(f"bucket {bucket}: {rows.num_rows} {description}, for example {rows.slice(0, _SHOWN).to_pylist()}")
