"""Picks small files of an append bucket to be compacted into one. Pure.

    oldest  [######] [#] [#] [##] [######] [#] [#] [#] [#] [#]  newest
             large    stretch      large    stretch: the five newest become one

Files are taken in the order of their rows, and only neighbours, so the order of a bucket is kept. A group is made when it has
enough members and none outweighs the newer ones by far, so a row is rewritten a logarithmic number of times.
"""

from collections.abc import Iterator, Sequence

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.lsm.compaction.compactiontask import LARGE_SHARE, CompactionTask, pieces_of, size_of
from tablestore.lsm.run import Section

# An older file this much larger than all newer ones of its group together stays out of it.
_OUTWEIGHS = 2


def append_order(files: Sequence[DataFileMeta]) -> list[DataFileMeta]:
    """The files of a bucket in the order of their rows."""
    return sorted(files, key=lambda f: (f.min_sequence_number, f.max_sequence_number, f.file_name))


def pick_append(
    files: Sequence[DataFileMeta],
    *,
    min_files: int,
    target_bytes: int,
    full: bool = False,
    file_cost_bytes: int = 0,
    budget_bytes: int | None = None,
) -> CompactionTask | None:
    """The next task of an append bucket, None if there is nothing to do within the budget.

    ``full``: all neighbouring small files that make fewer, whatever their number.
    """
    groups: list[tuple[Section, ...]] = []
    spent = 0
    for stretch in _stretches(append_order(files), LARGE_SHARE * target_bytes):
        chosen = stretch if full else _newest_of_a_size(stretch, min_files, target_bytes)
        if len(chosen) < 2 or pieces_of(sum(f.file_size for f in chosen), target_bytes) >= len(chosen):
            continue
        cost = size_of(chosen, file_cost_bytes)
        if budget_bytes is None or spent + cost <= budget_bytes:
            groups.append(tuple(Section(((file,),)) for file in chosen))
            spent += cost
    if not groups:
        return None
    return CompactionTask(
        output_level=0,
        drop_retractions=False,
        upgrades=(),
        groups=tuple(groups),
        target_bytes=target_bytes,
        reason="full" if full else "small-files",
    )


def _stretches(files: Sequence[DataFileMeta], large: float) -> Iterator[list[DataFileMeta]]:
    stretch: list[DataFileMeta] = []
    for file in files:
        if file.file_size < large:
            stretch.append(file)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _newest_of_a_size(stretch: Sequence[DataFileMeta], min_files: int, target_bytes: int) -> list[DataFileMeta]:
    weight, start = 0, len(stretch)
    while start > 0:
        older = stretch[start - 1]
        enough = len(stretch) - start >= min_files or weight >= target_bytes
        if enough and weight and older.file_size > _OUTWEIGHS * weight:
            break
        weight += older.file_size
        start -= 1
    chosen = list(stretch[start:])
    return chosen if len(chosen) >= min_files or weight >= target_bytes else []
