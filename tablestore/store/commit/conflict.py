"""Do two commits collide? Pure: values in, conflicts out.

Appends and upserts never conflict. What can go wrong is that a commit deletes a file that is no longer live, or that the
table is not the one that the files were written for: dropped and created anew, evolved, or with another bucket count.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from tablestore.errors import ConflictError
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, HASH, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.run import KeyOf
from tablestore.store.message import CommitMessage
from tablestore.store.schemas import check_is_same
from tablestore.types.schema import TableSchema

SHOWN = 3


class StalePlan(ConflictError):
    """The plan of a read-modify-write no longer holds for the newest snapshot; plan again on it."""

    default_kind = "stale-plan"


def check_table(message: CommitMessage, *, latest: TableSchema, table: str) -> None:
    """The table must still be the one that the files were written for. Raises ConflictError.

    A commit that only compacts may have an older schema: its files are read as any old file is.
    """
    check_is_same(message.table_uuid, latest, table=table)
    if message.schema_id != latest.id and (message.entries or not message.compact_before):
        raise ConflictError(
            f"table {table} has schema {latest.id} now, these rows were written with schema {message.schema_id}; open the table "
            "again and repeat the write",
            kind="schema-changed",
        )


def check_buckets(own: Iterable[ManifestEntry], landed: Iterable[ManifestEntry], *, table: str) -> None:
    """A partition has one bucket count. ``landed`` are live or newly added entries of others. Raises ConflictError."""
    counts: dict[bytes, int] = {}
    for entry in landed:
        if entry.kind is EntryKind.ADD and entry.total_buckets > 0:
            counts[entry.partition] = entry.total_buckets
    for entry in own:
        there = counts.get(entry.partition, entry.total_buckets)
        if entry.kind is EntryKind.ADD and there != entry.total_buckets:
            raise ConflictError(
                f"table {table}: these files were written for {entry.total_buckets} buckets, the partition has {there} now; "
                "open the table again and repeat the write. If its option bucket says another number than the partition has, the "
                f"partition is still to be rescaled: table.rescale({entry.total_buckets}), or overwrite it",
                kind="rescaled",
            )


def check_own_delta(entries: Sequence[ManifestEntry], *, table: str) -> None:
    """One commit adds and deletes a file at most once. Raises ConflictError."""
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
    """Every file to delete must be live in ``latest``. Raises :class:`StalePlan` that names the files and the other commit."""
    if not deletes:
        return
    known = {entry.identity for entry in live}
    gone = [entry for entry in deletes if entry.identity not in known]
    if gone:
        shown = "; ".join(describe(entry) for entry in gone[:SHOWN])
        other = f"snapshot {latest.id} ({latest.commit_kind} by {latest.commit_user})" if latest else "no snapshot is there"
        raise StalePlan(
            f"Conflicts detected on: {shown}{' …' if len(gone) > SHOWN else ''} of table {table}: {len(gone)} file(s) to delete "
            f"are no longer live, newest is {other}; plan again on it"
        )


def check_levels(
    added: Iterable[ManifestEntry],
    deletes: Iterable[ManifestEntry],
    live: Iterable[ManifestEntry],
    *,
    key_of: KeyOf,
    table: str,
) -> None:
    """After the delta, the files of one level above 0 have disjoint keys. Raises :class:`StalePlan` that names two that meet.

    ``key_of``: the table's ``KeyOrder``.
    """
    touched = {(e.partition, e.bucket, e.file.level) for e in added if e.file.level > 0}
    if not touched:
        return
    gone = {entry.identity for entry in deletes}
    runs: dict[tuple[bytes, int, int], list[ManifestEntry]] = defaultdict(list)
    for entry in (*(e for e in live if e.identity not in gone), *added):
        place = (entry.partition, entry.bucket, entry.file.level)
        if place in touched:
            runs[place].append(entry)
    for run in runs.values():
        bounded = sorted(((key_of(e.file.min_key), key_of(e.file.max_key), e) for e in run), key=lambda item: item[0])
        for (_, end, one), (start, _, other) in pairwise(bounded):
            if not end < start:
                raise StalePlan(
                    f"Conflicts detected on: {describe(one)} and {describe(other)} of table {table} would lie in one level with "
                    "keys that overlap; plan again on the newest snapshot"
                )


def changed_index(
    index: Sequence[IndexEntry],
    changes: Sequence[IndexEntry],
    delta: Sequence[ManifestEntry],
    *,
    keeps_rows: bool = False,
    table: str,
) -> tuple[IndexEntry, ...]:
    """The index files after a commit: those there, without the deleted, with the added ones.

    Deletion vectors of files that ``delta`` deletes go too; index files that hold no others go with them. With ``keeps_rows`` (a
    compaction) that would bring deleted rows back, so the commit itself must have replaced them. Raises :class:`StalePlan` if
    it has not, if an index file to delete is not there, or if one to add is not the only one of its kind in its bucket:
    somebody else has changed the index meanwhile.
    """
    there = {entry.file_name: entry for entry in index}
    for change in changes:
        if change.kind is EntryKind.DELETE and there.pop(change.file_name, None) is None:
            raise _stale_index(change, "no longer live", table)
    staying = {entry.file.file_name for entry in delta if entry.kind is EntryKind.ADD}
    gone = {entry.file.file_name for entry in delta if entry.kind is EntryKind.DELETE} - staying
    kept: list[IndexEntry] = []
    for entry in there.values():
        vectors = entry.deletion_vectors or ()
        needed = tuple(vector for vector in vectors if vector.data_file not in gone)
        if len(needed) < len(vectors):
            if keeps_rows:
                raise _stale_index(entry, "newer than the compaction of a file whose deleted rows it names", table)
            entry = replace(entry, deletion_vectors=needed, row_count=len(needed))
        if needed or not vectors:
            kept.append(entry)
    occupied = {_place(entry): entry for entry in kept if entry.index_type in (DELETION_VECTORS, HASH)}
    added = [change for change in changes if change.kind is EntryKind.ADD]
    for change in added:
        if _place(change) in occupied:
            raise _stale_index(occupied[_place(change)], "there already, and was not replaced", table)
    return (*kept, *added)


def check_vectors(
    changes: Iterable[IndexEntry], delta: Sequence[ManifestEntry], live: Iterable[ManifestEntry], *, table: str
) -> None:
    """Deletion vectors that a commit adds must be of files that are live after it. Raises :class:`StalePlan`."""
    known = {entry.file.file_name for entry in live} - {e.file.file_name for e in delta if e.kind is EntryKind.DELETE}
    known |= {entry.file.file_name for entry in delta if entry.kind is EntryKind.ADD}
    for change in changes:
        if change.kind is EntryKind.ADD and any(v.data_file not in known for v in change.deletion_vectors or ()):
            raise _stale_index(change, "about data files that are no longer live", table)


def _place(entry: IndexEntry) -> tuple[bytes, int, str]:
    return entry.partition, entry.bucket, entry.index_type


def _stale_index(entry: IndexEntry, what: str, table: str) -> StalePlan:
    return StalePlan(
        f"Conflicts detected on: index file {entry.file_name} ({entry.index_type}) of bucket {entry.bucket} of table {table} is "
        f"{what}; plan again on the newest snapshot"
    )


def describe(entry: ManifestEntry) -> str:
    """A manifest entry for people."""
    return (
        f"partition {entry.partition[4:].hex() or '()'} bucket {entry.bucket} level {entry.file.level} file {entry.file.file_name}"
    )
