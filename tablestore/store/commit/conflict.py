"""Detects conflicts of a commit with those that landed before it. Pure: each check takes values, and raises.

Appends and upserts never collide. A commit collides where it deletes a file that is no longer live, and where the table is not the
one that its files were written for: it was dropped and created again, its schema was altered in a way that its rows do not fit
(:mod:`~tablestore.types.evolution.laterows`), or its number of buckets was changed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from tablestore.errors import ConflictError
from tablestore.format.manifest.encodedentries import EncodedEntries
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, HASH, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.run import KeyOf
from tablestore.store.message import CommitMessage
from tablestore.store.schemas import check_is_same
from tablestore.types.evolution.laterows import added_columns, obstacles
from tablestore.types.evolution.replacing import is_in_force
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema

SHOWN = 3


class StalePlan(ConflictError):
    """A commit was planned on state that is no longer so. Plan again on the newest snapshot."""

    default_kind = "stale-plan"


def being_replaced(table: str, waiting: TableSchema) -> ConflictError:
    """The error of a write or an alteration while the table's replacement waits for its rows."""
    return ConflictError(
        f"table {table} is being replaced (schema {waiting.id} waits for its rows); nothing was changed: open it again and repeat. "
        "If the job that replaces it is dead, `tablestore clean` takes that back an hour later, or with --older-than at once",
        kind="being-replaced",
    )


def check_table(
    message: CommitMessage,
    *,
    latest: TableSchema,
    snapshot: Snapshot | None,
    read_schema: Callable[[int], TableSchema],
    replaces_rows: bool,
    table: str,
) -> None:
    """The table is the one that the files were written for, and their rows may land under its schema. Raises ConflictError.

    ``latest``: the newest schema, and ``snapshot`` the newest snapshot before it was read. ``replaces_rows``: whether rows that are
    there give way to the new ones. A commit that only compacts may have an older schema: its files are read as any old file is; but
    not while a replacement waits for its rows.
    """
    check_is_same(message.table_uuid, latest, table=table)
    if message.schema_id == latest.id:
        return
    newest = (snapshot.id, snapshot.schema_id) if snapshot is not None else (0, 0)
    if not is_in_force(latest, snapshot_id=newest[0], schema_id=newest[1]):
        raise being_replaced(table, latest)
    if message.entries or not message.compact_before:
        schemas = [read_schema(schema_id) for schema_id in range(message.schema_id, latest.id)]
        _check_late_rows((*schemas, latest), has_newer_rows=newest[1] > message.schema_id, replaces_rows=replaces_rows, table=table)


def _check_late_rows(schemas: Sequence[TableSchema], *, has_newer_rows: bool, replaces_rows: bool, table: str) -> None:
    """Raise ConflictError unless rows of the first schema may land under the last. While no commit had a newer schema than theirs,
    nothing is stored in the columns that they lack."""
    reasons = obstacles(schemas)
    if not reasons and has_newer_rows and replaces_rows and (added := added_columns(schemas[0], schemas[-1])):
        reasons = (f"column {added[0]!r} was added and has values that the rows would replace",)
    if reasons:
        more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        raise ConflictError(
            f"table {table} has schema {schemas[-1].id} now, these rows were written with schema {schemas[0].id}, and since then "
            f"{reasons[0]}{more}; nothing was committed: write them again with a new writer (table.new_writer()), which has the "
            "schema of today, as has table.refresh()",
            kind="schema-changed",
        )


def check_buckets(new_entries: Iterable[ManifestEntry], landed: Iterable[ManifestEntry], *, table: str) -> None:
    """Raises ConflictError unless all files of a partition have one number of buckets. Rows whose buckets are postponed fit any.

    ``new_entries``: the commit's entries. ``landed``: entries that are live, or that others have added since.
    """
    counts: dict[bytes, int] = {}
    for entry in landed:
        if entry.kind is EntryKind.ADD and entry.total_buckets > 0:
            counts[entry.partition] = entry.total_buckets
    for entry in new_entries:
        bucket_count = counts.get(entry.partition, entry.total_buckets)
        if entry.kind is EntryKind.ADD and entry.bucket != POSTPONE_BUCKET and bucket_count != entry.total_buckets:
            raise ConflictError(
                f"table {table}: these files were written for {entry.total_buckets} buckets, the partition has {bucket_count} now; "
                "open the table again and repeat the write. If its option bucket says another number than the partition has, the "
                f"partition is still to be rescaled: table.rescale({entry.total_buckets}), or overwrite it",
                kind="rescaled",
            )


def check_own_delta(entries: Sequence[ManifestEntry], *, table: str) -> None:
    """No file is added twice or deleted twice in one commit. Raises ConflictError."""
    if isinstance(entries, EncodedEntries) and entries.are_different:
        return
    seen: set[object] = set()
    for entry in entries:
        key = (entry.kind, entry.identity)
        if key in seen:
            raise ConflictError(
                f"Conflicts detected on: {describe(entry)} of table {table} is named twice in one commit; was a message "
                "committed twice?",
                kind="duplicate-file",
            )
        seen.add(key)


def check_deletes(deletes: Sequence[ManifestEntry], live: Iterable[ManifestEntry], *, latest: Snapshot | None, table: str) -> None:
    """Every file to delete is live in ``latest``. Raises :class:`StalePlan`, which names the files and the newest commit."""
    if not deletes:
        return
    live_identities = {entry.identity for entry in live}
    missing = [entry for entry in deletes if entry.identity not in live_identities]
    if missing:
        shown = "; ".join(describe(entry) for entry in missing[:SHOWN])
        other = f"snapshot {latest.id} ({latest.commit_kind} by {latest.commit_user})" if latest else "no snapshot is there"
        raise StalePlan(
            f"Conflicts detected on: {shown}{' …' if len(missing) > SHOWN else ''} of table {table}: {len(missing)} file(s) to "
            f"delete are no longer live, newest is {other}; plan again on it"
        )


def check_levels(
    added: Iterable[ManifestEntry],
    deletes: Iterable[ManifestEntry],
    live: Iterable[ManifestEntry],
    *,
    key_of: KeyOf,
    table: str,
) -> None:
    """After the commit, the files of each level above 0 of a bucket have disjoint key ranges. Raises :class:`StalePlan`.

    ``live``: the files before it. ``key_of``: the order of the table's keys.
    """
    touched = {(e.partition, e.bucket, e.file.level) for e in added if e.file.level > 0}
    if not touched:
        return
    deleted = {entry.identity for entry in deletes}
    runs: dict[tuple[bytes, int, int], list[ManifestEntry]] = defaultdict(list)
    for entry in (*(e for e in live if e.identity not in deleted), *added):
        place = (entry.partition, entry.bucket, entry.file.level)
        if place in touched:
            runs[place].append(entry)
    for run in runs.values():
        bounded = sorted(((key_of(e.file.min_key), key_of(e.file.max_key), e) for e in run), key=lambda item: item[0])
        for (_, end, previous), (start, _, other) in pairwise(bounded):
            if not end < start:
                raise StalePlan(
                    f"Conflicts detected on: {describe(previous)} and {describe(other)} of table {table} would lie in one level "
                    "with keys that overlap; plan again on the newest snapshot"
                )


def changed_index(
    index: Sequence[IndexEntry],
    changes: Sequence[IndexEntry],
    delta: Sequence[ManifestEntry],
    *,
    keeps_rows: bool = False,
    table: str,
) -> tuple[IndexEntry, ...]:
    """The index files after a commit.

    ``index``: those before it. ``changes``: index files that it deletes and adds. ``delta``: its data files. The deletion vector of
    a data file goes with the file, and an index file without vectors goes too. A commit that ``keeps_rows`` (a compaction) must
    have applied those vectors to its own output, or deleted rows would come back.

    Raises :class:`StalePlan` where others have changed the index meanwhile: an index file to delete is gone, a bucket has an index
    file of the kind to add already, or a vector is newer than the compaction.
    """
    if not index and not changes:
        return ()
    by_name = {entry.file_name: entry for entry in index}
    for change in changes:
        if change.kind is EntryKind.DELETE and by_name.pop(change.file_name, None) is None:
            raise _stale_index(change, "no longer live", table)
    removed_files: set[str] = set()
    # Those are ADDs alone.
    if not isinstance(delta, EncodedEntries):
        staying = {entry.file.file_name for entry in delta if entry.kind is EntryKind.ADD}
        removed_files = {entry.file.file_name for entry in delta if entry.kind is EntryKind.DELETE} - staying
    remaining: list[IndexEntry] = []
    for entry in by_name.values():
        vectors = entry.deletion_vectors or ()
        live_vectors = tuple(vector for vector in vectors if vector.data_file not in removed_files)
        if len(live_vectors) < len(vectors):
            if keeps_rows:
                raise _stale_index(entry, "newer than the compaction of a file whose deleted rows it names", table)
            entry = replace(entry, deletion_vectors=live_vectors, row_count=len(live_vectors))
        if live_vectors or not vectors:
            remaining.append(entry)
    occupied = {_place(entry): entry for entry in remaining if entry.index_type in (DELETION_VECTORS, HASH)}
    added = [change for change in changes if change.kind is EntryKind.ADD]
    for change in added:
        if _place(change) in occupied:
            raise _stale_index(occupied[_place(change)], "there already, and was not replaced", table)
    return (*remaining, *added)


def check_vectors(
    changes: Iterable[IndexEntry], delta: Sequence[ManifestEntry], live: Iterable[ManifestEntry], *, table: str
) -> None:
    """Every deletion vector that a commit adds is of a data file that is live after it. Raises :class:`StalePlan`.

    ``live``: the data files before it.
    """
    live_files = {entry.file.file_name for entry in live} - {e.file.file_name for e in delta if e.kind is EntryKind.DELETE}
    live_files |= {entry.file.file_name for entry in delta if entry.kind is EntryKind.ADD}
    for change in changes:
        if change.kind is EntryKind.ADD and any(v.data_file not in live_files for v in change.deletion_vectors or ()):
            raise _stale_index(change, "about data files that are no longer live", table)


def _place(entry: IndexEntry) -> tuple[bytes, int, str]:
    return entry.partition, entry.bucket, entry.index_type


def _stale_index(entry: IndexEntry, reason: str, table: str) -> StalePlan:
    return StalePlan(
        f"Conflicts detected on: index file {entry.file_name} ({entry.index_type}) of bucket {entry.bucket} of table {table} is "
        f"{reason}; plan again on the newest snapshot"
    )


def describe(entry: ManifestEntry) -> str:
    """A manifest entry for people."""
    return (
        f"partition {entry.partition[4:].hex() or '()'} bucket {entry.bucket} level {entry.file.level} file {entry.file.file_name}"
    )
