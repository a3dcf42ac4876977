"""Plans the file changes that restore the table's state of an earlier snapshot.

    then   a b c d          the snapshot to go back to
    now      b   d' e       d' is d at another level
           stay b · come back, copied under new names: a c d · go: d' e

A file stays if it is live now exactly as it was then. Pure, but for :func:`restored_index`, which copies index files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tablestore.errors import InvalidInputError
from tablestore.format.manifest.indexmanifest import DeletionVectorRange, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, FileIdentity, ManifestEntry
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.indexfiles import IndexFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The file changes that make the live files those of another snapshot."""

    staying: frozenset[FileIdentity]
    coming_back: tuple[ManifestEntry, ...]


def plan_restore(target: Iterable[ManifestEntry], live_entries: Iterable[ManifestEntry]) -> RestorePlan:
    """Compare the live files of two snapshots."""
    live = {entry.identity for entry in live_entries}
    target = tuple(target)
    return RestorePlan(
        staying=frozenset(entry.identity for entry in target if entry.identity in live),
        coming_back=tuple(entry for entry in target if entry.identity not in live),
    )


def plan_removal(plan: RestorePlan, live_entries: Iterable[ManifestEntry], table: str) -> tuple[ManifestEntry, ...]:
    """The DELETE entries on the newest snapshot. Raises StalePlan if a file that was to stay has gone meanwhile."""
    live = {entry.identity: entry for entry in live_entries}
    missing = [identity for identity in plan.staying if identity not in live]
    if missing:
        raise StalePlan(
            f"{len(missing)} file(s) of table {table} that were to stay were compacted or overwritten meanwhile, the first of them "
            f"{missing[0][3]}; plan again on the newest snapshot"
        )
    return tuple(replace(entry, kind=EntryKind.DELETE) for key, entry in live.items() if key not in plan.staying)


def check_bucket_count(target: Iterable[ManifestEntry], total_buckets: int, table: str) -> None:
    """Raise InvalidInputError if files were hashed into another number of buckets than new rows are."""
    for entry in target:
        if entry.total_buckets > 0 and total_buckets > 0 and entry.total_buckets != total_buckets:
            raise InvalidInputError(
                f"table {table} has {total_buckets} buckets, what is to come back was written with {entry.total_buckets}: rows of "
                "one key would lie in two buckets; read the old state (snapshot_id=, tag=) and overwrite the table with it",
                kind="bucket-count",
            )


def restored_index(
    target: Sequence[IndexEntry], live_index: Sequence[IndexEntry], renamed: Mapping[str, str], files: IndexFiles
) -> tuple[IndexEntry, ...]:
    """Index changes that make the index files of ``live_index`` say what those of ``target`` said. ``renamed``: data files under
    new names.

    What is there already as it must be, stays. Everything else is written again, because an index file that was deleted does
    not come back under its name either.
    """
    current = {entry.file_name: entry for entry in live_index}
    changes: list[IndexEntry] = []
    for entry in target:
        restored = replace(entry, deletion_vectors=_renamed(entry.deletion_vectors, renamed))
        if current.get(entry.file_name) == restored:
            del current[entry.file_name]
            continue
        changes.append(
            replace(
                files.write(
                    files.read(entry.file_name),
                    partition=entry.partition,
                    bucket=entry.bucket,
                    index_type=entry.index_type,
                    row_count=entry.row_count,
                    deletion_vectors=restored.deletion_vectors,
                ),
                global_index=entry.global_index,
            )
        )
    if changes:
        files.sync()
    return (*(replace(entry, kind=EntryKind.DELETE) for entry in current.values()), *changes)


def _renamed(vectors: tuple[DeletionVectorRange, ...] | None, renamed: Mapping[str, str]) -> tuple[DeletionVectorRange, ...] | None:
    if vectors is None:
        return None
    return tuple(replace(vector, data_file=renamed.get(vector.data_file, vector.data_file)) for vector in vectors)
