"""Drives DuckLake: DuckDB with its extension. The catalog lies in a DuckDB file, or in SQLite where several processes write."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from system import Conflict, System

_TYPES = {"int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR"}


class DuckLake(System):
    """Tables of one lake. Its connection stays open: a lake is attached, not opened anew."""

    packages = ("duckdb", "duckdb-ext-ducklake", "pyarrow")

    def __init__(self, directory: str, settings: dict[str, Any]) -> None:
        super().__init__(directory, settings)
        os.makedirs(directory, exist_ok=True)
        self._con = duckdb.connect(config={"allow_unsigned_extensions": True})
        extensions = Path(duckdb.__file__).parent.parent / "duckdb_ext" / "extensions"
        for name in ("ducklake", "sqlite_scanner"):
            for extension in extensions.rglob(f"{name}.duckdb_extension"):
                self._con.execute(f"LOAD '{extension}'")
        where = f"sqlite:{directory}/catalog.sqlite" if settings["catalog"] == "sqlite" else f"{directory}/catalog.ducklake"
        self._con.execute(f"ATTACH 'ducklake:{where}' AS lake (DATA_PATH '{directory}/data')")
        if settings["catalog"] == "sqlite":
            self._con.execute("SET ducklake_max_retry_count = 100")

    def versions(self) -> dict[str, str]:
        extension = self._con.execute(
            "SELECT extension_version FROM duckdb_extensions() WHERE extension_name = 'ducklake'"
        ).fetchone()
        return {**super().versions(), "ducklake": extension[0] if extension else "?"}

    def location(self, table: str) -> str:
        return f"{self.directory}/data/main/{table}"

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        columns = ", ".join(f"{field.name} {_TYPES[str(field.type)]}" for field in schema)
        self._con.execute(f"CREATE TABLE lake.{table} ({columns})")

    def append(self, table: str, rows: pa.Table) -> None:
        try:
            self._con.execute(f"INSERT INTO lake.{table} SELECT * FROM rows")
        except (duckdb.TransactionException, duckdb.IOException) as error:
            raise Conflict from error

    def upsert(self, table: str, rows: pa.Table) -> None:
        self._con.execute(
            f"MERGE INTO lake.{table} t USING rows s ON t.id = s.id WHEN MATCHED THEN UPDATE SET quantity = s.quantity, "
            "price = s.price, code = s.code WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.quantity, s.price, s.code)"
        )

    def update(self, table: str) -> None:
        self._con.execute(f"UPDATE lake.{table} SET quantity = quantity + 1 WHERE id % 100 = 3")

    def delete(self, table: str) -> None:
        self._con.execute(f"DELETE FROM lake.{table} WHERE id % 100 = 5")

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        return self._arrow(f"SELECT {', '.join(columns)} FROM lake.{table}")

    def lookup(self, table: str, keys: Sequence[int]) -> pa.Table:
        condition = f"id = {keys[0]}" if len(keys) == 1 else f"id IN ({', '.join(map(str, keys))})"
        return self._arrow(f"SELECT * FROM lake.{table} WHERE {condition}")

    def compact(self, table: str) -> None:
        self._con.execute(f"CALL ducklake_rewrite_data_files('lake', '{table}', delete_threshold => 0)")
        self._con.execute("CALL ducklake_merge_adjacent_files('lake')")

    def mark(self, table: str) -> Any:
        return self._snapshot()

    def changes(self, table: str, mark: Any) -> pa.Table:
        changes = f"ducklake_table_changes('lake', 'main', '{table}', {mark + 1}, {self._snapshot()})"
        return self._arrow(f"SELECT * FROM {changes} WHERE change_type IN ('insert', 'update_postimage')")

    def close(self) -> None:
        self._con.close()

    def _snapshot(self) -> int:
        found = self._con.execute("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')").fetchone()
        return int(found[0]) if found else 0

    def _arrow(self, query: str) -> pa.Table:
        found = self._con.execute(query).arrow()
        return found.read_all() if isinstance(found, pa.RecordBatchReader) else found


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return DuckLake(directory, settings)
