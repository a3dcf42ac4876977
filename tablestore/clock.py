"""Clocks: the only source of time. Code that needs the time is handed a :class:`Clock`."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall clock, steady clock and sleep, so that tests own all three."""

    def now_ms(self) -> int:
        """Wall-clock time as milliseconds since the epoch, UTC."""
        ...

    def steady_s(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
