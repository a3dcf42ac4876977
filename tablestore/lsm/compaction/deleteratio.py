"""Picks files for rewriting in which deletion vectors mark many rows as deleted. Pure.

Deletion vectors make deletes cheap and reads dear: a file is read whole, and its deleted rows are dropped. A compaction applies
the vectors of the files that it takes; this adds other files with a high delete ratio.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.lsm.compaction.compactiontask import CompactionTask
from tablestore.lsm.run import Section


def pick_by_delete_ratio(
    files: Sequence[DataFileMeta], deleted: Mapping[str, int], *, share: float, budget_bytes: int | None = None
) -> tuple[DataFileMeta, ...]:
    """The files of which more than ``share`` of the rows are deleted, as far as ``budget_bytes`` go; the highest ratio first.

    ``deleted``: how many rows of a file are deleted, by file name.
    """
    candidates = [file for file in files if deleted.get(file.file_name, 0) > share * file.row_count]
    candidates.sort(key=lambda file: (-deleted[file.file_name] / file.row_count, file.file_name))
    chosen: list[DataFileMeta] = []
    spent = 0
    for file in candidates:
        if budget_bytes is None or spent + file.file_size <= budget_bytes:
            chosen.append(file)
            spent += file.file_size
    return tuple(chosen)


def with_rewrites(
    task: CompactionTask | None, files: Sequence[DataFileMeta], *, output_level: int, target_bytes: int
) -> CompactionTask | None:
    """``task`` with these files rewritten too, each for itself; None if there is nothing to do.

    Files that the task only moves are rewritten instead. The others stay at their level, which is ``output_level``.
    """
    merged = {file.file_name for file in task.rewritten} if task is not None else set()
    added = tuple((Section(((file,),)),) for file in files if file.file_name not in merged)
    if not added:
        return task
    if task is None:
        return CompactionTask(
            output_level=output_level,
            drop_retractions=False,
            upgrades=(),
            groups=added,
            target_bytes=target_bytes,
            reason="deleted-rows",
        )
    names = {file.file_name for file in files}
    return replace(
        task,
        upgrades=tuple(file for file in task.upgrades if file.file_name not in names),
        groups=(*task.groups, *added),
    )
