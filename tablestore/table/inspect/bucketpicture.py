"""Pictures the LSM tree of a bucket: levels, runs, overlap, and the compaction work that is left.

    bucket 0     level 0  [.........]            newest flush     one run each
                 level 0      [......]
                 level 5  [....][....][....]     compacted        one run a level
                 depth     1 1 3 3 2 2 1 1       runs that a read merges, along the keys

Pure: live files in, values out. Files of a keyed bucket lie along its key range (by value where the first key column is a number
or a time, else by rank); those of an append table, which has no order, lie along its rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.partitiontext import partition_dir
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.compaction.compactiontask import CompactionTask
from tablestore.lsm.keyorder import KeyOrder, comparable_key
from tablestore.lsm.run import Section, levels, partition_intervals
from tablestore.store.context import TableContext
from tablestore.store.settings import TableSettings
from tablestore.table.upkeep.compactplan import BucketId, TaskPicker, live_buckets
from tablestore.types.schema import TableSchema

# A file of an append table below this share of the target size is small.
SMALL_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBar:
    """A data file as a bar from ``left`` to ``right``, both from 0 to 1 of its bucket's key range."""

    name: str
    left: float
    right: float
    size_bytes: int
    rows: int
    retractions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPicture:
    """One sorted run: files in key order that do not overlap."""

    level: int
    files: tuple[FileBar, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return sum(file.size_bytes for file in self.files)

    @property
    def rows(self) -> int:
        """Stored rows, before merging."""
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPicture:
    """One bucket of one partition; ``runs`` newest first.

    ``most_merged``: how many runs a read merges where most of them overlap. ``merged_bytes``: what lies where it merges at all.
    ``debt_bytes``: what compaction has to rewrite until nothing is merged, or (append tables) no file is small; ``due_bytes``: how
    much of that the next compaction does, by the table's own rules, and ``due`` why.
    """

    partition: str
    bucket: int
    runs: tuple[RunPicture, ...]
    most_merged: int
    merged_bytes: int
    debt_bytes: int
    due_bytes: int = 0
    due: str | None = None

    @property
    def files(self) -> int:
        """Number of data files."""
        return sum(len(run.files) for run in self.runs)

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return sum(run.size_bytes for run in self.runs)

    @property
    def rows(self) -> int:
        """Stored rows, before merging."""
        return sum(run.rows for run in self.runs)

    def depth(self, cells: int) -> tuple[int, ...]:
        """The number of runs in each of ``cells`` equal stretches of the key range."""
        counts = [0] * cells
        for run in self.runs:
            for cell in {cell for file in run.files for cell in cells_of(file, cells)}:
                counts[cell] += 1
        return tuple(counts)


def cells_of(file: FileBar, cells: int) -> range:
    """The stretches that a file's bar covers: at least one."""
    first = min(int(file.left * cells), cells - 1)
    last = min(max(int(file.right * cells - 1e-9), first), cells - 1)
    return range(first, last + 1)


def describe_buckets(context: TableContext, snapshot: Snapshot | None) -> tuple[BucketPicture, ...]:
    """The buckets of a snapshot as pictures, with the next compaction of each."""
    if snapshot is None:
        return ()
    context.check_sees_all("a picture of its buckets")
    picker = TaskPicker(context)
    tasks = {place: picker.pick(bucket) for place, bucket in live_buckets(context, snapshot).items()}
    due = {place: task for place, task in tasks.items() if task is not None}
    return picture_buckets(context.manifests.live(snapshot), context.schema, context.settings, due)


def picture_buckets(
    live: Iterable[ManifestEntry],
    schema: TableSchema,
    settings: TableSettings,
    due: Mapping[BucketId, CompactionTask] | None = None,
) -> tuple[BucketPicture, ...]:
    """Every bucket that holds files, by partition and bucket number. Pure; ``due`` are the next tasks of buckets."""
    buckets: dict[tuple[bytes, int], list[DataFileMeta]] = defaultdict(list)
    for entry in live:
        buckets[entry.partition, entry.bucket].append(entry.file)
    draw = _keyed if schema.is_keyed else _append
    pictures = []
    for (partition, bucket), files in sorted(buckets.items(), key=lambda item: item[0]):
        picture = draw(_partition_text(partition, schema, settings), bucket, files, schema, settings)
        if task := (due or {}).get((partition, bucket)):
            picture = replace(picture, due=task.reason, due_bytes=task.size_bytes)
        pictures.append(picture)
    return tuple(pictures)


def _partition_text(partition: bytes, schema: TableSchema, settings: TableSettings) -> str:
    types = [field.type for field in schema.partition_fields]
    # The spelling of SQL, whatever the directory is called: people read dates, not day numbers.
    return partition_dir(schema.partition_keys, types, decode_row(partition, types), settings.default_partition, legacy=False)


def _keyed(
    partition: str, bucket: int, files: Sequence[DataFileMeta], schema: TableSchema, settings: TableSettings
) -> BucketPicture:
    types = [field.type for field in schema.key_fields]
    key_of = KeyOrder.of(schema.key_fields)
    position = _positions([decode_row(key, types) for file in files for key in (file.min_key, file.max_key)])
    # With deletion vectors no row lies in two files that are read; what is new waits in level 0.
    sections = () if settings.deletion_vectors else partition_intervals(files, key_of)

    def bar(file: DataFileMeta) -> FileBar:
        left, right = position(decode_row(file.min_key, types)), position(decode_row(file.max_key, types))
        return _bar(file, left, right)

    runs = tuple(RunPicture(level=run[0].level, files=tuple(bar(f) for f in run)) for run in levels(files, key_of).runs)
    merged = _merged_bytes(sections)
    waiting = sum(file.file_size for file in files if file.level == 0) if settings.skips_level_zero else 0
    return BucketPicture(
        partition=partition,
        bucket=bucket,
        runs=runs,
        most_merged=max((len(section.runs) for section in sections), default=1),
        merged_bytes=merged,
        debt_bytes=max(merged, waiting),
    )


def _merged_bytes(sections: Iterable[Section]) -> int:
    return sum(file.file_size for section in sections if section.needs_merge for file in section.files)


def _append(
    partition: str, bucket: int, files: Sequence[DataFileMeta], schema: TableSchema, settings: TableSettings
) -> BucketPicture:
    total = sum(file.row_count for file in files) or 1
    bars, reached = [], 0
    for file in sorted(files, key=lambda file: (file.min_sequence_number, file.file_name)):
        bars.append(_bar(file, reached / total, (reached + file.row_count) / total))
        reached += file.row_count
    small = [bar for bar in bars if bar.size_bytes < SMALL_SHARE * settings.target_file_bytes]
    return BucketPicture(
        partition=partition,
        bucket=bucket,
        runs=(RunPicture(level=0, files=tuple(bars)),),
        most_merged=1,
        merged_bytes=0,
        # One small file alone is as few as it gets.
        debt_bytes=sum(bar.size_bytes for bar in small) if len(small) > 1 else 0,
    )


def _bar(file: DataFileMeta, left: float, right: float) -> FileBar:
    return FileBar(
        name=file.file_name,
        left=left,
        right=right,
        size_bytes=file.file_size,
        rows=file.row_count,
        retractions=file.delete_row_count or 0,
    )


def _positions(keys: Sequence[Sequence[object]]) -> Callable[[Sequence[object]], float]:
    """A function from a key to its place between 0 and 1."""
    numbers = [_number(key[0]) for key in keys]
    plain_numbers = [number for number in numbers if number is not None]
    if len(plain_numbers) == len(keys) and max(plain_numbers) > min(plain_numbers):
        low, span = min(plain_numbers), max(plain_numbers) - min(plain_numbers)
        return lambda key: ((_number(key[0]) or 0.0) - low) / span
    ordered = sorted({comparable_key(key) for key in keys})
    ranks = {key: rank / max(len(ordered) - 1, 1) for rank, key in enumerate(ordered)}
    return lambda key: ranks[comparable_key(key)]


def _number(value: object) -> float | None:
    """A finite number that orders as the value does, None if it has none."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()
    if isinstance(value, date):
        return float(value.toordinal())
    if isinstance(value, (int, float, Decimal)):
        number = float(value)
        return number if number - number == 0 else None
    return None
