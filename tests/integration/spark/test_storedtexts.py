"""What a stranger wrote into the warehouse does not act in a Spark that reads it."""

from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.environment.engine import BoundQuery
from tablestore.sql.query.functions import is_spark_function
from tablestore.sql.stored.sparkreach import REACHING_FUNCTIONS
from tablestore.sql.stored.storedexpression import FUNCTIONS, check_expression
from tests.support.sql.hostile import computed, expressions, set_options, texts

pytestmark = pytest.mark.spark

QUERY = "materialized-table.definition-query"
# One of each kind of what a function takes, by how it is called.
CALLS = {
    "upper": "upper(v)",
    "transform": "transform(array(id), x -> x + id)[0]",
    "named_struct": "named_struct('a', id).a",
    "extract": "extract(YEAR FROM DATE '2026-01-31')",
    "interval": "CAST(TIMESTAMP '2026-01-31 00:00:00' + INTERVAL 2 HOURS AS STRING)",
    "comment": "id -- and so on",
    "case": "CASE WHEN id > 1 THEN 'a' ELSE v END",
}


@pytest.mark.deep
def test_hostile_definitions_and_columns_are_refused(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "sesame")
    (tmp_path / "secret.csv").write_text("secret\n")
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark.newSession()) as env:
        env.execute_sql("CREATE TABLE s (id BIGINT, v STRING)")
        env.execute_sql("INSERT INTO s VALUES (1, 'a')")
        env.execute_sql("CREATE MATERIALIZED TABLE t REFRESH_MODE = FULL AS SELECT id, v FROM s")
        for text in texts(str(tmp_path)):
            set_options(tmp_path / "wh" / "default.db" / "t", {QUERY: text})
            with pytest.raises(ts.FormatError, match="the definition of the materialized table is not run"):
                env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
            assert not (tmp_path / "written").exists(), text
        for text in expressions(str(tmp_path)):
            set_options(tmp_path / "wh" / "default.db" / "s", computed("bad", 2, text))
            for query in ("SELECT * FROM s", "SELECT bad FROM s"):
                with pytest.raises(ts.InvalidInputError, match="the computed column 'bad' is not computed"):
                    env.execute_sql(query)
        assert env.execute_sql("SELECT id, v FROM s").to_arrow().to_pylist() == [{"id": 1, "v": "a"}]
        for name, text in CALLS.items():
            set_options(tmp_path / "wh" / "default.db" / "s", computed("bad", 2, text))
            assert env.execute_sql("SELECT bad FROM s").to_arrow().num_rows == 1, name
        engine: Any = env.engine
        for text in ("SHOW TABLES", "FROM s INSERT INTO s SELECT *", "ADD JAR '/x.jar'", "SELECT 1; SELECT 2"):
            with pytest.raises(ts.InvalidInputError):
                engine.query(BoundQuery(text=text))


def test_a_stored_default_is_a_text_whatever_it_names(spark: Any, tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark.newSession()) as env:
        env.execute_sql("CREATE TABLE t (id INT, v STRING DEFAULT '${system:user.home} ${')")
        env.execute_sql("INSERT INTO t (id) VALUES (1)")
        assert env.execute_sql("SELECT v FROM t").to_arrow().to_pylist() == [{"v": "${system:user.home} ${"}]


def test_each_function_that_is_allowed_is_one_of_spark_and_gives_the_same_each_time(spark: Any) -> None:
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    assert all(is_spark_function(name) for name in FUNCTIONS | REACHING_FUNCTIONS)
    kinds = {name: str(catalog.lookupFunctionInfo(identifier(name)).getGroup()) for name in sorted(FUNCTIONS - _OF_THE_GRAMMAR)}
    wrong = {
        name: kind
        for name, kind in kinds.items()
        if kind in ("agg_funcs", "window_funcs", "generator_funcs", "table_funcs", "xml_funcs")
    }
    assert not wrong
    for name in ("rand", "uuid", "current_user", "version", "input_file_name", "monotonically_increasing_id", "explode", "sum"):
        with pytest.raises(ts.InvalidInputError):
            check_expression(f"{name}(id)", ["id"])


_OF_THE_GRAMMAR = frozenset({"timestampadd", "timestampdiff", "try_cast"})
