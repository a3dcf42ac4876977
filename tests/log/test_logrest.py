"""A log that has not answered is left alone, looked at now and then, and used again once it is back."""

import pytest

from tablestore.log.circuitbreaker import LOOK_S, REST_S, RestingLogs
from tablestore.testing.deterministic import ManualClock


class Log:
    """Says how often it was asked."""

    def __init__(self) -> None:
        self.is_up, self.asked = False, 0

    def answers(self, timeout_s: float) -> bool:
        assert timeout_s == LOOK_S
        self.asked += 1
        return self.is_up


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_a_log_that_was_never_silent_is_not_even_asked(clock: ManualClock) -> None:
    log = Log()
    assert not RestingLogs().rests("a", clock, log.answers) and log.asked == 0


def test_a_silent_log_is_asked_once_each_time_its_rest_is_over(clock: ManualClock) -> None:
    resting, log = RestingLogs(), Log()
    resting.begin("a", clock)
    for round_number in range(3):
        assert resting.rests("a", clock, log.answers) and log.asked == round_number
        clock.sleep(REST_S)
        assert all(resting.rests("a", clock, log.answers) for _ in range(5)) and log.asked == round_number + 1
    assert not resting.rests("b", clock, log.answers)
    log.is_up = True
    assert resting.rests("a", clock, log.answers)
    clock.sleep(REST_S)
    assert not resting.rests("a", clock, log.answers)
    assert not resting.rests("a", clock, log.answers) and log.asked == 4


def test_others_rest_on_while_one_asks(clock: ManualClock) -> None:
    resting = RestingLogs()
    resting.begin("a", clock)
    clock.sleep(REST_S)

    def answers(_: float) -> bool:
        assert resting.rests("a", clock, Log().answers), "somebody else has to wait for the answer"
        return True

    assert not resting.rests("a", clock, answers)
