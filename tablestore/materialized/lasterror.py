"""Keeps the last error of a materialized table beside it: of a refresh, or of a statement that was to alter it.

    tablestore-materialized/last-error.json       in the directory of the table, overwritten by the next one

It is there for whoever asks how the table is, in any process, and has no authority. A refresh that goes well removes the error of
one before it; that of a statement stays until the definition is another one, or is declared again.

A message may hold a value of a source ("Could not convert string 'x' to INT32"), so that it is told to who sees all of them; others
are told the kind of the error (:func:`shown_error`).
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal

from tablestore.environment.session.session import Session
from tablestore.errors import NotFoundError, TablestoreError
from tablestore.materialized.expansion import sources_of
from tablestore.materialized.storing import StoredTable
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table

# Stored, never renamed.
LAST_ERROR_FILE = "tablestore-materialized/last-error.json"
_MOST_CHARACTERS = 10_000

During = Literal["refresh", "alter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastError:
    """An error, the epoch of the definition that it was about, and what was being done. ``name``: its class, and its kind; empty
    where an older release kept it."""

    at_ms: int
    epoch: int
    during: During
    message: str
    name: str = ""


def keep_error(stored: StoredTable, error: TablestoreError, *, during: During, now_ms: int) -> None:
    """Keeps an error with its table. It is on its way to somebody: that it cannot be kept is no error."""
    name = f"{type(error).__name__} ({error.kind})"
    last = LastError(at_ms=now_ms, epoch=stored.upkeep.epoch, during=during, message=str(error)[:_MOST_CHARACTERS], name=name)
    with suppress(TablestoreError):
        # A table that was dropped meanwhile leaves no file behind.
        context = stored.table.context.still_there()
        context.files.overwrite(LAST_ERROR_FILE, json.dumps(asdict(last), sort_keys=True).encode(), lasting=False)


def forget_error(stored: StoredTable, *, during: During) -> None:
    """Forgets the last error, if it came up ``during`` this: all is well with that again."""
    last = last_error(stored)
    if last is not None and last.during == during:
        with suppress(TablestoreError):
            stored.table.context.files.delete(LAST_ERROR_FILE)


def shown_error(session: Session, stored: StoredTable) -> LastError | None:
    """The error that still counts, for whoever asks: its message is left out unless they see all of the table and its sources."""
    last = last_error(stored)
    # A name that is not there says nothing of rows.
    if last is None or last.name.startswith(NotFoundError.__name__) or _sees_all(session, stored):
        return last
    name = last.name or "an error"
    return replace(last, message=f"{name}; its message is for who sees all rows and columns of the tables that the query reads")


def _sees_all(session: Session, stored: StoredTable) -> bool:
    try:
        opened = [stored.table, *map(session.open_table, sources_of(stored.definition.query))]
        tables = [one.base if isinstance(one, SystemTable) else one for one in opened]
        return all(isinstance(one, Table) and one.context.view is None for one in tables)
    except TablestoreError:
        return False


def last_error(stored: StoredTable) -> LastError | None:
    """The error that still counts; None if all is well."""
    files = stored.table.context.files
    try:
        # As a rule there is none.
        if not files.exists(LAST_ERROR_FILE):
            return None
        last = LastError(**json.loads(files.read(LAST_ERROR_FILE)))
    except NotFoundError:
        return None
    except (TablestoreError, ValueError, TypeError, RecursionError):
        # Cut off, or written by something else: the next one takes its place.
        return None
    return last if last.epoch == stored.upkeep.epoch else None
