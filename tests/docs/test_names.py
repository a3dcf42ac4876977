"""What messages and documents name is there: commands with their options, targets of make, options of a table."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pages
import pytest
import typer.main

from tablestore.catalog import settings
from tablestore.cli.main import program_app
from tablestore.environment.session import sessionsettings
from tablestore.io.lock import lockoptions
from tablestore.options import SPELLINGS, TABLE_OPTIONS, partition_date_column
from tests.support.syntax import parsed

# Sentences about the program, at a place where a command could stand; the demo gives Spark its name.
PROSE = {"demo", "does", "has", "is", "reads", "writes"}

# `tablestore table show …`, an example of the command line, or what stands behind a colon in a message.
_MENTION = re.compile(r"(?:^\s*|[`'\"$|(] ?|: |uv run )tablestore((?: (?:[a-z][a-z-]*|--?[a-z][a-z-]*|[^\s`]+))*)", re.MULTILINE)


def mentions(text: str) -> Iterator[list[str]]:
    """The words behind ``tablestore`` wherever a text names the command."""
    for found in _MENTION.finditer(text):
        words = found[1].split()
        if words and words[0] not in PROSE:
            yield words


@cache
def program() -> Any:
    return typer.main.get_command(program_app())


def wrong(words: list[str]) -> str | None:
    """What is wrong with such words, or None."""
    command = program()
    for word in words:
        children = getattr(command, "commands", {})
        if not children or not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        if word not in children:
            return f"there is no `tablestore {' '.join(words)}`"
        command = children[word]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"}
    given = [re.sub(r"\W+$", "", word.partition("=")[0]) for word in words if re.match(r"--[a-z]", word)]
    unknown = [option for option in given if option not in known and not option.startswith("--install-completion")]
    return f"`tablestore {' '.join(words)}` has no {unknown[0]}" if unknown else None


def strings(file: Path) -> Iterator[str]:
    """The texts of a module, those with values in them whole."""
    inside: set[int] = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.JoinedStr):
            inside.update(map(id, node.values))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


@pytest.mark.deep
def test_messages_and_docstrings_name_commands_that_exist(project: Path) -> None:
    files = [file for folder in ("tablestore", "connectors") for file in sorted((project / folder).rglob("*.py"))]
    named = [(file, words) for file in files for text in strings(file) for words in mentions(text)]
    assert len(named) > 80, "the messages have examples of every command"
    found = [f"{file.relative_to(project)}: {why}" for file, words in named if (why := wrong(words))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", [*pages.documents(), *pages.OTHERS], ids=pages.name_of)
def test_documents_name_commands_that_exist(page: Path) -> None:
    spans = re.findall(r"`tablestore [^`]+`", page.read_text())
    shell = [block.code.replace("\\\n", " ") for block in pages.blocks(page) if block.language in ("bash", "console")]
    lines = [line.removeprefix("$ ") for code in shell for line in code.splitlines()]
    found = [why for text in (*spans, *lines) for words in mentions(text) if (why := wrong(words))]
    assert not found, "\n".join(found)


def test_documents_name_targets_of_make_that_exist(project: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (project / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in (*pages.documents(), *pages.OTHERS) for name in re.findall(r"`make ([a-z-]+)", page.read_text())}
    assert {"demo", "docs"} <= named <= targets


def test_documents_name_every_extra(project: Path) -> None:
    extras = set(tomllib.loads((project / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    (sentence,) = re.findall(r"The extras are ([^.]*)\.", (project / "README.md").read_text())
    assert set(re.findall(r"`([a-z0-9-]+)`", sentence)) == extras
    (table,) = re.findall(r"\| extra \| brings \|\n((?:\|.*\n)+)", (project / "docs" / "index.md").read_text())
    assert set(re.findall(r"`([a-z0-9-]+)`", table)) == extras


@pytest.mark.parametrize("page", pages.documents(), ids=pages.name_of)
def test_documents_name_options_that_exist(page: Path) -> None:
    known = {*TABLE_OPTIONS, *SPELLINGS, *lockoptions.OPTIONS, *settings.OPTIONS}
    families = {key.partition(".")[0] for key in known if "." in key}
    named = {span.partition(" = ")[0] for span in re.findall(r"`([a-z][a-z-]*(?:\.[a-z-]+)+\*?(?: = [^`]+)?)`", page.read_text())}
    unknown = [
        name
        for name in sorted(named)
        if name.partition(".")[0] in families
        and name not in {*known, *sessionsettings.OPTIONS}
        and not any(key.startswith(name.removesuffix("*")) for key in known)
        and not name.startswith("log.kafka.")
        and partition_date_column(name) is None
    ]
    assert not unknown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("`tablestore table show`", None),
        ("run `tablestore log rebuild TABLE --yes`, then", None),
        ("`tablestore tabel show`", "no `tablestore tabel"),
        ("`tablestore table show --al`", "no --al"),
        ("what tablestore does not support", None),
    ],
)
def test_the_rule_tells_right_from_wrong(text: str, message: str | None) -> None:
    found = [why for words in mentions(text) if (why := wrong(words))]
    assert not found if message is None else message in found[0]
