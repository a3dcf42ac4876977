"""Streams the rows of a DataFrame to this process, without holding all of them.

    each partition    batches ── messages of Arrow's IPC ── this process, one partition after another

Spark runs the partition that is read and the next one, and keeps what these two give, in the JVM: each at most
``spark.driver.maxResultSize``, else it is an error. A task gives its rows when it ends, so nothing smaller than a partition can be
had. Here there is one batch at a time.
"""

from collections.abc import Callable, Iterator
from contextlib import closing

import pyarrow as pa
from pyspark.sql import DataFrame

from pyspark_tablestore.tasks import map_batches

_COLUMN = "batch"


def streamed_batches(frame: DataFrame, proceed: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """The batches of a DataFrame in the order of its partitions. ``proceed`` is called between them and may raise."""
    messages = map_batches(frame, _messages, f"{_COLUMN} binary").toLocalIterator(prefetchPartitions=True)
    for row in messages:
        proceed()
        with closing(pa.ipc.open_stream(row[_COLUMN])) as reader:
            yield from reader


def _messages(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch({_COLUMN: pa.array([sink.getvalue().to_pybytes()], pa.binary())})
