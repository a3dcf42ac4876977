"""Writes rows into the files of a table with the connector ``filesystem``, where nobody reads them before all are there:

    <path>/_tablestore-<id>/[day=2026-01-31/]part-….parquet  ->  <path>/[day=2026-01-31/]part-….parquet

A statement that fails or is canceled removes what it wrote, and the folders that it made. INSERT OVERWRITE removes the old files
when the new ones are in place: whoever reads right then may see both. A process that dies leaves the hidden folder, and between two
renames some of the files.

Memory: what the writers of the open files hold, of at most 16. Rows come by partition, so one is open as a rule.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.environment.filelayout import STAGING_PREFIX, check_file_columns, check_micros, partition_folder
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.partitiontext import partition_value_text
from tablestore.ids import Ids
from tablestore.io.oserrors import translated
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore_duckdb.fileencoding import FileEncoder, encoder, suffix
from tablestore_duckdb.filetables import FileTable, visible_files
from tablestore_duckdb.rowtypes import rows_in

_MOST_OPEN = 16
_FILE_BYTES = 128 << 20
_BUFFER_BYTES = 64 << 20
_COLUMN_OF_TEXT = "_tablestore_folder_"


def text_column(place: int) -> str:
    """The name of the column of rows that has the values of a partition column as texts."""
    return f"{_COLUMN_OF_TEXT}{place}"


def check_columns(table: FileTable, fields: Sequence[Field]) -> None:
    """Raises UnsupportedError for columns that the files of a table do not hold."""
    check_file_columns(table.name, table.file_format, fields, table.partition_by)
    check_micros(table.name, fields)


def check_place(table: FileTable) -> None:
    """Raises UnsupportedError, InvalidInputError for a path that is no folder, or none of this machine."""
    if table.is_address:
        raise UnsupportedError(
            f"the engine duckdb writes files into folders of this machine, table {table.name} has path = {table.path!r:.200}; "
            "run the statement on the engine spark",
            kind="engine",
        )
    if table.is_pattern or Path(table.path).is_file():
        raise InvalidInputError(
            f"table {table.name}: expected a folder to write files into, found path = {table.path!r:.200}; name the folder",
            kind="invalid-option",
        )


def write_files(
    table: FileTable,
    fields: Sequence[Field],
    rows: Iterable[pa.RecordBatch],
    ids: Ids,
    *,
    overwrite: bool,
    emptied: str | None = None,
) -> None:
    """Writes rows, as additions or in place of what is there: in a partitioned table, of the partitions that they fall into, and of
    the folder ``emptied``. They have a :func:`text_column` for each partition column that is no float."""
    stored = [field for field in fields if field.name not in table.partition_by]
    schema = pa.schema([column.with_nullable(True) for column in rows_in(to_arrow_schema(stored))])
    with _staged(Path(table.path), ids.uuid()) as staging:
        files = _OpenFiles(staging, schema, table, run=ids.uuid())
        try:
            for batch in rows:
                for folder, part in _by_folder(batch, table.partition_by):
                    files.write(folder, _filled(part, schema))
            if not files.names and not table.partition_by:
                # An empty file says which columns there are.
                files.write("", _no_rows(schema))
            files.close()
        finally:
            files.give_up()
        folders = {os.path.dirname(name) for name in files.names}
        if emptied is not None:
            folders.add(emptied)
        _publish(Path(table.path), staging, files.names, replaced=folders if overwrite else frozenset())


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], column.type) for column in schema], schema=schema)


def _filled(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of files; those that the rows lack are NULL."""
    names = frozenset(batch.schema.names)
    columns = [
        batch.column(column.name).cast(column.type) if column.name in names else pa.nulls(batch.num_rows, column.type)
        for column in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _by_folder(batch: pa.RecordBatch, partition_by: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each partition, with its folder."""
    if not batch.num_rows:
        return
    if not partition_by:
        yield "", batch
        return
    folders = _folders(batch, partition_by).dictionary_encode()
    if len(folders.dictionary) == 1:
        yield folders.dictionary[0].as_py(), batch
        return
    codes = folders.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    sorted_rows = batch.take(pa.array(order))
    for folder, start, end in zip(folders.dictionary.to_pylist(), [0, *ends[:-1]], ends, strict=True):
        yield folder, sorted_rows.slice(int(start), int(end - start))


def _folders(batch: pa.RecordBatch, partition_by: Sequence[str]) -> pa.Array:
    """The folder of each row. Each value is spelled once."""
    levels = []
    names = frozenset(batch.schema.names)
    for place, name in enumerate(partition_by):
        if text_column(place) in names:
            texts = batch.column(text_column(place))
        else:
            texts = _float_texts(batch.column(name)) if name in names else pa.nulls(batch.num_rows, pa.string())
        encoded = pc.fill_null(texts, "").dictionary_encode()
        spelled = pa.array([partition_folder(name, text) for text in encoded.dictionary.to_pylist()], pa.string())
        levels.append(spelled.take(encoded.indices))
    return levels[0] if len(levels) == 1 else pc.binary_join_element_wise(*levels, "/")


def _float_texts(column: pa.Array) -> pa.Array:
    """The texts of floats, which DuckDB spells in another way than Spark. Values that differ in a bit are apart."""
    bits = pa.int64() if column.type == pa.float64() else pa.int32()
    encoded = column.view(bits).dictionary_encode()
    values = encoded.dictionary.view(column.type).to_pylist()
    return pa.array([float_text(value, column.type) for value in values], pa.string()).take(encoded.indices)


def float_text(value: float, kind: pa.DataType) -> str:
    """The text of a float or double as Spark casts it."""
    root = TypeRoot.DOUBLE if kind == pa.float64() else TypeRoot.FLOAT
    return partition_value_text(value, AtomicType(root=root), legacy=False)


@dataclass(slots=True)
class _OpenFile:
    sink: BinaryIO
    encoder: FileEncoder


@dataclass(slots=True)
class _OpenFiles:
    """The files that are written at once, the one that was written to last at the end. ``names``: all, below the folder."""

    staging: Path
    schema: pa.Schema
    table: FileTable
    run: str
    names: list[str] = field(default_factory=list)
    _open: dict[str, _OpenFile] = field(default_factory=dict)

    def write(self, folder: str, rows: pa.RecordBatch) -> None:
        """Appends rows to the file of a folder."""
        one = self._open.pop(folder, None) or self._begun(folder)
        self._open[folder] = one
        one.encoder.write(rows)
        if one.encoder.reached(_FILE_BYTES):
            self._end(folder)
        elif len(self._open) > _MOST_OPEN:
            self._end(next(iter(self._open)))

    def close(self) -> None:
        """Ends all files."""
        for folder in list(self._open):
            self._end(folder)

    def give_up(self) -> None:
        """Closes what is open, after an error."""
        for one in self._open.values():
            with suppress(Exception):
                one.encoder.give_up()
            with suppress(OSError):
                one.sink.close()
        self._open.clear()

    def _begun(self, folder: str) -> _OpenFile:
        name = f"part-{len(self.names):05d}-{self.run}-c000{suffix(self.table)}"
        self.names.append(os.path.join(folder, name))
        place = self.staging / self.names[-1]
        place.parent.mkdir(parents=True, exist_ok=True)
        sink = open(place, "xb")  # noqa: SIM115 - it stays open
        buffer_bytes = _BUFFER_BYTES if not folder else _BUFFER_BYTES // _MOST_OPEN
        return _OpenFile(sink, encoder(sink, self.schema, self.table, name=name, buffer_bytes=buffer_bytes))

    def _end(self, folder: str) -> None:
        one = self._open[folder]
        one.encoder.close()
        one.sink.flush()
        os.fsync(one.sink.fileno())
        one.sink.close()
        del self._open[folder]


@contextmanager
def _staged(path: Path, run: str) -> Iterator[Path]:
    """A hidden folder in that of the table. If what runs inside fails, the folders are removed that were not there before."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    staging = path / f"{STAGING_PREFIX}{run}"
    try:
        staging.mkdir(parents=True)
        yield staging
    except BaseException as error:
        shutil.rmtree(staging, ignore_errors=True)
        # Those in which others have put files by now stay.
        with suppress(OSError):
            for place in missing:
                place.rmdir()
        if isinstance(error, OSError):
            raise translated(error, verb="write files into", where=str(path)) from error
        raise
    shutil.rmtree(staging, ignore_errors=True)


def _publish(path: Path, staging: Path, names: Sequence[str], *, replaced: Iterable[str]) -> None:
    """Moves the files into the folder of the table, and then removes those that were in the folders ``replaced``."""
    old = [file for folder in sorted(replaced) for file in sorted(visible_files(str(path / folder)))]
    moved: list[Path] = []
    created: list[Path] = []
    try:
        for name in names:
            place = path / name
            created += [parent for parent in place.parents if not parent.exists()]
            place.parent.mkdir(parents=True, exist_ok=True)
            os.rename(staging / name, place)
            moved.append(place)
        for folder in {place.parent for place in moved}:
            _sync(folder)
    except BaseException:
        for place in moved:
            with suppress(OSError):
                place.unlink()
        for parent in created:
            with suppress(OSError):
                parent.rmdir()
        raise
    for file in old:
        os.unlink(file)
        # The sum that Hadoop keeps beside each file.
        Path(os.path.dirname(file), f".{os.path.basename(file)}.crc").unlink(missing_ok=True)
    for left in {os.path.dirname(file) for file in old}:
        _remove_empty(Path(left), path)


def _remove_empty(folder: Path, path: Path) -> None:
    """Removes a folder below that of the table, and those above it, where nothing is in them."""
    with suppress(OSError):
        while folder != path:
            folder.rmdir()
            folder = folder.parent


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def static_folder(partition: Mapping[str, str | None]) -> str:
    """The folder of a partition, by the texts of its values as Spark casts them."""
    return "/".join(partition_folder(name, text) for name, text in partition.items())
