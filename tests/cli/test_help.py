"""Every command explains itself, takes the options that all take, and fails in one of the ways that are written down."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer.main

from tablestore.cli.main import Program, program_app
from tablestore.cli.othercommands import WAYS
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the program with the words that lead to it."""
    command = command or typer.main.get_command(program_app())
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from commands(child, (*path, name))


ALL = list(commands())


def test_no_way_of_ours_is_keyed_by_a_command_that_exists() -> None:
    assert not set(WAYS) & set(Program.places)


def test_the_tree_is_walked() -> None:
    assert {("db", "list"), ("table", "read"), ("import",)} <= {path for path, _ in ALL}


@pytest.mark.deep_after(26)
@pytest.mark.parametrize("path", [path for path, _ in ALL], ids=" ".join)
def test_every_command_has_help_with_an_example_of_itself(run: Run, path: tuple[str, ...]) -> None:
    shown = " ".join(run(*path, "--help").out.split())
    assert "Example" in shown
    assert shown.count(f"tablestore {' '.join(path)}") >= 1
    for option in ("--json", "--warehouse", "--debug", "--storage"):
        assert option in shown


@pytest.mark.parametrize(("path", "command"), ALL, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_every_option_is_explained(path: tuple[str, ...], command: Any) -> None:
    unexplained = [parameter.name for parameter in command.params if not parameter.help and parameter.name != "help"]
    assert not unexplained
    assert re.match(r"[A-Z].*\.", command.help.strip()), "the help begins with a sentence"


@pytest.mark.parametrize(("path", "command"), ALL, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_examples_use_options_that_exist(path: tuple[str, ...], command: Any) -> None:
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for example in command.epilog.split("\n\n")[1:]:
        own = example.split("|")[-1] if "| tablestore" in example else example.split("|")[0]
        used = re.findall(r"(?<=\s)--?[a-z][a-z-]*", own)
        assert set(used) <= known, example


def test_nothing_at_all_shows_what_there_is(run: Run) -> None:
    shown = run(code=2)
    assert "import" in shown.out + shown.err


def test_version(run: Run) -> None:
    assert re.fullmatch(r"tablestore \d+\.\d+\.\d+\S*\n", run("--version").out)


@pytest.mark.parametrize(
    "args",
    [
        ["tabel"],
        ["table", "read"],
        ["table", "read", "shop.orders", "--limit", "many"],
        ["table", "read", "shop.orders", "--limit", "-1"],
        ["table", "read", "shop.orders", "--format", "xml"],
        ["table", "create", "shop.x"],
        ["table", "create", "shop.x", "--schema", "id INT", "-o", "bucket"],
        ["import", "shop.orders", "a.csv", "--upsert", "--append"],
        ["import", "shop.orders", "a.csv", "--overwrite", "--commit-every", "5"],
        ["import", "shop.orders", "a.csv", "--primary-key", "id"],
        ["import", "shop.orders", "a.csv", "--delimiter", ";;"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_2(run: Run, args: list[str]) -> None:
    ran = run(*args, code=2)
    assert not ran.out
    assert ran.err


def test_without_a_warehouse_the_way_out_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TABLESTORE_WAREHOUSE")
    assert "TABLESTORE_WAREHOUSE" in run("db", "list", code=2).err


@pytest.mark.parametrize("path", [(), ("table",), ("mt",)], ids=lambda path: " ".join(path) or "the program")
def test_the_list_of_commands_says_what_each_says_of_itself(path: tuple[str, ...]) -> None:
    group = typer.main.get_command(program_app())
    for name in path:
        group = group.commands[name]
    for name, command in group.commands.items():
        line = group.places[name].line
        assert " ".join(command.help.split()).startswith(line), f"{name}: {line}"
        assert line.endswith(".")
