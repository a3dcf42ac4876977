"""DESCRIBE HISTORY and RESTORE TABLE: what a table was, and how it is that again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts

ENGINES = ("duckdb", pytest.param("spark", marks=pytest.mark.spark))
Rows = Callable[[Any], list[tuple[Any, ...]]]


@pytest.fixture(params=ENGINES)
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine=request.param) as env:
        yield env


def history(env: ts.TableEnvironment, name: str = "t") -> list[dict[str, Any]]:
    return env.execute_sql(f"DESCRIBE HISTORY {name}").to_arrow().to_pylist()


@pytest.mark.deep_after(1)
def test_a_table_is_restored_by_a_version_of_its_history_and_goes_on_from_there(either: ts.TableEnvironment, rows_of: Rows) -> None:
    either.execute_sql("CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
    for text in ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'b')", "DELETE FROM t WHERE id = 1"):
        either.execute_sql(text)
    assert [(row["version"], row["operation"]) for row in history(either)] == [(3, "DELETE"), (2, "WRITE"), (1, "WRITE")]
    restored = either.execute_sql("RESTORE TABLE t TO VERSION AS OF 2").snapshot
    assert restored is not None and restored.id == 4
    newest = either.execute_sql("DESC HISTORY t LIMIT 1").to_arrow().to_pylist()
    assert [(row["version"], row["operation"], row["restored_version"]) for row in newest] == [(4, "RESTORE", 2)]
    assert rows_of(either.execute_sql("SELECT * FROM t ORDER BY id")) == [(1, "a"), (2, "b")]
    either.execute_sql("INSERT INTO t VALUES (1, 'c')")
    either.execute_sql(f"RESTORE t TO TIMESTAMP AS OF '{history(either)[-1]['timestamp']}'")
    assert rows_of(either.execute_sql("SELECT * FROM t")) == [(1, "a")]
    assert [row["version"] for row in history(either)] == [6, 5, 4, 3, 2, 1]
    assert either.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS").snapshot is not None
    assert "1 rows when analyzed at snapshot 6" in (either.execute_sql("EXPLAIN SELECT * FROM t").text or "")
    either.execute_sql("REFRESH TABLE t")
    either.execute_sql("CREATE OR REPLACE TABLE t (day STRING, n INT) PARTITIONED BY (day)")
    either.execute_sql("INSERT INTO t VALUES ('a', 1), ('b', 2)")
    assert rows_of(either.execute_sql("SHOW PARTITIONS t WHERE day > 'a'")) == [("day=b",)]


def test_history_has_one_row_a_snapshot_with_its_types_and_none_before_the_first(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id BIGINT)")
    schema = env.execute_sql("DESCRIBE HISTORY t").to_arrow().schema
    assert (history(env), schema.field("version").type, schema.field("timestamp").type) == ([], pa.int64(), pa.timestamp("ms"))
    env.catalog().table("default.t").append(pa.table({"id": [1, 2]}))
    env.execute_sql("TRUNCATE TABLE t")
    newest, first = history(env)
    snapshots = env.execute_sql("SHOW SNAPSHOTS t").to_arrow().to_pylist()
    assert [row["commit_time"] for row in snapshots] == [first["timestamp"], newest["timestamp"]]
    assert [row["commit_user"] for row in snapshots] == [first["user"], newest["user"]]
    assert (first["rows_added"], first["rows"], first["records"]) == (2, 2, 2)
    assert (newest["operation"], newest["records_added"], newest["records"]) == ("OVERWRITE", -2, 0)
    assert env.execute_sql("DESCRIBE HISTORY t LIMIT 0").to_arrow().num_rows == 0


def test_a_tag_keeps_what_is_restored_and_what_has_expired_is_refused_with_what_is_left(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id BIGINT)")
    table = env.catalog().table("default.t")
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    table.create_tag("2", 1)
    table.create_tag("first", 1)
    table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(ts.NotFoundError, match=r"(?s)no snapshot 2: retained are 3 to 3.*line 1, column 34"):
        env.execute_sql("RESTORE TABLE t TO VERSION AS OF 2")
    with pytest.raises(ts.NotFoundError, match="no snapshot at or before"):
        env.execute_sql("RESTORE TABLE t TO TIMESTAMP AS OF '2000-01-01 00:00:00'")
    with pytest.raises(ts.NotFoundError, match="no tag 'nope'"):
        env.execute_sql("RESTORE TABLE t TO VERSION AS OF 'nope'")
    with pytest.raises(ts.InvalidInputError, match="expected AS OF such as"):
        env.execute_sql("RESTORE TABLE t TO TIMESTAMP AS OF 'yesterday'")
    for tag in ("first", "2"):
        env.execute_sql(f"RESTORE TABLE t TO VERSION AS OF '{tag}'")
        assert table.scan().to_arrow()["id"].to_pylist() == [0]


def test_tags_and_consumers_have_what_they_had_after_a_restore(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id BIGINT)")
    table = env.catalog().table("default.t")
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    table.create_tag("newest")
    table.reset_consumer("reader", 3)
    env.execute_sql("RESTORE TABLE t TO VERSION AS OF 1")
    assert [snapshot.id for snapshot in table.snapshots()] == [1, 2, 3, 4]
    assert sorted(table.scan(tag="newest").to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert [consumer.next_snapshot for consumer in table.consumers()] == [3]


def test_refresh_drops_what_is_cached_of_a_table(duck: ts.TableEnvironment, tmp_path: Path) -> None:
    duck.execute_sql("CREATE TABLE t (id BIGINT)")
    duck.execute_sql("INSERT INTO t VALUES (1)")
    query = "SELECT count(*) AS n FROM t"
    assert duck.execute_sql(query).to_arrow()["n"].to_pylist() == [1]
    for manifest in (tmp_path / "wh" / "default.db" / "t" / "manifest").iterdir():
        manifest.unlink()
    assert duck.execute_sql(query).to_arrow()["n"].to_pylist() == [1]
    duck.execute_sql("REFRESH TABLE default.t")
    with pytest.raises(ts.TablestoreError, match="manifest-"):
        duck.execute_sql(query).to_arrow()
    duck.execute_sql("CREATE TEMPORARY VIEW w AS SELECT 1 AS id")
    duck.execute_sql("REFRESH TABLE w")
    with pytest.raises(ts.NotFoundError, match="nope"):
        duck.execute_sql("REFRESH TABLE nope")


def test_what_is_no_managed_table_has_no_history_and_is_not_restored(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TEMPORARY TABLE k (id INT) WITH ('connector' = 'kafka')")
    duck.execute_sql("CREATE TEMPORARY VIEW w AS SELECT 1 AS id")
    duck.execute_sql("CREATE TABLE t (id BIGINT)")
    for name in ("k", "w", "t$snapshots"):
        for text in (f"DESCRIBE HISTORY {name}", f"RESTORE TABLE {name} TO VERSION AS OF 1"):
            with pytest.raises(ts.InvalidInputError, match="for managed tables only"):
                duck.execute_sql(text)
    duck.execute_sql("INSERT INTO t VALUES (1)")
    duck.execute_sql("CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS SELECT id FROM t")
    with pytest.raises(ts.InvalidInputError, match="RESTORE TABLE is not for these"):
        duck.execute_sql("RESTORE TABLE m TO VERSION AS OF 1")
