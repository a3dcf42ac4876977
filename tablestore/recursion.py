"""Makes room on Python's stack for deeply nested text: sqlglot takes about thirty frames for a level of parentheses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_FRAMES = 20_000


class _Room:
    """Python's recursion limit belongs to the process: it is raised while anyone needs it, and put back by the last one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, _FRAMES))

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setrecursionlimit(self._before)


_ROOM = _Room()


@contextmanager
def deep_stack() -> Iterator[None]:
    """Calls from inside may be nested thousands of frames deep. Raises RecursionError where even that is not enough."""
    _ROOM.enter()
    try:
        yield
    finally:
        _ROOM.leave()
