"""How do a plan, a commit and the walks over all files cost by the number of files?

The tables have no data: their manifests name files of 128 MiB in 365 partitions, each with its own range of ids, as a table of a
million files would. Each plan and each walk is made by a fresh catalog, which has read no manifest. The small commit adds one file,
and the oldest snapshot expires behind such a commit.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa

import tablestore as ts
from benchmarks.measure import Case, Sample, stopwatch
from benchmarks.report import Result
from benchmarks.setting import Setting
from tablestore.format.binaryrow import encode_row
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.stats import ColumnStats, encode_stats
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage
from tablestore.store.scan.splits import plan_scan
from tablestore.types.filter.filters import parse_filter

PARTITIONS = 365
FIRST_DAY = date(2025, 1, 1)
ROWS_OF_A_FILE = 1_000
FILES_OF_A_COMMIT = 20_000
SCHEMA = pa.schema(
    [
        pa.field("day", pa.date32(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("price", pa.float64()),
        pa.field("name", pa.string()),
    ]
)
WALKS: dict[str, Callable[[ts.Table], object]] = {
    "count": lambda table: table.scan().count(),
    "partitions": lambda table: table.partitions(),
    "files": lambda table: table.files(),
    "system table of files": lambda table: sum(batch.num_rows for batch in table.system("files").to_batches()),
}
FILTERS = {"one partition": "day = DATE '2025-03-01'", "one id": "id = 1500", "all files": None}


def run(setting: Setting) -> None:
    """All questions of this module."""
    sizes = [setting.scaled(1_000), setting.scaled(10_000), setting.scaled(100_000)]
    with setting.workspace("scale") as space:
        tables = {size: space / f"files{size}" for size in sizes}
        for size, path in tables.items():
            _build(path, size, setting.seed)
        for name, text in FILTERS.items():
            cases = [Case(f"{size:,} files", lambda path=path, text=text: _plan(path, text)) for size, path in tables.items()]  # type: ignore[misc]
            result = Result(
                name=f"cold plan of {name}",
                question="What does a plan cost by the number of files?",
                rows=sizes[-1],
                base=cases[0].name,
                timings=setting.take_turns(cases),
            )
            setting.add(result)
        for name, walk in WALKS.items():
            cases = [Case(f"{size:,} files", lambda path=path, walk=walk: _walk(path, walk)) for size, path in tables.items()]  # type: ignore[misc]
            result = Result(
                name=name,
                question="What does a walk over all files cost by their number?",
                rows=sizes[-1],
                base=cases[0].name,
                timings=setting.take_turns(cases),
            )
            setting.add(result)
        cases = [Case(f"{size:,} files", lambda path=path: _expire(path)) for size, path in tables.items()]  # type: ignore[misc]
        result = Result(
            name="expiry of one snapshot",
            question="Does expiry cost what the snapshot deleted, however many files there are?",
            rows=1,
            base=cases[0].name,
            timings=setting.take_turns(cases),
        )
        setting.add(result)
        cases = [Case(f"{size:,} files", lambda path=path: _commit(path)) for size, path in tables.items()]  # type: ignore[misc]
        result = Result(
            name="commit of one file",
            question="Does a small commit cost the same however many files there are?",
            rows=1,
            base=cases[0].name,
            timings=setting.take_turns(cases),
        )
        setting.add(result)
        setting.add_bar(result.bar(f"commit beside {sizes[-1]:,} files / {sizes[0]:,}", cases[-1].name, cases[0].name, 1.5))


def _build(path: Path, files: int, seed: int) -> None:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("default")
    options = {"bucket": "1", "write-only": "true"}
    catalog.create_table("default.files", SCHEMA, primary_key=["day", "id"], partition_by=["day"], options=options)
    context = catalog.table("default.files").context
    entries = _entries(context, files, random.Random(seed))
    for start in range(0, files, FILES_OF_A_COMMIT):
        _publish(context, [next(entries) for _ in range(min(FILES_OF_A_COMMIT, files - start))])


def _publish(context: TableContext, entries: list[ManifestEntry]) -> None:
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


def _entries(context: TableContext, files: int, rng: random.Random) -> Iterator[ManifestEntry]:
    schema = context.schema
    key_types, types = [field.type for field in schema.key_fields], [field.type for field in schema.fields]
    partition_types = [field.type for field in schema.partition_fields]
    for number in range(files + 1):
        day, low = FIRST_DAY + timedelta(days=number % PARTITIONS), number // PARTITIONS * ROWS_OF_A_FILE
        high = low + ROWS_OF_A_FILE - 1
        bounds = [
            ColumnStats(min=day, max=day, null_count=0),
            ColumnStats(min=low, max=high, null_count=0),
            ColumnStats(min=rng.random(), max=1 + rng.random(), null_count=3),
            ColumnStats(min=f"a{number % 77}", max=f"zzzz{number:09}", null_count=0),
        ]
        file = DataFileMeta(
            file_name=f"data-{uuid.UUID(int=rng.getrandbits(128))}-0.parquet",
            file_size=128 << 20,
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
        yield ManifestEntry(kind=EntryKind.ADD, partition=partition, bucket=0, total_buckets=1, file=file)


def _plan(path: Path, text: str | None) -> Sample:
    context = ts.open_catalog(str(path)).table("default.files").context
    predicate = None if text is None else parse_filter(text, context.schema.fields)
    return stopwatch(lambda: plan_scan(context, context.snapshots.latest(), predicate))[0]


def _walk(path: Path, walk: Callable[[ts.Table], object]) -> Sample:
    table = ts.open_catalog(str(path)).table("default.files")
    return stopwatch(lambda: walk(table))[0]


def _expire(path: Path) -> Sample:
    # Each time with a new snapshot, so that those with the files of the table stay.
    _commit(path)
    table = ts.open_catalog(str(path)).table("default.files")
    retained = len(table.snapshots()) - 1
    return stopwatch(lambda: table.expire_snapshots(retain_min=1, retain_max=retained))[0]


def _commit(path: Path) -> Sample:
    context = ts.open_catalog(str(path)).table("default.files").context
    # Beyond all ids that are there, so that it meets no other file.
    latest = context.snapshots.latest()
    number = latest.id if latest else 0
    (entry,) = list(_entries(context, 0, random.Random(number)))
    low, high = 10**12 + number, 10**12 + number
    types = [field.type for field in context.schema.key_fields]
    file = {"min_key": encode_row((low,), types), "max_key": encode_row((high,), types)}
    return stopwatch(lambda: _publish(context, [replace(entry, file=replace(entry.file, **file))]))[0]
