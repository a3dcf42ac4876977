"""What one Spark session in one process cannot show: executors of their own, Spark Connect, and a broken neighbour."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.endurance import check_topic

pytestmark = pytest.mark.spark
PROGRAMS = Path(__file__).parent / "programs"


def run(program: str, folder: Path, *, ends: int = 0, **env: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / program), str(folder)],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == ends, done.stderr[-6000:]


def test_cluster_of_executor_processes(tmp_path: Path) -> None:
    run("cluster.py", tmp_path)


@pytest.mark.kafka
def test_executor_that_is_killed_while_it_publishes(tmp_path: Path, broker: KafkaBroker) -> None:
    run("publish.py", tmp_path, TEST_BROKERS=broker.servers)
    check_topic(ts.open_table(str(tmp_path / "warehouse" / "shop.db" / "t")), broker.servers)


@pytest.mark.slow
def test_executors_that_are_killed_leave_the_whole_atomic_table_or_nothing(tmp_path: Path) -> None:
    run("ctas.py", tmp_path)
    warehouse = tmp_path / "warehouse"
    catalog = ts.open_catalog(str(warehouse))
    catalog.sweep_creations(older_than=timedelta(0))
    table = catalog.table("default.whole")
    # What the killed attempt had begun beside the others belongs to no snapshot.
    table.remove_orphan_files(older_than=timedelta(0), dry_run=False)
    assert len(list((warehouse / "default.db" / "whole" / "bucket-0").iterdir())) == 4, "a file for each task"
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(400_000))
    assert catalog.list_tables("default") == ("whole",)
    left = [path for path in warehouse.rglob("*") if path.is_file() and path.name != "_database"]
    assert all(path.is_relative_to(warehouse / "default.db" / "whole") for path in left), left


def test_spark_connect_beside_a_broken_package(tmp_path: Path) -> None:
    broken = tmp_path / "packages" / "pyspark_broken"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    # In the C locale a JVM names no file beyond ASCII.
    path = [str(broken.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    run("connect.py", tmp_path, PYTHONPATH=os.pathsep.join(path), LC_ALL="C")


@pytest.mark.slow
def test_driver_that_is_killed_after_a_commit_goes_on_with_the_next_batch(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema=pa.schema([("id", pa.int64())]), options={"write-only": "true"})
    (tmp_path / "feed").mkdir()
    for number in range(3):
        path = tmp_path / "feed" / f"{number}.parquet"
        pq.write_table(pa.table({"id": [number]}), path)
        os.utime(path, (number + 1, number + 1))
    for crash in (0, 1):
        run("streamcrash.py", tmp_path, ends=-signal.SIGKILL, CRASH_AT=str(crash))
        assert table.snapshots()[-1].commit_identifier == crash
        assert not (tmp_path / "checkpoint" / "commits" / str(crash)).exists()
    run("streamcrash.py", tmp_path, CRASH_AT="-1")
    assert table.scan().to_arrow()["id"].to_pylist() == [0, 1, 2]
    assert [one.commit_identifier for one in table.snapshots()] == [0, 1, 2]
