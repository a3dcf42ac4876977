"""Picks files of an append bucket to be ordered by its clustering columns, a level at a time. Pure.

    level 0       files as they were written, in no order
    level 1 … 5   each one run of files that were ordered together: small ranges of every clustering column

New files are ordered with those runs that are not much larger than they are, and what comes out goes to the level above the next
run, or to the last (universal compaction, as in keyed tables; Paimon's incremental clustering does the same). A row is ordered a
logarithmic number of times, and a query reads at most a few files of each run.
"""

from collections.abc import Sequence
from itertools import groupby

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.lsm.compaction.appendcompaction import append_order, pick_append
from tablestore.lsm.compaction.compactiontask import CompactionPolicy, CompactionTask, size_of
from tablestore.lsm.run import Section


def pick_clustering(
    files: Sequence[DataFileMeta],
    policy: CompactionPolicy,
    order: ClusterOrder,
    *,
    min_files: int,
    full: bool = False,
    anew: bool = False,
    budget_bytes: int | None = None,
) -> CompactionTask | None:
    """Picks the next task of a bucket whose rows are clustered, None if there is nothing to do within the budget.

    ``full``: all files become one run, unless they are. ``anew``: also if they are, as after a change of the order. Where ordering
    new files with older runs is beyond the budget, small new files become fewer, and wait.
    """
    fresh = append_order([file for file in files if file.level == 0])
    runs = [list(run) for _, run in groupby(sorted((f for f in files if f.level > 0), key=lambda f: f.level), lambda f: f.level)]
    if full or anew:
        is_one_run = not fresh and len(runs) == 1
        return None if not files or (is_one_run and not anew) else _ordered(files, policy.top_level, policy, order, "full")
    fresh_bytes = sum(file.file_size for file in fresh)
    if not fresh or (len(fresh) < min_files and fresh_bytes < policy.target_file_bytes):
        return None
    chosen, position = list(fresh), 0
    older_bytes = sum(file.file_size for run in runs for file in run)
    last_bytes = sum(file.file_size for file in runs[-1]) if runs else 0
    everything = bool(runs) and (fresh_bytes + older_bytes - last_bytes) * 100 > policy.max_amplification_percent * last_bytes
    for run in runs:
        run_bytes = sum(file.file_size for file in run)
        similar = sum(file.file_size for file in chosen) * (100 + policy.size_ratio_percent) >= run_bytes * 100
        # Level 1 has no room above it.
        if not everything and not similar and run[0].level > 1:
            break
        chosen += run
        position += 1
    level = policy.top_level if position == len(runs) else runs[position][0].level - 1
    if budget_bytes is not None and size_of(chosen, policy.file_cost_bytes) > budget_bytes:
        return pick_append(
            fresh,
            min_files=min_files,
            target_bytes=policy.target_file_bytes,
            file_cost_bytes=policy.file_cost_bytes,
            budget_bytes=budget_bytes,
        )
    return _ordered(chosen, level, policy, order, "clustering")


def _ordered(
    files: Sequence[DataFileMeta], level: int, policy: CompactionPolicy, order: ClusterOrder, reason: str
) -> CompactionTask:
    sections = tuple(Section(((file,),)) for file in append_order(files))
    return CompactionTask(
        output_level=level,
        drop_retractions=False,
        upgrades=(),
        groups=(sections,),
        target_bytes=policy.file_bytes(sum(file.file_size for file in files)),
        reason=reason,
        cluster_by=order,
    )
