"""Runs actors one at a time, each in a thread of its own: who goes on at a step is drawn from a seed.

    scheduler = Scheduler(random.Random(7))
    scheduler.run({"writer": write, "reader": read})       # each calls scheduler.step("...") where others may go first

An actor hands the turn on at every step; with the highest priority it keeps it. Priorities change now and then, so an actor may
sleep at any step while others go past it. The same seed and the same actors give the same trace.
"""

import random
from collections.abc import Callable
from threading import Semaphore, Thread

WAIT_S = 60
# A schedule takes some thousand calls. One that retries for ever, by the clock of the test, is a failure, not a hang.
MOST_STEPS = 50_000


class Scheduler:
    """Runs actors one at a time, in an order drawn from ``chance``."""

    def __init__(self, chance: random.Random, *, restlessness: float = 0.12) -> None:
        self._chance, self._restlessness = chance, restlessness
        self._main = Semaphore(0)
        self._turns: dict[str, Semaphore] = {}
        self._priority: dict[str, float] = {}
        # Those that have not ended, in the order in which they were begun.
        self._alive: dict[str, Thread] = {}
        self._running: str | None = None
        self._errors: list[tuple[str, BaseException]] = []
        self.trace: list[str] = []

    def step(self, what: str, *, rest: bool = False) -> None:
        """Called by the actor whose turn it is: note what it is about to do, and let the next one go on.

        ``rest``: most others go first.
        """
        actor = self._running
        if actor is None:
            return
        self.trace.append(f"{actor}: {what}")
        assert len(self.trace) < MOST_STEPS, f"after {MOST_STEPS:,} calls there is no end to it; {actor} goes on"
        if rest:
            self._priority[actor] = self._chance.random() - 0.5
        if self._chance.random() < self._restlessness:
            drawn = self._chance.choice(list(self._alive))
            self._priority[drawn] = self._chance.random()
        following = self._first()
        if following != actor:
            self._hand_to(following)
            assert self._turns[actor].acquire(timeout=WAIT_S * len(self._alive)), "the scheduler has stopped"

    def run(self, actors: dict[str, Callable[[], None]]) -> None:
        """Run all actors to their end; raises what the first failing one raised."""
        for name, act in actors.items():
            self._turns[name], self._priority[name] = Semaphore(0), self._chance.random()
            self._alive[name] = Thread(target=self._act, args=(name, act), name=name, daemon=True)
        threads = list(self._alive.values())
        for thread in threads:
            thread.start()
        self._hand_to(self._first())
        steps = -1
        while not self._main.acquire(timeout=WAIT_S):
            assert len(self.trace) > steps, f"{self._running} does not hand the turn back"
            steps = len(self.trace)
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0][1]

    def _first(self) -> str:
        return max(self._alive, key=self._priority.__getitem__)

    def _hand_to(self, actor: str) -> None:
        self._running = actor
        self._turns[actor].release()

    def _act(self, name: str, act: Callable[[], None]) -> None:
        self._turns[name].acquire()
        try:
            act()
        except BaseException as error:
            self._errors.append((name, error))
        self._running = None
        del self._alive[name]
        if self._alive:
            self._hand_to(self._first())
        else:
            self._main.release()
