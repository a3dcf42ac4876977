"""Reads two columns after upserts, beside plain Parquet files of the same rows, with the query's own columns and with the key too.

Whoever tells old rows from new ones has to look at keys: the second floor has those to read as well.
"""

from benchmarks.comparison.rows import Expected
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.suites.upserted import TABLE, is_floor, upserted

_COLUMNS = ("quantity", "code")
_CASE = "two columns of all rows"


def _run(session: Session) -> None:
    def read(number: int, expected: Expected) -> None:
        if number in session.sizes.read_after:
            _read(session, number, expected)

    upserted(session, _CASE, read)


def _read(session: Session, number: int, expected: Expected) -> None:
    newest = session.rows.newest(f"{session.sizes.table_rows}-{number}", expected)
    wanted = expected.sums(_COLUMNS)
    for turn in range(session.sizes.rounds + (number == min(session.sizes.read_after))):
        # The first reads of all warm up.
        counts = turn >= (number == min(session.sizes.read_after))
        for installed in session.taking_part():
            table = TABLE
            if is_floor(installed):
                table = f"newest{number}"
                if turn == 0:
                    session.do(installed, _CASE, "load", name="newest", path=str(newest))
                    session.do(installed, _CASE, "create", table=table, rows="newest", changes=False)
                    session.do(installed, _CASE, "append", table=table, rows="newest")
            if not counts:
                session.do(installed, _CASE, "read", table=table, columns=list(_COLUMNS))
                continue
            session.take(installed, _CASE, "read", at=number, expected=wanted, table=table, columns=list(_COLUMNS))
            if is_floor(installed):
                columns = ["id", *_COLUMNS]
                session.take(
                    installed, _CASE, "read", at=number, expected=wanted, label=", the key too", table=table, columns=columns
                )


SUITE = Suite(
    name="reads",
    title="Reads after upserts",
    question="How long does it take to read two columns of all rows after 1 to 20 upserts of 1 % each? Nothing is compacted but by "
    "writers that do so by themselves.",
    run=_run,
    families=("python", "spark"),
    axis="upserts",
    weight=4.0,
)
