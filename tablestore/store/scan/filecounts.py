"""Counts the rows of a snapshot from the columns of its manifests, of the buckets where that is exact; the others have to be read.

append table, deletion vectors      each file has its rows, less those that its vector marks
primary key                         a bucket whose files have no key in common, and no retractions, has the rows of its files

The files of each manifest are summed up by bucket, with the bounds of their keys, and then these sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.derivedcolumns import IS_PLAIN, NEVER_RETRACTS
from tablestore.format.manifest.entrycolumns import EntryColumns, Places
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, DeletionVectorRange
from tablestore.format.rowcolumns import has_order
from tablestore.format.snapshot import Snapshot
from tablestore.memo import RecentlyUsed
from tablestore.store.context import TableContext
from tablestore.store.entrybounds import KeyBounds
from tablestore.types.arrays import NO, Mask, mask_array, mask_of, numbers_of, places_array
from tablestore.types.schema import POSTPONE_BUCKET

# Of a number of rows, so that sums of them do not overflow.
_LOW_BITS = 32
# Counts that are kept, and the buckets in them that have to be read.
_MOST_COUNTS, _MOST_PLACES = 1_000, 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """``rows`` of all buckets but ``to_read``, which are known by partition and number."""

    rows: int
    to_read: frozenset[tuple[bytes, int]]


def count_files(context: TableContext, snapshot: Snapshot) -> FileCounts:
    """Count the rows of a snapshot, once for all handles of a catalog.

    Memory: about 100 bytes for each bucket and manifest that has files of it, and 20 for each file.
    """
    # Names of lists and indexes are never used again, and options are those of the schema.
    key = (
        context.files.root_uri,
        context.schema.id,
        snapshot.base_manifest_list,
        snapshot.delta_manifest_list,
        snapshot.index_manifest,
    )
    return context.shared.once(_counts_lately).find(key, lambda: _count(context, snapshot))


def _counts_lately() -> RecentlyUsed[FileCounts]:
    return RecentlyUsed(lambda counts: 1 + len(counts.to_read), most=_MOST_COUNTS, most_weight=_MOST_PLACES)


def _count(context: TableContext, snapshot: Snapshot) -> FileCounts:
    index = [entry for entry in context.manifests.read_index(snapshot) if entry.index_type == DELETION_VECTORS]
    counting = _Counting(context, [vector for entry in index for vector in entry.deletion_vectors or ()])
    parts = context.manifests.live_parts(snapshot, counting.names, counting.sums)
    sums = counting.together(EntryColumns(pa.concat_tables([part.table for part in parts]).unify_dictionaries().combine_chunks()))
    is_known = mask_of(sums.column("is_known"))
    places, which = sums.groups("partition", "bucket")
    # As Python's numbers, which do not overflow.
    rows = [sum(sums.numbers(name)[is_known].tolist()) for name in ("rows_high", "rows_low")]
    to_read = frozenset(places[which[place]] for place in np.flatnonzero(~is_known).tolist())
    return FileCounts(rows=(rows[0] << _LOW_BITS) + rows[1], to_read=to_read)


class _Counting:
    """Sums of files by bucket: ``rows_high`` and ``rows_low``, whether the sum ``is_known`` to be the number of rows, and the
    ``low`` and ``high`` of the first column of their keys (one for all where files stand alone)."""

    def __init__(self, context: TableContext, vectors: Sequence[DeletionVectorRange]) -> None:
        self._schema, self._settings, self._vectors = context.schema, context.settings, vectors
        self._is_ordered = not context.settings.stands_alone and has_order(context.schema.key_fields[0].type)

    def names(self, entries: EntryColumns) -> tuple[str, ...]:
        """The columns that are read of entries."""
        return (
            *("partition", "bucket", "row_count", IS_PLAIN),
            *(["level"] if self._settings.skips_level_zero else []),
            *([NEVER_RETRACTS] if self._schema.is_keyed else []),
            *(["file_name"] if self._vectors else []),
            *(KeyBounds(entries, self._schema).columns(self._schema.key_fields[0].name) if self._is_ordered else ()),
        )

    def sums(self, files: EntryColumns) -> EntryColumns:
        """The sums of some files."""
        is_read = files.numbers("bucket") != POSTPONE_BUCKET
        if self._settings.skips_level_zero:
            is_read &= files.numbers("level") != 0
        if not is_read.all():
            files = files.take(np.flatnonzero(is_read))
        deleted, is_known = self._deleted(files)
        # What a plan refuses is left to it.
        is_known &= mask_of(files.column(IS_PLAIN))
        if self._schema.is_keyed:
            is_known &= mask_of(files.column(NEVER_RETRACTS))
        low = high = pa.nulls(len(files), pa.int64())
        if self._is_ordered:
            low, high = KeyBounds(files, self._schema).of(self._schema.key_fields[0].name)
        rows = files.numbers("row_count") - deleted
        columns = {
            "partition": files.column("partition"),
            "bucket": files.column("bucket"),
            "rows_high": places_array(rows >> _LOW_BITS),
            "rows_low": places_array(rows & ((1 << _LOW_BITS) - 1)),
            "is_known": mask_array(is_known),
            "low": low,
            "high": high,
        }
        return self.together(EntryColumns(pa.Table.from_arrays(list(columns.values()), names=list(columns))))

    def together(self, sums: EntryColumns) -> EntryColumns:
        """The sums of sums, one of each bucket."""
        _, which = sums.groups("partition", "bucket")
        order = _order(which, sums.column("low"))
        # A sidecar is in that order.
        ordered = sums if (order[1:] > order[:-1]).all() else sums.take(order)
        which = which[order]
        is_first = np.ones(len(which), np.bool_)
        is_first[1:] = which[1:] != which[:-1]
        starts = np.flatnonzero(is_first)
        if not len(starts):
            return sums
        firsts = places_array(starts)
        is_known = mask_of(ordered.column("is_known"))
        low, high = ordered.column("low"), ordered.column("high")
        if not self._settings.stands_alone:
            is_known &= _is_apart(low, high, is_first)
        columns = {
            "partition": ordered.column("partition").take(firsts),
            "bucket": ordered.column("bucket").take(firsts),
            "rows_high": places_array(np.add.reduceat(ordered.numbers("rows_high"), starts)),
            "rows_low": places_array(np.add.reduceat(ordered.numbers("rows_low"), starts)),
            "is_known": mask_array(np.logical_and.reduceat(is_known, starts)),
            "low": low.take(firsts),
            # Where they are apart, the last one has the highest key.
            "high": high.take(places_array(np.append(starts[1:], len(which)) - 1)),
        }
        return EntryColumns(pa.Table.from_arrays(list(columns.values()), names=list(columns)))

    def _deleted(self, files: EntryColumns) -> tuple[Places, Mask]:
        """The number of rows of each file that its deletion vector marks, and True where that is known."""
        deleted, is_known = np.zeros(len(files), np.int64), np.ones(len(files), np.bool_)
        if self._vectors:
            marked = pc.index_in(files.column("file_name"), pa.array([vector.data_file for vector in self._vectors], pa.string()))
            has_vector = np.flatnonzero(mask_of(marked.is_valid()))
            counts = [vector.cardinality for vector in self._vectors]
            of_file = marked.drop_null().to_numpy()
            deleted[has_vector] = np.array([count or 0 for count in counts], np.int64)[of_file]
            is_known[has_vector] = np.array([count is not None for count in counts], np.bool_)[of_file]
        return deleted, is_known


def _order(which: Places, low: pa.Array) -> Places:
    """The places by group, and in it by the low of the key."""
    if low.null_count == len(low):
        return np.argsort(which, kind="stable")
    keys = pa.Table.from_arrays([places_array(which), low], names=["group", "low"])
    return numbers_of(pc.sort_indices(keys, [("group", "ascending"), ("low", "ascending")])).astype(np.int64)


def _is_apart(low: pa.Array, high: pa.Array, is_first: Mask) -> Mask:
    """True for each of ordered bounds that certainly has no key of the one before it in its group: the first columns of their keys
    differ."""
    is_apart = mask_of(pc.and_(low.is_valid(), high.is_valid()))
    is_behind = mask_of(pc.fill_null(pc.greater(low.slice(1), high.slice(0, len(high) - 1)), NO))
    is_apart[1:] &= is_behind | is_first[1:]
    return is_apart
