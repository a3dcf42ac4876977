"""Reads Parquet data files in bounded batches, and checks their digest, names and pages.

Batches are bounded by their decoded bytes (see bounds). Row groups that fit a batch together are read in one call. One that does
not fit, or whose size is unknown, is probed: a few rows first, then as many as the size of the rows so far allows.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tablestore.bounds import BATCH_BYTES, BATCH_ROWS
from tablestore.errors import FormatError, StorageError, TablestoreError
from tablestore.format.parquet import footer as parquetfooter
from tablestore.format.parquet.chunksizes import DecodedSizes
from tablestore.format.parquet.footer import FILE_NAME_KEY, PARQUET_MAGIC, TAIL_BYTES, footer_length
from tablestore.format.parquet.pages import check_pages, check_values
from tablestore.types.rebatch import slices_of

# A row group that is probed: the rows of the first batch, and by how much batches grow.
_FIRST_ROWS, _GROWTH = 1024, 4
# Columns of row groups that are larger than a batch are read through buffers instead of whole.
_LEAST_STREAM_BYTES, _MOST_STREAM_BYTES = 64 << 10, 1 << 20
# Where every buffer is a request, a row group of so many batches is still fetched whole: compressed it is about as large as one.
_REMOTE_RATIO = 4

# Limits for the parser of untrusted footers.
_MAX_THRIFT_BYTES = 128 << 20
_MAX_THRIFT_ITEMS = 4_000_000
# With these, what went wrong is the file's content.
_READ_ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, IndexError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """A row group: its number, rows and compressed bytes, and (min, max) per column that has exact statistics.

    Only columns of the file itself have bounds here, not the fields of a nested one.
    """

    index: int
    row_count: int
    bounds: dict[str, tuple[object, object]]


@dataclass(frozen=True, slots=True)
class _Part:
    """Row groups that one call reads. ``fits``: together they fit a batch."""

    groups: list[int]
    fits: bool = True
    largest_row_bytes: int = 0
    average_row_bytes: float = 0.0


class ParquetFileReader:
    """An open data file. Made by ``open_parquet_file``."""

    def __init__(
        self,
        file: pq.ParquetFile,
        source: pa.NativeFile,
        file_name: str,
        *,
        ours: bool,
        remote: bool,
        fetch_ahead: bool,
        footer: bytes,
        batch_bytes: int,
    ) -> None:
        self._file, self._source = file, source
        self._sizes, self._batch_bytes = DecodedSizes(file.metadata, lambda: footer, ours=ours), batch_bytes
        self._file_name, self._ours = file_name, ours
        self._remote, self._fetch_ahead = remote, fetch_ahead
        self._counted: set[tuple[int, int]] = set()
        self.schema: pa.Schema = file.schema_arrow
        self.row_count: int = file.metadata.num_rows
        self.group_count: int = file.metadata.num_row_groups

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The row groups with their statistics."""
        return self.bounded_groups(self.schema.names)

    def bounded_groups(self, columns: Collection[str]) -> tuple[RowGroup, ...]:
        """The row groups, with the statistics of these columns."""
        wanted = set(columns)
        metadata = self._file.metadata
        try:
            leaves = [metadata.schema.column(position) for position in range(metadata.num_columns)]
            # A path joins names by dots, and a name may hold dots: `a.b` is a column, or the field `b` of `a`. Only a column
            # has a path that is its own name.
            names = [leaf.name if leaf.path == leaf.name and leaf.name in wanted else None for leaf in leaves]
            return tuple(_row_group(metadata.row_group(index), index, names) for index in range(metadata.num_row_groups))
        except _READ_ERRORS as error:
            raise _damaged(self._file_name, error) from error

    def read(
        self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None, *, side_by_side: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Batches of bounded rows and bytes, with the columns in the order asked for and the file's own Arrow types.

        ``side_by_side``: the columns of a batch are decoded on as many cores as Arrow may use, if the file is a local one.
        Raises FormatError for pages that do not match their checksums or cannot be decoded.
        """
        groups = list(range(self._file.metadata.num_row_groups)) if row_groups is None else list(row_groups)
        names = self.schema.names if columns is None else list(columns)
        missing = [name for name in names if name not in self.schema.names]
        if missing:
            raise FormatError(
                f"{self._file_name}: expected the columns {', '.join(missing)}, found only {', '.join(self.schema.names)}"
            )
        expected = sum(self._file.metadata.row_group(group).num_rows for group in groups)
        row_count = 0
        self._check_values(groups, set(names))
        use_threads = side_by_side and not self._remote and len(names) > 1 and pa.cpu_count() > 1
        batches = self._batches(groups, names, use_threads=use_threads)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    break
                batch = batch.select(names)
            except TablestoreError:
                raise
            except _READ_ERRORS as error:
                raise _damaged(self._file_name, error) from error
            row_count += batch.num_rows
            yield batch
        if row_count != expected and names:
            raise FormatError(f"{self._file_name}: expected {expected} rows, found {row_count}; the file is damaged")

    def decoded_bytes(self, group: int, columns: Sequence[str], enough: int) -> int | None:
        """The decoded size of these columns of a row group, at most; None if unknown. ``enough``: see DecodedSizes."""
        return self._sizes.of(group, columns, enough).total_bytes

    def _check_values(self, groups: Sequence[int], names: set[str]) -> None:
        # A wrong number of values shifts columns that may hold nulls or lists, unnoticed. Where a read is a request, a page's
        # header would cost one: there only `tablestore verify --deep` looks.
        if not self._ours or self._remote:
            return
        metadata = self._file.metadata
        leaves = [metadata.schema.column(position) for position in range(metadata.num_columns)]
        roots = tuple(map("{}.".format, names))
        doubtful = [i for i, leaf in enumerate(leaves) if leaf.max_definition_level and f"{leaf.path}.".startswith(roots)]
        for place in product(groups, doubtful):
            if place in self._counted:
                continue
            try:
                check_values(self._source, metadata.row_group(place[0]).column(place[1]), self._file_name)
            except TablestoreError:
                raise
            except _READ_ERRORS as error:
                raise _damaged(self._file_name, error) from error
            self._counted.add(place)

    def _batches(self, groups: Sequence[int], names: Sequence[str], *, use_threads: bool) -> Iterator[pa.RecordBatch]:
        def decoded(batch_rows: int, part: _Part) -> Iterator[pa.RecordBatch]:
            yield from self._file.iter_batches(batch_rows, row_groups=part.groups, columns=list(names), use_threads=use_threads)

        rows = 0
        for part in self._parts(groups, names):
            if part.fits:
                yield from decoded(BATCH_ROWS, part)
                continue
            rows = rows or self._first_rows(part)
            for batch in decoded(rows, part):
                yield from slices_of(batch, max_rows=BATCH_ROWS, max_bytes=self._batch_bytes)
                seen = batch.nbytes / max(batch.num_rows, 1)
                allowed = int(self._batch_bytes / max(seen, part.average_row_bytes, 1))
                rows = min(max(allowed, 1), rows * _GROWTH, BATCH_ROWS)
                # Arrow asks for it before each batch.
                self._file.reader.set_batch_size(rows)

    def _first_rows(self, part: "_Part") -> int:
        """The number of rows that fit even if all are as large as one can be, or by far if all have the average size."""
        surely = self._batch_bytes // max(part.largest_row_bytes, 1)
        likely = self._batch_bytes / (_GROWTH * part.average_row_bytes) if part.average_row_bytes else 0
        return min(max(surely, int(likely), 1), _FIRST_ROWS)

    def _parts(self, groups: Sequence[int], names: Sequence[str]) -> Iterator["_Part"]:
        """Neighbouring row groups that are read together."""
        part_groups: list[int] = []
        size = 0
        for group in groups:
            decoded = self._sizes.of(group, names, self._batch_bytes)
            count, total = self._file.metadata.row_group(group).num_rows, decoded.total_bytes
            fits = total is not None and total <= self._batch_bytes
            # Arrow keeps what it fetched ahead until the call is over: one call per row group bounds that.
            if part_groups and (not fits or self._fetch_ahead or size + (total or 0) > self._batch_bytes):
                yield _Part(part_groups)
                part_groups, size = [], 0
            if fits:
                part_groups.append(group)
                size += total or 0
            else:
                average = 0.0 if total is None else total / max(count, 1)
                yield _Part([group], fits=False, largest_row_bytes=decoded.largest_row_bytes, average_row_bytes=average)
        if part_groups:
            yield _Part(part_groups)

    def check_pages(self, columns: Collection[str] | None = None, *, content: bool = False) -> int:
        """Check the page headers, which page checksums do not cover (see ``pages``); returns the number of pages. Raises
        FormatError.

        ``columns``: only of these. ``content``: also the checksums, for a reader of another engine that does not.
        """
        try:
            metadata = self._file.metadata
            return check_pages(self._source, metadata, self._file_name, ours=self._ours, columns=columns, content=content)
        except _READ_ERRORS as error:
            if isinstance(error, TablestoreError):
                raise
            raise _damaged(self._file_name, error) from error

    def close(self) -> None:
        """Close the source."""
        self._file.close(force=True)


def open_parquet_file(
    source: BinaryIO | pa.NativeFile | pa.Buffer | str,
    *,
    file_name: str,
    footer_digest: bytes | None = None,
    size: int | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> ParquetFileReader:
    """Open a data file for reading and check what can be checked before its pages are read. ``source`` is closed with the reader,
    or at once if this fails.

    ``footer_digest`` is the manifest's (None for files of other engines), ``size`` the manifest's file size, ``batch_bytes`` what
    a batch may take in memory. Raises FormatError: kind ``checksum`` for a footer with another digest, ``swapped`` for a file
    that says it is another.
    """
    file = _random_access(source)
    try:
        return _opened(source, file, file_name=file_name, footer_digest=footer_digest, size=size, batch_bytes=batch_bytes)
    except BaseException as error:
        file.close()
        if isinstance(error, _READ_ERRORS) and not isinstance(error, TablestoreError):
            raise _damaged(file_name, error) from error
        raise


def _opened(
    source: object, file: pa.NativeFile, *, file_name: str, footer_digest: bytes | None, size: int | None, batch_bytes: int
) -> ParquetFileReader:
    found_size = file.size()
    if size is not None and found_size != size:
        raise FormatError(
            f"{file_name}: expected {size} bytes, found {found_size}; the file was cut or replaced",
            kind="checksum" if footer_digest else None,
        )
    footer = _read_footer(file, found_size, file_name)
    if footer_digest is not None and parquetfooter.footer_digest(footer) != footer_digest:
        raise FormatError(
            f"{file_name}: the footer does not match the digest in the manifest; the file is damaged: restore it from a copy",
            kind="checksum",
        )
    limits = {
        "thrift_string_size_limit": _MAX_THRIFT_BYTES,
        "thrift_container_size_limit": _MAX_THRIFT_ITEMS,
    }
    footer_file = PARQUET_MAGIC + footer + len(footer).to_bytes(4, "little") + PARQUET_MAGIC
    metadata = pq.ParquetFile(pa.BufferReader(footer_file), **limits).metadata
    _check_name(metadata, file_name, ours=footer_digest is not None)
    # Arrow holds a row group's columns whole, in one request where that is a round trip; large ones it reads through buffers.
    groups = range(metadata.num_row_groups)
    remote = isinstance(file, pa.PythonFile) and getattr(source, "round_trips", True)
    most = batch_bytes * (_REMOTE_RATIO if remote else 1)
    large = any(metadata.row_group(group).total_byte_size > most for group in groups)
    stream = min(max(batch_bytes // (2 * max(metadata.num_columns, 1)), _LEAST_STREAM_BYTES), _MOST_STREAM_BYTES) if large else 0
    fetch_ahead = remote and not large
    opened = pq.ParquetFile(
        file, metadata=metadata, page_checksum_verification=True, pre_buffer=fetch_ahead, buffer_size=stream, **limits
    )
    return ParquetFileReader(
        opened,
        file,
        file_name,
        ours=footer_digest is not None,
        remote=remote,
        fetch_ahead=fetch_ahead,
        footer=footer,
        batch_bytes=batch_bytes,
    )


def _random_access(source: BinaryIO | pa.NativeFile | pa.Buffer | str) -> pa.NativeFile:
    if isinstance(source, pa.NativeFile):
        return source
    if isinstance(source, str):
        return pa.OSFile(source, "rb")
    if isinstance(source, (bytes, pa.Buffer)):
        return pa.BufferReader(source)
    return pa.PythonFile(source, mode="r")


def _read_footer(file: pa.NativeFile, size: int, name: str) -> bytes:
    guess = min(size, 64 << 10)
    file.seek(size - guess)
    tail: bytes = file.read(guess)
    length = footer_length(tail[-TAIL_BYTES:], file_size=size, name=name)
    if length + TAIL_BYTES > len(tail):
        file.seek(size - length - TAIL_BYTES)
        tail = file.read(length + TAIL_BYTES)
    return tail[-length - TAIL_BYTES : -TAIL_BYTES]


def _check_name(metadata: pq.FileMetaData, file_name: str, *, ours: bool) -> None:
    stored = (metadata.metadata or {}).get(FILE_NAME_KEY.encode())
    if stored is None and not ours:
        return
    if stored != file_name.encode():
        raise FormatError(
            f"{file_name}: the file says that it is {(stored or b'unnamed').decode(errors='replace')!r}; two files "
            "have changed places: restore both from a copy",
            kind="swapped",
        )


def _row_group(group: pq.RowGroupMetaData, index: int, names: Sequence[str | None]) -> RowGroup:
    bounds: dict[str, tuple[object, object]] = {}
    for position, name in enumerate(names):
        if name is None:
            continue
        column = group.column(position)
        if not column.is_stats_set or column.statistics is None or not column.statistics.has_min_max:
            continue
        # No Python value stands for the year 10000.
        with suppress(OverflowError):
            bounds[name] = (column.statistics.min, column.statistics.max)
    return RowGroup(index=index, row_count=group.num_rows, bounds=bounds)


def _damaged(file_name: str, error: BaseException) -> TablestoreError:
    if isinstance(error, OSError) and error.errno is not None:
        return StorageError(f"{file_name}: the store failed while the file was read: {error}")
    kind = "checksum" if "checksum" in str(error).lower() or "crc" in str(error).lower() else None
    return FormatError(f"{file_name}: expected a readable Parquet file, found: {error}; restore it from a copy", kind=kind)
