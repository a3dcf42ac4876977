"""Picks the next compaction of a bucket of a keyed table (universal, within a budget). Pure: the live files in, a task out.

    newest   level 0   [..] [..] [......]      each flush a run of its own; they overlap
             level 3   [...][...][....]        a run is cut where files of the oldest run end,
    oldest   level 5   [....][....][....]      so key ranges can be merged one by one

Without a budget (``compact``, the service) the rules are those of universal compaction: all runs, once the newer ones are too
large for the oldest; else the newest runs of similar size; else so many of the newest that the trigger is met again.

With a budget (a writer, after its own commit) nothing is picked that rewrites more than it. A bucket that fits is compacted whole.
A larger one takes part of the work: the newest runs become one, in a level above the oldest run; and while the newer runs are
large next to the oldest, the two oldest runs are merged in as many key ranges as fit. What is left waits for the next commit.

Invariants, whatever is picked: the files of a task hang together in age, and every file of their key range between the newest
and the oldest of them is among them, so a newer version of a key never comes to lie below an older one; a level above 0 is
one run; retractions are dropped only where nothing older can be left that they would have to hide; where all versions of a key
are folded at once or not at all (``folds_at_once``), a task takes all files of its key range or folds nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.lsm.compaction.compactiontask import CompactionPolicy, CompactionTask, Run, plan_task, size_of
from tablestore.lsm.run import KeyOf, Levels, partition_intervals

# Level-0 files that follow one another in key order count as one run from this size on: large flushes are written in pieces.
LARGE_FILE_BYTES = 4 * 1024 * 1024
# A writer goes on merging into the oldest run while the newer ones are this many percent of it.
DRAIN_PERCENT = 20
# A writer is two runs ahead of the trigger where the newer runs are this many percent of an oldest run of at least this size.
EAGER_PERCENT = 18
EAGER_BYTES = 1024 * 1024
# Reasons for which a bucket is compacted whole.
AMPLIFIED, AFFORDABLE = "amplification", "affordable"
WHOLE_REASONS = frozenset((AMPLIFIED, AFFORDABLE))
# With so many runs between level 0 and the oldest one, hardly a level is left for the next.
_CROWDED = 4

Moves = tuple[tuple[DataFileMeta, int], ...]


def sorted_runs(levels: Levels, key_of: KeyOf) -> tuple[Run, ...]:
    """The sorted runs of a bucket, newest first. Pieces of one large flush are one run."""
    runs: list[Run] = []
    pending: list[DataFileMeta] = []
    for file in levels.level_zero:
        # Newest first, and a flush is written in ascending order: the piece before this one in key order comes next.
        if pending and not (file.file_size >= LARGE_FILE_BYTES and key_of(file.max_key) < key_of(pending[-1].min_key)):
            runs.append(Run(0, tuple(reversed(pending))))
            pending = []
        pending.append(file)
    if pending:
        runs.append(Run(0, tuple(reversed(pending))))
    runs.extend(Run(level, files) for level, files in enumerate(levels.upper, start=1) if files)
    return tuple(runs)


def pick_full(levels: Levels, policy: CompactionPolicy, *, key_of: KeyOf) -> CompactionTask | None:
    """The task of a full compaction, which brings all runs to the top level; None if they are there."""
    return _Picker(levels, policy, key_of, None).everything("full")


def pick_compaction(
    levels: Levels, policy: CompactionPolicy, *, key_of: KeyOf, budget_bytes: int | None = None, whole: bool = True
) -> CompactionTask | None:
    """The next task of a bucket, None if there is nothing to do, or nothing that ``budget_bytes`` pay for.

    ``whole``: within the budget the bucket may be compacted as a whole. Over the stop trigger something is picked in any case,
    the cheapest if need be.
    """
    return _Picker(levels, policy, key_of, budget_bytes, whole=whole).pick()


def pick_range(levels: Levels, policy: CompactionPolicy, *, key_of: KeyOf, start: int, stop: int) -> CompactionTask | None:
    """The task that makes the sorted runs ``start`` to ``stop`` one, or more of them if these must not be merged alone; None if
    there is none."""
    return _Picker(levels, policy, key_of, None)._task(start, stop, "range")


class _Picker:
    """One decision. ``budget`` None has no bound."""

    def __init__(self, levels: Levels, policy: CompactionPolicy, key_of: KeyOf, budget: int | None, *, whole: bool = True) -> None:
        self._runs = sorted_runs(levels, key_of)
        self._policy, self._key_of = policy, key_of
        self._total = sum(run.size_bytes for run in self._runs)
        self._zero_runs = sum(1 for run in self._runs if run.level == 0)
        self._budget, self._whole = budget, whole

    def pick(self) -> CompactionTask | None:
        runs, policy = self._runs, self._policy
        if len(runs) == 0:
            return None
        if self._over_a_threshold() and (task := self.everything("threshold")) is not None:
            return task
        if policy.takes_level_zero and self._zero_runs and (task := self._all_of_level_zero()) is not None:
            return task
        if self._budget is not None and len(runs) > policy.stop_trigger and (task := self._cheapest()) is not None:
            return task
        if len(runs) >= self._trigger() and (task := self._fewer_runs()) is not None:
            return task
        return self._join() or self._drain()

    def everything(self, reason: str) -> CompactionTask | None:
        """The task that brings all runs to the top."""
        return self._task(0, len(self._runs), reason) if self._runs else None

    # -- the rules

    def _trigger(self) -> int:
        """The number of runs that are too many. A writer acts earlier where readers merge a lot for a few runs."""
        trigger, oldest = self._policy.trigger, self._runs[-1]
        newer = self._total - oldest.size_bytes
        eager = oldest.level > 0 and oldest.size_bytes >= EAGER_BYTES and 100 * newer >= EAGER_PERCENT * oldest.size_bytes
        return max(trigger - 2, 2) if eager and self._budget is not None else trigger

    def _over_a_threshold(self) -> bool:
        policy, runs = self._policy, self._runs
        if policy.total_size_threshold is not None and len(runs) > 1 and self._total < policy.total_size_threshold:
            return True
        newer = sum(run.size_bytes for run in runs if run.level < policy.top_level)
        return policy.incremental_size_threshold is not None and newer >= policy.incremental_size_threshold

    def _all_of_level_zero(self) -> CompactionTask | None:
        """Level 0 must not stay: until a compaction takes it, its rows or its changes are not visible."""
        return self._task(0, self._runs_of_similar_size(self._zero_runs), "level-0")

    def _fewer_runs(self) -> CompactionTask | None:
        runs, policy = self._runs, self._policy
        newer, oldest = self._total - runs[-1].size_bytes, runs[-1].size_bytes
        amplified = 100 * newer > policy.max_amplification_percent * oldest
        if self._whole if self._budget is not None else amplified:
            task = self.everything(AMPLIFIED if amplified else AFFORDABLE)
            if task is not None and self._fits(task):
                return task
        if self._budget is not None:
            if self._zero_runs < max(policy.trigger - 1, 2) and len(runs) < policy.stop_trigger:
                # Runs above level 0 are few: they wait until a few more have come, and the budget goes into the oldest run.
                return None
            if (task := self._settle()) is not None:
                return task
        stop = self._runs_of_similar_size(max(self._zero_runs, 1))
        reason = "size-ratio"
        if stop < 2 and len(runs) > policy.trigger:
            stop, reason = len(runs) - policy.trigger + 1, "run-count"
            stop = max(stop, self._zero_runs, 2)
        for end in range(min(stop, len(runs)), max(self._zero_runs, 2) - 1, -1):
            task = self._task(0, end, reason)
            if task is not None and self._fits(task):
                return task
        return None

    def _settle(self) -> CompactionTask | None:
        """Take a large oldest run out of level 0 as it is, so that the small ones above it can be merged without it."""
        runs, position = self._runs, self._zero_runs - 1
        newer = [file for run in runs[: max(position, 0)] for file in run.files]
        if not newer:
            return None
        large = runs[position].size_bytes > sum(file.file_size for file in newer)
        if not large and self._within(self._cost((*newer, *runs[position].files))):
            return None
        place = self._place(position + 1)
        if place is None:
            return None
        level, shifts = place
        if position == len(runs) - 1 and any(file.may_retract for file in runs[position].files):
            level -= 1
        if level < 1:
            return None
        return CompactionTask(
            output_level=level,
            drop_retractions=False,
            upgrades=runs[position].files,
            groups=(),
            target_bytes=self._policy.file_bytes(self._total),
            reason="settle",
            shifts=shifts,
        )

    def _runs_of_similar_size(self, stop: int) -> int:
        """The end of a task that begins with the newest ``stop`` runs and takes in runs of similar size."""
        runs = self._runs
        size = sum(run.size_bytes for run in runs[:stop])
        while stop < len(runs):
            # Where no level is left above a run, it has to join.
            crowded = self._place(stop) is None
            if not crowded and size * (100 + self._policy.size_ratio_percent) < 100 * runs[stop].size_bytes:
                break
            size += runs[stop].size_bytes
            stop += 1
        return stop

    def _drain(self) -> CompactionTask | None:
        """Merge upper runs into the oldest one, in as many key ranges as the budget pays for, those first that gain most."""
        runs = self._runs
        uppers, oldest = runs[self._zero_runs : -1], runs[-1]
        newer = self._total - oldest.size_bytes
        if not uppers or 100 * newer <= DRAIN_PERCENT * oldest.size_bytes:
            return None
        # All of them at once gains most; the older ones alone have smaller key ranges that hang together.
        for first in range(len(uppers)):
            chosen = self._affordable_ranges([file for run in uppers[first:] for file in run.files], oldest.files)
            if chosen:
                return self._plan(chosen, oldest.level, "drain", staying=_without(oldest.files, chosen))
        return self._recut(uppers[-1], oldest)

    def _join(self) -> CompactionTask | None:
        """Merges the two neighbours that are the least work, a part at a time, where many runs lie above the oldest one."""
        uppers = self._runs[self._zero_runs : -1]
        if self._budget is None or len(uppers) < _CROWDED:
            return None
        for newer, older in sorted(pairwise(uppers), key=lambda pair: pair[0].size_bytes + pair[1].size_bytes):
            files = (*newer.files, *older.files)
            if self._policy.retractions_apart and any(file.may_retract for file in files):
                continue
            chosen = self._affordable_ranges(newer.files, older.files)
            task = self._plan(chosen, older.level, "join", oldest=False, staying=_without(older.files, chosen)) if chosen else None
            if task is not None:
                return replace(task, cuts=self._cuts(sum(file.file_size for file in files)))
        return None

    def _affordable_ranges(self, uppers: Sequence[DataFileMeta], oldest: Sequence[DataFileMeta]) -> list[DataFileMeta]:
        names = {file.file_name for file in uppers}
        ranked: list[tuple[float, int, tuple[DataFileMeta, ...]]] = []
        for section in partition_intervals((*uppers, *oldest), self._key_of):
            gain = sum(file.file_size for file in section.files if file.file_name in names)
            apart = self._policy.retractions_apart and any(file.may_retract for file in section.files)
            if gain and not (apart and section.needs_merge):
                cost = self._cost(section.files) if section.needs_merge else self._policy.file_cost_bytes
                ranked.append((gain / cost, cost, section.files))
        ranked.sort(key=lambda item: -item[0])
        chosen: list[DataFileMeta] = []
        spent = 0
        for _, cost, files in ranked:
            if self._within(spent + cost):
                chosen.extend(files)
                spent += cost
        return chosen

    def _recut(self, upper: Run, oldest: Run) -> CompactionTask | None:
        """Cut files of the upper run where files of the oldest run end, so that key ranges come apart that fit a budget."""
        assert self._budget is not None, "without a bound a key range always fits"
        ends = [self._key_of(file.max_key) for file in oldest.files[:-1]]
        chosen: list[DataFileMeta] = []
        spent = 0
        for file in upper.files:
            low, high = self._key_of(file.min_key), self._key_of(file.max_key)
            cost = self._cost((file,))
            meets = [other.file_size for other in oldest.files if not (self._key_of(other.max_key) < low)]
            parts = sum(1 for end in ends if low <= end < high) + 1
            useful = parts > 1 and bool(meets) and min(meets) + file.file_size // parts <= self._budget
            if useful and spent + cost <= self._budget:
                chosen.append(file)
                spent += cost
        if not chosen:
            return None
        task = self._plan(chosen, upper.level, "recut", keep=True, staying=_without(upper.files, chosen))
        return None if task is None else replace(task, cuts=tuple(file.max_key for file in oldest.files[:-1]))

    def _cheapest(self) -> CompactionTask | None:
        """Back-pressure: of the tasks that leave fewer runs, the cheapest; the one that takes most files if several are cheap."""
        if (whole := self.everything("back-pressure")) is not None and self._fits(whole):
            return whole
        tasks = list(self._windows())
        fitting = [task for task in tasks if self._fits(task)]
        if fitting:
            return max(fitting, key=lambda task: len(task.files))
        return min(tasks, key=lambda task: self._cost(task.files), default=whole)

    def _windows(self) -> Iterator[CompactionTask]:
        """Neighbouring runs that could become one: the older runs of level 0 with those behind them, or two upper runs."""
        count, zero = len(self._runs), self._zero_runs
        for end in range(max(zero, 2), min(zero + 2, count) + 1):
            for start in range(min(zero, end - 1)):
                if (task := self._task(start, end, "back-pressure")) is not None:
                    yield task
        for start in range(zero, count - 1):
            if (task := self._task(start, start + 2, "back-pressure", level=self._runs[start + 1].level)) is not None:
                yield task

    # -- tasks

    def _place(self, stop: int) -> tuple[int, Moves] | None:
        """The level of a task that ends before run ``stop``, and the older runs that move down for it; None if all are taken."""
        runs = self._runs
        if stop == len(runs):
            return max(self._policy.top_level, runs[-1].level), ()
        if runs[stop].level > 1:
            return runs[stop].level - 1, ()
        below, moves = runs[-1].level, list[tuple[DataFileMeta, int]]()
        for run in reversed(runs[stop:-1]):
            below -= 1
            if run.level != below:
                moves.extend((file, below) for file in run.files)
        return (below - 1, tuple(moves)) if below > 1 and runs[stop].level > 0 else None

    def _task(self, start: int, stop: int, reason: str, *, level: int | None = None) -> CompactionTask | None:
        """The task that makes runs ``start`` to ``stop`` one; None if they are one in their place, if there is no place, or if
        they must not be merged alone."""
        files = [file for run in self._runs[start:stop] for file in run.files]
        reaches_oldest = stop == len(self._runs)
        place = self._place(stop) if level is None else (level, ())
        if place is None:
            return None
        if self._policy.retractions_apart and not reaches_oldest and any(file.may_retract for file in files):
            # Such a retraction takes back part of what older runs hold: it is folded with all of them or not at all.
            return self.everything(reason) if start == 0 else None
        if not self._may_fold(files):
            return self.everything(reason) if start == 0 else None
        task = self._plan(files, place[0], reason, newest=start == 0, oldest=reaches_oldest)
        if task is None or reaches_oldest:
            return task
        return replace(task, cuts=self._cuts(sum(file.file_size for file in files)), shifts=place[1])

    def _plan(
        self,
        files: Sequence[DataFileMeta],
        level: int,
        reason: str,
        *,
        newest: bool = False,
        oldest: bool = True,
        keep: bool = False,
        staying: Sequence[DataFileMeta] = (),
    ) -> CompactionTask | None:
        if not keep and not self._may_fold(files):
            return None
        drop = oldest and not keep and level > 0 and (newest or self._policy.last_arrival_wins)
        return plan_task(
            files,
            level,
            drop_retractions=drop,
            target_bytes=self._policy.file_bytes(self._total),
            reason=reason,
            key_of=self._key_of,
            rewrite_all=keep,
            staying=staying,
            kept=self._policy.kept,
        )

    def _may_fold(self, files: Sequence[DataFileMeta]) -> bool:
        """True if no version of a key is left out where others of it are folded, or that does not matter."""
        if not self._policy.folds_at_once:
            return True
        task_names = {file.file_name for file in files}
        everything = [file for run in self._runs for file in run.files]
        for section in partition_intervals(everything, self._key_of):
            inside = sum(file.file_name in task_names for file in section.files)
            if 1 < inside < len(section.files):
                return False
        return True

    def _cuts(self, size: int) -> tuple[bytes, ...]:
        """The keys at which to cut a run above the oldest one: the ends of that one's files, as far as pieces stay large enough."""
        ends = [file.max_key for file in self._runs[-1].files[:-1]]
        step = max(-(-(len(ends) + 1) // max(size // self._policy.file_cost_bytes, 1)), 1)
        return tuple(ends[step - 1 :: step])

    def _cost(self, files: Sequence[DataFileMeta]) -> int:
        return size_of(files, self._policy.file_cost_bytes)

    def _fits(self, task: CompactionTask) -> bool:
        return self._within(self._cost(task.rewritten))

    def _within(self, cost: int) -> bool:
        return self._budget is None or cost <= self._budget


def _without(files: Sequence[DataFileMeta], chosen: Sequence[DataFileMeta]) -> list[DataFileMeta]:
    names = {file.file_name for file in chosen}
    return [file for file in files if file.file_name not in names]
