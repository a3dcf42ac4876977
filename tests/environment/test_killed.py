"""A process that dies while it makes a table, killed at each named step: nobody ever sees a part, and a sweep leaves nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest

import tablestore as ts

PROGRAM = Path(__file__).parent / "programs" / "stopping.py"
ROWS, POLLS = 400_000, 200
# Whatever the clocks of the store say.
LONG_AGO = timedelta(days=-20_000)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["created", "staged", "writing", "written", "published"])
@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_process_that_is_killed_leaves_the_whole_table_or_nothing(engine: str, step: str, tmp_path: Path) -> None:
    if (engine, step) == ("spark", "writing"):
        pytest.skip("rows of Python are read before Spark writes: the step before it is the same")
    warehouse = tmp_path / "wh"
    catalog = ts.open_catalog(str(warehouse))
    command = [sys.executable, str(PROGRAM), str(warehouse), engine, step]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    pipe = subprocess.PIPE
    with (
        (tmp_path / "errors").open("wb") as errors,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, env=env, text=True) as process,
    ):
        assert process.stdout is not None
        waiting = Thread(target=process.stdout.readline)
        waiting.start()
        try:
            seen = {count for count in polls(catalog) if count >= 0}
            while waiting.is_alive():
                seen |= set(polls(catalog))
        finally:
            waiting.join()
            process.kill()
    assert (tmp_path / "errors").read_text().count("Traceback") == 0, (tmp_path / "errors").read_text()[-3000:]
    seen |= set(polls(catalog))
    assert seen <= {-1, ROWS}
    report = ts.open_catalog(str(warehouse)).sweep_creations(LONG_AGO)
    assert all(one.outcome in ("removed", "finished") for one in report.creations), report
    left = [name for _, _, names in os.walk(warehouse) for name in names if name != "_database"]
    if step == "published":
        assert catalog.table("default.t").scan().count() == ROWS
    else:
        assert not catalog.table_exists("default.t") and left == []
    assert not [folder for folder, _, names in os.walk(warehouse / "_ctas") if names]


def polls(catalog: ts.Catalog) -> Iterator[int]:
    """How many rows a reader counts, ``POLLS`` times; -1: there is no table."""
    for _ in range(POLLS):
        try:
            yield catalog.table("default.t").scan().to_arrow().num_rows
        except ts.NotFoundError:
            yield -1
