"""A log that has not answered is left alone, asked now and then, and used again once it is back."""

import pytest

from tablestore.log.publish.circuitbreaker import PAUSE_S, PROBE_S, CircuitBreaker
from tablestore.testing.deterministic import ManualClock


class Log:
    """Says how often it was asked."""

    def __init__(self) -> None:
        self.is_up, self.asked = False, 0

    def answers(self, timeout_s: float) -> bool:
        assert timeout_s == PROBE_S
        self.asked += 1
        return self.is_up


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_a_log_that_was_never_silent_is_not_even_asked(clock: ManualClock) -> None:
    log = Log()
    assert not CircuitBreaker().is_open("a", clock, log.answers) and log.asked == 0


def test_a_silent_log_is_asked_once_after_each_pause(clock: ManualClock) -> None:
    breaker, log = CircuitBreaker(), Log()
    breaker.open("a", clock)
    for round_number in range(3):
        assert breaker.is_open("a", clock, log.answers) and log.asked == round_number
        clock.sleep(PAUSE_S)
        assert all(breaker.is_open("a", clock, log.answers) for _ in range(5)) and log.asked == round_number + 1
    assert not breaker.is_open("b", clock, log.answers)
    log.is_up = True
    assert breaker.is_open("a", clock, log.answers)
    clock.sleep(PAUSE_S)
    assert not breaker.is_open("a", clock, log.answers)
    assert not breaker.is_open("a", clock, log.answers) and log.asked == 4


def test_others_leave_it_alone_while_one_asks(clock: ManualClock) -> None:
    breaker = CircuitBreaker()
    breaker.open("a", clock)
    clock.sleep(PAUSE_S)

    def answers(_: float) -> bool:
        assert breaker.is_open("a", clock, Log().answers), "somebody else has to wait for the answer"
        return True

    assert not breaker.is_open("a", clock, answers)
