"""One table under commits and all services for long: what a commit costs, and what is left lying about, stays as it was.

Measured at the end of each part: the memory of this process, the calls of the store that a commit takes, the files of the table,
and the milliseconds of a commit (told, not judged: others use this machine too).
"""

import os
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from tablestore.clock import SystemClock
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.auditor import walk
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, FaultyFileStore
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tablestore.testing.night.counts import Tally

COMMITS, PARTS = 300, 6
_KEYS = 500
# The memory that an allocator keeps, and caches that fill, are not a leak.
_MOST_GROWTH_BYTES = 64 * 1024 * 1024
_MOST_FILES_MORE = 40
_MOST_CALLS_MORE = 1.5


def live_soak(seed: int, *, commits: int = COMMITS) -> Tally:
    """Commit, compact, expire, clean, tag, follow and read, on one handle, as a service does."""
    chance, clock, timer = Random(seed), ManualClock(), SystemClock()
    files = MemoryFileStore.private(f"night-soak-{seed}", clock=clock)
    options = {
        "bucket": "2",
        "write-only": "false",
        "num-sorted-run.compaction-trigger": "4",
        "snapshot.num-retained.min": "3",
        "snapshot.num-retained.max": "10",
        "snapshot.time-retained": "1 h",
    }
    lab = Lab(files, options=options, seed=seed, clock=clock)
    faults = Faults()
    table = lab.open(FaultyFileStore(files, faults))
    state: dict[int, str] = {}
    tally, parts = Tally(lives=1), list[dict[str, Any]]()
    for part in range(PARTS):
        times, calls = [], []
        for number in range(commits // PARTS):
            rows = [(chance.randrange(_KEYS), f"{part}-{number}") for _ in range(20)]
            before, begun = len(faults.calls), timer.steady_s()
            table.upsert(lab.rows(*dict(rows).items()))
            times.append(timer.steady_s() - begun)
            calls.append(len(faults.calls) - before)
            state.update(rows)
            clock.advance(60)
            _serve(table, number, chance)
        faults.calls.clear()
        assert dict(lab.read()) == state, f"part {part}: the table holds other rows"
        tally.states += 1
        parts.append(
            {
                "memory_mib": round(_resident_bytes() / (1 << 20), 1),
                "files": sum(1 for _ in walk(files)),
                "calls": median(calls),
                "milliseconds": round(median(times) * 1000, 2),
            }
        )
    first, last = parts[1], parts[-1]
    assert (last["memory_mib"] - first["memory_mib"]) * (1 << 20) < _MOST_GROWTH_BYTES, f"memory grows: {parts}"
    assert last["files"] < first["files"] + _MOST_FILES_MORE, f"files pile up: {parts}"
    assert last["calls"] < first["calls"] * _MOST_CALLS_MORE + 5, f"a commit takes more and more calls: {parts}"
    assert Holdings(files).missing() == {}, "a live file was removed"
    tally.outcomes["commits"] += commits
    tally.measured.append({"seed": seed, "parts": parts})
    return tally


def _serve(table: Any, number: int, chance: Random) -> None:
    """Reads changes, tags, compacts, expires and cleans, each now and then."""
    if number % 10 == 3:
        for batch in table.consume(consumer_id="soak", follow=False):
            batch.commit()
    if number % 10 == 5:
        table.expire_snapshots()
    if number % 25 == 7:
        table.create_tag(f"t{number}", retain=3_600_000)
    if number % 25 == 20:
        for tag in table.tags():
            table.delete_tag(tag.name)
    if number % 25 == 9:
        table.compact(full=chance.random() < 0.3)
    if number % 25 == 24:
        table.remove_orphan_files(3_600_000, dry_run=False)


def _resident_bytes() -> int:
    """The memory of this process now; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0
