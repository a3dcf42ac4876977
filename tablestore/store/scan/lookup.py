"""Looks rows up by key in data files.

    sorted keys -> files whose key range they meet -> row groups whose bounds they meet -> key columns -> positions
                                                                       and for row groups with hits -> the rows

Keys and files are sorted, so both are matched stretch by stretch with numpy, never key by key. The key columns of a row group
are decoded once; the other columns only where a key was found, side by side on the cores that Arrow may use. Memory is one batch of
a file and the rows that are found in it, or one row group of bounded bytes where a cache is filled. A caller that gathers rows
bounds them by :func:`in_portions`.

Deleted positions (deletion vectors) count as found: the caller leaves them out.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import FormatError, InvalidInputError
from tablestore.format.datafiles.datafilereader import DataFileReader
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.parquet.parquetread import RowGroup
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.format.parquet.projection import Projection
from tablestore.lazy import lazy
from tablestore.lsm.functions.survivors import WindowKeys
from tablestore.lsm.gather import take_rows
from tablestore.lsm.keyorder import row_bound
from tablestore.lsm.keys import PlainColumn, key_at, plain_columns, rows_up_to, slice_plain
from tablestore.memo import RecentlyUsed
from tablestore.store.scan.lookupcache import KeptGroups, LookupCache, name_of, place_of
from tablestore.store.scan.splitreader import SplitReader
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import Field, is_float

# Portions grow again where they held less than such a part of what they may.
_GROWTH = 4
# Files of so few rows and bytes are read at once: what is not needed of them costs less than a second read.
_SMALL_ROWS, _SMALL_BYTES = 4096, 64 << 10
_MOST_SMALL_FILES, _MOST_SMALL_BYTES = 128, 16 << 20

Positions = npt.NDArray[np.int64]
Key = tuple[int | bytes, ...]


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Distinct keys in key order: the columns of the trimmed primary key, and the form in which they compare."""

    rows: pa.RecordBatch
    plain: list[PlainColumn]

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def slice(self, start: int, stop: int) -> "SortedKeys":
        """The keys from ``start`` to before ``stop``, without a copy; the same object for all of them."""
        if start == 0 and stop == len(self):
            return self
        return SortedKeys(self.rows.slice(start, stop - start), slice_plain(self.plain, start, stop))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatches:
    """The rows found in one stretch of a file: ``positions`` are row numbers in the file, ``keys`` the numbers of the keys found
    there; both ascend. ``rows`` has ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and the columns that were asked for."""

    file: DataFileMeta
    positions: Positions
    keys: Positions
    rows: pa.RecordBatch | None = None


@dataclass(frozen=True, slots=True)
class _Hits:
    """The keys found in one batch of a row group: where, which, and the key columns themselves if rows are asked for."""

    positions: Positions
    keys: Positions
    key_columns: pa.RecordBatch


def sorted_keys(rows: pa.Table | pa.RecordBatch, fields: Sequence[Field]) -> SortedKeys:
    """Keys to look up, from rows that hold the columns ``fields`` in strictly ascending key order.

    Raises InvalidInputError for rows in another order.
    """
    names = [field.name for field in fields]
    batch = _one_batch(rows.select(names))
    plain = plain_columns(batch.columns, [field.type.nullable for field in fields])
    if batch.num_rows > 1 and not WindowKeys([plain]).ascending():
        raise InvalidInputError(f"expected distinct keys in key order of {', '.join(names)}, found others")
    return SortedKeys(batch, plain)


def find_rows(
    reader: SplitReader,
    partition: bytes,
    bucket: int,
    files: Sequence[DataFileMeta],
    keys: SortedKeys,
    columns: Sequence[str] | None = None,
    *,
    cache: LookupCache | None = None,
    small_files: "SmallFiles | None" = None,
) -> Iterator[FileMatches]:
    """Looks the keys up in these files of one bucket, file by file in the given order, positions ascending.

    With ``columns`` (of the table, but not of its partition) the rows come along. ``reader`` is any reader of the table at the
    schema that the keys have. ``cache``: where to keep what is decoded, for lookups to come. ``small_files``: where to keep
    small ones.
    """
    directory = reader.directory(partition, bucket)
    if cache is not None and columns is not None:
        # Files that compactions have replaced are not looked up any more.
        cache.keep_only(place_of(reader, directory), {name_of(reader, file) for file in files})
    for file in files:
        first, last = keys_in_range(reader.schema.key_fields, file, keys)
        if first >= last:
            continue
        small = None if small_files is None else small_files.read(reader, directory, file, columns or ())
        if small is not None and small.keys is keys:
            every = np.arange(len(keys))
            yield FileMatches(file=file, positions=every, keys=every, rows=None if columns is None else small.rows)
        elif small is not None:
            at_key, at_row = match_sorted(slice_plain(keys.plain, first, last), small.keys.plain)
            if len(at_row):
                rows = None if columns is None else small.rows.take(pa.array(at_row))
                yield FileMatches(file=file, positions=at_row, keys=at_key + first, rows=rows)
        else:
            cached_groups = None if cache is None or columns is None else KeptGroups.of(cache, reader, directory, file, columns)
            with _Lookup(reader, directory, file, columns, cached_groups) as lookup:
                for matches in lookup.find(keys.slice(first, last)):
                    yield FileMatches(file=file, positions=matches.positions, keys=matches.keys + first, rows=matches.rows)


@dataclass(frozen=True, slots=True)
class SmallFile:
    """All rows of a data file, with ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and the columns that were asked for; and their keys."""

    rows: pa.RecordBatch
    keys: SortedKeys


def _read_small_file(reader: SplitReader, directory: str, file: DataFileMeta, columns: Sequence[str]) -> SmallFile | None:
    fields = reader.schema.key_fields
    names = [*columns, *(field.name for field in fields if field.name not in columns)]
    with closing(cast(Generator[pa.RecordBatch], reader.file_rows(directory, file, names, (SEQUENCE_COLUMN, KIND_COLUMN)))) as read:
        batches = list(islice(read, 2))
    if len(batches) != 1:
        # Of many bytes, decoded.
        return None
    (batch,) = batches
    schema = _rows_schema(reader, columns)
    rows = pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)
    key_rows = batch.select([field.name for field in fields])
    plain = plain_columns(key_rows.columns, [field.type.nullable for field in fields])
    if batch.num_rows > 1 and not WindowKeys([plain]).ascending():
        raise _unsorted(f"{directory}/{file.file_name}")
    return SmallFile(rows, SortedKeys(key_rows, plain))


class SmallFiles:
    """Keeps the small files that were read last: those of a bucket are looked up again with each of its changes. A data file never
    changes, and its name is never used again. Threads may share it."""

    def __init__(self) -> None:
        self._read: RecentlyUsed[SmallFile | None] = RecentlyUsed(_size_of, most=_MOST_SMALL_FILES, most_weight=_MOST_SMALL_BYTES)

    def read(self, reader: SplitReader, directory: str, file: DataFileMeta, columns: Sequence[str]) -> SmallFile | None:
        """A data file read at once, keys and columns together; None for a large one. Raises FormatError, NotFoundError."""
        if file.row_count > _SMALL_ROWS or file.file_size > _SMALL_BYTES:
            return None
        name = place_of(reader, directory), name_of(reader, file), tuple(columns)
        return self._read.find(name, lambda: _read_small_file(reader, directory, file, columns))


def _size_of(small: SmallFile | None) -> int:
    return 0 if small is None else int(small.rows.nbytes)


def keys_in_range(fields: Sequence[Field], file: DataFileMeta, keys: SortedKeys) -> tuple[int, int]:
    """The first of the keys, of these columns, that may lie in a file, and the place behind the last one."""
    return _range_of(keys.plain, row_bound(file.min_key, fields), row_bound(file.max_key, fields)) if len(keys) else (0, 0)


def in_portions(
    find: Callable[[SortedKeys], Iterator[FileMatches]], windows: Iterable[SortedKeys], most_bytes: int
) -> Iterator[tuple[SortedKeys, list[FileMatches]]]:
    """The keys of the windows in portions, each with all that ``find`` finds: so few that its rows take ``most_bytes``, or one key.

    How large rows are shows when they are found; the next portions are as large as the ones before would allow.
    """
    count: int | None = None
    for keys in windows:
        start = 0
        while start < len(keys):
            part = keys.slice(start, min(start + (count or len(keys)), len(keys)))
            hits, size = _gathered(find(part), most_bytes if len(part) > 1 else None)
            if len(part) > 1 and size > most_bytes:
                count = len(part) // 2
                continue
            yield part, hits
            start += len(part)
            if count is not None and size * _GROWTH < most_bytes:
                count *= 2


def _gathered(hits: Iterator[FileMatches], most_bytes: int | None) -> tuple[list[FileMatches], int]:
    """The rows gathered and their bytes: all of them, or the first that are more than ``most_bytes``."""
    rebatched: list[FileMatches] = []
    size = 0
    with closing(cast(Generator[FileMatches], hits)):
        for hit in hits:
            rebatched.append(hit)
            size += 0 if hit.rows is None else hit.rows.nbytes
            if most_bytes is not None and size > most_bytes:
                break
    return rebatched, size


def match_sorted(left: Sequence[PlainColumn], right: Sequence[PlainColumn]) -> tuple[Positions, Positions]:
    """The places (in ``left``, in ``right``) of the keys that two strictly ascending sequences share, ascending."""
    if not len(left[0]) or not len(right[0]):
        return _none(), _none()
    window = WindowKeys([list(left), list(right)])
    if (arrays := window.arrays) is not None:
        return _match_numbers(*arrays)
    order, repeats = window.in_order.order, np.flatnonzero(window.in_order.repeats)
    return order[repeats], order[repeats + 1] - window.bounds[1]


class _Lookup:
    """One data file, searched from its first row group to its last. It is opened only for rows that are not kept."""

    def __init__(
        self,
        reader: SplitReader,
        directory: str,
        file: DataFileMeta,
        columns: Sequence[str] | None,
        cached_groups: KeptGroups | None,
    ) -> None:
        self._reader, self._file, self._kept = reader, file, cached_groups
        self._path = f"{directory}/{file.file_name}"
        self._key_fields = reader.schema.key_fields
        self._key_names = [field.name for field in self._key_fields]
        self._columns = None if columns is None else tuple(columns)
        self._rows_schema = _rows_schema(reader, columns or ())
        self._opened: DataFileReader | None = None

    def __enter__(self) -> "_Lookup":
        return self

    def __exit__(self, *error: object) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _source(self) -> DataFileReader:
        if self._opened is None:
            self._opened = self._reader.open_file(self._path, self._file)
        return self._opened

    @lazy
    def _keys(self) -> Projection:
        return self._reader.projection(self._source, self._file, self._key_names, (), self._path)

    @lazy
    def _values(self) -> Projection:
        # Key columns were read to find the rows: their values are at hand.
        value_names = [name for name in self._columns or () if name not in self._key_names]
        return self._reader.projection(self._source, self._file, value_names, (SEQUENCE_COLUMN, KIND_COLUMN), self._path)

    @lazy
    def _layout(self) -> tuple[RowGroup, ...]:
        cached_layout = () if self._kept is None else self._kept.layout()
        return cached_layout or self._source.row_groups

    def find(self, keys: SortedKeys) -> Iterator[FileMatches]:
        start, before = 0, None
        for group in self._layout:
            cached_rows = None if self._kept is None else self._kept.get(group.index)
            if cached_rows is not None:
                yield from self._find_in_kept(keys, cached_rows, start)
                before = None
            else:
                first, last = self._keys_in_group(keys, group)
                if first < last:
                    hits, before = self._hits_in_group(keys.slice(first, last), group, before)
                    for f in self._rows_of_hits(hits, group):
                        yield FileMatches(file=self._file, positions=f.positions + start, keys=f.keys + first, rows=f.rows)
            start += group.row_count

    def _find_in_kept(self, keys: SortedKeys, rows: pa.RecordBatch, start: int) -> Iterator[FileMatches]:
        """The hits of a row group that was decoded, and found to be sorted, before."""
        plain = plain_columns([rows.column(name) for name in self._key_names], [f.type.nullable for f in self._key_fields])
        first, last = _range_of(keys.plain, key_at(plain, 0), key_at(plain, rows.num_rows - 1))
        at_key, at_row = match_sorted(slice_plain(keys.plain, first, last), plain)
        if len(at_row):
            matching_rows = _take(rows.select(self._rows_schema.names), at_row)
            yield FileMatches(file=self._file, positions=at_row + start, keys=at_key + first, rows=matching_rows)

    def _hits_in_group(self, keys: SortedKeys, group: RowGroup, before: Key | None) -> tuple[list[_Hits], Key | None]:
        """The keys found in one row group, batch by batch; ``before`` is the last key that was seen."""
        hits: list[_Hits] = []
        row = 0
        for batch in self._source.read(self._keys.file_columns, [group.index]):
            columns = self._keys.apply(batch)
            plain = plain_columns(columns.columns, [field.type.nullable for field in self._key_fields])
            before = self._check_sorted(plain, before)
            low, high = _range_of(keys.plain, key_at(plain, 0), before)
            at_key, at_row = match_sorted(slice_plain(keys.plain, low, high), plain)
            if len(at_row):
                key_rows = columns.slice(0, 0) if self._columns is None else _take(columns, at_row)
                hits.append(_Hits(at_row + row, at_key + low, key_rows))
            row += batch.num_rows
        return hits, before

    def _rows_of_hits(self, hits: Sequence[_Hits], group: RowGroup) -> Iterator[FileMatches]:
        """The hits in one row group, with their rows if they are asked for; positions count from the group's first row."""
        if not hits:
            return
        if self._columns is None:
            yield from (FileMatches(file=self._file, positions=hit.positions, keys=hit.keys) for hit in hits)
            return
        positions = np.concatenate([hit.positions for hit in hits])
        keys = np.concatenate([hit.keys for hit in hits])
        if self._kept is not None and self._kept.fills and self._is_small(group):
            whole = self._whole_group(group)
            self._kept.put(group.index, whole, self._layout)
            matching_rows = _take(whole.select(self._rows_schema.names), positions)
            yield FileMatches(file=self._file, positions=positions, keys=keys, rows=matching_rows)
            return
        key_columns = pa.Table.from_batches([hit.key_columns for hit in hits])
        row = start = 0
        for batch in self._source.read(self._values.file_columns, [group.index], side_by_side=True):
            stop = start + int(np.searchsorted(positions[start:], row + batch.num_rows))
            if start < stop:
                values = self._values.apply(_take(batch, positions[start:stop] - row))
                of_keys = _one_batch(key_columns.slice(start, stop - start))
                arrays = [(of_keys if name in self._key_names else values).column(name) for name in self._rows_schema.names]
                rows = pa.RecordBatch.from_arrays(arrays, schema=self._rows_schema)
                yield FileMatches(file=self._file, positions=positions[start:stop], keys=keys[start:stop], rows=rows)
            row, start = row + batch.num_rows, stop

    def _is_small(self, group: RowGroup) -> bool:
        """True if a row group may be decoded as a whole. Others write larger ones; those are not for the memory."""
        names = {*self._keys.file_columns, *self._values.file_columns}
        most = self._reader.bounds.window_bytes
        size = self._source.decoded_bytes(group.index, sorted(names), most)
        return size is not None and size <= most

    def _whole_group(self, group: RowGroup) -> pa.RecordBatch:
        """The rows of a row group: the columns that lookups give back, and the key."""
        keys, values = (
            pa.Table.from_batches(
                [part.apply(batch) for batch in self._source.read(part.file_columns, [group.index], side_by_side=True)]
            )
            for part in (self._keys, self._values)
        )
        schema = self._rows_schema
        columns = [(keys if name in self._key_names else values).column(name) for name in schema.names]
        missing_keys = [name for name in self._key_names if name not in schema.names]
        fields = [*schema, *(keys.schema.field(name) for name in missing_keys)]
        return _one_batch(pa.Table.from_arrays([*columns, *(keys.column(name) for name in missing_keys)], schema=pa.schema(fields)))

    def _keys_in_group(self, keys: SortedKeys, group: RowGroup) -> tuple[int, int]:
        """The range of the keys that the row group's statistics allow; all of them where these say nothing."""
        name, field = self._keys.file_columns[0], self._key_fields[0]
        bounds = group.bounds.get(name)
        stored_type = self._source.schema.field(name).type
        if bounds is None or field.type.nullable or is_float(field.type) or not stored_type.equals(to_arrow_type(field.type)):
            return 0, len(keys)
        try:
            least, greatest = (plain_columns([pa.array([bound], type=stored_type)], [False]) for bound in bounds)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            # Statistics of other engines that Arrow can read but not write down prune nothing.
            return 0, len(keys)
        leading = keys.plain[: len(least)]
        return _range_of(leading, key_at(least, 0), key_at(greatest, 0))

    def _check_sorted(self, plain: list[PlainColumn], before: Key | None) -> Key:
        if (before is not None and before >= key_at(plain, 0)) or not WindowKeys([plain]).ascending():
            raise _unsorted(self._path)
        return key_at(plain, len(plain[0]) - 1)


def _rows_schema(reader: SplitReader, columns: Sequence[str]) -> pa.Schema:
    """The same for all files: what an old one does not have is null, whatever the table says of the column today."""
    table = reader.schema.arrow_schema
    system = [pa.field(SEQUENCE_COLUMN, pa.int64(), nullable=False), pa.field(KIND_COLUMN, pa.int8(), nullable=False)]
    return pa.schema([*system, *(table.field(name) for name in columns)])


def _unsorted(path: str) -> FormatError:
    return FormatError(
        f"data file {path} holds rows that are not in strictly ascending key order: a key looked up in it may "
        "be missed; find the file with `tablestore verify` and rewrite it",
        kind="unsorted",
    )


def _range_of(plain: Sequence[PlainColumn], least: Key, greatest: Key) -> tuple[int, int]:
    """The rows of sorted keys from ``least`` to ``greatest``, both included."""
    rows = len(plain[0])
    first = rows_up_to(plain, least, 0, rows, include_equal=False)
    return first, rows_up_to(plain, greatest, first, rows)


def _match_numbers(left: npt.NDArray[np.integer], right: npt.NDArray[np.integer]) -> tuple[Positions, Positions]:
    """Shared values of two ascending arrays: the shorter one is searched in the longer one."""
    if len(left) > len(right):
        at_right, at_left = _match_numbers(right, left)
        return at_left, at_right
    places = np.searchsorted(right, left)
    places[places == len(right)] = 0
    hits = np.flatnonzero(right[places] == left)
    return hits, places[hits]


def _take(batch: pa.RecordBatch, places: Positions) -> pa.RecordBatch:
    if len(places) == batch.num_rows:
        return batch
    return _one_batch(take_rows(pa.Table.from_batches([batch]), places))


def _one_batch(rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return rows
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise InvalidInputError(f"{rows.num_rows} rows of {rows.nbytes:,} bytes are too many at once; take fewer")
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


def _none() -> Positions:
    return np.zeros(0, dtype=np.int64)
