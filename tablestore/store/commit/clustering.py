"""Rewrites large manifests so that each has neighbouring partitions, and a plan of one partition reads few of them.

    pick_groups       manifests that lie side by side in the list and overlap, as many as fit into memory
    rewrite_group     decode as columns ── cancel ADD and DELETE ── order by partition and bucket ── write
    pick_runs         runs at the end of the list, each in the order of partitions by now
    pick_later_runs   the same after a commit: fewer of them, so that what commits cost stays in bounds
    merge_runs        the same of some partitions after the other, so that of each run a manifest or two are in memory
    replace_groups    a list with the new manifests in the places of the old ones, whatever else has come to it

The entries of a group or of runs take their place in the list, so that no DELETE comes before its ADD. They are moved as the bytes
that they are stored as. Memory: :data:`MOST_ENTRIES` entries, about 1 KiB each.

On demand a run is merged with those behind it once these have an eighth of its entries together: so an entry is moved some eight
times until its run has grown to nine times the entries, and runs are few. After a commit it is merged once these have as many as it
has, so each run has more than all behind it, and an entry is moved at most as often as its run doubles. Of n commits of one size
there are at most log2(n) runs; 50 of them leave two, and have moved an entry 3.4 times.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.stats import decode_stats
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.commit.metadata import cancel_pairs
from tablestore.store.manifests import Manifests, WrittenMetadata
from tablestore.types.arrays import mask_array, numbers_of, places_array
from tablestore.types.datatypes import DataType
from tablestore.types.schema import POSTPONE_BUCKET

Places = npt.NDArray[np.int64]

MOST_ENTRIES = 250_000
"""The entries of one group."""
_FEWEST_ENTRIES = 20_000
# Smaller than those of merges: a plan of one partition reads one of each group, whole.
_MANIFEST_BYTES = 3 * 1024 * 1024
# Of a run a plan of one partition reads one in all, and others open each of them.
_RUN_MANIFEST_BYTES = 6 * 1024 * 1024
# So many manifests with a partition are read by its plan; more, and the group is rewritten. In one that was, DELETEs come first:
# a manifest may have the last of these and the first ADDs.
_MOST_OVERLAPS = 3
# So many runs are left as they are: a plan of one partition reads a manifest of each, or two.
_MOST_RUNS = 2
_MOST_TIMES_THE_LATER = 8
# The same after a commit.
_FEWEST_ENTRIES_OF_LATER = 20_000
_MOST_LATER_RUNS = 2
_MOST_TIMES_AFTER_COMMITS = 1
# Entries that wait until those of some partitions are there from all runs; few at a time are copied more often.
_WINDOW_ENTRIES = 30_000
# Compressed. The records of a group are one array, of at most 2 GiB.
_MOST_BYTES = 64 * 1024 * 1024
_WINDOW_BYTES = _MOST_BYTES // 4


_Key = tuple[bool, Any]
"""What runs are ordered by: the first column of the partition, NULL first; of a table without partitions, the bucket."""


@dataclass(frozen=True, slots=True)
class RewrittenGroup:
    """Manifests by name, and those that say the same. ``is_first``: nothing lies before them, and what they deleted is gone."""

    names: tuple[str, ...]
    manifests: tuple[ManifestFile, ...]
    is_first: bool


def pick_groups(
    manifests: Sequence[ManifestFile], partition_types: Sequence[DataType], is_wanting: Callable[[ManifestFile], bool]
) -> list[range]:
    """The positions of each group of manifests to rewrite. ``is_wanting``: a manifest is to be rewritten in any case."""
    groups, start, entries, size = [], 0, 0, 0
    counts = [manifest.num_added + manifest.num_deleted for manifest in manifests]
    sizes = [manifest.file_size for manifest in manifests]
    for place, (count, file_size) in enumerate(zip([*counts, MOST_ENTRIES], [*sizes, _MOST_BYTES], strict=True)):
        if place > start and (entries + count > MOST_ENTRIES or size + file_size > _MOST_BYTES):
            group = range(start, place)
            members = [manifests[one] for one in group]
            overlaps = entries >= _FEWEST_ENTRIES and _depth(members, partition_types) > _MOST_OVERLAPS
            if overlaps or any(map(is_wanting, members)):
                groups.append(group)
            start, entries, size = place, 0, 0
        entries, size = entries + count, size + file_size
    return groups


def rewrite_group(
    manifests: Sequence[ManifestFile],
    store: Manifests,
    written: WrittenMetadata,
    partition_types: Sequence[DataType],
    *,
    is_first: bool,
) -> RewrittenGroup:
    """Write the entries of these manifests, neighbours of one list, anew. ``is_first``: they are the first of it."""
    parts = [store.read_records(manifest.file_name) for manifest in manifests]
    entries = EntryColumns(pa.concat_tables([columns.table for columns, _ in parts]).unify_dictionaries().combine_chunks())
    records = pa.concat_arrays([records for _, records in parts])
    del parts
    places = _surviving(entries, keep_deletes=not is_first)
    order = places[_order(entries.take(places), partition_types)]
    records = records.take(places_array(order))
    new: list[ManifestFile] = []
    for number, (start, end) in enumerate(_cuts(records, entries.column("partition").indices, order, _MANIFEST_BYTES)):
        part = entries.take(order[start:end])
        new.append(store.write_records(part, records.slice(start, end - start), number, written))
    return RewrittenGroup(tuple(manifest.file_name for manifest in manifests), tuple(new), is_first)


def pick_runs(manifests: Sequence[ManifestFile], partition_types: Sequence[DataType]) -> range | None:
    """The positions of the runs at the end of the list that are worth merging into one; None if none are."""
    return _pick(manifests, partition_types, fewest=_FEWEST_ENTRIES, most_runs=_MOST_RUNS, most_times=_MOST_TIMES_THE_LATER)


def pick_later_runs(manifests: Sequence[ManifestFile], partition_types: Sequence[DataType]) -> range | None:
    """The positions of the runs at the end of the list that are to be merged after a commit; None if none are."""
    return _pick(
        manifests,
        partition_types,
        fewest=_FEWEST_ENTRIES_OF_LATER,
        most_runs=_MOST_LATER_RUNS,
        most_times=_MOST_TIMES_AFTER_COMMITS,
    )


def _pick(
    manifests: Sequence[ManifestFile], partition_types: Sequence[DataType], *, fewest: int, most_runs: int, most_times: int
) -> range | None:
    """The longest tail of runs whose first has at most ``most_times`` the entries of the others, and that fits into memory."""
    counts = np.array([manifest.num_added + manifest.num_deleted for manifest in manifests], np.int64)
    if counts.sum() < fewest or _depth(manifests, partition_types) <= most_runs:
        return None
    starts = _run_starts(manifests, partition_types)
    sizes = np.add.reduceat(counts, starts)
    later = counts.sum() - np.cumsum(sizes)
    for start, size, behind in zip(starts[:-1], sizes.tolist(), later.tolist(), strict=False):
        if size <= most_times * behind and _fit_together(manifests[start:], partition_types):
            return range(start, len(manifests))
    return None


def merge_runs(
    manifests: Sequence[ManifestFile],
    store: Manifests,
    written: WrittenMetadata,
    partition_types: Sequence[DataType],
    *,
    is_first: bool,
) -> RewrittenGroup:
    """Write the entries of these manifests, neighbours of one list, anew as one run. ``is_first``: they are the first of it. Raises
    FormatError for a manifest with a partition outside of the bounds that the list has of it."""
    lows = [_low(manifest, partition_types) for manifest in manifests]
    turns = sorted(range(len(manifests)), key=lows.__getitem__)
    waiting: dict[int, _Moved] = {}
    ready, new = list[_Moved](), list[ManifestFile]()
    while turns:
        batch = list[int]()
        entries, size = sum(map(len, waiting.values())), sum(manifests[one].file_size for one in waiting)
        while turns and (not batch or (entries < _WINDOW_ENTRIES and size < _WINDOW_BYTES)):
            batch.append(place := turns.pop(0))
            entries, size = entries + manifests[place].num_added + manifests[place].num_deleted, size + manifests[place].file_size
        read = store.read_records_of([manifests[place].file_name for place in batch])
        for place, moved in zip(batch, starmap(_Moved, read), strict=True):
            if moved.least_key(partition_types, lows[place]) < lows[place]:
                raise FormatError(
                    f"{store.location}: expected the manifest {manifests[place].file_name} to have partitions of the bounds that "
                    "its manifest list has of it, found others, which plans may miss; restore the list from a copy, or roll the "
                    "table back"
                )
            waiting[place] = moved
        is_last = not turns
        behind = None if is_last else lows[turns[0]]
        # In the order of the list, so that each DELETE comes after its ADD.
        parts = {one: waiting[one].split(behind, partition_types) for one in sorted(waiting)}
        waiting = {one: rest for one, (_, rest) in parts.items() if len(rest)}
        before = _Moved.joined([before for before, _ in parts.values()])
        # Each of these holds the records of a window.
        del read, moved, parts
        ready.append(before.in_order(partition_types, keep_deletes=not is_first))
        del before
        whole = _Moved.joined(ready)
        ready.clear()
        cuts = _cuts(whole.records, whole.entries.column("partition").indices, np.arange(len(whole)), _RUN_MANIFEST_BYTES)
        # The last one may get more.
        rest = cuts.pop() if cuts and not is_last else (len(whole), len(whole))
        for start, end in cuts:
            part = whole.slice(start, end)
            new.append(store.write_records(part.entries, part.records, len(new), written))
        ready = [whole.slice(*rest)]
    return RewrittenGroup(tuple(manifest.file_name for manifest in manifests), tuple(new), is_first)


def replace_groups(manifests: Sequence[ManifestFile], groups: Sequence[RewrittenGroup]) -> tuple[ManifestFile, ...]:
    """The list with each group in place of the manifests that it was made of. Raises StalePlan if one of them has gone."""
    names = [manifest.file_name for manifest in manifests]
    listed = list(manifests)
    for group in reversed(groups):
        start = names.index(group.names[0]) if group.names[0] in names else -1
        end = start + len(group.names)
        if start < 0 or tuple(names[start:end]) != group.names or (group.is_first and start > 0):
            raise StalePlan("the manifests that were rewritten are no longer in the list: others have merged them")
        listed[start:end], names[start:end] = group.manifests, (manifest.file_name for manifest in group.manifests)
    return tuple(listed)


@dataclass(frozen=True, slots=True)
class _Moved:
    """Entries that are being moved: as columns, and as their records."""

    entries: EntryColumns
    records: pa.Array

    @classmethod
    def joined(cls, parts: Sequence["_Moved"]) -> "_Moved":
        tables = [part.entries.table for part in parts]
        entries = EntryColumns(pa.concat_tables(tables).unify_dictionaries().combine_chunks())
        return cls(entries, pa.concat_arrays([part.records for part in parts]))

    def __len__(self) -> int:
        return len(self.records)

    def take(self, places: Places) -> "_Moved":
        return _Moved(self.entries.take(places), self.records.take(places_array(places)))

    def slice(self, start: int, end: int) -> "_Moved":
        return _Moved(self.entries.slice(start, end - start), self.records.slice(start, end - start))

    def keys(self, types: Sequence[DataType]) -> list[_Key]:
        """The key of each partition of the dictionary, or of each entry."""
        if not types:
            return [(True, bucket) for bucket in self.entries.column("bucket").to_pylist()]
        partitions = self.entries.column("partition").dictionary.to_pylist()
        return [(value is not None, value) for value in (decode_row(row, list(types))[0] for row in partitions)]

    def least_key(self, types: Sequence[DataType], default: _Key) -> _Key:
        """The least key of an entry."""
        keys = self.keys(types)
        if types:
            # Others that were decoded beside these may have more partitions.
            keys = [keys[code] for code in np.unique(numbers_of(self.entries.column("partition").indices)).tolist()]
        return min(keys, default=default)

    def split(self, behind: _Key | None, types: Sequence[DataType]) -> tuple["_Moved", "_Moved"]:
        """The entries before a key, and the others; None: all are before."""
        if behind is None:
            return self, self.slice(0, 0)
        is_before = np.array([key < behind for key in self.keys(types)], np.bool_)
        if types:
            is_before = is_before[numbers_of(self.entries.column("partition").indices)]
        return self.take(np.flatnonzero(is_before)), self.take(np.flatnonzero(~is_before))

    def in_order(self, types: Sequence[DataType], *, keep_deletes: bool) -> "_Moved":
        """Those of all entries of some partitions that are left, by partition and bucket, DELETEs first of each."""
        left = self.take(_surviving(self.entries, keep_deletes=keep_deletes))
        return left.take(_order(left.entries, types, ("partition", "bucket", "kind")))


def _depth(manifests: Sequence[ManifestFile], types: Sequence[DataType]) -> int:
    """The most manifests that overlap in the first partition column; of a table without partitions, in buckets.

    Those that share an end do not count: a partition may fill many manifests.
    """
    # Rewriting would not give bounds to those that have none, such as those of NULL alone.
    known = [bound for manifest in manifests if (bound := _bounds(manifest, types)) is not None]
    steps = sorted([(low, 1) for low, high in known if low < high] + [(high, 0) for low, high in known if low < high])
    deepest = open_ranges = 0
    for _, is_begin in steps:
        open_ranges += 1 if is_begin else -1
        deepest = max(deepest, open_ranges)
    return deepest


def _bounds(manifest: ManifestFile, types: Sequence[DataType]) -> tuple[Any, Any] | None:
    if not types:
        return None if manifest.min_bucket is None else (manifest.min_bucket, manifest.max_bucket)
    first = next(iter(decode_stats(manifest.partition_stats, list(types))), None)
    return None if first is None or first.min is None or first.max is None else (first.min, first.max)


def _run_starts(manifests: Sequence[ManifestFile], types: Sequence[DataType]) -> list[int]:
    """The positions where the list goes back, in the first partition column: there a run begins."""
    starts, end = [0], None
    for place, manifest in enumerate(manifests):
        if (bounds := _bounds(manifest, types)) is not None:
            if end is not None and bounds[0] < end:
                starts.append(place)
            end = bounds[1]
    return starts


def _fit_together(manifests: Sequence[ManifestFile], types: Sequence[DataType]) -> bool:
    """True if the manifests that have a value in common fit into memory, whatever the value is."""
    counts = [manifest.num_added + manifest.num_deleted for manifest in manifests]
    sizes = [manifest.file_size for manifest in manifests]
    return all(
        _most_in_common(manifests, weights, types) <= most for weights, most in ((counts, MOST_ENTRIES), (sizes, _MOST_BYTES))
    )


def _most_in_common(manifests: Sequence[ManifestFile], weights: Sequence[int], types: Sequence[DataType]) -> int:
    """The most that manifests weigh that have a value in common."""
    steps: list[tuple[Any, int]] = []
    weight = 0
    for manifest, own in zip(manifests, weights, strict=True):
        if (bounds := _bounds(manifest, types)) is None:
            weight += own
        else:
            steps += [(bounds[0], own), (bounds[1], -own)]
    most = weight
    # What begins where others end is there beside them.
    for _, step in sorted(steps, key=lambda step: (step[0], -step[1])):
        weight += step
        most = max(most, weight)
    return most


def _low(manifest: ManifestFile, types: Sequence[DataType]) -> _Key:
    """The least key that a manifest may have."""
    bounds = _bounds(manifest, types)
    nulls = next(iter(manifest.partition_stats.null_counts), None) if types else 0
    return (False, None) if bounds is None or nulls != 0 else (True, bounds[0])


def _surviving(entries: EntryColumns, *, keep_deletes: bool) -> Places:
    """The places of the entries that are left when each ADD and its later DELETE are cancelled, DELETEs first."""
    is_delete = numbers_of(entries.column("kind")) == EntryKind.DELETE
    if not is_delete.any():
        return np.arange(len(entries))
    names = entries.column("file_name")
    deleted = names.take(places_array(np.flatnonzero(is_delete)))
    touched = np.flatnonzero(pc.is_in(names, value_set=deleted).to_numpy(zero_copy_only=False))
    # Only these become objects.
    objects = entries.take(touched).entries()
    place_of = {id(entry): place for entry, place in zip(objects, touched.tolist(), strict=True)}
    left = [place_of[id(entry)] for entry in cancel_pairs(objects, keep_deletes=keep_deletes)]
    is_left = np.ones(len(entries), np.bool_)
    is_left[touched] = False
    is_left[left] = True
    places = np.flatnonzero(is_left)
    return np.concatenate([places[is_delete[places]], places[~is_delete[places]]])


def _order(
    entries: EntryColumns, partition_types: Sequence[DataType], names: Sequence[str] = ("kind", "partition", "bucket")
) -> Places:
    """The places of entries by partition value and bucket, older files first; DELETEs before all, or where ``names`` say."""
    partitions, buckets = entries.column("partition"), entries.column("bucket")
    # Of postponed files the one that was committed later counts, and their numbers say nothing. The sort is stable. Numbers
    # and dicts of Python as arguments of Arrow would load pandas.
    numbers = np.where(numbers_of(buckets) == POSTPONE_BUCKET, 0, entries.numbers("min_sequence_number"))
    ranks = _ranks(partitions.dictionary.to_pylist(), partition_types)
    keys = {
        "kind": mask_array(entries.numbers("kind") != EntryKind.DELETE),
        "partition": places_array(ranks[numbers_of(partitions.indices)]),
        "bucket": buckets,
        "number": places_array(numbers),
    }
    keyed = [(name, "ascending") for name in (*names, "number")]
    table = pa.Table.from_arrays(list(keys.values()), names=list(keys))
    order: Places = pc.sort_indices(table, keyed).to_numpy().astype(np.int64)
    return order


def _ranks(partitions: Sequence[bytes], types: Sequence[DataType]) -> Places:
    """The rank of each serialised partition by its values, nulls first."""

    def values(place: int) -> list[tuple[bool, Any]]:
        return [(value is not None, value) for value in decode_row(partitions[place], list(types))]

    ranks = np.zeros(max(len(partitions), 1), np.int64)
    ranks[sorted(range(len(partitions)), key=values)] = np.arange(len(partitions))
    return ranks


def _cuts(records: pa.Array, partitions: pa.Array, order: Places, size: int) -> list[tuple[int, int]]:
    """The begin and end of each new manifest: full ones of so many bytes, which end with a partition where they can."""
    sizes = np.cumsum(pc.binary_length(records).to_numpy(zero_copy_only=False).astype(np.int64))
    codes = numbers_of(partitions)[order]
    borders = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    cuts, start, count = [], 0, len(order)
    while start < count:
        before = int(sizes[start - 1]) if start else 0
        end = max(int(np.searchsorted(sizes, before + size, "right")), start + 1)
        # A small rest would be a manifest without a sidecar.
        if int(sizes[-1]) - before <= size + size // 8:
            end = count
        if end < count:
            inside = borders[(borders > start + (end - start) // 2) & (borders <= end)]
            end = int(inside[-1]) if len(inside) else end
        cuts.append((start, min(end, count)))
        start = end
    return cuts
