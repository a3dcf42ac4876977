"""Opens the database in memory in which an engine's queries run. It loads no code, and reads files only in folders that are named.

DuckDB takes no more folders once files are closed to it. So for one more folder another database is opened, and what runs goes on
in the one that it has.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from itertools import count

import duckdb

from tablestore.environment.engine import Function
from tablestore.errors import InvalidInputError
from tablestore_duckdb.pythonfunctions import create_function

# A name that is not there is no variable of some module, and no query makes DuckDB fetch or load code.
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
_PREFIX = "tablestore-duckdb-"


class Database:
    """Opens databases for one engine, each with its functions, the folders that it reads, and a folder for what it spills."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._folders: frozenset[str] = frozenset()
        self._numbers = count()
        self._removals: list[Callable[[], object]] = []
        self.spill_into(None)

    def add_folders(self, folders: Iterable[str]) -> bool:
        """Lets the databases that are opened from now on read files in these folders; True if one of them is new."""
        before, self._folders = self._folders, self._folders.union(folders)
        return len(before) < len(self._folders)

    def spill_into(self, folder: str | None) -> None:
        """Chooses where data beyond the memory go; None: to the system's folder for temporary files, empty: they go nowhere.

        They go to a folder inside of it that no other process has. Raises InvalidInputError if it cannot be made.
        """
        if folder == "":
            self._spilled = ""
            return
        try:
            if folder is not None:
                os.makedirs(folder, exist_ok=True)
            self._spilled = tempfile.mkdtemp(prefix=_PREFIX, dir=folder)
        except OSError as error:
            message = f"temp_directory: cannot make a folder in {folder!r:.200}: {error}"
            raise InvalidInputError(message, kind="invalid-option") from error
        self._removals.append(weakref.finalize(self, shutil.rmtree, self._spilled, ignore_errors=True))

    def close(self) -> None:
        """Removes what was spilled."""
        for remove in self._removals:
            remove()

    def open(self) -> duckdb.DuckDBPyConnection:
        """A connection to another database."""
        # Two databases name what they spill alike.
        spilled = self._spilled and os.path.join(self._spilled, str(next(self._numbers)))
        if spilled:
            os.makedirs(spilled, exist_ok=True)
        connection = duckdb.connect(":memory:", config={**_CLOSED, "temp_directory": spilled})
        for name, function in self._functions.items():
            create_function(connection, name, function)
        connection.execute("SET allowed_directories = $1", [sorted(self._folders)]).complete()
        connection.execute("SET enable_external_access = false").complete()
        return connection
