"""Builds a table from a query: ``query.save_as("t").option("bucket", "4").create()``.

Nothing happens before ``create``. The options are put together then, and the pipeline that it gives writes the rows.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tablestore.environment.pipelines.creation import pipeline_of
from tablestore.environment.pipelines.pipeline import TablePipeline
from tablestore.environment.queryargument import QueryText, path_of
from tablestore.environment.session.session import Session
from tablestore.errors import InvalidInputError
from tablestore.sql.statements.definition import CreateTable


class CreateOrReplaceTable:
    """A table to be made; each call changes it and gives it back."""

    def __init__(self, session: Session, path: str, query: QueryText) -> None:
        self._session, self._query = session, query
        self._statement = CreateTable(path=path_of(path), query=query.fragment)

    def option(self, key: str, value: Any) -> "CreateOrReplaceTable":
        """Gives the table an option; the last value of a key counts. Values are texts, numbers or booleans."""
        if not isinstance(key, str) or not isinstance(value, str | int | float):
            raise InvalidInputError(f"expected an option as two texts, found {key!r:.100}: {value!r:.100}", kind="invalid-option")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return self._with(options={**self._statement.options, key: text})

    def options(self, options: Mapping[str, Any]) -> "CreateOrReplaceTable":
        """Gives it several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def primary_key(self, *columns: str) -> "CreateOrReplaceTable":
        """Makes columns of the query its key."""
        return self._with(primary_key=columns)

    def partitioned_by(self, *columns: str) -> "CreateOrReplaceTable":
        """Partitions it by columns of the query."""
        return self._with(partitioned_by=columns)

    def comment(self, text: str) -> "CreateOrReplaceTable":
        """Describes it."""
        return self._with(comment=text)

    def create(self, *, ignore_if_exists: bool = False) -> TablePipeline:
        """Creates the table now, and gives the pipeline that writes the rows.

        With ``table.ctas.atomicity-enabled`` the table is checked now, and created when the pipeline runs. ``ignore_if_exists``:
        a table that is there stays as it is, and the pipeline does nothing. Raises AlreadyExistsError, InvalidInputError,
        UnsupportedError.
        """
        statement = replace(self._statement, if_not_exists=ignore_if_exists)
        return pipeline_of(self._session, statement, self._query.source, self._query.parameters)

    def replace(self) -> TablePipeline:
        """Gives the pipeline that replaces the table of this name: the old one stays readable until the new one is whole.

        Raises NotFoundError if there is none, InvalidInputError, UnsupportedError.
        """
        return self._replacing(must_exist=True)

    def create_or_replace(self) -> TablePipeline:
        """Replaces as :meth:`replace` does, but creates a table that is not there."""
        return self._replacing(must_exist=False)

    def _replacing(self, *, must_exist: bool) -> TablePipeline:
        statement = replace(self._statement, replace=True, must_exist=must_exist)
        return pipeline_of(self._session, statement, self._query.source, self._query.parameters)

    def _with(self, **changed: Any) -> "CreateOrReplaceTable":
        self._statement = replace(self._statement, **changed)
        return self
