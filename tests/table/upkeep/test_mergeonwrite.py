"""Keyed tables whose files above level 0 are read as they are: deletion vectors and first-row."""

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import StorageError
from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tablestore.table.inspect.bucketpicture import describe_buckets
from tablestore.table.table import Table
from tablestore.table.upkeep import compaction as compact
from tablestore.testing.files import FileCall
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once

NAMES = count()
VECTORS = {"deletion-vectors.enabled": "true"}
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int64()), ("g", pa.int64())])
Row = tuple[Any, ...]


def lab_with(options: Mapping[str, str], **more: Any) -> Lab:
    return Lab(MemoryFileStore(f"upper-{next(NAMES)}"), options={"bucket": "1", "write-only": "false", **options}, **more)


def merged(engine: str, options: Mapping[str, str], old: Row | None, new: Row) -> Row:
    """What two rows of one key are together."""
    if old is None:
        return new
    if engine == "first-row":
        return old
    if engine == "partial-update":
        return tuple(b if b is not None else a for a, b in zip(old, new, strict=True))
    if engine == "aggregation":
        known = [value for value in (old[2], new[2]) if value is not None]
        greatest = [value for value in (old[3], new[3]) if value is not None]
        return (old[0], new[1] if new[1] is not None else old[1], sum(known) if known else None, max(greatest, default=None))
    if "sequence.field" in options and old[3] is not None and (new[3] is None or new[3] < old[3]):
        return old
    return new


ENGINES: list[tuple[str, dict[str, str]]] = [
    ("deduplicate", VECTORS),
    ("deduplicate", {**VECTORS, "sequence.field": "g"}),
    ("deduplicate", {**VECTORS, "ignore-delete": "true"}),
    ("deduplicate", {**VECTORS, "bucket": "-1", "dynamic-bucket.target-row-num": "20"}),
    ("deduplicate", {**VECTORS, "target-file-size": "1 b", "bucket": "2"}),
    ("partial-update", VECTORS),
    ("aggregation", {**VECTORS, "fields.n.aggregate-function": "sum", "fields.g.aggregate-function": "max"}),
    ("first-row", {}),
    ("first-row", VECTORS),
]


@pytest.mark.deep
@pytest.mark.parametrize(("engine", "options"), ENGINES)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_what_was_written_is_read_at_once_as_a_plain_dict_says(engine: str, options: dict[str, str], seed: int) -> None:
    rng = random.Random(f"{engine} {sorted(options)} {seed}")
    lab = lab_with({"merge-engine": engine, **options}, schema=SCHEMA, primary_key=("k",))
    table = lab.open()
    model: dict[int, Row] = {}
    deletes = engine == "deduplicate" and "sequence.field" not in options
    marked = 0
    for step in range(14):
        rows = [
            (rng.randrange(60), rng.choice([None, f"s{step}"]), rng.choice([None, rng.randrange(100)]), rng.choice([None, 1, 2, 3]))
            for _ in range(rng.choice([2, 20, 50]))
        ]
        kinds = [rng.choice(["+I", "-D"]) if deletes and step % 3 == 2 else "+I" for _ in rows]
        table.write_changes(lab.rows(*rows).append_column("_row_kind", pa.array(kinds)))
        for row, kind in zip(rows, kinds, strict=True):
            if kind == "+I":
                model[row[0]] = merged(engine, options, model.get(row[0]), row)
            elif options.get("ignore-delete") != "true":
                model.pop(row[0], None)
        if step % 8 == 7:
            table.compact(full=True)
        assert lab.read() == sorted(model.values(), key=repr), f"after step {step}"
        marked = max(marked, sum(len(entry["_DELETIONS_VECTORS_RANGES"] or ()) for entry in lab.auditor.index_entries()))
        lab.auditor.deleted_positions()
    key = rng.choice(list(model))
    assert lab.read(filter=f"k = {key}") == [model[key]]
    assert lab.open().scan().count() == len(model)
    assert engine == "first-row" or marked, "no row was ever marked, so this showed nothing"
    lab.auditor.check_metadata()
    assert lab.auditor.orphans() == set()


def test_level_zero_is_not_read_before_a_compaction_has_settled_it() -> None:
    lab = lab_with({**VECTORS, "write-only": "true"})
    lab.write_new((1, "a"), (2, "b"))
    lab.write_new((2, "c"), (3, "d"))
    assert lab.read() == []
    compactor = lab.open()
    compactor.compact()
    assert lab.read() == [(1, "a"), (2, "c"), (3, "d")]
    lab.open().delete(lab.rows((1, None)).select(["id"]))
    assert len(lab.read()) == 3
    compactor.compact()
    assert lab.read() == [(2, "c"), (3, "d")]


def test_a_compaction_marks_old_rows_and_leaves_their_large_file_alone() -> None:
    lab = lab_with(VECTORS)
    lab.write_new(*((i, "x" * 100 + str(i)) for i in range(5000)))
    (large,) = (file.path for file in lab.auditor.live_files())
    lab.write_new((7, "new"), (4999, "new"))
    lab.open().delete(lab.rows((8, None)).select(["id"]))
    assert large in {file.path for file in lab.auditor.live_files()}
    assert list(lab.auditor.deleted_positions().values()) == [{7, 8, 4999}]
    assert len(lab.read()) == 4999
    assert lab.read(filter="id IN (7, 8, 9)") == [(7, "new"), (9, "x" * 100 + "9")]
    snapshot = lab.open().snapshots()[-1]
    assert snapshot.commit_kind is CommitKind.COMPACT
    lab.open().compact(full=True)
    assert lab.auditor.deleted_positions() == {}
    assert len(lab.read()) == 4999


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("options", [VECTORS, {"merge-engine": "first-row"}, {**VECTORS, "merge-engine": "first-row"}])
@pytest.mark.parametrize("place", ["before", "after"])
def test_two_writers_and_their_compactions_lose_and_double_nothing(options: dict[str, str], place: Any) -> None:
    lab = lab_with(options)
    lab.write_new(*((i, "x" * 50 + str(i)) for i in range(300)))
    slow, faults = lab.faulty()
    commits = 0

    def compaction(call: FileCall) -> bool:
        # The second publish of a write is that of the compaction that follows it.
        nonlocal commits
        commits += "snapshot/snapshot-" in call.path
        return commits == 2

    once(faults, place, "publish_if_absent", lambda: lab.write_new((5, "fast"), (400, "fast")), match=compaction)
    lab.write(slow, (5, "slow"), (6, "slow"), (401, "slow"))
    assert commits >= 2
    first = "merge-engine" in options
    expected = {i: "x" * 50 + str(i) for i in range(300)} | {400: "fast", 401: "slow"}
    if not first:
        expected |= {5: "fast", 6: "slow"}
    assert lab.read() == sorted(expected.items(), key=repr)
    lab.auditor.deleted_positions()
    lab.auditor.check_metadata()
    lab.open().compact(full=True)
    assert lab.read() == sorted(expected.items(), key=repr)
    assert lab.auditor.orphans() == set()


def test_a_delete_in_an_append_table_that_lands_before_a_compaction_is_not_undone() -> None:
    lab = Lab(MemoryFileStore(f"upper-{next(NAMES)}"), keyed=False, options={**VECTORS, "write-only": "true"})
    for i in range(6):
        lab.write_new((2 * i, "a"), (2 * i + 1, "b"))
    lab.open().delete("id = 0")
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().delete("id IN (3, 8)"))
    slow.compact()
    lab.check([(i, "ab"[i % 2]) for i in range(12) if i not in (0, 3, 8)])
    lab.open().compact()
    lab.check([(i, "ab"[i % 2]) for i in range(12) if i not in (0, 3, 8)])
    assert len(lab.auditor.live_files()) < 6
    assert lab.auditor.orphans() == set()


def test_a_compaction_that_lands_before_a_delete_takes_its_marks_along() -> None:
    lab = Lab(MemoryFileStore(f"upper-{next(NAMES)}"), keyed=False, options={**VECTORS, "write-only": "true"})
    for i in range(6):
        lab.write_new((2 * i, "a"), (2 * i + 1, "b"))
    lab.open().delete("id = 0")
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().compact())
    slow.delete("id IN (3, 8)")
    lab.check([(i, "ab"[i % 2]) for i in range(12) if i not in (0, 3, 8)])
    assert lab.auditor.orphans() == set()


def test_a_delete_by_condition_sees_what_others_committed_and_no_compaction_has_settled() -> None:
    lab = lab_with({**VECTORS, "write-only": "true"})
    lab.write_new((1, "old"), (2, "old"), (3, "old"))
    lab.open().compact()
    # Acknowledged, and not read yet: the row that the condition would find is the one before.
    lab.write_new((1, "new"), (4, "old"))
    assert lab.read() == [(1, "old"), (2, "old"), (3, "old")]
    assert lab.open().delete("v = 'old'") is not None
    lab.open().compact()
    assert lab.read() == [(1, "new")]


def test_a_delete_by_condition_beside_a_write_that_is_not_settled_yet() -> None:
    lab = lab_with(VECTORS)
    lab.write_new((1, "old"), (2, "old"))
    slow, faults = lab.faulty()
    other = lab_write_only(lab)
    once(faults, "before", "publish_if_absent", lambda: lab.write(other, (1, "new"), (5, "old")))
    slow.delete("v = 'old'")
    assert lab.read() == [(1, "new")]


def lab_write_only(lab: Lab) -> Table:
    """A writer that stops after its commit, before the compaction that should follow."""
    context = lab.open().context
    schema = replace(context.schema, options={**context.schema.options, "write-only": "true"})
    return Table(context.at_schema(schema), "stopped")


@pytest.mark.parametrize("options", [{"merge-engine": "first-row"}, VECTORS])
def test_rows_wait_for_the_next_compaction_where_that_of_their_write_failed_which_is_said(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lab = lab_with(options)
    table = lab.open()
    lab.write(table, (1, "a"))

    def fail(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(compact, "run_compaction", fail)
        assert table.upsert(lab.rows((2, "b"))) is not None, "the write has landed"
    assert "until the next one lands readers do not see what was written (the disk is full)" in caplog.text
    assert lab.read() == [(1, "a")]
    (picture,) = describe_buckets(table.context, table.snapshots()[-1])
    assert picture.debt_bytes > 0
    lab.write(table, (3, "c"))
    assert lab.read() == [(1, "a"), (2, "b"), (3, "c")]
