"""Compacts fully the tables that were upserted into."""

from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.suites.upserted import TABLE, is_floor, upserted


def _run(session: Session) -> None:
    upserts = max(session.sizes.read_after)
    case = f"after {upserts} upserts of 1 %"
    expected = upserted(session, case)
    for installed in session.taking_part():
        if is_floor(installed):
            session.leave(installed)
        elif session.take(installed, case, "compact", table=TABLE) is not None:
            session.verify(installed, case, TABLE, expected.sums())


SUITE = Suite(
    name="compaction",
    title="Full compaction",
    question="How long does a full compaction take, until a reader has nothing left to merge? A system whose upserts rewrite the "
    "files that they touch has paid before, and has little to do.",
    run=_run,
    families=("python", "spark"),
)
