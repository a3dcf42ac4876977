"""Writes changes into files of a folder, in order:

    part-00000000000000000007-5b1c….jsonl     the rows of a commit, whole or not there
    _tablestore/00000000000000000007.json     {"at": position, "run": "5b1c…", "empty": false}: where they end, and who wrote them

The second file comes first, and only one process can make that of a number. The commit is the first one: a number without it has
not happened, and the next process removes what there is of it. Memory: the rows of a commit, encoded.
"""

import json
from io import BytesIO
from typing import Any, Literal

import pyarrow as pa

from tablestore.errors import ConflictError, FormatError, InvalidInputError
from tablestore.format.limits import parse_json_bounded
from tablestore.format.sealed import JsonObject
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.json.jsontext import concat, content, rows_to_json
from tablestore.names import check_name, is_number

FileFormat = Literal["json", "parquet"]

_POSITIONS = "_tablestore"
_SUFFIXES = {"json": "jsonl", "parquet": "parquet"}


class FileSink:
    """Writes to a folder, which holds the changes of one table and nothing else."""

    def __init__(self, files: FileStore, file_format: FileFormat, ids: Ids) -> None:
        self._files, self._format, self._run = files, file_format, ids.uuid()
        self._number = 0
        self._rows: list[pa.RecordBatch] = []

    def position(self) -> str | None:
        """The position of the newest file."""
        for name in sorted(self._files.names(_POSITIONS), reverse=True):
            content = self._read(name)
            number = int(name.removesuffix(".json"))
            parts = (_part(number, content["run"], suffix) for suffix in _SUFFIXES.values())
            if content["empty"] or any(self._files.exists(part) for part in parts):
                self._number = number
                return str(content["at"])
            self._files.delete(f"{_POSITIONS}/{name}")
        return None

    def write(self, rows: pa.RecordBatch) -> None:
        """Keeps rows for the next file."""
        self._rows.append(rows)

    def commit(self, position: str) -> None:
        """Writes one file; none where there are no rows."""
        number = self._number + 1
        data = self._encoded(pa.Table.from_batches(self._rows)) if self._rows else None
        position_bytes = json.dumps({"at": position, "run": self._run, "empty": data is None}).encode()
        if not self._files.publish_if_absent(f"{_POSITIONS}/{number:020d}.json", position_bytes):
            raise ConflictError(
                f"another process delivers to {self._files.root_uri} and has gone on from the same place; leave it the work, or "
                "name another folder",
                kind="fenced",
            )
        if data is not None:
            self._files.publish_if_absent(_part(number, self._run, _SUFFIXES[self._format]), data)
        self._number, self._rows = number, []

    def close(self) -> None:
        """Forgets the rows that were not committed."""
        self._rows = []

    def _encoded(self, rows: pa.Table) -> bytes:
        if self._format == "json":
            batches = rows.combine_chunks().to_batches()
            return b"".join(content(concat(rows_to_json(batch.columns, batch.schema.names), "\n")).tobytes() for batch in batches)
        from pyarrow.parquet import write_table

        out = BytesIO()
        write_table(rows, out, compression="zstd")
        return out.getvalue()

    def _read(self, name: str) -> dict[str, Any]:
        try:
            content = JsonObject(parse_json_bounded(self._files.read(f"{_POSITIONS}/{name}"), name), name)
            if not is_number(name.removesuffix(".json")):
                content.refuse("name", "a number", name)
            fields = {"at": content.text("at"), "run": check_name(content.text("run"), "run")}
            return {**fields, "empty": content.content.get("empty") is True}
        except (FormatError, InvalidInputError) as error:
            raise FormatError(
                f"{self._files.root_uri}/{_POSITIONS}/{name}: expected the position behind a file of changes; name a folder that "
                "holds nothing else",
                kind="source-position",
            ) from error


def _part(number: int, run: str, suffix: str) -> str:
    return f"part-{number:020d}-{run}.{suffix}"
