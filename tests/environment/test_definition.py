"""CREATE, ALTER and DROP of tables, databases and catalogs; an engine is not needed for any of it."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts

Rows = Callable[[Any], list[tuple[Any, ...]]]
ORDERS = """
CREATE TABLE orders (
  id BIGINT COMMENT 'the key', day STRING, price DECIMAL(10, 2) DEFAULT 1.5, at TIMESTAMP(3), tags ROW<a INT, b ARRAY<STRING>>,
  channel STRING METADATA FROM 'c' VIRTUAL,
  WATERMARK FOR at AS at - INTERVAL '5' SECOND,
  PRIMARY KEY (id, day) NOT ENFORCED
) COMMENT 'it''s all' PARTITIONED BY (day) WITH ('bucket' = '2')
"""


def test_show_create_table_prints_a_statement_that_makes_the_same_table(env: ts.TableEnvironment) -> None:
    env.execute_sql(ORDERS)
    text = env.execute_sql("SHOW CREATE TABLE orders").to_arrow().column(0)[0].as_py()
    before = env.catalog().table("default.orders").table_schema
    env.execute_sql("DROP TABLE orders")
    env.execute_sql(text)
    after = env.catalog().table("default.orders").table_schema
    assert (after.fields, after.primary_keys, after.partition_keys, after.comment) == (
        before.fields, before.primary_keys, before.partition_keys, "it's all",
    )  # fmt: skip
    assert {k: v for k, v in after.options.items() if "uuid" not in k} == {
        k: v for k, v in before.options.items() if "uuid" not in k
    }
    assert env.execute_sql("SHOW CREATE TABLE orders").to_arrow().column(0)[0].as_py() == text


def test_describe_lists_stored_and_metadata_columns_in_their_order(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(ORDERS)
    rows = rows_of(env.execute_sql("DESCRIBE orders"))
    assert rows[0] == ("id", "BIGINT", False, "PRI(id, day)", None, None, "the key")
    assert rows[2] == ("price", "DECIMAL(10, 2)", True, None, "DEFAULT 1.5", None, None)
    assert rows[3][5] == "at - INTERVAL '5' SECOND"
    assert rows[5] == ("channel", "STRING", True, None, "METADATA FROM 'c' VIRTUAL", None, None)


def test_columns_that_are_not_stored_keep_their_place_when_others_come_and_go(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE t (a INT, m STRING METADATA, b INT, c INT)")

    def names() -> list[Any]:
        return [row[0] for row in rows_of(env.execute_sql("DESCRIBE t"))]

    for action, expected in [
        ("ADD d INT", ["a", "m", "b", "c", "d"]),
        ("ADD e INT AFTER m", ["a", "m", "e", "b", "c", "d"]),
        ("DROP COLUMN a", ["m", "e", "b", "c", "d"]),
        ("RENAME COLUMN b TO f", ["m", "e", "f", "c", "d"]),
        ("ADD g INT FIRST", ["g", "m", "e", "f", "c", "d"]),
        ("DROP COLUMN m", ["g", "e", "f", "c", "d"]),
    ]:
        env.execute_sql(f"ALTER TABLE t {action}")
        assert names() == expected, action
    assert not [key for key in env.catalog().table("default.t").options() if key.startswith("schema.")]
    assert list(env.catalog().table("default.t").table_schema.field_names) == names()


def test_like_takes_what_is_asked_for(env: ts.TableEnvironment) -> None:
    env.execute_sql(ORDERS)
    env.execute_sql("CREATE TABLE same (extra INT) WITH ('bucket' = '3') LIKE orders")
    same = env.catalog().table("default.same")
    assert (same.primary_key, same.partition_by, same.options()["bucket"]) == (("id", "day"), ("day",), "3")
    assert same.table_schema.field_names[-1] == "extra"
    env.execute_sql("CREATE TABLE bare LIKE orders (EXCLUDING ALL)")
    bare = env.catalog().table("default.bare")
    assert (bare.primary_key, bare.partition_by) == ((), ())
    assert not [key for key in bare.options() if key.startswith("schema.")]
    with pytest.raises(ts.InvalidInputError, match="both tables set bucket"):
        env.execute_sql("CREATE TABLE x WITH ('bucket' = '3') LIKE orders (INCLUDING OPTIONS)")


def test_a_connector_table_is_kept_by_its_catalog_and_makes_no_table(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE k (id INT) WITH ('connector' = 'kafka', 'topic' = 't')")
    env.execute_sql("CREATE TABLE p (id INT) USING parquet OPTIONS (path '/data')")
    assert env.list_tables() == ("k", "p")
    assert env.catalog().list_tables("default") == ()
    env.execute_sql("ALTER TABLE k SET ('topic' = 'u')")
    assert rows_of(env.execute_sql("SHOW TBLPROPERTIES k")) == [("topic", "u")]
    with pytest.raises(ts.InvalidInputError, match="TRUNCATE TABLE is for managed tables only"):
        env.execute_sql("TRUNCATE TABLE k")
    env.execute_sql("DROP TABLE k")
    assert env.list_tables() == ("p",)


def test_a_database_with_a_connector_table_is_dropped_with_cascade_only(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE DATABASE shop")
    env.execute_sql("CREATE TABLE shop.k (id INT) WITH ('connector' = 'kafka')")
    with pytest.raises(ts.InvalidInputError, match="with a connector, for example 'k'"):
        env.execute_sql("DROP DATABASE shop")
    env.execute_sql("DROP DATABASE shop CASCADE")
    with pytest.raises(ts.NotFoundError):
        env.execute_sql("DESCRIBE shop.k")


def test_using_tablestore_is_a_managed_table(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id INT) USING tablestore TBLPROPERTIES ('target-file-size' = '1 mb')")
    assert env.catalog().table("default.t").options()["target-file-size"] == "1 mb"


def test_all_actions_of_one_alter_are_done_or_none(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (a INT, b INT)")
    with pytest.raises(ts.NotFoundError):
        env.execute_sql("ALTER TABLE t DROP COLUMNS (b, nope)")
    assert env.catalog().table("default.t").table_schema.field_names == ("a", "b")


def test_truncate_and_drop_partition_remove_rows(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (day STRING, v INT) PARTITIONED BY (day)")
    env.catalog().table("default.t").append(pa.table({"day": ["a", "b", "c"], "v": [1, 2, 3]}))
    assert env.execute_sql("ALTER TABLE t DROP PARTITION (day = 'a')").snapshot.id == 2  # type: ignore[union-attr]
    env.execute_sql("TRUNCATE TABLE t PARTITION (day = 'b')")
    assert env.catalog().table("default.t").scan().to_arrow().column("v").to_pylist() == [3]
    env.execute_sql("TRUNCATE TABLE t")
    assert env.catalog().table("default.t").scan().count() == 0
    with pytest.raises(ts.NotFoundError, match=r"no partition \(day=a\)"):
        env.execute_sql("ALTER TABLE t DROP PARTITION (day = 'a')")
    assert env.execute_sql("ALTER TABLE t DROP IF EXISTS PARTITION (day = 'a')").snapshot is None


def test_show_partitions_tells_null_an_empty_text_and_the_text_of_the_default_name_apart(
    env: ts.TableEnvironment, rows_of: Rows
) -> None:
    none = "__DEFAULT_PARTITION__"
    env.execute_sql("CREATE TABLE t (day STRING, hour INT, v INT) PARTITIONED BY (day, hour)")
    rows = {"day": [None, "", "a", None, none, "%5F_DEFAULT_PARTITION__"], "hour": [None, None, 1, 2, None, None], "v": range(6)}
    table = env.catalog().table("default.t")
    table.append(pa.table(rows, pa.schema({"day": pa.string(), "hour": pa.int32(), "v": pa.int32()})))  # type: ignore[union-attr]
    shown = [
        f"day=%255F_DEFAULT_PARTITION__/hour={none}", f"day=%5F_DEFAULT_PARTITION__/hour={none}", f"day=/hour={none}",
        f"day={none}/hour=2", f"day={none}/hour={none}", "day=a/hour=1",
    ]  # fmt: skip
    assert rows_of(env.execute_sql("SHOW PARTITIONS t")) == [(one,) for one in shown]
    assert rows_of(env.execute_sql(f"SHOW PARTITIONS t PARTITION (day = '{none}')")) == [(shown[1],)]
    assert rows_of(env.execute_sql("SHOW PARTITIONS t PARTITION (day = NULL)")) == [(shown[3],), (shown[4],)]
    listed = table.partitions()  # type: ignore[union-attr]
    assert (listed["partition"].to_pylist(), set(listed["record_count"].to_pylist())) == (shown, {1})
    assert env.catalog().table("default.t$partitions").scan().to_arrow()["record_count"].to_pylist() == [1] * 6  # type: ignore[union-attr]


def test_show_partitions_lists_those_that_a_condition_is_true_of(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE t (day DATE, x DOUBLE, v INT) PARTITIONED BY (day, x)")
    days = [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 2), None]
    rows = {"day": days, "x": [1.5, -0.0, float("nan"), None], "v": range(4)}
    env.catalog().table("default.t").append(pa.table(rows, pa.schema({"day": pa.date32(), "x": pa.float64(), "v": pa.int32()})))  # type: ignore[union-attr]
    shown = [name for (name,) in rows_of(env.execute_sql("SHOW PARTITIONS t"))]
    first, zero, nan, null = shown
    for condition, expected in {
        "day >= DATE '2026-01-02'": [zero, nan],
        "day = '2026-01-01' OR day IS NULL": [first, null],
        "NOT day = '2026-01-01'": [zero, nan],
        "x = 0": [zero],
        "x > 1": [first, nan],
        "x = 'NaN'": [nan],
        "x IN (1.5, 2) AND month(day) = 1": [first],
        "DAY > '2027-01-01'": [],
        "TRUE": shown,
        "NULL": [],
    }.items():
        assert [name for (name,) in rows_of(env.execute_sql(f"SHOW PARTITIONS t WHERE {condition}"))] == expected, condition
    both = "SHOW PARTITIONS t PARTITION (day = '2026-01-02') WHERE x < 1"
    assert rows_of(env.execute_sql(both)) == [(zero,)]
    env.execute_sql("TRUNCATE TABLE t")
    assert rows_of(env.execute_sql("SHOW PARTITIONS t WHERE x > 1")) == []


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("v = 1", "the column 'v', which does not exist (columns: day)"),
        ("dy = 'a'", "did you mean 'day'"),
        ("day", "compares the column 'day'"),
        ("day = (SELECT 'a')", "Subquery"),
        ("day = 'a' AND", "line 1"),
    ],
)
def test_a_condition_on_partitions_is_about_their_columns_alone(env: ts.TableEnvironment, condition: str, message: str) -> None:
    env.execute_sql("CREATE TABLE t (day STRING, v INT) PARTITIONED BY (day)")
    with pytest.raises((ts.InvalidInputError, ts.UnsupportedError)) as refused:
        env.execute_sql(f"SHOW PARTITIONS t WHERE {condition}")
    assert message in refused.value.message and "line 1, column" in refused.value.message


@pytest.mark.parametrize("rows", ["(v, p) VALUES (1, 1)", "(v, P) VALUES (1, 1)", "BY NAME SELECT 1 AS v, 2 AS p"])
def test_a_column_with_a_value_in_partition_and_in_the_rows_is_refused_by_its_name(duck: ts.TableEnvironment, rows: str) -> None:
    duck.execute_sql("CREATE TABLE t (p INT, v INT) PARTITIONED BY (p)")
    for words in ("INSERT INTO", "INSERT OVERWRITE"):
        with pytest.raises(ts.InvalidInputError, match=r"column 'p' has its value from PARTITION \(p = …\)"):
            duck.execute_sql(f"{words} t PARTITION (p = 1) {rows}")


def test_dropping_or_resetting_what_is_not_there_changes_nothing(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (a INT, r ROW<x INT, y INT>) WITH ('target-file-size' = '1 mb')")
    before = env.catalog().table("default.t").table_schema
    env.execute_sql("ALTER TABLE t DROP COLUMN IF EXISTS nope")
    env.execute_sql("ALTER TABLE t DROP COLUMN IF EXISTS r.nope")
    env.execute_sql("ALTER TABLE t DROP COLUMN IF EXISTS nope.x")
    env.execute_sql("ALTER TABLE t RESET ('write-buffer-size')")
    assert env.catalog().table("default.t").table_schema == before
    with pytest.raises(ts.InvalidInputError, match="did you mean 'target-file-size'"):
        env.execute_sql("ALTER TABLE t RESET ('target-file-sise')")
    env.execute_sql("ALTER TABLE t DROP COLUMN IF EXISTS r.x")
    env.execute_sql("ALTER TABLE t RESET ('target-file-size', 'write-buffer-size')")
    table = env.catalog().table("default.t")
    assert "target-file-size" not in table.options()
    assert table.schema.field("r").type == pa.struct({"y": pa.int32()})


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD COLUMN ID INT",
        "ALTER TABLE t RENAME COLUMN v TO Id",
        "ALTER TABLE t ADD COLUMN r.X INT",
        "ALTER TABLE t RENAME COLUMN r.y TO X",
        "CREATE TABLE u (a INT, A INT)",
        "CREATE TABLE u (ID INT) LIKE t",
    ],
)
def test_a_column_name_that_differs_in_case_only_is_refused_with_the_reason(env: ts.TableEnvironment, statement: str) -> None:
    env.execute_sql("CREATE TABLE t (id INT, v STRING, r ROW<x INT, y INT>)")
    before = env.catalog().table("default.t").table_schema
    with pytest.raises(ts.TablestoreError, match="differ in case only") as caught:
        env.execute_sql(statement)
    assert caught.value.kind == "duplicate-column"
    assert env.catalog().table("default.t").table_schema == before


def test_a_column_may_change_the_case_of_its_own_name(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id INT, r ROW<x INT>)")
    env.execute_sql("ALTER TABLE t RENAME COLUMN id TO ID")
    env.execute_sql("ALTER TABLE t RENAME COLUMN r.x TO X")
    assert env.catalog().table("default.t").schema == pa.schema({"ID": pa.int32(), "r": pa.struct({"X": pa.int32()})})


def test_the_comment_of_a_nested_field_is_kept(env: ts.TableEnvironment, rows_of: Rows) -> None:
    def shown(name: str) -> str:
        return str(rows_of(env.execute_sql(f"SHOW CREATE TABLE {name}"))[0][0])

    env.execute_sql("CREATE TABLE t (r ROW<a INT COMMENT 'in euro', b ARRAY<STRUCT<c: INT COMMENT 'it''s'>>>)")
    assert "ROW<`a` INT COMMENT 'in euro', `b` ARRAY<ROW<`c` INT COMMENT 'it''s'>>>" in shown("t")
    env.execute_sql(shown("t").replace("`t`", "`u`"))
    assert shown("u").replace("`u`", "`t`") == shown("t")
    env.execute_sql("ALTER TABLE t ADD COLUMN s ROW<d INT COMMENT 'new'>")
    with pytest.raises(ts.UnsupportedError, match="part by part"):
        env.execute_sql("ALTER TABLE t MODIFY r ROW<a INT COMMENT 'in cent', b ARRAY<ROW<c INT COMMENT 'it''s'>>>")
    assert "`s` ROW<`d` INT COMMENT 'new'>" in shown("t")


def test_a_catalog_is_made_used_and_forgotten(env: ts.TableEnvironment, tmp_path: Any, rows_of: Rows) -> None:
    env.execute_sql(f"CREATE CATALOG lake WITH ('warehouse' = '{tmp_path / 'lake'}')")
    env.execute_sql("CREATE DATABASE lake.shop")
    env.execute_sql("CREATE TABLE lake.shop.t (id INT)")
    env.execute_sql("USE lake.shop")
    assert (env.current_catalog, env.current_database, env.list_tables()) == ("lake", "shop", ("t",))
    with pytest.raises(ts.InvalidInputError, match="current one"):
        env.execute_sql("DROP CATALOG lake")
    env.execute_sql("USE CATALOG tablestore")
    env.execute_sql("DROP CATALOG lake")
    assert env.list_catalogs() == ("tablestore",)
    assert ts.open_table(str(tmp_path / "lake" / "shop.db" / "t")).schema.names == ["id"]


@pytest.mark.parametrize(
    ("statement", "error", "place"),
    [
        ("DESCRIBE ordrs", "did you mean 'orders'", "line 1, column 10"),
        ("DROP TABLE\n  ordrs", "did you mean 'orders'", "line 2, column 3"),
        ("USE shpo", "CREATE DATABASE makes one", "line 1, column 5"),
        ("DESCRIBE lake.shop.t", "no catalog 'lake'", "line 1, column 10"),
        ("ALTER TABLE orders DROP COLUMN pricee", "did you mean 'price'", "line 1, column 32"),
        ("ALTER TABLE orders SET ('bukcet' = '1')", "did you mean 'bucket'", "line 1, column 26"),
        ("CREATE TABLE x (a INT) WITH ('bucket' = 'many')", "option bucket: expected a number", "line 1, column 42"),
        ("DESCRIBE orders$fles", "did you mean 'files'", "line 1, column"),
        ("DESCRIBE a.b.c.d", "at most 3 parts", "line 1, column 10"),
        ("ALTER TABLE orders PARTITION (dya = 'a') COMPACT", "did you mean 'day'", "line 1, column 31"),
        ("SHOW PARTITIONS plain", "is not partitioned", "line 1, column 17"),
    ],
)
def test_an_error_names_the_nearest_name_and_marks_the_place(
    env: ts.TableEnvironment, statement: str, error: str, place: str
) -> None:
    env.execute_sql(ORDERS)
    env.execute_sql("CREATE TABLE plain (a INT)")
    with pytest.raises(ts.TablestoreError) as caught:
        env.execute_sql(statement)
    assert error in str(caught.value)
    assert place in str(caught.value)
    assert "^" in str(caught.value)


def test_a_script_stops_at_the_first_error_and_says_where(env: ts.TableEnvironment, tmp_path: Any) -> None:
    seen: list[str] = []
    script = "CREATE TABLE a (id INT);\n-- a comment; with a semicolon\nDROP TABLE b;\nCREATE TABLE c (id INT)"
    with pytest.raises(ts.NotFoundError) as caught:
        env.execute_script(script, lambda text, _: seen.append(text))
    assert "line 3, column 12" in str(caught.value)
    assert "statement 2 of 3, line 3: the 1 before it ran" in str(caught.value)
    assert (seen, env.list_tables()) == (["CREATE TABLE a (id INT)"], ("a",))
    (tmp_path / "x.sql").write_text("CREATE TABLE d (id INT); CREATE TABL e (id INT)")
    with pytest.raises(ts.InvalidInputError, match="line 1, column 33"):
        env.execute_file(tmp_path / "x.sql")
    assert env.list_tables() == ("a",)
    with pytest.raises(ts.StorageError, match="cannot read"):
        env.execute_file(tmp_path / "nope.sql")


def test_a_statement_that_is_shown_is_written_as_it_is(env: ts.TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    env.execute_sql("CREATE TABLE t (id INT COMMENT 'a comment of some length, so that a table would be cut')")
    result = env.execute_sql("SHOW CREATE TABLE t")
    result.show()
    assert capsys.readouterr().out == f"{result.text}\n"
    assert [result.text] == result.to_arrow()["result"].to_pylist()
    assert env.execute_sql("DESCRIBE t").text is None


def test_like_takes_the_distribution_or_leaves_it(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED) WITH ('bucket' = '7', 'write-only' = 'true')")
    for name, how, bucket, write_only in (
        ("a", "EXCLUDING DISTRIBUTION", "1", "true"),
        ("b", "EXCLUDING OPTIONS INCLUDING DISTRIBUTION", "7", None),
        ("c", "EXCLUDING ALL INCLUDING CONSTRAINTS", "1", None),
    ):
        env.execute_sql(f"CREATE TABLE {name} LIKE t ({how})")
        options = env.catalog().table(f"default.{name}").options()
        assert (options["bucket"], options.get("write-only")) == (bucket, write_only), how
    with pytest.raises(ts.InvalidInputError, match="OVERWRITING DISTRIBUTION takes those given here"):
        env.execute_sql("CREATE TABLE d WITH ('bucket' = '3') LIKE t (INCLUDING DISTRIBUTION)")


def test_change_tracking_is_of_managed_tables(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE k (id INT) WITH ('connector' = 'kafka')")
    for statement in ("SET 'change-tracking' = 'false'", "PARTITION (id = 1) SET 'change-tracking' = 'false'"):
        with pytest.raises(ts.InvalidInputError, match="Only managed table tracks changes") as refused:
            env.execute_sql(f"ALTER TABLE k {statement}")
        assert refused.value.kind == "not-managed"


def test_show_lists_only_what_is_asked_for(env: ts.TableEnvironment, rows_of: Rows) -> None:
    for name in ("orders", "order_lines", "shops"):
        env.execute_sql(f"CREATE TABLE {name} (id INT) WITH ('write-only' = 'true')")
    assert rows_of(env.execute_sql("SHOW TABLES LIKE 'ord*'")) == [("order_lines",), ("orders",)]
    assert rows_of(env.execute_sql("SHOW TABLES NOT LIKE 'ord*'")) == [("shops",)]
    assert rows_of(env.execute_sql("SHOW TBLPROPERTIES orders ('write-only')")) == [("write-only", "true")]
    with pytest.raises(ts.NotFoundError, match="did you mean 'write-only'"):
        env.execute_sql("SHOW TBLPROPERTIES orders ('write-olny')")


def test_a_view_has_columns_and_a_statement(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE t (id INT, note STRING)")
    duck.execute_sql("CREATE TEMPORARY VIEW v (a, b) COMMENT 'it''s' AS SELECT id + 1, note FROM t")
    duck.create_temporary_view("held", pa.table({"x": [1]}))
    assert [row[:3] for row in rows_of(duck.execute_sql("DESCRIBE v"))] == [("a", "INT", True), ("b", "STRING", True)]
    assert [row[:2] for row in rows_of(duck.execute_sql("DESCRIBE held"))] == [("x", "BIGINT")]
    assert [row[0] for row in rows_of(duck.execute_sql("SHOW COLUMNS IN v LIKE 'b'"))] == ["b"]
    ((text,),) = rows_of(duck.execute_sql("SHOW CREATE VIEW v"))
    assert text == ("CREATE TEMPORARY VIEW `tablestore`.`default`.`v` (`a`, `b`)\nCOMMENT 'it''s'\nAS SELECT id + 1, note FROM t")
    duck.execute_sql("DROP TEMPORARY VIEW v")
    duck.execute_sql(str(text))
    assert rows_of(duck.execute_sql("SHOW CREATE VIEW v")) == [(text,)]
    for name, why in (("t", "is no view"), ("held", "rows that Python has")):
        with pytest.raises(ts.InvalidInputError, match=why):
            duck.execute_sql(f"SHOW CREATE VIEW {name}")


def test_a_table_with_a_connector_keeps_its_columns_that_are_not_stored(duck: ts.TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1,a\n2,b\n")
    where = f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path / 'rows.csv'}')"
    duck.execute_sql(f"CREATE TABLE f (id INT, twice AS id * 2, note STRING) {where}")
    assert duck.execute_sql("SELECT * FROM f WHERE twice = 4").to_arrow().to_pylist() == [{"id": 2, "twice": 4, "note": "b"}]
    (text,) = duck.execute_sql("SHOW CREATE TABLE f").to_arrow().column(0).to_pylist()
    assert "`twice` AS id * 2" in text
    duck.execute_sql("CREATE TABLE g LIKE f")
    assert duck.execute_sql("SELECT sum(twice) AS s FROM g").to_arrow().to_pylist() == [{"s": 6}]
    duck.execute_sql(f"CREATE TABLE m (id INT, path STRING METADATA FROM 'file_path' VIRTUAL) {where}")
    assert duck.execute_sql("DESCRIBE m").to_arrow().column("extras").to_pylist() == [None, "METADATA FROM 'file_path' VIRTUAL"]
    with pytest.raises(ts.UnsupportedError, match=r"does not read the metadata column 'path' .* on the engine spark"):
        duck.execute_sql("SELECT id FROM m")


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (id INT, c VARCHAR, b BINARY)",
        "CREATE TEMPORARY TABLE t (id INT, c varchar, b VARBINARY)",
        "CREATE TABLE t (id INT, c VARCHAR, b BINARY) USING tablestore",
        "CREATE TABLE t (c VARCHAR, b BINARY) AS SELECT 'long text' AS c, X'0102' AS b",
        "CREATE TABLE t (id INT); ALTER TABLE t ADD COLUMNS (c VARCHAR, b BINARY)",
        "CREATE TABLE t (id INT, c VARCHAR(1), b BYTES); ALTER TABLE t ALTER COLUMN c TYPE VARCHAR",
    ],
)
def test_a_type_without_a_length_takes_values_of_any_length(duck: ts.TableEnvironment, statement: str) -> None:
    duck.execute_script(statement)
    duck.execute_sql("INSERT INTO t (c, b) VALUES ('long text', X'0102')")
    assert {(row["c"], row["b"]) for row in duck.execute_sql("SELECT c, b FROM t").to_arrow().to_pylist()} == {
        ("long text", b"\x01\x02")
    }


@pytest.mark.parametrize("statement", ["CREATE TABLE t (c CHAR)", "ALTER TABLE t ADD COLUMN c CHAR"])
def test_a_char_without_a_length_is_refused_with_what_to_write(env: ts.TableEnvironment, statement: str) -> None:
    if statement.startswith("ALTER"):
        env.execute_sql("CREATE TABLE t (id INT)")
    with pytest.raises(ts.InvalidInputError, match=r"(?s)lacks its length; write STRING .*CHAR\(1\).*\^\^\^\^"):
        env.execute_sql(statement)


def test_python_declares_types_as_sql_does(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE DATABASE IF NOT EXISTS default")
    table = env.catalog().create_table("default.u", "id INT, c VARCHAR", primary_key="id")
    table.alter(ts.AddColumn("b", "BINARY"))
    table.upsert([{"id": 1, "c": "long text", "b": b"\x01\x02"}])
    assert table.update({"c": "CAST(12 AS VARCHAR)"}, "id = 1") is not None
    assert table.to_arrow().to_pylist() == [{"id": 1, "c": "12", "b": b"\x01\x02"}]
    with pytest.raises(ts.InvalidInputError, match="lacks its length"):
        table.alter(ts.AddColumn("d", "CHAR"))


def test_a_scan_from_a_time_says_which_before_it_is_stored(env: ts.TableEnvironment) -> None:
    needs = r"log\.scan = from-timestamp needs a time to begin at: set log\.scan\.timestamp-mills"
    with pytest.raises(ts.InvalidInputError, match=needs):
        env.execute_sql("CREATE TABLE t (id INT) WITH ('log.scan' = 'from-timestamp')")
    env.execute_sql("CREATE TABLE t (id INT) WITH ('log.scan' = 'from-timestamp', 'log.scan.timestamp-millis' = '5')")
    for statement in ("ALTER TABLE t RESET ('log.scan.timestamp-millis')", "ALTER TABLE u SET ('log.scan' = 'from-timestamp')"):
        env.execute_sql("CREATE TABLE IF NOT EXISTS u (id INT)")
        with pytest.raises(ts.InvalidInputError, match=needs):
            env.execute_sql(statement)
    env.execute_sql("ALTER TABLE u SET ('log.scan' = 'from-timestamp', 'log.scan.timestamp-mills' = '5')")


def test_alter_table_takes_names_of_columns_in_any_case_and_keeps_the_stored_ones(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (Id INT, Price INT, r ROW<City STRING, Zip INT>, `Dropped` INT)")
    for action in (
        "RENAME COLUMN PRICE TO cost",
        "ADD COLUMN note STRING AFTER ID",
        "ALTER COLUMN iD COMMENT 'the key'",
        "ALTER COLUMN COST TYPE BIGINT",
        "ALTER COLUMN Note AFTER R",
        "ADD COLUMN R.street STRING AFTER city",
        "RENAME COLUMN R.ZIP TO code",
        "DROP COLUMN dropped",
        "DROP COLUMN IF EXISTS NOPE",
    ):
        env.execute_sql(f"ALTER TABLE t {action}")
    fields = env.catalog().table("default.t").table_schema.fields
    assert [field.name for field in fields] == ["Id", "cost", "r", "note"]
    assert [field.name for field in fields[2].type.fields] == ["City", "street", "code"]
    assert fields[0].description == "the key"


def test_alter_table_refuses_a_name_that_may_be_two_columns(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE DATABASE IF NOT EXISTS `default`")
    env.catalog().create_table("default.t", "id INT, ID INT, Id INT, v INT")
    env.execute_sql("ALTER TABLE t RENAME COLUMN ID TO other")
    with pytest.raises(ts.InvalidInputError, match="'iD' may be 'id' or 'Id'") as raised:
        env.execute_sql("ALTER TABLE t DROP COLUMN iD")
    assert raised.value.kind == "ambiguous-column" and "line 1, column 27" in str(raised.value)
