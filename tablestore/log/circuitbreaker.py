"""A log that does not answer is left alone for a while.

A write never fails for its log, but it would wait for it, and so would every write after it. So once a log has not answered a
write of this process, later writes look at most every :data:`REST_S`, and shortly, whether it is back; the first that finds it
catches up. Whoever publishes on purpose (``tablestore log publish``) always tries.
"""

from collections.abc import Callable
from threading import Lock

from tablestore.clock import Clock

REST_S = 30.0
LOOK_S = 2.0


class RestingLogs:
    """The logs that did not answer lately, by the address of their table."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}
        self._lock = Lock()

    def begin(self, address: str, clock: Clock) -> None:
        """The log has not answered."""
        with self._lock:
            self._until_s[address] = clock.steady_s() + REST_S

    def rests(self, address: str, clock: Clock, answers: Callable[[float], bool]) -> bool:
        """Whether to leave the log alone. ``answers``: whether it can be reached within so many seconds, asked when it is time."""
        with self._lock:
            until_s = self._until_s.get(address)
            if until_s is None:
                return False
            if clock.steady_s() < until_s:
                return True
            # One asks, the others rest on.
            self._until_s[address] = clock.steady_s() + REST_S
        if not answers(LOOK_S):
            return True
        with self._lock:
            self._until_s.pop(address, None)
        return False
