"""A Spark data source that does no work: the batches lie in memory, as Arrow has them, and are handed over as they are.

What Spark takes to read it is what no data source in Python can go below: planning, the way from Python to the JVM, and the
JVM's way from Arrow to its own rows.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType
from pyspark_tablestore.typemapping import to_spark

# Spark's workers need not have this package on their path.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def build(batches: Iterable[pa.RecordBatch], directory: Path) -> Path:
    """Write the batches, uncompressed, to a file that is mapped into memory to be read. All have the schema that Spark asks for."""
    path = directory / "idle.arrow"
    writer = None
    with pa.OSFile(str(path), "wb") as sink:
        for batch in batches:
            target = to_arrow_schema(from_arrow_schema(batch.schema), timezone="UTC")
            writer = writer or pa.ipc.new_file(sink, target)
            writer.write_batch(to_spark(batch, target))
        assert writer is not None, "a table with rows"
        writer.close()
    return path


class IdleSource(DataSource):
    """``load(path)`` of what :func:`build` wrote."""

    @classmethod
    def name(cls) -> str:
        return "benchmarks_idle"

    def schema(self) -> StructType:
        return from_arrow_schema(_open(self.options["path"]).schema)

    def reader(self, schema: StructType) -> "IdleReader":
        return IdleReader(self.options["path"])


class IdleReader(DataSourceReader):
    """One task, all batches."""

    def __init__(self, path: str) -> None:
        self._path = path

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        file = _open(self._path)
        return (file.get_batch(number) for number in range(file.num_record_batches))


def _open(path: str) -> pa.ipc.RecordBatchFileReader:
    return pa.ipc.open_file(pa.memory_map(path))
