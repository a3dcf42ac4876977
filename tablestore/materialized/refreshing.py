"""Runs one refresh of a materialized table: all of it, or one partition, as one commit.

    whole         the rows become those of the query, from the changes of its sources where that can be (:mod:`incremental.refresh`)
    partition     the rows of this partition become those of the query in it

The commit says what it is (:class:`RefreshNote`). It lands only on the refresh and under the definition that it started from: of
two refreshes at one time one loses, and so does one that an altered, suspended or resumed table has left behind.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tablestore.environment.engine import InsertTarget
from tablestore.environment.rows.insert import QueryToInsert
from tablestore.environment.rows.observing import job_of, observed
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.functions import Functions
from tablestore.environment.session.objects import SessionObjects, View
from tablestore.environment.session.session import Session
from tablestore.environment.session.sessionsettings import Settings
from tablestore.environment.source import Source
from tablestore.errors import ConflictError, InvalidInputError, TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.materialized.difference import check_kinds, drifted, is_text
from tablestore.materialized.incremental.holding import let_go
from tablestore.materialized.incremental.refresh import refresh
from tablestore.materialized.incremental.refreshreport import RefreshReport
from tablestore.materialized.incremental.sources import RefreshSource as SourceTable
from tablestore.materialized.incremental.sources import Round, Sources, find_sources
from tablestore.materialized.lasterror import forget_error, keep_error
from tablestore.materialized.materializedtable import EPOCH
from tablestore.materialized.storing import StoredTable, check_there, open_materialized
from tablestore.options import OWN_MATERIALIZED_PREFIX, PROCESS_TIME_ZONE, TableOptions, partition_date_column
from tablestore.sql.source import Fragment, Path, Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.rows import Insert
from tablestore.store.commit.committer import Guard
from tablestore.table.write.committing import CommitNote
from tablestore.table.write.current import NewestSnapshot
from tablestore.telemetry.lineage import LineageJob
from tablestore.types.partitionspec import parse_partition_value, strptime_format
from tablestore.types.typestring import quote_identifier

# Stored, never renamed.
REFRESH_PROPERTY = f"{OWN_MATERIALIZED_PREFIX}refresh"
CONFLICTS = ("refresh-conflict", "schema-changed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshNote:
    """The note in a snapshot on the refresh that made it. ``schedule_ms``: the time that the table is made for, which an unplanned
    refresh of all rows moves on too. ``rows_in`` and ``rows_out`` as in the :class:`RefreshReport`."""

    id: str
    epoch: int
    at_ms: int
    schedule_ms: int | None
    mode: str
    reason: str | None = None
    rows_in: int | None = None
    rows_out: int | None = None


def last_refresh(stored: StoredTable) -> RefreshNote | None:
    """The refresh that the newest rows are from; None where there is none, or somebody else has written."""
    return note_in(stored.table.context.snapshots.latest())


def note_in(snapshot: Snapshot | None) -> RefreshNote | None:
    """The note of a snapshot on its refresh; None if there is none, or nothing that can be read."""
    text = None if snapshot is None else snapshot.properties.get(REFRESH_PROPERTY)
    if text is None:
        return None
    try:
        return RefreshNote(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        # The next refresh is one of all rows.
        return None


def refresh_session(session: Session) -> Session:
    """The session of a refresh: its settings are the first ones, and it knows nothing temporary and no table of the engine's own.

    Its query is stored, and whoever can store one must not read what the engine of another one has.
    """
    return replace(session, objects=SessionObjects(), functions=Functions(), settings=Settings(), reads_engine=False)


def refresh_once(
    session: Session,
    stored: StoredTable,
    *,
    before: RefreshNote | None = None,
    schedule_ms: int | None = None,
    partition: Mapping[str, str | None] | None = None,
    in_round: Round | None = None,
    options: Mapping[str, str] | None = None,
    newest: NewestSnapshot | None = None,
) -> RefreshReport:
    """Refreshes a table as it was read, and says what was done.

    ``before``: the refresh that it goes on from (:func:`last_refresh`), and ``newest`` the snapshot that says so, if at hand.
    ``schedule_ms``: the time that it is for; None: now. ``in_round``: the refreshes that read the same snapshots. ``options``: what
    a refresh of all rows writes them with, beside the stored ones. Raises ConflictError of one of the kinds ``CONFLICTS`` where
    another refresh or definition was faster, InvalidInputError and UnsupportedError for the options, and what the query raises;
    nothing is visible then, and the error is kept with the table.
    """
    try:
        with observed(stored.table, "refresh", lambda: _job(session, stored)) as landing:
            report = _refreshed(session, stored, before, schedule_ms, partition, in_round, options or {}, newest)
            if landing is not None:
                landing.note(report.snapshot)
    except TablestoreError as error:
        if error.kind not in CONFLICTS:
            _check_same_definition(stored, error)
            keep_error(stored, error, during="refresh", now_ms=session.clock.now_ms())
        raise
    forget_error(stored, during="refresh")
    return report


def _job(session: Session, stored: StoredTable) -> LineageJob:
    query = stored.definition.query
    bound = Relations(session=refresh_session(session)).bind_query(query)
    names = [field.name for field in stored.definition.fields]
    return job_of(session, "REFRESH", stored.table, bound, query.text, names=names)


def refresh_now(
    session: Session,
    stored: StoredTable,
    *,
    partition: Mapping[str, str | None] | None = None,
    in_round: Round | None = None,
    options: Mapping[str, str] | None = None,
) -> RefreshReport:
    """Refreshes a table as it was read, from the newest refresh on: :func:`refresh_once` with its arguments and errors."""
    newest = NewestSnapshot(stored.table.context.snapshots.latest())
    before = note_in(newest.snapshot)
    return refresh_once(session, stored, before=before, partition=partition, in_round=in_round, options=options, newest=newest)


def _check_same_definition(stored: StoredTable, error: TablestoreError) -> None:
    """Raises in place of an error that may be one of an old query over the rows and columns of another definition.

    Raises ConflictError for another definition or table, NotFoundError where it was dropped.
    """
    check_there(stored, error)
    if stored.table.context.schemas.latest().options.get(EPOCH, "0") != str(stored.upkeep.epoch):
        raise _left_behind(stored, "altered, suspended or resumed") from error


def _refreshed(
    session: Session,
    stored: StoredTable,
    before: RefreshNote | None,
    schedule_ms: int | None,
    partition: Mapping[str, str | None] | None,
    in_round: Round | None,
    options: Mapping[str, str],
    newest: NewestSnapshot | None,
) -> RefreshReport:
    inner = refresh_session(session)
    now_ms = session.clock.now_ms()
    for_ms = schedule_ms if schedule_ms is not None else (before.schedule_ms if before and partition else now_ms)
    note = RefreshNote(id=session.jobs.ids.uuid(), epoch=stored.upkeep.epoch, at_ms=now_ms, schedule_ms=for_ms, mode="full")
    guard = guard_of(stored, before)
    if partition is not None:
        note = replace(note, reason="a partition is computed as a whole")
        sources = find_sources(inner, stored.definition.query, in_round)
        known_sources = sources.sources if isinstance(sources, Sources) else ()
        snapshot = _overwritten(inner, stored, partition, CommitNote(properties=note_text(note), guard=guard), known_sources)
        # Its rows are from several snapshots now: the next refresh of all rows begins at none of them.
        let_go(stored.table, known_sources)
        snapshot_id = None if snapshot is None else snapshot.id
        return RefreshReport(mode="full", reason=note.reason, snapshot_id=snapshot_id, snapshot=snapshot)
    with _naming_keys(stored):
        return refresh(
            inner,
            stored.table.writing_with(options) if options else stored.table,
            stored.definition.query,
            spec=replace(inner.spec(stored.path, stored.table), write_options=dict(options)),
            guard=guard,
            describe=lambda report: note_text(
                replace(note, mode=report.mode, reason=report.reason, rows_in=report.rows_in, rows_out=report.rows_out)
            ),
            in_round=in_round,
            newest=newest,
        )


@contextmanager
def _naming_keys(stored: StoredTable) -> Iterator[None]:
    """Engines do not know which columns of a query may be NULL; so it is only found out here that those of a key are."""
    try:
        yield
    except InvalidInputError as error:
        if error.kind == "null-in-not-null":
            message = error.message.replace(stored.table.location, str(stored.path)).removesuffix("; fill or drop them")
            error.message = (
                f"{message}: a PRIMARY KEY takes no NULL; leave such rows out of the query, or give them a value with coalesce"
            )
            error.args = (error.message,)
        raise


def note_text(note: RefreshNote) -> dict[str, str]:
    """The properties of a snapshot that carry a note."""
    return {REFRESH_PROPERTY: json.dumps({field.name: getattr(note, field.name) for field in fields(note)}, sort_keys=True)}


def guard_of(stored: StoredTable, before: RefreshNote | None) -> Guard:
    """Refuses a snapshot on which the newest refresh is another one than ``before``, and a definition that is another one now."""
    schemas, epoch = stored.table.context.schemas, str(stored.upkeep.epoch)

    def check(latest: Snapshot | None) -> None:
        newest = note_in(latest)
        if schemas.latest().options.get(EPOCH, "0") != epoch:
            change = "altered, suspended or resumed"
        elif (newest.id if newest else None) != (before.id if before else None):
            change = "refreshed by another job"
        else:
            return
        raise _left_behind(stored, change)

    return check


def _left_behind(stored: StoredTable, change: str) -> ConflictError:
    return ConflictError(
        f"Materialized table {stored.path} was {change} meanwhile; nothing of this refresh is visible, the next one goes on from "
        "what is there",
        kind="refresh-conflict",
    )


def refresh_until_landed(session: Session, stored: StoredTable, refresh: Callable[[StoredTable], RefreshReport]) -> RefreshReport:
    """Refreshes again where another refresh was faster, for ``commit.timeout`` at most."""
    context = stored.table.context
    deadline_s = context.clock.steady_s() + context.settings.commit_timeout_s
    while True:
        try:
            return refresh(stored)
        except ConflictError as error:
            if error.kind not in CONFLICTS or context.clock.steady_s() >= deadline_s:
                raise
        stored = open_materialized(session, stored.path)


def refresh_newest(session: Session, stored: StoredTable, options: Mapping[str, str] | None = None) -> None:
    """Brings a table up to date as it is now declared; ``options`` as in :func:`refresh_once`. Raises as this."""
    refresh_until_landed(session, stored, lambda current: refresh_now(session, current, options=options))


def _overwritten(
    session: Session,
    stored: StoredTable,
    partition: Mapping[str, str | None],
    note: CommitNote,
    sources: Sequence[SourceTable],
) -> Snapshot | None:
    """Puts the rows of the query in the place of those of the partition."""
    table = stored.table
    names = ", ".join(quote_identifier(field.name) for field in table.table_schema.fields)
    partition_values = {
        name: None if text is None else parse_partition_value(table.table_schema, name, text) for name, text in partition.items()
    }
    where = " AND ".join(
        f"{quote_identifier(name)} IS NULL" if text is None else f"{quote_identifier(name)} = {_quoted(text)}"
        for name, text in partition.items()
    )
    path = stored.path
    text = f"SELECT {names} FROM {_definition(session, stored)} AS `definition` WHERE {where}"
    insert = Insert(target=Path((path.catalog, path.database, path.name)), query=Fragment(text, Span(0, len(text))), overwrite=True)
    rows = QueryToInsert.of(session, insert, Source(text), ())
    for source in sources:
        rows.relations.pins[source.table.location, source.table.branch_name] = source.pin(
            session, source.now.id if source.now else None
        )
    fields = table.table_schema.fields
    derived = [replace(field, type=kind or field.type) for field, (_, kind) in zip(fields, rows.given, strict=True)]
    if drift := check_kinds(fields, derived, str(path)):
        # An INSERT would cast, which cuts digits off.
        raise drifted(str(path), drift)
    query = rows.bound(fields)
    target = InsertTarget(table=table, spec=session.spec(path, table), overwrite=partition_values, note=note)
    return session.engine_for("REFRESH").insert(query, target)


def _definition(session: Session, stored: StoredTable) -> str:
    """The name of the query in a text that is in Spark's words: the query itself, or a view of the refresh's own session."""
    query, path = stored.definition.query, stored.path
    if query.dialect is SqlDialect.SPARK:
        return f"(\n{query.text}\n)"
    view = View(
        path=replace(path, name="_tablestore_definition"),
        query=query.text,
        dialect=query.dialect,
        catalog=path.catalog,
        database=path.database,
    )
    session.objects.add(view)
    return view.path.quoted


def check_partition(stored: StoredTable, partition: Mapping[str, str | None]) -> None:
    """Raises InvalidInputError for a partition that REFRESH does not take."""
    keys = stored.definition.partition_by
    if unknown := [name for name in partition if name not in keys]:
        raise InvalidInputError(
            f"The partition spec contains unknown partition keys: {', '.join(unknown)}. All known partition keys are: "
            f"{', '.join(keys) or 'none, the table is not partitioned'}.",
            kind="unknown-partition-column",
        )
    types = {field.name: field.type for field in stored.definition.fields}
    if not_texts := [name for name in partition if not is_text(types[name])]:
        raise InvalidInputError(
            "Currently, refreshing materialized table only supports referring to char, varchar and string type partition keys. All "
            f"specific partition keys in partition spec with unsupported types are: {', '.join(not_texts)}.",
            kind="partition",
        )


def partition_of_schedule(stored: StoredTable, schedule_ms: int) -> dict[str, str] | None:
    """The partition that a refresh for this time is of: the period that has just closed. None: the whole table."""
    definition = stored.definition
    formats = {column: text for key, text in definition.options.items() if (column := partition_date_column(key))}
    if not formats:
        return None
    moment = datetime.fromtimestamp((schedule_ms - definition.freshness.millis) // 1000, UTC)
    wall = moment.astimezone(zone_of(stored)).replace(tzinfo=None)
    return {
        column: wall.strftime(strptime_format(text, f"partition.fields.{column}.date-formatter"))
        for column, text in formats.items()
    }


def check_formats(options: Mapping[str, str]) -> None:
    """Raises InvalidInputError for a ``date-formatter`` that cannot be read."""
    for key, text in options.items():
        if partition_date_column(key):
            strptime_format(text, key)


def zone_of(stored: StoredTable) -> ZoneInfo | None:
    """The time zone of the times of refreshes; None: that of the machine. Raises InvalidInputError."""
    name = TableOptions(stored.table.options()).value(PROCESS_TIME_ZONE)
    try:
        return ZoneInfo(str(name)) if name else None
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidInputError(
            f"option {PROCESS_TIME_ZONE.key}: expected a time zone such as Europe/Berlin, found {name!s:.80}",
            kind="invalid-option",
        ) from error


def wall_time(millis: int, zone: ZoneInfo | None) -> str:
    """A time as people read it."""
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=millis)
    return moment.astimezone(zone).isoformat(sep=" ", timespec="seconds")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
