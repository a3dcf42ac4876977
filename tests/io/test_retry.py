"""Repetition is bounded, waits longer each time, and sleeps on the clock that it is handed."""

import pytest

from tablestore.io.retry import retried
from tablestore.testing.deterministic import ManualClock, SeededIds


class Flaky:
    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise OSError(f"failure {self.calls}")
        return "done"


def test_a_transient_error_is_repeated_with_growing_waits() -> None:
    clock, flaky = ManualClock(), Flaky(4)
    assert retried(flaky, is_transient=lambda error: True, clock=clock, ids=SeededIds(7), attempts=5) == "done"
    assert flaky.calls == 5
    bounds = zip(clock.slept_s, (0.1, 0.2, 0.4, 0.8), strict=True)
    assert all(0.5 * longest <= waited <= longest for waited, longest in bounds)
    assert clock.slept_s == sorted(clock.slept_s)


def test_the_last_error_is_raised_as_it_is() -> None:
    clock, flaky = ManualClock(), Flaky(1000)
    with pytest.raises(OSError, match=r"failure 5$"):
        retried(flaky, is_transient=lambda error: True, clock=clock, ids=SeededIds(7), attempts=5)
    assert len(clock.slept_s) == 4


def test_an_error_that_is_not_transient_is_not_repeated() -> None:
    clock, flaky = ManualClock(), Flaky(1)
    with pytest.raises(OSError, match="failure 1"):
        retried(flaky, is_transient=lambda error: False, clock=clock, ids=SeededIds(7), attempts=5)
    assert clock.slept_s == []


def test_waits_are_those_of_the_seed() -> None:
    waits = []
    for _ in range(2):
        clock = ManualClock()
        retried(Flaky(3), is_transient=lambda error: True, clock=clock, ids=SeededIds(3), attempts=5)
        waits.append(clock.slept_s)
    assert waits[0] == waits[1]
