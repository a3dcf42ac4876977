"""Defines what a system can be told to do. Each method that a system lacks is answered with ``Cannot``."""

import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class Cannot(Exception):
    """The system has no such operation; the message says so in the reader's words."""


class Conflict(Exception):
    """A commit lost a race and may be tried again."""


class System:
    """One system in a directory of its own. ``settings`` are those of ``systems``; rows are Arrow tables in memory, loaded before
    anything is timed. Every operation opens its table anew.
    """

    packages: Sequence[str] = ()

    def __init__(self, directory: str, settings: dict[str, Any]) -> None:
        self.directory = directory
        self.settings = settings

    def versions(self) -> dict[str, str]:
        found = {}
        for name in self.packages:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
        return found

    def cpu_seconds(self) -> float:
        """Processor seconds of everything that works for this system so far."""
        return time.process_time()

    def load(self, path: str) -> Any:
        """Rows of a Parquet file, in memory."""
        return pq.read_table(path)

    def location(self, table: str) -> str:
        """The folder whose bytes are those of the table."""
        return f"{self.directory}/{table}"

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        """An empty table with the key ``id``. ``changes``: it will be asked for its changes."""
        raise Cannot("tables")

    def append(self, table: str, rows: Any) -> None:
        """Commits rows whose keys are new."""
        raise Cannot("appends")

    def upsert(self, table: str, rows: Any) -> None:
        """Commits rows: those of an equal key replace the old ones."""
        raise Cannot("upserts: it has no key and no merge")

    def update(self, table: str) -> None:
        """``UPDATE … SET quantity = quantity + 1 WHERE id % 100 = 3``."""
        raise Cannot("updates by a condition")

    def delete(self, table: str) -> None:
        """``DELETE … WHERE id % 100 = 5``."""
        raise Cannot("deletes by a condition")

    def read(self, table: str, columns: Sequence[str]) -> Any:
        """These columns of all rows: as an Arrow table, or as sums."""
        raise Cannot("reads")

    def lookup(self, table: str, keys: Sequence[int]) -> pa.Table:
        """The rows of these keys."""
        raise Cannot("look-ups")

    def compact(self, table: str) -> None:
        """Rewrites the table as a reader likes it best."""
        raise Cannot("compaction")

    def mark(self, table: str) -> Any:
        """The place in the table's history up to which changes are known."""
        raise Cannot("changes since a snapshot")

    def changes(self, table: str, mark: Any) -> pa.Table:
        """The rows that were inserted or updated behind a mark, as they are now, and perhaps other columns."""
        raise Cannot("changes since a snapshot")

    def close(self) -> None:
        """Lets go of what it holds."""
