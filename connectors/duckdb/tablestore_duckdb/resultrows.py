"""The rows of a query that DuckDB is ready to run, and those of a statement that it ran."""

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from threading import get_ident

import duckdb
import pyarrow as pa

from tablestore.lazy import lazy
from tablestore_duckdb.prepared import PreparedQuery
from tablestore_duckdb.rowtypes import cast, check_finite, in_days, plain_rows_out, rows_out, with_durations
from tablestore_duckdb.sessions import QueryRun, Sessions


class DuckDBRows:
    """The rows of a query. Each reading runs it again, streamed: memory does not grow with the number of rows that come out.

    A reading that is not at its end keeps its connection busy; others run on connections of their own until then.
    """

    def __init__(self, sessions: Sessions, prepared: PreparedQuery) -> None:
        self._sessions, self._prepared = sessions, prepared

    @lazy
    def schema(self) -> pa.Schema:
        """Names and types of the columns, from a batch without rows."""
        with self._sessions.run(self._prepared) as run:
            return _columns(run.relation(), self._prepared)

    @property
    def native(self) -> duckdb.DuckDBPyRelation:
        """The query as a relation of DuckDB's, usable until the engine is closed."""
        return self._sessions.native(self._prepared)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed."""
        return pa.RecordBatchReader.from_batches(self.schema, islice(self._batches(get_ident(), self.schema), 1, None))

    streamed = to_reader

    def begun(self) -> pa.RecordBatchReader:
        """The rows, streamed. They keep a connection busy from now on, which finds their columns and runs them at one go."""
        batches = self._batches(get_ident())
        return pa.RecordBatchReader.from_batches(next(batches).schema, batches)

    def _batches(self, thread: int, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
        """The batches of a run of its own."""
        with self._sessions.run(self._prepared, thread) as run:
            yield from run_batches(self._sessions, run, schema)


def run_batches(sessions: Sessions, run: QueryRun, schema: pa.Schema | None = None) -> Generator[pa.RecordBatch, None, None]:
    """A batch without rows, which has the columns, and those with the rows of a run's query. ``schema``: the columns, if they are
    known."""
    sessions.check_files(run)
    relation = in_days(run.relation()) if run.prepared.has_durations else run.relation()
    schema = _columns(relation, run.prepared) if schema is None else schema
    # Not from lists of Python: Arrow would look for pandas first, and load it.
    yield pa.RecordBatch.from_arrays([pa.nulls(0, column.type) for column in schema], schema=schema)
    with closing(relation.to_arrow_reader(sessions.batch_rows)) as reader:
        while True:
            run.check()
            batch = next(reader, None)
            if batch is None:
                return
            if not run.prepared.has_durations:
                check_finite(batch)
            yield cast(batch, schema)


def _columns(relation: duckdb.DuckDBPyRelation, prepared: PreparedQuery) -> pa.Schema:
    """The columns of a query; DuckDB names one after its text, in which tables have the names of views."""
    schema = schema_of(relation)
    if prepared.has_durations:
        schema = with_durations(schema)
    names = [prepared.column_name(name) for name in schema.names]
    return schema if names == schema.names else pa.schema([one.with_name(name) for one, name in zip(schema, names, strict=True)])


class KeptRows:
    """The rows of a statement that has run; each reading gives the same ones."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self.schema = schema_of(relation)
        rows = relation.to_arrow_table()
        self.native = pa.Table.from_batches([cast(batch, self.schema) for batch in rows.to_batches()], self.schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows."""
        return self.native.to_reader()

    streamed = to_reader


def schema_of(relation: duckdb.DuckDBPyRelation) -> pa.Schema:
    """Names and types of a relation's columns as they come out."""
    types = [str(one) for one in relation.types]
    return plain_rows_out(relation.columns, types) or rows_out(relation.limit(0).to_arrow_table().schema, types)
