"""Whatever a compaction picks, newer rows stay above older ones, levels stay disjoint, and the work fits what it may cost."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.stats import EMPTY_STATS
from tablestore.lsm.compaction.compactiontask import CompactionPolicy, CompactionTask, size_of
from tablestore.lsm.compaction.keyedcompaction import pick_compaction, pick_full, sorted_runs
from tablestore.lsm.run import levels

KEYS = 200
KB = 1024
MB = 1024 * KB
SMALL = CompactionPolicy(target_file_bytes=64 * KB, file_cost_bytes=KB)
NUMBERS = count()


def key(data: bytes) -> int:
    return int.from_bytes(data, "big")


def file(low: int, high: int, *, level: int = 0, sequence: int = 0, size: int = 10 * KB, **more: object) -> DataFileMeta:
    made = DataFileMeta(
        file_name=f"f{next(NUMBERS)}",
        file_size=size,
        row_count=max(size // 10, 1),
        min_key=low.to_bytes(4, "big"),
        max_key=high.to_bytes(4, "big"),
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=sequence,
        max_sequence_number=sequence,
        schema_id=0,
        level=level,
        creation_time_millis=0,
        delete_row_count=0,
        file_source=0,
        footer_digest=b"x",
    )
    return replace(made, **more)  # type: ignore[arg-type]


class Bucket:
    """A bucket whose files hold versions of keys as plain dicts, and whose tasks are done on these."""

    def __init__(self, policy: CompactionPolicy) -> None:
        self.policy, self.rows, self.model = policy, dict[str, dict[int, int]](), dict[int, int]()
        self.files: list[DataFileMeta] = []
        self.sequence = 0

    def write(self, keys: list[int], *, row_bytes: int = 50) -> int:
        self.sequence += 1
        made = file(min(keys), max(keys), sequence=self.sequence, size=len(keys) * row_bytes)
        self.rows[made.file_name] = dict.fromkeys(keys, self.sequence)
        self.model.update(self.rows[made.file_name])
        self.files.append(made)
        return made.file_size

    def pick(self, budget: int | None = None) -> CompactionTask | None:
        return pick_compaction(levels(self.files, key), self.policy, key_of=key, budget_bytes=budget)

    def do(self, task: CompactionTask) -> None:
        shifts = {f.file_name: level for f, level in task.shifts}
        assert not shifts.keys() & {f.file_name for f in task.files}
        self.files = [replace(f, level=shifts.get(f.file_name, f.level)) for f in self.files]
        names = [f.file_name for f in task.files]
        assert len(names) == len(set(names)) and {f.file_name for f in self.files} >= set(names)
        self.files = [f for f in self.files if f.file_name not in names]
        self.files += [replace(f, level=task.output_level) for f in task.upgrades]
        for group in task.groups:
            self._write_merged([f for section in group for f in section.files], task)
        self.check()

    def _write_merged(self, inputs: list[DataFileMeta], task: CompactionTask) -> None:
        merged: dict[int, int] = {}
        for one in inputs:
            for k, version in self.rows[one.file_name].items():
                merged[k] = max(version, merged.get(k, 0))
        bounds = [key(cut) for cut in task.cuts]
        pieces: dict[int, list[int]] = {}
        for k in sorted(merged):
            pieces.setdefault(sum(k > bound for bound in bounds), []).append(k)
        for keys in pieces.values():
            low, high = min(merged[k] for k in keys), max(merged[k] for k in keys)
            made = file(keys[0], keys[-1], level=task.output_level, size=len(keys) * 50, sequence=low)
            made = replace(made, max_sequence_number=high)
            self.rows[made.file_name] = {k: merged[k] for k in keys}
            self.files.append(made)

    @property
    def run_count(self) -> int:
        return len(sorted_runs(levels(self.files, key), key))

    def check(self) -> None:
        """Levels are disjoint, newer versions are never above older ones, the newest of each key is the model's."""
        found = levels(self.files, key)
        for run in found.upper:
            assert all(key(a.max_key) < key(b.min_key) for a, b in pairwise(run)), "a level overlaps"
        newest: dict[int, int] = {}
        for run in (*((f,) for f in found.level_zero), *found.upper):
            for one in run:
                for k, version in self.rows[one.file_name].items():
                    assert newest.setdefault(k, version) >= version, f"an older version of {k} lies above a newer one"
        assert newest == self.model


batches = st.lists(
    st.one_of(
        st.lists(st.integers(0, KEYS), min_size=1, max_size=12),
        st.tuples(st.integers(0, KEYS), st.integers(1, 80)).map(lambda p: list(range(p[0], p[0] + p[1]))),
    ),
    min_size=1,
    max_size=30,
)


@given(batches, st.one_of(st.none(), st.integers(1, 30)), st.booleans(), st.integers(2, 6))
def test_invariants_hold_after_every_task_and_runs_stay_bounded(writes, budget_kb, takes_level_zero, trigger) -> None:
    policy = replace(
        SMALL,
        takes_level_zero=takes_level_zero,
        trigger=trigger,
        top_level=trigger,
        stop_trigger=trigger + 3,
        target_file_bytes=4 * KB,
    )
    bucket = Bucket(policy)
    for keys in writes:
        bucket.write(keys)
        for _ in range(100):
            task = bucket.pick(None if budget_kb is None else budget_kb * KB)
            if task is None:
                break
            bucket.do(task)
            if budget_kb is not None and bucket.run_count <= policy.stop_trigger:
                break
        else:
            pytest.fail("the picker never comes to an end")
        assert bucket.run_count <= policy.stop_trigger
        if takes_level_zero:
            assert not any(f.level == 0 for f in bucket.files)
    if (task := pick_full(levels(bucket.files, key), policy, key_of=key)) is not None:
        bucket.do(task)
    assert pick_full(levels(bucket.files, key), policy, key_of=key) is None
    assert bucket.run_count == 1 and all(f.level == policy.top_level for f in bucket.files)


def _steady(commits: int, base_files: int) -> Iterator[tuple[int, Bucket, CompactionTask | None]]:
    """Small random upserts into a large bucket; what each is followed by."""
    bucket = Bucket(CompactionPolicy(target_file_bytes=100 * KB, file_cost_bytes=KB // 4))
    per_file = 2_000
    for part in range(base_files):
        bucket.write(list(range(part * per_file, (part + 1) * per_file)))
        bucket.files[-1] = replace(bucket.files[-1], level=5)
    keys, state = base_files * per_file, 1
    for number in range(commits):
        chosen = []
        for _ in range(400):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            chosen.append((state >> 33) % keys)
        written = bucket.write(sorted(set(chosen)))
        budget = 8 * written
        task = bucket.pick(budget)
        if task is not None:
            cost = size_of(task.rewritten, bucket.policy.file_cost_bytes)
            assert cost <= budget, f"commit {number} pays {cost} for {task.reason}, its budget is {budget}"
            bucket.do(task)
        yield number, bucket, task


def test_a_steady_writer_pays_a_bounded_share_and_leaves_few_runs() -> None:
    reasons = set()
    for number, bucket, task in _steady(80, 10):
        assert bucket.run_count <= 8, f"{bucket.run_count} runs after commit {number}"
        reasons.add(task.reason if task else None)
        newer = sum(f.file_size for f in bucket.files if f.level < 5)
        oldest = sum(f.file_size for f in bucket.files if f.level == 5)
        assert newer < 0.75 * oldest, f"the debt grows: {newer} above {oldest} after commit {number}"
    assert "drain" in reasons and "size-ratio" in reasons
    assert not reasons & {"full", "back-pressure"}


@pytest.mark.deep
def test_a_backlog_of_level_zero_is_worked_off_in_bounded_steps() -> None:
    bucket = Bucket(replace(SMALL, target_file_bytes=MB))
    for number in range(100):
        bucket.write(list(range(number % 7, 400, 7)))
    budget = 20 * KB
    seen = [bucket.run_count]
    while bucket.run_count > bucket.policy.stop_trigger:
        task = bucket.pick(budget)
        assert task is not None
        assert size_of(task.rewritten, bucket.policy.file_cost_bytes) <= budget or len(task.rewritten) == 2
        bucket.do(task)
        seen.append(bucket.run_count)
    assert all(later < earlier for earlier, later in pairwise(seen))


def _pick(files: list[DataFileMeta], policy: CompactionPolicy = SMALL, budget: int | None = None) -> CompactionTask | None:
    return pick_compaction(levels(files, key), policy, key_of=key, budget_bytes=budget)


def test_nothing_is_picked_below_the_trigger() -> None:
    assert _pick([file(0, 9, sequence=n) for n in range(4)]) is None
    assert _pick([]) is None


def test_newer_runs_too_large_for_the_oldest_are_all_compacted_to_the_top() -> None:
    task = _pick([file(0, 9, level=5), *(file(0, 9, sequence=n) for n in range(1, 5))])
    assert task is not None and (task.reason, task.output_level, len(task.files)) == ("amplification", 5, 5)
    assert task.drop_retractions


def test_runs_of_similar_size_join_and_stop_above_a_larger_one() -> None:
    large = [file(0, 9, level=5, size=5 * MB), file(0, 9, level=4, size=MB)]
    task = _pick([*large, *(file(0, 9, sequence=n) for n in range(1, 5))])
    assert task is not None and (task.reason, task.output_level, len(task.files)) == ("size-ratio", 3, 4)
    assert not task.drop_retractions, "older versions lie below"


def test_more_runs_than_the_trigger_are_reduced_whatever_their_sizes() -> None:
    policy = replace(SMALL, trigger=2, top_level=5)
    files = [file(0, 9, level=5, size=5 * MB), file(0, 9, level=4, size=MB), file(0, 9, sequence=9, size=KB)]
    task = _pick(files, policy)
    assert task is not None and (task.reason, len(task.files), task.output_level) == ("run-count", 2, 4)


def test_a_run_of_level_one_moves_down_to_make_room_above_it() -> None:
    files = [file(0, 9, level=5, size=50 * MB), file(0, 9, level=1, size=MB), *(file(0, 9, sequence=n) for n in range(1, 5))]
    task = _pick(files)
    assert task is not None and task.output_level == 3 and {f.level for f in task.files} == {0}
    assert task.shifts == ((files[1], 4),)


def test_a_run_of_level_one_joins_where_no_level_below_it_is_free() -> None:
    files = [file(0, 9, level=level, size=4**level * MB) for level in range(1, 6)]
    task = _pick([*files, *(file(0, 9, sequence=n) for n in range(1, 5))])
    assert task is not None and task.output_level == 1 and {f.level for f in task.files} == {0, 1} and not task.shifts


def test_a_large_file_that_meets_no_other_is_moved_and_not_rewritten() -> None:
    files = [file(0, 9, level=5, size=60 * KB), *(file(10 * n, 10 * n + 9, sequence=n, size=60 * KB) for n in range(1, 5))]
    task = _pick(files)
    assert task is not None and not task.groups and len(task.upgrades) == 4 and task.output_level == 5


def test_a_moved_file_with_retractions_is_rewritten_where_they_can_be_dropped() -> None:
    files = [file(0, 9, level=5, size=60 * KB), *(file(10 * n, 10 * n + 9, sequence=n, size=60 * KB) for n in range(1, 5))]
    files[2] = replace(files[2], delete_row_count=3)
    task = _pick(files)
    assert task is not None and [f.file_name for f in task.rewritten] == [files[2].file_name] and len(task.upgrades) == 3


def test_the_count_of_retractions_is_not_believed_of_files_of_others() -> None:
    files = [file(0, 9, level=5, size=60 * KB), *(file(10 * n, 10 * n + 9, sequence=n, size=60 * KB) for n in range(1, 5))]
    files[2] = replace(files[2], footer_digest=None)
    task = _pick([*files, file(files[2].min_key[-1], files[2].min_key[-1], sequence=9, size=KB)])
    assert task is not None and files[2].file_name in {f.file_name for f in task.rewritten}


def test_retractions_stay_while_newer_rows_that_count_otherwise_are_not_in_the_task() -> None:
    files = [file(0, 9, level=5, size=10 * KB), file(0, 9, level=4, size=10 * KB, sequence=1), file(0, 9, sequence=2, size=KB)]
    by_arrival, by_field = _pick(files), _pick(files, replace(SMALL, last_arrival_wins=False))
    assert by_arrival is not None and by_arrival.reason == "drain" and by_arrival.drop_retractions
    assert by_field is not None and by_field.reason == "drain" and not by_field.drop_retractions


def test_retractions_that_need_everything_older_are_merged_with_all_runs_or_not_at_all() -> None:
    policy = replace(SMALL, retractions_apart=True)
    files = [file(0, 9, level=5, size=5 * MB), file(0, 9, level=4, size=MB, sequence=1)]
    files += [file(0, 9, sequence=n, delete_row_count=1) for n in range(2, 6)]
    task = _pick(files, policy)
    assert task is not None and len(task.files) == len(files)
    assert _pick(files, policy, budget=500 * KB) is None


def test_a_bucket_below_the_total_size_is_compacted_at_once() -> None:
    policy = replace(SMALL, total_size_threshold=100 * KB)
    task = _pick([file(0, 9, level=5), file(0, 9, sequence=1)], policy)
    assert task is not None and (task.reason, task.output_level) == ("threshold", 5)
    assert _pick([file(0, 9, level=5, size=MB), file(0, 9, sequence=1)], policy) is None


def test_enough_bytes_below_the_top_are_compacted_at_once() -> None:
    policy = replace(SMALL, incremental_size_threshold=20 * KB)
    assert _pick([file(0, 9, level=5, size=MB), file(0, 9, sequence=1)], policy) is None
    task = _pick([file(0, 9, level=5, size=MB), file(0, 9, sequence=1), file(0, 9, sequence=2)], policy)
    assert task is not None and (task.reason, len(task.files)) == ("threshold", 3)


def test_two_key_ranges_of_a_drain_never_reach_over_what_stays_between_them() -> None:
    oldest = [file(10 * n, 10 * n + 9, level=5, size=60 * KB, sequence=n) for n in range(3)]
    upper = [file(10 * n, 10 * n + 9, level=4, size=s * KB, sequence=9) for n, s in ((0, 30), (1, 5), (2, 30))]
    task = _pick([*oldest, *upper], replace(SMALL, file_cost_bytes=0), budget=180 * KB)
    assert task is not None and task.reason == "drain"
    assert [[key(f.min_key) for s in group for f in s.files] for group in task.groups] == [[0, 0], [20, 20]]


def test_runs_that_straddle_the_files_below_are_cut_before_they_are_merged() -> None:
    oldest = [file(10 * n, 10 * n + 9, level=5, size=60 * KB, sequence=n) for n in range(4)]
    upper = file(0, 39, level=4, size=60 * KB, sequence=9)
    task = _pick([*oldest, upper], replace(SMALL, file_cost_bytes=0), budget=100 * KB)
    assert task is not None and task.reason == "recut" and task.output_level == 4 and not task.drop_retractions
    assert [f.file_name for f in task.rewritten] == [upper.file_name]
    assert [key(cut) for cut in task.cuts] == [9, 19, 29]


def test_a_large_old_run_leaves_level_zero_as_it_is_so_that_small_ones_are_merged_without_it() -> None:
    files = [file(0, 900, size=9 * MB, sequence=1), file(0, 900, size=8 * MB, sequence=2)]
    files += [file(0, 900, sequence=n) for n in range(3, 7)]
    policy = CompactionPolicy()
    first = _pick(files, policy, budget=3 * MB)
    assert first is not None and (first.reason, first.output_level) == ("settle", 5) and not first.groups
    moved = [replace(files[0], level=5), *files[1:]]
    second = _pick(moved, policy, budget=3 * MB)
    assert second is not None and (second.reason, second.output_level) == ("settle", 4)
    third = _pick([replace(files[0], level=5), replace(files[1], level=4), *files[2:]], policy, budget=3 * MB)
    assert third is not None and len(third.rewritten) == 4 and third.output_level == 3


def test_pieces_of_one_large_flush_are_one_run_and_small_ordered_files_are_not() -> None:
    pieces = [file(100 * n, 100 * n + 99, sequence=n, size=5 * MB) for n in range(4)]
    assert len(sorted_runs(levels(pieces, key), key)) == 1
    small = [file(100 * n, 100 * n + 99, sequence=n, size=KB) for n in range(4)]
    assert len(sorted_runs(levels(small, key), key)) == 4
    assert len(sorted_runs(levels([*pieces, file(0, 500, sequence=9)], key), key)) == 2
