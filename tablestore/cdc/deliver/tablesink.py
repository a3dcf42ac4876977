"""Changes into another table: rows and their position are one snapshot."""

import json

import pyarrow as pa

from tablestore.errors import ConflictError, FormatError
from tablestore.store.replay import SOURCE_POSITION_PROPERTY, Replays
from tablestore.table.table import Table
from tablestore.table.write.committing import Effect
from tablestore.table.write.writer import TableWriter


class TableSink:
    """Writes to ``table`` under ``name``. Two processes of one name cannot both go on: see :mod:`tablestore.store.replay`."""

    def __init__(self, table: Table, name: str) -> None:
        self._table, self._user = table, f"deliver:{name}"
        self._run = table.context.ids.uuid()
        self._writer: TableWriter | None = None
        self._identifier = -1

    def position(self) -> str | None:
        """That of the newest snapshot of this name, also if it has expired."""
        context = self._table.refresh().context
        found = Replays(context.files, context.snapshots).progress(self._user, context.snapshots.latest())
        if found is None:
            return None
        self._identifier, text = found
        try:
            return str(json.loads(text or "")["at"])
        except (ValueError, TypeError, KeyError) as error:
            raise FormatError(
                f"table {self._table.name}: expected the position of {self._user!r} in its source, found {text!r:.200}; deliver "
                "under another name",
                kind="source-position",
            ) from error

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows; of one key the later one wins."""
        if self._writer is None:
            self._writer = self._table.refresh().new_writer(self._user)
        self._writer.write(rows, changes=True)

    def commit(self, position: str) -> None:
        """One snapshot, also where there are no rows."""
        writer = self._writer or self._table.refresh().new_writer(self._user)
        text = json.dumps({"at": position, "run": self._run}, separators=(",", ":"))
        effect = Effect(allow_empty=True, operation="DELIVER", properties={SOURCE_POSITION_PROPERTY: text})
        snapshot = writer.commit_as(effect, self._identifier + 1)
        if snapshot is None or snapshot.properties.get(SOURCE_POSITION_PROPERTY) != text:
            raise ConflictError(
                f"another process delivers to {self._table.name} under the same name and has gone on from the same place; nothing "
                "of this commit is visible. Leave it the work, or give this one another name",
                kind="fenced",
            )
        self._identifier += 1
        self._writer = None

    def close(self) -> None:
        """Remove the files of rows that were not committed."""
        if self._writer is not None:
            self._writer.abort()
