"""A process that dies while it makes a table, killed at each step of it: nobody ever sees a part, and a sweep leaves nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tablestore import Table
from tests.integration.conftest import broker, jars  # noqa: F401
from tests.table.creation.creationsteps import Step, steps_of
from tests.table.creation.where import LONG_AGO, Where, count, where_of

PROGRAM = Path(__file__).parent / "programs" / "stopping.py"
ROWS, POLLS, MOST_POLLS = 40_000, 200, 10_000


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Where]:
    call = request.node.callspec
    name = call.id.lower().replace("_", "-")
    with where_of(call.params["kind"], name, tmp_path, lambda: request.getfixturevalue("broker")) as where:
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
    given = {"catalog": dict(place.catalog), "engine": engine, "step": step.name, "options": {"bucket": "2", **place.options}}
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
        assert isinstance(table, Table) and table.scan().count() == ROWS
        if place.servers is not None:
            table.change_log.publish()
            assert table.change_log.verify().problems == ()
            place.open().drop_table("default.t")
    else:
        assert not catalog.table_exists("default.t") and left == []
    assert not place.has_topic()


def runs(process: "subprocess.Popen[bytes]") -> bool:
    """Whether a process has not ended, in the next moment."""
    try:
        process.wait(0.02)
    except subprocess.TimeoutExpired:
        return True
    return False
