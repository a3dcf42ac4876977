"""Commits to one table come in turns: first come, first served, and whoever was too late goes next. No test waits for a time:
simulations run on a loop whose clock jumps to the next timer."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest

import tablestore as ts
from tablestore.server.committurns import CommitTurns
from tests.server.test_commits import COMMIT, fresh, prepared, request
from tests.support.served import Served, ids_of, orders, rows

LONG_S = 3_600.0
TURN = "databases/shop/tables/orders/commit-turn"


def run(steps: Callable[[CommitTurns], Awaitable[None]], *, kept_s: float = LONG_S, waiting_s: float = LONG_S) -> None:
    async def all_steps() -> None:
        await asyncio.wait_for(steps(CommitTurns(kept_s=kept_s, waiting_s=waiting_s)), 60)

    asyncio.run(all_steps())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0)


def has_come(turns: CommitTurns, seen: list[str], number: int) -> bool:
    """True if the caller of this number is in its turn, or waits for it."""
    return turns.waiting("t") == number and bool(seen)


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for nothing: its clock jumps to the time until which the loop would sleep."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now_s += timeout or 0.0
        return super().select(0)


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


class Race:
    """Clients that build on the newest snapshot and commit, on a clock of its own. ``landed``: how often each; ``waits_s``: the
    longest time in the line; ``attempts``: the most until one landed."""

    def __init__(self, **times_s: float) -> None:
        self.turns = CommitTurns(**times_s)
        self.snapshot = 0
        self.landed: dict[str, int] = {}
        self.waits_s: dict[str, float] = {}
        self.attempts: dict[str, int] = {}

    def run(self, *clients: Callable[[], Awaitable[None]]) -> None:
        async def all_clients() -> None:
            async with anyio.create_task_group() as group:
                for client in clients:
                    group.start_soon(client)

        with asyncio.Runner(loop_factory=_JumpingLoop) as runner:
            runner.run(all_clients())

    async def client(self, name: str, *, takes_s: float, until_s: float, begins_s: float = 0.0) -> None:
        await anyio.sleep(begins_s)
        tries = 0
        while anyio.current_time() < until_s:
            base = self.snapshot
            await anyio.sleep(takes_s)
            tries = 0 if await self.commit(name, base) else tries + 1
            self.attempts[name] = max(self.attempts.get(name, 0), tries + 1)

    async def commit(self, name: str, base: int) -> bool:
        came_s = anyio.current_time()
        async with self.turns.turn("t", name) as turn:
            self.waits_s[name] = max(self.waits_s.get(name, 0.0), anyio.current_time() - came_s)
            await anyio.sleep(0.002)
            if base == self.snapshot:
                self.snapshot += 1
                self.landed[name] = self.landed.get(name, 0) + 1
                turn.landed()
                return True
            turn.end(is_late=True)
            return False

    async def dead(self, name: str, *, begins_s: float = 0.0) -> None:
        """A client that is late and does not come again."""
        await anyio.sleep(begins_s)
        await self.commit(name, -1)

    async def stubborn(self, name: str, *, until_s: float) -> None:
        """A client that is late on purpose, again and again, as soon as its kept turn has passed."""
        while anyio.current_time() < until_s:
            await self.commit(name, -1)
            await anyio.sleep(8.1)


class Caller:
    """A caller that comes, and does what it is told to in its turn."""

    def __init__(self, turns: CommitTurns, name: str, seen: list[str], *, is_late: bool = False) -> None:
        self._turns, self._name, self._seen, self._is_late = turns, name, seen, is_late
        self.may_end = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._come())

    async def _come(self) -> None:
        async with self._turns.turn("t", self._name) as turn:
            self._seen.append(self._name)
            await self.may_end.wait()
            turn.end(is_late=self._is_late)

    async def end(self) -> None:
        self.may_end.set()
        await self.task


def test_commits_to_a_table_are_looked_at_one_after_the_other_in_their_order() -> None:
    async def steps(turns: CommitTurns) -> None:
        seen: list[str] = []
        callers = []
        for number, name in enumerate("abcd"):
            callers.append(Caller(turns, name, seen))
            await until(partial(has_come, turns, seen, number))
        for number, caller in enumerate(callers):
            assert "".join(seen) == "abcd"[: number + 1]
            await caller.end()
        assert "".join(seen) == "abcd"
        # Other tables have lines of their own, and an empty line is no line.
        async with turns.turn("t", "e"), turns.turn("u", "e"):
            pass
        assert not turns._lines

    run(steps)


def test_a_table_is_kept_for_the_caller_that_was_too_late_and_nobody_comes_in_between() -> None:
    async def steps(turns: CommitTurns) -> None:
        seen: list[str] = []
        first = Caller(turns, "slow", seen, is_late=True)
        await until(lambda: seen == ["slow"])
        others = [Caller(turns, name, seen) for name in ("quick", "quicker")]
        await until(lambda: turns.waiting("t") == 2)
        await first.end()
        assert seen == ["slow"]
        again = Caller(turns, "slow", seen)
        await until(lambda: seen == ["slow", "slow"])
        await again.end()
        await until(lambda: len(seen) == 3)
        for one in others:
            await one.end()
        assert seen == ["slow", "slow", "quick", "quicker"]

    run(steps)


def test_who_is_too_late_twice_goes_to_the_end_of_the_line() -> None:
    async def steps(turns: CommitTurns) -> None:
        seen: list[str] = []
        first = Caller(turns, "a", seen, is_late=True)
        await until(lambda: seen == ["a"])
        other = Caller(turns, "b", seen)
        await until(lambda: turns.waiting("t") == 1)
        await first.end()
        await Caller(turns, "a", seen, is_late=True).end()
        third = Caller(turns, "a", seen)
        await until(lambda: turns.waiting("t") == 1)
        assert seen == ["a", "a", "b"]
        await other.end()
        await third.end()
        assert seen == ["a", "a", "b", "a"]

    run(steps)


def test_a_caller_that_does_not_come_again_holds_the_others_for_a_while_only() -> None:
    async def steps(turns: CommitTurns) -> None:
        seen: list[str] = []
        gone = Caller(turns, "gone", seen, is_late=True)
        await until(lambda: seen == ["gone"])
        other = Caller(turns, "other", seen)
        await gone.end()
        await other.end()
        assert seen == ["gone", "other"]
        assert not turns._lines

    run(steps, kept_s=0.01)


@pytest.mark.parametrize("takes", [0.5, 1.6, 3.0, 7.5])
def test_a_slow_client_lands_beside_quick_ones(takes: float) -> None:
    race = Race(kept_s=1.0, waiting_s=20.0)
    slow = partial(race.client, "slow", takes_s=takes, until_s=200.0)
    race.run(slow, *(partial(race.client, f"quick{number}", takes_s=0.05, until_s=200.0) for number in range(4)))
    assert race.attempts["slow"] <= 5
    # Of each of its landings it is late five times at most, and kept for longer than it needs once.
    assert race.landed["slow"] >= 200.0 / (6 * takes + 1)


def test_slow_clients_land_beside_one_another() -> None:
    race = Race(kept_s=1.0, waiting_s=20.0)
    times_s = (1.6, 1.6, 3.5, 7.0)
    slow = [partial(race.client, f"slow{number}", takes_s=takes, until_s=200.0) for number, takes in enumerate(times_s)]
    race.run(*slow, *(partial(race.client, f"quick{number}", takes_s=0.05, until_s=200.0) for number in range(3)))
    assert len(race.landed) == 7
    assert min(race.landed.values()) >= 4


def test_many_clients_that_die_hold_the_others_once() -> None:
    race = Race(kept_s=1.0, waiting_s=3_600.0)

    async def honest() -> None:
        await anyio.sleep(0.001)
        assert await race.commit("honest", race.snapshot)

    race.run(*(partial(race.dead, f"dead{number}") for number in range(200)), honest)
    assert race.waits_s["honest"] < 1.0 + 201 * 0.002 + 0.1


def test_clients_that_are_late_on_purpose_hold_the_others_for_a_bounded_time() -> None:
    race = Race(kept_s=1.0, waiting_s=3_600.0)
    stubborn = [partial(race.stubborn, f"stubborn{number}", until_s=200.0) for number in range(30)]
    race.run(*stubborn, partial(race.client, "honest", takes_s=0.05, until_s=200.0, begins_s=60.0))
    # Nobody else lands, so that it waits for what the table is kept between two landings.
    assert race.waits_s["honest"] <= 15.0 + 31 * 0.002 + 0.1
    assert race.landed["honest"] >= 6


def test_late_callers_are_forgotten_as_they_land_and_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablestore.server.committurns._MOST_REMEMBERED", 10)
    race = Race(kept_s=1.0, waiting_s=3_600.0)

    async def late_then_landed() -> None:
        await anyio.sleep(5.0)
        assert not await race.commit("honest", -1)
        assert race.turns._late == {**{("t", f"dead{number}"): 1 for number in range(11, 20)}, ("t", "honest"): 1}
        assert await race.commit("honest", race.snapshot)
        assert ("t", "honest") not in race.turns._late

    race.run(*(partial(race.dead, f"dead{number}") for number in range(20)), late_then_landed)
    assert not race.turns._lines


def test_who_has_waited_for_too_long_is_looked_at_out_of_turn() -> None:
    async def steps(turns: CommitTurns) -> None:
        seen: list[str] = []
        first = Caller(turns, "a", seen)
        await until(lambda: seen == ["a"])
        await Caller(turns, "b", seen).end()
        assert seen == ["a", "b"]
        await first.end()
        assert not turns._lines

    run(steps, waiting_s=0.01)


def test_who_leaves_while_it_waits_or_in_its_turn_holds_nobody() -> None:
    async def steps(turns: CommitTurns) -> None:
        seen: list[str] = []
        first = Caller(turns, "a", seen)
        await until(lambda: seen == ["a"])
        second, third = Caller(turns, "b", seen), Caller(turns, "c", seen)
        await until(lambda: turns.waiting("t") == 2)
        second.task.cancel()
        await until(lambda: turns.waiting("t") == 1)
        first.task.cancel()
        await third.end()
        assert seen == ["a", "c"]
        assert not turns._lines

    run(steps)


def test_a_service_that_ends_lets_all_go() -> None:
    async def steps(turns: CommitTurns) -> None:
        seen: list[str] = []
        callers = [Caller(turns, name, seen) for name in "abc"]
        await until(lambda: turns.waiting("t") == 2)
        turns.open()
        callers.append(Caller(turns, "d", seen))
        await until(lambda: len(seen) == 4)
        for caller in callers:
            await caller.end()
        assert not turns._lines

    run(steps)


def test_the_loser_of_a_race_lands_next_though_others_come_before_it(served: Served) -> None:
    served.application.turns.kept_s = LONG_S
    table = orders(served.catalog)
    early, late = prepared(table, rows(1), commitUser="early"), prepared(table, rows(2), commitUser="late")
    assert served.ok("POST", COMMIT, request(table, early)) == {"success": True}
    assert served.ok("POST", COMMIT, request(table, late)) == {"success": False}
    third, again = (prepared(fresh(served), rows(number), commitUser=user) for number, user in ((3, "third"), (2, "late")))
    assert served.client.portal is not None
    waiting = served.client.portal.start_task_soon(_sent, served, request(table, third))
    while not served.application.turns.waiting(("shop", "orders")):
        pass
    assert served.ok("POST", COMMIT, request(table, again)) == {"success": True}
    # Who has landed is late no more; the third one is.
    assert waiting.result(30) == {"success": False}
    assert [caller for _, (_, caller) in served.application.turns._late] == ["third"]
    assert ids_of(fresh(served)) == [1, 2]


async def _sent(served: Served, body: object) -> object:
    return await asyncio.to_thread(lambda: served.ok("POST", COMMIT, body))


def test_a_commit_beside_the_service_lands_while_a_turn_is_kept(served: Served) -> None:
    served.application.turns.kept_s = LONG_S
    table = orders(served.catalog)
    late = prepared(table, rows(1), commitUser="late")
    table.upsert(rows(2))
    assert served.ok("POST", COMMIT, request(table, late)) == {"success": False}
    ts.open_table(table.location).upsert(rows(3))
    assert served.ok("POST", COMMIT, request(table, prepared(fresh(served), rows(1), commitUser="late"))) == {"success": True}
    assert ids_of(fresh(served)) == [1, 2, 3]


def test_who_may_not_commit_takes_nobodys_turn(served: Served) -> None:
    served.application.turns.kept_s = LONG_S
    table = orders(served.catalog)
    late = prepared(table, rows(1), commitUser="late")
    table.upsert(rows(2))
    assert served.ok("POST", COMMIT, request(table, late)) == {"success": False}
    # They would wait for an hour.
    served.refused(403, "POST", COMMIT, request(table, late), who="reader")
    served.refused(404, "POST", COMMIT, request(table, late), who="nobody")
    served.refused(401, "POST", COMMIT, request(table, late), who="stranger")
    served.refused(400, "POST", COMMIT, {"snapshot": 3})


def test_a_client_that_waits_for_its_turn_first_lands_what_it_builds_then(served: Served) -> None:
    served.application.turns.kept_s = LONG_S
    table = orders(served.catalog)
    first = {"snapshot": {"commitUser": "first"}}
    assert served.ok("POST", TURN, first) == {"waited": False}
    other = prepared(table, rows(1), commitUser="other")
    assert served.client.portal is not None
    waiting = served.client.portal.start_task_soon(_sent, served, request(table, other))
    while not served.application.turns.waiting(("shop", "orders")):
        pass
    assert served.ok("POST", COMMIT, request(table, prepared(fresh(served), rows(2), commitUser="first"))) == {"success": True}
    assert waiting.result(30) == {"success": False}
    assert ids_of(fresh(served)) == [2]
    # Now the table is kept for the other one, who was too late: this one waits.
    waiting = served.client.portal.start_task_soon(_asked, served, first)
    while not served.application.turns.waiting(("shop", "orders")):
        pass
    assert served.ok("POST", COMMIT, request(table, prepared(fresh(served), rows(1), commitUser="other"))) == {"success": True}
    assert waiting.result(30) == {"waited": True}


async def _asked(served: Served, body: object) -> object:
    return await asyncio.to_thread(lambda: served.ok("POST", TURN, body))
