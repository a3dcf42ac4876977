"""Plans reads of tables that name many files. The tables have no rows: ``bench_scale`` builds them, and asks the others."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import tablestore as ts
from benchmarks import bench_scale
from benchmarks.comparison.process import Unanswered
from benchmarks.comparison.record import Measurement
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.systems import OURS, Installed
from benchmarks.measure import Sample, WrongRows
from benchmarks.peers import Mode, Peer, PeerFailed
from benchmarks.scaletables import NAME, Shape, build

_SEED = 7
_WITH_LOGS = ("deltalake", "pyiceberg")
_PAIMON: dict[str, Mode] = {"pypaimon": "pure", "pypaimon native": "native"}


def _run(session: Session) -> None:
    with ExitStack() as stack:
        _plan(session, stack)


def _plan(session: Session, stack: ExitStack) -> None:
    peers: dict[str, Peer] = {}
    for installed in session.taking_part():
        if installed.spec.name in _PAIMON:
            peers[installed.spec.name] = stack.enter_context(Peer(installed.python, _PAIMON[installed.spec.name]))
    for files in session.sizes.plan_files:
        space = session.directory / f"planning-{files}"
        session.listener.step(f"tablestore: a table of {files:,} files")
        build(space / "tablestore", Shape(files=files), _SEED)
        opened = ts.open_catalog(str(space / "tablestore")).table(NAME)
        bench_scale.write_files(opened, space / "files.json")
        for installed in session.taking_part():
            if installed.spec.name in _WITH_LOGS:
                session.listener.step(f"{installed.spec.name}: a table of {files:,} files")
                try:
                    name = installed.spec.name
                    bench_scale.ask_worker(installed.python, name, "build", space / name, space / "files.json")
                except WrongRows as error:
                    session.refuse(installed, "one id", Unanswered("failed", str(error)), at=files)
        for question in bench_scale.QUESTIONS:
            # The first plan of each loads modules and does not count.
            for turn in range(session.sizes.rounds + 1):
                for installed in session.taking_part():
                    plan = _planner(installed, question, opened, space, peers)
                    if plan is not None:
                        _measure(session, installed, question, files, plan, counts=turn > 0)


def _planner(
    installed: Installed, question: str, opened: ts.Table, space: Path, peers: Mapping[str, Peer]
) -> Callable[[], Sample] | None:
    """What plans, by a system that opens its table anew; None if a system has no such table here."""
    name, text = installed.spec.name, bench_scale.QUESTIONS[question]
    if name == OURS["python"]:
        return partial(bench_scale.plan_anew, space / "tablestore", bench_scale.FILTERS[question])
    count = len(bench_scale.plan_with(opened, bench_scale.FILTERS[question]).files)
    if name in _WITH_LOGS:
        return partial(bench_scale.plan_of_other, installed.python, name, space / name, text, count)
    if name in peers:
        # It plans our table.
        return partial(peers[name].plan, Path(opened.location), text, count)
    return None


def _measure(
    session: Session, installed: Installed, question: str, files: int, plan: Callable[[], Sample], *, counts: bool
) -> None:
    session.listener.step(f"{installed.spec.name}: plan of {question} ({files:,} files)")
    try:
        sample = plan()
    except (WrongRows, PeerFailed) as error:
        session.refuse(installed, question, Unanswered("failed", str(error)[-800:]), at=files)
        return
    if not counts:
        return
    values = {"seconds": sample.wall, "cpu": sample.cpu}
    name = installed.spec.name
    session.record(Measurement(suite=session.suite, case=question, system=name, family=session.family, at=files, values=values))


SUITE = Suite(
    name="planning",
    title="Planning by the number of files",
    question="How long does it take to open a table and plan a read of one id, of one partition, or of all files?",
    run=_run,
    axis="files",
    weight=3.0,
)
