"""Reads the rows of a query whose tables may be replaced before they are read.

    planned ── read ── a table was replaced or dropped meanwhile ── planned anew ── read

Planning and reading are each begun at most ``MOST_ATTEMPTS`` times: whoever replaces a table again and again gets an error, not a
query without end. Once rows were handed out, the query cannot begin again: the error says then which table was replaced.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa

from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryRelation, QueryRows
from tablestore.errors import ConflictError, NotFoundError, TablestoreError
from tablestore.store.schemas import TABLE_REPLACED
from tablestore.table.table import Table

MOST_ATTEMPTS = 5
_Planned = tuple[BoundQuery, QueryRows]


class FreshRows:
    """The rows of the query that ``bind`` gives, made ``ready`` by an engine."""

    def __init__(self, bind: Callable[[], BoundQuery], ready: Callable[[BoundQuery], QueryRows]) -> None:
        self._bind, self._ready = bind, ready
        self._planned = self._plan()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._planned[1].schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed. Raises ConflictError if a table was replaced after the first of them, or has other columns now."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _plan(self) -> _Planned:
        for _ in range(MOST_ATTEMPTS - 1):
            try:
                return self._planned_once()
            except ConflictError as error:
                if error.kind != TABLE_REPLACED:
                    raise
        return self._planned_once()

    def _planned_once(self) -> _Planned:
        query = self._bind()
        try:
            return query, self._ready(query)
        except TablestoreError as error:
            if (gone := no_longer_there(query, error)) is None or gone is error:
                raise
            raise gone from error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        schema, begun = self.schema, False
        replaced: TablestoreError | None = None
        for left in reversed(range(MOST_ATTEMPTS)):
            try:
                with self._planned[1].to_reader() as reader:
                    for batch in reader:
                        if (promised := _as_promised(batch, schema)) is None:
                            break
                        begun = True
                        yield promised
                    else:
                        return
            except TablestoreError as error:
                gone = no_longer_there(self._planned[0], error)
                if gone is None:
                    raise
                replaced = gone
                if not begun and left:
                    self._planned = self._plan()
                if begun or not left or not _same_columns(self.schema, schema):
                    raise gone from (None if gone is error else error)
            else:
                assert replaced is not None, "rows of the table that was planned first are as promised"
                raise replaced


def _same_columns(schema: pa.Schema, before: pa.Schema) -> bool:
    """True if names and types are equal. Whether a column can be NULL depends on how its files are read, too."""
    return bool(schema.names == before.names and schema.types == before.types)


def _as_promised(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch | None:
    """The batch with the schema that its reader knows; None if it has NULL where that has none."""
    if batch.schema == schema:
        return batch
    if any(column.null_count and not field.nullable for field, column in zip(schema, batch.columns, strict=True)):
        return None
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def no_longer_there(query: BoundQuery, error: TablestoreError) -> TablestoreError | None:
    """The error of the first table of a query that was replaced or dropped since it was bound; None if all are there.

    ``error``: what the query failed with, which may be just that.
    """
    if error.kind == TABLE_REPLACED:
        return error
    for relation in query.relations:
        if isinstance(relation, QueryRelation) and (gone := no_longer_there(relation.query, error)) is not None:
            return gone
        if isinstance(relation, ManagedRelation) and (gone := table_gone(relation.table, error)) is not None:
            return gone
    return None


def table_gone(table: Table, error: TablestoreError) -> TablestoreError | None:
    """The error of a table that was replaced or dropped since it was opened, as :func:`no_longer_there`."""
    if error.kind == TABLE_REPLACED:
        return error
    try:
        table.context.still_there()
    except (ConflictError, NotFoundError) as gone:
        return gone
    return None
