"""A process that dies while it makes a table, killed at each step of it: nobody ever sees a part, and a sweep leaves nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.io.opening import open_store
from tablestore.store.history.unfinishedbranches import walk
from tablestore.testing.kafka import KafkaBroker
from tests.integration.conftest import broker, jars  # noqa: F401
from tests.integration.kafka.topics import topics
from tests.support.s3 import FakeS3
from tests.table.creation.creationsteps import Step, steps_of

PROGRAM = Path(__file__).parent / "programs" / "stopping.py"
ROWS, POLLS, MOST_POLLS = 40_000, 200, 10_000
# Whatever the clocks of the store say.
LONG_AGO = timedelta(days=-20_000)


@dataclass(kw_only=True)
class Where:
    """A warehouse, and the options of the table; ``servers``: where its topic lies."""

    catalog: dict[str, Any]
    options: dict[str, str] = field(default_factory=dict)
    servers: str | None = None

    def open(self) -> ts.Catalog:
        return ts.open_catalog(self.catalog)

    def left(self) -> list[str]:
        """The files of the warehouse, but the mark of its database."""
        options = {key: value for key, value in self.catalog.items() if key != "warehouse"}
        files = open_store(self.catalog["warehouse"], options)
        found = (path for info in files.list("") if info.is_dir for path, _ in walk(files, info.name))
        return [path for path in found if not path.endswith("/_database")]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Where]:
    kind = request.node.callspec.params["kind"]
    if kind == "s3":
        with FakeS3() as s3:
            # moto keeps what servers before it had.
            bucket = s3.make_bucket(request.node.callspec.id.lower().replace("_", "-"))
            yield Where(catalog={"warehouse": f"{bucket}/wh", **s3.options})
        return
    where = Where(catalog={"warehouse": str(tmp_path / "wh")})
    if kind == "kafka":
        started: KafkaBroker = request.getfixturevalue("broker")
        topic = f"killed-{tmp_path.name}"
        where.servers = started.servers
        where.options = {"log.kafka.bootstrap.servers": started.servers, "log.kafka.topic": topic}
    yield where


def cases() -> Iterator[Any]:
    for engine in ("duckdb", "spark"):
        for kind in ("local", "s3", "kafka"):
            marks = [pytest.mark.slow]
            marks += [pytest.mark.spark] if engine == "spark" else []
            marks += [getattr(pytest.mark, kind)] if kind != "local" else []
            for step in steps_of(renames=kind != "s3"):
                yield pytest.param(engine, kind, step, marks=marks, id=f"{engine}-{kind}-{step.name}")


@pytest.mark.parametrize(("engine", "kind", "step"), list(cases()))
def test_a_process_that_is_killed_leaves_the_whole_table_or_nothing(
    engine: str, kind: str, step: Step, place: Where, project: Path, tmp_path: Path
) -> None:
    catalog, mark = place.open(), tmp_path / "here"
    given = {"catalog": place.catalog, "engine": engine, "step": step.name, "options": {"bucket": "2", **place.options}}
    setting = json.dumps({**given, "mark": str(mark)})
    path = os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path, "TABLESTORE_TEST_STOPPING": setting}
    seen: set[int] = set()
    with (tmp_path / "said").open("wb") as said:
        command = [sys.executable, str(PROGRAM), setting]
        process = subprocess.Popen(command, stdout=said, stderr=said, env=env, start_new_session=True)
        try:
            for _ in range(MOST_POLLS):
                seen.add(count(catalog))
                if mark.exists() or not runs(process):
                    break
            assert mark.exists(), (tmp_path / "said").read_text()[-3000:]
            seen |= {count(catalog) for _ in range(POLLS)}
        finally:
            process.kill()
            process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    seen |= {count(catalog) for _ in range(POLLS)}
    assert seen <= ({-1, ROWS} if step.is_visible else {-1})
    report = place.open().sweep_creations(LONG_AGO)
    assert all(one.outcome in ("removed", "finished") for one in report.creations), report
    left = place.left()
    assert not [one for one in left if one.startswith("_ctas/")]
    if step.is_visible:
        table = place.open().table("default.t")
        assert isinstance(table, ts.Table) and table.scan().count() == ROWS
        if place.servers is not None:
            table.change_log.publish()
            assert table.change_log.verify().problems == ()
            place.open().drop_table("default.t")
    else:
        assert not catalog.table_exists("default.t") and left == []
    if place.servers is not None:
        assert place.options["log.kafka.topic"] not in topics(place.servers)


def runs(process: "subprocess.Popen[bytes]") -> bool:
    """Whether a process has not ended, in the next moment."""
    try:
        process.wait(0.02)
    except subprocess.TimeoutExpired:
        return True
    return False


def count(catalog: ts.Catalog) -> int:
    """How many rows a reader sees; -1: there is no table."""
    try:
        return catalog.table("default.t").scan().count()
    except ts.NotFoundError:
        return -1
