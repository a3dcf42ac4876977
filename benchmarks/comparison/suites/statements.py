"""Runs UPDATE and DELETE with a condition that touches 1 % of the rows in every file, and a MERGE of as many."""

from benchmarks.comparison.rows import Expected
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.suites.upserted import is_floor

_TABLE = "stated"
_MERGE, _UPDATE, _DELETE = "MERGE of 1 %", "UPDATE of 1 %", "DELETE of 1 %"


def _run(session: Session) -> None:
    path, rows = session.rows.base(session.sizes.table_rows)
    changed_path, changed = session.rows.commit(950, rows=max(rows.num_rows // 100, 1), live=rows.num_rows, keys="uniform")
    for installed in session.taking_part():
        if is_floor(installed):
            session.leave(installed)
            continue
        session.do(installed, _MERGE, "load", name="base", path=str(path))
        session.do(installed, _MERGE, "load", name="rows", path=str(changed_path))
        if session.do(installed, _MERGE, "create", table=_TABLE, rows="base", changes=False) is None:
            session.leave(installed)
        elif session.do(installed, _MERGE, "append", table=_TABLE, rows="base") is not None:
            # Each statement is checked by itself, for systems that lack one of them.
            expected = Expected()
            expected.put(rows)
            if session.take(installed, _MERGE, "upsert", table=_TABLE, rows="rows") is not None:
                expected.put(changed, 950)
                session.verify(installed, _MERGE, _TABLE, expected.sums())
            if session.is_in(installed) and session.take(installed, _UPDATE, "update", table=_TABLE) is not None:
                expected.update()
                session.verify(installed, _UPDATE, _TABLE, expected.sums())
            if session.is_in(installed) and session.take(installed, _DELETE, "delete", table=_TABLE) is not None:
                expected.delete()
                session.verify(installed, _DELETE, _TABLE, expected.sums())


SUITE = Suite(
    name="statements",
    title="MERGE, UPDATE and DELETE",
    question="What does a statement cost that touches 1 % of the rows, all over the table?",
    run=_run,
    families=("python", "spark"),
    weight=2.0,
)
