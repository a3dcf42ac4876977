"""New files are ordered with runs of their size; every row a logarithmic number of times."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.stats import EMPTY_STATS
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.lsm.compaction.clusteringcompaction import pick_clustering
from tablestore.lsm.compaction.compactiontask import CompactionPolicy, CompactionTask

ORDER = ClusterOrder(("a",), "order")
POLICY = CompactionPolicy(target_file_bytes=1000, file_cost_bytes=0)


def _file(number: int, size: int, level: int = 0) -> DataFileMeta:
    return DataFileMeta(
        file_name=f"f{number}",
        file_size=size,
        row_count=10,
        min_key=b"",
        max_key=b"",
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=10 * number,
        max_sequence_number=10 * number + 9,
        schema_id=0,
        level=level,
        creation_time_millis=0,
        delete_row_count=0,
        file_source=0,
    )


def _pick(files: list[DataFileMeta], **choices: object) -> CompactionTask | None:
    return pick_clustering(files, POLICY, ORDER, min_files=5, **choices)  # type: ignore[arg-type]


def _names(task: CompactionTask | None) -> list[str]:
    assert task is not None
    return [file.file_name for file in task.files]


def test_few_small_new_files_wait_unless_all_is_asked_for() -> None:
    files = [_file(number, 10) for number in range(4)]
    assert _pick(files) is None
    task = _pick(files, full=True)
    assert task is not None and (task.output_level, task.cluster_by) == (5, ORDER)
    assert _names(task) == ["f0", "f1", "f2", "f3"]


def test_new_files_go_above_a_run_that_is_much_larger_and_into_one_that_is_not() -> None:
    fresh = [_file(number, 100) for number in range(5)]
    above = _pick([*fresh, _file(9, 10_000, level=5)])
    assert above is not None and above.output_level == 4 and "f9" not in _names(above)
    into = _pick([*fresh, _file(8, 400, level=4), _file(9, 10_000, level=5)])
    assert into is not None and into.output_level == 4 and "f8" in _names(into) and "f9" not in _names(into)
    whole = _pick([*fresh, _file(9, 400, level=5)])
    assert whole is not None and whole.output_level == 5 and "f9" in _names(whole)


def test_where_level_1_is_in_the_way_it_is_taken_too() -> None:
    task = _pick([*(_file(number, 10) for number in range(5)), _file(8, 9_000, level=1), _file(9, 90_000, level=2)])
    assert task is not None and task.output_level == 1 and "f8" in _names(task)


def test_everything_becomes_one_run_once_the_runs_above_the_last_outweigh_it() -> None:
    task = _pick([*(_file(number, 100) for number in range(5)), _file(8, 30_000, level=4), _file(9, 10_000, level=5)])
    assert task is not None and task.output_level == 5 and len(task.files) == 7


def test_beyond_the_budget_small_new_files_become_fewer_and_wait() -> None:
    files = [*(_file(number, 100) for number in range(6)), _file(9, 600, level=5)]
    task = _pick(files, budget_bytes=700)
    assert task is not None and task.cluster_by is None and task.output_level == 0
    assert _names(task) == [f"f{number}" for number in range(6)]


def test_one_run_is_ordered_again_only_if_the_order_is_new() -> None:
    files = [_file(1, 100, level=5), _file(2, 100, level=5)]
    assert _pick(files) is None
    assert _pick(files, full=True) is None
    assert _names(_pick(files, anew=True)) == ["f1", "f2"]
    assert _pick([], anew=True) is None


@given(st.lists(st.integers(1, 2_000), min_size=1, max_size=120))
def test_rows_are_written_a_logarithmic_number_of_times(sizes: list[int]) -> None:
    files: list[DataFileMeta] = []
    written = number = 0
    for size in sizes:
        number += 1
        files.append(_file(number, size))
        while (task := _pick(files)) is not None:
            number += 1
            taken = set(_names(task))
            merged = replace(_file(number, task.size_bytes, level=task.output_level), file_name=f"m{number}")
            files = [*(file for file in files if file.file_name not in taken), merged]
            written += task.size_bytes
            assert all(file.level != task.output_level for file in files if file is not merged)
        assert len([file for file in files if file.level == 0]) < 5
    assert written <= 12 * sum(sizes)
