"""A dedicated compactor: works while there is something to do, waits while there is not.

    open the table anew -> compact what is due -> tell -> nothing was due: wait -> again, until told to stop

Beside it writers may be ``write-only``. Several services on one table are safe: who loses a race drops its work.
"""

from collections.abc import Callable

from tablestore.clock import Clock
from tablestore.errors import ConflictError, StorageError
from tablestore.table.compact import CompactReport
from tablestore.table.table import Table

# A wait is made of pieces, so that a request to stop is heard soon.
_LONGEST_WAIT_S = 1.0
# After so many errors in a row the service gives up and raises the last one.
_MOST_ERRORS = 5

Tell = Callable[[CompactReport], object]


def run_compact_service(
    table: Table, *, clock: Clock, stop: Callable[[], bool], interval_s: float = 10.0, full: bool = False, tell: Tell | None = None
) -> CompactReport:
    """Compact ``table`` until ``stop()`` is true; returns the sum of what was done.

    ``tell`` gets the report of each round that did something. Between rounds that found nothing lie ``interval_s`` seconds.
    A store that fails and a race that is lost are tried again, five times in a row at most; other errors are raised at once.
    """
    total = CompactReport()
    errors = 0
    while not stop():
        try:
            report = table.refresh().compact(full=full)
        except (StorageError, ConflictError):
            errors += 1
            if errors >= _MOST_ERRORS:
                raise
            _wait(clock, interval_s, stop)
            continue
        errors = 0
        total += report
        if report.tasks and tell is not None:
            tell(report)
        if not report.tasks:
            _wait(clock, interval_s, stop)
    return total


def _wait(clock: Clock, seconds: float, stop: Callable[[], bool]) -> None:
    end_s = clock.steady_s() + seconds
    while not stop() and (left := end_s - clock.steady_s()) > 0:
        clock.sleep(min(left, _LONGEST_WAIT_S))
