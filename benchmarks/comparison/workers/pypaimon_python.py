"""Drives pypaimon, in Python alone or with its native reader and writer.

With ``"native": true`` a silent fall-back to pypaimon's Python code is an error, so that a time of the native code never is one of
the other.
"""

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.common.identifier import Identifier
from pypaimon.read import table_read
from pypaimon.write.native_write import NativeTableWrite
from system import Cannot, Conflict, System

_NATIVE = {"read.native.enabled": "true", "write.native.enabled": "true"}


class Pypaimon(System):
    """Paimon tables on the local disk."""

    packages = ("pypaimon", "pypaimon-rust", "pyarrow")

    def __init__(self, directory: str, settings: dict[str, Any]) -> None:
        super().__init__(directory, settings)
        self._native = settings["native"]
        self._fallbacks: list[str] = []
        original = table_read.TableRead._native_fallback

        def note_fallback(read: Any, reason: str, *args: Any, **kwargs: Any) -> Any:
            self._fallbacks.append(reason)
            return original(read, reason, *args, **kwargs)

        table_read.TableRead._native_fallback = note_fallback

    def location(self, table: str) -> str:
        return f"{self.directory}/bench.db/{table}"

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        catalog = self._catalog()
        catalog.create_database("bench", True)
        options = dict(self.settings["options"])
        keyed = Schema.from_pyarrow_schema(schema, primary_keys=["id"], options=options)
        catalog.create_table(Identifier.create("bench", table), keyed, False)

    def append(self, table: str, rows: pa.Table) -> None:
        self.upsert(table, rows)

    def upsert(self, table: str, rows: pa.Table) -> None:
        builder = self._open(table).new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        if self._native and not isinstance(write, NativeTableWrite):
            raise RuntimeError("the native writer does not take this table")
        write.write_arrow(rows)
        try:
            commit.commit(write.prepare_commit())
        except RuntimeError as error:
            if "conflict" in str(error).lower():
                raise Conflict from error
            raise
        if self._native and getattr(write, "_python_writer", None) is not None:
            raise RuntimeError("the native writer handed over to the Python writer")
        write.close()
        commit.close()

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        builder = self._open(table).new_read_builder().with_projection(list(columns))
        return self._to_arrow(builder)

    def lookup(self, table: str, keys: Sequence[int]) -> pa.Table:
        builder = self._open(table).new_read_builder()
        predicates = builder.new_predicate_builder()
        condition = predicates.equal("id", keys[0]) if len(keys) == 1 else predicates.is_in("id", list(keys))
        return self._to_arrow(builder.with_filter(condition))

    def mark(self, table: str) -> Any:
        # Ranges are of times: a snapshot at the mark does not count as behind it.
        time.sleep(0.01)
        mark = int(time.time() * 1000)
        time.sleep(0.01)
        return mark

    def changes(self, table: str, mark: Any) -> pa.Table:
        window = {"incremental-between-timestamp": f"{mark},{int(time.time() * 1000) + 1000}"}
        return self._to_arrow(self._open(table).copy(window).new_read_builder())

    def compact(self, table: str) -> None:
        raise Cannot("compaction: it is left to Flink and Spark")

    def _to_arrow(self, builder: Any) -> pa.Table:
        self._fallbacks.clear()
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        if self._native and self._fallbacks:
            raise Cannot(f"this by its native reader: {'; '.join(self._fallbacks)}")
        return rows

    def _catalog(self) -> Any:
        return CatalogFactory.create({"warehouse": self.directory})

    def _open(self, table: str) -> Any:
        found = self._catalog().get_table(Identifier.create("bench", table))
        return found.copy(_NATIVE) if self._native else found


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return Pypaimon(directory, settings)
