"""Objects that only this session knows: tables that are not managed, and temporary views.

They are kept as properties and text, by their whole name, and looked at before the catalogs: what they stand for is resolved when
they are read or written. They may lie in a catalog or database that does not exist. All are gone with the session.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tablestore.environment.paths import ObjectPath
from tablestore.errors import AlreadyExistsError

CONNECTOR = "connector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorTable:
    """A table with the option ``connector``: whatever the engine reads and writes under that name. ``schema`` None: it knows."""

    path: ObjectPath
    connector: str
    options: Mapping[str, str]
    schema: pa.Schema | None = None
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A temporary view: a query and the current catalog and database at the time, by which its names are filled up."""

    path: ObjectPath
    query: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    catalog: str
    database: str


SessionObject = ConnectorTable | View


@dataclass(slots=True)
class SessionObjects:
    """All of them, by whole name."""

    _all: dict[ObjectPath, SessionObject] = field(default_factory=dict)

    def find(self, path: ObjectPath) -> SessionObject | None:
        """The object of a name."""
        return self._all.get(path)

    def add(self, found: SessionObject, *, replace: bool = False) -> None:
        """Add an object. Raises AlreadyExistsError."""
        if found.path in self._all and not replace:
            what = "Temporary view" if isinstance(self._all[found.path], View) else "Table"
            raise AlreadyExistsError(f"{what} '{found.path.quoted}' already exists", kind="table-exists")
        self._all[found.path] = found

    def drop(self, path: ObjectPath) -> bool:
        """Forget an object; whether there was one."""
        return self._all.pop(path, None) is not None

    def move(self, path: ObjectPath, new: ObjectPath, found: SessionObject) -> None:
        """Replace one object by another of a new name."""
        self.add(found)
        self.drop(path)

    def tables(self) -> tuple[ConnectorTable, ...]:
        """The tables, by name."""
        return tuple(found for _, found in sorted(self._all.items()) if isinstance(found, ConnectorTable))

    def views(self) -> tuple[View, ...]:
        """The views, by name."""
        return tuple(found for _, found in sorted(self._all.items()) if isinstance(found, View))
