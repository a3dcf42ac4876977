"""Plans reads of tables that name many files. The tables have no rows: bench_scale builds them."""

from collections.abc import Callable
from pathlib import Path

import tablestore as ts
from benchmarks import bench_scale
from benchmarks.comparison.process import Unanswered
from benchmarks.comparison.record import Measurement
from benchmarks.comparison.session import Session
from benchmarks.comparison.suites.suite import Suite
from benchmarks.comparison.systems import Installed
from benchmarks.measure import Sample, WrongRows
from benchmarks.peers import Mode, Peer, PeerFailed
from benchmarks.scaletables import NAME, Shape, build

_SEED = 7
_PAIMON: dict[str, Mode] = {"pypaimon": "pure", "pypaimon native": "native"}


def _run(session: Session) -> None:
    here = {installed.spec.name: installed for installed in session.taking_part()}
    for files in session.sizes.plan_files:
        space = session.directory / f"planning-{files}"
        session.listener.step(f"tablestore: a table of {files:,} files")
        path = space / "tablestore"
        build(path, Shape(files=files), _SEED)
        opened = ts.open_catalog(str(path)).table(NAME)
        bench_scale.write_files(opened, space / "files.json")
        for name in ("deltalake", "pyiceberg"):
            if name in here and session.is_in(here[name]):
                session.listener.step(f"{name}: a table of {files:,} files")
                try:
                    bench_scale.ask_worker(here[name].python, name, "build", space / name, space / "files.json")
                except WrongRows as error:
                    session.refuse(here[name], "one id", Unanswered("failed", str(error)), at=files)
        for question, text in bench_scale.QUESTIONS.items():
            count = len(bench_scale.plan_with(opened, bench_scale.FILTERS[question]).files)
            ways: dict[str, Callable[[], Sample]] = {
                "tablestore": lambda question=question: bench_scale.plan_anew(path, text=bench_scale.FILTERS[question])
            }
            for name in ("deltalake", "pyiceberg"):
                if name in here:
                    python = here[name].python
                    ways[name] = lambda name=name, python=python, text=text, count=count: bench_scale.plan_of_other(
                        python, name, space / name, text, count
                    )
            for name, mode in _PAIMON.items():
                if name in here:
                    ways[name] = lambda mode=mode, python=here[name].python, text=text, count=count: _paimon(
                        python, mode, opened, text, count
                    )
            for name, way in ways.items():
                if name not in here:
                    continue
                for _ in range(1 if name.startswith("pypaimon") else session.sizes.rounds):
                    if session.is_in(here[name]):
                        _measure(session, here[name], question, files, way)


def _measure(session: Session, installed: Installed, question: str, files: int, way: Callable[[], Sample]) -> None:
    session.listener.step(f"{installed.spec.name}: plan of {question} ({files:,} files)")
    try:
        sample = way()
    except (WrongRows, PeerFailed) as error:
        session.refuse(installed, question, Unanswered("failed", str(error)[-800:]), at=files)
        return
    session.record(
        Measurement(
            suite=session.suite,
            case=question,
            system=installed.spec.name,
            family=session.family,
            at=files,
            values={"seconds": sample.wall, "cpu": sample.cpu},
        )
    )


def _paimon(python: Path, mode: Mode, opened: ts.Table, text: str, count: int) -> Sample:
    with Peer(python, mode) as peer:
        return peer.plan(Path(opened.location), text, count)


SUITE = Suite(
    name="planning",
    title="Planning by the number of files",
    question="How long does it take to open a table and plan a read of one id, of one partition, or of all files?",
    run=_run,
    axis="files",
    weight=3.0,
)
