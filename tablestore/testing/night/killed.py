"""Processes of this machine that are killed (SIGKILL) at a system call drawn by chance, on one table again and again.

After each death: what was acknowledged is there, nothing is there twice, nothing came that nobody wrote, the table takes another
row. At the end one clean leaves no orphan.
"""

import multiprocessing
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from pathlib import Path

from tablestore.io.local import LocalFileStore
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tablestore.testing.night.counts import Tally
from tablestore.testing.night.worker import AckFile, commit_until_killed, maintain_until_killed, open_local

TIMEOUT_S = 300
SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None
_EAGER = {"write-only": "false", "num-sorted-run.compaction-trigger": "3"}
TABLES: Mapping[str, Mapping[str, str]] = {
    "append": {"compaction.min.file-num": "3"},
    "keyed": {"bucket": "2"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
}
_DEATHS = 8


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for a life; in memory where there is such a place, since none of these lives needs a disk."""
    with tempfile.TemporaryDirectory(prefix="tablestore-night-", dir=SCRATCH) as folder:
        yield Path(folder)


def processes() -> ForkServerContext:
    """Processes that begin with what a worker needs, and with nothing of this one."""
    context = multiprocessing.get_context("forkserver")
    # The main module too: else each process would import it, and all that a night needs, for itself.
    context.set_forkserver_preload(["__main__", "tablestore.testing.night.worker"])
    return context


def live_killed(seed: int) -> Tally:
    """A table whose writers are killed, some times."""
    kind = random.Random(seed).choice(list(TABLES))
    with scratch_folder() as folder:
        return kill_maintainers(processes(), folder, kind, range(seed * 100 + 1, seed * 100 + 1 + _DEATHS))


def make_table(path: Path, kind: str, *, is_there: bool = False, seed: int = 0) -> Lab:
    """A table of a kind, which compacts by itself."""
    return Lab(LocalFileStore(path), keyed=kind != "append", options={**_EAGER, **TABLES[kind]}, is_there=is_there, seed=seed)


def kill_maintainers(context: ForkServerContext, folder: Path, kind: str, seeds: range) -> Tally:
    """One process for each seed, which writes, compacts, expires and cleans until it is killed."""
    lab = make_table(folder / "table", kind)
    log = AckFile(folder / "acks")
    state: dict[int, str] = {}
    tally = Tally(lives=1)
    for seed in seeds:
        heard = len(log.read())
        process = context.Process(target=maintain_until_killed, args=(str(folder / "table"), str(folder / "acks"), seed))
        process.start()
        process.join(TIMEOUT_S)
        assert process.exitcode == -signal.SIGKILL, f"seed {seed}: the writer ended otherwise"
        tally.kills["SIGKILL"] += 1
        for ack in log.read()[heard:]:
            state.update((key, value) for key, value in ack["rows"])
        # Rows that a compaction did not come to are seen after the next one.
        lab.open().compact()
        found = lab.read()
        assert len(dict(found)) == len(found), f"seed {seed}: rows were doubled"
        next_number = seed * 1_000 + len(log.read()) - heard
        flying = {next_number: "new"} if kind == "append" else {next_number: "new", seed % 5: f"{next_number}"}
        assert dict(found) in (state, state | flying), f"seed {seed}: rows were lost, or came that nobody wrote"
        tally.states += 1
        state = dict(found)
        lab.write_new((-seed, "others"))
        state[-seed] = "others"
    tally.outcomes["acknowledged"] += len(log.read())
    lab.open().compact()
    check_clean(lab, folder / "table", list(state.items()))
    return tally


def check_clean(lab: Lab, path: Path, expected: list[tuple[int, str]]) -> None:
    """Engine and auditor see these rows, before and after one clean, which leaves nothing that nothing leads to."""
    lab.check(expected)
    lab.open().compact(full=True)
    # By the clock that the files have their times from.
    open_local(str(path)).remove_orphan_files(0, dry_run=False)
    assert Holdings(lab.files).missing() == {}, "a live file was removed"
    assert Holdings(lab.files).unheld() == set(), "one clean left files"
    lab.check(expected)


def kill_writers(context: ForkServerContext, folder: Path, *, keyed: bool, user: str | None, seeds: range) -> Tally:
    """One process for each seed, which commits until it is killed; every second time somebody else writes too."""
    path = folder / "table"
    lab = Lab(LocalFileStore(path), keyed=keyed)
    log = AckFile(folder / "acks")
    others: list[int] = []
    tally = Tally(lives=1)
    for seed in seeds:
        process = context.Process(target=commit_until_killed, args=(str(path), str(folder / "acks"), seed, user))
        process.start()
        process.join(TIMEOUT_S)
        assert process.exitcode == -signal.SIGKILL, f"seed {seed}: the writer ended otherwise"
        tally.kills["SIGKILL"] += 1
        if seed % 2:
            assert lab.write(open_local(str(path)), (-seed, "other")) is not None, "the table takes no more rows"
            others.append(-seed)
        acked = [ack["id"] for ack in log.read()]
        found = Counter(row[0] for row in lab.read())
        tally.states += 1
        assert not [n for n, times in found.items() if times > 1], f"seed {seed}: rows were doubled"
        assert set(acked) | set(others) <= set(found), f"seed {seed}: an acknowledged row is lost"
        unheard = set(found) - set(acked) - set(others)
        assert len(unheard) <= (1 if user else seed - seeds.start + 1), f"seed {seed}: more rows landed than were in flight"
    assert len(log.read()) > len(seeds) // 2, "the writers died before they had done anything"
    tally.outcomes["acknowledged"] += len(log.read())
    lab.audited()
    return tally


def live_killed_writers(seed: int) -> Tally:
    """A table whose writers only commit, numbered or not, and are killed."""
    chance = random.Random(seed)
    keyed, user = chance.random() < 0.5, "etl" if chance.random() < 0.5 else None
    with scratch_folder() as folder:
        seeds = range(seed * 100 + 1, seed * 100 + 1 + _DEATHS)
        return kill_writers(processes(), folder, keyed=keyed, user=user, seeds=seeds)
