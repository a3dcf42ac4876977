"""Rows become data files.

    rows -> WriteBuffer (sorts, folds, routes to partition and bucket) -> one level-0 run a bucket -> Parquet files -> entries

Memory: the buffer's byte budget, plus one sorted copy of it while it is flushed. Statistics are exact and taken from the rows as
they are written. Nothing here is visible to anybody until a commit names the files.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.clock import Clock
from tablestore.errors import InvalidInputError
from tablestore.format.binaryrow import EMPTY_ROW, decode_row, encode_row
from tablestore.format.datafile import DataFileMeta, FileSource
from tablestore.format.manifest import EntryKind, ManifestEntry
from tablestore.format.parquet import DataFileWriter, FileFooter, file_schema, open_data_file, with_system_columns
from tablestore.format.parquetschema import SEQUENCE_COLUMN
from tablestore.format.paths import bucket_dir, data_file_name, partition_dir
from tablestore.format.stats import EMPTY_STATS, ColumnStats, SimpleStats, collect_stats, encode_stats, python_value
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.lsm.buffer import SortedRows, WriteBuffer
from tablestore.store.settings import TableSettings
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True)
class DataPaths:
    """Where the data files of a table lie."""

    schema: TableSchema
    settings: TableSettings

    def bucket(self, partition: tuple[object, ...], bucket: int) -> str:
        """The directory of one bucket, relative to the table."""
        fields = self.schema.partition_fields
        directory = partition_dir(
            self.schema.partition_keys,
            [field.type for field in fields],
            partition,
            self.settings.default_partition,
            self.settings.legacy_partition_names,
        )
        path = bucket_dir(directory, bucket)
        return f"{self.settings.data_directory}/{path}" if self.settings.data_directory else path


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
        self._files, self._schema, self._settings = files, schema, settings
        self._clock, self._ids = clock, ids
        self._paths = DataPaths(schema, settings)
        self._next_sequence = first_sequence
        self._buffer = WriteBuffer(schema, total_buckets=settings.total_buckets, budget_bytes=settings.write_buffer_bytes)
        self._entries: list[ManifestEntry] = []
        self._file_schema = file_schema(schema, thin=settings.thin)
        self._started_millis: int | None = None
        self._uuid = ids.uuid()
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
            self._started_millis = self._clock.now_ms()
        offset = 0
        while offset < run.rows.num_rows:
            offset += self._write_file(run, offset)

    def _write_file(self, run: SortedRows, offset: int) -> int:
        """Write one file from row ``offset`` on, up to the target size; returns how many rows it took."""
        name = data_file_name(self._uuid, len(self._entries), self._settings.data_file_prefix)
        path = f"{self._paths.bucket(run.partition, run.bucket)}/{name}"
        taken, limit = 0, self._settings.target_file_bytes
        step = self._settings.parquet.row_group_rows
        with self._files.open_output(path) as sink:
            writer = DataFileWriter(
                sink,
                self._file_schema,
                file_name=name,
                options=self._settings.parquet,
                unique_columns=frozenset(self._schema.trimmed_primary_keys),
            )
            while offset + taken < run.rows.num_rows and (taken == 0 or writer.bytes_written < limit):
                part = run.rows.slice(offset + taken, step)
                kinds = run.kinds[offset + taken : offset + taken + step]
                writer.write(self._with_system_columns(part, kinds))
                taken += part.num_rows
            footer = writer.close()
        rows, kinds = run.rows.slice(offset, taken), run.kinds[offset : offset + taken]
        self._entries.append(self._describe(run, rows, kinds, name=name, footer=footer))
        return taken

    def _with_system_columns(self, rows: pa.Table, kinds: npt.NDArray[np.int8]) -> pa.Table:
        if not self._schema.is_keyed:
            return rows
        return with_system_columns(rows, self._file_schema, sequence=self._next_sequence, kinds=kinds)

    def _describe(
        self, run: SortedRows, rows: pa.Table, kinds: npt.NDArray[np.int8], *, name: str, footer: FileFooter
    ) -> ManifestEntry:
        schema, keyed = self._schema, self._schema.is_keyed
        key_names = schema.trimmed_primary_keys
        key_types = [field.type for field in schema.key_fields]
        stats = collect_stats(rows, schema.fields)
        by_name = dict(zip(schema.field_names, stats, strict=True))
        value_stats, stats_columns = self._value_stats(stats)
        first, last = self._next_sequence, self._next_sequence + (0 if keyed else rows.num_rows - 1)
        self._next_sequence = last + 1
        meta = DataFileMeta(
            file_name=name,
            file_size=footer.file_size,
            row_count=rows.num_rows,
            min_key=encode_row(_row_values(rows, 0, key_names), key_types) if keyed else EMPTY_ROW,
            max_key=encode_row(_row_values(rows, rows.num_rows - 1, key_names), key_types) if keyed else EMPTY_ROW,
            key_stats=encode_stats([by_name[key] for key in key_names], key_types) if keyed else EMPTY_STATS,
            value_stats=value_stats,
            min_sequence_number=first,
            max_sequence_number=last,
            schema_id=schema.id,
            level=0,
            creation_time_millis=_local_millis(self._clock.now_ms()),
            # -U and -D have odd codes.
            delete_row_count=int(np.count_nonzero(kinds & 1)) if keyed else 0,
            file_source=FileSource.APPEND,
            value_stats_cols=stats_columns,
            footer_digest=footer.digest,
        )
        return ManifestEntry(
            kind=EntryKind.ADD,
            partition=encode_row(run.partition, [field.type for field in schema.partition_fields]),
            bucket=run.bucket,
            total_buckets=self._settings.total_buckets,
            file=meta,
        )

    def _value_stats(self, stats: list[ColumnStats]) -> tuple[SimpleStats, tuple[str, ...] | None]:
        if self._settings.value_stats:
            return encode_stats(stats, [field.type for field in self._schema.fields]), None
        return EMPTY_STATS, ()


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


def entry_directory(paths: DataPaths, entry: ManifestEntry, schema: TableSchema) -> str:
    """The directory that holds the file of an entry, relative to the table."""
    return paths.bucket(decode_row(entry.partition, [field.type for field in schema.partition_fields]), entry.bucket)


def entry_path(paths: DataPaths, entry: ManifestEntry, schema: TableSchema) -> str:
    """The path of the file of an entry, relative to the table."""
    return f"{entry_directory(paths, entry, schema)}/{entry.file.file_name}"


def _row_values(rows: pa.Table, position: int, names: tuple[str, ...]) -> tuple[object, ...]:
    # One row of metadata, not a data path.
    return tuple(python_value(rows.column(name)[position]) for name in names)


def _local_millis(now_millis: int) -> int:
    # The format stores local wall-clock time as if it were UTC.
    local = datetime.fromtimestamp(now_millis / 1000).astimezone()
    offset = local.utcoffset()
    return now_millis + (int(offset.total_seconds() * 1000) if offset else 0)
