"""A computed column that a stranger wrote into the warehouse is not computed; all else of the table is read."""

from pathlib import Path

import pytest

import tablestore as ts
from tests.support.sql.hostile import computed, expressions, set_options

TABLE = "CREATE TABLE t (id BIGINT, v STRING, twice AS id * 2, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)"


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql(TABLE)
    duck.execute_sql("INSERT INTO t VALUES (1, 'a', TIMESTAMP '2026-01-01 00:00:00')")
    duck.execute_sql("CREATE TABLE s (id BIGINT)")
    return duck


def rows(env: ts.TableEnvironment, text: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = env.execute_sql(text).to_arrow().to_pylist()
    return found


@pytest.mark.deep
def test_reading_a_hostile_column_is_a_typed_error(env: ts.TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("v\nsecret\n")
    for text in expressions(str(tmp_path)):
        set_options(tmp_path / "wh" / "default.db" / "t", computed("bad", 4, text))
        for query in ("SELECT * FROM t", "SELECT bad FROM t", "SELECT id FROM t WHERE bad = '1'", "EXPLAIN SELECT bad FROM t"):
            with pytest.raises(ts.InvalidInputError, match="the computed column 'bad' is not computed") as error:
                rows(env, query)
            assert error.value.kind == "stored-expression" and "`t`" in error.value.message, (text, query)
        assert rows(env, "SELECT id, v, twice FROM t") == [{"id": 1, "v": "a", "twice": 2}], text
        assert env.execute_sql("DESCRIBE EXTENDED t").to_arrow().num_rows > 4


def test_a_hostile_column_can_be_dropped(env: ts.TableEnvironment, tmp_path: Path) -> None:
    set_options(tmp_path / "wh" / "default.db" / "t", computed("bad", 4, "(SELECT 1)"))
    env.execute_sql("ALTER TABLE t DROP COLUMN bad")
    assert set(rows(env, "SELECT * FROM t")[0]) == {"id", "v", "twice", "ts"}
    set_options(tmp_path / "wh" / "default.db" / "t", computed("bad", 4, "(SELECT 1)"))
    env.execute_sql("DROP TABLE t")


def test_a_hostile_column_does_not_hide_behind_another_one(env: ts.TableEnvironment, tmp_path: Path) -> None:
    set_options(tmp_path / "wh" / "default.db" / "t", {**computed("bad", 4, "(SELECT 1)"), **computed("worse", 5, "bad || 'x'")})
    with pytest.raises(ts.InvalidInputError, match="the computed column 'bad' is not computed"):
        rows(env, "SELECT worse FROM t")


def test_a_hostile_watermark_is_not_computed(env: ts.TableEnvironment, tmp_path: Path) -> None:
    def watermark() -> list[object]:
        return [row["value"] for row in rows(env, "DESCRIBE EXTENDED t") if "watermark" in str(row["name"])]

    assert "2025-12-31 23:59:55" in str(watermark())
    for text in ("(SELECT max(ts) FROM '/x.csv')", "ts, 2", "CAST(current_user AS TIMESTAMP)", "repeat(ts, 1000000000)"):
        set_options(tmp_path / "wh" / "default.db" / "t", {"schema.watermark.0.strategy.expr": text})
        assert "2025-12-31" not in str(watermark())


@pytest.mark.parametrize(
    "text", ["(SELECT 1)", "rand()", "current_user()", "count(*)", "1 AS x", "repeat('x', id)", "sequence(1, id)"]
)
def test_what_no_reader_would_compute_is_not_defined(duck: ts.TableEnvironment, text: str) -> None:
    with pytest.raises((ts.InvalidInputError, ts.UnsupportedError)):
        duck.execute_sql(f"CREATE TABLE t (id BIGINT, c AS {text})")
    assert not duck.catalog().table_exists("default.t")
