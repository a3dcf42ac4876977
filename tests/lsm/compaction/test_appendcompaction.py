"""Small neighbours become one file, in the order of their rows; large ones are left alone."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.stats import EMPTY_STATS
from tablestore.lsm.compaction.appendcompaction import append_order, pick_append

TARGET = 1000


def _file(number: int, size: int) -> DataFileMeta:
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
        level=0,
        creation_time_millis=0,
        delete_row_count=0,
        file_source=0,
    )


def _files(*sizes: int) -> list[DataFileMeta]:
    return [_file(number, size) for number, size in enumerate(sizes)]


def _pick(files: list[DataFileMeta], **given: object) -> list[list[str]]:
    task = pick_append(files, **{"min_files": 3, "target_bytes": TARGET, **given})  # type: ignore[arg-type]
    return [[f.file_name for section in group for f in section.files] for group in task.groups] if task else []


def test_enough_small_neighbours_become_one() -> None:
    assert _pick(_files(10, 10)) == []
    assert _pick(_files(10, 10, 10)) == [["f0", "f1", "f2"]]
    assert _pick(_files(10, 10, 900, 10, 10)) == [], "a large file lies between them"
    assert _pick(_files(10, 10, 10, 900, 10, 10, 10)) == [["f0", "f1", "f2"], ["f4", "f5", "f6"]]


def test_a_file_that_outweighs_the_newer_ones_is_not_written_again_with_them() -> None:
    assert _pick(_files(500, 10, 10, 10)) == [["f1", "f2", "f3"]]
    assert _pick(_files(50, 10, 10, 10)) == [["f0", "f1", "f2", "f3"]]


def test_a_full_compaction_takes_any_neighbours_that_make_fewer_files_and_then_none() -> None:
    assert _pick(_files(500, 10, 10, 900), full=True) == [["f0", "f1", "f2"]]
    assert _pick(_files(900, 650), full=True) == []


def test_what_the_budget_does_not_pay_for_waits() -> None:
    files = _files(10, 10, 10, 900, 200, 200, 200)
    assert _pick(files, budget_bytes=100) == [["f0", "f1", "f2"]]
    assert _pick(files, budget_bytes=20) == []


@given(st.lists(st.integers(1, 1200), max_size=40), st.booleans())
def test_groups_are_neighbours_in_the_order_of_their_rows_and_it_comes_to_an_end(sizes: list[int], full: bool) -> None:
    files = _files(*sizes)
    for _ in range(60):
        task = pick_append(files[::-1], min_files=3, target_bytes=TARGET, full=full)
        if task is None:
            return
        order = [f.file_name for f in append_order(files)]
        for group in task.groups:
            names = [f.file_name for section in group for f in section.files]
            start = order.index(names[0])
            assert order[start : start + len(names)] == names
            merged = [f for f in files if f.file_name in names]
            whole = replace(
                merged[0], file_size=sum(f.file_size for f in merged), max_sequence_number=merged[-1].max_sequence_number
            )
            files = sorted([f for f in files if f.file_name not in names] + [whole], key=lambda f: f.min_sequence_number)
    raise AssertionError("the picker never comes to an end")
