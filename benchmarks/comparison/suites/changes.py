"""Reads what a commit of 1 % of the rows changed."""

from benchmarks.comparison.rows import Expected
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.suites.upserted import is_floor

_CASE = "1 % of the rows, updated"
_TABLE = "changed"


def _run(session: Session) -> None:
    path, rows = session.rows.base(session.sizes.table_rows)
    count = max(session.sizes.table_rows // 100, 1)
    changed_path, changed = session.rows.commit(900, rows=count, live=rows.num_rows, keys="uniform", new=0.0)
    expected = Expected()
    expected.put(changed)
    for installed in session.taking_part():
        if is_floor(installed):
            session.leave(installed)
            continue
        session.do(installed, _CASE, "load", name="base", path=str(path))
        session.do(installed, _CASE, "load", name="rows", path=str(changed_path))
        if session.do(installed, _CASE, "create", table=_TABLE, rows="base", changes=True) is None:
            session.leave(installed)
            continue
        session.do(installed, _CASE, "append", table=_TABLE, rows="base")
        if session.do(installed, _CASE, "mark", table=_TABLE) is None:
            session.leave(installed)
            continue
        if session.do(installed, _CASE, "upsert", table=_TABLE, rows="rows") is None:
            session.leave(installed)
    for _ in range(session.sizes.rounds):
        for installed in session.taking_part():
            session.take(installed, _CASE, "changes", expected=expected.sums(), table=_TABLE)


SUITE = Suite(
    name="changes",
    title="Changes since a snapshot",
    question="How long does it take to read the new rows of a commit that updated 1 % of a table?",
    run=_run,
)
