"""Completes a word that stands for a part of a table: columns, tags, options and the like.

Each is an ``autocompletion`` of an argument or option, and looks at the table that the words before it name. Names of tables are
completed by :func:`~tablestore.cli.command.complete_table`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tablestore.cli.command import CommandRun, complete_table, completing

if TYPE_CHECKING:
    from tablestore.cli.tableparts import TableParts

Given = Mapping[str, Any]

_WORD = re.compile(r"\w*$")


@completing
def databases(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """The databases of the warehouse."""
    return session.names().list_databases()


def source(ctx: Any, incomplete: str) -> list[str]:
    """Completes what can be read: a table, and behind its name and ``$`` a branch or a system table."""
    base, system, _ = incomplete.rpartition("$")
    names = complete_table(ctx, incomplete)
    return [*names, *(f"{base}${name}" for name in _system_tables())] if system else names


def system_table(incomplete: str) -> list[str]:
    """The system tables."""
    return [name for name in _system_tables() if name.startswith(incomplete)]


@completing
def column(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """One column."""
    return _columns(session, words)


@completing
def columns(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """Columns that commas separate: the last one may be any that is not yet named."""
    before, comma, _ = incomplete.rpartition(",")
    named = {name.strip() for name in before.split(",")}
    return [f"{before}{comma}{name}" for name in _columns(session, words) if name not in named]


@completing
def condition(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """The columns of a condition: its last word may be any."""
    before = _WORD.sub("", incomplete, count=1)
    return [f"{before}{name}" for name in _columns(session, words)]


@completing
def setting(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """``column=``, as values are set by."""
    return [f"{name}=" for name in _columns(session, words)]


@completing
def tag(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """The tags of the table."""
    return _parts(session, words).tags()


@completing
def snapshot(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """The retained snapshots, newest first."""
    return _parts(session, words).snapshots()


@completing
def branch(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """The branches of the table."""
    return _parts(session, words).branches()


@completing
def consumer(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """The consumers of the table."""
    return _parts(session, words).consumers()


def option(incomplete: str) -> list[str]:
    """``key=`` of any table option; behind the sign the values, where there are only some."""
    from tablestore.options import TABLE_OPTIONS

    key, sign, _ = incomplete.partition("=")
    if not sign:
        return [f"{key}=" for key in TABLE_OPTIONS]
    table_option = TABLE_OPTIONS.get(key)
    values = () if table_option is None else ("true", "false") if table_option.kind == "bool" else table_option.choices
    return [f"{key}={value}" for value in values]


@completing
def set_option(session: CommandRun, words: Given, incomplete: str) -> Iterable[str]:
    """The options that the table has set."""
    return _parts(session, words).options()


def _columns(session: CommandRun, words: Given) -> list[str]:
    return _parts(session, words).columns()


def _parts(session: CommandRun, words: Given) -> "TableParts":
    """The parts of the table that the words before name."""
    name, system = words.get("name"), words.get("system")
    return session.parts(f"{name}${system}" if system else str(name))


def _system_tables() -> tuple[str, ...]:
    from tablestore.table.system.systemkinds import SYSTEM_TABLES

    return SYSTEM_TABLES
