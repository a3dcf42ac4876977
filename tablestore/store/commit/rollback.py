"""Plans the file changes that restore the table's state of an earlier snapshot.

    then   a b c d          the snapshot to go back to
    now      b   d' e       d' is d at another level
           stay b · come back, copied under new names: a c d · go: d' e

A file stays if it is live now exactly as it was then. Files are compared as columns; only those that come back or go become
entries. Pure, but for :func:`restored_index`, which copies index files.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.indexmanifest import DeletionVectorRange, IndexEntry
from tablestore.format.manifest.livecolumns import IDENTITY_COLUMNS, absent_places
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.indexfiles import IndexFiles

COMPARED_COLUMNS = (*IDENTITY_COLUMNS, "total_buckets")
"""The columns of live files that a plan looks at."""

Read = Callable[[Collection[str]], Iterable[ManifestEntry]]
"""The live entries of these file names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The file changes that make the live files those of another snapshot."""

    staying: EntryColumns
    coming_back: tuple[ManifestEntry, ...]


def plan_restore(target: EntryColumns, live: EntryColumns, read_target: Read) -> RestorePlan:
    """Compare the live files of two snapshots."""
    is_absent = np.zeros(len(target), np.bool_)
    is_absent[absent_places(target, live)] = True
    staying = target.take(np.flatnonzero(~is_absent))
    return RestorePlan(staying=staying, coming_back=_entries_without(target.take(np.flatnonzero(is_absent)), staying, read_target))


def plan_removal(plan: RestorePlan, live: EntryColumns, read_live: Read, table: str) -> tuple[ManifestEntry, ...]:
    """The DELETE entries on the newest snapshot. Raises StalePlan if a file that was to stay has gone meanwhile."""
    missing = plan.staying.take(absent_places(plan.staying, live)).column("file_name")
    if len(missing):
        raise StalePlan(
            f"{len(missing)} file(s) of table {table} that were to stay were compacted or overwritten meanwhile, the first of them "
            f"{missing[0]}; plan again on the newest snapshot"
        )
    going = live.take(absent_places(live, plan.staying))
    return tuple(replace(entry, kind=EntryKind.DELETE) for entry in _entries_without(going, plan.staying, read_live))


def _entries_without(files: EntryColumns, others: EntryColumns, read: Read) -> tuple[ManifestEntry, ...]:
    """The entries of ``files``, which are not among ``others``; these may have the same names at other levels."""
    if not len(files):
        return ()
    entries = tuple(read(frozenset(files.column("file_name").to_pylist())))
    places = absent_places(EntryColumns.of(entries, IDENTITY_COLUMNS), others)
    return tuple(entries[place] for place in places.tolist())


def check_bucket_count(target: EntryColumns, total_buckets: int, table: str) -> None:
    """Raise InvalidInputError if files were hashed into another number of buckets than new rows are."""
    for other in pc.unique(target.column("total_buckets")).to_pylist():
        if other > 0 and total_buckets > 0 and other != total_buckets:
            raise InvalidInputError(
                f"table {table} has {total_buckets} buckets, what is to come back was written with {other}: rows of "
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
