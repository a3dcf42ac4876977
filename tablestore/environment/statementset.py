"""Collects several INSERTs that run as one job: ``env.create_statement_set()``, what STATEMENT SET is in SQL."""

from collections.abc import Callable
from typing import Any

from tablestore.environment.jobs import Job
from tablestore.environment.pipelines.inserts import OneInsert, SeveralInserts, plan_all, plan_one
from tablestore.environment.pipelines.pipeline import TablePipeline
from tablestore.environment.pipelines.streams import StreamInsert
from tablestore.environment.query import Query, as_query_text
from tablestore.environment.queryargument import insert_of
from tablestore.environment.result import Result
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.statements.rows import Insert


class StatementSet(TablePipeline):
    """INSERTs in the order in which they were added; running them takes them out of the set.

    All read their tables as these are at the beginning. They run one after another, and each lands as a snapshot of its own. In
    streaming mode they run beside one another, in one job.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session, self._planned)
        self._plans: list[Callable[[], OneInsert | StreamInsert]] = []

    def add_insert_sql(self, text: str, *args: Any, **params: Any) -> "StatementSet":
        """Adds an INSERT by its text, with the values of its parameters, and returns the set. Raises InvalidInputError for what is
        none."""
        statement = parse_statement(text, dialect=self._session.settings.dialect)
        if not isinstance(statement, Insert):
            raise InvalidInputError("add_insert_sql: expected an INSERT; execute_sql runs other statements", kind="not-an-insert")
        return self._add(statement, Source(text), params or args)

    def add_insert(self, path: str, query: Query | str, *, overwrite: bool = False) -> "StatementSet":
        """Adds an INSERT of the rows of a query, and returns the set. Raises InvalidInputError."""
        query_text = as_query_text(query, "add_insert", self._session.settings.dialect)
        return self._add(insert_of(path, query_text, overwrite=overwrite), query_text.source, query_text.parameters)

    def execute(self) -> Result:
        """Runs them, and waits until all have landed: a row for each."""
        result = super().execute()
        self._plans.clear()
        return result

    def execute_async(self) -> Job[Result]:
        """Runs them in a thread of their own."""
        job = super().execute_async()
        self._plans.clear()
        return job

    def _add(self, statement: Insert, source: Source, parameters: Parameters) -> "StatementSet":
        self._plans.append(lambda: plan_one(self._session, statement, source, parameters))
        return self

    def _planned(self) -> SeveralInserts | StreamInsert:
        if not self._plans:
            raise InvalidInputError("the statement set is empty: add_insert or add_insert_sql first", kind="empty-statement-set")
        return plan_all(self._plans)
