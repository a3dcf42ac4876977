"""Real processes on a real directory: eight that contend, and fifty that are killed."""

from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tablestore.io.local import LocalFileStore
from tablestore.testing.lab import Lab
from tablestore.testing.night.killed import TIMEOUT_S, kill_writers, processes
from tablestore.testing.night.worker import AckFile, contend

WORKERS, KILLS = 8, 50


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    return processes()


def finish(running: list[BaseProcess]) -> list[int | None]:
    """The exit codes; whatever still runs after the time-out is killed."""
    for process in running:
        process.join(TIMEOUT_S)
    codes = [process.exitcode for process in running]
    for process in running:
        if process.is_alive():
            process.kill()
            process.join()
    return codes


@pytest.mark.slow_after(1)
@pytest.mark.deep
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("commits", [15, pytest.param(100, marks=pytest.mark.slow)])
def test_eight_processes_commit_to_one_table(context: ForkServerContext, tmp_path: Path, keyed: bool, commits: int) -> None:
    """All commits are acknowledged, each once; ids are gapless, and the later snapshot's row wins."""
    path = tmp_path / "table"
    lab = Lab(LocalFileStore(path), keyed=keyed)
    barrier = context.Barrier(WORKERS)
    running = [
        context.Process(target=contend, args=(str(path), n, commits, str(tmp_path / f"acks-{n}"), barrier))
        for n in range(WORKERS)
    ]
    for process in running:
        process.start()
    assert finish(list(running)) == [0] * WORKERS
    acks = [ack for n in range(WORKERS) for ack in AckFile(tmp_path / f"acks-{n}").read()]
    acked = {ack["snapshot"]: ack for ack in acks}
    assert len(acks) == WORKERS * commits
    assert sorted(acked) == list(range(1, WORKERS * commits + 1)), "every acknowledged snapshot has its own id, without gaps"
    assert [snapshot["uuid"] for snapshot in lab.auditor.snapshots()] == [acked[i]["uuid"] for i in sorted(acked)]
    own = [(1 + n * commits + c, f"w{n}c{c}") for n in range(WORKERS) for c in range(commits)]
    names = [acked[i]["name"] for i in sorted(acked)]
    lab.check([(0, names[-1]), *own] if keyed else [*((0, name) for name in names), *own])
    for snapshot_id in range(1, WORKERS * commits + 1, 13) if keyed else ():
        assert lab.read(filter="id = 0", snapshot_id=snapshot_id) == [(0, acked[snapshot_id]["name"])]
    assert lab.auditor.orphans() == set()


@pytest.mark.slow_after(2)
@pytest.mark.deep
@pytest.mark.parametrize(("keyed", "user"), [(False, None), (True, None), (False, "etl"), (True, "etl")])
def test_a_killed_writer_loses_and_doubles_nothing(
    context: ForkServerContext, tmp_path: Path, keyed: bool, user: str | None
) -> None:
    """SIGKILL at a system call drawn by chance, on one table again and again; every second time somebody else writes too."""
    kill_writers(context, tmp_path, keyed=keyed, user=user, seeds=range(1, KILLS // 4 + 2))


@pytest.mark.slow
@pytest.mark.parametrize(("keyed", "user"), [(False, None), (True, None), (False, "etl"), (True, "etl")])
def test_many_killed_writers(context: ForkServerContext, tmp_path: Path, keyed: bool, user: str | None) -> None:
    kill_writers(context, tmp_path, keyed=keyed, user=user, seeds=range(1_000, 1_100))
