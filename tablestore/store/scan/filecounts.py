"""Counts the rows of a snapshot from the columns of its manifests, of the buckets where that is exact; the others have to be read.

append table, deletion vectors      each file has its rows, less those that its vector marks
primary key                         a bucket whose files have no key in common, and no retractions, has the rows of its files
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.entrycolumns import EntryColumns, Places
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS
from tablestore.format.rowcolumns import has_order, row_field
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema

_COLUMNS = (
    *("partition", "bucket", "level", "file_name", "row_count", "delete_row_count"),
    *("footer_digest", "external_path", "write_cols"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """``rows`` of all buckets but ``to_read``, which are known by partition and number."""

    rows: int
    to_read: frozenset[tuple[bytes, int]]


def count_files(context: TableContext, snapshot: Snapshot) -> FileCounts:
    """Count the rows of a snapshot. Memory: about 250 bytes for each live file."""
    schema, settings = context.schema, context.settings
    stands_alone = not schema.is_keyed or settings.deletion_vectors
    live = context.manifests.live_columns(snapshot, _COLUMNS if stands_alone else (*_COLUMNS, "min_key", "max_key"))
    is_read = live.numbers("bucket") != POSTPONE_BUCKET
    if settings.skips_level_zero:
        is_read &= live.numbers("level") != 0
    live = live.take(np.flatnonzero(is_read))
    places, which = live.groups("partition", "bucket")
    deleted, is_known = _deleted(context, snapshot, live)
    # What a plan refuses is left to it.
    is_known &= _mask(pc.ends_with(live.column("file_name"), ".parquet"))
    is_known &= _mask(pc.and_(pc.is_null(live.column("external_path")), pc.is_null(live.column("write_cols"))))
    if schema.is_keyed:
        never_retracts = pc.and_(pc.equal(live.column("delete_row_count"), 0), pc.is_valid(live.column("footer_digest")))
        is_known &= _mask(pc.fill_null(never_retracts, False))
    if not stands_alone:
        is_known &= _has_own_keys(live, schema, which)
    unknown = np.bincount(which, ~is_known, minlength=len(places)) > 0
    rows = (live.numbers("row_count") - deleted)[~unknown[which]]
    # As Python's numbers, which do not overflow.
    return FileCounts(
        rows=sum(rows.tolist()), to_read=frozenset(place for place, is_unknown in zip(places, unknown, strict=True) if is_unknown)
    )


def _deleted(context: TableContext, snapshot: Snapshot, live: EntryColumns) -> tuple[Places, npt.NDArray[np.bool_]]:
    """The number of rows of each file that its deletion vector marks, and True where that is known."""
    index = [entry for entry in context.manifests.read_index(snapshot) if entry.index_type == DELETION_VECTORS]
    vectors = [vector for entry in index for vector in entry.deletion_vectors or ()]
    deleted, is_known = np.zeros(len(live), np.int64), np.ones(len(live), np.bool_)
    if vectors:
        marked = pc.index_in(live.column("file_name"), pa.array([vector.data_file for vector in vectors], pa.string()))
        has_vector = np.flatnonzero(_mask(marked.is_valid()))
        counts = [vector.cardinality for vector in vectors]
        of_file = marked.drop_null().to_numpy()
        deleted[has_vector] = np.array([count or 0 for count in counts], np.int64)[of_file]
        is_known[has_vector] = np.array([count is not None for count in counts], np.bool_)[of_file]
    return deleted, is_known


def _has_own_keys(live: EntryColumns, schema: TableSchema, which: Places) -> npt.NDArray[np.bool_]:
    """True for each file that certainly has no key of the one before it in its bucket: the first columns of their keys differ."""
    arity, first = len(schema.key_fields), schema.key_fields[0].type
    if not has_order(first):
        return np.zeros(len(live), np.bool_)
    low, high = (row_field(live.column(name), arity, 0, first) for name in ("min_key", "max_key"))
    order = pc.sort_indices(pa.table({"bucket": which, "low": low}), [("bucket", "ascending"), ("low", "ascending")])
    low, high, buckets = low.take(order), high.take(order), which[order.to_numpy()]
    apart = np.ones(len(live), np.bool_)
    if len(live) > 1:
        is_behind = _mask(pc.fill_null(pc.greater(low.slice(1), high.slice(0, len(high) - 1)), False))
        apart[1:] = is_behind | (buckets[1:] != buckets[:-1])
    in_order = np.empty(len(live), np.bool_)
    in_order[order.to_numpy()] = apart
    return in_order


def _mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return mask
