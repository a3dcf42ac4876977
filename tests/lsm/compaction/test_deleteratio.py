"""Files full of deleted rows are written again: which, and what becomes of the task."""

from tablestore.format.binaryrow import EMPTY_ROW
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.stats import EMPTY_STATS
from tablestore.lsm.compaction.compactiontask import CompactionTask
from tablestore.lsm.compaction.deleteratio import pick_by_delete_ratio, with_rewrites
from tablestore.lsm.run import Section


def file(name: str, rows: int = 100, size: int = 10, level: int = 0) -> DataFileMeta:
    return DataFileMeta(
        file_name=name,
        file_size=size,
        row_count=rows,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        level=level,
        creation_time_millis=0,
        delete_row_count=0,
        file_source=FileSource.APPEND,
    )


def task(*, upgrades: tuple[DataFileMeta, ...] = (), merged: tuple[DataFileMeta, ...] = ()) -> CompactionTask:
    groups = ((Section((merged,)),),) if merged else ()
    return CompactionTask(output_level=5, drop_retractions=False, upgrades=upgrades, groups=groups, target_bytes=100, reason="test")


def test_files_above_the_share_are_picked_the_most_worn_first_within_the_budget() -> None:
    files = [file("a"), file("b"), file("c"), file("d")]
    deleted = {"a": 21, "b": 20, "c": 90}
    assert [f.file_name for f in pick_by_delete_ratio(files, deleted, share=0.2)] == ["c", "a"]
    assert [f.file_name for f in pick_by_delete_ratio(files, deleted, share=0)] == ["c", "a", "b"]
    assert [f.file_name for f in pick_by_delete_ratio(files, deleted, share=0.2, budget_bytes=15)] == ["c"]
    assert pick_by_delete_ratio(files, deleted, share=0.2, budget_bytes=5) == ()


def test_a_worn_file_is_rewritten_alone_where_it_is() -> None:
    made = with_rewrites(None, [file("a", level=5)], output_level=5, target_bytes=7)
    assert made is not None
    assert [f.file_name for f in made.rewritten] == ["a"]
    assert (made.output_level, made.target_bytes, made.upgrades) == (5, 7, ())
    assert with_rewrites(None, [], output_level=5, target_bytes=7) is None


def test_a_task_that_would_move_a_worn_file_rewrites_it_and_keeps_the_rest() -> None:
    a, b, c = file("a"), file("b"), file("c")
    made = with_rewrites(task(upgrades=(a, b), merged=(c,)), [a, c], output_level=5, target_bytes=7)
    assert made is not None
    assert [f.file_name for f in made.upgrades] == ["b"]
    assert sorted(f.file_name for f in made.rewritten) == ["a", "c"]
    unchanged = task(merged=(a,))
    assert with_rewrites(unchanged, [a], output_level=5, target_bytes=7) is unchanged
