"""Builds the tables that are read, compacted and looked up: loaded, compacted, then upserted into again and again."""

from collections.abc import Callable

from benchmarks.comparison.process import Unanswered
from benchmarks.comparison.rows import Expected
from benchmarks.comparison.session import Session
from benchmarks.comparison.systems import FLOOR, Installed

TABLE = "upserted"
SHARE = 100
"""An upsert has one of so many rows."""


def upserted(session: Session, case: str, each: Callable[[int, Expected], None] = lambda number, expected: None) -> Expected:
    """What the tables hold after all upserts; ``each`` is called after every one. Tables that are there stay as they are."""
    key = ("upserted", session.family)
    if key in session.kept:
        expected, names = session.kept[key]
        for installed in session.taking_part():
            if installed.spec.name not in names and not is_floor(installed):
                session.leave(installed)
        assert isinstance(expected, Expected)
        return expected
    path, rows = session.rows.base(session.sizes.table_rows)
    expected = Expected()
    expected.put(rows)
    for installed in session.taking_part():
        session.do(installed, case, "load", name="base", path=str(path))
        if session.do(installed, case, "create", table=TABLE, rows="base", changes=False) is None:
            session.leave(installed)
        elif session.do(installed, case, "append", table=TABLE, rows="base") is not None:
            _quietly(session, installed, "compact")
    for number in range(1, max(session.sizes.read_after) + 1):
        path, rows = session.rows.commit(
            100 + number, rows=max(session.sizes.table_rows // SHARE, 1), live=len(expected.live), keys="uniform"
        )
        expected.put(rows, 100 + number)
        for installed in session.taking_part():
            if is_floor(installed):
                continue
            session.listener.step(f"{installed.spec.name}: upsert {number}")
            session.do(installed, case, "load", name="changed", path=str(path))
            if session.do(installed, case, "upsert", table=TABLE, rows="changed") is None:
                session.leave(installed)
        each(number, expected)
    names = {installed.spec.name for installed in session.taking_part() if not is_floor(installed)}
    session.kept[key] = (expected, names)
    return expected


def is_floor(installed: Installed) -> bool:
    """Whether a system is plain files, which take no upserts."""
    return installed.spec.name in FLOOR.values()


def _quietly(session: Session, installed: Installed, command: str) -> None:
    try:
        session.worker(installed).ask(command, session.sizes.call_s, table=TABLE)
    except Unanswered as error:
        if error.status != "cannot":
            session.refuse(installed, "compaction of the loaded rows", error)
