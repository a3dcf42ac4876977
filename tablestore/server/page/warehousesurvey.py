"""Keeps what was seen of each table of a warehouse for a while, so that a page of many tables looks at few of them.

    a page asks for some tables ── not seen, or long ago ──> looked at, :data:`LOOKS_A_PAGE` beside those that it shows
                                └─ seen lately ──────────> what was seen then, if its newest snapshot is the same

Where a warehouse has more tables than one page looks at, each page looks further; the page says at how many, and how long ago.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
Place = tuple[str, str]

KEPT_MS = 60_000
LOOKS_A_PAGE = 100


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """The state of one table when it was looked at. ``version``: of its data and its schema."""

    value: T
    at_ms: int
    version: Hashable


@dataclass(slots=True)
class WarehouseSurvey(Generic[T]):
    """Keeps what was seen of tables. Threads may share it: two that look at one table both see it. Memory: a value a table."""

    _seen: dict[Place, Seen[T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def seen(self, place: Place) -> Seen[T] | None:
        """The look at a table, if it was ever looked at."""
        with self._lock:
            return self._seen.get(place)

    def note(self, place: Place, seen: Seen[T]) -> None:
        """Keeps what was seen."""
        with self._lock:
            self._seen[place] = seen

    def due(self, places: Iterable[Place], now_ms: int, most: int = LOOKS_A_PAGE) -> list[Place]:
        """The tables that are to be looked at next: those that never were, then those that were longest ago."""
        with self._lock:
            ages = {place: self._seen[place].at_ms if place in self._seen else 0 for place in places}
        due = [place for place, at_ms in ages.items() if now_ms - at_ms >= KEPT_MS]
        return sorted(due, key=ages.__getitem__)[:most]

    def known(self, places: Iterable[Place]) -> Mapping[Place, Seen[T]]:
        """The looks at these tables."""
        with self._lock:
            return {place: self._seen[place] for place in places if place in self._seen}

    def look(self, places: Iterable[Place], now_ms: int, examine: Callable[[Place], object]) -> None:
        """Looks at those of these tables that are due."""
        for place in self.due(places, now_ms):
            examine(place)
