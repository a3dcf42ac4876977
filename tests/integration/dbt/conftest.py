"""Gives dbt's own suites a warehouse of tablestore, on the engine that DBT_TEST_ENGINE names.

dbt holds packages at other versions than tablestore's tests do, so these run in an environment of their own: ``make test-dbt``. The
fixtures of a project are dbt's (``dbt.tests.fixtures.project``).
"""

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Where dbt is not installed there is nothing to collect.
collect_ignore_glob = [] if find_spec("dbt") else ["*.py"]


@pytest.fixture(scope="session")
def engine() -> str:
    return os.environ.get("DBT_TEST_ENGINE", "duckdb")


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="class")
def dbt_profile_target(warehouse: Path, engine: str) -> dict[str, Any]:
    return {"type": "tablestore", "threads": 4, "warehouse": str(warehouse), "engine": engine}


@pytest.fixture(scope="class")
def test_data_dir(request: pytest.FixtureRequest) -> Path:
    """The files of a suite lie beside it, in a folder of their own or not."""
    for one in request.cls.__mro__ if request.cls else ():
        if one.__module__.startswith("dbt.tests.adapter"):
            folder = Path(str(import_module(one.__module__).__file__)).parent
            return folder / "data" if (folder / "data").is_dir() else folder
    return Path(__file__).parent


@pytest.fixture(scope="class")
def project(project: Any) -> Any:
    from tests.integration.dbt.postgreswords import in_our_words

    plain = project.run_sql
    project.run_sql = lambda sql, fetch=None: plain(in_our_words(sql), fetch=fetch)
    return project
