"""The scenarios of a night by name, each lived from a seed, and their shares of its time."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tablestore.io.filestore import FileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.memorylog import MemoryBroker, memory_logs
from tablestore.testing.night.counts import Tally
from tablestore.testing.night.exhaustion import live_exhausted
from tablestore.testing.night.keepers import Keepers
from tablestore.testing.night.killed import live_killed, live_killed_writers
from tablestore.testing.night.life import LifeReport, live
from tablestore.testing.night.lifeplan import LifePlan, draw_plan
from tablestore.testing.night.localpower import live_local_power
from tablestore.testing.night.logplay import LogPlay
from tablestore.testing.night.schedules import Play
from tablestore.testing.night.soak import live_soak

POWER_STORES = ("memory", "conditional")
FULL_STORES = ("memory", "renaming")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way to try to break a store. ``share``: of the time; ``plan``: the life of a seed, where it can be shrunk."""

    says: str
    share: float
    live: Callable[[int], Tally]
    plan: Callable[[int], LifePlan] | None = None


def tally_of(report: LifeReport) -> Tally:
    """The counts of one life."""
    return Tally(lives=1, faults=report.faults, kills=report.kills, states=report.states, outcomes=report.outcomes)


def power_plan(seed: int) -> LifePlan:
    """A life with power cuts."""
    return draw_plan(seed, stores=POWER_STORES, power=True)


def full_plan(seed: int) -> LifePlan:
    """A life on a disk that is soon full."""
    return draw_plan(seed, stores=FULL_STORES, room_bytes=5_000 + seed * 7_919 % 60_000)


def own_scenario(store: FileStore) -> Scenario:
    """Lives on a user's store, each in a folder of its own, which is removed when it ended well."""

    def plan(seed: int) -> LifePlan:
        return draw_plan(seed, stores=("own",))

    def live_there(seed: int) -> Tally:
        folder = f"night-{seed}"
        report = live(plan(seed), own=store.at(folder))
        store.delete_directory(folder)
        return tally_of(report)

    return Scenario(says="the lives, on a store of your own", share=100, live=live_there)


def _play(seed: int) -> Tally:
    report = Play(seed, MemoryFileStore.private(f"night-play-{seed}"), ambiguous=0.1 * (seed % 5), writers=2 + seed % 3).run()
    faults = Counter({f"publish_if_absent {kind}": count for kind, count in report.faults.items()})
    return Tally(lives=1, faults=faults, outcomes=report.outcomes, states=1)


def _keepers(seed: int) -> Tally:
    return Tally(lives=1, outcomes=Keepers(seed).run().outcomes, states=1)


def _log(seed: int) -> Tally:
    broker = MemoryBroker(f"night-{seed}")
    try:
        with memory_logs():
            happened = LogPlay(seed, broker).run()
    finally:
        broker.close()
    return Tally(lives=1, outcomes=happened, states=happened["check"])


SCENARIOS: Mapping[str, Scenario] = {
    "lives": Scenario(
        says="writers, upkeep, branches, readers and time, struck and killed at any call of four kinds of stores",
        share=55,
        live=lambda seed: tally_of(live(draw_plan(seed))),
        plan=draw_plan,
    ),
    "power": Scenario(
        says="the same, and the power is cut: what was not synced may be gone",
        share=15,
        live=lambda seed: tally_of(live(power_plan(seed))),
        plan=power_plan,
    ),
    "power-local": Scenario(
        says="a folder of this machine: what was not synced by a system call may be gone", share=5, live=live_local_power
    ),
    "full": Scenario(
        says="the same lives, on a disk that is full until something is deleted",
        share=6,
        live=lambda seed: tally_of(live(full_plan(seed))),
        plan=full_plan,
    ),
    "exhausted": Scenario(says="processes with few open files, little memory, small files", share=4, live=live_exhausted),
    "soak": Scenario(says="one table, many commits, all services: memory, calls and files stay flat", share=5, live=live_soak),
    "keepers": Scenario(says="what keeps files beside what removes them, interleaved, no faults", share=8, live=_keepers),
    "schedules": Scenario(says="writers that sleep at any call, publishes answered wrongly", share=5, live=_play),
    "log": Scenario(says="a table and its log: copied, restored, dropped, altered while in use", share=5, live=_log),
    "killed": Scenario(says="processes that write, compact, expire and clean, killed (SIGKILL)", share=5, live=live_killed),
    "killed-writers": Scenario(says="processes that commit, numbered or not, killed (SIGKILL)", share=3, live=live_killed_writers),
}
