"""Views a warehouse: its databases, a part of its tables with their figures, and what needs care first.

Figures are read of the tables of one page alone. What needs care is looked for in these, and in others of those that the caller
sees a part at a time (:mod:`~tablestore.server.page.warehousesurvey`); the view says in how many, and how long ago.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tablestore.environment.session.objects import View
from tablestore.errors import TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.materialized.figures.freshnessfigures import FreshnessFigures
from tablestore.options import is_materialized
from tablestore.server.page.listpart import ListPart, part_of
from tablestore.server.page.pagecontext import PageContext
from tablestore.server.page.warehousesurvey import KEPT_MS, Seen
from tablestore.table.inspect.bucketpicture import describe_buckets
from tablestore.table.inspect.tablefigures import figures_of_table
from tablestore.table.table import Table
from tablestore.table.upkeep.undone import upkeep
from tablestore.tableenvironment import TableEnvironment
from tablestore.units import human_bytes, human_duration

TABLES_A_PAGE = 100
MOST_FILES_PICTURED = 1_000
"""Files of a table up to which its compaction debt is computed beside others."""

Severity = Literal["problem", "warning"]
_Line = Callable[[Severity, str, str, str | None], "CareLine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CareLine:
    """One thing that needs care, and what to do. ``kind`` is stable, for programs."""

    severity: Severity
    kind: str
    database: str | None
    table: str | None
    message: str
    way_out: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """One table. ``rows``: as readers see them where ``rows_exact``, else records in files; None of what has no files of ours."""

    database: str
    name: str
    kind: str
    comment: str | None = None
    rows: int | None = None
    rows_exact: bool = False
    size_bytes: int | None = None
    files: int | None = None
    snapshot_id: int | None = None
    time_ms: int | None = None
    care: tuple[CareLine, ...] = ()

    @property
    def health(self) -> str:
        """``problem``, ``warning`` or ``good``."""
        severities = {line.severity for line in self.care}
        return "problem" if "problem" in severities else "warning" if severities else "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseLine:
    """One database, and how many tables and views of it the caller sees."""

    name: str
    tables: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehouseView:
    """The page of a warehouse. ``looked_at``: how many tables of ``seen`` were looked at for what needs care, by now and since
    ``oldest_ms``."""

    location: str
    databases: tuple[DatabaseLine, ...]
    tables: ListPart[TableLine]
    care: tuple[CareLine, ...]
    looked_at: int
    seen: int
    oldest_ms: int | None
    search: str = ""
    database: str = ""


def view_warehouse(context: PageContext) -> WarehouseView:
    """The page of the warehouse; the query may have ``search``, ``database`` and ``page``."""
    search, database = context.query.get("search", "").strip()[:200], context.query.get("database", "")[:200]
    names = {
        name: (*((table, False) for table in context.tables(name)), *((kept, True) for kept in context.kept(name)))
        for name in context.databases()
    }
    every = [(db, name, kept) for db, pairs in names.items() for name, kept in pairs]
    wanted = [one for one in every if database in ("", one[0]) and search.casefold() in f"{one[0]}.{one[1]}".casefold()]
    chosen = part_of(wanted, context.number("page"), TABLES_A_PAGE)
    managed = [(db, name) for db, name, kept in every if not kept]
    survey = context.survey
    lines: dict[tuple[str, str], TableLine] = {}
    with TableEnvironment.create(context.catalog) as environment:

        def look(place: tuple[str, str]) -> None:
            lines[place] = _table_line(context, *place, environment)

        for db, name, kept in chosen.lines:
            if kept:
                lines[db, name] = _kept_line(context, db, name)
            else:
                look((db, name))
        survey.look(managed, context.now_ms, look)
    tables = ListPart(
        lines=tuple(lines[db, name] for db, name, _ in chosen.lines),
        page=chosen.page,
        size=chosen.size,
        total=chosen.total,
        has_next=chosen.has_next,
    )
    known = survey.known(managed)
    care = [one for seen in known.values() for one in seen.value.care] + list(_job_care(context))
    return WarehouseView(
        location=context.catalog.location,
        databases=tuple(DatabaseLine(name=name, tables=len(pairs)) for name, pairs in names.items()),
        tables=tables,
        care=tuple(sorted(care, key=_urgency)),
        looked_at=len(known),
        seen=len(managed),
        oldest_ms=min((seen.at_ms for seen in known.values()), default=None),
        search=search,
        database=database,
    )


def _urgency(line: CareLine) -> tuple[int, str, str]:
    return (0 if line.severity == "problem" else 1, line.kind, f"{line.database}.{line.table}")


def _kept_line(context: PageContext, database: str, name: str) -> TableLine:
    try:
        kept = context.kept_object(database, name)
    except TablestoreError as error:
        care = CareLine(severity="problem", kind="unreadable", database=database, table=name, message=error.message)
        return TableLine(database=database, name=name, kind="unreadable", care=(care,))
    kind = "view" if isinstance(kept, View) else "connector"
    return TableLine(database=database, name=name, kind=kind, comment=kept.comment if kept is not None else None)


def _table_line(context: PageContext, database: str, name: str, environment: TableEnvironment) -> TableLine:
    """The line of a table: as it was seen lately, if it has not changed since."""
    place, version = (database, name), None
    try:
        table = context.catalog.table(f"{database}.{name}")
        if not isinstance(table, Table):
            return TableLine(database=database, name=name, kind="system")
        latest = table.context.snapshots.latest()
        version = (table.context.table_uuid, table.context.schema.id, None if latest is None else (latest.id, latest.uuid))
        seen = context.survey.seen(place)
        if seen is not None and seen.version == version and context.now_ms - seen.at_ms < KEPT_MS:
            kept: TableLine = seen.value
            return kept
        line = _line_of(table, database, name, latest, environment)
    except TablestoreError as error:
        care = CareLine(
            severity="problem",
            kind="unreadable",
            database=database,
            table=name,
            message=error.message,
            way_out=f"tablestore verify {database}.{name}",
        )
        line = TableLine(database=database, name=name, kind="unreadable", care=(care,))
    context.survey.note(place, Seen(line, context.now_ms, version))
    return line


def _line_of(table: Table, database: str, name: str, latest: Snapshot | None, environment: TableEnvironment) -> TableLine:
    own = figures_of_table(table.context)
    figures = environment.freshness_of(database, name) if is_materialized(table.options()) else None
    return TableLine(
        database=database,
        name=name,
        kind=own.kind,
        comment=table.comment,
        rows=own.rows,
        rows_exact=own.rows_exact,
        size_bytes=own.size_bytes,
        files=own.files,
        snapshot_id=own.snapshot_id,
        time_ms=own.time_ms,
        care=tuple(care_of(table, database, name, latest, own.files, figures)),
    )


def care_of(
    table: Table, database: str, name: str, latest: Snapshot | None, files: int, figures: FreshnessFigures | None
) -> Iterator[CareLine]:
    """The things of a table that need care. Raises StorageError, FormatError."""

    def line(severity: Severity, kind: str, message: str, way_out: str | None) -> CareLine:
        return CareLine(severity=severity, kind=kind, database=database, table=name, message=message, way_out=way_out)

    place = f"{database}.{name}"
    if figures is not None:
        yield from _freshness_care(figures, line)
    left = upkeep(table.context, lambda: table.change_log)
    for task in left.undone:
        yield line("problem", "undone", f"{task.task} after snapshot {task.snapshot_id} failed: {task.error}", task.way_out)
    if left.unpublished:
        message = f"its topic lacks {left.unpublished:,} snapshots" if left.unpublished > 1 else "its topic lacks one snapshot"
        yield line("warning", "log-behind", message, f"tablestore log publish {place}")
    if left.due_snapshots and left.held_by:
        yield line("warning", "expiry-held", f"{left.due_snapshots:,} old snapshots are held back by {left.held_by}", None)
    if files <= MOST_FILES_PICTURED:
        pictures = describe_buckets(table.context, latest)
        due = [picture for picture in pictures if picture.due is not None]
        if due:
            size = human_bytes(sum(picture.due_bytes for picture in due))
            buckets = "one bucket" if len(due) == 1 else f"{len(due):,} buckets"
            yield line("warning", "compaction-due", f"{size} in {buckets} are due for compaction", f"tablestore compact {place}")


def _freshness_care(figures: FreshnessFigures, line: _Line) -> Iterator[CareLine]:
    if figures.error is not None:
        message = f"its last {'refresh' if figures.error.during == 'refresh' else 'alteration'} failed: {figures.error.message}"
        yield line("problem", "refresh-failed", message, None)
    if figures.lag_ms is None:
        yield line("problem", "lag-unknown", "a table that it is made from cannot be read", None)
    elif figures.is_late:
        late = f"it is {human_duration(figures.lag_ms)} behind, and is to be at most {human_duration(figures.target_ms)}"
        yield line("problem", "late", late, f"tablestore mt refresh {figures.table.database}.{figures.table.name}")
    if figures.status == "SUSPENDED":
        way_out = f"tablestore mt resume {figures.table.database}.{figures.table.name}"
        yield line("warning", "suspended", "its refreshes are suspended", way_out)


def _job_care(context: PageContext) -> Iterator[CareLine]:
    for job in context.visible_jobs():
        if job.status == "FAILED":
            yield CareLine(
                severity="problem",
                kind="job-failed",
                database=job.database,
                table=job.table,
                message=f"{job.what} failed: {job.detail or 'no reason is known'}",
            )
