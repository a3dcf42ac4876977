"""Repeats requests to remote stores, with doubling waits and jitter from the ids and on the clock that are handed in.

Each store says how often it tries.
"""

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from tablestore.clock import Clock
from tablestore.ids import Ids

T = TypeVar("T")

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0


def retried(
    run: Callable[[], T],
    *,
    is_transient: Callable[[BaseException], bool],
    clock: Clock,
    ids: Ids,
    attempts: int,
) -> T:
    """The result of ``run``, which is called at most ``attempts`` times, while its error is transient; the last error is raised as
    it is."""

    def wait(state: RetryCallState) -> float:
        longest = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1))
        return longest * (0.5 + 0.5 * ids.fraction())

    retrying = Retrying(
        stop=stop_after_attempt(attempts),
        wait=wait,
        sleep=clock.sleep,
        retry=retry_if_exception(is_transient),
        reraise=True,
    )
    return retrying(run)
