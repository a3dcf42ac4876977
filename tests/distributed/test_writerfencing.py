"""Of streams that run beside each other by mistake the one that began first is ended, and nothing is lost or doubled."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore.distributed.streambatch import StreamBatch, commit_batch, has_landed
from tablestore.distributed.writerfencing import WriterFence
from tablestore.errors import ConflictError, FormatError
from tablestore.io.filestore import FileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.store.message import CommitMessage
from tablestore.store.replay import marks_directory
from tablestore.table.table import Table
from tablestore.testing.files import Faults, FaultyFileStore
from tablestore.testing.lab import Lab
from tablestore.testing.scheduler import Scheduler

QUERY, OTHER = "0b5a5e4e-7f6b-4c3a-9a53-6c2c7d2d3e4f", "11111111-7f6b-4c3a-9a53-6c2c7d2d3e4f"
BATCHES = 4


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return MemoryFileStore(f"succession{tmp_path}")


@pytest.fixture
def lab(files: FileStore) -> Lab:
    return Lab(files, keyed=False)


def batch(number: int, run: str, query: str = QUERY) -> StreamBatch:
    return StreamBatch(query_id=query, batch_id=number, checkpoint="/checkpoints/a", run=run)


def messages(lab: Lab, table: Table, *ids: int) -> list[CommitMessage]:
    writer = table.new_writer()
    writer.write(lab.rows(*((one, "x") for one in ids)))
    return [CommitMessage.from_bytes(writer.prepare().to_bytes())]


def ids(lab: Lab) -> list[int]:
    return sorted(one for one, _ in lab.read())


def test_the_last_writer_that_nobody_knew_before_is_the_one(files: FileStore) -> None:
    writers = WriterFence(files, "job")
    assert writers.enter("a") is None and writers.enter("a") is None
    assert writers.enter("b") is None
    assert writers.enter("a") == "b"
    assert writers.enter("b") is None
    assert writers.enter("a", again=True) is None
    assert writers.enter("b") == "a"
    assert WriterFence(files, "other job").enter("b") is None
    assert len(files.names(marks_directory("job"))) == 1


def test_so_many_writers_are_known_and_a_file_that_is_none_is_refused(files: FileStore) -> None:
    writers = WriterFence(files, "job")
    for number in range(40):
        assert writers.enter(str(number)) is None
    assert writers.enter("39") is None and writers.enter("24") == "39"
    files.publish_if_absent(f"{marks_directory('job')}/writers-{41:020d}", b'{"a": 1}')
    with pytest.raises(FormatError, match="expected a JSON list of names"):
        writers.enter("41")


def test_a_run_that_another_one_followed_ends_at_its_next_batch_and_leaves_no_file(lab: Lab, files: FileStore) -> None:
    first, second = lab.open(), lab.open()
    commit_batch(first, messages(lab, first, 0), batch(0, "first"))
    assert has_landed(second, batch(0, "second"))
    with pytest.raises(ConflictError, match=r"started twice from one checkpoint.*stop the later run and start it again") as ended:
        commit_batch(first, messages(lab, first, 1), batch(1, "first"))
    assert ended.value.kind == "newer-run"
    assert lab.auditor.orphans() == set()
    commit_batch(second, messages(lab, second, 1), batch(1, "second"))
    assert ids(lab) == [0, 1]


def test_of_two_queries_that_replace_all_rows_the_later_one_stays(lab: Lab) -> None:
    table = lab.open()

    def send(number: int, query: str, one: int, *, adopts: bool = False) -> None:
        made = replace(batch(number, query, query), adopts=adopts)
        commit_batch(table, messages(lab, table, one), made, overwrite=True)

    send(0, QUERY, 1)
    send(0, OTHER, 2)
    with pytest.raises(ConflictError, match=f"replaces all rows of table lab with each of its batches, and query {OTHER}") as ended:
        send(1, QUERY, 3)
    assert ended.value.kind == "newer-query"
    send(0, QUERY, 1)
    assert ids(lab) == [2], "a batch that landed before is no news"
    send(1, QUERY, 3, adopts=True)
    assert ids(lab) == [3]
    with pytest.raises(ConflictError):
        send(1, OTHER, 4)
    commit_batch(table, messages(lab, table, 5), batch(1, OTHER, OTHER))
    assert ids(lab) == [3, 5], "to add rows beside the others is no mistake"


@pytest.mark.deep
def test_two_runs_of_one_checkpoint_in_any_order_write_every_batch_once() -> None:
    ended = 0
    for seed in range(30):
        lab = Lab(MemoryFileStore(f"two runs {seed}"), keyed=False)
        scheduler = Scheduler(random.Random(seed), restlessness=0.3)
        # What an engine keeps in the checkpoint; the worst one does not notice itself that two use it.
        begun: dict[int, list[int]] = {}
        noted: set[int] = set()
        failed: list[tuple[str, str]] = []

        def run(
            name: str,
            lab: Lab = lab,
            scheduler: Scheduler = scheduler,
            begun: dict[int, list[int]] = begun,
            noted: set[int] = noted,
            failed: list[tuple[str, str]] = failed,
        ) -> Callable[[], None]:
            def act() -> None:
                faults = Faults()
                faults.before(lambda call: scheduler.step(f"{call.op} {call.path}"))
                table = lab.open(FaultyFileStore(lab.files, faults))
                last = max(begun, default=0)
                for number in range(last + (last in noted), BATCHES):
                    scheduler.step(f"batch {number}")
                    rows = begun.setdefault(number, [number * 10 + len(name)])
                    try:
                        commit_batch(table, messages(lab, table, *rows), batch(number, name))
                    except ConflictError as error:
                        failed.append((name, error.kind))
                        return
                    noted.add(number)

            return act

        try:
            scheduler.run({name: run(name) for name in ("a", "bb", "ccc")})
            assert noted == set(range(BATCHES))
            assert ids(lab) == sorted(row for rows in begun.values() for row in rows)
            assert len(set(failed)) == len(failed) < 3, "the last one to begin goes on"
            assert {kind for _, kind in failed} <= {"newer-run"}
        except BaseException as error:
            error.add_note(f"seed {seed}; the last steps were\n  " + "\n  ".join(scheduler.trace[-40:]))
            raise
        ended += len(failed)
    assert ended > 10
