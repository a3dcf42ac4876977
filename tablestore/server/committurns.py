"""Gives commits to one table turns: in the order in which they came, and whoever comes too late goes next.

A client reads the newest snapshot, writes its manifests, and asks for the commit. Among many the quickest would land again and
again, and the others begin anew for ever. So commits to a table are looked at one after the other. To one that is too late the
table is kept until its client has built on the newest snapshot:

    comes ── waits in line ── is looked at ─┬ landed, refused ────────────────────────────────────────> the next in line
                                            └ too late: kept for its client ─┬ which comes again ─────> looked at
                                                                             └ does not in time ──────> the next in line

How long it is kept doubles with each time that a client was too late since it landed: ``kept_s``, twice, four times, at most eight
times. So a slow client gets the time that it needs. Clients that never come again must not hold the others one after another:
after a landing the table is kept once for each of these times, the shorter before the longer, and then for nobody until the next
landing. Who is too late in its kept turn, because others commit beside the service, goes to the end of the line.

At worst, with kept turns that all pass unused:

- between two landings the table is kept for 15 ``kept_s`` in sum; for one ``kept_s`` if all clients that do not come again were
  late for the first time;
- a request waits for that long, and once more for each client before it in the line that lands, and never longer than
  ``waiting_s``: then it is looked at out of turn;
- a client whose attempts take up to 8 ``kept_s`` lands in its fifth attempt at latest, unless another one has been late as often,
  has missed its kept turn of 8 ``kept_s`` and nothing has landed since, or others commit beside the service.

One that waits holds no thread. Nothing relies on turns: what decides is the store.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

KEPT_S = 1.0
WAITING_S = 20.0
_MOST_WAITING = 1_000
_MOST_REMEMBERED = 10_000
_MOST_LATE = 4


@dataclass(slots=True, eq=False)
class Turn:
    """The turn of one request, which ends once."""

    turns: "CommitTurns"
    table: Hashable
    caller: Hashable
    has_come: anyio.Event = field(default_factory=anyio.Event)
    is_kept: bool = False
    is_over: bool = False

    def landed(self) -> None:
        """Ends the turn of a commit that has landed: its caller is late no more."""
        if not self.is_over:
            self.turns.landed(self)
            self.end()

    def end(self, *, is_late: bool = False) -> None:
        """Lets the next one go; or keeps the table for the caller, which was too late."""
        if not self.is_over:
            self.is_over = True
            self.turns.ended(self, is_late=is_late)


@dataclass(slots=True)
class _Line:
    """The commits to one table. ``current``: the one that is looked at; ``kept``: one that was late, and is waited for; ``spent``:
    how often that one, or the last one before it since a landing, had been late."""

    waiting: deque[Turn] = field(default_factory=deque)
    current: Turn | None = None
    kept: Turn | None = None
    spent: int = 0


@dataclass(slots=True, kw_only=True)
class CommitTurns:
    """The lines of all tables. Used by the thread of the event loop alone.

    ``kept_s``: seconds for a caller that is late for the first time. ``waiting_s``: seconds that one waits at most.
    """

    kept_s: float = KEPT_S
    waiting_s: float = WAITING_S
    _lines: dict[Hashable, _Line] = field(default_factory=dict)
    # How often a caller was late since it landed. Those that were late last are remembered.
    _late: dict[tuple[Hashable, Hashable], int] = field(default_factory=dict)
    _is_open: bool = False

    @asynccontextmanager
    async def turn(self, table: Hashable, caller: Hashable) -> AsyncIterator[Turn]:
        """Waits for the turn of a caller; it ends with the block, if it has not ended before."""
        turn = Turn(self, table, caller)
        try:
            await self._wait(turn)
            yield turn
        finally:
            turn.end()

    def waiting(self, table: Hashable) -> int:
        """The number of those who wait."""
        line = self._lines.get(table)
        return 0 if line is None else len(line.waiting)

    def open(self) -> None:
        """Lets all go at once, from now on: the service ends."""
        self._is_open = True
        for line in self._lines.values():
            for turn in line.waiting:
                turn.has_come.set()
        self._lines.clear()

    async def _wait(self, turn: Turn) -> None:
        line = self._lines.get(turn.table) or _Line()
        if self._is_open or len(line.waiting) >= _MOST_WAITING:
            return
        self._lines[turn.table] = line
        if line.current is None and (line.kept is None or line.kept.caller == turn.caller):
            turn.is_kept = line.kept is not None
            line.current, line.kept = turn, None
            return
        line.waiting.append(turn)
        try:
            with anyio.move_on_after(self.waiting_s):
                await turn.has_come.wait()
        finally:
            # Else it has waited for too long.
            if turn in line.waiting:
                line.waiting.remove(turn)

    def landed(self, turn: Turn) -> None:
        """A commit has landed, in its turn or out of it; called by its turn."""
        self._late.pop((turn.table, turn.caller), None)
        if (line := self._lines.get(turn.table)) is not None:
            line.spent = 0

    def ended(self, turn: Turn, *, is_late: bool) -> None:
        """A turn has ended; called by itself."""
        late = self._late_again(turn) if is_late else 0
        line = self._lines.get(turn.table)
        if line is None or line.current is not turn:
            return
        line.current = None
        if late > line.spent and not turn.is_kept and self.kept_s > 0:
            line.kept, line.spent = turn, late
            asyncio.get_running_loop().call_later(self.kept_s * 2 ** (late - 1), self._give_up, turn)
        else:
            self._next(turn.table, line)

    def _late_again(self, turn: Turn) -> int:
        """The number of times that the caller was late since it landed, at most that of the longest time."""
        key = turn.table, turn.caller
        late = min(self._late.pop(key, 0) + 1, _MOST_LATE)
        self._late[key] = late
        if len(self._late) > _MOST_REMEMBERED:
            del self._late[next(iter(self._late))]
        return late

    def _give_up(self, turn: Turn) -> None:
        """The caller that the table was kept for has not come in time."""
        line = self._lines.get(turn.table)
        if line is not None and line.kept is turn:
            line.kept = None
            self._next(turn.table, line)

    def _next(self, table: Hashable, line: _Line) -> None:
        if line.waiting:
            line.current = line.waiting.popleft()
            line.current.has_come.set()
        else:
            del self._lines[table]
