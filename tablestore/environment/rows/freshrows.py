"""The rows of a query whose tables may be replaced before they are read.

    planned ── read ── a table was replaced or dropped meanwhile ── planned once more ── read

Once rows were handed out, the query cannot begin again: the error says then which table was replaced.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa

from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryRelation, QueryRows
from tablestore.errors import ConflictError, NotFoundError, TablestoreError
from tablestore.store.schemas import TABLE_REPLACED


class FreshRows:
    """The rows of the query that ``bind`` gives, made ``ready`` by an engine."""

    def __init__(self, bind: Callable[[], BoundQuery], ready: Callable[[BoundQuery], QueryRows]) -> None:
        self._bind, self._ready = bind, ready
        try:
            self._planned = self._plan()
        except ConflictError as error:
            if error.kind != TABLE_REPLACED:
                raise
            self._planned = self._plan()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._planned[1].schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed. Raises ConflictError if a table was replaced after the first of them, or has other columns now."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(self._planned[1].to_reader()))

    def _plan(self) -> tuple[BoundQuery, QueryRows]:
        query = self._bind()
        try:
            return query, self._ready(query)
        except TablestoreError as error:
            if (gone := no_longer_there(query, error)) is None or gone is error:
                raise
            raise gone from error

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        begun = False
        try:
            with reader:
                for batch in reader:
                    begun = True
                    yield batch
            return
        except TablestoreError as error:
            gone = no_longer_there(self._planned[0], error)
            if gone is None:
                raise
            schema = self.schema
            if not begun:
                self._planned = self._plan()
            if begun or self.schema != schema:
                raise gone from (None if gone is error else error)
        with self._planned[1].to_reader() as again:
            yield from again


def no_longer_there(query: BoundQuery, error: TablestoreError) -> TablestoreError | None:
    """The error of the first table of a query that was replaced or dropped since it was bound; None if all are there.

    ``error``: what the query failed with, which may be just that.
    """
    if error.kind == TABLE_REPLACED:
        return error
    for relation in query.relations:
        if isinstance(relation, QueryRelation) and (gone := no_longer_there(relation.query, error)) is not None:
            return gone
        if isinstance(relation, ManagedRelation):
            try:
                relation.table.context.still_there()
            except (ConflictError, NotFoundError) as gone:
                return gone
    return None
