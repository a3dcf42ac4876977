"""Loads rows in random order into a new, empty table."""

from benchmarks.comparison.rows import Expected
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite


def _run(session: Session) -> None:
    path, rows = session.rows.base(session.sizes.load_rows)
    expected = Expected()
    expected.put(rows)
    case = f"{rows.num_rows:,} rows"
    for installed in session.taking_part():
        session.do(installed, case, "load", name="base", path=str(path))
    # Round 0 warms up and does not count: a Java machine compiles, modules are loaded.
    for number in range(session.sizes.rounds + 1):
        for installed in session.taking_part():
            table = f"load{number}"
            if session.do(installed, case, "create", table=table, rows="base", changes=False) is None:
                session.leave(installed)
            elif number == 0:
                session.do(installed, case, "append", table=table, rows="base")
            elif session.take(installed, case, "append", table=table, rows="base") is not None:
                size = session.do(installed, case, "size", table=table)
                if number == 1 and size is not None and session.verify(installed, case, table, expected.sums()):
                    session.record_size(installed, case, size["bytes"])


SUITE = Suite(
    name="load",
    title="Bulk load",
    question="How long does it take to load rows of four columns, in random order, into an empty table, committed and durable?",
    run=_run,
    families=("python", "spark"),
    weight=2.0,
)
