"""Compaction tasks and policies as values: which files are merged, which only move, where the result goes.

files -> sections (files whose keys hang together), in key order
         a large file that meets no other    moves to the output level as it is, or stays
         everything else                     is merged; neighbours go into one stretch of output
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.lsm.run import KeyOf, Section, partition_intervals
from tablestore.options import MIB

# Files are not made smaller than this.
LEAST_TARGET_BYTES = 8 * MIB
# A bucket has about so many files: one of them, with the files above it, is the least step of a bounded compaction.
FILES_PER_BUCKET = 64
# A file of this share of the target is large: it is moved, not rewritten.
LARGE_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRetractions:
    """Retractions that a compaction keeps although it may drop others: those from the sequence number ``from_sequence`` on, written
    after ``noted_millis``, which is older than the retention (by the clock of the files' creation times)."""

    from_sequence: int
    noted_millis: int
    retention_ms: int

    def may_drop(self, file: DataFileMeta) -> bool:
        """True if a file may hold retractions to drop. One of ours that was written when these were dropped already has none."""
        if file.footer_digest is None or file.creation_time_millis is None:
            return True
        looked_at = file.creation_time_millis - self.retention_ms
        return file.min_sequence_number < self.from_sequence and self.noted_millis > looked_at


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """The compaction options of a table. Sizes in bytes.

    ``takes_level_zero``: every compaction takes all of level 0. ``last_arrival_wins``: of several rows of a key the one written
    last counts, whole, so a retraction over nothing can go even if newer rows are elsewhere. ``retractions_apart``: a retraction
    may only be folded together with everything older. ``folds_at_once``: all versions of a key are folded together or none.
    ``kept``: retractions that are not dropped yet. ``file_cost_bytes``: what one more file costs, as bytes.
    """

    top_level: int = 5
    trigger: int = 5
    stop_trigger: int = 8
    max_amplification_percent: int = 200
    size_ratio_percent: int = 1
    total_size_threshold: int | None = None
    incremental_size_threshold: int | None = None
    target_file_bytes: int = 128 * MIB
    takes_level_zero: bool = False
    last_arrival_wins: bool = True
    retractions_apart: bool = False
    folds_at_once: bool = False
    kept: KeptRetractions | None = None
    file_cost_bytes: int = MIB // 4

    def file_bytes(self, bucket_bytes: int) -> int:
        """The size of a data file in a bucket of so many bytes: small enough that a few files can be rewritten at a time."""
        return max(min(bucket_bytes // FILES_PER_BUCKET, self.target_file_bytes), min(LEAST_TARGET_BYTES, self.target_file_bytes))


@dataclass(frozen=True, slots=True)
class Run:
    """One sorted run: files with disjoint keys, in key order."""

    level: int
    files: tuple[DataFileMeta, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return sum(file.file_size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTask:
    """The work that one compaction does on files of one bucket.

    ``upgrades`` change their level and nothing else. Each of ``groups`` is a stretch of sections in key order, which is merged
    and written as files of about ``target_bytes`` at ``output_level``; a file ends at each key of ``cuts`` (serialised) too.
    ``shifts``: older files that move down a level to make room; they are not input. ``kept``: what
    ``drop_retractions`` leaves. ``cluster_by``: rows of an append table are put in this order, and not left in that of the files.
    """

    output_level: int
    drop_retractions: bool
    upgrades: tuple[DataFileMeta, ...]
    groups: tuple[tuple[Section, ...], ...]
    target_bytes: int
    reason: str
    cuts: tuple[bytes, ...] = ()
    shifts: tuple[tuple[DataFileMeta, int], ...] = ()
    kept: KeptRetractions | None = None
    cluster_by: ClusterOrder | None = None

    @property
    def rewritten(self) -> tuple[DataFileMeta, ...]:
        """The files that are merged."""
        return tuple(file for group in self.groups for section in group for file in section.files)

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files that the task takes, merged or only moved."""
        return (*self.upgrades, *self.rewritten)

    @property
    def size_bytes(self) -> int:
        """Bytes to be rewritten."""
        return sum(file.file_size for file in self.rewritten)


def plan_task(
    files: Sequence[DataFileMeta],
    output_level: int,
    *,
    drop_retractions: bool,
    target_bytes: int,
    reason: str,
    key_of: KeyOf,
    rewrite_all: bool = False,
    staying: Sequence[DataFileMeta] = (),
    kept: KeptRetractions | None = None,
) -> CompactionTask | None:
    """The least work that brings ``files`` to ``output_level`` as one run; None if they are there.

    ``staying``: files of the output level that are not in the task and meet none of it; no output reaches over one of them.
    """
    walls = sorted(key_of(file.min_key) for file in staying)

    def drops(file: DataFileMeta) -> bool:
        return drop_retractions and file.may_retract and (kept is None or kept.may_drop(file))

    upgrades: list[DataFileMeta] = []
    groups: list[tuple[Section, ...]] = []
    pending: list[Section] = []

    def close() -> None:
        pending_files = [file for section in pending for file in section.files]
        if _is_worth_it(pending_files, output_level, target_bytes, drops) or (pending_files and rewrite_all):
            groups.append(tuple(pending))
        else:
            upgrades.extend(file for file in pending_files if file.level != output_level)
        pending.clear()

    reach: Any = None
    for section in partition_intervals(files, key_of):
        if pending and bisect_left(walls, reach) != bisect_left(walls, min(key_of(file.min_key) for file in section.files)):
            close()
        reach = max(key_of(file.max_key) for file in section.files)
        is_single = not section.needs_merge
        movable = is_single and not rewrite_all and all(_stays_as_it_is(f, target_bytes, drops) for f in section.files)
        if not movable:
            pending.append(section)
            continue
        close()
        upgrades.extend(file for file in section.files if file.level != output_level)
    close()
    if not upgrades and not groups:
        return None
    return CompactionTask(
        output_level=output_level,
        drop_retractions=drop_retractions,
        upgrades=tuple(upgrades),
        groups=tuple(groups),
        target_bytes=target_bytes,
        reason=reason,
        kept=kept if drop_retractions else None,
    )


def size_of(files: Iterable[DataFileMeta], file_cost_bytes: int) -> int:
    """Bytes of files, with the fixed cost of each."""
    return sum(file.file_size + file_cost_bytes for file in files)


def pieces_of(size: int, target_bytes: int) -> int:
    """The number of files of about the target size that hold so many bytes."""
    return max(round(size / target_bytes), 1)


def _stays_as_it_is(file: DataFileMeta, target_bytes: int, drops: Callable[[DataFileMeta], bool]) -> bool:
    return file.file_size >= LARGE_SHARE * target_bytes and not drops(file)


def _is_worth_it(
    files: Sequence[DataFileMeta], output_level: int, target_bytes: int, drops: Callable[[DataFileMeta], bool]
) -> bool:
    """True if merging these neighbours changes anything but their level."""
    if not files:
        return False
    if any(file.delete_row_count != 0 and drops(file) for file in files):
        return True
    if len(files) == 1:
        return False
    if all(file.level == output_level for file in files):
        # They are one run in its place: only fewer files would be a gain.
        return pieces_of(sum(file.file_size for file in files), target_bytes) < len(files)
    return True
