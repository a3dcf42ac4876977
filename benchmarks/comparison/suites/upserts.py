"""Upserts small batches into a growing table, one commit after the other."""

from benchmarks.comparison.rows import Expected, Keys
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite

_KEYS: tuple[Keys, ...] = ("uniform", "zipf")


def _run(session: Session) -> None:
    # Spark's first statements are slow, and a quick run has few: one kind of keys has to do.
    for keys in _KEYS if session.family == "python" or session.sizes.is_full else _KEYS[:1]:
        _upsert(session, keys)


def _upsert(session: Session, keys: Keys) -> None:
    sizes = session.sizes
    case, table = f"{keys} keys", f"upserts_{keys}"
    path, rows = session.rows.base(sizes.table_rows)
    expected = Expected()
    expected.put(rows)
    for installed in session.taking_part():
        session.do(installed, case, "load", name="base", path=str(path))
        if session.do(installed, case, "create", table=table, rows="base", changes=False) is None:
            session.leave(installed)
        else:
            session.do(installed, case, "append", table=table, rows="base")
    for number in range(1, sizes.commits + 1):
        path, rows = session.rows.commit(number, rows=sizes.commit_rows, live=len(expected.live), keys=keys)
        expected.put(rows, number)
        for installed in session.taking_part():
            session.do(installed, case, "load", name="changed", path=str(path))
            answer = session.take(installed, case, "upsert", at=number, more={"rows": rows.num_rows}, table=table, rows="changed")
            if answer is None:
                session.leave(installed)
    for installed in session.taking_part():
        session.verify(installed, case, table, expected.sums())
    # Whoever was out of time may take part in the next kind.
    session.begin(session.suite, session.family)


SUITE = Suite(
    name="upserts",
    title="Upserts into a growing table",
    question="What does a commit of a hundredth of the table cost, nine of ten rows with a key that is there, one after the other?",
    run=_run,
    families=("python", "spark"),
    axis="commit",
    weight=4.0,
)
