"""Values of a merge: its sources, what it is to give back, and the rows of one run in one window."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.bounds import BATCH_BYTES, BATCH_ROWS
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.keys import PlainColumn
from tablestore.types.arrays import Kinds, Mask, retracts
from tablestore.types.datatypes import Field
from tablestore.types.rowkind import RowKind

SYSTEM_FIELDS = (pa.field(SEQUENCE_COLUMN, pa.int64(), nullable=False), pa.field(KIND_COLUMN, pa.int8(), nullable=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedSource:
    """One data file's rows in key order, opened when ``read`` is called. Batches hold the key columns and the needed value
    columns. Without ``_VALUE_KIND`` all rows are ``+I``; ``_SEQUENCE_NUMBER`` is there if the two bounds differ, unless no rows
    have to be compared by it (``read`` knows, see there).

    ``ours``: this project wrote the file, so ``+U`` may say that older rows do not count (see ``mergefunction``)."""

    min_sequence: int
    max_sequence: int
    read: Callable[[], Iterator[pa.RecordBatch]]
    ours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpec:
    """The rules and the output of a merge.

    ``ordered`` gives rows in key order (for writing); without it rows of a window come run by run, which is cheaper.
    ``emit_system_columns`` puts ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` before the output columns.
    """

    key_fields: tuple[Field, ...]
    output_columns: tuple[str, ...]
    function: MergeFunction
    drop_retractions: bool = True
    ordered: bool = False
    emit_system_columns: bool = False
    batch_rows: int = BATCH_ROWS
    batch_bytes: int = BATCH_BYTES


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows of one run in one window."""

    run: int
    batch: pa.RecordBatch
    plain: list[PlainColumn]
    min_sequence: int
    max_sequence: int

    def sequences(self) -> npt.NDArray[np.int64]:
        """The sequence number of each row."""
        if self.min_sequence == self.max_sequence:
            return np.full(self.batch.num_rows, self.min_sequence, dtype=np.int64)
        return np.asarray(self.batch.column(SEQUENCE_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int64)

    def kinds(self) -> Kinds:
        """The kind of each row."""
        if KIND_COLUMN not in self.batch.schema.names:
            return np.zeros(self.batch.num_rows, dtype=np.int8)
        return np.asarray(self.batch.column(KIND_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int8)

    def retractions(self) -> Mask | None:
        """The mask of the rows that retract; None if none does."""
        if KIND_COLUMN not in self.batch.schema.names:
            return None
        retract = retracts(self.kinds())
        return retract if retract.any() else None

    def prepared(self, function: MergeFunction, *, ours: bool) -> "Chunk":
        """The rows as the merge function takes them: without kinds that it skips, and ``+U`` of other writers as ``+I``."""
        chunk = self if ours or not function.marks_replacements else self._without_marks()
        if not function.skipped_kinds:
            return chunk
        skipped = np.isin(chunk.kinds(), function.skipped_kinds)
        return chunk._where(~skipped) if skipped.any() else chunk

    def output(self, spec: MergeSpec) -> pa.RecordBatch:
        """The columns that are wanted of all rows."""
        values = self.batch.select(list(spec.output_columns))
        if not spec.emit_system_columns:
            return values
        return pa.RecordBatch.from_arrays(
            [pa.array(self.sequences()), self.batch.column(KIND_COLUMN), *values.columns],
            schema=pa.schema([*SYSTEM_FIELDS, *values.schema]),
        )

    def _where(self, keep: Mask) -> "Chunk":
        mask = pa.array(keep)
        plain = [column.filter(mask) if isinstance(column, pa.Array) else column[keep] for column in self.plain]
        return replace(self, batch=self.batch.filter(mask), plain=plain)

    def _without_marks(self) -> "Chunk":
        kinds = self.kinds()
        if not (kinds == RowKind.UPDATE_AFTER).any():
            return self
        place = self.batch.schema.get_field_index(KIND_COLUMN)
        plain_kinds = pa.array(np.where(kinds == RowKind.UPDATE_AFTER, np.int8(RowKind.INSERT), kinds))
        return replace(self, batch=self.batch.set_column(place, self.batch.schema.field(place), plain_kinds))
