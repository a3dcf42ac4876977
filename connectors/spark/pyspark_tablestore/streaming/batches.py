"""Writes the batches of ``df.writeStream.foreachBatch(foreach_batch_writer(table))`` as the sink does, in the user's own process.

For update mode, which Spark does not let a sink in Python have: the rows that changed are upserted. And for ``cluster``, which
moves the rows of a batch together by bucket. The log is published as Spark tasks where the table has several slots.
"""

import re
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from pyspark_tablestore.publish import spark_log
from pyspark_tablestore.relation import write_messages
from pyspark_tablestore.sourceoptions import parse_options, placed
from pyspark_tablestore.streaming.sink import QUERY_ID
from pyspark_tablestore.streaming.streamoptions import place_of
from pyspark_tablestore.writer import prepare_rows
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.streambatch import StreamBatch, commit_batch, has_landed, no_checkpoint
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.table.table import Table

# The folder that Spark makes for a query without a checkpoint, and removes with it.
_PASSING_FOLDER = re.compile(r"/temporary-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/?")


class BatchWriter:
    """Writes the batches of one query into one table: ``writer(df, batch_id)``. Its handle stays open, and with it the log."""

    def __init__(
        self,
        table: Table,
        spec: TableSpec,
        *,
        overwrite: bool = False,
        cluster: bool = False,
        missing_columns: str = MissingColumns.REFUSE,
        adopts: bool = False,
    ) -> None:
        self._table, self._spec = table, spec
        self._overwrite, self._cluster, self._missing_columns, self._adopts = overwrite, cluster, missing_columns, adopts
        self._failure: Exception | None = None

    @property
    def failure(self) -> Exception | None:
        """The error that the last batch raised: Spark makes text of it."""
        return self._failure

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Writes a batch as one snapshot, unless that has been done. Raises tablestore's errors, Spark's for tasks that failed."""
        try:
            self._write(df, batch_id)
        except Exception as error:
            self._failure = error
            raise

    def _write(self, df: DataFrame, batch_id: int) -> None:
        session = df.sparkSession
        batch = self._batch(session, batch_id)
        # The newest schema; raises if another table has taken its place.
        table = self._table = self._table.refresh()
        if has_landed(table, batch):
            # The rows are computed all the same: a query with state keeps it in step with its batches.
            df.write.format("noop").mode("overwrite").save()
            messages = []
        else:
            job = prepare_rows(table, self._spec, df.schema, missing_columns=self._missing_columns, overwrite=self._overwrite)
            messages = write_messages(df, job, table, cluster=self._cluster)
        # Of a batch that has landed: what was left to do behind its commit, such as publishing.
        commit_batch(table, messages, batch, overwrite=self._overwrite, log=spark_log(session, self._spec, table))

    def _batch(self, session: SparkSession, batch_id: int) -> StreamBatch:
        query_id = None if is_remote() else session.sparkContext.getLocalProperty(QUERY_ID)
        if query_id is None:
            raise UnsupportedError(
                f"writing to {self._table.name}: expected a batch of a streaming query in a session of this process (not Spark "
                "Connect): hand the writer to df.writeStream.foreachBatch(writer)",
                kind="not-a-stream",
            )
        query = _running(session).get(_uuid(session, query_id))
        # Spark does not always say it.
        checkpoint, run = (None, None) if query is None else (place_of(query.resolvedCheckpointRoot()), str(query.runId()))
        if checkpoint is not None and _PASSING_FOLDER.search(checkpoint):
            raise no_checkpoint(self._table.name, 'option("checkpointLocation", path)')
        return StreamBatch(query_id=query_id, batch_id=batch_id, checkpoint=checkpoint, run=run, adopts=self._adopts)


def foreach_batch_writer(
    table: str,
    *,
    warehouse: str | None = None,
    mode: str = "append",
    cluster: bool = False,
    missing_columns: str | None = None,
    adopt_checkpoint: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> BatchWriter:
    """A function for ``df.writeStream.foreachBatch`` that writes every batch as one snapshot, once; for any output mode.

    ``table`` and ``cluster`` as for ``write``. ``mode``: ``append`` (upsert in a keyed table, changes with ``_row_kind``), or
    ``overwrite`` for the rows of complete mode. ``adopt_checkpoint`` as the option of the sink. Raises tablestore's errors.
    """
    if mode not in ("append", "overwrite"):
        raise InvalidInputError(f"expected the mode append or overwrite, found {mode!r}")
    handle, spec = parse_options(placed(table, warehouse, storage_options)).open()
    return BatchWriter(
        handle,
        spec,
        overwrite=mode == "overwrite",
        cluster=cluster,
        missing_columns=MissingColumns.of(missing_columns or MissingColumns.REFUSE),
        adopts=adopt_checkpoint,
    )


def running_checkpoints(session: SparkSession) -> frozenset[str]:
    """The places where the running queries of this Spark keep their progress."""
    # One that ends while this looks is None.
    queries = [query for query in _running(session).values() if query is not None]
    return frozenset(place_of(query.resolvedCheckpointRoot()) for query in queries)


def _uuid(session: SparkSession, text: str) -> Any:
    java: Any = session
    return java._jvm.java.util.UUID.fromString(text)


def _running(session: SparkSession) -> Any:
    # Spark's interface for Python knows the queries of one session only, and a batch has a session of its own.
    java: Any = session
    return java._jsparkSession.sharedState().activeStreamingQueries()
