"""Drives pyiceberg with a catalog in SQLite."""

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import EqualTo, In
from pyiceberg.table import Table
from system import Cannot, Conflict, System


class Pyiceberg(System):
    """Iceberg tables of format version 2 on the local disk."""

    packages = ("pyiceberg", "pyiceberg-core", "pyarrow")

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        if changes:
            raise Cannot("changes since a snapshot")
        self._catalog().create_namespace_if_not_exists("bench")
        self._catalog().create_table(f"bench.{table}", schema=schema)

    def location(self, table: str) -> str:
        return f"{self.directory}/bench/{table}"

    def append(self, table: str, rows: pa.Table) -> None:
        try:
            self._open(table).append(rows)
        except CommitFailedException as error:
            raise Conflict from error

    def upsert(self, table: str, rows: pa.Table) -> None:
        self._open(table).upsert(rows, join_cols=["id"])

    def delete(self, table: str) -> None:
        raise Cannot("deletes by id % 100: its filters compare columns with values")

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        return self._open(table).scan(selected_fields=tuple(columns)).to_arrow()

    def lookup(self, table: str, keys: Sequence[int]) -> pa.Table:
        condition = EqualTo("id", keys[0]) if len(keys) == 1 else In("id", set(keys))
        return self._open(table).scan(row_filter=condition).to_arrow()

    def _catalog(self) -> SqlCatalog:
        os.makedirs(self.directory, exist_ok=True)
        return SqlCatalog("bench", uri=f"sqlite:///{self.directory}/catalog.db", warehouse=f"file://{self.directory}")

    def _open(self, table: str) -> Table:
        return self._catalog().load_table(f"bench.{table}")


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return Pyiceberg(directory, settings)
