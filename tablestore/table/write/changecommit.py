"""Commits a statement's changes as one snapshot, on top of the one that its query read.

    keyed table                     APPEND: the new files
    append table                    OVERWRITE: the new files, and
        with deletion vectors       the positions are marked (:mod:`~tablestore.table.write.deletemarks`)
        without                     the files that hold them are replaced (:mod:`~tablestore.table.write.rewriting`)

If rows changed meanwhile, or in an append table a compaction moved rows that the statement changes, the commit raises StalePlan and
its files are removed: the query has to run again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from tablestore.errors import InvalidInputError
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.format.writecounts import RowCounts
from tablestore.log.port import ChangeLog
from tablestore.store.commit.changecount import changed_rows
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.compact.bucketcompaction import discard_unnamed
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage
from tablestore.table.write.committing import CommitNote, Effect, Origin, commit_message
from tablestore.table.write.current import check_unchanged
from tablestore.table.write.deletemarks import MarkingDelete, MatchedRows
from tablestore.table.write.removedrows import RemovedRows
from tablestore.table.write.rowchange import RowChange
from tablestore.table.write.secondmatch import check_second_match


def commit_change(
    context: TableContext,
    log: ChangeLog,
    change: RowChange,
    base: Snapshot | None,
    message: CommitMessage,
    removed: RemovedRows,
    replaced: Sequence[ManifestEntry] = (),
    *,
    rows: RowCounts,
    note: CommitNote | None = None,
    prepared: bool = False,
) -> Snapshot | None:
    """Commit the messages of a statement's tasks; None if no row changed.

    ``replaced``: the ADD entries of files of ``base`` that the message has without their ``removed`` rows; where there are none,
    the rows are marked. ``rows``: those that the statement changes, as its tasks counted them. ``prepared``: the messages have
    crossed processes. Raises StalePlan, ConflictError, InvalidInputError of kind ``second-match``; nothing is visible then.
    """
    if context.schema.is_keyed:
        try:
            check_second_match(context, message.entries)
        except InvalidInputError:
            discard_unnamed(context, message)
            raise
    deletes = list(map(partial(replace, kind=EntryKind.DELETE), replaced))

    def plan_deletes(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        check_unchanged(context, base, latest, change.reads)
        return deletes

    def matching(latest: Snapshot) -> Iterator[MatchedRows]:
        check_unchanged(context, base, latest, change.reads)
        return matches_in(context, latest, removed)

    rows_changed = changed_rows(rows, new_keys=change.new_keys or not context.schema.is_keyed)
    effect = Effect(operation=change.operation, plan_deletes=plan_deletes, adds_no_row=not change.inserts, rows=rows_changed)
    if replaced:
        effect = replace(effect, kind=CommitKind.OVERWRITE)
    elif removed:
        marking = MarkingDelete(context, matching)
        effect = replace(effect, kind=CommitKind.OVERWRITE, plan_deletes=marking.plan_deletes, plan_index=marking.plan_index)
    # A message without files could not be known again.
    prepared = prepared and bool(message.new_files)
    origin = Origin(user=context.ids.uuid(), is_new_user=True, prepared=prepared, note=note or CommitNote())
    return commit_message(context, log, message, effect, origin)


def matches_in(context: TableContext, snapshot: Snapshot, removed: RemovedRows) -> Iterator[MatchedRows]:
    """The removed rows file by file. Raises StalePlan for a file that is not in the snapshot, InvalidInputError for a position that
    a file does not have."""
    live = {entry.file.file_name: entry for entry in context.manifests.live_named(snapshot, frozenset(removed.files))}
    where = f"snapshot {snapshot.id} of table {context.files.root_uri}"
    for name, positions in removed.items():
        entry = live.get(name)
        if entry is None:
            raise StalePlan(f"data file {name}, which has rows to be changed, is not in {where}: others have replaced it")
        if int(positions[-1]) >= entry.file.row_count:
            raise InvalidInputError(
                f"expected positions below {entry.file.row_count} in data file {name} of {where}, found {int(positions[-1])}",
                kind="row-position",
            )
        yield MatchedRows(entry, positions)
