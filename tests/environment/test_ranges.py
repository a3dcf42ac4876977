"""DISTRIBUTED BY RANGE: the layout of a CTAS, of INSERT OVERWRITE and of refreshes, and what is said of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablestore as ts

Rows = Callable[[Any], list[tuple[Any, ...]]]
COUNT = 4000


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE s (id BIGINT, x BIGINT)")
    table = duck.catalog().table("default.s")
    assert isinstance(table, ts.Table)
    table.append(pa.table({"id": np.random.default_rng(0).permutation(COUNT), "x": np.arange(COUNT)}))
    return duck


def planned(env: ts.TableEnvironment, name: str) -> tuple[int, int]:
    """The files that a query of a tenth of the values reads, and all files."""
    table = env.catalog().table(f"default.{name}")
    assert isinstance(table, ts.Table)
    text = table.scan(filter=f"id >= {COUNT // 2} AND id < {COUNT // 2 + COUNT // 20}").explain()
    read, whole = text.split("files      ")[1].split(" read")[0].split(" of ")
    return int(read), int(whole)


def test_a_table_of_a_query_and_what_overwrites_it(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE t DISTRIBUTED BY RANGE (id) INTO 10 BUCKETS AS SELECT * FROM s")
    assert planned(env, "t") == (1, 10)
    env.execute_sql("INSERT OVERWRITE t SELECT id, x + 1 FROM s")
    assert planned(env, "t") == (1, 10)
    assert rows_of(env.execute_sql("SELECT count(*), sum(id) FROM t")) == [(COUNT, COUNT * (COUNT - 1) // 2)]
    text = rows_of(env.execute_sql("SHOW CREATE TABLE t"))[0][0]
    env.execute_sql(text.replace("`t`", "`again`"))
    env.execute_sql("INSERT INTO again SELECT * FROM s")
    assert planned(env, "again") == (1, 10)
    env.execute_sql("CREATE TABLE alike LIKE t")
    env.execute_sql("INSERT INTO alike SELECT * FROM s")
    assert planned(env, "alike") == (1, 10)


def test_the_layout_is_altered_and_a_column_of_it_is_renamed(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t DISTRIBUTED BY RANGE (id) AS SELECT * FROM s")
    assert planned(env, "t") == (1, 1)
    env.execute_sql("ALTER TABLE t SET ('tablestore.clustering.ranges' = '8')")
    env.execute_sql("ALTER TABLE t RENAME COLUMN x TO y")
    env.execute_sql("ALTER TABLE t ADD COLUMN z STRING")
    env.execute_sql("INSERT OVERWRITE t SELECT id, x, 'z' FROM s")
    assert planned(env, "t") == (1, 8)
    env.execute_sql("ALTER TABLE t RESET ('tablestore.clustering.ranges')")
    env.execute_sql("INSERT OVERWRITE t SELECT id, x, 'z' FROM s")
    assert planned(env, "t") == (1, 1)


@pytest.mark.parametrize("mode", ["FULL", "CONTINUOUS"])
def test_refreshes_of_a_materialized_table(env: ts.TableEnvironment, rows_of: Rows, mode: str) -> None:
    declared = (
        "CREATE OR ALTER MATERIALIZED TABLE m DISTRIBUTED BY RANGE (id) INTO 10 BUCKETS FRESHNESS = INTERVAL '1' HOUR "
        f"REFRESH_MODE = {mode} AS SELECT id, x FROM s"
    )
    env.execute_sql(declared)
    env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH")
    assert planned(env, "m") == (1, 10)
    env.execute_sql(declared)
    env.execute_sql("INSERT INTO s VALUES (-1, 0)")
    env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH")
    read, whole = planned(env, "m")
    assert read == 1 and whole >= 10
    assert rows_of(env.execute_sql("SELECT count(*) FROM m")) == [(COUNT + 1,)]
    assert "'tablestore.clustering.ranges' = '10'" in str(rows_of(env.execute_sql("SHOW CREATE MATERIALIZED TABLE m")))


def test_a_keyed_table_is_refused(env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match="is for tables without a primary key"):
        env.execute_sql("CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED) DISTRIBUTED BY RANGE (id)")
    env.execute_sql("CREATE TABLE k (id BIGINT PRIMARY KEY NOT ENFORCED)")
    with pytest.raises(ts.InvalidInputError, match="rows of a keyed table lie in the order of its key"):
        env.execute_sql("CREATE TABLE t DISTRIBUTED BY RANGE (id) LIKE k")
    with pytest.raises(ts.InvalidInputError, match="nope"):
        env.execute_sql("CREATE TABLE t DISTRIBUTED BY RANGE (nope) AS SELECT * FROM s")
