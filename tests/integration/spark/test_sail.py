"""Sail speaks Spark Connect and gives other values than Spark: a session of its, and its use of the data source, are refused."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablestore as ts
from tests.integration.spark.program import run

pytest.importorskip("pyspark")

import pyspark_tablestore
from pyspark_tablestore.compact import compact
from pyspark_tablestore.engine import SparkEngine
from pyspark_tablestore.publish import publish
from pyspark_tablestore.sparkserver import check_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Session:
    """A remote session of a server that calls itself ``version``."""

    def __init__(self, version: str) -> None:
        self.version, self.texts = version, list[str]()

    def sql(self, text: str) -> Any:
        self.texts.append(text)
        return SimpleNamespace(collect=lambda: [(self.version,)])


SAIL = Session("0.7.2")
ROWS = SimpleNamespace(sparkSession=SAIL)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pyspark_tablestore.read(SAIL, "/nowhere"),  # type: ignore[arg-type]
        lambda: pyspark_tablestore.write(ROWS, "/nowhere"),  # type: ignore[arg-type]
        lambda: pyspark_tablestore.lookup(ROWS, "/nowhere", on="id"),  # type: ignore[arg-type]
        lambda: pyspark_tablestore.ingest(SAIL, "/nowhere", "topic"),  # type: ignore[arg-type]
        lambda: pyspark_tablestore.register(SAIL),  # type: ignore[arg-type]
        lambda: compact(SAIL, "/nowhere"),  # type: ignore[arg-type]
        lambda: publish(SAIL, "/nowhere"),  # type: ignore[arg-type]
        lambda: SparkEngine(SAIL),  # type: ignore[arg-type]
    ],
    ids=["read", "write", "lookup", "ingest", "register", "compact", "publish", "engine"],
)
def test_a_session_of_a_server_that_is_no_spark_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ts.UnsupportedError, match=r"expected a session of Apache Spark.*'0\.7\.2'.*Sail") as refused:
        call()
    assert refused.value.kind == "engine"


def test_a_server_of_spark_is_asked_once() -> None:
    session = Session("4.2.1 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567")
    check_server(session)
    check_server(session)
    assert session.texts == ["SELECT version()"]


@pytest.mark.parametrize("method", ["reader", "streamReader", "writer", "streamWriter"])
def test_a_schema_of_arrow_is_refused_by_the_data_source(method: str, tmp_path: Path) -> None:
    source = pyspark_tablestore.DefaultSource({"path": str(tmp_path)})
    arguments = [True] if "rite" in method else []
    with pytest.raises(ts.UnsupportedError, match=r"expected a StructType of Apache Spark, found a pyarrow\.lib\.Schema"):
        getattr(source, method)(pa.schema([("id", pa.int64())]), *arguments)


@pytest.mark.spark
def test_the_version_of_spark_names_the_revision_it_was_built_from(spark: "SparkSession") -> None:
    (row,) = spark.sql("SELECT version()").collect()
    check_server(Session(row[0]))


def test_a_real_server_of_sail_is_refused(tmp_path: Path) -> None:
    if importlib.util.find_spec("pysail") is None:
        pytest.skip("pysail is not installed")
    run("sail.py", tmp_path)
