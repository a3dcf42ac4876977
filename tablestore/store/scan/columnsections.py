"""Puts live files that are columns into sections, runs and splits, as :mod:`tablestore.lsm.run` does with objects.

    partition, bucket            the groups, in order
    first column of the key      files that no other one of the group touches are a section each, in its order
    whole keys                   of the others alone, file by file: mostly files that were not compacted yet

Where every file stands alone the order is that of sequence numbers. Memory: the columns, once more the largest one of them, and
about 100 bytes a file.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.derivedcolumns import IS_PLAIN
from tablestore.format.manifest.entrycolumns import (
    ENTRY_SCHEMA,
    MANIFEST,
    NO_ENTRIES,
    ROW,
    EntryColumns,
    LateColumns,
    LoadRows,
    Places,
)
from tablestore.format.rowcolumns import has_order
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import key_intervals
from tablestore.store.entrybounds import KeyBounds
from tablestore.store.scan.splits import OPEN_COST_BYTES, ColumnSplits, DeletionFile, check_readable, first_of_packs
from tablestore.store.settings import TableSettings
from tablestore.types.arrays import Mask, begins, mask_of, numbers_of, places_array
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema

# Of the table of a plan. Texts of a column may have more than 2 GiB together, those of a chunk may not.
_CHUNK_ROWS = 65_536
_MOST_TEXT = (1 << 31) - (1 << 20)
_SPAN = 1 << 62
_OF_OVERLAP = ("min_sequence_number", "file_name", "min_key", "max_key")
_FEW = ("partition", "bucket", "total_buckets", "file_size", "row_count", "min_sequence_number", MANIFEST, ROW)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """Files that are read: their ``columns`` by name, with the bounds of the first column of their keys, null where unknown (None:
    no order is known), and which are ``plain`` (see :mod:`derivedcolumns`)."""

    columns: dict[str, pa.Array]
    low: pa.Array | None
    high: pa.Array | None
    plain: Mask


class PlannedColumns:
    """The columns of files that a plan needs: all that are stored, or few, and the others are loaded (``is_late``).
    ``wanted``: these files alone. ``has_vectors``: some of them may have deletion vectors."""

    def __init__(
        self,
        schema: TableSchema,
        settings: TableSettings,
        wanted: Callable[[EntryColumns], Mask] | None,
        *,
        is_late: bool,
        has_vectors: bool,
    ) -> None:
        self._schema, self._settings, self._wanted = schema, settings, wanted
        few = (*_FEW, "file_name") if has_vectors else _FEW
        self._columns = few if is_late else tuple(ENTRY_SCHEMA.names)
        self._is_ordered = not settings.stands_alone and has_order(schema.key_fields[0].type)

    def names(self, entries: EntryColumns) -> tuple[str, ...]:
        """The columns that are read of entries."""
        bounds = KeyBounds(entries, self._schema).columns(self._schema.key_fields[0].name) if self._is_ordered else ()
        return tuple(dict.fromkeys((*self._columns, "level", IS_PLAIN, *bounds)))

    def part(self, entries: EntryColumns) -> FilePart:
        """The columns of some files that a plan needs."""
        is_read = entries.numbers("bucket") != POSTPONE_BUCKET
        if self._settings.skips_level_zero:
            is_read &= entries.numbers("level") != 0
        if self._wanted is not None:
            is_read &= self._wanted(entries)
        if not is_read.all():
            entries = entries.take(np.flatnonzero(is_read))
        low = high = None
        if self._is_ordered:
            low, high = KeyBounds(entries, self._schema).of(self._schema.key_fields[0].name)
        columns = {name: entries.column(name) for name in self._columns}
        return FilePart(columns=columns, low=low, high=high, plain=mask_of(entries.column(IS_PLAIN)))


def column_splits(
    parts: Sequence[FilePart],
    schema: TableSchema,
    settings: TableSettings,
    *,
    keeps: Callable[[bytes, int, int], bool],
    split_bytes: int,
    vectors: Mapping[str, DeletionFile],
    load: LoadRows,
) -> ColumnSplits:
    """The splits of these files, of which no more is kept than they need: the columns of ``parts`` are taken out of them.
    ``keeps``: whether a partition and bucket (of so many) is read at all. ``load``: where parts have few columns."""
    heads = _heads(parts)
    groups, which = heads.groups("partition", "bucket")
    totals = _firsts(heads.numbers("total_buckets"), which, len(groups))
    kept = np.array(
        [keeps(partition, bucket, total) for (partition, bucket), total in zip(groups, totals.tolist(), strict=True)], np.bool_
    )
    order, clusters = _ordered(parts, which, schema, settings, load)
    if not kept.all():
        is_kept = kept[which[order]] if len(kept) else np.zeros(0, np.bool_)
        order, clusters = order[is_kept], clusters[is_kept]
    group_of = which[order]
    runs = sections = np.flatnonzero(begins(clusters))
    if len(sections) < len(order):
        order, runs, sections = _merged(parts, order, sections, KeyOrder.of(schema.key_fields), load)
    files = _gathered(parts, order, load)
    if len(odd := np.flatnonzero(~np.concatenate([np.zeros(0, np.bool_), *(part.plain for part in parts)])[order])):
        _check_readable(files, odd)
    return packed(files, group_of, sections=sections, runs=runs, split_bytes=split_bytes, vectors=vectors)


def packed(
    files: EntryColumns,
    groups: Places,
    *,
    sections: Places,
    runs: Places,
    split_bytes: int,
    vectors: Mapping[str, DeletionFile],
) -> ColumnSplits:
    """Neighbouring sections of a group up to ``split_bytes`` together; a larger one alone."""
    if not len(sections):
        return ColumnSplits(files, splits=sections, sections=sections, runs=runs, vectors=vectors)
    costs = np.add.reduceat(np.maximum(files.numbers("file_size"), OPEN_COST_BYTES), sections)
    first = begins(groups[sections])
    ends = np.append(np.flatnonzero(first)[1:], len(sections))[np.cumsum(first) - 1]
    splits = sections[first_of_packs(costs, split_bytes, ends)]
    return ColumnSplits(files, splits=splits, sections=sections, runs=runs, vectors=vectors)


def _check_readable(files: EntryColumns, places: Places) -> None:
    some = files.take(places).select(("file_name", "write_cols", "external_path"))
    values = (some.column(name).to_pylist() for name in ("file_name", "write_cols", "external_path"))
    for name, write_cols, external_path in zip(*values, strict=True):
        check_readable(name, write_cols, external_path)


def _heads(parts: Sequence[FilePart]) -> EntryColumns:
    names = ("partition", "bucket", "total_buckets")
    tables = [pa.Table.from_arrays([part.columns[name] for name in names], names=names) for part in parts]
    table = pa.concat_tables([NO_ENTRIES.select(names), *tables])
    return EntryColumns(table.unify_dictionaries().combine_chunks())


def _firsts(values: Places, which: Places, groups: int) -> Places:
    """The value of the first row of each group."""
    firsts = np.zeros(groups, np.int64)
    # The last assignment stays where places repeat.
    firsts[which[::-1]] = values[::-1]
    return firsts


def _ordered(
    parts: Sequence[FilePart], which: Places, schema: TableSchema, settings: TableSettings, load: LoadRows
) -> tuple[Places, Places]:
    """The places of files in the order of the plan, and a number for each of these: the same for files that may have keys in
    common."""
    if settings.stands_alone:
        order = _by_sequence(parts, which, load)
        return order, np.arange(len(order))
    low, high = _bounds(parts, len(which))
    if low is None or high is None:
        order = np.argsort(which, kind="stable")
        return order, which[order]
    least = int(low.min(initial=0))
    span = int(high.max(initial=0)) - least + 2
    if span * (int(which.max(initial=0)) + 1) >= _SPAN:
        # As close as their order allows.
        low, high = np.split(np.unique(np.concatenate([low, high]), return_inverse=True)[1], 2)
        least, span = 0, int(high.max(initial=0)) + 2
    base = which * span - least
    low, high = base + low, base + high
    order = np.argsort(low, kind="stable")
    # The bounds of a later group are above those of the ones before.
    reach = np.maximum.accumulate(high[order])
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = low[order][1:] > reach[:-1]
    return order, np.cumsum(is_first)


def _bounds(parts: Sequence[FilePart], rows: int) -> tuple[Places | None, Places | None]:
    """The bounds of files as numbers of their order; None where none is known."""
    lows = [part.low for part in parts if part.low is not None]
    highs = [part.high for part in parts if part.high is not None]
    if not lows or len(lows) < len(parts) or any(bound.null_count for bound in (*lows, *highs)):
        return None, None
    if pa.types.is_integer(lows[0].type):
        return np.concatenate([numbers_of(low) for low in lows]), np.concatenate([numbers_of(high) for high in highs])
    # Ranks from 1.
    ranks = numbers_of(pc.rank(pa.chunked_array([*lows, *highs]), sort_keys="ascending", tiebreaker="dense")).astype(np.int64)
    return ranks[:rows], ranks[rows:]


def _by_sequence(parts: Sequence[FilePart], which: Places, load: LoadRows) -> Places:
    """The places by group, sequence number and name."""
    numbers = np.concatenate([np.zeros(0, np.int64), *(numbers_of(part.columns["min_sequence_number"]) for part in parts)])
    order = np.lexsort((numbers, which))
    same = np.zeros(len(order), np.bool_)
    same[1:] = (which[order][1:] == which[order][:-1]) & (numbers[order][1:] == numbers[order][:-1])
    tied = same | np.append(same[1:], False)
    if tied.any():
        places = order[tied]
        names = _some(parts, ("file_name",), places, load).column("file_name")
        keys = pa.Table.from_arrays([places_array(np.cumsum(~same)[tied]), names], names=["tie", "name"])
        order[tied] = places[numbers_of(pc.sort_indices(keys, [("tie", "ascending"), ("name", "ascending")])).astype(np.int64)]
    return order


def _merged(
    parts: Sequence[FilePart], order: Places, starts: Places, key_order: KeyOrder, load: LoadRows
) -> tuple[Places, Places, Places]:
    """The order of files in sections and runs by their whole keys, and where runs and sections begin. ``starts``: where files begin
    that no file before them touches."""
    ends = np.append(starts[1:], len(order))
    order = order.copy()
    is_run, is_section = np.zeros(len(order), np.bool_), np.zeros(len(order), np.bool_)
    is_run[starts] = is_section[starts] = True
    overlap = np.flatnonzero(ends - starts > 1)
    first = 0
    while first < len(overlap):
        last = int(np.searchsorted(ends[overlap], starts[overlap[first]] + _CHUNK_ROWS))
        some = overlap[first : max(last, first + 1)].tolist()
        first += len(some)
        places = np.concatenate([order[starts[number] : ends[number]] for number in some])
        values = _some(parts, _OF_OVERLAP, places, load)
        rows = iter(zip(*(values.column(name).to_pylist() for name in _OF_OVERLAP), places.tolist(), strict=True))
        for number in some:
            at = int(starts[number])
            here = list(islice(rows, int(ends[number]) - at))
            # From old to new, wherever the files were listed.
            here.sort(key=lambda row: row[:2])
            for runs in key_intervals([key for row in here for key in row[2:4]], [row[4] for row in here], key_order):
                is_section[at] = True
                for run in runs:
                    is_run[at] = True
                    order[at : at + len(run)] = run
                    at += len(run)
    return order, np.flatnonzero(is_run), np.flatnonzero(is_section)


def _some(parts: Sequence[FilePart], names: Sequence[str], places: Places, load: LoadRows) -> EntryColumns:
    """Columns of the files at some places."""
    is_late = any(name not in part.columns for part in parts for name in names)
    held = (MANIFEST, ROW) if is_late else names
    columns = [pa.chunked_array([part.columns[name] for part in parts]).take(places_array(places)) for name in held]
    table = pa.Table.from_arrays(columns, names=list(held))
    return (LateColumns(table, load) if is_late else EntryColumns(table)).select(names)


def _gathered(parts: Sequence[FilePart], order: Places, load: LoadRows) -> EntryColumns:
    """The files of all parts in an order, a column after the other, each taken out of the parts."""
    pieces = [places_array(order[start : start + _CHUNK_ROWS]) for start in range(0, len(order), _CHUNK_ROWS)]
    names = list(parts[0].columns) if parts else ENTRY_SCHEMA.names
    schema = pa.schema([ENTRY_SCHEMA.field(name) if name in ENTRY_SCHEMA.names else pa.field(name, pa.int64()) for name in names])
    columns = []
    for field in schema:
        chunks = [part.columns.pop(field.name) for part in parts]
        column = pa.chunked_array(chunks, field.type)
        if pa.types.is_dictionary(field.type):
            column = column.unify_dictionaries()
        elif sum(chunk.nbytes for chunk in chunks) > _MOST_TEXT and field.type in (pa.binary(), pa.string()):
            column = column.cast(pa.large_binary())
        del chunks
        whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        del column
        columns.append(pa.chunked_array([whole.take(piece).cast(field.type) for piece in pieces], field.type))
    table = pa.Table.from_arrays(columns, schema=schema)
    return LateColumns(table, load) if ROW in names else EntryColumns(table)
