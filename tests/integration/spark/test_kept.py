"""Permanent views and tables with a connector on Spark: kept by the catalog, read by DuckDB, and the other way."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def rows_of(env: ts.TableEnvironment, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()]


def doubled(x: int) -> int:
    return 2 * x


def test_spark_reads_and_changes_what_catalogs_keep(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark_tablestore.engine import SparkEngine

    files = tmp_path / "wh" / "files"
    files.mkdir(parents=True)
    (files / "rows.csv").write_text("1,a\n2,b\n")
    (tmp_path / "out.csv").write_text("1,a\n")
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as duck:
        duck.execute_script(
            f"""
            CREATE TABLE c (id INT, s STRING) USING csv OPTIONS (path '{files}');
            CREATE TABLE outside (id INT, s STRING) USING csv OPTIONS (path '{tmp_path / "out.csv"}');
            CREATE VIEW v AS SELECT max(id) AS most FROM c;
            CREATE FUNCTION plus(x INT, y INT) RETURNS INT RETURN x + y;
            SET 'table.functions.allowed-modules' = '{__name__}';
            CREATE FUNCTION doubled AS '{__name__}.doubled' LANGUAGE PYTHON;
            """
        )
        with ts.TableEnvironment.create(tmp_path / "wh", engine=SparkEngine(spark)) as other:
            assert rows_of(other, "SELECT s FROM c JOIN v ON id = most") == [("b",)]
            assert rows_of(other, "SHOW TABLES") == [("c",), ("outside",)]
            assert "path" in rows_of(other, "SHOW CREATE TABLE c")[0][0]
            assert [row[0] for row in rows_of(other, "DESCRIBE v")] == ["most"]
            assert rows_of(other, "SELECT plus(max(id), plus(1, 2)) AS n FROM c WHERE plus(id, 0) < 5") == [(5,)]
            assert ("plus",) in rows_of(other, "SHOW ALL FUNCTIONS") and ("doubled",) in rows_of(other, "SHOW USER FUNCTIONS")
            assert ("body", "x + y") in rows_of(other, "DESCRIBE FUNCTION plus")
            for text in ("SELECT * FROM outside", "INSERT INTO c VALUES (3, 'c')"):
                with pytest.raises(ts.UnsupportedError, match=r"table\.connectors\.allowed"):
                    other.execute_sql(text)
            with pytest.raises(ts.UnsupportedError, match=r"table\.functions\.allowed-modules"):
                other.execute_sql("SELECT doubled(1)")
            other.execute_sql(f"SET 'table.functions.allowed-modules' = '{__name__}'")
            assert rows_of(other, "SELECT doubled(plus(id, 1)) AS n FROM c ORDER BY n") == [(4,), (6,)]
            other.execute_sql("DROP FUNCTION plus")
            other.execute_sql("SET 'table.connectors.allowed' = 'filesystem'")
            other.execute_sql("INSERT INTO c VALUES (3, 'c')")
            other.execute_sql("ALTER VIEW v AS SELECT min(id) AS least FROM c")
            other.execute_sql("DROP TABLE outside")
        assert rows_of(duck, "SELECT least FROM v") == [(1,)]
        assert rows_of(duck, "SHOW TABLES") == [("c",)]
        assert rows_of(duck, "SELECT count(*) FROM c") == [(3,)]
