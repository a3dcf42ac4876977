"""Blue/green: another version of a materialized table is built beside it, compared, promoted, and the old one can come back."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.testing.deterministic import ManualClock

SALES = """CREATE MATERIALIZED TABLE sales (PRIMARY KEY (item) NOT ENFORCED) COMMENT 'sold' FRESHNESS = INTERVAL '1' DAY
WITH ('bucket' = '2') AS SELECT item, count(*) AS pieces, sum(price) AS total FROM orders GROUP BY item"""
# A column goes, another one comes before the others, and one has another type.
OTHER = "SELECT max(price) AS most, item, CAST(count(*) AS INT) AS pieces FROM orders WHERE price < 100 GROUP BY item"


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE orders (id BIGINT, item STRING, price BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    duck.execute_sql("INSERT INTO orders VALUES (1, 'ink', 2), (2, 'pen', 1), (3, 'ink', 2), (4, 'car', 900)")
    duck.execute_sql(SALES)
    duck.execute_sql("ALTER MATERIALIZED TABLE sales REFRESH")
    return duck


def table_of(env: ts.TableEnvironment, name: str = "sales") -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


def alter(env: ts.TableEnvironment, action: str, name: str = "sales") -> ts.TableEnvironment:
    env.execute_sql(f"ALTER MATERIALIZED TABLE {name} {action}")
    return env


def rows(env: ts.TableEnvironment, name: str = "sales") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = env.execute_sql(f"SELECT * FROM {name} ORDER BY item").to_arrow().to_pylist()
    return found


def verified(env: ts.TableEnvironment, name: str = "sales") -> dict[str, Any]:
    (found,) = env.execute_sql(f"ALTER MATERIALIZED TABLE {name} REFRESH VERIFY").to_arrow().to_pylist()
    assert (found["missing"], found["extra"]) == (0, 0)
    return dict(found)


BLUE = [
    {"item": "car", "pieces": 1, "total": 900},
    {"item": "ink", "pieces": 2, "total": 4},
    {"item": "pen", "pieces": 1, "total": 1},
]
GREEN = [{"most": 2, "item": "ink", "pieces": 2}, {"most": 1, "item": "pen", "pieces": 1}]


@pytest.mark.deep
def test_a_version_is_staged_compared_promoted_and_taken_back_and_readers_see_one_of_them(env: ts.TableEnvironment) -> None:
    alter(env, f"STAGE AS {OTHER}")
    assert rows(env) == BLUE and rows(env, "sales__staged") == GREEN
    (report,) = env.execute_sql("ALTER MATERIALIZED TABLE sales COMPARE").to_arrow().to_pylist()
    assert report == {
        "version": "staged",
        "only_current": 1,
        "only_other": 0,
        "changed": 0,
        "columns_added": "most BIGINT",
        "columns_removed": "total BIGINT",
        "columns_retyped": "pieces BIGINT -> INT",
        "sources_apart": "",
    }
    before = table_of(env)
    newest = before.snapshots()[-1].id
    env.execute_sql("INSERT INTO orders VALUES (5, 'pen', 7)")
    alter(env, "PROMOTE")
    after = table_of(env)
    green = [GREEN[0], {"most": 7, "item": "pen", "pieces": 2}]
    assert rows(env) == green and after.context.table_uuid == before.context.table_uuid
    assert env.materialized_table("sales").get_original_query() == OTHER and after.comment == "sold"
    assert after.scan(snapshot_id=newest).to_arrow().num_rows == 3
    assert env.list_tables() == ("orders", "sales", "sales__previous")
    assert rows(env, "sales__previous") == BLUE
    assert verified(env)["mode"] == "none"

    env.execute_sql("INSERT INTO orders VALUES (6, 'nib', 9)")
    assert verified(env)["mode"] == "incremental"
    alter(env, "ROLLBACK")
    blue = [*BLUE[:2], {"item": "nib", "pieces": 1, "total": 9}, {"item": "pen", "pieces": 2, "total": 8}]
    assert rows(env) == blue and "GROUP BY item" in env.materialized_table("sales").get_original_query()
    env.execute_sql("INSERT INTO orders VALUES (7, 'nib', 1)")
    assert verified(env)["mode"] == "incremental"
    assert env.list_tables() == ("orders", "sales", "sales__staged")
    alter(env, "PROMOTE")
    assert {row["item"]: row["most"] for row in rows(env)} == {"ink": 2, "pen": 7, "nib": 9}
    alter(env, "DISCARD")
    assert env.list_tables() == ("orders", "sales")


def test_another_key_partitioning_and_buckets_come_by_a_promotion_and_go_by_a_rollback(env: ts.TableEnvironment) -> None:
    evolution = env.evolution("sales")
    query = "SELECT item, price, count(*) AS pieces FROM orders GROUP BY item, price"
    evolution.stage(query, primary_key=("item", "price"), partitioned_by=("price",), options={"bucket": "3"}, comment="by price")
    report = evolution.compare()
    assert report.columns_added == ("price BIGINT",) and report.changed is None and not report.is_equal
    # As bags of item and pieces, which both have.
    assert (report.only_current, report.only_other) == (0, 0)
    evolution.promote()
    table = table_of(env)
    assert (table.primary_key, table.partition_by, table.comment) == (("item", "price"), ("price",), "by price")
    assert table.options()["bucket"] == "3"
    env.execute_sql("INSERT INTO orders VALUES (5, 'pen', 7)")
    assert verified(env)["mode"] == "incremental" and len(rows(env)) == 4
    evolution.rollback()
    table = table_of(env)
    assert (table.primary_key, table.partition_by, table.comment) == (("item",), (), "sold")
    assert table.options()["bucket"] == "2"
    assert rows(env) == [*BLUE[:2], {"item": "pen", "pieces": 2, "total": 8}]
    env.execute_sql("DELETE FROM orders WHERE id = 1")
    assert verified(env)["mode"] == "incremental"


def test_a_change_that_is_refused_in_place_names_the_way_out(env: ts.TableEnvironment) -> None:
    for changed in (SALES.replace("count(*) AS pieces, ", ""), SALES.replace("(item)", "(pieces)")):
        with pytest.raises(ts.TablestoreError, match="ALTER MATERIALIZED TABLE … STAGE AS query, then PROMOTE"):
            env.execute_sql(changed.replace("CREATE MAT", "CREATE OR ALTER MAT"))


def test_a_staged_version_keeps_what_the_statement_leaves_out(env: ts.TableEnvironment) -> None:
    alter(env, "STAGE WITH ('bucket' = '4', 'target-file-size' = '64 mb') FRESHNESS = INTERVAL '1' HOUR AS " + OTHER)
    staged, current = env.materialized_table("sales__staged"), env.materialized_table("sales")
    assert (staged.primary_key, staged.comment, staged.refresh_mode) == (("item",), "sold", current.refresh_mode)
    assert str(staged.freshness) == "INTERVAL '1' HOUR" and staged.options == {"bucket": "4", "target-file-size": "64 mb"}
    alter(env, "PROMOTE")
    assert table_of(env).options()["bucket"] == "4" and env.materialized_table("sales").options == staged.options
    alter(env, "STAGE () DISTRIBUTED BY (price) INTO 2 BUCKETS AS SELECT price, count(*) AS pieces FROM orders GROUP BY price")
    assert env.materialized_table("sales__staged").primary_key == ()
    with pytest.raises(ts.InvalidInputError, match="Primary key column 'item' not defined in the query schema"):
        alter(env, "STAGE AS SELECT price FROM orders")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("suspended", [False, True])
def test_a_continuous_table_is_refreshed_by_a_new_job_and_a_suspended_one_stays_suspended(
    env: ts.TableEnvironment, suspended: bool
) -> None:
    alter(env, "SET REFRESH_MODE = CONTINUOUS")
    if suspended:
        alter(env, "SUSPEND")

    def jobs() -> list[str]:
        shown = env.execute_sql("SHOW JOBS").to_arrow().to_pylist()
        return [row["job_id"] for row in shown if row["status"] == "RUNNING"]

    alter(env, f"STAGE AS {OTHER}")
    before = jobs()
    assert len(before) == (0 if suspended else 1)
    for action in ("PROMOTE", "ROLLBACK"):
        alter(env, action)
        after = jobs()
        assert len(after) == len(before) and not set(before) & set(after)
        # The version beside it is not kept fresh, so it is not late either.
        (figures,) = env.freshness()
        assert str(figures.status) == ("SUSPENDED" if suspended else "ACTIVATED")
        before = after
    if suspended:
        alter(env, "RESUME")
    assert rows(env) == BLUE


def test_a_table_that_is_made_from_it_follows_each_version(env: ts.TableEnvironment) -> None:
    env.execute_sql(
        "CREATE MATERIALIZED TABLE items (PRIMARY KEY (item) NOT ENFORCED) FRESHNESS = INTERVAL '1' DAY "
        "AS SELECT item, pieces FROM sales"
    )
    verified(env, "items")
    for action in (f"STAGE AS {OTHER}", "PROMOTE", "ROLLBACK"):
        alter(env, action)
        verified(env, "items")
        assert [row["item"] for row in rows(env, "items")] == [row["item"] for row in rows(env)]
    with pytest.raises(ts.InvalidInputError, match="cannot be made from itself"):
        alter(env, "STAGE AS SELECT item, pieces FROM items")


def test_what_cannot_be_staged_promoted_or_discarded_says_why_and_changes_nothing(env: ts.TableEnvironment) -> None:
    before = table_of(env)
    for action in ("COMPARE", "PROMOTE", "ROLLBACK", "DISCARD"):
        with pytest.raises(ts.NotFoundError, match=r"STAGE AS query makes one|was not promoted"):
            alter(env, action)
    with pytest.raises(ts.InvalidInputError, match="is not a materialized table"):
        env.execute_sql("ALTER MATERIALIZED TABLE orders PROMOTE")
    with pytest.raises(ts.TablestoreError, match="no_such"):
        alter(env, "STAGE AS SELECT item, no_such FROM orders")
    with pytest.raises(ts.TablestoreError):
        alter(env, "STAGE AS SELECT item, CAST(raise_error('no') AS STRING) AS pieces FROM orders")
    assert env.list_tables() == ("orders", "sales")
    env.execute_sql("CREATE TABLE sales__staged (id BIGINT)")
    with pytest.raises(ts.AlreadyExistsError, match="no version of"):
        alter(env, f"STAGE AS {OTHER}")
    env.execute_sql("DROP TABLE sales__staged")
    alter(env, f"STAGE AS {OTHER}")
    with pytest.raises(ts.InvalidInputError, match="which is a version of"):
        alter(env, "STAGE AS SELECT item FROM sales__staged")
    with pytest.raises(ts.InvalidInputError, match="is a version of the materialized table sales"):
        env.execute_sql(f"ALTER MATERIALIZED TABLE sales__staged STAGE AS {OTHER}")
    after = table_of(env)
    assert (after.table_schema, after.snapshots()) == (before.table_schema, before.snapshots())
    env.execute_sql("DROP MATERIALIZED TABLE sales")
    assert env.list_tables() == ("orders",)


def test_a_promotion_that_fails_leaves_the_table_and_both_versions_beside_it_as_they_were(env: ts.TableEnvironment) -> None:
    alter(env, f"STAGE AS {OTHER}")
    alter(env, "PROMOTE")
    env.execute_sql("CREATE TABLE prices (item STRING, price BIGINT, PRIMARY KEY (item) NOT ENFORCED)")
    alter(env, "STAGE AS SELECT item, price FROM prices")
    before, beside = table_of(env), [rows(env, f"sales__{role}") for role in ("staged", "previous")]
    env.execute_sql("DROP TABLE prices")
    with pytest.raises(ts.NotFoundError, match="prices"):
        alter(env, "PROMOTE")
    after = table_of(env)
    assert (after.table_schema, after.snapshots()) == (before.table_schema, before.snapshots())
    assert [rows(env, f"sales__{role}") for role in ("staged", "previous")] == beside
    alter(env, "ROLLBACK")
    assert rows(env) == BLUE


def test_no_version_that_went_keeps_snapshots_of_its_sources(env: ts.TableEnvironment) -> None:
    def held() -> list[str]:
        return [one.owner for one in RetentionLeases(table_of(env, "orders").context.files).all()]

    env.execute_sql("CREATE TABLE prices (item STRING, price BIGINT, PRIMARY KEY (item) NOT ENFORCED)")
    alter(env, "STAGE AS SELECT item, count(*) AS pieces FROM prices GROUP BY item")
    alter(env, "PROMOTE")
    assert not held()
    alter(env, "ROLLBACK")
    assert len(held()) == 1
    alter(env, "DISCARD")
    assert len(held()) == 1


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("refreshes", ["REFRESH_MODE = FULL", "FRESHNESS = INTERVAL '5' MINUTE"])
@pytest.mark.parametrize("suspended", [False, True])
def test_another_query_lets_go_of_the_sources_that_it_does_not_read(
    duck: ts.TableEnvironment, refreshes: str, suspended: bool
) -> None:
    def held() -> list[int]:
        return [len(RetentionLeases(table_of(duck, name).context.files).all()) for name in ("one", "two")]

    for name in ("one", "two"):
        duck.execute_sql(f"CREATE TABLE {name} (id BIGINT)")
        duck.execute_sql(f"INSERT INTO {name} VALUES (1)")
    duck.execute_sql(f"CREATE MATERIALIZED TABLE t {refreshes} AS SELECT id FROM one")
    alter(duck, "REFRESH", "t")
    if suspended:
        alter(duck, "SUSPEND", "t")
    assert held() == [1, 0]
    alter(duck, "AS SELECT id FROM two", "t")
    alter(duck, "REFRESH", "t")
    assert held() == [0, 1]


@pytest.mark.deep
def test_rows_are_compared_by_key_or_as_bags_by_what_sql_calls_equal(duck: ts.TableEnvironment) -> None:
    schema = pa.schema(
        [pa.field("k", pa.int64(), nullable=False), ("x", pa.float64()), ("ä b", pa.decimal128(38, 2)), ("b", pa.binary())]
    )
    nan, wide, inf = float("nan"), Decimal("9" * 36 + ".99"), float("inf")
    given = [
        (1, nan, wide, b""),
        (2, -0.0, wide.copy_negate(), None),
        (3, None, None, b"\0"),
        (4, inf, wide, b"x"),
        (5, 1.0, wide, b"y"),
    ]
    duck.catalog().create_database("default")
    duck.catalog().create_table("default.odd-names", schema, primary_key=["k"])
    odd = duck.catalog().table("default.odd-names")
    assert isinstance(odd, ts.Table)
    odd.upsert(pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in given], schema=schema))
    query = "SELECT k, x, `ä b`, b FROM `odd-names`"
    for key in ("(PRIMARY KEY (k) NOT ENFORCED)", ""):
        duck.execute_sql(f"CREATE MATERIALIZED TABLE t {key} FRESHNESS = INTERVAL '1' DAY AS {query}")
        evolution = duck.evolution("t")
        evolution.stage(query)
        assert evolution.compare().only_other == 5 and not evolution.compare().is_equal
        duck.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
        assert evolution.compare().is_equal
        assert str(evolution.compare()) == "the staged version has the columns and rows of the current one"
        evolution.stage(
            "SELECT k + CAST(k = 5 AS BIGINT) AS k, CASE k WHEN 2 THEN 0.0D WHEN 1 THEN -x WHEN 3 THEN 7.0D ELSE x END AS x, "
            "`ä b`, CASE WHEN k = 4 THEN NULL ELSE b END AS b FROM `odd-names` WHERE k > 0"
        )
        report = evolution.compare()
        # NaN is NaN, zero is zero; 3 and 4 have other values, 5 has another key.
        assert report.changed == (2 if key else None)
        assert (report.only_current, report.only_other) == ((1, 1) if key else (3, 3))
        assert {row["k"] for row in report.examples_only_other.to_pylist()} == ({6} if key else {3, 4, 6})
        evolution.stage("SELECT CAST(k AS STRING) AS k, `ä b` AS e FROM `odd-names`", primary_key=("k",) if key else ())
        report = evolution.compare()
        assert (report.only_current, report.only_other, report.changed) == (5, 5, None)
        assert report.columns_retyped[0].startswith("k BIGINT") and "columns of another type: k BIGINT" in str(report)
        odd.upsert({"k": [9], "x": [1.0], "ä b": [wide], "b": [b""]})
        evolution.stage(query)
        assert evolution.compare().apart == ("tablestore.default.odd-names",)
        odd.delete({"k": [9]})
        duck.execute_sql("DROP MATERIALIZED TABLE t")


def test_whoever_follows_the_table_gets_the_rows_of_each_version(env: ts.TableEnvironment) -> None:
    for batch in table_of(env).consume("full", consumer_id="board", follow=False):
        batch.commit()
    alter(env, f"STAGE AS {OTHER}")
    alter(env, "PROMOTE")
    with pytest.raises(ts.NotFoundError) as error:
        list(table_of(env).consume(consumer_id="board", follow=False))
    assert error.value.kind == "discontinuity"
    batches = table_of(env).consume(consumer_id="board", follow=False, on_discontinuity="restart")
    assert {row["item"]: row["most"] for batch in batches for row in batch.rows.to_pylist()} == {"ink": 2, "pen": 1}


@pytest.mark.deep
def test_the_previous_version_goes_after_the_time_that_the_table_says(tmp_path: Path) -> None:
    clock = ManualClock()
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", clock=clock) as env:
        env.execute_sql("CREATE TABLE orders (id BIGINT, item STRING, price BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
        env.execute_sql(SALES.replace("'bucket' = '2'", "'tablestore.previous-version.time-retained' = '2 d'"))
        for action in (f"STAGE AS {OTHER}", "PROMOTE"):
            alter(env, action)
        for seconds, there in ((100_000, True), (100_000, False)):
            clock.advance(seconds)
            assert all(one.error is None for one in env.refresh_due())
            assert ("sales__previous" in env.list_tables()) is there
        with pytest.raises(ts.InvalidInputError, match="is where the definition of a materialized table is kept"):
            alter(env, f"STAGE WITH ('type' = 'table') AS {OTHER}")


def test_the_previous_version_comes_back_also_where_the_snapshots_that_it_was_made_from_have_expired(
    env: ts.TableEnvironment,
) -> None:
    env.execute_sql("ALTER TABLE orders SET ('snapshot.num-retained.min' = '1')")
    alter(env, f"STAGE AS {OTHER}")
    alter(env, "PROMOTE")
    env.execute_sql("INSERT INTO orders VALUES (5, 'pen', 7)")
    alter(env, "REFRESH")
    orders = table_of(env, "orders")
    orders.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    assert len(orders.snapshots()) == 1
    alter(env, "ROLLBACK")
    assert rows(env) == [*BLUE[:2], {"item": "pen", "pieces": 2, "total": 8}]
    assert "has expired" in str(env.refresh_history("sales")[0].reason)
