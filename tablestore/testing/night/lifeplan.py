"""A short life of a table as a value: the actors, their steps, and the faults that strike them, all drawn from one seed.

    plan = draw_plan(7)                      the same for 7, always
    plan.to_json(), LifePlan.of_json(text)   as a finding prints it

A step draws what it needs from the seed and its own number, and so does a strike: a plan from which others were taken away does the
same in what is left.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b

STORES = ("memory", "local", "conditional", "renaming")
TABLES = ("append", "append-vectors", "keyed", "keyed-eager", "dynamic", "vectors", "lookup")
UNSETTLED = frozenset({"vectors", "lookup"})
"""Tables whose rows are seen once a compaction has taken them."""

WRITES = {"write": 6, "flushes": 2, "numbered": 3, "messages": 2, "delete": 2, "update": 1, "overwrite": 1}
KEYED_WRITES = {"delete keys": 1, "some columns": 1}
UPKEEP = {"compact": 3, "expire": 3, "clean": 3, "compact manifests": 1}
KEEPING = {
    "tag": 4,
    "delete tag": 2,
    "rename tag": 1,
    "roll back": 1,
    "branch": 2,
    "write branch": 3,
    "fast-forward": 1,
    "delete branch": 1,
}
READS = {"scan": 3, "read slowly": 2, "consume": 5, "read tag": 1, "changes": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that an actor does."""

    number: int
    act: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorPlan:
    """A process, begun again after each death. ``skew_s``: how far its clock is ahead."""

    name: str
    skew_s: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A fault at the ``call``-th call of a step: ``before``, ``after``, ``late``, ``denied``, ``kill before``, ``kill after``,
    ``torn``, ``power``."""

    actor: str
    step: int
    call: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LifePlan:
    """One life. ``strikes`` None: they are drawn, at ``fault_rate`` and ``kill_rate`` for each call. ``turns``: the seed of whose
    turn it is; ``power``: it may be cut; ``room_bytes``: of its disk, 0 where there is enough."""

    seed: int
    store: str
    table: str
    options: tuple[tuple[str, str], ...]
    actors: tuple[ActorPlan, ...]
    turns: int
    restlessness: float
    fault_rate: float
    kill_rate: float
    power: bool = False
    room_bytes: int = 0
    strikes: tuple[Strike, ...] | None = None

    def to_json(self) -> str:
        """As text, in one line."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def of_json(cls, text: str) -> "LifePlan":
        """From the text of :meth:`to_json`."""
        content = json.loads(text)
        actors = tuple(
            ActorPlan(name=actor["name"], skew_s=actor["skew_s"], steps=tuple(Step(**step) for step in actor["steps"]))
            for actor in content["actors"]
        )
        strikes = None if content["strikes"] is None else tuple(Strike(**strike) for strike in content["strikes"])
        options = tuple((key, value) for key, value in content["options"])
        return cls(**{**content, "actors": actors, "strikes": strikes, "options": options})

    @property
    def steps(self) -> int:
        """The number of steps of its actors."""
        return sum(len(actor.steps) for actor in self.actors)

    def chance(self, *what: object) -> random.Random:
        """Chance for one purpose, which depends on no other."""
        return random.Random(fraction(self.seed, *what))


def fraction(*what: object) -> float:
    """A number from 0 to 1, always the same for the same values."""
    digest = blake2b("/".join(map(str, what)).encode(), digest_size=7).digest()
    return int.from_bytes(digest) / (1 << 56)


def draw_plan(seed: int, *, stores: Sequence[str] = STORES, power: bool = False, room_bytes: int = 0) -> LifePlan:
    """The life of a seed."""
    chance = random.Random(seed)
    table = chance.choice(TABLES)
    is_keyed = not table.startswith("append")
    # Branches have schemas of their own: a life has either them or new columns on the way.
    has_branches = chance.random() < 0.5
    writes = {**WRITES, **(KEYED_WRITES if is_keyed else {}), **({} if has_branches else {"add column": 1})}
    actors = [_drawn(chance, f"writer{n}", writes, 2 + chance.randrange(5)) for n in range(1 + chance.randrange(3))]
    actors.append(_drawn(chance, "upkeep1", UPKEEP, 2 + chance.randrange(5)))
    if chance.random() < 0.5:
        actors.append(_drawn(chance, "upkeep2", UPKEEP, 1 + chance.randrange(4)))
    if has_branches:
        actors.append(_drawn(chance, "keeper", KEEPING, 2 + chance.randrange(6)))
    actors.append(_drawn(chance, "reader1", READS, 2 + chance.randrange(5)))
    if chance.random() < 0.3:
        actors.append(_drawn(chance, "reader2", READS, 1 + chance.randrange(4)))
    actors.append(_drawn(chance, "time", {"leap": 1}, chance.randrange(7), skew_s=0))
    options = {"manifest.merge-min-count": str(chance.choice((2, 3, 30)))}
    # Leaps of hours are mostly not what a commit gives up for.
    options["commit.timeout"] = chance.choice(("1000 h", "1000 h", "1 min"))
    if chance.random() < 0.2:
        options["target-file-size"] = "1 kb"
    return LifePlan(
        seed=seed,
        store=chance.choice(list(stores)),
        table=table,
        options=tuple(options.items()),
        actors=tuple(actors),
        turns=seed,
        restlessness=chance.choice((0.02, 0.1, 0.25)),
        fault_rate=chance.choice((0.0, 0.01, 0.04, 0.08)),
        kill_rate=chance.choice((0.0, 0.004, 0.01, 0.02)),
        power=power,
        room_bytes=room_bytes,
    )


def _drawn(chance: random.Random, name: str, acts: dict[str, int], steps: int, *, skew_s: int | None = None) -> ActorPlan:
    drawn = chance.choices(list(acts), list(acts.values()), k=steps)
    # Some clocks are further ahead than a removal by age allows.
    skew = chance.choice((0, 0, 0, -600, 300, 3600)) if skew_s is None else skew_s
    return ActorPlan(name=name, skew_s=skew, steps=tuple(Step(number=n, act=act) for n, act in enumerate(drawn)))


def without(
    plan: LifePlan, *, actors: Sequence[str] = (), steps: Sequence[tuple[str, int]] = (), strikes: Sequence[Strike] = ()
) -> LifePlan:
    """The plan without these actors, steps (actor and number) and strikes; an actor without steps goes too."""
    kept = [
        replace(actor, steps=tuple(step for step in actor.steps if (actor.name, step.number) not in steps))
        for actor in plan.actors
        if actor.name not in actors
    ]
    names = {(actor.name, step.number) for actor in kept for step in actor.steps}
    left = None if plan.strikes is None else tuple(s for s in plan.strikes if s not in strikes and (s.actor, s.step) in names)
    return replace(plan, actors=tuple(actor for actor in kept if actor.steps), strikes=left)
