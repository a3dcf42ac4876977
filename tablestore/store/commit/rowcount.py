"""Counts the rows that readers see after a commit, where that takes no reading.

    append table      the rows of its files without those that deletion vectors mark
    keyed table       the rows of the new files, where no other file is left, no key is in two of them, and none deletes
                      the rows before it without those that it deletes, where all rows of the commit were in the table
                      the rows before it and the new ones, where the commit has looked up which of its keys were there
                      the rows before it, for a compaction

A plain upsert is not counted: its rows may replace others. Where readers see a row only after a compaction, the table is not
counted either: of a commit whose rows were all in the table the change is known, once the writer has compacted them. Pure.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pyarrow as pa

from tablestore.format.manifest.bucketsums import are_apart
from tablestore.format.manifest.encodedentries import EncodedEntries, deleting_rows_in, rows_in
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.rowcolumns import has_order, row_field
from tablestore.format.snapshot import ROW_CHANGE_PROPERTY, ROWS_PROPERTY, Snapshot
from tablestore.lsm.keyorder import KeyOrder
from tablestore.types.arrays import begins, numbers_of, one_chunk, places_array


def count_unkeyed(
    before: Snapshot | None, total_record_count: int, index_before: Iterable[IndexEntry], index_after: Iterable[IndexEntry]
) -> dict[str, str]:
    """The properties that count the rows of an append table; none where a foreign vector does not say how many rows it marks."""
    marked_before, marked_after = marked_rows(index_before), marked_rows(index_after)
    if marked_before is None or marked_after is None:
        return {}
    rows_before = ((before.total_record_count or 0) if before else 0) - marked_before
    return _properties(rows_before, total_record_count - marked_after)


def count_keyed(
    before: Snapshot | None,
    total_record_count: int,
    new_files: Sequence[ManifestEntry],
    keys: KeyOrder,
    *,
    removes_files: bool,
    adds_no_row: bool,
    replaced: int | None = None,
) -> dict[str, str]:
    """The properties that count the rows of a keyed table after a commit that is no compaction.

    ``adds_no_row``: the commit has read the rows that it replaces or deletes, so each was in the table, and it adds no other.
    ``replaced``: how many of its rows were in the table, where it has looked.
    """
    rows_before = before.rows if before else 0
    written, deleted = rows_in(new_files), deleting_rows_in(new_files)
    if deleted == 0 and total_record_count == written and holds_each_key_once(new_files, keys):
        return _properties(rows_before, written)
    if deleted == 0 and replaced is not None and not removes_files and holds_each_key_once(new_files, keys):
        return _properties(rows_before, None if rows_before is None else rows_before + written - replaced, written - replaced)
    if deleted is None or ((new_files or removes_files) and not adds_no_row):
        return {}
    return _properties(rows_before, None if rows_before is None else rows_before - deleted, -deleted)


def count_change(new_files: Sequence[ManifestEntry]) -> dict[str, str]:
    """The property that says by how many rows a commit changes a keyed table, all of whose rows were in it."""
    deleted = deleting_rows_in(new_files)
    return {} if deleted is None else _properties(None, None, -deleted)


def keep_count(before: Snapshot | None) -> dict[str, str]:
    """The properties that count the rows of a keyed table after a compaction, which changes none of them."""
    return {} if before is None else _properties(before.rows, before.rows)


def _properties(before: int | None, after: int | None, change: int | None = None) -> dict[str, str]:
    if before is not None and after is not None:
        change = after - before
    counts = {ROWS_PROPERTY: after, ROW_CHANGE_PROPERTY: change}
    return {key: str(count) for key, count in counts.items() if count is not None}


def marked_rows(index: Iterable[IndexEntry]) -> int | None:
    """The rows that the deletion vectors of a snapshot mark; None where a foreign one does not say."""
    marked = [vector.cardinality for entry in index for vector in entry.deletion_vectors or ()]
    return None if None in marked else sum(count or 0 for count in marked)


def holds_each_key_once(files: Sequence[ManifestEntry], keys: KeyOrder) -> bool:
    """True if no key is in two of the files, as their bounds tell; False also where it may not be."""
    if isinstance(files, EncodedEntries) and _are_apart(files, keys):
        return True
    buckets = defaultdict(list)
    for entry in files:
        buckets[entry.partition, entry.bucket].append(entry.file)
    for bucket in buckets.values():
        bucket.sort(key=lambda file: keys(file.min_key))
        if any(keys.overlap(previous, other) for previous, other in pairwise(bucket)):
            return False
    return True


def _are_apart(files: EncodedEntries, keys: KeyOrder) -> bool:
    """True if the first columns of the keys tell that no two files of a bucket have a key in common."""
    if not keys.types or not has_order(keys.types[0]):
        return False
    low, high = (row_field(files.columns.column(name), len(keys.types), 0, keys.types[0]) for name in ("min_key", "max_key"))
    _, which = files.columns.groups("partition", "bucket")
    table = pa.Table.from_arrays([places_array(which), low, high], names=["group", "low", "high"])
    order = table.sort_by([("group", "ascending"), ("low", "ascending")]).combine_chunks()
    groups, lows, highs = (one_chunk(order.column(name)) for name in order.column_names)
    return bool(are_apart(lows, highs, begins(numbers_of(groups))).all())
