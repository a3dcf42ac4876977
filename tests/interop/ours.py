"""tablestore with the commands of an oracle, so that tests can pass it around like one.

Every command opens the table anew: what another implementation just did must be seen.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import canonical
import pyarrow as pa
import pyarrow.compute as pc
from canonical import Column, Row
from random_tables import TableSpec

import tablestore as ts

KIND = "_row_kind"


class Ours:
    """The engine under test; ``name`` is what messages call it."""

    name = "tablestore"

    def create(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[Column],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a table."""
        database, table = Path(path).parent, Path(path).name
        catalog = ts.open_catalog(str(database.parent))
        catalog.create_database(database.name.removesuffix(".db"), ignore_if_exists=True)
        catalog.create_table(
            f"{database.name.removesuffix('.db')}.{table}",
            schema=canonical.arrow_schema(columns),
            primary_key=list(primary_key),
            partition_by=list(partition_by),
            options=dict(options or {}),
        )

    def write(
        self,
        path: str | os.PathLike[str],
        rows: Sequence[Row],
        *,
        kinds: Sequence[str] | None = None,
        overwrite: Mapping[str, Any] | None = None,
    ) -> int:
        """One commit of rows (appended, upserted, or written as changes); the latest snapshot id afterwards."""
        table = ts.open_table(str(path))
        schema = table.schema
        data = canonical.decode_rows(rows, schema)
        if overwrite is not None:
            table.overwrite(data, partition=dict(overwrite))
        elif kinds is not None:
            table.write_changes(data.append_column(KIND, pa.array(kinds, pa.string())))
        elif table.primary_key:
            table.upsert(data)
        else:
            table.append(data)
        # A compaction may have followed.
        return table.snapshots()[-1].id

    def read(
        self,
        path: str | os.PathLike[str],
        *,
        snapshot: int | None = None,
        equals: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        """The rows of a scan."""
        table = ts.open_table(str(path))
        arguments: dict[str, Any] = {}
        if snapshot is not None:
            arguments["snapshot_id"] = snapshot
        if columns is not None:
            arguments["columns"] = list(columns)
        for name, value in (equals or {}).items():
            scalar = canonical.decode_values([value], table.schema.field(name).type)[0]
            condition = pc.field(name) == scalar
            arguments["filter"] = arguments["filter"] & condition if "filter" in arguments else condition
        return canonical.encode_rows(table.scan(**arguments).to_arrow())

    def changes(self, path: str | os.PathLike[str], *, from_snapshot: int, to_snapshot: int) -> list[tuple[str, Row]]:
        """The changes of the snapshots after ``from_snapshot`` up to ``to_snapshot``."""
        changes = ts.open_table(str(path)).changes(from_snapshot=from_snapshot, to_snapshot=to_snapshot)
        return [(row.pop(KIND), row) for row in canonical.encode_rows(changes.to_arrow())]

    def compact(self, path: str | os.PathLike[str], *, full: bool = True) -> int:
        """Compacts every bucket; the latest snapshot id afterwards."""
        ts.open_table(str(path)).compact(full=full)
        return ts.open_table(str(path)).snapshots()[-1].id


def create(where: Any, path: Path, spec: TableSpec) -> None:
    """Creates the table of a spec with an oracle or with ``Ours``."""
    where.create(
        path,
        spec.columns,
        primary_key=spec.primary_key,
        partition_by=spec.partition_by,
        options=spec.options,
    )
