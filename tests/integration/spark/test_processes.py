"""What one Spark session in one process cannot show: executors of their own, Spark Connect, and a broken neighbour."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.endurance import check_topic

pytestmark = pytest.mark.spark
PROGRAMS = Path(__file__).parent / "programs"


def run(program: str, folder: Path, **env: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / program), str(folder)],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-6000:]


def test_cluster_of_executor_processes(tmp_path: Path) -> None:
    run("cluster.py", tmp_path)


@pytest.mark.kafka
def test_executor_that_is_killed_while_it_publishes(tmp_path: Path, broker: KafkaBroker) -> None:
    run("publish.py", tmp_path, TEST_BROKERS=broker.servers)
    check_topic(ts.open_table(str(tmp_path / "warehouse" / "shop.db" / "t")), broker.servers)


def test_spark_connect_beside_a_broken_package(tmp_path: Path) -> None:
    broken = tmp_path / "packages" / "pyspark_broken"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    # In the C locale a JVM names no file beyond ASCII.
    path = [str(broken.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    run("connect.py", tmp_path, PYTHONPATH=os.pathsep.join(path), LC_ALL="C")
