"""Reads a table as a stream of Spark: ``spark.readStream.format("tablestore")``.

The first batches hold the rows of the table, those after them every change; or only changes. Without ``row-kinds`` a stream holds
the rows of an append table, and the new rows (``+I``, ``+U``) of a keyed one; with it all changes, the column ``_row_kind`` first,
which a sink of ours applies. All changes of a key that a batch has are in one task, in order.

Where the code runs: offsets, ``partitions`` and ``commit`` in one process beside the driver for as long as the query runs, ``read``
on executors. Only options and tasks cross. Which rows a batch has is decided by :mod:`tablestore.distributed.stream`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_tablestore.reader import pin_options, read_ahead
from pyspark_tablestore.sourceoptions import parse_options
from pyspark_tablestore.streaming.sourcerequest import asked_fields, stream_request
from pyspark_tablestore.systemtables import MetadataPin
from pyspark_tablestore.tasks import plain_errors, usable_cores
from pyspark_tablestore.typemapping import arrow_schema, check_asked, to_spark
from tablestore.distributed.read import ReadPin
from tablestore.distributed.stream.streamoffset import START
from tablestore.distributed.stream.streamplanner import StreamPlanner
from tablestore.distributed.stream.streamrequest import MOST_FILES, StreamRequest
from tablestore.distributed.stream.streamtask import StreamTask, read_stream_task
from tablestore.errors import UnsupportedError
from tablestore.types.rowkind import ROW_KIND_COLUMN

Offset = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans beside the driver, reads on executors, to which it travels without its planner."""

    def __init__(self, pin: ReadPin, request: StreamRequest, columns: tuple[str, ...], target: pa.Schema) -> None:
        self._pin, self._request, self._columns, self._target = pin, request, columns, target
        self._planner: StreamPlanner | None = None

    def initialOffset(self) -> Offset:
        """The same for every stream: where it really begins is decided, and logged, with the first batch."""
        return dict(START.to_json())

    def prepareForTriggerAvailableNow(self) -> None:
        """Lets the query end with what is there now."""
        with plain_errors():
            self._planned().stop_at_newest()

    def getDefaultReadLimit(self) -> ReadLimit:
        """One of the limits asked for; :meth:`latestOffset` keeps them all."""
        limits = self._request.limits
        if limits.rows is not None:
            return ReadMaxRows(limits.rows)
        return ReadMaxFiles(limits.files or MOST_FILES) if limits.size_bytes is None else ReadMaxBytes(limits.size_bytes)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The offset at which the next batch ends."""
        with plain_errors():
            return self._planned().latest(start, None if isinstance(limit, ReadAllAvailable) else self._request.limits)

    def reportLatestOffset(self) -> Offset | None:
        """The offset that Spark reports as the query's progress: the newest snapshot, and how far behind it is."""
        with plain_errors():
            return self._planned().newest()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The tasks of a batch."""
        with plain_errors():
            return [InputPartition(task.to_bytes()) for task in self._planned().tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A task's rows in Spark's layout."""
        # Spark makes a task without a value where there is none, to have something to run.
        return iter(()) if partition.value is None else read_ahead(self._rows(partition.value))

    def commit(self, end: Offset) -> None:
        """Notes that Spark asks for nothing before this offset any more."""
        with plain_errors():
            self._planned().commit(end)

    def _rows(self, task: bytes) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            for batch in read_stream_task(self._pin.spec, StreamTask.from_bytes(task)):
                yield to_spark(batch.select(list(self._columns)), self._target)

    def _planned(self) -> StreamPlanner:
        if self._planner is None:
            self._planner = StreamPlanner(self._pin.spec, self._request, schema_id=self._pin.schema_id)
        return self._planner

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planner": None}


def make_stream_reader(options: Mapping[str, str], schema: StructType, pin: ReadPin | MetadataPin | None) -> StreamReader:
    """A reader of ``schema``, of the columns that ``pin`` fixed. Opens nothing that lasts: Spark makes several."""
    with plain_errors():
        parsed = parse_options(options)
        pin = pin or pin_options(parsed)
        if isinstance(pin, MetadataPin) or pin.read_optimised:
            raise UnsupportedError(
                f"system tables of {pin.spec.location} are computed for one query and are no streams; read the table itself, with "
                "row-kinds = true for its changes",
                kind="no-stream",
            )
        request = stream_request(parsed, parallelism=usable_cores())
        columns = check_asked(schema, fields := asked_fields(pin, parsed))
        if set(columns) < {field.name for field in fields}:
            request = replace(request, columns=tuple(name for name in columns if name != ROW_KIND_COLUMN))
        return StreamReader(pin, request, columns, arrow_schema(schema))
