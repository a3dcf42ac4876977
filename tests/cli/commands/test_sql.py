"""``tablestore sql``: statements from the command line, files and standard input."""

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

import tablestore as ts
from tablestore.cli.command import CommandRun
from tablestore.cli.commands.sql import Engine, Runner, open_environment
from tablestore.cli.text.render import Output
from tablestore.environment.result import Result
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def test_statements_run_one_after_another(run: Run, catalog: ts.Catalog) -> None:
    table = "CREATE TABLE t (id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED)"
    text = f"USE shop; {table}; INSERT INTO t VALUES (1, 'pen'), (2, 'ink')"
    ran = run("sql", "-e", text, "-e", "SELECT item FROM t WHERE id = 2")
    assert ran.out == "OK\nOK\nSnapshot 1: 2 rows inserted.\nitem\nink\n"
    assert catalog.table("shop.t").scan().count() == 2


def test_json_gives_a_row_a_line(run: Run, orders: ts.Table) -> None:
    ran = run("sql", "--json", "-e", "SELECT id, price FROM shop.orders WHERE id < 3 ORDER BY id")
    assert ran.rows == [{"id": 1, "price": 1.5}, {"id": 2, "price": 9.0}]
    assert run("sql", "--format", "csv", "-e", "SELECT count(*) AS n FROM shop.orders").out == '"n"\n4\n'


def test_a_plan_and_a_statement_come_out_as_they_are(run: Run, orders: ts.Table) -> None:
    explain, create = "EXPLAIN SELECT price FROM shop.orders WHERE id = 1", "SHOW CREATE TABLE shop.orders"
    assert run("sql", "-e", explain).out.startswith("== Managed scans ==\ntablestore.shop.orders: snapshot ")
    lines = run("sql", "-e", create).out.splitlines()
    assert (lines[0], lines[-1]) == ("CREATE TABLE `tablestore`.`shop`.`orders` (", ")")
    assert run("sql", "--json", "-e", create).rows == [{"result": "\n".join(lines)}]


def test_what_a_statement_did_not_do_is_said_beside_its_result(run: Run, orders: ts.Table) -> None:
    create = "CREATE TABLE IF NOT EXISTS shop.orders AS SELECT 1 AS id"
    said = "table tablestore.shop.orders is there already; nothing was done"
    ran = run("sql", "-e", create)
    assert (ran.out, ran.err.strip()) == ("Nothing to change.\n", f"Notice: {said}")
    ran = run("sql", "--json", "-e", create)
    assert json.loads(ran.err) == {"notice": {"kind": "already-there", "message": said}}
    (row,) = ran.rows
    assert (row["snapshot_id"], row["num_affected_rows"], row["files_added"]) == (None, 0, 0)
    assert orders.scan().count() == 4


def test_texts_of_others_only_read_if_the_command_is_restricted(run: Run, orders: ts.Table) -> None:
    assert run("sql", "--restricted", "-e", "SELECT count(*) AS n FROM shop.orders").out == "n\n4\n"
    for text in ("DELETE FROM shop.orders", "CREATE TABLE shop.u (id INT)", "SET threads = 1", "LOAD httpfs"):
        assert "not run in a restricted environment" in run("sql", "--restricted", "-e", text, code=1).err
    assert orders.scan().count() == 4


def test_queries_are_in_duckdbs_words_if_the_command_says_so(run: Run, orders: ts.Table) -> None:
    text = "USE shop; FROM orders SELECT count(*) AS n"
    assert run("sql", "--dialect", "duckdb", "-e", text).out == "OK\nn\n4\n"
    assert run("sql", "-e", f"SET 'table.sql-dialect' = 'duckdb'; {text}").out == "OK\nOK\nn\n4\n"
    assert "Spark's words alone" in run("sql", "--dialect", "duckdb", "--restricted", "-e", text, code=1).err


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


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("SELECT 1 AS stop", "the first statement of the script was cancelled: nothing was committed."),
        (
            "SHOW DATABASES; SELECT 1 AS stop",
            "1 statement(s) are done, they committed no rows; the next one was cancelled: nothing was committed.",
        ),
        ("DELETE FROM shop.orders WHERE id = 1; SELECT 1 AS stop", "1 statement(s) are done, they committed snapshot(s) 3;"),
    ],
)
def test_an_interrupted_script_says_what_it_did(
    orders: ts.Table, clock_env: Callable[[], ts.TableEnvironment], capsys: pytest.CaptureFixture[str], script: str, said: str
) -> None:
    cancelled = threading.Event()

    class Interrupting(Runner):
        def _show(self, result: Result) -> None:
            if result.kind == "rows" and result.schema.names == ["stop"]:
                os.kill(os.getpid(), signal.SIGINT)
                assert cancelled.wait(60)
                raise ts.UnsupportedError("the query was cancelled", kind="cancelled")

        def _cancel(self) -> None:
            cancelled.set()

    runner = Interrupting(CommandRun(out=Output(as_json=False, now_millis=0)), clock_env(), None)
    with pytest.raises(typer.Exit):
        runner.run_script(script)
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT 1 AS stop", "Interrupted: the statement was cancelled: nothing was committed."),
        # Cancelled behind its commit: what landed is said, and of this statement only.
        (
            "DELETE FROM shop.orders WHERE id = 1",
            "Interrupted: the statement was cancelled: snapshot 4 of shop.orders was committed.",
        ),
    ],
)
def test_ctrl_c_at_the_prompt_says_what_the_statement_committed(
    orders: ts.Table, warehouse: str, capsys: pytest.CaptureFixture[str], statement: str, said: str
) -> None:
    cancelled = threading.Event()

    class Interrupting(Runner):
        def _show(self, result: Result) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            assert cancelled.wait(60)
            raise ts.UnsupportedError("the query was cancelled", kind="cancelled")

        def _cancel(self) -> None:
            cancelled.set()

    session = CommandRun(out=Output(as_json=False, now_millis=0), warehouse=warehouse)
    with open_environment(session, Engine.DUCKDB) as environment:
        Runner(session, environment, None).run("INSERT INTO shop.orders VALUES (7, 'cap', 1.0)")
        capsys.readouterr()
        Interrupting(session, environment, None).run(statement)
    assert " ".join(capsys.readouterr().err.split()) == said
