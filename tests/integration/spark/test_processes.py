"""What one Spark session in one process cannot show: executors of their own, Spark Connect, and a broken neighbour."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_spark_connect_beside_a_broken_package(tmp_path: Path) -> None:
    broken = tmp_path / "packages" / "pyspark_broken"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    run("connect.py", tmp_path, PYTHONPATH=str(broken.parent))
