"""Gives dbt's own suites a warehouse of tablestore, on the engine that DBT_TEST_ENGINE names.

dbt holds packages at other versions than tablestore's tests do, so these run in an environment of their own: ``make test-dbt``. The
fixtures of a project are dbt's (``dbt.tests.fixtures.project``).
"""

import os
from collections.abc import Iterator
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
def suite_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of dbt's suite that a class here runs."""
    modules = [one.__module__ for one in (request.cls.__mro__ if request.cls else ()) if one.__module__.startswith("dbt.")]
    return Path(str(import_module(modules[0]).__file__)).parent if modules else Path(__file__).parent


@pytest.fixture(scope="class")
def test_data_dir(suite_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the suite; where it has none, a folder that it may make."""
    folder = suite_folder / "data"
    return folder if folder.is_dir() else tmp_path_factory.mktemp("suite") / "data"


@pytest.fixture(scope="class")
def project(project: Any, suite_folder: Path) -> Any:
    from tests.integration.dbt.postgreswords import in_our_words

    plain = project.run_sql
    project.run_sql = lambda sql, fetch=None: plain(in_our_words(sql), fetch=fetch)
    project.test_dir = suite_folder
    return project


@pytest.fixture
def own_adapter() -> Iterator[None]:
    """For a test that runs dbt by itself: the next one has no adapter that is open."""
    from dbt.adapters.factory import reset_adapters

    reset_adapters()
    yield
    reset_adapters()
