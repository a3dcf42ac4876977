"""Drives tablestore in Python."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from system import System

import tablestore as ts


class Tablestore(System):
    """Tables of one catalog on the local disk."""

    packages = ("managed-tablestore", "pyarrow")

    def versions(self) -> dict[str, str]:
        return {"tablestore": ts.__version__, **super().versions()}

    def location(self, table: str) -> str:
        return f"{self.directory}/bench.db/{table}"

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        catalog = ts.open_catalog(self.directory)
        catalog.create_database("bench", ignore_if_exists=True)
        keyed = pa.schema([field.with_nullable(field.name != "id") for field in schema])
        catalog.create_table(f"bench.{table}", schema=keyed, primary_key=["id"], options=self.settings)

    def append(self, table: str, rows: pa.Table) -> None:
        self.upsert(table, rows)

    def upsert(self, table: str, rows: pa.Table) -> None:
        self._open(table).upsert(rows)

    def update(self, table: str) -> None:
        self._open(table).update({"quantity": "quantity + 1"}, "id % 100 = 3")

    def delete(self, table: str) -> None:
        self._open(table).delete("id % 100 = 5")

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        return self._open(table).scan(columns=list(columns)).to_arrow()

    def lookup(self, table: str, keys: Sequence[int]) -> pa.Table:
        condition = f"id = {keys[0]}" if len(keys) == 1 else f"id IN ({', '.join(map(str, keys))})"
        return self._open(table).scan(filter=condition).to_arrow()

    def compact(self, table: str) -> None:
        self._open(table).compact(full=True)

    def mark(self, table: str) -> Any:
        return self._open(table).snapshots()[-1].id

    def changes(self, table: str, mark: Any) -> pa.Table:
        return self._open(table).changes(mark, pairs=False).to_arrow()

    def _open(self, table: str) -> ts.Table:
        return ts.open_table(self.location(table))


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return Tablestore(directory, settings)
