"""Sums up the files that a manifest adds, one row a partition and bucket, so that counts and plans decode no column of entries.

    partition, bucket, total_buckets            of all files of the row
    files                                       so many follow one another in the sidecar, row after row
    rows_high, rows_low                         their rows: ``rows_high * 2**32 + rows_low``
    least_level, most_level
    min_sequence_number, max_sequence_number
    is_plain, never_retracts                    true of each of them (see :mod:`tablestore.format.manifest.derivedcolumns`)
    is_apart                                    the bounds of no two of them touch
    low …, high …                               the bounds of the column by which they are in order, null where one is unknown

They are a part of the sidecar's footer, under :data:`SUMS_KEY`, and so of what its seal is over: a number of 4 bytes and compressed
Arrow IPC of that length, as base64. There are none where a manifest deletes files, or has few files in each bucket.
"""

import base64
import binascii

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError
from tablestore.format.manifest.blockcolumns import IrregularBlocks
from tablestore.format.manifest.derivedcolumns import IS_PLAIN, NEVER_RETRACTS
from tablestore.format.manifest.entrycolumns import BoundedColumn, Bounds, EntryColumns, check_columns
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.types.arrays import NO, Mask, Places, begins, mask_array, mask_of, numbers_of, places_array

SUMS_KEY = b"tablestore.sums"
LOW_BITS = 32
"""Bits of the low part of a number of rows, so that sums of them do not overflow."""

_PARTITIONS = pa.dictionary(pa.int32(), pa.binary())
_STORED = pa.schema(
    [
        pa.field("partition", pa.binary()),
        *(pa.field(name, pa.int32()) for name in ("bucket", "total_buckets", "files")),
        *(pa.field(name, pa.int64()) for name in ("rows_high", "rows_low", "least_level", "most_level")),
        *(pa.field(name, pa.int64()) for name in ("min_sequence_number", "max_sequence_number")),
        *(pa.field(name, pa.bool_()) for name in (IS_PLAIN, NEVER_RETRACTS, "is_apart")),
    ]
)
_CODEC, _LEVEL = "zstd", 3
_LENGTH_BYTES = 4
# With fewer files in each row, the columns of the files are hardly more.
_FEWEST_FILES_OF_A_ROW = 4


def sum_up(entries: EntryColumns, bounds: tuple[BoundedColumn, Bounds] | None) -> EntryColumns | None:
    """The sums of ADDs that lie by partition, bucket and the low of ``bounds``; None for other entries, and where they would say
    little."""
    if not len(entries) or (entries.numbers("kind") != EntryKind.ADD).any():
        return None
    buckets, totals = entries.numbers("bucket"), entries.numbers("total_buckets")
    is_first = begins(numbers_of(entries.column("partition").indices)) | begins(buckets)
    starts = np.flatnonzero(is_first)
    if len(starts) * _FEWEST_FILES_OF_A_ROW > len(entries):
        return None
    if (begins(totals) & ~is_first).any():
        return None
    firsts = places_array(starts)
    rows, levels = entries.numbers("row_count"), entries.numbers("level")
    numbers = {
        "files": np.diff(np.append(starts, len(entries))),
        "rows_high": np.add.reduceat(rows >> LOW_BITS, starts),
        "rows_low": np.add.reduceat(rows & ((1 << LOW_BITS) - 1), starts),
        "least_level": np.minimum.reduceat(levels, starts),
        "most_level": np.maximum.reduceat(levels, starts),
        "min_sequence_number": np.minimum.reduceat(entries.numbers("min_sequence_number"), starts),
        "max_sequence_number": np.maximum.reduceat(entries.numbers("max_sequence_number"), starts),
    }
    masks = {name: mask_of(entries.column(name)) for name in (IS_PLAIN, NEVER_RETRACTS)}
    masks["is_apart"] = np.zeros(len(entries), np.bool_)
    more: dict[str, pa.Array] = {}
    if bounds is not None:
        column, (low, high) = bounds
        masks["is_apart"] = are_apart(low, high, is_first)
        more = _outer_bounds(column, low, high, starts)
    columns = {
        **{name: entries.column(name).take(firsts) for name in ("partition", "bucket", "total_buckets")},
        **{name: places_array(values) for name, values in numbers.items()},
        **{name: mask_array(np.logical_and.reduceat(mask, starts)) for name, mask in masks.items()},
    }
    fixed = [columns[field.name].cast(field.type) for field in _STORED]
    return _as_entries(pa.Table.from_arrays([*fixed, *more.values()], names=[*_STORED.names, *more]))


def are_apart(low: pa.Array, high: pa.Array, is_first: Mask) -> Mask:
    """True for each of ordered bounds that is known and certainly touches none before it in its group."""
    is_apart = mask_of(pc.and_(low.is_valid(), high.is_valid()))
    is_behind = mask_of(pc.fill_null(pc.greater(low.slice(1), high.slice(0, max(len(high) - 1, 0))), NO))
    is_apart[1:] &= is_behind | is_first[1:]
    return is_apart


def file_mask(sums: EntryColumns, mask: Mask) -> Mask:
    """True for each file of the rows that ``mask`` is true for, in the order of the sidecar."""
    files: Mask = np.repeat(mask, sums.numbers("files"))
    return files


def encode_sums(sums: EntryColumns) -> bytes:
    """The sums as the footer has them."""
    stored = sums.table.set_column(0, _STORED.field(0), sums.column("partition").cast(pa.binary()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, stored.schema) as writer:
        writer.write_table(stored)
    data = sink.getvalue()
    compressed: bytes = pa.Codec(_CODEC, _LEVEL).compress(data, asbytes=True)
    return base64.b64encode(data.size.to_bytes(_LENGTH_BYTES, "little") + compressed)


def decode_sums(encoded: bytes, files: int, most_bytes: int) -> EntryColumns:
    """The sums of so many files. Raises FormatError for others, and for more than ``most_bytes``."""
    try:
        data = base64.b64decode(encoded, validate=True)
        length = int.from_bytes(data[:_LENGTH_BYTES], "little")
        if length > most_bytes:
            raise FormatError(f"sums of a manifest: expected at most {most_bytes} bytes, found {length}")
        stream = pa.ipc.open_stream(pa.Codec(_CODEC).decompress(pa.py_buffer(data[_LENGTH_BYTES:]), length))
        table = stream.read_all().combine_chunks()
        table.validate(full=True)
        is_known = list(table.schema)[: len(_STORED)] == list(_STORED) and len(table) > 0
        is_known = is_known and not any(table.column(name).null_count for name in _STORED.names)
        if is_known:
            sums = _as_entries(table)
            check_columns(sums.table)
            counts = sums.numbers("files")
            if (counts > 0).all() and int(counts.sum()) == files:
                return sums
    except (pa.ArrowException, OSError, binascii.Error, IrregularBlocks, ValueError) as error:
        raise FormatError(f"sums of a manifest: {error}") from error
    raise FormatError(f"sums of a manifest: expected those of {files} files, found others")


def _as_entries(table: pa.Table) -> EntryColumns:
    partitions = table.column(0).combine_chunks().dictionary_encode()
    if isinstance(partitions, pa.ChunkedArray):
        partitions = partitions.combine_chunks()
    return EntryColumns(table.set_column(0, pa.field("partition", _PARTITIONS), partitions.cast(_PARTITIONS)))


def _outer_bounds(column: BoundedColumn, low: pa.Array, high: pa.Array, starts: Places) -> dict[str, pa.Array]:
    """The least low and the greatest high of each group; null where one of a file is unknown."""
    counts = np.diff(np.append(starts, len(low)))
    group = np.repeat(np.arange(len(starts)), counts)
    ends = starts + counts - 1
    is_known = np.logical_and.reduceat(mask_of(pc.and_(low.is_valid(), high.is_valid())), starts)
    outer = {}
    for end, values, places in (("low", low, starts), ("high", high, ends)):
        ranks = numbers_of(pc.rank(values, sort_keys="ascending", tiebreaker="first")).astype(np.int64)
        ordered = np.lexsort((ranks, group))
        outermost = values.take(places_array(ordered[places]))
        outer[column.stored(end)] = pc.if_else(mask_array(is_known), outermost, pa.nulls(1, outermost.type)[0])
    return outer
