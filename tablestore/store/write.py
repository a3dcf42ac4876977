"""Rows become data files.

    rows -> WriteBuffer (sorts, folds, routes to partition and bucket) -> one level-0 run a bucket -> RunWriter -> entries

Memory: the buffer's byte budget, plus one sorted copy of it while it is flushed. Nothing here is visible to anybody until a
commit names the files.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tablestore.clock import Clock
from tablestore.errors import InvalidInputError
from tablestore.format.datafile import DataFileMeta, FileSource
from tablestore.format.manifest import ManifestEntry
from tablestore.format.parquet import DataFileWriter, file_schema, open_data_file
from tablestore.format.parquetschema import SEQUENCE_COLUMN
from tablestore.format.paths import data_file_name
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.lsm.buffer import SortedRows, WriteBuffer
from tablestore.store.datapaths import DataPaths, entry_directory, entry_path
from tablestore.store.runwriter import RunTarget, RunWriter
from tablestore.store.settings import TableSettings
from tablestore.types.schema import TableSchema

__all__ = ["DataPaths", "DataWriter", "RunTarget", "RunWriter", "entry_directory", "entry_path", "rewrite_with_sequence"]


class DataWriter:
    """Writes rows of one table as new level-0 files. One writer, one thread.

    ``first_sequence``: the number of the first file; the following ones count on. The rows handed in must already have the
    table's schema (``types.arrow.conform``).
    """

    def __init__(
        self,
        *,
        files: FileStore,
        schema: TableSchema,
        settings: TableSettings,
        clock: Clock,
        ids: Ids,
        first_sequence: int,
    ) -> None:
        self._files, self._schema = files, schema
        self._paths = DataPaths(schema, settings)
        self._target = RunTarget.of(files, schema, settings, clock, ids)
        self._next_sequence = first_sequence
        self._buffer = WriteBuffer(schema, total_buckets=settings.total_buckets, budget_bytes=settings.write_buffer_bytes)
        self._entries: list[ManifestEntry] = []
        self._started_millis: int | None = None
        self._failed = False

    @property
    def created_millis(self) -> int | None:
        """When the first file was begun, None before that."""
        return self._started_millis

    def write(self, rows: pa.Table, kinds: pa.Array | None = None) -> None:
        """Take rows; ``kinds`` (int8 row kinds) None means that all are inserts."""
        if rows.num_rows == 0:
            return
        self._buffer.add(rows, kinds)
        if self._buffer.full:
            self.flush()

    def flush(self) -> None:
        """Write what is buffered as one run per bucket. After a failure the rows are gone and the writer is of no use."""
        if self._failed:
            raise InvalidInputError(
                f"this writer of table {self._files.root_uri} failed to write some of its rows, so it cannot commit the rest; "
                "begin a new writer and write all rows again",
                kind="writer-failed",
            )
        self._failed = True
        for run in self._buffer.flush():
            self._write_run(run)
        self._failed = False

    def finish(self) -> tuple[ManifestEntry, ...]:
        """Flush and hand over the new files, in the order in which they were written, their names durable."""
        self.flush()
        for directory in sorted({entry_directory(self._paths, entry, self._schema) for entry in self._entries}):
            self._files.sync(directory)
        entries, self._entries = tuple(self._entries), []
        return entries

    def abort(self) -> None:
        """Remove what was written and not handed over."""
        for entry in self._entries:
            self._files.delete(entry_path(self._paths, entry, self._schema))
        self._entries = []

    def _write_run(self, run: SortedRows) -> None:
        if run.rows.num_rows == 0:
            return
        if self._started_millis is None:
            self._started_millis = self._target.clock.now_ms()
        with RunWriter(
            self._target,
            partition=run.partition,
            bucket=run.bucket,
            total_buckets=self._target.settings.total_buckets,
            level=0,
            source=FileSource.APPEND,
            numbers=self._take_numbers,
        ) as writer:
            writer.write(run.rows, run.kinds)
            self._entries.extend(writer.close())

    def _take_numbers(self, count: int) -> int:
        first = self._next_sequence
        self._next_sequence += count
        return first


def rewrite_with_sequence(
    files: FileStore,
    paths: DataPaths,
    entry: ManifestEntry,
    number: int,
    *,
    ids: Ids,
    partition: tuple[object, ...],
) -> DataFileMeta:
    """The rows of an own, not yet committed file again, under another sequence number.

    A keyed file carries the number in every row, so it is written anew, row group by row group; in an append table only the
    metadata has it.
    """
    meta = entry.file
    if not paths.schema.is_keyed:
        return replace(meta, min_sequence_number=number, max_sequence_number=number + meta.row_count - 1)
    directory = paths.bucket(partition, entry.bucket)
    name = data_file_name(ids.uuid(), 0, paths.settings.data_file_prefix)
    schema = file_schema(paths.schema, thin=paths.settings.thin)
    with files.open_output(f"{directory}/{name}") as sink:
        writer = DataFileWriter(
            sink,
            schema,
            file_name=name,
            options=paths.settings.parquet,
            unique_columns=frozenset(paths.schema.trimmed_primary_keys),
        )
        for batch in _read_own(files, f"{directory}/{meta.file_name}", meta):
            position = batch.schema.get_field_index(SEQUENCE_COLUMN)
            numbers = pa.array(np.full(batch.num_rows, number, dtype=np.int64))
            table = pa.Table.from_batches([batch]).set_column(position, schema.field(SEQUENCE_COLUMN), numbers)
            writer.write(table.select(schema.names).cast(schema))
        footer = writer.close()
    files.sync(directory)
    return replace(
        meta,
        file_name=name,
        file_size=footer.file_size,
        min_sequence_number=number,
        max_sequence_number=number,
        footer_digest=footer.digest,
    )


def _read_own(files: FileStore, path: str, meta: DataFileMeta) -> Iterator[pa.RecordBatch]:
    source = files.open_input(path)
    try:
        reader = open_data_file(source, file_name=meta.file_name, footer_digest=meta.footer_digest, size=meta.file_size)
        yield from reader.read(None)
    finally:
        source.close()
