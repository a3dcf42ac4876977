"""The circuit breaker of a log: writes leave a log alone for a while after it did not answer.

    closed ── a write found the log silent ──> open ── after PAUSE_S one write asks for PROBE_S: it answers ──> closed

A write never fails because of its log, but it would wait for it, and so would every write after it. While the circuit of a log is
open, writes leave it alone; the first write that finds it back catches up. ``tablestore log publish`` always tries.
"""

from collections.abc import Callable
from threading import Lock

from tablestore.clock import Clock

PAUSE_S = 30.0
PROBE_S = 2.0


class CircuitBreaker:
    """The logs that did not answer lately, by the address of their table. Thread-safe."""

    def __init__(self) -> None:
        self._open_until_s: dict[str, float] = {}
        self._lock = Lock()

    def open(self, address: str, clock: Clock) -> None:
        """The log has not answered."""
        with self._lock:
            self._open_until_s[address] = clock.steady_s() + PAUSE_S

    def is_open(self, address: str, clock: Clock, answers: Callable[[float], bool]) -> bool:
        """True if the log is to be left alone. ``answers(seconds)`` says whether it can be reached; it is asked when a pause
        is over."""
        with self._lock:
            until_s = self._open_until_s.get(address)
            if until_s is None:
                return False
            if clock.steady_s() < until_s:
                return True
            # One thread asks, the others see an open circuit meanwhile.
            self._open_until_s[address] = clock.steady_s() + PAUSE_S
        if not answers(PROBE_S):
            return True
        with self._lock:
            self._open_until_s.pop(address, None)
        return False
