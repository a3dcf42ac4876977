"""Takes the peak of memory of a fresh process at two sizes of the table, one ten times the other."""

from benchmarks.comparison.process import Unanswered, WorkerProcess
from benchmarks.comparison.record import Measurement
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.suites.upserted import is_floor
from benchmarks.comparison.systems import Installed

_UPSERT, _COMPACT, _COLUMN = "upsert of 1,000 rows", "full compaction", "read of one column"
_ROWS = 1_000


def _run(session: Session) -> None:
    for rows in (session.sizes.memory_rows, 10 * session.sizes.memory_rows):
        path, _ = session.rows.base(rows)
        changed, _ = session.rows.commit(980, rows=min(_ROWS, rows), live=rows, keys="uniform")
        table = f"memory{rows}"
        for installed in session.taking_part():
            session.listener.step(f"{installed.spec.name}: memory ({rows:,} rows)")
            session.do(installed, _COLUMN, "load", name="base", path=str(path))
            if session.do(installed, _COLUMN, "create", table=table, rows="base", changes=False) is None:
                session.leave(installed)
                continue
            if session.do(installed, _COLUMN, "append", table=table, rows="base") is None:
                continue
            session.do(installed, _COLUMN, "forget")
            # A database that only one process may open has to be closed first.
            session.release(installed)
            for case, command in ((_COLUMN, "read"), (_UPSERT, "upsert"), (_COMPACT, "compact")):
                if is_floor(installed) and command != "read":
                    continue
                try:
                    peak = _peak(session, installed, table, command, str(changed))
                except Unanswered as error:
                    session.refuse(installed, case, error, at=rows)
                    continue
                session.record(
                    Measurement(
                        suite=session.suite,
                        case=case,
                        system=installed.spec.name,
                        family=session.family,
                        at=rows,
                        values={"mib": peak / 2**20},
                    )
                )


def _peak(session: Session, installed: Installed, table: str, command: str, changed: str) -> float:
    """How many bytes more than after its start a process holds at its peak."""
    limit = session.limit_s()
    with WorkerProcess(installed, session.place(installed)) as worker:
        before = worker.ask("hello", limit)["peak"]
        arguments: dict[str, object] = {"table": table}
        if command == "upsert":
            worker.ask("load", limit, name="rows", path=changed)
            arguments["rows"] = "rows"
        if command == "read":
            arguments["columns"] = ["quantity"]
        return float(worker.ask(command, limit, **arguments)["peak"] - before)


SUITE = Suite(
    name="memory",
    title="Memory at ten times the rows",
    question="How much memory more than at its start does a process hold at its peak, and does that grow with the table?",
    run=_run,
    axis="rows",
    metric="mib",
    unit="MiB",
    weight=2.0,
)
