"""Commits what was written, as one snapshot, and starts what the table does after it.

Every change of rows passes :func:`commit_message`, so that it is the place where rules of a catalog service bound what their caller
writes: whole rows that are added, or take the place of those of their keys. What would remove, keep or combine stored rows depends
on rows that the caller does not see.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.format.snapshot import CommitKind, Snapshot, without_numbers
from tablestore.format.writecounts import RowCounts
from tablestore.log.port import ChangeLog, RowsAhead
from tablestore.options import is_materialized
from tablestore.store.commit.committer import CommitRequest, Guard, PlanDeletes, PlanIndex
from tablestore.store.commit.committerfactory import committer
from tablestore.store.compact.bucketcompaction import discard_unnamed
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage
from tablestore.store.write.writerfactory import dynamic_commit, keep_commit
from tablestore.table.upkeep.aftercommit import after_write


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitNote:
    """The notes of a snapshot about its rows, and a test of where it may land: ``guard`` looks at the newest one in each
    round.

    A commit with a note is published even where it changes no row.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    guard: Guard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of a commit besides adding rows. ``replaces``: the partitions that an overwrite empties. ``keeps_rows``: they
    stay what they are or were, so that materialized tables take it too. ``adds_no_row``: it replaces or deletes rows that
    it has read, and adds no other. ``rows``: those that it inserts, updates and deletes, where that is not what its files tell."""

    kind: CommitKind = CommitKind.APPEND
    operation: str = "WRITE"
    plan_deletes: PlanDeletes | None = None
    plan_index: PlanIndex | None = None
    replaces: Callable[[bytes], bool] | None = None
    replaces_everything_it_meets: bool = False
    allow_empty: bool = False
    properties: Mapping[str, str] | None = None
    keeps_rows: bool = False
    adds_no_row: bool = False
    rows: RowCounts | None = None


def overwriting(
    *,
    plan_deletes: PlanDeletes,
    plan_index: PlanIndex | None = None,
    replaces: Callable[[bytes], bool] | None = None,
    properties: Mapping[str, str] | None = None,
    keeps_rows: bool = False,
    rows: RowCounts | None = None,
) -> Effect:
    """The effect of an overwrite."""
    return Effect(
        kind=CommitKind.OVERWRITE,
        operation="OVERWRITE",
        plan_deletes=plan_deletes,
        plan_index=plan_index,
        replaces=replaces,
        replaces_everything_it_meets=True,
        properties=properties,
        keeps_rows=keeps_rows,
        rows=rows,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of a commit. ``is_new_user``: no commit of ``user`` had an identifier before. ``prepared``: the message has
    crossed processes, so it may have landed before."""

    user: str
    identifier: int | None = None
    is_new_user: bool = False
    prepared: bool = False
    note: CommitNote = CommitNote()


def check_takes_rows(context: TableContext) -> None:
    """Raise InvalidInputError for a materialized table: nothing but its query says which rows it has."""
    if is_materialized(context.schema.options):
        raise InvalidInputError(
            f"table {context.files.root_uri} is a materialized table: its rows are those of its query. Change the tables that it "
            "reads, and ALTER MATERIALIZED TABLE … REFRESH it",
            kind="materialized-table",
        )


def check_adds_whole_rows(context: TableContext, message: CommitMessage, effect: Effect) -> None:
    """Raise UnsupportedError where rules hide something from the caller, and the commit is more than adding whole rows."""
    merge = context.settings.merge
    if effect.plan_deletes is not None or effect.plan_index is not None:
        context.check_sees_all("a commit that replaces or removes rows")
    if any(entry.file.delete_row_count for entry in message.entries):
        context.check_sees_all("a change that removes rows (-U, -D)")
    if message.kept:
        context.check_sees_all("a row that keeps stored values")
    if message.entries and merge is not None and (merge.engine != "deduplicate" or merge.sequence_fields):
        why = f"merge-engine {merge.engine}" if merge.engine != "deduplicate" else "sequence.field"
        context.check_sees_all(f"a write whose outcome depends on stored rows ({why})")


def commit_message(
    context: TableContext,
    log: ChangeLog,
    message: CommitMessage,
    effect: Effect,
    origin: Origin,
    *,
    early: RowsAhead | None = None,
) -> Snapshot | None:
    """Commit prepared files. Then compact a share of their buckets, expire snapshots that are due, and publish to the log.

    Does nothing if the message, or the commit of that identifier, has landed before. If the commit certainly did not land, the
    files are removed before the error is raised. Nothing is raised once it has landed. Raises UnsupportedError of kind
    ``query-rules`` for what rules of a catalog service do not allow; under rules the snapshot comes without numbers.
    """
    try:
        ruled = context.ruled()
        hides = ruled.view is not None
        if hides:
            check_adds_whole_rows(ruled, message, effect)
    except TablestoreError:
        discard_unnamed(context, message)
        raise
    if not (origin.note.properties or effect.keeps_rows):
        check_takes_rows(context)
    # A commit that plans its index files itself brings files that have their buckets.
    hashes = effect.plan_index is None and bool(message.entries or effect.replaces)
    dynamic = dynamic_commit(context, effect.replaces) if hashes else None
    revise = dynamic.revise if dynamic else None
    keep = keep_commit(context, message.kept, revise) if message.kept else None
    request = CommitRequest(
        user=origin.user,
        identifier=origin.identifier,
        is_new_user=origin.is_new_user,
        prepared=origin.prepared,
        kind=effect.kind,
        operation=effect.operation,
        message=message,
        guard=origin.note.guard,
        plan_deletes=effect.plan_deletes,
        plan_index=dynamic.plan_index if dynamic else effect.plan_index,
        revise=keep.revise if keep else revise,
        adds_no_row=effect.adds_no_row,
        rows=effect.rows,
        count_replaced=keep.replaced if keep else lambda: None,
        replaces_everything_it_meets=effect.replaces_everything_it_meets,
        properties={**log.properties(), **(effect.properties or {}), **origin.note.properties},
        allow_empty=effect.allow_empty or bool(origin.note.properties),
    )
    committed = committer(context).commit_once(request)
    if committed.snapshot is not None:
        after_write(context, log, committed.snapshot, committed, prepared=origin.prepared, early=early)
    elif early is not None:
        early.ended(landed=False)
    return without_numbers(committed.snapshot, own=True) if hides and committed.snapshot is not None else committed.snapshot
