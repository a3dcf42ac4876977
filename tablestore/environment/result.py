"""What a statement gives: rows, the snapshot that it published, or nothing but that it is done.

    kind        rows                                    snapshot
    rows        those of the query, run at each use     None
    snapshot    one row: snapshot_id                    the snapshot; None if there was nothing to publish
    nothing     one row: result = OK                    None
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol

import pyarrow as pa

from tablestore.environment.texttable import text_table
from tablestore.format.snapshot import Snapshot
from tablestore.table.read.scan import ArrowSource

ResultKind = Literal["rows", "snapshot", "nothing"]


class Rows(Protocol):
    """Rows that can be read several times."""

    @property
    def schema(self) -> pa.Schema: ...

    def to_reader(self) -> pa.RecordBatchReader: ...


class Result(ArrowSource):
    """The result of one statement: an Arrow stream with the conversions of a scan."""

    def __init__(self, rows: Rows | pa.Table, *, kind: ResultKind = "rows", snapshot: Snapshot | None = None) -> None:
        self._rows, self._kind, self._snapshot = rows, kind, snapshot

    @property
    def kind(self) -> ResultKind:
        """``rows``, ``snapshot`` or ``nothing``."""
        return self._kind

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that the statement published."""
        return self._snapshot

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._rows.schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed."""
        return self._rows.to_reader()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, streamed."""
        yield from self.to_reader()

    def show(self, limit: int = 20) -> None:
        """Write the first rows to standard output as a table."""
        sys.stdout.write(text_table(self.to_reader(), limit) + "\n")

    def __repr__(self) -> str:
        return f"Result({self._kind!r}, columns={self.schema.names})"


def done() -> Result:
    """The result of a statement that only does something."""
    return Result(pa.table({"result": pa.array(["OK"], pa.string())}), kind="nothing")


def landed(snapshot: Snapshot | None) -> Result:
    """The result of a statement that changes rows."""
    ids = pa.array([snapshot.id if snapshot is not None else None], pa.int64())
    return Result(pa.table({"snapshot_id": ids}), kind="snapshot", snapshot=snapshot)


def listed(column: str, names: Iterable[str]) -> Result:
    """Names, a row each."""
    return Result(pa.table({column: pa.array(list(names), pa.string())}))


def records(schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> Result:
    """Rows that were made one by one: listings are short."""
    return Result(pa.Table.from_pylist(list(rows), schema=schema))


def pairs(found: Iterable[tuple[str, str | None]]) -> Result:
    """Keys and their values, a row each."""
    schema = pa.schema([("key", pa.string()), ("value", pa.string())])
    return records(schema, [{"key": key, "value": value} for key, value in found])
