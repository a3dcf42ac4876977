"""Time and ids that a test owns: the same seed gives the same run."""

import random
import uuid
from collections.abc import Callable
from threading import Lock


class ManualClock:
    """A clock that stands still until it is told, or until somebody sleeps on it.

    ``on_sleep`` is called with the seconds after each sleep has moved the clock: the place where a test lets
    another actor run.
    """

    def __init__(self, *, start_ms: int = 1_700_000_000_000, on_sleep: Callable[[float], None] | None = None) -> None:
        self._now_ms = start_ms
        self._steady_s = 0.0
        self._lock = Lock()
        self.on_sleep = on_sleep
        self.slept_s: list[float] = []

    def now_ms(self) -> int:
        with self._lock:
            return self._now_ms

    def steady_s(self) -> float:
        with self._lock:
            return self._steady_s

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.advance(seconds)
        if self.on_sleep is not None:
            self.on_sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Let both clocks move on."""
        with self._lock:
            self._steady_s += seconds
            self._now_ms += round(seconds * 1000)

    def set_ms(self, now_ms: int) -> None:
        """Set the wall clock, backwards too; the steady clock stays."""
        with self._lock:
            self._now_ms = now_ms


class SeededIds:
    """Ids, nonces and fractions from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = random.Random(seed)
        self._lock = Lock()

    def uuid(self) -> str:
        with self._lock:
            return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def nonce(self) -> bytes:
        with self._lock:
            while not any(value := self._random.randbytes(16)):
                pass
            return value

    def fraction(self) -> float:
        with self._lock:
            return self._random.random()
