"""Puts splits whose files are columns into a task, without an object a file in the process that plans.

    Arrow IPC of the files, in order   the stored columns that have values, and three of truth values: where a split, a section, a
                                       run begins
    deletion vectors                   of those that have one, as JSON

Memory: the columns of three times 65,536 files, and of all about 130 bytes each; where neighbouring splits lie in all manifests,
as much again of those that wait.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError
from tablestore.format.manifest.blockcolumns import IrregularBlocks
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns, Places, check_columns
from tablestore.inorder import in_order
from tablestore.store.scan.splits import ColumnSplits, DeletionFile, Split, first_of_packs
from tablestore.types.arrays import Mask, mask_array, mask_of, one_chunk, text_array

MOST_TASKS = 10_000
"""Tasks of a plan: more of them would cost the process that plans more than they save. They are larger then."""

FILES_LOADED = 65_536
"""So many files are put into tasks at a time."""

_STARTS = ("begins_split", "begins_section", "begins_run")
_FIELDS = [field.with_type(pa.binary()) if pa.types.is_dictionary(field.type) else field for field in ENTRY_SCHEMA]
_SCHEMA = pa.schema([*_FIELDS, *(pa.field(name, pa.bool_()) for name in _STARTS)])
_TYPES = [(field.name, field.type) for field in _SCHEMA]
_CODEC = "zstd"
_THREADS = 2


class EncodedSplits(Sequence[Split]):
    """So many splits of a task as the bytes that it gets; they are decoded when they are taken. ``columns``: those of the files
    that have values."""

    def __init__(self, files: pa.RecordBatch, count: int, vectors: Mapping[str, DeletionFile]) -> None:
        data = files.serialize()
        self._count, self._bytes, self._columns = count, data.size, files.schema.names
        self._files: bytes = pa.Codec(_CODEC, 1).compress(data, asbytes=True)
        self._vectors = vectors

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Split: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Split]: ...

    def __getitem__(self, place: int | slice) -> Split | Sequence[Split]:
        return self._decoded[place]

    @property
    def content(self) -> dict[str, Any]:
        """A part of a task, beside :attr:`files`."""
        vectors = [[name, vector.index_file, vector.offset, vector.length] for name, vector in sorted(self._vectors.items())]
        return {"bytes": self._bytes, "columns": self._columns, "deletions": vectors}

    @property
    def files(self) -> bytes:
        """The files, compressed."""
        return self._files

    @cached_property
    def _decoded(self) -> ColumnSplits:
        return decode_columns("task", self.content, self._files)


def encoded_splits(splits: ColumnSplits) -> EncodedSplits:
    """Splits as those of one task."""
    return EncodedSplits(_lean(_encodable(splits)), len(splits), splits.vectors())


def pack_columns(splits: ColumnSplits, *, task_bytes: int, count: int) -> tuple[Sequence[Split], ...]:
    """Neighbouring splits put together to about ``count`` even tasks, none above ``task_bytes`` unless it is a single split, or
    there were more than :data:`MOST_TASKS`."""
    weights = splits.weights
    total = int(weights.sum())
    most = max(min(-(-total // max(count, 1)), task_bytes), -(-total // MOST_TASKS))
    firsts = first_of_packs(weights, most, np.full(len(weights), len(weights)))
    if not len(firsts):
        return ()
    ends = [*firsts[1:].tolist(), len(splits)]
    files = np.diff(np.append(splits.split_starts[firsts], len(splits.files)))
    # The files of neighbouring tasks are loaded together.
    loads = first_of_packs(files, FILES_LOADED, np.full(len(files), len(files))).tolist()
    turns = splits.files.loads_in_turn(splits.split_starts[firsts[loads]].tolist())

    def encoded(tasks: tuple[tuple[int, int], Callable[[], EntryColumns]]) -> list[EncodedSplits]:
        """Tasks whose files are loaded."""
        (start, stop), load = tasks
        base, loaded = int(firsts[start]), load()
        some = splits[base : ends[stop - 1]].of(loaded)
        batch, vectors = _lean(_encodable(some)), some.vectors()
        begins = [*some.split_starts.tolist(), len(loaded)]
        one_by_one: list[EncodedSplits] = []
        for first, last in zip((firsts[start:stop] - base).tolist(), ends[start:stop], strict=True):
            files = batch.slice(begins[first], begins[last - base] - begins[first])
            one_by_one.append(EncodedSplits(files, last - base - first, _vectors_of(files, vectors)))
        return one_by_one

    bounds = pairwise([*loads, len(files)])
    return tuple(chain.from_iterable(in_order(encoded, zip(bounds, turns, strict=True), threads=_THREADS)))


def decode_columns(kind: str, encoded: Mapping[str, Any], files: bytes) -> ColumnSplits:
    """The splits of :attr:`EncodedSplits.content` and its files. Raises FormatError."""
    try:
        data = pa.Codec(_CODEC).decompress(files, encoded["bytes"])
        names = encoded["columns"]
        if len({*names}) < len(names) or not {*names} <= {*_SCHEMA.names}:
            raise FormatError(f"not a {kind}: its files have the columns {', '.join(map(str, names))}")
        batch = pa.ipc.read_record_batch(data, pa.schema([_SCHEMA.field(name) for name in names]))
        batch.validate(full=True)
        table = pa.Table.from_arrays(
            [batch.column(name) if name in names else pa.nulls(len(batch), type_) for name, type_ in _TYPES], schema=_SCHEMA
        )
        splits, sections, runs = (np.flatnonzero(mask_of(EntryColumns(table).column(name))) for name in _STARTS)
        columns = [table.column(field.name) for field in ENTRY_SCHEMA]
        columns = [
            column.dictionary_encode() if pa.types.is_dictionary(field.type) else column
            for column, field in zip(columns, ENTRY_SCHEMA, strict=True)
        ]
        files = pa.Table.from_arrays(columns, schema=ENTRY_SCHEMA)
        check_columns(files)
        vectors = {
            name: DeletionFile(index_file=index_file, offset=offset, length=length)
            for name, index_file, offset, length in encoded["deletions"]
        }
    except (pa.ArrowException, OSError, IrregularBlocks, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"not a {kind}: {error}") from error
    if len(files) and not (_begin(splits, sections) and _begin(sections, runs) and not runs[0] and not splits[0]):
        raise FormatError(f"not a {kind}: its splits do not begin where their files do")
    return ColumnSplits(EntryColumns(files), splits=splits, sections=sections, runs=runs, vectors=vectors)


def _encodable(splits: ColumnSplits) -> pa.Table:
    """The files of splits with the columns of a task."""
    table = splits.files.loaded().table
    starts = (splits.split_starts, splits.section_starts, splits.run_starts)
    marks = [mask_array(_marked(places, table.num_rows)) for places in starts]
    columns = [column.cast(field.type) for column, field in zip(table.columns, _FIELDS, strict=True)]
    return pa.Table.from_arrays([*columns, *marks], schema=_SCHEMA)


def _lean(table: pa.Table) -> pa.RecordBatch:
    """The columns that have values, as one batch."""
    names = [name for name in table.column_names if table.column(name).null_count < len(table)]
    columns = [one_chunk(table.column(name)) for name in names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _vectors_of(files: pa.RecordBatch, vectors: Mapping[str, DeletionFile]) -> Mapping[str, DeletionFile]:
    if not vectors:
        return {}
    names = files.column("file_name")
    return {name: vectors[name] for name in names.filter(pc.is_in(names, text_array(list(vectors)))).to_pylist()}


def _begin(outer: Places, inner: Places) -> bool:
    """True if something inner begins wherever something outer does."""
    return len(outer) > 0 and bool(np.isin(outer, inner).all())


def _marked(starts: Places, rows: int) -> Mask:
    mask = np.zeros(rows, np.bool_)
    mask[starts] = True
    return mask
