"""Memo tables: results that were computed lately, by their arguments, in least-recently-used order.

:class:`Memo` is for pure functions of a text, :class:`RecentlyUsed` for values of which some are large.

An object of these classes belongs to one environment, engine or session; there is none for the whole process. Threads may share it:
two that ask for one thing at once may both compute it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, TypeVar

MOST_RESULTS = 128
"""Results that are kept: those asked for last."""
MOST_CHARACTERS = 20_000
"""Of a text whose results are kept. What is found out of a longer one is large, and it is seldom asked for twice."""

_T = TypeVar("_T")


class Memo:
    """Calls functions whose results follow from their arguments alone and are never changed. Arguments are compared by value."""

    def __init__(self) -> None:
        self._call = lru_cache(MOST_RESULTS)(_call)

    def __call__(self, function: Callable[..., _T], text: str, *arguments: Hashable) -> _T:
        """``function(text, *arguments)``. What it raises is not kept."""
        if len(text) > MOST_CHARACTERS:
            return function(text, *arguments)
        result: _T = self._call(function, text, *arguments)
        return result


class RecentlyUsed(Generic[_T]):
    """A least-recently-used cache of at most ``most`` values, which weigh at most ``most_weight`` together."""

    def __init__(self, weigh: Callable[[_T], int], *, most: int, most_weight: int) -> None:
        self._weigh, self._most, self._most_weight = weigh, most, most_weight
        self._values: OrderedDict[Hashable, _T] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def __len__(self) -> int:
        """The number of values that are kept."""
        return len(self._values)

    def get(self, key: Hashable) -> _T | None:
        """The value of a key, None if there is none."""
        with self._lock:
            return self._values.get(key)

    def find(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The value that ``make`` made when it was first asked for by this key, or makes now. What it raises is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        weight = self._weigh(value)
        with self._lock:
            if key not in self._values and weight <= self._most_weight:
                self._values[key] = value
                self._weight += weight
            while self._weight > self._most_weight or len(self._values) > self._most:
                self._weight -= self._weigh(self._values.popitem(last=False)[1])
        return value


def _call(function: Callable[..., Any], text: str, *arguments: Hashable) -> Any:
    return function(text, *arguments)
