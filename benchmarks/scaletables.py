"""Builds tables without data, with as many files, partitions, buckets, snapshots, tags and columns as are asked for.

A file has 128 MiB, :data:`ROWS_OF_A_FILE` rows and its own range of ids, as in a table of a million files.
"""

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import tablestore as ts
from tablestore.format.binaryrow import encode_row
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.sidecar import FEWEST_ENTRIES
from tablestore.format.paths import snapshot_path
from tablestore.format.snapshot import CommitKind, encode_snapshot
from tablestore.format.stats import ColumnStats, encode_stats
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_path
from tablestore.store.message import CommitMessage
from tablestore.table.upkeep.manifestcompaction import merge_later_runs

NAME = "default.files"
FIRST_DAY = date(1900, 1, 1)
ROWS_OF_A_FILE = 1_000
FILE_BYTES = 128 << 20
FILES_OF_A_COMMIT = 20_000
_MERGING = "merging.json"
# Of wide tables, which have bounds of every column.
_COLUMNS_OF_A_COMMIT = 2_000_000
SCHEMA = pa.schema(
    [
        pa.field("day", pa.date32(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("price", pa.float64()),
        pa.field("name", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What there is of a table. ``columns`` are those beside :data:`SCHEMA`."""

    files: int
    partitions: int = 365
    buckets: int = 1
    snapshots: int = 0
    tags: int = 0
    columns: int = 0


def build(path: Path, shape: Shape, seed: int, *, each: Callable[[int], None] = lambda files: None) -> None:
    """Create the table of a shape. ``each`` is told how many files it has by now."""
    catalog = ts.open_catalog(str(path))
    catalog.create_database("default")
    fields = [*SCHEMA, *(pa.field(f"c{number}", pa.int64()) for number in range(shape.columns))]
    options = {"bucket": str(shape.buckets), "write-only": "true", "partition.expiration-time": "1 d"}
    table = catalog.create_table(NAME, pa.schema(fields), primary_key=["day", "id"], partition_by=["day"], options=options)
    entries = entries_of(table.context, shape, random.Random(seed))
    merging_s = 0.0
    batch = max(min(FILES_OF_A_COMMIT, _COLUMNS_OF_A_COMMIT // len(fields)), 1)
    for start in range(0, shape.files, batch):
        publish(table.context, [next(entries) for _ in range(min(batch, shape.files - start))])
        began = time.process_time()
        if batch >= FEWEST_ENTRIES:
            # As a write does once its commit has landed.
            merge_later_runs(table.context)
        merging_s += time.process_time() - began
        each(min(start + batch, shape.files))
    (path / _MERGING).write_text(json.dumps(merging_s), encoding="utf-8")
    _repeat_snapshots(table.context, shape.snapshots)
    for number in range(shape.tags):
        table.create_tag(f"t{number}")


def merging_seconds(path: Path) -> float:
    """The processor time that the commits of :func:`build` took to merge large manifests."""
    return float(json.loads((path / _MERGING).read_text(encoding="utf-8")))


def unmerge(path: Path) -> None:
    """Give the table of :func:`build` the manifests that its commits wrote, none of them merged: as other engines leave them."""
    context = open_files(path)
    manifests, snapshots = context.manifests, map(context.snapshots.read, context.snapshots.live_ids())
    written = [one for snapshot in snapshots for one in manifests.read_list(snapshot.delta_manifest_list)]
    committer(context).commit(
        CommitRequest(
            user="benchmark",
            kind=CommitKind.COMPACT,
            message=context.message(context.snapshots.latest()),
            allow_empty=True,
            replace_manifests=lambda _: written,
        )
    )


def open_files(path: Path) -> TableContext:
    """The table of :func:`build`, by a fresh catalog."""
    return ts.open_catalog(str(path)).table(NAME).context


def _repeat_snapshots(context: TableContext, count: int) -> None:
    """Publish the newest snapshot again under the next ids: so many small commits would take minutes."""
    snapshot = context.snapshots.latest()
    for number in range(count - (snapshot.id if snapshot else 0)):
        assert snapshot is not None, "the files were committed"
        copy = replace(snapshot, id=snapshot.id + number + 1, time_millis=snapshot.time_millis + number + 1)
        context.files.publish_if_absent(snapshot_path(copy.id), encode_snapshot(copy))


def publish(context: TableContext, entries: list[ManifestEntry]) -> None:
    """Commit files."""
    base = context.snapshots.latest()
    message = CommitMessage(
        table_uuid=context.table_uuid,
        schema_id=context.schema.id,
        base_snapshot_id=base.id if base else 0,
        base_snapshot_uuid=base.uuid if base else None,
        created_millis=int(time.time() * 1000),
        entries=tuple(entries),
    )
    committer(context).commit(CommitRequest(user="benchmark", message=message))


def entries_of(context: TableContext, shape: Shape, rng: random.Random) -> Iterator[ManifestEntry]:
    """Without end: the files in turn of all partitions, and there of all buckets."""
    schema = context.schema
    key_types, types = [field.type for field in schema.key_fields], [field.type for field in schema.fields]
    partition_types = [field.type for field in schema.partition_fields]
    for number in range(10**9):
        turn = number // shape.partitions
        day, low = FIRST_DAY + timedelta(days=number % shape.partitions), turn * ROWS_OF_A_FILE
        high = low + ROWS_OF_A_FILE - 1
        bounds = [
            ColumnStats(min=day, max=day, null_count=0),
            ColumnStats(min=low, max=high, null_count=0),
            ColumnStats(min=rng.random(), max=1 + rng.random(), null_count=3),
            ColumnStats(min=f"a{number % 77}", max=f"zzzz{number:09}", null_count=0),
            *(ColumnStats(min=low, max=high, null_count=0) for _ in range(shape.columns)),
        ]
        file = DataFileMeta(
            file_name=f"data-{uuid.UUID(int=rng.getrandbits(128))}-0.parquet",
            file_size=FILE_BYTES,
            row_count=ROWS_OF_A_FILE,
            min_key=encode_row((low,), key_types),
            max_key=encode_row((high,), key_types),
            key_stats=encode_stats(bounds[1:2], key_types),
            value_stats=encode_stats(bounds, types),
            min_sequence_number=number * ROWS_OF_A_FILE,
            max_sequence_number=(number + 1) * ROWS_OF_A_FILE - 1,
            schema_id=schema.id,
            level=5,
            creation_time_millis=1_764_000_000_000 + number,
            delete_row_count=0,
            file_source=int(FileSource.COMPACT),
            footer_digest=rng.randbytes(16),
        )
        partition = encode_row((day,), partition_types)
        bucket = turn % shape.buckets
        yield ManifestEntry(kind=EntryKind.ADD, partition=partition, bucket=bucket, total_buckets=shape.buckets, file=file)


def one_more_entry(context: TableContext, shape: Shape) -> ManifestEntry:
    """A file beyond all ids that are there, so that it meets no other."""
    latest = context.snapshots.latest()
    number = latest.id if latest else 0
    # No seed of a whole table, so that no name comes twice.
    entry = next(entries_of(context, shape, random.Random(f"one more than {number}")))
    bound = encode_row((10**12 + number,), [field.type for field in context.schema.key_fields])
    keys: dict[str, Any] = {"min_key": bound, "max_key": bound}
    return replace(entry, file=replace(entry.file, **keys))


def put_files(path: Path) -> None:
    """Give every live file its size on disk, of holes alone: verify looks whether they are there."""
    context = open_files(path)
    for entry in context.manifests.live(context.snapshots.latest()):
        put_file(path, context, entry)


def put_file(path: Path, context: TableContext, entry: ManifestEntry) -> None:
    """Give the file of an entry its size on disk, of holes alone."""
    place = Path(ts.open_catalog(str(path)).table(NAME).location) / entry_path(context.paths, entry, context.schema)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as file:
        file.truncate(FILE_BYTES)
