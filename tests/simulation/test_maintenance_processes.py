"""Processes that write, compact, expire, clean and read one table: killed at any system call, and all at once."""

import multiprocessing
import signal
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tablestore.io.local import LocalFileStore
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tablestore.testing.night.worker import AckFile, maintain_until_killed, mingle, open_local

WORKERS, STEPS = 8, 30
TIMEOUT_S = 300
EAGER = {"write-only": "false", "num-sorted-run.compaction-trigger": "3"}
TABLES: dict[str, dict[str, str]] = {
    "append": {"compaction.min.file-num": "3"},
    "keyed": {"bucket": "2"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
}


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tablestore.testing.night.worker"])
    return context


def make(path: Path, kind: str) -> Lab:
    return Lab(LocalFileStore(path), keyed=kind != "append", options={**EAGER, **TABLES[kind]})


def check_clean(lab: Lab, path: Path, expected: list[tuple[int, str]]) -> None:
    lab.check(expected)
    lab.open().compact(full=True)
    # By the clock that the files have their times from.
    open_local(str(path)).remove_orphan_files(0, dry_run=False)
    assert Holdings(lab.files).missing() == {}
    assert Holdings(lab.files).unheld() == set(), "one clean left files"
    lab.check(expected)


def kill_often(processes: ForkServerContext, tmp_path: Path, kind: str, seeds: range) -> None:
    lab = make(tmp_path / "table", kind)
    log = AckFile(tmp_path / "acks")
    state: dict[int, str] = {}
    for seed in seeds:
        heard = len(log.read())
        process = processes.Process(target=maintain_until_killed, args=(str(tmp_path / "table"), str(tmp_path / "acks"), seed))
        process.start()
        process.join(TIMEOUT_S)
        assert process.exitcode == -signal.SIGKILL, f"seed {seed}: the writer ended otherwise"
        for ack in log.read()[heard:]:
            state.update((key, value) for key, value in ack["rows"])
        # Rows that a compaction did not come to are seen after the next one.
        lab.open().compact()
        found = lab.read()
        assert len(dict(found)) == len(found), f"seed {seed}: rows were doubled"
        next_number = seed * 1_000 + len(log.read()) - heard
        flying = {next_number: "new"} if kind == "append" else {next_number: "new", seed % 5: f"{next_number}"}
        assert dict(found) in (state, state | flying), f"seed {seed}: rows were lost, or came that nobody wrote"
        state = dict(found)
        lab.write_new((-seed, "others"))
        state[-seed] = "others"
    assert len(log.read()) > len(seeds), "the writers died before they had done anything"
    lab.open().compact()
    check_clean(lab, tmp_path / "table", list(state.items()))


@pytest.mark.slow_after(2)
@pytest.mark.deep
@pytest.mark.parametrize("kind", TABLES)
def test_a_killed_writer_that_compacts_and_expires_loses_and_doubles_nothing(
    processes: ForkServerContext, tmp_path: Path, kind: str
) -> None:
    """Ten kills a kind of table: thirty."""
    kill_often(processes, tmp_path, kind, range(1, 11))


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_many_killed_writers_that_compact_and_expire(processes: ForkServerContext, tmp_path: Path, kind: str) -> None:
    kill_often(processes, tmp_path, kind, range(1_000, 1_100))


def mix(processes: ForkServerContext, tmp_path: Path, kind: str, steps: int) -> None:
    lab = make(tmp_path / "table", kind)
    barrier = processes.Barrier(WORKERS)
    args = [(str(tmp_path / "table"), n, steps, str(tmp_path / f"acks-{n}"), barrier) for n in range(WORKERS)]
    running = [processes.Process(target=mingle, args=one) for one in args]
    for process in running:
        process.start()
    for process in running:
        process.join(TIMEOUT_S)
    assert [process.exitcode for process in running] == [0] * WORKERS, "a process failed; what it says is above"
    acks = sorted((ack for n in range(WORKERS) for ack in AckFile(tmp_path / f"acks-{n}").read()), key=lambda ack: ack["snapshot"])
    assert len(acks) > WORKERS * steps // 3
    state: dict[int, str] = {}
    for ack in acks:
        state.update((key, value) for key, value in ack["rows"])
    lab.open().compact()
    check_clean(lab, tmp_path / "table", list(state.items()))


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["append", "keyed"])
def test_eight_processes_write_compact_expire_and_read_one_table(processes: ForkServerContext, tmp_path: Path, kind: str) -> None:
    mix(processes, tmp_path, kind, STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append", "keyed"])
def test_eight_processes_write_compact_expire_and_read_one_table_for_long(
    processes: ForkServerContext, tmp_path: Path, kind: str
) -> None:
    mix(processes, tmp_path, kind, 8 * STEPS)
