"""The tests' own tool: faults strike where they were set, count, and leave what a real failure would leave."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore.errors import StorageError
from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.files import Faults, FaultyFileStore, SimulatedCrash


@pytest.fixture
def store(tmp_path: Path) -> FaultyFileStore:
    return FaultyFileStore(LocalFileStore(tmp_path))


def test_the_nth_call_fails_once_before_anything_happens(store: FaultyFileStore) -> None:
    store.faults.fail_nth(2)
    store.write("one", b"1")
    with pytest.raises(StorageError, match="call 2: write two"):
        store.write("two", b"2")
    store.write("three", b"3")
    assert [info.name for info in store.inner.list("")] == ["one", "three"]
    assert store.faults.injected == {"write before": 1}
    assert store.faults.injected_total == 1


def test_calls_are_counted_from_when_the_fault_is_set_and_by_verb(store: FaultyFileStore) -> None:
    store.write("one", b"1")
    store.faults.fail_nth(1, op="delete")
    store.write("two", b"2")
    with pytest.raises(StorageError):
        store.delete("one")
    assert store.delete("one") is True


def test_a_fault_after_the_call_reports_failure_of_what_was_done(store: FaultyFileStore) -> None:
    store.faults.fail_nth(1, when="after", op="publish_if_absent")
    with pytest.raises(StorageError) as failed:
        store.publish_if_absent("snapshot/snapshot-1", b"x")
    assert failed.value.kind == "unknown-outcome"
    assert store.publish_if_absent("snapshot/snapshot-1", b"x") is False


def test_the_error_can_be_chosen(store: FaultyFileStore) -> None:
    store.faults.fail_nth(1, error=lambda message: StorageError(message, kind="denied"))
    with pytest.raises(StorageError) as failed:
        store.exists("file")
    assert failed.value.kind == "denied"


def test_a_captured_publish_lands_when_the_test_says(store: FaultyFileStore) -> None:
    late = store.faults.capture_publish()
    with pytest.raises(StorageError) as failed:
        store.at("t").publish_if_absent("snapshot-1", b"late")
    assert failed.value.kind == "unknown-outcome"
    assert (late.captured, late.path, late.data) == (True, "t/snapshot-1", b"late")
    assert not store.exists("t/snapshot-1")
    assert store.publish_if_absent("t/snapshot-2", b"x") is True
    assert late.apply() is True
    assert late.apply() is False
    assert store.read("t/snapshot-1") == b"late"


def test_hooks_see_full_paths_and_may_act(store: FaultyFileStore) -> None:
    seen = []
    store.faults.before(lambda call: seen.append((call.op, call.path)))
    table = store.at("db").at("table")
    table.faults.after(lambda call: store.inner.overwrite("touched", b""), op="write")
    table.write("snapshot/one", b"x")
    table.list("")
    table.list("snapshot")
    assert seen == [("write", "db/table/snapshot/one"), ("list", "db/table"), ("list", "db/table/snapshot")]
    assert store.inner.exists("touched")


def test_random_faults_are_those_of_the_seed_and_of_both_kinds() -> None:
    def run(seed: int) -> tuple[list[str], Faults]:
        faults = Faults()
        store = FaultyFileStore(MemoryFileStore("random-faults"), faults)
        faults.fail_randomly(0.2, seed=seed)
        results = []
        for n in range(200):
            try:
                store.overwrite(f"{n}", b"")
                results.append("done")
            except StorageError as error:
                results.append(str(error))
        MemoryFileStore.forget("random-faults")
        return results, faults

    first, faults = run(5)
    assert run(5)[0] == first
    assert run(6)[0] != first
    assert 20 <= faults.injected_total <= 60
    assert set(faults.injected) == {"overwrite before", "overwrite after"}
    assert faults.injected_total == sum(result != "done" for result in first)


def test_writes_and_reads_of_open_files_are_calls_and_handles_are_counted(store: FaultyFileStore) -> None:
    table = pa.table({"a": list(range(100))})
    with store.open_output("data.parquet") as file:
        assert store.faults.open_handles == 1
        pq.write_table(table, file)
    with store.open_input("data.parquet") as file:
        assert store.faults.open_handles == 1
        assert pq.read_table(file).equals(table)
    assert store.faults.open_handles == 0
    assert {call.op for call in store.faults.calls} == {
        "open_output",
        "output.write",
        "output.close",
        "open_input",
        "input.read",
    }


@pytest.mark.parametrize("op", ["open_output", "output.write", "output.close"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failed_output_is_removed_unless_it_was_finished(store: FaultyFileStore, op: str, when: str) -> None:
    store.faults.fail_nth(1, op=op, when=when)  # type: ignore[arg-type]
    with pytest.raises(StorageError), store.open_output("data") as file:
        file.write(b"x")
    assert store.inner.exists("data") is (op == "output.close" and when == "after")
    assert store.faults.open_handles == 0


def test_a_failed_read_of_an_open_file_reaches_the_reader_as_our_error(store: FaultyFileStore) -> None:
    with store.open_output("data.parquet") as file:
        pq.write_table(pa.table({"a": [1]}), file)
    store.faults.fail_nth(1, op="input.read")
    with pytest.raises(StorageError, match="injected"), store.open_input("data.parquet") as file:
        pq.read_table(file)
    assert store.faults.open_handles == 0


def test_after_a_crash_nothing_is_done_and_nothing_is_cleaned_up(store: FaultyFileStore) -> None:
    store.faults.crash_nth(1, op="output.close")
    with pytest.raises(SimulatedCrash), store.at("t").open_output("data") as file:
        file.write(b"half")
    for verb in (store.exists, store.delete, store.read, store.open_input):
        with pytest.raises(SimulatedCrash):
            verb("t/data")
    assert store.inner.read("t/data") == b"half"
    assert store.faults.open_handles == 0


def test_cleared_faults_strike_no_more_and_keep_their_counts(store: FaultyFileStore) -> None:
    store.faults.fail_randomly(1.0, seed=1)
    with pytest.raises(StorageError):
        store.exists("file")
    store.faults.clear()
    assert store.exists("file") is False
    assert store.faults.injected_total == 1
