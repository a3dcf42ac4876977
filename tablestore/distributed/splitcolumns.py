"""Puts splits whose files are columns into a task, without an object a file in the process that plans.

    Arrow IPC of the files, in order   the stored columns, and three of truth values: where a split, a section, a run begins
    deletion vectors                   of those that have one, as JSON

Memory: the columns of the files of one task, and their bytes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tablestore.distributed.taskjson import bytes_to_text, text_to_bytes
from tablestore.errors import FormatError
from tablestore.format.manifest.blockcolumns import IrregularBlocks
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns, Places, check_columns
from tablestore.store.scan.splits import ColumnSplits, DeletionFile, first_of_packs
from tablestore.types.arrays import Mask, mask_array, mask_of

MOST_TASKS = 10_000
"""Tasks of a plan: more of them would cost the process that plans more than they save. They are larger then."""

_STARTS = ("begins_split", "begins_section", "begins_run")
_FIELDS = [field.with_type(pa.binary()) if pa.types.is_dictionary(field.type) else field for field in ENTRY_SCHEMA]
_SCHEMA = pa.schema([*_FIELDS, *(pa.field(name, pa.bool_()) for name in _STARTS)])
_CODEC = "zstd"


def pack_columns(splits: ColumnSplits, *, task_bytes: int, count: int) -> tuple[ColumnSplits, ...]:
    """Neighbouring splits put together to about ``count`` even tasks, none above ``task_bytes`` unless it is a single split, or
    there were more than :data:`MOST_TASKS`."""
    weights = splits.weights
    total = int(weights.sum())
    most = max(min(-(-total // max(count, 1)), task_bytes), -(-total // MOST_TASKS))
    firsts = first_of_packs(weights, most, np.full(len(weights), len(weights))).tolist()
    # Made ready here, once for all tasks.
    splits = splits.of(EntryColumns(_encodable(splits)))
    return tuple(splits[first:last] for first, last in zip(firsts, [*firsts[1:], len(splits)], strict=False))


def encode_columns(splits: ColumnSplits) -> dict[str, Any]:
    """Splits as a part of a task."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as writer:
        writer.write_table(_encodable(splits))
    data = sink.getvalue()
    vectors = splits.vectors()
    return {
        "files": bytes_to_text(pa.Codec(_CODEC, 1).compress(data, asbytes=True)),
        "bytes": data.size,
        "deletions": [[name, vector.index_file, vector.offset, vector.length] for name, vector in sorted(vectors.items())],
    }


def decode_columns(kind: str, encoded: Mapping[str, Any]) -> ColumnSplits:
    """The splits that :func:`encode_columns` was given. Raises FormatError."""
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
    table = splits.files.table
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
