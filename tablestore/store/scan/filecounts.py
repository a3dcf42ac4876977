"""Counts the rows of a snapshot from the columns of its manifests, of the buckets where that is exact; the others have to be read.

append table, deletion vectors      each file has its rows, less those that its vector marks
primary key                         a bucket whose files have no key in common, and no retractions, has the rows of its files

The files of each manifest are summed up by bucket, with the bounds of their keys, and then these sums. Where a manifest has such
sums beside its entries (:mod:`tablestore.format.manifest.bucketsums`), no entry is looked at, but for buckets from which files were
deleted, and for those of which the sums say too little:

    manifests of ADDs      their sums
    other manifests        the buckets of their DELETEs are counted from columns, by what is live

That a file is added twice is an error, and the same file has the same bounds and sequence numbers: where these of two manifests
touch in a bucket, names decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.bucketsums import LOW_BITS, are_apart
from tablestore.format.manifest.derivedcolumns import IS_PLAIN, NAME_HASH, NEVER_RETRACTS
from tablestore.format.manifest.entrycolumns import Bounds, EntryColumns, Places
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, DeletionVectorRange
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.rowcolumns import has_order
from tablestore.format.snapshot import Snapshot
from tablestore.memo import RecentlyUsed
from tablestore.store.context import TableContext
from tablestore.store.entrybounds import KeyBounds, SumBounds
from tablestore.types.arrays import Mask, mask_array, mask_of, numbers_of, places_array
from tablestore.types.schema import POSTPONE_BUCKET

# Of all buckets and entries: where more of them have to be looked at one by one, all are.
_MOST_DETAILS = 0.25
_SEQUENCES = ("partition", "bucket", "min_sequence_number", "max_sequence_number")
_OF_MANIFEST = ("kind", NAME_HASH, *_SEQUENCES)
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
    sums = None if counting.has_vectors else _of_sums(context, snapshot, counting)
    if sums is None:
        sums = counting.of_parts(context.manifests.live_parts(snapshot, counting.names, counting.sums))
    is_known = mask_of(sums.column("is_known"))
    places, which = sums.groups("partition", "bucket")
    # As Python's numbers, which do not overflow.
    rows = [sum(sums.numbers(name)[is_known].tolist()) for name in ("rows_high", "rows_low")]
    to_read = frozenset(places[which[place]] for place in np.flatnonzero(~is_known).tolist())
    return FileCounts(rows=(rows[0] << LOW_BITS) + rows[1], to_read=to_read)


def _of_sums(context: TableContext, snapshot: Snapshot, counting: "_Counting") -> EntryColumns | None:
    """The sums of a snapshot, out of those of its manifests where these tell; None if too many entries have to be looked at."""
    store = context.manifests
    manifests = store.all_manifests(snapshot)
    counts = [manifest.num_added + manifest.num_deleted for manifest in manifests]
    deleting = [manifest for manifest in manifests if manifest.num_deleted]
    if not store.are_columns(manifests) or sum(one.num_added + one.num_deleted for one in deleting) > sum(counts) * _MOST_DETAILS:
        return None
    details = set(chain.from_iterable(store.each(deleting, _places_of_deletes)))
    parts = []
    for manifest, part in zip(manifests, store.each(manifests, counting.of_manifest), strict=True):
        if part is None or part.deletes > manifest.num_deleted:
            return None
        parts.append(part)
    if counting.stands_alone:
        details |= _touching([part.sequences for part in parts])
    sums = counting.of_parts([part.sums for part in parts])
    places, which = sums.groups("partition", "bucket")
    details |= {places[which[place]] for place in np.flatnonzero(~mask_of(sums.column("is_known"))).tolist()}
    if not details:
        return sums
    if len(details) > len(places) * _MOST_DETAILS:
        return None

    def is_detail(place: tuple[bytes, int]) -> bool:
        return place in details

    others = sums.take(np.flatnonzero(~sums.in_places(is_detail)))
    live = store.live_among(
        manifests, counting.names, counting.sums, keeps=lambda entries: entries.in_places(is_detail), whole=True
    )
    return counting.of_parts([others, *live])


def _places_of_deletes(entries: EntryColumns) -> list[tuple[bytes, int]]:
    """The partitions and buckets that entries delete files of."""
    heads = entries.select(("kind", "partition", "bucket"))
    places: list[tuple[bytes, int]] = heads.take(np.flatnonzero(heads.numbers("kind") == EntryKind.DELETE)).groups(
        "partition", "bucket"
    )[0]
    return places


def _touching(sequences: Sequence[EntryColumns]) -> set[tuple[bytes, int]]:
    """The partitions and buckets of which sequence numbers of two manifests touch."""
    together = _concatenated(sequences)
    places, which = together.groups("partition", "bucket")
    least, most = together.numbers("min_sequence_number"), together.numbers("max_sequence_number")
    order = np.lexsort((least, which))
    touches = (which[order][1:] == which[order][:-1]) & (least[order][1:] <= most[order][:-1])
    return {places[number] for number in np.unique(which[order][1:][touches]).tolist()}


def _concatenated(parts: Sequence[EntryColumns]) -> EntryColumns:
    return EntryColumns(pa.concat_tables([part.table for part in parts]).unify_dictionaries().combine_chunks())


@dataclass(frozen=True, slots=True, kw_only=True)
class _ManifestSums:
    """The sums of what a manifest adds, as those of :class:`_Counting`, the bounds of its sequence numbers, and how many files it
    deletes."""

    sums: EntryColumns
    sequences: EntryColumns
    deletes: int


class _Counting:
    """Sums of files by bucket: ``rows_high`` and ``rows_low``, whether the sum ``is_known`` to be the number of rows, and the
    ``low`` and ``high`` of the first column of their keys (one for all where files stand alone)."""

    def __init__(self, context: TableContext, vectors: Sequence[DeletionVectorRange]) -> None:
        self._schema, self._settings, self._vectors = context.schema, context.settings, vectors
        self.stands_alone, self.has_vectors = context.settings.stands_alone, bool(vectors)
        self._is_ordered = not self.stands_alone and has_order(context.schema.key_fields[0].type)

    def names(self, entries: EntryColumns) -> tuple[str, ...]:
        """The columns that are read of entries."""
        return (
            *("partition", "bucket", "row_count", IS_PLAIN),
            *(["level"] if self._settings.skips_level_zero else []),
            *([NEVER_RETRACTS] if self._schema.is_keyed else []),
            *(["file_name"] if self._vectors else []),
            *(KeyBounds(entries, self._schema).columns(self._schema.key_fields[0].name) if self._is_ordered else ()),
        )

    def of_manifest(self, entries: EntryColumns) -> _ManifestSums | None:
        """The sums of the files that the entries of a manifest add; None if one may be added twice."""
        stored = entries.sums()
        low_and_high = None if stored is None or not self._is_ordered else self._key_bounds(stored)
        if stored is None or (self._is_ordered and low_and_high is None):
            return self._of_entries(entries.select(list(dict.fromkeys((*self.names(entries), *_OF_MANIFEST)))))
        is_read = stored.numbers("bucket") != POSTPONE_BUCKET
        # Where only some of a bucket are at level 0, their sums are of too many.
        is_known = mask_of(stored.column(IS_PLAIN))
        if self._settings.skips_level_zero:
            is_read &= stored.numbers("most_level") != 0
            is_known &= stored.numbers("least_level") != 0
        if self._schema.is_keyed:
            is_known &= mask_of(stored.column(NEVER_RETRACTS))
        if not self.stands_alone:
            is_known &= mask_of(stored.column("is_apart"))
        low, high = low_and_high or (pa.nulls(len(stored), pa.int64()), pa.nulls(len(stored), pa.int64()))
        columns = {
            **{name: stored.column(name) for name in ("partition", "bucket", "rows_high", "rows_low")},
            "is_known": mask_array(is_known),
            "low": low,
            "high": high,
        }
        sums = EntryColumns(pa.Table.from_arrays(list(columns.values()), names=list(columns)))
        return _ManifestSums(sums=sums.take(np.flatnonzero(is_read)), sequences=stored.select(_SEQUENCES), deletes=0)

    def _of_entries(self, entries: EntryColumns) -> _ManifestSums | None:
        adds = entries.take(np.flatnonzero(entries.numbers("kind") == EntryKind.ADD))
        hashes = np.sort(adds.numbers(NAME_HASH))
        if (hashes[1:] == hashes[:-1]).any():
            return None
        return _ManifestSums(sums=self.sums(adds), sequences=adds.select(_SEQUENCES), deletes=len(entries) - len(adds))

    def _key_bounds(self, stored: EntryColumns) -> Bounds | None:
        return SumBounds(stored, self._schema, of_key=True).of(self._schema.key_fields[0].name)

    def of_parts(self, parts: Sequence[EntryColumns]) -> EntryColumns:
        """The sums of sums, one of each bucket."""
        return self.together(_concatenated(parts))

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
            "rows_high": places_array(rows >> LOW_BITS),
            "rows_low": places_array(rows & ((1 << LOW_BITS) - 1)),
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
            is_known &= are_apart(low, high, is_first)
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
