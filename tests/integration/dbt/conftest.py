"""Gives dbt's own suites a warehouse of tablestore, on the engine of ``--engine``."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["dbt.tests.fixtures.project"]


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="class")
def dbt_profile_target(warehouse: Path) -> dict[str, Any]:
    return {
        "type": "tablestore",
        "threads": 4,
        "warehouse": str(warehouse),
        "engine": os.environ.get("DBT_TEST_ENGINE", "duckdb"),
    }
