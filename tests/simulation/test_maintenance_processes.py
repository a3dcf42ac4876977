"""Processes that write, compact, expire, clean and read one table: killed at any system call, and all at once."""

from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tablestore.testing.night.killed import TABLES, TIMEOUT_S, check_clean, kill_maintainers, make_table, processes
from tablestore.testing.night.worker import AckFile, mingle

WORKERS, STEPS = 8, 30


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    return processes()


@pytest.mark.slow_after(2)
@pytest.mark.deep
@pytest.mark.parametrize("kind", TABLES)
def test_a_killed_writer_that_compacts_and_expires_loses_and_doubles_nothing(
    context: ForkServerContext, tmp_path: Path, kind: str
) -> None:
    """Ten kills a kind of table: thirty."""
    tally = kill_maintainers(context, tmp_path, kind, range(1, 11))
    assert tally.kills["SIGKILL"] == 10
    assert tally.outcomes["acknowledged"] > 10, "the writers died before they had done anything"


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_many_killed_writers_that_compact_and_expire(context: ForkServerContext, tmp_path: Path, kind: str) -> None:
    kill_maintainers(context, tmp_path, kind, range(1_000, 1_100))


def mix(context: ForkServerContext, tmp_path: Path, kind: str, steps: int) -> None:
    lab = make_table(tmp_path / "table", kind)
    barrier = context.Barrier(WORKERS)
    args = [(str(tmp_path / "table"), n, steps, str(tmp_path / f"acks-{n}"), barrier) for n in range(WORKERS)]
    running = [context.Process(target=mingle, args=one) for one in args]
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
def test_eight_processes_write_compact_expire_and_read_one_table(context: ForkServerContext, tmp_path: Path, kind: str) -> None:
    mix(context, tmp_path, kind, STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append", "keyed"])
def test_eight_processes_write_compact_expire_and_read_one_table_for_long(
    context: ForkServerContext, tmp_path: Path, kind: str
) -> None:
    mix(context, tmp_path, kind, 8 * STEPS)
