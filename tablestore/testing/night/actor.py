"""One process of a life: it does its steps, is struck at its calls, dies, and is begun again.

A strike at a call is drawn from the life's seed, the actor, the step and the number of the call in that step, or is one of those
that the plan names.

    before, denied   the call fails, and nothing has happened          after        it has happened, and is reported as failed
    late             it is reported as failed, and happens later       kill before, kill after, torn     the process dies there
    power            every process dies there, and the store forgets what was not synced

``torn``: a process that dies leaves half of what it wrote under a temporary name.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tablestore.errors import CommitOutcomeUnknown, StorageError, TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.io.filestore import TEMPORARY_PREFIX
from tablestore.table.table import Table
from tablestore.testing.files import CAPTURED, CapturedCall, Faults, FaultyFileStore, FileCall, SimulatedCrash
from tablestore.testing.lab import Lab
from tablestore.testing.night.lifeplan import ActorPlan, LifePlan, Step, Strike, fraction
from tablestore.testing.night.world import World
from tablestore.testing.scheduler import Scheduler

# Steps that are begun again by the next process after a death, because they are to be done once.
REPEATED = frozenset({"numbered", "messages", "consume"})
MOST_DEATHS = 8
_QUIET = frozenset({"input.read", "output.write", "output.close", "sync", "open_output", "size"})
# Most calls read, and most of what can go wrong is written.
_OFTEN = {
    "publish_if_absent": 6.0,
    "write": 4.0,
    "overwrite": 4.0,
    "delete": 2.0,
    "sync": 2.0,
    "output.write": 0.5,
    "read": 0.7,
    "list": 0.7,
}
_FAULTS = ("before", "after", "late", "denied")
_KILLS = ("kill before", "kill after", "torn")
# Kinds of refusals that may come of racing with others; anything else is a finding.
EXPECTED_KINDS = frozenset(
    {
        *(
            "branch-exists",
            "clock-skew",
            "commit-timeout",
            "conflict",
            "data-file-gone",
            "discontinuity",
            "files-gone",
            "lock-timeout",
        ),
        *("metadata-gone", "missing-columns", "moved-on", "no-space", "no-such-branch", "no-such-snapshot", "no-such-table"),
        *("no-such-tag", "not-a-fast-forward", "schema-changed", "snapshot-expired", "stale-plan", "tag-exists", "tag-in-use"),
        *("too-old",),
    }
)
# What a fault may be told as. That bytes are wrong is never true here: no fault changes a byte.
FAULT_ERRORS = (StorageError,)


class Surroundings(Protocol):
    """The life that an actor is part of."""

    plan: LifePlan
    world: World
    lab: Lab
    scheduler: Scheduler
    is_keyed: bool
    has_new_columns: bool
    named: dict[tuple[str, int, int], str]
    effects: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]]
    reads: list[tuple[str, int, list[dict[str, Any]]]]
    changed: list[tuple[int, int, list[dict[str, Any]]]]
    outcomes: Counter[str]
    committing: set[str]
    late: list[CapturedCall]

    def clock_of(self, actor: ActorPlan) -> Any:
        """The clock of an actor's host."""
        ...

    def heard(self, operation: str, snapshot: Snapshot | None, *, once: bool = False) -> None:
        """An operation was acknowledged."""
        ...

    def refused(self, operation: str, act: str, error: TablestoreError) -> None:
        """An operation ended with an error."""
        ...

    def in_doubt(self, operation: str, why: str) -> None:
        """Nobody knows how an operation ended."""
        ...

    def leap(self) -> None:
        """Let hours pass."""
        ...

    def cut_power(self) -> None:
        """End all processes, and forget what was not synced."""
        ...


class ActorFileStore(FaultyFileStore):
    """The store of an actor's process, which says who publishes before it does."""

    def __init__(self, inner: Any, faults: Faults, actor: "Actor") -> None:
        super().__init__(inner, faults)
        self._actor = actor

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        self._actor.life.world.witness.asked_for(data, self._actor.operation, path)
        return super().publish_if_absent(path, data)


@dataclass
class Actor:
    """The processes of one actor, one after the other. ``memory``: what it keeps outside of its processes."""

    life: Surroundings
    plan: ActorPlan
    acts: Mapping[str, Callable[["Actor", Any], None]]
    operation: str = ""
    table: Table | None = None
    faults: Faults = field(default_factory=Faults)
    injected: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    struck: list[Strike] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    call: int = 0
    was_struck: bool = False
    open_handles: int = 0
    _step: Step | None = None
    # The call after which the process fails, or dies.
    _fails_at: FileCall | None = None
    _dies_at: FileCall | None = None

    def run(self) -> None:
        """Takes all steps."""
        for step in self.plan.steps:
            self._step, self.operation, self.call = step, f"{self.plan.name}.{step.number}", 0
            self._do(step)
        self._end_process()

    def open(self) -> Table:
        """The handle of the process that is running; a new one where it has none."""
        if self.table is None:
            life = self.life
            self.faults = Faults()
            self.faults.before(self._before)
            self.faults.after(self._after)
            faults = self.faults
            files = life.world.open(is_dead=lambda: faults.crashed, pause=lambda path: self._between(faults, path))
            self.table = life.lab.open(ActorFileStore(files, faults, self), clock=life.clock_of(self.plan))
        return self.table

    def pause(self, what: str, *, rest: bool = False) -> None:
        """Let others go on."""
        self.life.scheduler.step(what, rest=rest)

    def _do(self, step: Step) -> None:
        life = self.life
        for _ in range(MOST_DEATHS):
            # What a step draws is the same when it is begun again: it is the same step.
            chance = life.plan.chance(self.plan.name, step.number)
            self.was_struck = False
            try:
                self.pause(step.act, rest=chance.random() < 0.5)
                self.acts[step.act](self, chance)
                life.outcomes[step.act] += 1
                return
            except SimulatedCrash:
                self._end_process()
                life.in_doubt(self.operation, "died")
                if step.act not in REPEATED:
                    return
            except CommitOutcomeUnknown:
                life.in_doubt(self.operation, "unknown")
                if step.act not in REPEATED:
                    return
            except TablestoreError as error:
                if not (error.kind in EXPECTED_KINDS or (self.was_struck and isinstance(error, FAULT_ERRORS))):
                    raise
                life.refused(self.operation, step.act, error)
                if step.act not in REPEATED:
                    return
            finally:
                life.committing.discard(self.plan.name)

    def _end_process(self) -> None:
        self.injected.update(self.faults.injected)
        self.open_handles += self.faults.open_handles if not self.faults.crashed else 0
        self.table, self.faults = None, Faults()
        self._fails_at = self._dies_at = None

    # strikes

    def _before(self, call: FileCall) -> None:
        if call.op == "publish_if_absent":
            # Its age was checked just before: from here on it takes no hours.
            self.life.committing.add(self.plan.name)
        if call.op not in _QUIET:
            self.pause(f"{call.op} {call.path}")
        if self.faults.crashed:
            raise SimulatedCrash(f"{call.op} {call.path} after the power was cut")
        self.call += 1
        kind = self._drawn(call)
        if kind is None:
            return
        if kind in _KILLS or kind == "power":
            self._die(call, kind)
        elif kind == "late":
            self.life.late.append(self.faults.capture(op=call.op))
        elif kind == "after":
            self._fails_at = call
        else:
            self._fail(call, kind)

    def _after(self, call: FileCall) -> None:
        if call.op == "publish_if_absent":
            self.life.committing.discard(self.plan.name)
        if self._fails_at is call:
            self._fail(call, "after")
        if self._dies_at is call:
            self._crash(call, "kill after")

    def _between(self, faults: Faults, path: str) -> None:
        """Between the look and the rename of a store that cannot publish."""
        if faults is self.faults:
            faults.begin("rename", path)

    def _drawn(self, call: FileCall) -> str | None:
        plan, step = self.life.plan, self._step
        assert step is not None
        if plan.strikes is not None:
            kind = self.life.named.get((self.plan.name, step.number, self.call))
            if kind is None:
                return None
        else:
            drawn = fraction(plan.seed, self.plan.name, step.number, self.call) / _OFTEN.get(call.op, 1.0)
            if drawn < plan.kill_rate:
                kind = _KILLS[int(drawn / plan.kill_rate * len(_KILLS))]
                if plan.power and drawn < plan.kill_rate / 8:
                    kind = "power"
            elif drawn < plan.kill_rate + plan.fault_rate:
                kind = _FAULTS[int((drawn - plan.kill_rate) / plan.fault_rate * len(_FAULTS))]
            else:
                return None
        if kind == "late" and call.op not in CAPTURED:
            kind = "before"
        if kind == "torn" and call.op not in ("write", "overwrite", "publish_if_absent"):
            kind = "kill before"
        self.was_struck = True
        self.struck.append(Strike(actor=self.plan.name, step=step.number, call=self.call, kind=kind))
        return kind

    def _fail(self, call: FileCall, kind: str) -> None:
        self.faults.count_fault(call, kind)
        # A publish that fails in an unclear way is "unknown" to its caller, whether it was applied or not.
        unclear = call.op == "publish_if_absent" and kind != "denied"
        raise StorageError(
            f"injected fault {kind} call {call.number}: {call.op} {call.path}; expected it, this is a test",
            kind="unknown-outcome" if unclear else "denied" if kind == "denied" else None,
        )

    def _die(self, call: FileCall, kind: str) -> None:
        if kind == "kill after":
            self._dies_at = call
            return
        if kind == "torn":
            directory, _, name = call.path.rpartition("/")
            torn = f"{TEMPORARY_PREFIX}torn-{self.operation}-{self.call}"
            self.life.world.files.overwrite(f"{directory}/{torn}" if directory else torn, name.encode())
        if kind == "power":
            self.life.cut_power()
        self._crash(call, kind)

    def _crash(self, call: FileCall, kind: str) -> None:
        self.kills[f"{call.op} {kind}"] += 1
        self.faults.crashed = True
        raise SimulatedCrash(f"{kind}: {call.op} {call.path}")
