"""Writes one sorted run to data files. A flush, a compaction and a changelog all write through here.

    rows, kinds, sequence numbers -> system columns -> a data file, a new one at the target size -> manifest entries

The manifest entry of a file is computed from the rows as they are written: first and last key, null counts, the lowest and the
highest sequence number and the number of retractions are exact, bounds of text are cut (see :mod:`tablestore.format.stats`). An
entry that is too large for a manifest is refused here, before a commit names its file. Memory: one row group.

No reader sees the files before a commit names them. :meth:`RunWriter.abort` removes them.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.bounds import ROW_GROUP_BYTES
from tablestore.clock import Clock
from tablestore.errors import InvalidInputError, StorageError
from tablestore.format.binaryrow import EMPTY_ROW, encode_row
from tablestore.format.datafiles.datafilewriter import DataFileWriter, create_data_file
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry, encode_manifest, entry_bytes
from tablestore.format.parquet.parquetfile import FileFooter, ParquetFileWriter, with_system_columns
from tablestore.format.parquet.parquetschema import file_schema
from tablestore.format.paths import data_file_name
from tablestore.format.stats import (
    EMPTY_STATS,
    ColumnStats,
    SimpleStats,
    StatsCollector,
    cut_bounds,
    encode_stats,
    python_value,
)
from tablestore.io.filestore import FileStore
from tablestore.options import MAX_BOUND_CHARACTERS
from tablestore.store.context import TableContext
from tablestore.store.datapaths import DataPaths
from tablestore.store.settings import TableSettings
from tablestore.types.arrays import Kinds
from tablestore.types.rebatch import slices_of
from tablestore.types.schema import TableSchema

Sequences = npt.NDArray[np.int64]

# Larger statistics cost more than they save, and few entries are as large.
_LARGE_ENTRY_BYTES = 2 * 1024 * 1024
_ANY_NONCE = b"only looked at.."

TakeNumbers = Callable[[int], int]
"""Takes that many sequence numbers and returns the first."""


@dataclass(slots=True)
class FileNames:
    """Names for new files of one writer: one uuid, counted."""

    uuid: str
    # Threads of one writer take names: the next number of an iterator is taken once.
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def next(self, prefix: str, file_format: str) -> str:
        """A name that was not given before."""
        return data_file_name(self.uuid, next(self._numbers), prefix, file_format)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTarget:
    """The state that all runs of one writer share: the table, its files, and the names that are still free."""

    files: FileStore
    schema: TableSchema
    settings: TableSettings
    clock: Clock
    names: FileNames
    file_schema: pa.Schema = field(repr=False)

    @classmethod
    def of(cls, context: TableContext, settings: TableSettings | None = None) -> "RunTarget":
        """The target of a new writer. ``settings``: in place of the table's."""
        settings = settings or context.settings
        return cls(
            files=context.files,
            schema=context.schema,
            settings=settings,
            clock=context.clock,
            names=FileNames(context.ids.uuid()),
            file_schema=file_schema(context.schema, thin=settings.thin),
        )


@dataclass(slots=True)
class _OpenFile:
    """The file that is being written, and what is known of it so far."""

    name: str
    holder: AbstractContextManager[BinaryIO]
    writer: DataFileWriter
    number: int | None
    stats: StatsCollector
    rows: int = 0
    retractions: int = 0
    first_key: tuple[object, ...] = ()
    last_row: pa.Table | None = None
    min_sequence: int = np.iinfo(np.int64).max
    max_sequence: int = np.iinfo(np.int64).min


class RunWriter:
    """Writes the rows of one bucket, which come in key order if the table has a key, as one run of ``level``.

    ``numbers`` gives rows their sequence numbers where :meth:`write` is not given them: one for a whole file of a keyed table, one
    per row of an append table. ``target_bytes``: a file that has reached this size is followed by a new one; the table's target
    size if None. ``changelog``: the files are changelog files, which have a prefix and a format of their own.
    """

    def __init__(
        self,
        target: RunTarget,
        *,
        partition: tuple[object, ...],
        bucket: int,
        total_buckets: int,
        level: int,
        source: FileSource,
        numbers: TakeNumbers | None = None,
        target_bytes: int | None = None,
        changelog: bool = False,
    ) -> None:
        self._target, self._schema, self._keyed = target, target.schema, target.schema.is_keyed
        self._level, self._source, self._numbers = level, source, numbers
        settings = target.settings
        self._prefix = settings.changelog_prefix if changelog else settings.data_file_prefix
        self._format = settings.formats.changelog if changelog else settings.formats.levels.get(level, settings.formats.data)
        self._limit = target.settings.target_file_bytes if target_bytes is None else target_bytes
        self._directory = DataPaths(target.schema, target.settings).bucket(partition, bucket)
        self._partition = encode_row(partition, [f.type for f in target.schema.partition_fields])
        self._bucket, self._total_buckets = bucket, total_buckets
        self._file: _OpenFile | None = None
        self._entries: list[ManifestEntry] = []

    @property
    def directory(self) -> str:
        """The directory of the files, relative to the table."""
        return self._directory

    def write(self, rows: pa.Table, kinds: Kinds | None = None, sequences: Sequences | None = None) -> None:
        """Write rows with the table's columns. ``kinds`` None: all are inserts; ``sequences`` None: ``numbers`` gives them."""
        step = self._target.settings.data_files.row_group_rows
        stop = 0
        for start in range(0, rows.num_rows, step):
            for part in slices_of(rows.slice(start, step), max_rows=step, max_bytes=ROW_GROUP_BYTES):
                if self._file is not None and self._file.writer.reached(self._limit):
                    self.cut()
                first, stop = stop, stop + part.num_rows
                self._write_part(
                    part,
                    np.zeros(part.num_rows, dtype=np.int8) if kinds is None else kinds[first:stop],
                    None if sequences is None else sequences[first:stop],
                )

    def cut(self) -> None:
        """End the current file; rows that follow begin a new one."""
        file = self._file
        if file is None:
            return
        try:
            footer = file.writer.close()
        except BaseException as error:
            self._drop_open(error)
            raise
        self._file = None
        file.holder.__exit__(None, None, None)
        self._entries.append(self._describe(file, footer))

    def close(self) -> tuple[ManifestEntry, ...]:
        """End the run; its files as ADD entries, in key order. Their names are durable after a sync of :attr:`directory`."""
        self.cut()
        return tuple(self._entries)

    def abort(self) -> None:
        """Remove the written files. A file that cannot be removed is an orphan and is removed later."""
        if self._file is not None:
            self._drop_open(None)
        for entry in self._entries:
            with suppress(StorageError):
                self._target.files.delete(f"{self._directory}/{entry.file.file_name}")
        self._entries = []

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.abort()

    def _write_part(self, part: pa.Table, kinds: Kinds, sequences: Sequences | None) -> None:
        file = self._file or self._begin(numbered=sequences is None)
        try:
            numbers = file.number if sequences is None else sequences
            if self._keyed:
                assert numbers is not None, "a run either draws its numbers or is given them"
                file.writer.write(with_system_columns(part, self._target.file_schema, sequence=numbers, kinds=kinds))
                # -U and -D have odd codes.
                file.retractions += int(np.count_nonzero(kinds & 1))
            else:
                file.writer.write(part)
            file.stats.add(part)
        except BaseException as error:
            self._drop_open(error)
            raise
        file.rows += part.num_rows
        if sequences is not None:
            file.min_sequence = min(file.min_sequence, int(sequences.min()))
            file.max_sequence = max(file.max_sequence, int(sequences.max()))
        if self._keyed:
            if file.last_row is None:
                file.first_key = _values(part.slice(0, 1), self._schema.trimmed_primary_keys)
            file.last_row = part.slice(part.num_rows - 1, 1)

    def _begin(self, *, numbered: bool) -> _OpenFile:
        target = self._target
        name = target.names.next(self._prefix, self._format)
        number = None
        if numbered and self._keyed:
            assert self._numbers is not None, "a run either draws its numbers or is given them"
            number = self._numbers(1)
        holder = target.files.open_output(f"{self._directory}/{name}")
        sink = holder.__enter__()
        # Parquet at once: each statement writes such files.
        begin: Callable[..., DataFileWriter] = ParquetFileWriter if self._format == "parquet" else create_data_file
        writer = begin(
            sink,
            target.file_schema,
            file_name=name,
            options=target.settings.data_files,
            unique_columns=frozenset(self._schema.trimmed_primary_keys),
        )
        stats = StatsCollector(self._schema.fields, [self._kept_characters(name) for name in self._schema.field_names])
        self._file = _OpenFile(name=name, holder=holder, writer=writer, number=number, stats=stats)
        return self._file

    def _drop_open(self, error: BaseException | None) -> None:
        """Remove the open file: a store does so when its context is left with an exception."""
        file, self._file = self._file, None
        if file is None:
            return
        reason = error or _Abandoned()
        try:
            file.holder.__exit__(type(reason), reason, reason.__traceback__)
        except BaseException as raised:
            if raised is not reason:
                raise

    def _describe(self, file: _OpenFile, footer: FileFooter) -> ManifestEntry:
        schema, keyed = self._schema, self._keyed
        key_names, key_types = schema.trimmed_primary_keys, [f.type for f in schema.key_fields]
        stats = file.stats.result()
        by_name = dict(zip(schema.field_names, stats, strict=True))
        value_stats, stats_columns = self._value_stats(by_name)
        low, high = self._sequence_range(file)
        meta = DataFileMeta(
            file_name=file.name,
            file_size=footer.file_size,
            row_count=file.rows,
            min_key=encode_row(file.first_key, key_types) if keyed else EMPTY_ROW,
            max_key=encode_row(_values(file.last_row, key_names), key_types) if keyed else EMPTY_ROW,
            key_stats=encode_stats([by_name[key] for key in key_names], key_types) if keyed else EMPTY_STATS,
            value_stats=value_stats,
            min_sequence_number=low,
            max_sequence_number=high,
            schema_id=schema.id,
            level=self._level,
            creation_time_millis=local_millis(self._target.clock.now_ms()),
            delete_row_count=file.retractions,
            file_source=self._source,
            value_stats_cols=stats_columns,
            footer_digest=footer.digest,
        )
        entry = ManifestEntry(
            kind=EntryKind.ADD, partition=self._partition, bucket=self._bucket, total_buckets=self._total_buckets, file=meta
        )
        if entry_bytes(entry) > _LARGE_ENTRY_BYTES:
            encode_manifest([entry], _ANY_NONCE)
        return entry

    def _sequence_range(self, file: _OpenFile) -> tuple[int, int]:
        if file.max_sequence >= file.min_sequence:
            return file.min_sequence, file.max_sequence
        if file.number is not None:
            return file.number, file.number
        assert self._numbers is not None, "a run either draws its numbers or is given them"
        first = self._numbers(file.rows)
        return first, first + file.rows - 1

    def _stats_mode(self, column: str) -> int | None:
        settings = self._target.settings
        return settings.column_stats_modes.get(column, settings.stats_mode)

    def _kept_characters(self, column: str) -> int:
        # Statistics of keys are kept in every mode, because reading by key needs them.
        return MAX_BOUND_CHARACTERS if column in self._schema.trimmed_primary_keys else self._stats_mode(column) or 0

    def _value_stats(self, stats: Mapping[str, ColumnStats]) -> tuple[SimpleStats, tuple[str, ...] | None]:
        """The encoded statistics, and the names of their columns (None: all)."""
        modes = [(field, self._stats_mode(field.name)) for field in self._schema.fields]
        bounds = [(field, cut_bounds(stats[field.name], mode)) for field, mode in modes if mode is not None]
        encoded = encode_stats([cut for _, cut in bounds], [field.type for field, _ in bounds])
        if len(encoded.min_values) + len(encoded.max_values) > _LARGE_ENTRY_BYTES:
            return EMPTY_STATS, ()
        return encoded, None if len(bounds) == len(modes) else tuple(field.name for field, _ in bounds)


class _Abandoned(Exception):
    """Raised to leave a store's output, so that the store removes the file."""


def local_millis(now_millis: int) -> int:
    """Local wall-clock time as if it were UTC, which is how the format stores the time a file was made."""
    local = datetime.fromtimestamp(now_millis / 1000).astimezone()
    offset = local.utcoffset()
    return now_millis + (int(offset.total_seconds() * 1000) if offset else 0)


def _values(row: pa.Table | None, names: tuple[str, ...]) -> tuple[object, ...]:
    # One row of metadata, not a data path.
    assert row is not None, "a file has rows"
    return tuple(_key_value(name, row.column(name)[0]) for name in names)


def _key_value(name: str, scalar: pa.Scalar) -> object:
    try:
        value = python_value(scalar)
        if isinstance(value, np.datetime64) and np.isnat(value):
            raise OverflowError("it is the least 64-bit number, which stands for no time")
    except OverflowError as error:
        raise InvalidInputError(
            f"key column {name!r}: expected a date or timestamp of the years 1 to 9999, found the {scalar.type} "
            f"{scalar.value} ({error}); correct the row, or leave it out",
            kind="out-of-range",
        ) from error
    return value
