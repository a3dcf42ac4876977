"""Defines a query that was not run yet. Each reading resolves its names and snapshots anew."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore.environment.execution import execute
from tablestore.environment.queryargument import QueryText, insert_of, query_text
from tablestore.environment.result import Result
from tablestore.environment.session.session import Session
from tablestore.errors import TablestoreError
from tablestore.htmltext import html_element
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements import rows
from tablestore.table.read.scan import ArrowSource

if TYPE_CHECKING:
    from tablestore.environment.pipelines.createorreplace import CreateOrReplaceTable
    from tablestore.environment.pipelines.pipeline import TablePipeline


class Query(ArrowSource):
    """A query that was not run yet, made by ``env.sql_query(text)`` and ``env.from_path(path)``: an Arrow stream with the
    conversions of a scan."""

    def __init__(self, session: Session, query: QueryText) -> None:
        self._session, self._query = session, query

    @property
    def text(self) -> str:
        """The query as it was written."""
        return self._query.fragment.text

    @property
    def parameters(self) -> Parameters:
        """The values of its ``?`` or ``:name``."""
        return self._query.parameters

    @property
    def query_text(self) -> QueryText:
        """The query, as statements take it."""
        return self._query

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._run().schema

    def execute(self) -> Result:
        """Runs it on the tables as they are now."""
        return self._run()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed."""
        return self._run().to_reader()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, streamed."""
        yield from self.to_reader()

    def show(self, limit: int = 20) -> None:
        """Writes the first rows to standard output as a table."""
        self._run().show(limit)

    def explain(self) -> str:
        """The plan of the query, with what it reads of each managed table."""
        from tablestore.environment.rows.queries import explain_query

        return explain_query(self._session, self._query.fragment, self._query.source, self._query.parameters)

    def insert_into(self, path: str, *, overwrite: bool = False) -> "TablePipeline":
        """A pipeline that writes the rows into a table, columns by their place, as INSERT does. Nothing happens yet."""
        from tablestore.environment.pipelines.inserts import plan_one
        from tablestore.environment.pipelines.pipeline import TablePipeline

        statement = insert_of(path, self._query, overwrite=overwrite)
        return TablePipeline(self._session, lambda: plan_one(self._session, statement, self._query.source, self.parameters))

    def save_as(self, path: str) -> "CreateOrReplaceTable":
        """Says where a new table with the rows is to be: ``query.save_as("t").option("bucket", "4").create().execute()``."""
        from tablestore.environment.pipelines.createorreplace import CreateOrReplaceTable

        return CreateOrReplaceTable(self._session, path, self._query)

    def _run(self) -> Result:
        statement = rows.Query(query=self._query.fragment)
        return execute(self._session, statement, self._query.source, self._query.parameters)

    def __repr__(self) -> str:
        return f"Query({self.text!r:.200})"

    def _repr_html_(self) -> str:
        """Its text and, as :meth:`show` runs it, the first rows; where it fails, why."""
        text = html_element("pre", None, f"{self.text:.2000}")
        try:
            result = self._run()
            return text + result._repr_html_()
        except TablestoreError as error:
            return text + html_element("pre", None, str(error))


def as_query_text(query: object, what: str, dialect: SqlDialect = SqlDialect.SPARK) -> QueryText:
    """The query that is given as an object or as its text; ``what`` names the call in errors. Raises InvalidInputError."""
    return query.query_text if isinstance(query, Query) else query_text(query, what=what, dialect=dialect)
