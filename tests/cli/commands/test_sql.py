"""``tablestore sql``: statements from the command line, files and standard input."""

from collections.abc import Callable
from pathlib import Path

import tablestore as ts
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def test_statements_run_one_after_another(run: Run, catalog: ts.Catalog) -> None:
    table = "CREATE TABLE t (id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED)"
    text = f"USE shop; {table}; INSERT INTO t VALUES (1, 'pen'), (2, 'ink')"
    ran = run("sql", "-e", text, "-e", "SELECT item FROM t WHERE id = 2")
    assert ran.out == "OK\nOK\nSnapshot 1.\nitem\nink\n"
    assert catalog.table("shop.t").scan().count() == 2


def test_json_gives_a_row_a_line(run: Run, orders: ts.Table) -> None:
    ran = run("sql", "--json", "-e", "SELECT id, price FROM shop.orders WHERE id < 3 ORDER BY id")
    assert ran.rows == [{"id": 1, "price": 1.5}, {"id": 2, "price": 9.0}]
    assert run("sql", "--format", "csv", "-e", "SELECT count(*) AS n FROM shop.orders").out == '"n"\n4\n'


def test_a_file_stops_at_the_first_error_and_says_where(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    script = tmp_path / "nightly.sql"
    script.write_text("-- every night\nCREATE TABLE shop.a (x INT);\n\nSELECT *\nFROM shop.b;\nCREATE TABLE shop.c (x INT);\n")
    ran = run("sql", "--file", script, code=1)
    assert ran.out == "OK\n"
    assert "shop" in ran.err
    assert "line 5, column 6" in ran.err
    assert "statement 2 of 3" in ran.err
    assert catalog.list_tables("shop") == ("a",)


def test_a_script_that_cannot_be_read_runs_nothing(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    script = tmp_path / "broken.sql"
    script.write_text("CREATE TABLE shop.a (x INT);\nCREATE TABL shop.b (x INT);\n")
    assert "line 2" in run("sql", "--file", script, code=1).err
    assert catalog.list_tables("shop") == ()
    script.write_bytes(b"SELECT '\xff'")
    assert "UTF-8" in run("sql", "--file", script, code=1).err


def test_standard_input_is_a_script(run: Run, orders: ts.Table) -> None:
    assert run("sql", input=b"SELECT count(*) AS n FROM shop.orders;\n").out == "n\n4\n"
    assert run("sql", "--file", "-", input=b"SELECT 1 AS one").out == "one\n1\n"


def test_settings_of_the_session_are_given(run: Run, catalog: ts.Catalog) -> None:
    run("sql", "--set", "table-storage.bucket=3", "-e", "CREATE TABLE shop.t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    table = catalog.table("shop.t")
    assert isinstance(table, ts.Table)
    assert table.options()["bucket"] == "3"
