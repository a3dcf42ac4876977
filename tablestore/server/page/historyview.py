"""Views the history of a table: its commits with tags and branches, and the rows that one of them changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import NotFoundError, TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.format.tagfile import Tag
from tablestore.names import is_number
from tablestore.server.page.listpart import ListPart, window
from tablestore.server.page.pagecontext import PageContext
from tablestore.server.page.tableview import RowsPart, TableHead, head_of, rows_part
from tablestore.table.table import Table
from tablestore.types.rowkind import ROW_KIND_COLUMN

COMMITS_A_PAGE = 30
ROWS_A_PAGE = 100
MOST_COUNTED = 20_000
"""Records of one commit up to which its changes are counted for the timeline, and of all commits of a page together."""
MOST_CHANGE_PAGES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLine:
    """One commit. ``added``, ``removed`` and ``updated`` are rows; None where nobody counted them. ``keeps_rows``: readers see the
    rows that they saw before it."""

    id: int
    time_ms: int
    operation: str
    user: str
    size_text: str
    keeps_rows: bool
    rows: int | None
    row_change: int | None
    records: int | None
    schema_id: int
    tags: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    added: int | None = None
    removed: int | None = None
    updated: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """One page of the timeline of a table, newest commit first. ``tags_gone``: tags whose snapshots have expired otherwise."""

    head: TableHead
    commits: ListPart[CommitLine]
    kept_tags: tuple[CommitLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesView:
    """The rows that one commit changed, one page of them. ``error``: why they are not known."""

    head: TableHead
    commit: CommitLine
    page: int
    has_next: bool
    kinds: tuple[str, ...]
    rows: RowsPart
    before: int | None
    after: int | None


def view_history(context: PageContext) -> HistoryView:
    """The timeline of the table of the path; the query may have ``page``. Raises NotFoundError, InvalidInputError."""
    table, page = context.table(), context.number("page")
    ids = tuple(reversed(table.context.snapshots.live_ids()))
    chosen = ids[window(page, COMMITS_A_PAGE)]
    if page > 1 and not chosen:
        raise NotFoundError(f"there is no page {page}", kind="no-such-page")
    tags, branches = _tags(table), _branches(table)
    lines, budget = [], MOST_COUNTED
    inside = table.context.ruled()
    for snapshot in map(inside.shown, filter(None, map(inside.snapshots.find, chosen))):
        line = commit_line(snapshot, tags.get(snapshot.id, ()), branches.get(snapshot.id, ()))
        if not line.keeps_rows and 0 < _changed_records(snapshot) <= budget:
            budget -= _changed_records(snapshot)
            line = _counted(table, line)
        lines.append(line)
    gone = [commit_line(tag.snapshot, (tag.name,), ()) for tag in _all_tags(table) if tag.snapshot.id not in ids]
    commits = ListPart(
        lines=tuple(lines), page=page, size=COMMITS_A_PAGE, total=len(ids), has_next=page * COMMITS_A_PAGE < len(ids)
    )
    return HistoryView(head=head_of(context, table), commits=commits, kept_tags=tuple(gone[:COMMITS_A_PAGE]))


def view_changes(context: PageContext) -> ChangesView:
    """The rows that a commit changed; the path has ``snapshot``, the query may have ``page``. Raises NotFoundError,
    InvalidInputError."""
    table, page = context.table(), context.number("page")
    text = context.names["snapshot"]
    inside = table.context.ruled()
    snapshot = inside.snapshots.find(int(text)) if is_number(text) and int(text) < 2**62 else None
    if snapshot is None or page > MOST_CHANGE_PAGES:
        raise NotFoundError(f"{table.name} has no snapshot {text:.40} any more", kind="no-such-snapshot")
    snapshot = inside.shown(snapshot)
    line = commit_line(snapshot, _tags(table).get(snapshot.id, ()), _branches(table).get(snapshot.id, ()))
    kinds, rows, has_next = _change_rows(table, snapshot, page)
    return ChangesView(
        head=head_of(context, table),
        commit=_counted(table, line) if 0 < _changed_records(snapshot) <= MOST_COUNTED else line,
        page=page,
        has_next=has_next,
        kinds=kinds,
        rows=rows,
        before=snapshot.id - 1 if table.context.snapshots.find(snapshot.id - 1) else None,
        after=snapshot.id + 1 if table.context.snapshots.find(snapshot.id + 1) else None,
    )


def commit_line(snapshot: Snapshot, tags: tuple[str, ...], branches: tuple[str, ...]) -> CommitLine:
    """A snapshot as a line of the timeline, with nothing counted."""
    return CommitLine(
        id=snapshot.id,
        time_ms=snapshot.time_millis,
        operation=snapshot.operation or str(snapshot.commit_kind),
        user=snapshot.commit_user,
        size_text=snapshot.size_text,
        keeps_rows=snapshot.commit_kind.keeps_rows,
        rows=snapshot.rows,
        row_change=snapshot.row_change,
        records=snapshot.delta_record_count,
        schema_id=snapshot.schema_id,
        tags=tags,
        branches=branches,
    )


def _changed_records(snapshot: Snapshot) -> int:
    return max(abs(snapshot.delta_record_count or 0), snapshot.changelog_record_count or 0)


def _counted(table: Table, line: CommitLine) -> CommitLine:
    """The line with its changes counted by kind."""
    try:
        # One column is the least that there is to read.
        column = table.primary_key[0] if table.primary_key else table.table_schema.field_names[0]
        changes = table.changes(line.id - 1, line.id, [column]).to_arrow()
    except TablestoreError as error:
        return replace(line, note=error.message)
    counts = {one["values"]: one["counts"] for one in pc.value_counts(changes.column(ROW_KIND_COLUMN)).to_pylist()}
    return replace(line, added=counts.get("+I", 0), removed=counts.get("-D", 0), updated=counts.get("+U", 0))


def _change_rows(table: Table, snapshot: Snapshot, page: int) -> tuple[tuple[str, ...], RowsPart, bool]:
    start, wanted = (page - 1) * ROWS_A_PAGE, ROWS_A_PAGE + 1
    batches, passed, count = [], 0, 0
    try:
        if snapshot.commit_kind.keeps_rows:
            return (), RowsPart(error="this commit changed no row: it only rewrote files, or counted them"), False
        for batch in table.changes(snapshot.id - 1, snapshot.id).to_batches():
            rows = batch.slice(min(max(start - passed, 0), batch.num_rows), wanted - count)
            passed, count = passed + batch.num_rows, count + rows.num_rows
            if rows.num_rows:
                batches.append(rows)
            if count == wanted:
                break
    except TablestoreError as error:
        return (), RowsPart(error=error.message), False
    if not batches:
        return (), rows_part(table.schema.empty_table()), False
    shown = pa.Table.from_batches(batches).slice(0, ROWS_A_PAGE)
    kinds = tuple(shown.column(ROW_KIND_COLUMN).to_pylist())
    return kinds, rows_part(shown.drop_columns([ROW_KIND_COLUMN])), count == wanted


def _all_tags(table: Table) -> tuple[Tag, ...]:
    try:
        return tuple(table.tags())
    except TablestoreError:
        # One that is damaged does not hide the history; verify says so.
        return ()


def _tags(table: Table) -> Mapping[int, tuple[str, ...]]:
    named: dict[int, tuple[str, ...]] = {}
    for tag in islice(_all_tags(table), 10_000):
        named[tag.snapshot.id] = (*named.get(tag.snapshot.id, ()), tag.name)
    return named


def _branches(table: Table) -> Mapping[int, tuple[str, ...]]:
    """The branches by the snapshot that they begin at."""
    begun: dict[int, tuple[str, ...]] = {}
    try:
        tags = {tag.name: tag.snapshot.id for tag in _all_tags(table)}
        for branch in table.branches():
            start = branch.created_from_snapshot or tags.get(branch.created_from_tag or "")
            if start is not None:
                begun[start] = (*begun.get(start, ()), branch.name)
    except TablestoreError:
        return {}
    return begun
