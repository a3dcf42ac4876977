"""The watch over what engines receive (``tests/support/sql/received``) finds what Spark must not get."""

from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts
from tablestore.environment import boundquery
from tests.support.sql.received import Received, unlisted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTED = frozenset({("spark_catalog", "default", "of_spark"), ("v",)})
ALLOWED = (
    "SELECT * FROM _pyspark_VIEW AS t JOIN V ON t.id = v.id",
    "WITH a AS (SELECT * FROM _pyspark_VIEW) SELECT * FROM a, `spark_catalog`.default.`OF_SPARK`",
    "SELECT /*+ BROADCAST(a) */ a.id FROM _pyspark_VIEW AS a JOIN _pyspark_VIEW AS b ON a.id = b.id",
    "SELECT id FROM range(3) LATERAL VIEW explode(array(1)) AS x",
    "FROM _pyspark_VIEW |> WHERE id > 1 |> AGGREGATE count(*) AS n",
    "VALUES (1)",
)
FORBIDDEN = (
    "SELECT * FROM of_spark",
    "SELECT * FROM default.v",
    "SELECT * FROM csv.`/etc/passwd`",
    "SELECT 1 WHERE EXISTS (SELECT * FROM `parquet`.`/x`)",
    "WITH a AS (SELECT * FROM a) SELECT * FROM a",
    "FROM _pyspark_VIEW |> JOIN secret ON true",
    "FROM text.`/etc/passwd` |> LIMIT 1",
    "SELECT TRANSFORM (id) USING 'cat' AS (id) FROM _pyspark_VIEW",
    "INSERT INTO v SELECT * FROM _pyspark_VIEW",
    "CREATE TABLE x AS SELECT 1",
    "DROP TABLE v",
    "SET a = b",
    "ADD JAR '/x.jar'",
    "SELECT 1; SELECT 2",
)


@pytest.mark.parametrize("text", ALLOWED)
def test_a_query_over_views_and_listed_tables_is_allowed(text: str) -> None:
    assert unlisted(text, LISTED) is None


@pytest.mark.parametrize("text", FORBIDDEN)
def test_what_no_query_lists_is_found(text: str) -> None:
    assert unlisted(text, LISTED) is not None


@pytest.mark.spark
def test_a_table_that_is_overlooked_fails_the_test_that_reads_it(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, received: Received
) -> None:
    from pyspark_tablestore.engine import SparkEngine

    (tmp_path / "x.csv").write_text("1\n")
    with ts.TableEnvironment.create(tmp_path / "wh", engine=SparkEngine(spark)) as env:
        env.execute_sql("CREATE TABLE t (id INT)")
        before = received.statements
        assert env.execute_sql("SELECT * FROM t").to_arrow().num_rows == 0
        assert received.statements > before
        received.check()
        monkeypatch.setattr(boundquery, "references_in", lambda _: ())
        assert env.execute_sql(f"SELECT * FROM csv.`{tmp_path}/x.csv`").to_arrow().num_rows == 1
        with pytest.raises(AssertionError, match=r"Spark received the table csv\.`.*x\.csv`"):
            received.check()


@pytest.mark.spark
def test_a_text_from_another_place_fails_the_test_that_sends_it(spark: "SparkSession", received: Received) -> None:
    def send(session: Any, text: str) -> Any:
        return session.sql(text)

    send(spark, "SELECT 1")
    received.check()
    FunctionType(send.__code__, {"__name__": "pyspark_tablestore.elsewhere"})(spark, "SELECT 1 AS from_elsewhere")
    with pytest.raises(AssertionError, match=r"Spark received what is no bound query from pyspark_tablestore\.elsewhere\.send"):
        received.check()
