"""Counts what a commit does (:mod:`~tablestore.format.writecounts`), where that takes no reading.

    a statement      its rows by kind, as its tasks counted them; rows of keys that may be there: unknown
    compaction       no rows
    append table     inserted: the rows of its new files; deleted: those that the table then has less
    keyed table      overwrite    inserted: the rows of its new files, deleted: those before it, where each key was in one file
                     delete       the rows that it has read
                     write        inserted and updated where the table was empty, or the keys were looked up, else unknown;
                                  changes that delete: unknown

Of a write with unknown parts the rows written are known; a key that comes again may be counted again. Pure.
"""

from collections.abc import Iterable, Sequence

from tablestore.format.manifest.encodedentries import deleting_rows_in, rows_in
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import RowCounts
from tablestore.lsm.keyorder import KeyOrder
from tablestore.store.commit.rowcount import holds_each_key_once, marked_rows


def unkeyed_rows(written: Sequence[ManifestEntry], *, removes: bool, row_change: int | None, adds_no_row: bool) -> RowCounts:
    """The rows of a commit to an append table. ``written``: its new files. ``removes``: it deletes files, or marks rows.
    ``row_change``: by how many rows the table grows. ``adds_no_row``: the rows in new files were in the table."""
    inserted = 0 if adds_no_row else rows_in(written)
    if not removes:
        return RowCounts(inserted, 0, 0, inserted)
    if row_change is None or row_change > inserted:
        return RowCounts(inserted, 0, None, None)
    return RowCounts(inserted, 0, inserted - row_change, 2 * inserted - row_change)


def overwritten_rows(
    written: Sequence[ManifestEntry],
    removed: Sequence[ManifestEntry],
    index_before: Iterable[IndexEntry],
    keys: KeyOrder,
    *,
    row_change: int | None,
) -> RowCounts:
    """The rows of an overwrite of a keyed table. ``index_before``: the index files of the snapshot before it."""
    inserted = _each_row(written, keys)
    if inserted is not None and row_change is not None and row_change <= inserted:
        deleted: int | None = inserted - row_change
    else:
        deleted = _each_row(removed, keys) if marked_rows(index_before) == 0 else None
    return RowCounts(inserted, 0, deleted, None if inserted is None or deleted is None else inserted + deleted)


def keyed_rows(
    before: Snapshot | None, written: Sequence[ManifestEntry], keys: KeyOrder, *, row_change: int | None, adds_no_row: bool
) -> RowCounts:
    """The rows of a write to a keyed table. ``row_change`` as in :func:`unkeyed_rows`; ``adds_no_row``: each was in the table."""
    rows, deleting = rows_in(written), deleting_rows_in(written)
    if not written or (adds_no_row and deleting is not None):
        return RowCounts(0, rows - (deleting or 0), deleting or 0, rows)
    if deleting == 0:
        if row_change is not None and 0 <= row_change <= rows:
            return RowCounts(row_change, rows - row_change, 0, rows)
        if (before is None or before.total_record_count == 0) and holds_each_key_once(written, keys):
            return RowCounts(rows, 0, 0, rows)
        return RowCounts(None, None, 0, rows)
    # A delete by key does not look whether the key is there.
    return RowCounts(0, 0, None, rows) if deleting == rows else RowCounts(None, None, None, rows)


def changed_rows(rows: RowCounts, *, new_keys: bool) -> RowCounts | None:
    """The rows of a statement, by the kinds of its rows; None where its files tell as much. ``new_keys``: no key of an inserted row
    was in the table, as in a table without keys."""
    if new_keys or not rows.inserted:
        return rows
    return None if rows.inserted == rows.affected else RowCounts(None, None, rows.deleted, rows.affected)


def _each_row(files: Sequence[ManifestEntry], keys: KeyOrder) -> int | None:
    """The rows that readers see in these files; None where that is not known."""
    return rows_in(files) if deleting_rows_in(files) == 0 and holds_each_key_once(files, keys) else None
