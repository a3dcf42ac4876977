"""A statement that changes rows says how many, as reading the table before and after it shows, or NULL where it does not know."""

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.result import ROW_COUNTS

LAYOUTS = {
    "append": "(id BIGINT, day INT, v INT)",
    "append, partitioned": "(id BIGINT, day INT, v INT) PARTITIONED BY (day)",
    "append, deletion vectors": "(id BIGINT, day INT, v INT) WITH ('deletion-vectors.enabled' = 'true')",
    "keyed": "(id BIGINT PRIMARY KEY NOT ENFORCED, day INT, v INT) WITH ('bucket' = '2')",
    "keyed, deletion vectors": "(id BIGINT PRIMARY KEY NOT ENFORCED, day INT, v INT) "
    "WITH ('bucket' = '2', 'deletion-vectors.enabled' = 'true')",
    "keyed, partitioned": "(id BIGINT, day INT, v INT, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day)",
}
MERGE = "MERGE INTO t USING (SELECT CAST(s AS BIGINT) AS id, CAST(s % 2 AS INT) AS day FROM range(2, 7) AS r(s)) s "


def counted(env: ts.TableEnvironment, statement: str) -> tuple[int | None, ...]:
    """The row counts of a statement, after the parts that it knows were compared with what reading shows."""
    before = rows_of(env)
    result = env.execute_sql(statement)
    (row,) = result.to_arrow().to_pylist()
    assert list(row) == ["snapshot_id", *ROW_COUNTS]
    landed, counts = result.snapshot, result.counts
    assert counts is not None and result.seconds is not None and result.seconds >= 0
    assert row["snapshot_id"] == (None if landed is None else landed.id)
    after = rows_of(env)
    changed = {key: (before.get(key), after.get(key)) for key in before.keys() | after.keys()}
    assert row["num_inserted_rows"] in (None, sum(old is None for old, _ in changed.values()))
    assert row["num_deleted_rows"] in (None, sum(new is None for _, new in changed.values()))
    assert row["num_updated_rows"] in (None, sum(None not in pair and pair[0] != pair[1] for pair in changed.values()))
    assert tuple(row.values())[1:] == (counts.rows_affected, counts.rows_inserted, counts.rows_updated, counts.rows_deleted)
    return tuple(row.values())[1:]


def rows_of(env: ts.TableEnvironment) -> dict[int, int | None]:
    # A view of them all: those of level 0 of a table with deletion vectors are seen after a compaction.
    table = env.catalog().table("default.t")
    if table.primary_key and table.context.settings.deletion_vectors:
        table.compact()
    rows = env.execute_sql("SELECT id, v FROM t").to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in rows}


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_statement_says_the_rows_that_it_changed(duck: ts.TableEnvironment, layout: str) -> None:
    duck.execute_sql(f"CREATE TABLE t {LAYOUTS[layout]}")
    assert counted(duck, "INSERT INTO t VALUES (1, 1, 1), (2, 0, 2), (3, 1, 3), (4, 0, 4)") == (4, 4, 0, 0)
    keyed = "keyed" in layout
    assert counted(duck, "INSERT INTO t VALUES (11, 1, 0)") == ((1, None, None, 0) if keyed else (1, 1, 0, 0))
    assert counted(duck, "UPDATE t SET v = v + 1 WHERE id < 3") == (2, 0, 2, 0)
    assert counted(duck, "DELETE FROM t WHERE id = 11") == (1, 0, 0, 1)
    by_key = "ON t.id = s.id AND t.day = s.day" if "keyed, part" in layout else "ON t.id = s.id"
    clauses = "WHEN MATCHED AND s.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 50"
    assert counted(duck, f"{MERGE} {by_key} {clauses} WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, 9)") == (
        5,
        2,
        2,
        1,
    )
    assert counted(duck, "UPDATE t SET v = 0 WHERE id = 99") == (0, 0, 0, 0)
    assert counted(duck, "INSERT OVERWRITE t VALUES (20, 1, 1), (21, 1, 2)")[1:3] == (2, 0)
    assert counted(duck, "TRUNCATE TABLE t")[1:3] == (0, 0)


def test_a_merge_whose_condition_is_not_the_key_does_not_say_that_its_rows_are_new(duck: ts.TableEnvironment) -> None:
    duck.execute_sql(f"CREATE TABLE t {LAYOUTS['keyed']}")
    duck.execute_sql("INSERT INTO t VALUES (1, 1, 1), (2, 0, 2)")
    source = "MERGE INTO t USING (SELECT CAST(2 AS BIGINT) AS id, 7 AS v UNION ALL SELECT 1, 1) s ON t.v = s.v"
    clauses = "WHEN MATCHED THEN UPDATE SET day = 5 WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, 0, s.v)"
    assert duck.execute_sql(f"{source} {clauses}").to_arrow().to_pylist()[0] == dict(
        zip(("snapshot_id", *ROW_COUNTS), (2, 2, None, None, 0), strict=True)
    )


@pytest.mark.parametrize(("values", "expected"), [("(1, 1, 5), (9, 1, 5)", (2, None, None, 0)), ("(8, 1, 5)", (1, None, None, 0))])
def test_a_merge_that_is_an_upsert_does_not_guess_which_keys_were_there(
    duck: ts.TableEnvironment, values: str, expected: tuple[int | None, ...]
) -> None:
    duck.execute_sql(f"CREATE TABLE t {LAYOUTS['keyed']}")
    duck.execute_sql("INSERT INTO t VALUES (1, 1, 1), (2, 0, 2)")
    duck.execute_sql(f"CREATE TEMPORARY VIEW s AS SELECT * FROM (VALUES {values}) AS v(id, day, v)")
    merge = "MERGE INTO t USING (SELECT CAST(id AS BIGINT) AS id, day, v FROM s) s ON t.id = s.id"
    assert counted(duck, f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *") == expected


def test_python_merges_say_what_they_looked_up(duck: ts.TableEnvironment) -> None:
    duck.execute_sql(f"CREATE TABLE t {LAYOUTS['keyed']}")
    table = duck.catalog().table("default.t")
    table.upsert(pa.table({"id": [1, 2], "day": pa.array([0, 0], pa.int32()), "v": pa.array([1, 2], pa.int32())}))
    source = pa.table({"id": [2, 3], "day": pa.array([0, 0], pa.int32()), "v": pa.array([5, 6], pa.int32())})
    looked_up = table.merge(source, on="id").when_matched_update({"v": "source.v + 1"}).when_not_matched_insert_all().execute()
    upserted = table.merge(source, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    by_value = table.merge(source, on="v").when_not_matched_insert_all().execute()
    assert [one and one.counts.text for one in (looked_up, upserted, by_value)] == [
        "1 row inserted, 1 row updated",
        "2 rows written",
        None,
    ]


def test_statements_that_publish_nothing_say_zero_and_those_about_no_rows_have_no_counts(duck: ts.TableEnvironment) -> None:
    made = duck.execute_sql("CREATE TABLE t AS SELECT 1 AS id, 2 AS v")
    assert made.to_arrow().to_pylist() == [dict(zip(("snapshot_id", *ROW_COUNTS), (1, 1, 1, 0, 0), strict=True))]
    again = duck.execute_sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS id, 2 AS v")
    assert again.to_arrow().to_pylist() == [dict(zip(("snapshot_id", *ROW_COUNTS), (None, 0, 0, 0, 0), strict=True))]
    assert duck.execute_sql("SHOW TABLES").counts is None


def test_each_insert_of_a_statement_set_says_its_rows(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE a (id INT)")
    duck.execute_sql("CREATE TABLE b (id INT)")
    result = duck.execute_sql(
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a VALUES (1), (2); INSERT INTO b SELECT 1 AS id WHERE FALSE; END"
    )
    rows = [tuple(row.values()) for row in result.to_arrow().to_pylist()]
    assert [row[1:] for row in rows] == [(1, 2, 2, 0, 0), (None, 0, 0, 0, 0)]


def test_a_table_that_takes_the_place_of_another_says_the_rows_of_both(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t AS SELECT 1 AS id UNION ALL SELECT 2")
    replaced = duck.execute_sql("CREATE OR REPLACE TABLE t AS SELECT 3 AS id").counts
    assert replaced is not None and (replaced.files_added, replaced.files_removed) == (1, 1)
    assert (replaced.rows_affected, replaced.rows_inserted, replaced.rows_deleted) == (3, 1, 2)
