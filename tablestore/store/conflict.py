"""Do two commits collide? Pure: values in, conflicts out.

Appends and upserts never conflict. What can go wrong is that a commit deletes a file that is no longer live, or that the
table is not the one that the files were written for: dropped and created anew, evolved, or with another bucket count.
"""

from collections.abc import Iterable, Sequence

from tablestore.errors import ConflictError
from tablestore.format.manifest import EntryKind, ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.store.message import CommitMessage
from tablestore.types.schema import TableSchema

TABLE_UUID_OPTION = "tablestore.table-uuid"
SHOWN = 3


class StalePlan(ConflictError):
    """The plan of a read-modify-write no longer holds for the newest snapshot; plan again on it."""

    default_kind = "stale-plan"


def table_uuid_of(schema: TableSchema) -> str | None:
    """The identity that a table of ours got when it was created."""
    return schema.options.get(TABLE_UUID_OPTION)


def check_table(message: CommitMessage, *, latest: TableSchema, table: str) -> None:
    """The table must still be the one that the files were written for. Raises ConflictError."""
    if message.table_uuid != table_uuid_of(latest):
        raise ConflictError(
            f"table {table} was dropped and created again while this commit was under way: it was {message.table_uuid}, now it "
            f"is {table_uuid_of(latest)}; open the table again and repeat the write",
            kind="table-replaced",
        )
    if message.schema_id != latest.id:
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
                "open the table again and repeat the write",
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


def describe(entry: ManifestEntry) -> str:
    """A manifest entry for people."""
    return (
        f"partition {entry.partition[4:].hex() or '()'} bucket {entry.bucket} level {entry.file.level} file {entry.file.file_name}"
    )
