"""Altering a table: the n-th failure of the store, lost races, unclear publishes, and writers that hold the old schema."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import (
    CommitOutcomeUnknown,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)
from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.store.commit import alterschema as alter_module
from tablestore.store.commit.alterschema import alter_schema, holds_data
from tablestore.store.schemas import Schemas
from tablestore.table.table import Table
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import FileCall, SimulatedCrash
from tablestore.testing.lab import Lab
from tablestore.types.evolution.schemachanges import (
    AddColumn,
    ChangeNullability,
    DropColumn,
    RenameColumn,
    SetOption,
    SetTableComment,
)
from tablestore.types.schema import TableSchema

NAMES = count()


@pytest.fixture
def lab() -> Iterator[Lab]:
    name = f"alter-{next(NAMES)}"
    yield Lab(MemoryFileStore(name))
    MemoryFileStore.forget(name)


def names(table: Table) -> list[str]:
    return list(table.schema.names)


def ids(lab: Lab) -> tuple[int, ...]:
    return lab.open().context.schemas.ids()


def test_each_alteration_is_the_next_schema_file(lab: Lab) -> None:
    table = lab.open()
    altered = table.alter([AddColumn("n", "INT"), SetTableComment("x")]).alter(DropColumn("n"))
    assert altered.table_schema.id == 2
    assert altered.comment == "x"
    assert names(altered) == ["id", "v"]
    assert names(table) == ["id", "v"]
    assert table.schema_history().column("schema_id").to_pylist() == [0, 1, 2]
    assert altered.table_schema.highest_field_id == 2


def test_what_changes_nothing_publishes_nothing(lab: Lab) -> None:
    table = lab.open()
    assert table.alter(SetOption("bucket", "1")).table_schema.id == 0
    assert ids(lab) == (0,)


def test_a_refusal_leaves_the_table_as_it_was(lab: Lab) -> None:
    lab.write_new((1, "a"))
    with pytest.raises(NotFoundError):
        lab.open().alter([AddColumn("n", "INT"), DropColumn("nope")])
    assert ids(lab) == (0,)
    lab.check([(1, "a")])


def test_an_option_that_would_end_our_own_writing_is_refused(lab: Lab) -> None:
    with pytest.raises(UnsupportedError):
        lab.open().alter([SetOption("bucket", "-2"), SetOption("changelog-producer", "input")])
    assert ids(lab) == (0,)


def test_the_loser_of_two_alterations_judges_its_changes_again(lab: Lab) -> None:
    table, faults = lab.faulty()
    rival: list[Table] = []

    def alter_first(call: FileCall) -> None:
        if not rival:
            rival.append(lab.open())
            rival[0].alter(AddColumn("theirs", "INT"))

    faults.before(alter_first, op="publish_if_absent")
    altered = table.alter(AddColumn("ours", "INT"))
    assert names(altered) == ["id", "v", "theirs", "ours"]
    assert [field.id for field in altered.table_schema.fields] == [0, 1, 2, 3]
    assert ids(lab) == (0, 1, 2)


def test_two_equal_alterations_at_once_are_one_and_a_refusal(lab: Lab) -> None:
    table, faults = lab.faulty()
    rival: list[Table] = []

    def alter_first(call: FileCall) -> None:
        if not rival:
            rival.append(lab.open())
            rival[0].alter(AddColumn("n", "INT"))

    faults.before(alter_first, op="publish_if_absent")
    with pytest.raises(TablestoreError, match="'n' already"):
        table.alter(AddColumn("n", "INT"))
    assert ids(lab) == (0, 1)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_unclear_publish_is_settled_by_looking(lab: Lab, when: str) -> None:
    table, faults = lab.faulty()
    faults.fail_nth(1, when=when, op="publish_if_absent")  # type: ignore[arg-type]
    assert names(table.alter(AddColumn("n", "INT"))) == ["id", "v", "n"]
    assert ids(lab) == (0, 1)
    assert faults.injected_total == 1


def test_a_publish_that_stays_unclear_is_said_to_be(lab: Lab) -> None:
    table, faults = lab.faulty()

    def fail(call: FileCall) -> None:
        raise StorageError("no answer", kind="unknown-outcome")

    faults.before(fail, op="publish_if_absent")
    with pytest.raises(CommitOutcomeUnknown, match=r"schema 1.*repeat"):
        table.alter(AddColumn("n", "INT"))


def test_a_late_publish_of_a_schema_that_another_has_taken_is_lost(lab: Lab) -> None:
    table, faults = lab.faulty()
    capture = faults.capture_publish()

    def alter_meanwhile(call: FileCall) -> None:
        if capture.captured and len(ids(lab)) == 1:
            lab.open().alter(AddColumn("theirs", "INT"))

    faults.before(alter_meanwhile, op="publish_if_absent")
    altered = table.alter(AddColumn("ours", "INT"))
    assert not capture.apply()
    assert names(altered) == ["id", "v", "theirs", "ours"]


def test_a_table_that_was_dropped_meanwhile_gets_no_schema(lab: Lab) -> None:
    table, faults = lab.faulty()

    def drop(call: FileCall) -> None:
        lab.drop()

    faults.before(drop, op="publish_if_absent")
    with pytest.raises(ConflictError) as refused:
        table.alter(AddColumn("n", "INT"))
    assert refused.value.kind == "table-replaced"
    assert not lab.files.list("schema")


def test_a_table_that_was_created_again_keeps_its_own_schema(lab: Lab) -> None:
    old = lab.open()
    again, faults = lab.faulty()
    done: list[bool] = []

    def replace_table(call: FileCall) -> None:
        if not done:
            done.append(True)
            lab.drop()
            lab.create()

    faults.before(replace_table, op="publish_if_absent")
    with pytest.raises(ConflictError):
        again.alter(AddColumn("n", "INT"))
    with pytest.raises(ConflictError) as refused:
        old.alter(AddColumn("n", "INT"))
    assert refused.value.kind == "table-replaced"
    assert ids(lab) == (0,)


def test_rows_written_under_the_old_schema_are_refused_and_written_again_land(lab: Lab) -> None:
    writer = lab.open()
    with writer.new_writer() as rows:
        rows.write(lab.rows((1, "a")))
        altered = lab.open().alter(AddColumn("n", "INT", default="3"))
        with pytest.raises(ConflictError, match=r"schema 1 now.*schema 0.*with a default; .*table\.new_writer\(\)") as refused:
            rows.commit()
    assert refused.value.kind == "schema-changed"
    altered.upsert(pa.table({"id": [1], "v": ["a"], "n": pa.array([5], pa.int32())}))
    assert altered.scan().to_arrow().to_pylist() == [{"id": 1, "v": "a", "n": 5}]
    assert lab.auditor.orphans() == set()


def test_bucket_changes_while_the_table_is_empty_only(lab: Lab) -> None:
    table = lab.open().alter(SetOption("bucket", "3"))
    lab.write(table, (1, "a"), (2, "b"), (3, "c"))
    with pytest.raises(UnsupportedError, match="INSERT OVERWRITE") as refused:
        table.alter(SetOption("bucket", "5"))
    assert refused.value.kind == "rescale-needed"
    table.overwrite(lab.rows(), {})
    assert not holds_data(table.context)
    table.alter(SetOption("bucket", "5"))
    lab.write_new((1, "a"), (4, "d"))
    lab.check([(1, "a"), (4, "d")])


def test_where_files_lie_changes_only_before_the_first_row(lab: Lab) -> None:
    table = lab.open().alter(SetOption("data-file.path-directory", "data"))
    table = table.alter(SetOption("data-file.path-directory", "rows"))
    lab.write(table, (1, "a"))
    table.overwrite(lab.rows(), {})
    assert not holds_data(table.context)
    with pytest.raises(UnsupportedError, match="all snapshots and tags"):
        table.alter(SetOption("data-file.path-directory", "elsewhere"))
    assert lab.read(snapshot_id=table.snapshots()[-2].id) == [(1, "a")]


def test_a_writer_that_raced_an_alteration_of_an_empty_table_loses(lab: Lab) -> None:
    """The writer has seen the old schema and is about to publish, when the alteration lands."""
    slow, faults = lab.faulty()
    done: list[bool] = []

    def alter(call: FileCall) -> None:
        if not done and "snapshot" in call.path:
            done.append(True)
            lab.open().alter(ChangeNullability("v", nullable=False))

    faults.before(alter, op="publish_if_absent")
    with pytest.raises(ConflictError) as refused:
        slow.upsert(pa.table({"id": [1], "v": pa.array([None], pa.string())}))
    assert refused.value.kind == "schema-changed"
    assert not lab.open().schema.field("v").nullable
    lab.check([])


def test_an_alteration_that_needs_an_empty_table_is_taken_back_when_rows_land_first(lab: Lab) -> None:
    altering, faults = lab.faulty()
    slow, pauses = lab.faulty()
    done: list[bool] = []

    def alter(call: FileCall) -> None:
        """The writer is about to publish its snapshot: the alteration begins, and publishes its schema."""
        if not done and "snapshot" in call.path:
            done.append(True)
            with pytest.raises(ConflictError, match="taken back") as refused:
                altering.alter(ChangeNullability("v", nullable=False))
            assert refused.value.kind == "not-empty"

    def let_the_writer_go(call: FileCall) -> None:
        """The schema is there, the fence is about to be set: the writer's snapshot lands now."""
        if "snapshot" in call.path and len(ids(lab)) == 2 and not landed:
            landed.append(True)
            pauses.clear()
            lab.files.publish_if_absent(*pending[0])

    pending: list[tuple[str, bytes]] = []
    landed: list[bool] = []
    publish = slow.context.files.publish_if_absent

    def remember(path: str, data: bytes) -> bool:
        pending.append((path, data))
        return publish(path, data)

    slow.context.files.publish_if_absent = remember  # type: ignore[method-assign]
    pauses.before(alter, op="publish_if_absent")
    faults.before(let_the_writer_go, op="publish_if_absent")
    slow.upsert(pa.table({"id": [1], "v": pa.array([None], pa.string())}))
    assert ids(lab) == (0, 1, 2)
    assert lab.open().schema.field("v").nullable
    lab.check([(1, None)])
    lab.write_new((2, "b"))
    lab.check([(1, None), (2, "b")])


def sweep(lab: Lab, *, empty: bool) -> int:
    """Fail each call of an alteration in turn, before and after it; how many faults struck."""
    change = ChangeNullability("v", nullable=False) if empty else RenameColumn("v", to="w")
    struck = 0
    for when in ("before", "after"):
        for n in count(1):
            fresh = Lab(MemoryFileStore(f"sweep-{next(NAMES)}"))
            if not empty:
                fresh.write_new((1, "a"))
            table, faults = fresh.faulty()
            faults.fail_nth(n, when=when)
            try:
                altered = table.alter(change)
            except CommitOutcomeUnknown:
                # The schema has landed, whether it was fenced is what is not known.
                assert ids(fresh) == (0, 1)
            except StorageError:
                assert ids(fresh) == (0,)
            else:
                assert altered.table_schema.id == 1
            struck += faults.injected_total
            assert faults.open_handles == 0
            again = fresh.open()
            if not empty:
                assert [tuple(row.values()) for row in again.scan().to_arrow().to_pylist()] == [(1, "a")]
                again.upsert(pa.table({"id": [2], again.schema.names[1]: ["b"]}), missing_columns="null")
            else:
                again.upsert(pa.table({"id": [2], "v": ["b"]}))
            assert again.refresh().scan().count() == (1 if empty else 2)
            assert fresh.auditor.orphans() == set()
            if not faults.injected_total:
                break
    return struck


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("empty", [False, True])
def test_whatever_call_fails_the_table_is_altered_or_not_and_stays_writable(lab: Lab, empty: bool) -> None:
    assert sweep(lab, empty=empty) >= 8


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_at_any_call_leaves_a_table_that_is_altered_or_not(when: str) -> None:
    altered = 0
    for n in count(1):
        fresh = Lab(MemoryFileStore(f"crash-{next(NAMES)}"))
        fresh.write_new((1, "a"))
        table, faults = fresh.faulty()
        faults.crash_nth(n, when=when)  # type: ignore[arg-type]
        try:
            table.alter([RenameColumn("v", to="w"), AddColumn("n", "INT")])
        except SimulatedCrash:
            pass
        else:
            break
        assert ids(fresh) in ((0,), (0, 1))
        altered += len(ids(fresh)) - 1
        again = fresh.open()
        again.upsert(pa.table({"id": [2], again.schema.names[1]: ["b"]}), missing_columns="null")
        again.alter(AddColumn("later", "INT"))
        assert [row["id"] for row in fresh.open().scan().to_arrow().to_pylist()] == [1, 2]
        assert fresh.auditor.orphans() == set()
    assert 0 < altered < n - 1


def test_a_refused_change_asks_for_no_write(lab: Lab) -> None:
    lab.write_new((1, "a"))
    table, faults = lab.faulty()
    with pytest.raises(InvalidInputError):
        alter_schema(table.context, ChangeNullability("v", nullable=False))
    assert {call.op for call in faults.calls} <= {"list", "read", "exists"}


def test_what_decides_between_versions_of_a_key_changes_only_when_there_is_one_version(lab: Lab) -> None:
    lab.write_new((1, "a"))
    for change in (SetOption("sequence.field", "v"), SetOption("merge-engine", "first-row"), SetOption("ignore-delete", "true")):
        with pytest.raises(UnsupportedError, match="full compaction") as refused:
            lab.open().alter(change)
        assert refused.value.kind == "outside-frame"
    assert ids(lab) == (0,)
    lab.open().overwrite(lab.rows(), {})
    lab.open().alter(SetOption("ignore-delete", "true"))
    lab.write_new((2, "b"))
    lab.check([(2, "b")])


def test_how_a_column_combines_changes_only_when_its_versions_are_folded() -> None:
    summed = Lab(MemoryFileStore(f"alter-{next(NAMES)}"), options={"merge-engine": "aggregation", "write-only": "true"})
    summed.write_new((1, "b"))
    summed.write_new((1, "a"))
    with pytest.raises(InvalidInputError, match="unknown function 'maximum'"):
        summed.open().alter(SetOption("fields.v.aggregate-function", "maximum"))
    change = SetOption("fields.v.aggregate-function", "max")
    with pytest.raises(UnsupportedError, match="full compaction") as refused:
        summed.open().alter(change)
    assert refused.value.kind == "outside-frame"
    summed.open().alter([AddColumn("n", "INT"), SetOption("fields.n.aggregate-function", "sum")])
    summed.open().compact(full=True)
    table = summed.open().alter(change)
    table.upsert(pa.table({"id": [1], "v": ["A"], "n": pa.array([5], pa.int32())}))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": "a", "n": 5}]


def test_a_rename_is_no_change_of_what_decides_between_versions() -> None:
    ordered = Lab(MemoryFileStore(f"alter-{next(NAMES)}"), options={"sequence.field": "v"})
    ordered.write_new((1, "b"))
    ordered.write_new((1, "a"))
    altered = ordered.open().alter(RenameColumn("v", to="at"))
    assert altered.options()["sequence.field"] == "at"
    altered.upsert(pa.table({"id": [1], "at": ["aa"]}))
    assert altered.scan().to_arrow().to_pylist() == [{"id": 1, "at": "b"}]


def test_alterations_and_writes_at_once_lose_neither_columns_nor_rows(tmp_path: Path) -> None:
    shared = Lab(LocalFileStore(tmp_path))

    def alter(actor: int) -> None:
        for n in range(6):
            shared.open(clock=ManualClock()).alter(AddColumn(f"c{actor}_{n}", "INT"))

    def write(actor: int) -> None:
        for n in range(12):
            while True:
                try:
                    rows = pa.table({"id": [actor * 100 + n], "v": ["x"]})
                    shared.open(clock=ManualClock()).upsert(rows, missing_columns="null")
                    break
                except ConflictError as error:
                    if error.kind != "schema-changed":
                        raise

    with ThreadPoolExecutor(max_workers=4) as pool:
        tasks = [pool.submit(work, actor) for work in (alter, write) for actor in (1, 2)]
        for task in tasks:
            task.result()
    table = shared.open()
    fields = table.table_schema.fields
    assert {field.name for field in fields} == {"id", "v", *(f"c{actor}_{n}" for actor in (1, 2) for n in range(6))}
    assert sorted(field.id for field in fields) == list(range(14))
    assert ids(shared) == tuple(range(13))
    found = sorted(table.scan(columns=["id"]).to_arrow().column(0).to_pylist())
    assert found == sorted(actor * 100 + n for actor in (1, 2) for n in range(12))
    shared.auditor.check_metadata()
    assert shared.auditor.orphans() == set()


def no_fence(m: pytest.MonkeyPatch) -> None:
    m.setattr(alter_module._Alteration, "_fence", lambda *_: None)


def no_look_at_what_it_was_built_on(m: pytest.MonkeyPatch) -> None:
    m.setattr(alter_module._Alteration, "_check_built_on", lambda *_: None)


def take_what_is_there_for_its_own(m: pytest.MonkeyPatch) -> None:
    m.setattr(alter_module._Alteration, "_publish", lambda self, made, *_: self.context.schemas.publish(made) or True)


def take_unclear_for_failed(m: pytest.MonkeyPatch) -> None:
    def publish(self: Any, made: TableSchema, *_: Any) -> bool:
        done: bool = self.context.schemas.publish(made)
        return done

    m.setattr(alter_module._Alteration, "_publish", publish)


def decide_on_the_schema_of_the_handle(m: pytest.MonkeyPatch) -> None:
    m.setattr(Schemas, "refreshed_latest", lambda self: self.read(0))


PLANTED: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Lab], None]]] = [
    (no_fence, test_a_writer_that_raced_an_alteration_of_an_empty_table_loses),
    (no_fence, test_an_alteration_that_needs_an_empty_table_is_taken_back_when_rows_land_first),
    (no_look_at_what_it_was_built_on, test_a_table_that_was_dropped_meanwhile_gets_no_schema),
    (take_what_is_there_for_its_own, test_the_loser_of_two_alterations_judges_its_changes_again),
    (take_what_is_there_for_its_own, test_two_equal_alterations_at_once_are_one_and_a_refusal),
    (take_unclear_for_failed, lambda lab: test_an_unclear_publish_is_settled_by_looking(lab, "after")),
    (decide_on_the_schema_of_the_handle, test_each_alteration_is_the_next_schema_file),
]


@pytest.mark.parametrize(("plant", "scene"), PLANTED)
def test_a_planted_bug_is_caught(
    lab: Lab, plant: Callable[[pytest.MonkeyPatch], None], scene: Callable[[Lab], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    # Whatever a test fails with: an assertion, an error that did not come, an error that should not.
    with pytest.raises((AssertionError, pytest.fail.Exception, TablestoreError)):
        scene(lab)
