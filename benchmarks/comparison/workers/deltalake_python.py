"""Drives deltalake (delta-rs) in Python."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from system import Conflict, System


class Deltalake(System):
    """Delta tables on the local disk."""

    packages = ("deltalake", "pyarrow")

    def create(self, table: str, schema: pa.Schema, *, changes: bool) -> None:
        # Only where changes are read: keeping them costs every merge.
        settings = {"delta.enableChangeDataFeed": "true"} if changes else {}
        DeltaTable.create(self.location(table), schema=schema, configuration=settings)

    def append(self, table: str, rows: pa.Table) -> None:
        try:
            write_deltalake(self.location(table), rows, mode="append")
        except CommitFailedError as error:
            raise Conflict from error

    def upsert(self, table: str, rows: pa.Table) -> None:
        merge = self._open(table).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def update(self, table: str) -> None:
        self._open(table).update(predicate="id % 100 = 3", updates={"quantity": "quantity + 1"})

    def delete(self, table: str) -> None:
        self._open(table).delete("id % 100 = 5")

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        return self._open(table).to_pyarrow_table(columns=list(columns))

    def lookup(self, table: str, keys: Sequence[int]) -> pa.Table:
        condition = pc.field("id") == keys[0] if len(keys) == 1 else pc.field("id").isin(list(keys))
        return self._open(table).to_pyarrow_dataset().to_table(filter=condition)

    def compact(self, table: str) -> None:
        self._open(table).optimize.compact()

    def mark(self, table: str) -> Any:
        return self._open(table).version()

    def changes(self, table: str, mark: Any) -> pa.Table:
        found = pa.table(self._open(table).load_cdf(starting_version=mark + 1))
        # Texts come as views, of which Arrow compares few.
        schema = pa.schema(
            [field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in found.schema]
        )
        found = found.cast(schema)
        return found.filter(pc.is_in(found["_change_type"], pa.array(["insert", "update_postimage"])))

    def _open(self, table: str) -> DeltaTable:
        return DeltaTable(self.location(table))


def open_system(directory: str, settings: dict[str, Any]) -> System:
    return Deltalake(directory, settings)
