"""A query that was not run yet. Each reading resolves its names and snapshots anew."""

from collections.abc import Callable, Iterator

import pyarrow as pa

from tablestore.environment.result import Result
from tablestore.sql.query.parameters import Parameters
from tablestore.table.read.scan import ArrowSource


class Query(ArrowSource):
    """Made by ``env.sql_query(text)`` and ``env.from_path(path)``: an Arrow stream with the conversions of a scan."""

    def __init__(self, run: Callable[[], Result], explain: Callable[[], str], text: str, parameters: Parameters = ()) -> None:
        self._run, self._explain, self._text, self._parameters = run, explain, text, parameters

    @property
    def text(self) -> str:
        """The query as it was written."""
        return self._text

    @property
    def has_parameters(self) -> bool:
        """Whether values were given for its ``?`` or ``:name``."""
        return bool(self._parameters)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._run().schema

    def execute(self) -> Result:
        """Run it on the tables as they are now."""
        return self._run()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed."""
        return self._run().to_reader()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, streamed."""
        yield from self.to_reader()

    def show(self, limit: int = 20) -> None:
        """Write the first rows to standard output as a table."""
        self._run().show(limit)

    def explain(self) -> str:
        """How it would run, with what it reads of each managed table."""
        return self._explain()

    def __repr__(self) -> str:
        return f"Query({self._text!r:.200})"
