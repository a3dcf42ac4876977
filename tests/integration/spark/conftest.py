"""One Spark session for all tests of a process: two cores, three attempts per task, a time zone that is not UTC."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tablestore import open_catalog
from tablestore.table.catalog import Catalog
from tests.integration.spark.sparkversion import sparkversion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGING = """\
rootLogger.level = off
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Said by pyspark to everybody who uses Arrow functions beside a newer pandas; it does not concern us.
    newer_pandas = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue
        item.add_marker(newer_pandas)
        for marker in item.iter_markers("since"):
            if sparkversion() < tuple(marker.args):
                item.add_marker(pytest.mark.skip(reason=f"Spark has it since {'.'.join(map(str, marker.args))}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """``local[2,3]``: as ``local[2]``, and a failed task is tried again. The data source is found by its name alone."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    (folder / "log4j2.properties").write_text(LOGGING)
    with pytest.MonkeyPatch.context() as patch:
        # Workers have to be the interpreter that has tablestore installed.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.delenv("SPARK_TESTING", raising=False)
        session = (
            SparkSession.builder.master("local[2,3]")
            .appName("tablestore tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "1g")
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "America/New_York")
            # TIME is a preview in Spark 4.3, off by default.
            .config("spark.sql.timeType.enabled", "true")
            .getOrCreate()
        )
        yield session
        session.stop()


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    """Where :func:`catalog` lies."""
    return os.fspath(tmp_path / "warehouse")


@pytest.fixture
def catalog(warehouse: str) -> Catalog:
    """An empty catalog with the database ``shop``."""
    catalog = open_catalog(warehouse)
    catalog.create_database("shop")
    return catalog
