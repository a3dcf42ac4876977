"""The recipe for Airflow: a DAG of a warehouse, run by Airflow itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tablestore as ts

pytest.importorskip("airflow", reason="make test-recipes installs Airflow into an environment of its own")

from tests.support.boards import warehouse_of_boards

DAG_FILE = Path(__file__).parents[3] / "examples/orchestration/airflow_dag.py"


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return warehouse_of_boards(tmp_path)


def airflow(tmp_path: Path, warehouse: str, *arguments: str) -> str:
    """What a command of Airflow prints, in a home of its own."""
    home = tmp_path / "airflow"
    folder = home / "dags"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "refresh.py").write_text("from examples.orchestration.airflow_dag import *\n")
    root = str(DAG_FILE.parents[2])
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "WAREHOUSE": warehouse,
        "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]),
    }
    program = Path(sys.executable).with_name("airflow")
    ran = subprocess.run([program, *arguments], env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    return ran.stdout


def test_the_dag_refreshes_sources_first(tmp_path: Path, warehouse: str) -> None:
    airflow(tmp_path, warehouse, "db", "migrate")
    airflow(tmp_path, warehouse, "dags", "reserialize")
    assert "tablestore_refresh" in airflow(tmp_path, warehouse, "dags", "list")
    assert "default.dear" in airflow(tmp_path, warehouse, "tasks", "list", "tablestore_refresh")
    airflow(tmp_path, warehouse, "dags", "test", "tablestore_refresh")
    with ts.TableEnvironment.create(warehouse, engine="duckdb") as env:
        rows = env.execute_sql("SELECT shop, total FROM dear").to_arrow().to_pylist()
        assert rows == [{"shop": "b", "total": 20.0}]
        assert env.freshness_of("default", "dear") is not None
