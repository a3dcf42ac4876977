"""The prompt: what ends a statement, what Tab offers, what is kept, and what Ctrl-C ends."""

import os
import signal
import stat
import threading
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tablestore.cli.shell.completion import SqlCompleter, quoted
from tablestore.cli.shell.interrupt import Interrupted, run_interruptibly
from tablestore.cli.shell.prompt import Prompt, history_file, is_complete, open_history
from tablestore.errors import NotFoundError, UnsupportedError
from tests.support.attacks.canary import CANARY, SECRETS, URLS


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("quit", True),
        (".tables", True),
        ("\\dt", True),
        (" HELP ", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- so far", True),
        ("SELECT ';", False),
        ("SELECT ';'", False),
        ("SELECT 1 /* ;", False),
        ("SELECT `;`;\n", True),
    ],
)
def test_a_semicolon_that_is_a_token_ends_the_input(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def entered(keys: str, history: Path) -> tuple[list[str], int]:
    """The statements that these keys enter, and how often help was asked for."""
    helped: list[None] = []
    with create_pipe_input() as keyboard:
        keyboard.send_text(keys)
        prompt = Prompt(SqlCompleter(lambda _: []), open_history(history), input=keyboard, output=DummyOutput())
        return list(prompt.statements(lambda: "> ", lambda: helped.append(None))), len(helped)


def test_statements_of_several_lines_are_entered_until_the_user_leaves(tmp_path: Path) -> None:
    keys = "SELECT 1,\r2;\r\x03half\x03help\rUSE a; SELECT 'x;y'; \rquit\rSELECT 3;\r"
    assert entered(keys, tmp_path / "history") == (["SELECT 1,\n2", "USE a", "SELECT 'x;y'"], 1)
    assert entered("SELECT 4;\r\x04", tmp_path / "history") == (["SELECT 4"], 0)


@pytest.mark.deep
def test_history_is_the_users_own_and_holds_no_secrets(tmp_path: Path) -> None:
    path = history_file({"XDG_STATE_HOME": str(tmp_path)}, Path("/nowhere"))
    statements = [f"CREATE TABLE c WITH ('connector' = 'x', '{key}' = '{CANARY}');" for key in SECRETS]
    statements += [f"CREATE CATALOG c WITH ('uri' = '{url}');" for url in URLS]
    statements += [f"SET opensesame = {CANARY};", f"CALL sys.ingest('t', properties => map('k', '{CANARY}'));"]
    entered("\r".join(["SELECT 1;", *statements, "CREATE TABLE t (id INT) WITH ('bucket' = '2');"]) + "\r\x04", path)
    assert "SELECT 1;" in path.read_text() and "'bucket' = '2'" in path.read_text()
    assert CANARY not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert history_file({}, Path("/home/ann")) == Path("/home/ann/.local/state/tablestore/history")


def offered(text: str, known: dict[str, list[str]]) -> list[str]:
    """What Tab offers behind a text."""

    def ask(statement: str) -> list[str]:
        if statement not in known:
            raise NotFoundError(f"nothing is known of {statement}")
        return known[statement]

    found = SqlCompleter(ask).get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


def test_completion_knows_keywords_tables_and_the_columns_of_named_tables() -> None:
    known = {
        "SHOW TABLES": ["orders", "order lines"],
        "SHOW TABLES IN shop": ["orders"],
        "SHOW COLUMNS IN shop.orders": ["id", "price"],
        "SHOW CATALOGS": ["tablestore"],
    }
    assert offered("SEL", known) == ["SELECT"]
    assert offered("sel", known) == ["select"]
    assert offered("select * from ord", known) == ["order", "orders"]
    assert offered("SELECT * FROM shop.", known) == ["shop.orders"]
    assert offered("SELECT * FROM shop.orders WHERE pri", known) == ["primary", "price"]
    assert offered("SELECT * FROM shop.orders WHERE shop.orders.p", known) == ["shop.orders.price"]
    assert offered("", known) == []
    assert [quoted("order lines"), quoted("a`b"), quoted("id")] == ["`order lines`", "`a``b`", "id"]


def test_ctrl_c_cancels_what_runs_and_the_program_goes_on() -> None:
    cancelled = threading.Event()

    def endless() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert cancelled.wait(60)
        raise UnsupportedError("the query was cancelled", kind="cancelled")

    with pytest.raises(Interrupted):
        run_interruptibly(endless, cancelled.set)


def test_what_ends_in_spite_of_ctrl_c_has_its_result() -> None:
    cancelled = threading.Event()

    def landed() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        assert cancelled.wait(60)
        return 7

    assert run_interruptibly(landed, cancelled.set) == 7


def test_errors_of_a_statement_come_through() -> None:
    def fails() -> None:
        raise NotFoundError("no such table")

    with pytest.raises(NotFoundError, match="no such table"):
        run_interruptibly(fails, lambda: None)
