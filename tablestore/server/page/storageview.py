"""Views how a table is stored: the LSM trees of its buckets, its partitions and its files, sorted as the reader says."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA
from tablestore.format.snapshot import Snapshot
from tablestore.server.page.listpart import ListPart, cut_part, window
from tablestore.server.page.pagecontext import PageContext
from tablestore.server.page.tableview import TableHead, head_of
from tablestore.store.context import TableContext
from tablestore.store.filesums import summed_files
from tablestore.table.inspect.bucketpicture import BucketPicture, describe_buckets, picture_buckets
from tablestore.table.inspect.cells import cell_rows

PART_SIZE = 50
DRAWN_BUCKETS = 8
MOST_FILES_DESCRIBED = 5_000
"""Files of a table up to which every bucket is looked at; of a larger one those with the most files."""

PARTITION_KEYS = ("partition", "record_count", "file_count", "file_size_bytes", "last_update_time")
FILE_KEYS = ("partition", "bucket", "level", "row_count", "file_size_bytes", "delete_row_count", "creation_time", "file_path")
_ORDERS = ("ascending", "descending")


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedList:
    """A part of a list, and by which of its columns it is sorted."""

    keys: tuple[str, ...]
    part: ListPart[tuple[str | None, ...]]
    key: str
    order: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageView:
    """The page of how a table is stored. ``described``: whether all buckets were looked at; else debt is not known as a whole."""

    head: TableHead
    keyed: bool
    snapshot_id: int | None
    files: int
    size_bytes: int
    bucket_count: int
    drawn: tuple[BucketPicture, ...]
    described: bool
    most_merged: int
    debt_bytes: int
    due_bytes: int
    due_buckets: int
    partitions: SortedList
    file_list: SortedList


def view_storage(context: PageContext) -> StorageView:
    """The page of how the table of the path is stored. The query may have ``partitions``, ``files`` (pages), ``partition-sort``,
    ``partition-order``, ``sort`` and ``order``. Raises InvalidInputError, NotFoundError."""
    table = context.table()
    inside = table.context
    latest = inside.snapshots.latest()
    sums = summed_files(inside.manifests, latest, "partition", "bucket")
    files = sum(one.files for one in sums)
    described = files <= MOST_FILES_DESCRIBED
    if described:
        pictures: Sequence[BucketPicture] = describe_buckets(inside, latest)
    else:
        wanted = {one.group for one in nlargest(DRAWN_BUCKETS, sums, key=lambda one: (one.files, one.size_bytes))}
        pictures = _some_buckets(inside, latest, wanted)
    return StorageView(
        head=head_of(context, table),
        keyed=bool(table.primary_key),
        snapshot_id=latest.id if latest else None,
        files=files,
        size_bytes=sum(one.size_bytes for one in sums),
        bucket_count=len(sums),
        drawn=tuple(_worst(pictures)),
        described=described,
        most_merged=max((picture.most_merged for picture in pictures), default=0),
        debt_bytes=sum(picture.debt_bytes for picture in pictures),
        due_bytes=sum(picture.due_bytes for picture in pictures),
        due_buckets=sum(picture.due is not None for picture in pictures),
        partitions=_sorted(context, table.partitions(), PARTITION_KEYS, "partitions", "partition-"),
        file_list=_sorted(context, table.files(), FILE_KEYS, "files", ""),
    )


def _some_buckets(inside: TableContext, latest: Snapshot | None, wanted: set[tuple[object, ...]]) -> Sequence[BucketPicture]:
    live = inside.manifests.live_columns(latest, ENTRY_SCHEMA.names)
    inside_wanted = live.take(live.in_places(lambda place: place in wanted).nonzero()[0])
    return picture_buckets(inside_wanted.entries()[:MOST_FILES_DESCRIBED], inside.schema, inside.settings)


def _worst(pictures: Sequence[BucketPicture]) -> Sequence[BucketPicture]:
    if len(pictures) <= DRAWN_BUCKETS:
        return pictures
    return nlargest(DRAWN_BUCKETS, pictures, key=lambda picture: (picture.debt_bytes, picture.size_bytes))


def _sorted(context: PageContext, rows: pa.Table, keys: tuple[str, ...], page_key: str, prefix: str) -> SortedList:
    key, order = context.choice(f"{prefix}sort", keys), context.choice(f"{prefix}order", _ORDERS)
    page = context.number(page_key)
    places = pc.sort_indices(rows, sort_keys=[(key, order), *((name, "ascending") for name in keys if name != key)])
    shown = rows.take(places[window(page, PART_SIZE)]).select(keys)
    return SortedList(keys=keys, part=cut_part(cell_rows(shown), page, PART_SIZE, rows.num_rows), key=key, order=order)
