"""Commits ten rows at a time from several processes to one table."""

import time
from contextlib import ExitStack

from benchmarks.comparison.process import Unanswered, WorkerProcess
from benchmarks.comparison.record import Measurement
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.suites.upserted import is_floor
from benchmarks.comparison.systems import Installed

_CASE = "ten rows a commit"
_ROWS_OF_A_PROCESS = 10_000
# Where several processes write, DuckLake's catalog has to be a database that they can share.
_SHARED = {"catalog": "sqlite"}


def _run(session: Session) -> None:
    for installed in session.taking_part():
        if is_floor(installed):
            session.leave(installed)
            continue
        try:
            _of(session, installed)
        except Unanswered as error:
            session.refuse(installed, _CASE, error)


def _of(session: Session, installed: Installed) -> None:
    sizes = session.sizes
    place = session.place(installed).with_name(session.place(installed).name + "-commits")
    place.mkdir(parents=True)
    settings = _SHARED if "catalog" in installed.settings else None
    with ExitStack() as stack:
        workers: list[WorkerProcess] = []
        for count in sizes.processes:
            session.listener.step(f"{installed.spec.name}: {_CASE} ({count} processes)")
            while len(workers) < count:
                worker = stack.enter_context(WorkerProcess(installed, place, settings))
                path, _ = session.rows.range(len(workers) * _ROWS_OF_A_PROCESS, _ROWS_OF_A_PROCESS)
                worker.ask("hello", session.limit_s())
                worker.ask("load", session.limit_s(), name="rows", path=str(path))
                workers.append(worker)
            table = f"commits{count}"
            workers[0].ask("create", session.limit_s(), table=table, rows="rows", changes=False)
            begin = time.time() + 0.3
            for worker in workers[:count]:
                worker.send("commits", table=table, rows="rows", begin=begin, seconds=sizes.commit_s)
            answers = [worker.receive("commits", session.limit_s()) for worker in workers[:count]]
            commits = sum(answer["commits"] for answer in answers)
            found = workers[0].ask("read", session.limit_s(), table=table, columns=["id"])["sums"]["rows"]
            if found != 10 * commits:
                raise Unanswered("failed", f"wrong rows: {commits} commits of ten rows were acknowledged, {found} rows are there")
            taken = max(answer["seconds"] for answer in answers)
            values = {"per_s": commits / taken, "conflicts": float(sum(answer["conflicts"] for answer in answers))}
            session.record(
                Measurement(
                    suite=session.suite, case=_CASE, system=installed.spec.name, family=session.family, at=count, values=values
                )
            )


SUITE = Suite(
    name="commits",
    title="Commits per second",
    question="How many commits of ten rows a second does one table take from 1 to 16 processes?",
    run=_run,
    axis="processes",
    metric="per_s",
    unit="commits/s",
    is_rate=True,
    weight=3.0,
)
