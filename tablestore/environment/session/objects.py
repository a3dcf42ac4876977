"""Keeps objects that only this session knows: temporary tables and views.

    a path -> temporary object -> (the catalogs)

They are kept as properties and text, by their whole name: what they stand for is resolved when they are read or written. They may
lie in a catalog or database that does not exist. A temporary object hides whatever else has its name, and is gone with the session.
Permanent views and tables with a connector are values of the same classes, which
:mod:`tablestore.environment.session.keptobjects` keeps in catalogs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tablestore.environment.objectpath import ObjectPath, check_whole
from tablestore.errors import AlreadyExistsError, InvalidInputError
from tablestore.sql.sqldialect import SqlDialect

if TYPE_CHECKING:
    from tablestore.environment.managed.nonphysical import Unstored

CONNECTOR = "connector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorTable:
    """A table with the option ``connector``: whatever the engine reads and writes under that name. ``schema`` None: it knows.

    ``declared``: this very session has created it; of a permanent one that another session has, only some are read.
    """

    path: ObjectPath
    connector: str
    options: Mapping[str, str] = field(repr=False)
    schema: pa.Schema | None = None
    unstored: "Unstored | None" = None
    primary_key: tuple[str, ...] = ()
    constraint: str | None = None
    partition_by: tuple[str, ...] = ()
    comment: str | None = None
    temporary: bool = False
    declared: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryTable:
    """A temporary managed table: its rows are those of the table ``storage`` of a catalog, which outlives the session."""

    path: ObjectPath
    storage: ObjectPath


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view: a query and the current catalog and database at the time, by which its names are filled up.

    ``dialect``: the words that the query is in, whatever those of the session are later.
    """

    path: ObjectPath
    query: str
    dialect: SqlDialect = SqlDialect.SPARK
    columns: tuple[str, ...] = ()
    comment: str | None = None
    catalog: str
    database: str
    options: Mapping[str, str] = field(default_factory=dict)
    temporary: bool = True
    declared: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsView:
    """A temporary view of rows that Python has: an ArrowSource, or where ``native`` an object of the engine's own."""

    path: ObjectPath
    rows: Any
    native: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InformationView(RowsView):
    """A table of ``information_schema``, whose rows are what a catalog holds. No session keeps it."""


TemporaryObject = ConnectorTable | TemporaryTable | View | RowsView
VIEWS = (View, RowsView)
TABLES = (ConnectorTable, TemporaryTable)


@dataclass(slots=True)
class SessionObjects:
    """The objects of a session, by whole name."""

    _temporary: dict[ObjectPath, TemporaryObject] = field(default_factory=dict)

    def temporary(self, path: ObjectPath) -> TemporaryObject | None:
        """The temporary object of a name."""
        return self._temporary.get(path)

    def add(self, new_object: TemporaryObject, *, replace: bool = False) -> None:
        """Adds an object; ``replace``: in place of one of its kind. Raises AlreadyExistsError, InvalidInputError."""
        check_whole(new_object.path)
        existing = self._temporary.get(new_object.path)
        if existing is not None and not (replace and isinstance(existing, VIEWS) == isinstance(new_object, VIEWS)):
            raise AlreadyExistsError(
                f"Temporary {kind_of(existing)} '{new_object.path.quoted}' already exists", kind="table-exists"
            )
        self._temporary[new_object.path] = new_object

    def drop_temporary(self, path: ObjectPath) -> None:
        """Forgets a temporary object."""
        self._temporary.pop(path, None)

    def move(self, old: ConnectorTable, new: ConnectorTable) -> None:
        """Replaces one temporary table with a connector by another of a new name."""
        self.add(new)
        self.drop_temporary(old.path)

    def check_permanent(self, path: ObjectPath, what: str, *, doing: str = "removing") -> None:
        """Raises InvalidInputError if a temporary object hides the ``table`` or ``view`` that something is to be done with."""
        if (temporary := self._temporary.get(path)) is not None:
            raise InvalidInputError(
                f"Temporary {kind_of(temporary)} with identifier '{path.quoted}' exists. Drop it first before {doing} the "
                f"permanent {what}.",
                kind="temporary-object",
            )

    def temporary_tables(self) -> tuple[ConnectorTable | TemporaryTable, ...]:
        """The temporary tables, by name."""
        return tuple(table for _, table in sorted(self._temporary.items()) if isinstance(table, TABLES))

    def views(self) -> tuple[View | RowsView, ...]:
        """The temporary views, by name."""
        return tuple(view for _, view in sorted(self._temporary.items()) if isinstance(view, VIEWS))

    def names(self) -> tuple[ObjectPath, ...]:
        """The names of all objects."""
        return tuple(sorted(self._temporary))


def kind_of(temporary_object: TemporaryObject) -> str:
    """``table`` or ``view``."""
    return "view" if isinstance(temporary_object, VIEWS) else "table"
