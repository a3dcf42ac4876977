"""Puts splits whose files are columns into a task, without an object a file in the process that plans.

    Arrow IPC of the files, in order   the stored columns, and three of truth values: where a split, a section, a run begins
    deletion vectors                   of those that have one, as JSON

Memory: the columns of some ten thousand files, and of all about 130 bytes each.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa

from tablestore.distributed.taskjson import bytes_to_text, text_to_bytes
from tablestore.errors import FormatError
from tablestore.format.manifest.blockcolumns import IrregularBlocks
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns, Places, check_columns
from tablestore.store.scan.splits import FILES_LOADED, ColumnSplits, DeletionFile, Split, first_of_packs
from tablestore.types.arrays import Mask, mask_array, mask_of

MOST_TASKS = 10_000
"""Tasks of a plan: more of them would cost the process that plans more than they save. They are larger then."""

_STARTS = ("begins_split", "begins_section", "begins_run")
_FIELDS = [field.with_type(pa.binary()) if pa.types.is_dictionary(field.type) else field for field in ENTRY_SCHEMA]
_SCHEMA = pa.schema([*_FIELDS, *(pa.field(name, pa.bool_()) for name in _STARTS)])
_CODEC = "zstd"


class EncodedSplits(Sequence[Split]):
    """The splits of a task as the bytes that it gets; they are decoded when they are taken."""

    def __init__(self, splits: ColumnSplits) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, _SCHEMA) as writer:
            writer.write_table(_encodable(splits))
        data = sink.getvalue()
        self._count, self._bytes = len(splits), data.size
        self._files: bytes = pa.Codec(_CODEC, 1).compress(data, asbytes=True)
        self._vectors = splits.vectors()

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
        """A part of a task."""
        vectors = [[name, vector.index_file, vector.offset, vector.length] for name, vector in sorted(self._vectors.items())]
        return {"files": bytes_to_text(self._files), "bytes": self._bytes, "deletions": vectors}

    @cached_property
    def _decoded(self) -> ColumnSplits:
        return decode_columns("task", self.content)


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
    encoded: list[EncodedSplits] = []
    # The files of neighbouring tasks are loaded together.
    loads = first_of_packs(files, FILES_LOADED, np.full(len(files), len(files))).tolist()
    starts = splits.split_starts[firsts[loads]].tolist()
    turns = zip(loads, [*loads[1:], len(files)], splits.files.loaded_in_turn(starts), strict=True)
    for start, stop, loaded in turns:
        base = int(firsts[start])
        some = splits[base : ends[stop - 1]].of(loaded)
        some = some.of(EntryColumns(_encodable(some)))
        places = zip(firsts[start:stop].tolist(), ends[start:stop], strict=True)
        encoded.extend(EncodedSplits(some[first - base : last - base]) for first, last in places)
    return tuple(encoded)


def decode_columns(kind: str, encoded: Mapping[str, Any]) -> ColumnSplits:
    """The splits of :attr:`EncodedSplits.content`. Raises FormatError."""
    try:
        data = pa.Codec(_CODEC).decompress(text_to_bytes(kind, encoded["files"]), encoded["bytes"])
        table = pa.ipc.open_stream(data).read_all().combine_chunks()
        if table.schema != _SCHEMA:
            raise FormatError(f"not a {kind}: its files have the columns {', '.join(table.schema.names)}")
        table.validate(full=True)
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
    if table.schema == _SCHEMA:
        return table
    starts = (splits.split_starts, splits.section_starts, splits.run_starts)
    marks = [mask_array(_marked(places, table.num_rows)) for places in starts]
    columns = [column.cast(field.type) for column, field in zip(table.columns, _FIELDS, strict=True)]
    return pa.Table.from_arrays([*columns, *marks], schema=_SCHEMA)


def _begin(outer: Places, inner: Places) -> bool:
    """True if something inner begins wherever something outer does."""
    return len(outer) > 0 and bool(np.isin(outer, inner).all())


def _marked(starts: Places, rows: int) -> Mask:
    mask = np.zeros(rows, np.bool_)
    mask[starts] = True
    return mask
