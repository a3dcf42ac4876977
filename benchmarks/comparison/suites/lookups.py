"""Looks up rows by their keys in the tables that were upserted into, compacted where the system can."""

import numpy as np

from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.suites.upserted import TABLE, is_floor, upserted

_MANY = 1_000


def _run(session: Session) -> None:
    expected = upserted(session, "one key")
    draw = np.random.default_rng(session.sizes.table_rows)
    live = len(expected.live)
    batches = {"one key": 1, f"{_MANY:,} keys": min(_MANY, live)}
    newest = session.rows.newest(f"{session.sizes.table_rows}-{max(session.sizes.read_after)}", expected)
    for installed in session.taking_part():
        if is_floor(installed):
            session.do(installed, "one key", "load", name="newest", path=str(newest))
            session.do(installed, "one key", "create", table="looked_up", rows="newest", changes=False)
            session.do(installed, "one key", "append", table="looked_up", rows="newest")
    for case, count in batches.items():
        for turn in range(session.sizes.lookups + 1):
            keys = [int(key) for key in draw.choice(live, count, replace=False)]
            for installed in session.taking_part():
                table = "looked_up" if is_floor(installed) else TABLE
                if turn == 0:
                    session.do(installed, case, "lookup", table=table, keys=keys)
                else:
                    session.take(installed, case, "lookup", expected=expected.sums(keys=keys), table=table, keys=keys)


SUITE = Suite(
    name="lookups",
    title="Look-ups by key",
    question="How long does it take a process to find one row, or a thousand, by key, the table opened anew each time?",
    run=_run,
)
