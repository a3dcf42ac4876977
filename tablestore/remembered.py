"""What pure functions of a text gave last time: who asks for the same again does not compute it again.

An object of this class belongs to one environment or engine; there is none for the whole process. Threads may share it: two that
ask for one thing at once may both compute it.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, TypeVar

MOST_RESULTS = 128
"""Results that are kept: those asked for last."""
MOST_CHARACTERS = 20_000
"""Of a text whose results are kept. What is found out of a longer one is large, and it is seldom asked for twice."""

_T = TypeVar("_T")


class Remembered:
    """Calls functions whose results follow from their arguments alone and are never changed. Arguments are compared by value."""

    def __init__(self) -> None:
        self._call = lru_cache(MOST_RESULTS)(_call)

    def __call__(self, function: Callable[..., _T], text: str, *arguments: Hashable) -> _T:
        """``function(text, *arguments)``. What it raises is not kept."""
        if len(text) > MOST_CHARACTERS:
            return function(text, *arguments)
        result: _T = self._call(function, text, *arguments)
        return result


def _call(function: Callable[..., Any], text: str, *arguments: Hashable) -> Any:
    return function(text, *arguments)
