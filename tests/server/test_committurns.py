"""Commits to one table come in turns: first come, first served, and whoever was too late goes next. No test waits for a time."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import tablestore as ts
from tablestore.server.committurns import CommitTurns
from tests.server.test_commits import COMMIT, fresh, prepared, request
from tests.support.served import Served, ids_of, orders, rows

LONG_S = 3_600.0


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
    assert waiting.result(30) == {"success": False}
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
