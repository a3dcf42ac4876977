"""What a terminal shows: tables, human numbers, progress, and nothing that other people's names could do to it."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import typer.rich_utils  # noqa: F401  It looks for FORCE_COLOR once: before a test here sets it, or all tests behind it had colours.

import tablestore as ts
from tests.support.commandline import Ran

Run = Callable[..., Ran]
HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202e[bold]\t\n"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich takes standard output for a terminal, without colours."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("terminal")
def test_listings_are_tables_with_human_numbers(run: Run, orders: ts.Table) -> None:
    orders.upsert(pa.table({"id": range(20_000), "item": ["x"] * 20_000, "price": [1.0] * 20_000}))
    shown = run("table", "list", "--long").out
    assert "20,005" in shown
    assert "\t" not in shown
    assert "ago" in shown or "now" in shown
    assert "KB" in run("table", "files", "shop.orders").out
    assert "No tags." in run("tag", "list", "shop.orders").out


@pytest.mark.usefixtures("terminal")
def test_rows_are_drawn_up_to_a_screen(run: Run, orders: ts.Table) -> None:
    ran = run("table", "read", "shop.orders")
    assert "NULL" in ran.out
    assert "the first" not in ran.err
    assert run("table", "read", "shop.orders", "--limit", "2").out.count("\n") == 3
    assert run("table", "read", "shop.orders", "--limit", "0").out.count("\n") == 1


@pytest.mark.usefixtures("terminal")
def test_progress_is_shown_beside_the_result(run: Run, orders: ts.Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,item,price\n1,cap,2\n")
    ran = run("import", "shop.orders", tmp_path / "a.csv")
    assert ran.out.startswith("Imported 1 rows")
    assert "a.csv" in ran.err
    assert run("import", "shop.orders", tmp_path / "a.csv", "--json").err == ""


@pytest.mark.usefixtures("terminal")
def test_an_import_is_seen_before_the_first_file_is_open_and_until_the_last_row_is_committed(
    run: Run, orders: ts.Table, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,item,price\n1,cap,2\n")
    said = run("import", "shop.orders", tmp_path / "a.csv").err
    assert 0 <= said.index("opening shop.orders") < said.index("a.csv") < said.index("committing 1 rows")


@pytest.fixture
def filled(orders: ts.Table) -> ts.Table:
    """Some commits, one of them tagged, with large numbers."""
    orders.upsert({"id": range(1_000_000), "item": ["x"] * 1_000_000, "price": [1.0] * 1_000_000})
    orders.create_tag("before-the-import-of-may")
    orders.compact(full=True)
    with orders.new_writer(commit_user="nightly-import") as writer:
        writer.write({"id": [1], "item": ["y"], "price": [2.0]})
        writer.commit()
    return orders


@pytest.mark.usefixtures("terminal", "filled")
@pytest.mark.parametrize(
    "command",
    [
        ("snapshot", "list", "shop.orders"),
        ("table", "show", "shop.orders", "snapshots"),
        ("table", "show", "shop.orders$snapshots"),
    ],
)
def test_snapshots_fit_a_hundred_columns_and_wide_shows_all(
    run: Run, catalog: ts.Catalog, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    user = catalog.table("shop.orders").snapshots()[0].commit_user
    monkeypatch.setenv("COLUMNS", "100")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", run(*command).out).splitlines()
    # One line a snapshot: nothing is folded.
    assert len(lines) == 1 + 5 and max(map(len, lines)) <= 100
    text = "\n".join(lines)
    assert user[:8] in text and user not in text and "nightly-import" in text and "COMPACT" in text
    monkeypatch.setenv("COLUMNS", "400")
    assert user in run(*command, "--wide").out
    monkeypatch.delenv("FORCE_COLOR")
    assert user in run(*command).out


@pytest.fixture
def hostile(catalog: ts.Catalog) -> ts.Table:
    schema = pa.schema([pa.field(HOSTILE, pa.string(), metadata={b"comment": HOSTILE.encode()})])
    table = catalog.create_table("shop.hostile", schema=schema, comment=HOSTILE, options={"write-only": "true"})
    with table.new_writer(commit_user=HOSTILE) as writer:
        writer.write(pa.table({HOSTILE: [HOSTILE]}))
        writer.commit(identifier=1)
    return table


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "piped"])
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("table", "describe", "shop.hostile"), 0),
        (("table", "read", "shop.hostile"), 0),
        (("table", "history", "shop.hostile"), 0),
        (("table", "explain", "shop.hostile"), 0),
        (("snapshot", "list", "shop.hostile"), 0),
        (("snapshot", "show", "shop.hostile", "1"), 0),
        (("table", "show", "shop.hostile", "snapshots"), 0),
        (("table", "read", "shop.hostile", "--json"), 0),
        (("table", "read", HOSTILE), 1),
        (("table", "read", "shop.hostile", "--filter", HOSTILE), 1),
        (("table", "read", "shop.hostile", "--tag", HOSTILE), 1),
        (("table", "read", "shop.hostile", "--columns", HOSTILE, "--json"), 1),
        (("db", "drop", HOSTILE, "--yes"), 1),
        (("import", "shop.hostile", HOSTILE), 1),
        (("table", "alter", "set", "shop.hostile", HOSTILE), 2),
    ],
    ids=lambda value: " ".join(value).partition("\x1b")[0] if isinstance(value, tuple) else "",
)
def test_other_people_s_names_are_shown_and_do_nothing(
    run: Run, hostile: ts.Table, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], code: int, is_terminal: bool
) -> None:
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    ran = run(*args, code=code)
    shown = ran.out + ran.err
    assert shown
    assert "\x1b]" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    if not is_terminal and code != 2:
        # Errors of the command line are typer's, which decides once about colours.
        assert "\x1b" not in shown


@pytest.mark.deep
def test_what_is_logged_of_other_people_s_names_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "_ctas" / "\x1b[31mjob").mkdir(parents=True)
    command = [sys.executable, "-m", "tablestore", "clean", "--older-than", "0 s", "--warehouse", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "\\x1b[31mjob is left for the next time" in ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr


def test_json_keeps_the_names_as_they_are(run: Run, hostile: ts.Table) -> None:
    assert run("table", "read", "shop.hostile", "--json").rows == [{HOSTILE: HOSTILE}]
    described = run("table", "describe", "shop.hostile", "--json").json
    assert (described["comment"], described["columns"][0]["name"]) == (HOSTILE, HOSTILE)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(run: Run, shell: str) -> None:
    assert "_COMPLETE" in run("--show-completion", shell).out


def test_the_completion_of_a_shell_is_readable_by_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "completion.bash").write_text(run("--show-completion", "bash").out)
    assert subprocess.run(["bash", "-n", str(tmp_path / "completion.bash")], check=False).returncode == 0
