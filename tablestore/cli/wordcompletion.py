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
def databases(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """The databases of the warehouse."""
    return session.names().list_databases()


def source(ctx: Any, incomplete: str) -> list[str]:
    """Completes what can be read: a table, and behind its name and ``$`` a branch or a system table."""
    base, system, _ = incomplete.rpartition("$")
    found = complete_table(ctx, incomplete)
    return [*found, *(f"{base}${name}" for name in _system_tables())] if system else found


def system_table(incomplete: str) -> list[str]:
    """The system tables."""
    return [name for name in _system_tables() if name.startswith(incomplete)]


@completing
def column(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """One column."""
    return _columns(session, given)


@completing
def columns(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """Columns that commas separate: the last one may be any that is not yet named."""
    before, comma, _ = incomplete.rpartition(",")
    taken = {name.strip() for name in before.split(",")}
    return [f"{before}{comma}{name}" for name in _columns(session, given) if name not in taken]


@completing
def condition(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """The columns of a condition: its last word may be any."""
    before = _WORD.sub("", incomplete, count=1)
    return [f"{before}{name}" for name in _columns(session, given)]


@completing
def setting(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """``column=``, as values are set by."""
    return [f"{name}=" for name in _columns(session, given)]


@completing
def tag(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """The tags of the table."""
    return _parts(session, given).tags()


@completing
def snapshot(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """The retained snapshots, newest first."""
    return _parts(session, given).snapshots()


@completing
def branch(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """The branches of the table."""
    return _parts(session, given).branches()


@completing
def consumer(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """The consumers of the table."""
    return _parts(session, given).consumers()


def option(incomplete: str) -> list[str]:
    """``key=`` of any table option; behind the sign the values, where there are only some."""
    from tablestore.options import TABLE_OPTIONS

    key, sign, _ = incomplete.partition("=")
    if not sign:
        return [f"{key}=" for key in TABLE_OPTIONS]
    known = TABLE_OPTIONS.get(key)
    values = () if known is None else ("true", "false") if known.kind == "bool" else known.choices
    return [f"{key}={value}" for value in values]


@completing
def set_option(session: CommandRun, given: Given, incomplete: str) -> Iterable[str]:
    """The options that the table has set."""
    return _parts(session, given).options()


def _columns(session: CommandRun, given: Given) -> list[str]:
    return _parts(session, given).columns()


def _parts(session: CommandRun, given: Given) -> "TableParts":
    """The parts of the table that the words before name."""
    name, system = given.get("name"), given.get("system")
    return session.parts(f"{name}${system}" if system else str(name))


def _system_tables() -> tuple[str, ...]:
    from tablestore.table.system.systemkinds import SYSTEM_TABLES

    return SYSTEM_TABLES
