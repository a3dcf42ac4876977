"""A secret that a statement holds is in nothing that Spark prints, plans or keeps for its pages."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from tests.support.attacks.canary import CANARY, SECRETS, URLS

pytestmark = pytest.mark.spark

SHOWING = ("SHOW CREATE TABLE", "DESCRIBE EXTENDED", "SHOW OPTIONS", "EXPLAIN SELECT * FROM", "EXPLAIN INSERT INTO f SELECT * FROM")


def printed(env: ts.TableEnvironment, statement: str) -> str:
    """What a statement says: its rows as text, or its error with all that it came from."""
    try:
        result = env.execute_sql(statement)
        return str(result.to_reader().read_all().to_pylist()) + repr(result)
    except ts.TablestoreError as error:
        chain: list[str] = []
        at: BaseException | None = error
        while at is not None:
            chain += [str(at), repr(at)]
            at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
        return "\n".join(chain)


@pytest.mark.deep
def test_a_table_with_a_connector_shows_no_secret_on_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_READER_SECRET", CANARY)
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "files" / "f.parquet")
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark) as env:
        options = ", ".join(f"'{key}' = '{CANARY}'" for key in SECRETS)
        named = "'password' = 'env:SPARK_READER_SECRET', 'user' = 'me', 'dbtable' = 'x'"
        place = f"'connector' = 'filesystem', 'path' = '{tmp_path}/files'"
        env.execute_sql(f"CREATE TEMPORARY TABLE f (id BIGINT) WITH ({place}, {options})")
        tables = ["f"]
        for number, url in enumerate(URLS):
            tables.append(f"j{number}")
            env.execute_sql(f"CREATE TEMPORARY TABLE j{number} (id INT) WITH ('connector' = 'jdbc', 'url' = '{url}', {named})")
        for name in tables:
            queries = [*(f"{what} {name}" for what in SHOWING), f"SELECT * FROM {name}", f"INSERT INTO {name} VALUES (2)"]
            for query in queries:
                said = printed(env, query)
                assert CANARY not in said, query
        assert "env:SPARK_READER_SECRET" in printed(env, "SHOW OPTIONS j0")
        assert "'id': 1" in printed(env, "SELECT * FROM f WHERE id = 1")
        executions = spark._jsparkSession.sharedState().statusStore().executionsList()
        pages = [executions.apply(number) for number in range(executions.size())]
        assert pages
        assert not [page.description() for page in pages if CANARY in f"{page.physicalPlanDescription()}{page.description()}"]
        assert CANARY not in str(spark.sparkContext.getConf().getAll())
