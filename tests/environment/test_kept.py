"""Permanent views and tables with a connector: catalogs keep them, and other sessions read those that they may."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts

Rows = Callable[[Any], list[tuple[Any, ...]]]


@contextmanager
def another(folder: Path, **more: Any) -> Iterator[ts.TableEnvironment]:
    """Another session over the same warehouse."""
    with ts.TableEnvironment.create(folder / "wh", engine="duckdb", **more) as session:
        yield session


def csv(folder: Path, text: str = "1,a\n2,b\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.csv").write_text(text)
    return folder / "rows.csv"


def declare(env: ts.TableEnvironment, path: Path, name: str = "c") -> None:
    env.execute_sql(f"CREATE TABLE {name} (id INT, s STRING, twice AS id * 2) USING csv OPTIONS (path '{path}')")


def refusal(env: ts.TableEnvironment, text: str) -> ts.TablestoreError:
    with pytest.raises(ts.TablestoreError) as error:
        env.execute_sql(text).to_arrow()
    return error.value


def test_a_table_with_a_connector_is_kept_and_another_session_reads_it(
    duck: ts.TableEnvironment, tmp_path: Path, rows_of: Rows
) -> None:
    declare(duck, csv(tmp_path / "wh" / "files"))
    duck.execute_sql("CREATE TABLE k (id INT) WITH ('connector' = 'kafka', 'topic' = 't')")
    with another(tmp_path) as other:
        assert rows_of(other.execute_sql("SELECT * FROM c ORDER BY id")) == [(1, "a", 2), (2, "b", 4)]
        assert rows_of(other.execute_sql("SHOW TABLES")) == [("c",), ("k",)]
        assert rows_of(other.execute_sql("SHOW CREATE TABLE c")) == rows_of(duck.execute_sql("SHOW CREATE TABLE c"))
        assert [row[0] for row in rows_of(other.execute_sql("DESCRIBE c"))] == ["id", "s", "twice"]
        assert ("connector", "String", "kafka") in rows_of(other.execute_sql("DESCRIBE EXTENDED k"))
        other.execute_sql("ALTER TABLE k SET ('topic' = 'u')")
        other.execute_sql("ALTER TABLE c RENAME TO d")
        other.execute_sql("DROP TABLE k")
    assert rows_of(duck.execute_sql("SHOW TABLES")) == [("d",)]
    assert rows_of(duck.execute_sql("SELECT count(*) FROM d")) == [(2,)]
    assert refusal(duck, "CREATE TABLE d (id INT)").kind == "definition-exists"
    duck.execute_sql("CREATE TABLE IF NOT EXISTS d (id INT) USING csv OPTIONS (path '/nowhere')")
    duck.execute_sql("CREATE DATABASE inner_one")
    duck.execute_sql("CREATE TABLE inner_one.e (id INT) USING csv OPTIONS (path '/nowhere')")
    assert "'e'" in str(refusal(duck, "DROP DATABASE inner_one"))
    duck.execute_sql("DROP DATABASE inner_one CASCADE")


def test_what_leads_out_of_the_warehouse_is_read_by_who_declares_or_allows_it(
    duck: ts.TableEnvironment, tmp_path: Path, rows_of: Rows
) -> None:
    outside = csv(tmp_path / "secret")
    declare(duck, outside)
    assert rows_of(duck.execute_sql("SELECT count(*) FROM c")) == [(2,)]
    with another(tmp_path) as other:
        error = refusal(other, "SELECT * FROM c")
        assert error.kind == "connector-not-allowed" and "table.connectors.allowed" in str(error) and "TEMPORARY" in str(error)
        assert refusal(other, "CREATE TABLE mine LIKE c").kind == "connector-not-allowed", "a copy is no way around"
        other.execute_sql("ALTER TABLE c SET ('header' = 'false')")
        assert refusal(other, "SELECT * FROM c").kind == "connector-not-allowed", "nor is a change of it"
        other.execute_sql("CREATE VIEW v AS SELECT 1 AS one")
        assert refusal(other, "CREATE OR REPLACE VIEW w AS SELECT * FROM c").kind == "connector-not-allowed"
        other.execute_sql(f"SET 'table.connectors.allowed' = 'jdbc, {tmp_path / 'elsewhere'}'")
        assert refusal(other, "SELECT * FROM c").kind == "connector-not-allowed"
        other.execute_sql(f"SET 'table.connectors.allowed' = '{tmp_path / 'secret'}'")
        assert rows_of(other.execute_sql("SELECT count(*) FROM c")) == [(2,)]
        assert refusal(other, "SET 'table.connectors.allowed' = 'a/b'").kind == "invalid-option"
    assert refusal(duck, "SELECT * FROM c").kind == "connector-not-allowed", "another one has altered it"
    with another(tmp_path, restricted=True) as other:
        assert refusal(other, "SELECT * FROM c").kind == "restricted"


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("{wh}/../secret/rows.csv", ""),
        ("{wh}/default.db/t/schema/schema-0", ""),
        ("{wh}/files/*.csv", ""),
        ("{wh}/linked", ""),
        ("{wh}/holds_link", ""),
        ("{wh}", ""),
        ("{wh}x/rows.csv", ""),
        ("file://{wh}/../secret/rows.csv", ""),
        ("{wh}/files/rows.csv", ", pathGlobFilter '*'"),
        ("{wh}/files/rows.csv", ", format 'org.example.Source'"),
        ("{wh}/files/rows.csv", ", PATH '/etc'"),
    ],
)
def test_no_spelling_of_a_path_leads_out_of_the_warehouse(
    duck: ts.TableEnvironment, tmp_path: Path, path: str, options: str
) -> None:
    wh = tmp_path / "wh"
    secret = csv(tmp_path / "secret")
    csv(wh / "files")
    csv(tmp_path / "whx")
    (wh / "linked").symlink_to(secret.parent)
    (wh / "holds_link").mkdir()
    (wh / "holds_link" / "rows.csv").symlink_to(secret)
    duck.execute_sql("CREATE TABLE t (id INT)")
    duck.execute_sql(
        f"CREATE TABLE c (line STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path.format(wh=wh)}')"
    )
    if options:
        key, _, value = options.removeprefix(", ").partition(" ")
        duck.execute_sql(f"ALTER TABLE c SET ('{key}' = {value})")
    with another(tmp_path) as other:
        assert refusal(other, "SELECT * FROM c").kind == "connector-not-allowed"


def test_secrets_are_named_and_not_kept(duck: ts.TableEnvironment, tmp_path: Path) -> None:
    for options in ("'password' = 'x7'", "'url' = 'jdbc:postgresql://ann:x7@host/db'"):
        error = refusal(duck, f"CREATE TABLE c (id INT) WITH ('connector' = 'jdbc', {options})")
        assert error.kind == "secret" and "TEMPORARY" in str(error) and "x7" not in str(error)
    duck.execute_sql("CREATE TABLE c (id INT) WITH ('connector' = 'jdbc', 'password' = 'env:DB_PASSWORD')")
    assert refusal(duck, "ALTER TABLE c SET ('password' = 'x7')").kind == "secret"
    duck.execute_sql("CREATE TEMPORARY TABLE d (id INT) WITH ('connector' = 'jdbc', 'password' = 'x7')")
    kept = [file.read_text() for file in (tmp_path / "wh").rglob("*.json")]
    assert len(kept) == 1 and "env:DB_PASSWORD" in kept[0] and "x7" not in kept[0]


def test_a_computed_column_of_a_kept_table_is_an_expression_whoever_wrote_it(duck: ts.TableEnvironment, tmp_path: Path) -> None:
    path = csv(tmp_path / "wh" / "files")
    declare(duck, path)
    definition = next((tmp_path / "wh").rglob("c.json"))
    definition.write_text(definition.read_text().replace("id * 2", "(SELECT max(x) FROM other)"))
    with another(tmp_path) as other:
        assert refusal(other, "SELECT * FROM c").kind == "stored-expression"
    for text in ("{", "[]", '{"version": 9, "kind": "view"}', '{"version": 1, "kind": "page"}', '{"version": 1, "kind": "view"}'):
        definition.write_text(text)
        with another(tmp_path) as other:
            assert isinstance(refusal(other, "SELECT * FROM c"), ts.FormatError)
            assert other.list_tables() == ()
    duck.execute_sql("DROP TABLE c")


def test_a_view_is_kept_and_another_session_reads_alters_and_drops_it(
    duck: ts.TableEnvironment, tmp_path: Path, rows_of: Rows
) -> None:
    duck.execute_script(
        """
        CREATE DATABASE shop; USE shop;
        CREATE TABLE t (id INT, price DOUBLE);
        INSERT INTO t VALUES (1, 1.5), (2, 8.0);
        CREATE VIEW dear (number) COMMENT 'dear ones' TBLPROPERTIES ('owner' = 'ann') AS SELECT id FROM t WHERE price > 2;
        CREATE VIEW IF NOT EXISTS dear AS SELECT 1 AS one;
        """
    )
    with another(tmp_path) as other:
        assert rows_of(other.execute_sql("SELECT number FROM shop.dear")) == [(2,)]
        assert rows_of(other.execute_sql("SHOW VIEWS FROM shop")) == [("dear",)]
        assert rows_of(other.execute_sql("SHOW TABLES FROM shop")) == [("t",)]
        [(text,)] = rows_of(other.execute_sql("SHOW CREATE VIEW shop.dear"))
        assert text.startswith("CREATE VIEW `tablestore`.`shop`.`dear` (`number`)\nCOMMENT 'dear ones'\nTBLPROPERTIES (")
        assert [row[:2] for row in rows_of(other.execute_sql("DESCRIBE shop.dear"))] == [("number", "INT")]
        other.execute_script(
            """
            ALTER VIEW shop.dear SET TBLPROPERTIES ('owner' = 'bob'); ALTER VIEW shop.dear RENAME TO costly;
            USE shop; ALTER VIEW costly AS SELECT id, price FROM t WHERE price < 2
            """
        )
    assert rows_of(duck.execute_sql("SELECT * FROM costly")) == [(1, 1.5)]
    duck.execute_sql("CREATE OR REPLACE VIEW costly AS SELECT count(*) AS n FROM t")
    duck.execute_sql("CREATE TEMPORARY VIEW t AS SELECT 0 AS id, 0.0 AS price")
    assert rows_of(duck.execute_sql("SELECT n FROM costly")) == [(2,)], "a permanent view reads permanent tables"
    duck.execute_sql("CREATE TEMPORARY VIEW costly AS SELECT 7 AS n")
    assert rows_of(duck.execute_sql("SELECT n FROM costly")) == [(7,)]
    assert refusal(duck, "DROP VIEW costly").kind == "temporary-object"
    duck.execute_sql("DROP TEMPORARY VIEW costly")
    for text, kind in [
        ("CREATE VIEW w AS SELECT * FROM shop.t", "temporary-object"),
        ("CREATE VIEW tablestore.shop.costly AS SELECT 1 AS one", "table-exists"),
        ("CREATE OR REPLACE VIEW other AS SELECT * FROM other", "recursive-view"),
        ("CREATE TABLE costly (id INT)", "definition-exists"),
        ("DROP TABLE costly", "not-a-table"),
        ("INSERT INTO costly VALUES (1)", "not-managed"),
        ("ALTER VIEW nothing RENAME TO x", "no-such-view"),
        ("DROP VIEW nothing", "no-such-view"),
        ("CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' DAY AS SELECT n FROM costly", "materialized-source"),
    ]:
        assert refusal(duck, text).kind == kind, text
    duck.execute_sql("DROP VIEW costly")
    duck.execute_sql("DROP VIEW IF EXISTS costly")
    assert rows_of(duck.execute_sql("SHOW VIEWS")) == [("t",)]


def test_the_query_of_a_kept_view_reaches_nothing_but_tables(duck: ts.TableEnvironment, tmp_path: Path) -> None:
    secret = csv(tmp_path / "secret")
    duck.execute_sql("CREATE TABLE t (id INT)")
    duck.execute_sql("CREATE VIEW v AS SELECT * FROM t")
    definition = next((tmp_path / "wh").rglob("v.json"))
    stored = definition.read_text()
    with another(tmp_path, restricted=True) as other:
        assert refusal(other, "SELECT * FROM v").kind == "restricted"
    for query in (
        f"SELECT * FROM csv.`{secret}`",
        f"SELECT * FROM read_csv('{secret}')",
        "DROP TABLE t",
        "SELECT reflect('a', 'b')",
    ):
        definition.write_text(stored.replace("SELECT * FROM t", query))
        with another(tmp_path) as other:
            refusal(other, "SELECT * FROM v")
            definition.write_text(definition.read_text().replace('"spark"', '"duckdb"'))
            refusal(other, "SELECT * FROM v")
    assert duck.list_tables() == ("t",)


class TablesAlone:
    """A catalog that knows databases and tables, and nothing else."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        if "definition" in name:
            raise AttributeError(name)
        return getattr(self._catalog, name)


def test_a_catalog_that_keeps_no_definitions_names_temporary(duck: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck.catalog(), "_meta", TablesAlone(duck.catalog()._meta))
    for text in ("CREATE TABLE c (id INT) USING csv OPTIONS (path '/x')", "CREATE VIEW v AS SELECT 1 AS one"):
        error = refusal(duck, text)
        assert error.kind == "no-definitions" and "CREATE TEMPORARY" in str(error)


def doubled(x: int) -> int:
    return 2 * x


def tripled(x: int) -> int:
    return 3 * x


def test_functions_of_catalogs_come_last_and_run_in_every_session(duck: ts.TableEnvironment, tmp_path: Path, rows_of: Rows) -> None:
    duck.execute_sql(f"SET 'table.functions.allowed-modules' = '{__name__}'")
    duck.execute_script(
        f"""
        CREATE DATABASE shop; USE shop;
        CREATE FUNCTION Plus(x INT, y INT) RETURNS INT COMMENT 'sums' RETURN x + y + length('x y');
        CREATE FUNCTION one() RETURNS INT RETURN 1;
        CREATE FUNCTION abs(x INT) RETURNS INT RETURN 100;
        CREATE FUNCTION doubled AS '{__name__}.doubled' LANGUAGE PYTHON;
        CREATE FUNCTION IF NOT EXISTS doubled AS '{__name__}.tripled';
        CREATE TABLE t (id INT, s STRING);
        INSERT INTO t VALUES (1, 'a'), (2, 'b');
        CREATE VIEW v AS SELECT plus(id, doubled(id)) AS n FROM t;
        """
    )
    with another(tmp_path) as other:
        query = "SELECT shop.plus(id, shop.plus(:more, max(id) OVER ())) AS n FROM shop.t WHERE shop.plus(id, 0) > 3 ORDER BY id"
        assert rows_of(other.execute_sql(query, more=10)) == [(19,), (20,)]
        assert rows_of(other.execute_sql("SELECT tablestore.shop.one() + shop.one() AS n")) == [(2,)]
        assert rows_of(other.execute_sql("SELECT shop.plus((SELECT max(id) FROM shop.t), NULL) AS n")) == [(None,)]
        assert refusal(other, "SELECT plus(1, 2)").kind, "there is none in the database default"
        other.use_database("shop")
        assert rows_of(other.execute_sql("SELECT abs(-3) AS a, shop.abs(-3) AS b")) == [(3, 100)]
        error = refusal(other, "SELECT doubled(1)")
        assert error.kind == "function-not-allowed" and "table.functions.allowed-modules" in str(error)
        assert refusal(other, "SELECT n FROM v").kind == "function-not-allowed"
        other.execute_sql(f"SET 'table.functions.allowed-modules' = 'nothing, {__name__.partition('.')[0]}'")
        assert rows_of(other.execute_sql("SELECT n FROM v ORDER BY n")) == [(6,), (9,)]
        other.create_temporary_function("shop.doubled", tripled)
        assert rows_of(other.execute_sql("SELECT doubled(1) AS n")) == [(3,)]
        assert rows_of(other.execute_sql("SELECT n FROM v ORDER BY n")) == [(6,), (9,)], "a view reads what lasts"
        assert refusal(other, "DROP FUNCTION doubled").kind == "temporary-object"
        other.drop_temporary_function("shop.doubled")
        other.execute_sql(f"ALTER FUNCTION doubled AS '{__name__}.tripled'")
        assert rows_of(other.execute_sql("SELECT doubled(1) AS n")) == [(3,)]
        assert rows_of(other.execute_sql("SHOW USER FUNCTIONS")) == [("abs",), ("doubled",), ("one",), ("plus",)]
        assert {"plus", "upper"} <= set(other.list_functions())
        assert rows_of(other.execute_sql("SHOW SYSTEM FUNCTIONS LIKE 'plus'")) == []
        described = dict(rows_of(other.execute_sql("DESCRIBE FUNCTION plus")))
        assert described["parameters"] == "`x` INT, `y` INT" and described["body"] == "x + y + length('x y')"
        assert dict(rows_of(other.execute_sql("DESCRIBE FUNCTION doubled")))["class"] == f"{__name__}.tripled"
    with another(tmp_path, restricted=True) as other:
        refusal(other, "SELECT shop.plus(1, 2)")
    for text, kind in [
        ("SELECT plus(1)", "function"),
        ("CREATE FUNCTION plus(x INT) RETURNS INT RETURN x", "function-exists"),
        ("CREATE FUNCTION f(x INT, X INT) RETURNS INT RETURN x", "function"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN (SELECT max(id) FROM t)", "function"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN reflect('java.lang.System', 'exit')", "function"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN z", "function"),
        ("CREATE FUNCTION f AS 'os.system'", "function-not-allowed"),
        (f"CREATE FUNCTION f AS '{__name__}.nothing'", "function"),
        ("CREATE FUNCTION f AS 'a.b' LANGUAGE JAVA", "unsupported"),
        ("ALTER FUNCTION f AS 'a.b'", "no-such-function"),
        ("DROP FUNCTION f", "no-such-function"),
    ]:
        assert refusal(duck, text).kind == kind, text
    duck.execute_sql("CREATE OR REPLACE FUNCTION plus(x INT) RETURNS BIGINT RETURN -x")
    assert rows_of(duck.execute_sql("SELECT plus(id) AS n FROM t ORDER BY n")) == [(-2,), (-1,)]
    definition = next((tmp_path / "wh").rglob("plus.json"))
    definition.write_text(definition.read_text().replace("-x", "reflect('java.lang.System', 'exit')"))
    assert refusal(duck, "SELECT plus(1)").kind == "function"
    duck.execute_script("DROP FUNCTION plus; DROP FUNCTION IF EXISTS plus; DROP FUNCTION one")
