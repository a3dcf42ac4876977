"""Keyed tables with bucket = -1: every key in one bucket, whoever writes at once."""

import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import StorageError, UnsupportedError
from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.store.settings import check_writable, table_settings
from tablestore.table.write.committing import Effect, Origin, commit_message
from tablestore.table.write.writer import TASK_STRIDE, TableWriter
from tablestore.testing.auditor import Auditor
from tablestore.testing.lab import Lab, is_snapshot
from tests.support.commitrules.scenes import once

NAMES = count()


def dynamic_lab(target: int = 3, **options: Any) -> Lab:
    more = options.pop("more", {})
    base = {"bucket": "-1", "dynamic-bucket.target-row-num": str(target), "write-only": "true"}
    return Lab(MemoryFileStore(f"dynamic-{next(NAMES)}"), options={**base, **more}, **options)


def check(lab: Lab, expected: list[tuple[Any, ...]]) -> None:
    lab.check(expected)
    lab.auditor.check_dynamic_buckets(lab.primary_key)


def buckets(lab: Lab) -> set[int]:
    return {file.bucket[1] for file in lab.auditor.live_files()}


def test_buckets_are_made_as_keys_arrive_and_known_keys_stay_where_they_are() -> None:
    lab = dynamic_lab()
    lab.write_new(*((i, "a") for i in range(7)))
    assert buckets(lab) == {0, 1, 2}
    before = [entry["_FILE_NAME"] for entry in lab.auditor.index_entries()]
    lab.write_new(*((i, "b") for i in range(4)))
    assert [entry["_FILE_NAME"] for entry in lab.auditor.index_entries()] == before
    lab.write_new((2, "c"), (9, "c"))
    check(lab, [(0, "b"), (1, "b"), (2, "c"), (3, "b"), (4, "a"), (5, "a"), (6, "a"), (9, "c")])
    assert all(file.record["_ROW_COUNT"] for file in lab.auditor.live_files())
    assert lab.read(filter="id = 9") == [(9, "c")]
    assert lab.auditor.orphans() == set()


def test_deletes_and_changes_find_their_keys() -> None:
    lab = dynamic_lab()
    lab.write_new(*((i, "a") for i in range(8)))
    lab.open().delete("id < 3")
    lab.open().delete(lab.rows((5, None), (77, None)).select(["id"]))
    lab.write_new((1, "again"))
    check(lab, [(1, "again"), (3, "a"), (4, "a"), (6, "a"), (7, "a")])


def test_partitions_have_buckets_of_their_own() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string(), nullable=False)])
    lab = dynamic_lab(schema=schema, primary_key=("id", "day"), partition_by=("day",))
    rows = [(i, day) for i in range(5) for day in ("x", "y", "z")]
    lab.write_new(*rows)
    lab.write_new(*rows[::2])
    check(lab, rows)
    assert buckets(lab) == {0, 1}
    lab.open().overwrite(lab.rows((100, "y")), {"day": "y"})
    expected = [row for row in rows if row[1] != "y"] + [(100, "y")]
    check(lab, expected)
    assert sorted(entry["_ROW_COUNT"] for entry in lab.auditor.index_entries()) == [1, 2, 2, 3, 3]
    lab.open().overwrite(lab.rows((7, "x")), {})
    check(lab, [(7, "x")])
    assert [entry["_ROW_COUNT"] for entry in lab.auditor.index_entries()] == [1]


def test_initial_and_most_buckets() -> None:
    lab = dynamic_lab(100, more={"dynamic-bucket.initial-buckets": "4"})
    lab.write_new(*((i, "a") for i in range(40)))
    assert buckets(lab) == {0, 1, 2, 3}
    lab = dynamic_lab(2, more={"dynamic-bucket.max-buckets": "3"})
    lab.write_new(*((i, "a") for i in range(40)))
    lab.write_new(*((i, "b") for i in range(60)))
    assert buckets(lab) == {0, 1, 2}
    check(lab, [(i, "b") for i in range(60)])


@pytest.mark.parametrize("other", [range(4, 12), range(100, 104), range(12)])
@pytest.mark.parametrize("seeded", [False, True])
def test_two_writers_at_once_put_no_key_into_two_buckets(seeded: bool, other: range) -> None:
    """The second writer fills the buckets differently, so that the slow one's keys have other buckets when it lands."""
    lab = dynamic_lab()
    if seeded:
        lab.write_new((0, "s"), (50, "s"))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.write_new(*((i, "fast") for i in other)))
    lab.write(slow, *((i, "slow") for i in range(8)))
    expected = {**dict.fromkeys((0, 50) if seeded else (), "s"), **dict.fromkeys(other, "fast"), **dict.fromkeys(range(8), "slow")}
    check(lab, list(expected.items()))
    assert lab.auditor.orphans() == set()


def test_a_writer_of_several_flushes_keeps_the_order_of_its_rows_when_it_writes_them_again() -> None:
    lab = dynamic_lab(more={"write-buffer-size": "64 b"})
    table, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.write_new(*((i, "fast") for i in (7, 3, 1, 9, 0))))
    with table.new_writer() as writer:
        for round_ in ("a", "b", "c"):
            writer.write(lab.rows(*((i, round_) for i in range(8))))
        writer.delete(lab.rows((2, None)).select(["id"]))
        writer.commit()
    check(lab, [(9, "fast"), *((i, "c") for i in range(8) if i != 2)])
    assert lab.auditor.orphans() == set()


def test_an_overwrite_between_assignment_and_commit_is_noticed() -> None:
    lab = dynamic_lab()
    lab.write_new(*((i, "a") for i in range(9)))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().overwrite(lab.rows((8, "o"), (7, "o")), {}))
    lab.write(slow, (8, "slow"), (1, "slow"))
    check(lab, [(1, "slow"), (7, "o"), (8, "slow")])


def test_tasks_of_one_write_that_chose_different_buckets_are_put_right() -> None:
    lab = dynamic_lab()
    table = lab.open()
    messages: list[CommitMessage] = []
    for task, keys in enumerate([range(8), range(7, -1, -1), (7, 100, 0)]):
        with TableWriter(table.context, table.change_log, start=(None, task * TASK_STRIDE)) as writer:
            # Small batches: each task sees the keys in another order.
            for key in keys:
                writer.write(lab.rows((key, f"task {task}")))
                writer.flush()
            messages.append(writer.prepare())
    message = merge_messages(messages)
    assert message is not None
    assert commit_message(table.context, table.change_log, message, Effect(), Origin(user="tasks")) is not None
    expected = {**dict.fromkeys(range(8), "task 1"), **dict.fromkeys((7, 100, 0), "task 2")}
    check(lab, list(expected.items()))
    assert lab.auditor.orphans() == set()


@pytest.mark.deep
def test_every_failing_call_is_success_or_an_error_that_lost_nothing() -> None:
    failed = 0
    for n in range(1, 200):
        lab = dynamic_lab(6)
        lab.write_new(*((i, "a") for i in range(4)))
        table, faults = lab.faulty()
        faults.fail_nth(n)
        try:
            lab.write(table, *((i, "b") for i in range(3, 9)))
        except StorageError:
            failed += 1
        if not faults.injected_total:
            break
        before = [(i, "a") for i in range(4)]
        after = [*before[:3], *((i, "b") for i in range(3, 9))]
        check(lab, after if len(lab.open().snapshots()) == 2 else before)
        lab.write_new(*((i, "b") for i in range(3, 9)))
        check(lab, after)
    else:
        raise AssertionError("the write has more calls than this test fails")
    assert failed > 5


def test_an_upsert_that_would_have_to_move_rows_between_partitions_is_refused_by_name() -> None:
    """tablestore does not create such a table; others do."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string())])
    made = dynamic_lab(schema=schema).open().context.schema
    theirs = replace(made, partition_keys=("day",))
    with pytest.raises(UnsupportedError, match=r"day are not in its primary key") as caught:
        check_writable(theirs, table_settings(theirs), "t")
    assert caught.value.kind == "cross-partition"
    check_writable(made, table_settings(made), "t")


def test_a_golden_table_is_written_on_with_the_hash_index_that_is_there(tmp_path: Path, project: Path) -> None:
    shutil.copytree(project / "tests" / "golden" / "paimon" / "py_pk_dynamic", tmp_path / "t")
    table = ts.open_table(str(tmp_path / "t"))
    before = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    rows = [{"id": 2, "a": 0, "b": "ours", "seq": 0}, {"id": 77, "a": 1, "b": "new", "seq": 1}]
    table.upsert(pa.Table.from_pylist(rows, schema=table.schema))
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert found == {**before, **{row["id"]: row for row in rows}}
    auditor = Auditor(LocalFileStore(str(tmp_path / "t")))
    auditor.check_dynamic_buckets(("id",))
    assert [entry["_ROW_COUNT"] for entry in auditor.index_entries()] == [7]


def test_rows_that_moved_to_other_buckets_with_the_commit_are_seen_after_it() -> None:
    lab = dynamic_lab(2, more={"deletion-vectors.enabled": "true", "write-only": "false"})
    lab.write_new((1, "a"), (2, "a"))
    table, faults = lab.faulty()
    others = [[(number, "theirs") for number in (10, 11, 12, 13)]]
    faults.before(lambda call: lab.write_new(*others.pop()) if is_snapshot(call) and others else None, op="publish_if_absent")
    table.upsert(lab.rows((12, "mine"), (13, "mine")))
    assert lab.read() == [(1, "a"), (10, "theirs"), (11, "theirs"), (12, "mine"), (13, "mine"), (2, "a")]
    assert all(level > 0 for level in lab.open().files()["level"].to_pylist())
