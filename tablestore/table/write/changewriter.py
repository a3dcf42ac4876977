"""Writes the rows of a statement (:mod:`~tablestore.table.write.rowchange`): new files, and positions of rows that go.

    keyed table     +I, +U, -D             rows of new level-0 files, each key once
                    -U before its +U       in the changelog of the commit only, if it keeps its input
    append table    +I, +U                 rows of new files
                    +U, -D                 positions of old rows

Memory: a batch, the writer's buffer, and the positions (:mod:`~tablestore.table.write.removedrows`).
"""

from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import RowCounts
from tablestore.log.port import ChangeLog
from tablestore.lsm.functions.survivors import comes_before
from tablestore.lsm.gather import take_rows
from tablestore.lsm.write.writebuffer import shown_row
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage
from tablestore.table.write.removedrows import RemovedRows
from tablestore.table.write.rowchange import ChangeColumns, RowChange, columns_that_keep, sequence_fields
from tablestore.table.write.writer import TableWriter
from tablestore.types.arrays import one_chunk
from tablestore.types.conform import conform
from tablestore.types.rowkind import ROW_BEFORE_COLUMN, ROW_KIND_COLUMN, RowKind, kinds_from_symbols
from tablestore.types.rowposition import DATA_FILE_COLUMN, POSITION_COLUMNS, ROW_POSITION_COLUMN


class ChangeWriter:
    """Writes one task's share of a statement's rows. One writer, one thread; its files go if its ``with`` block fails.

    ``start`` as of :class:`TableWriter`.
    """

    def __init__(
        self, context: TableContext, log: ChangeLog, change: RowChange, *, start: tuple[Snapshot | None, int] | None = None
    ) -> None:
        self._context, self._change = context, change
        self._columns = ChangeColumns.of(context)
        self._writer = TableWriter(context, log, start=start, once=context.schema.is_keyed)
        self.removed = RemovedRows()
        self._counts = np.zeros(len(RowKind), np.int64)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows. Raises InvalidInputError for rows that do not fit; of kind ``second-match`` for a row that came before."""
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        self._check_columns(table.column_names)
        kinds = kinds_from_symbols(table.column(ROW_KIND_COLUMN))
        counts = np.bincount(kinds.to_numpy(), minlength=len(RowKind))
        if counts[RowKind.UPDATE_BEFORE]:
            raise InvalidInputError(
                f"expected one row for each change of {self._where}, found a -U; an update is one row of kind +U", kind="row-kind"
            )
        if not self._change.sets and counts[RowKind.UPDATE_AFTER]:
            raise InvalidInputError(
                f"{self._where}: {self._change.operation} sets no column, and there is a +U; name the columns that its updates set",
                kind="row-kind",
            )
        self._check_nulls(table, kinds)
        self._check_order(table, kinds)
        if self._columns.positions:
            self._write_positions(table, kinds)
        elif self._context.changelog_settings.producer == INPUT and self._change.sets:
            self._write_pairs(table, kinds)
        else:
            system = {ROW_KIND_COLUMN, ROW_BEFORE_COLUMN} if self._columns.before else {ROW_KIND_COLUMN}
            self._writer.change(table.drop_columns(sorted(system & set(table.column_names))), kinds)
        self._counts += counts

    @property
    def rows(self) -> RowCounts:
        """The rows that came in, by kind."""
        kinds = self._counts[[RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE]]
        return RowCounts._make([*kinds.tolist(), int(kinds.sum())])

    def prepare(self) -> CommitMessage:
        """The files written, as a value for a committer."""
        return self._writer.prepare()

    def __enter__(self) -> "ChangeWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.abort()

    @property
    def _where(self) -> str:
        return f"table {self._context.files.root_uri}"

    def _check_columns(self, names: list[str]) -> None:
        expected = {ROW_KIND_COLUMN, *(POSITION_COLUMNS if self._columns.positions else ())}
        expected |= {ROW_BEFORE_COLUMN} if self._columns.before and self._change.sets else set()
        adds = not self._columns.positions or self._change.inserts or bool(self._change.sets)
        expected |= set(self._context.schema.field_names) if adds else set()
        if missing := sorted(expected - set(names)):
            raise InvalidInputError(
                f"the changes of {self._where} lack the columns {', '.join(missing)}; found {', '.join(names)}",
                kind="missing-column",
            )

    def _check_nulls(self, rows: pa.Table, kinds: pa.ChunkedArray) -> None:
        """Refuse updates to NULL that would keep the stored value."""
        for name in columns_that_keep(self._context.settings.merge, self._change.sets):
            if rows.column(name).null_count:
                updates = pc.equal(kinds, int(RowKind.UPDATE_AFTER))
                if pc.any(pc.and_(updates, pc.is_null(rows.column(name)))).as_py():
                    raise InvalidInputError(
                        f"{self._where} cannot set {name!r} to NULL: with merge-engine partial-update a NULL keeps the stored "
                        "value. Leave these rows out of the update, or delete and insert them",
                        kind="update-null",
                    )

    def _check_order(self, rows: pa.Table, kinds: pa.ChunkedArray) -> None:
        """Refuse updates to an order before that of the row that they replace, which would win over them."""
        fields = sequence_fields(self._context)
        if not fields or not {field.name for field in fields} & set(self._change.sets):
            return
        updates = rows.filter(pc.equal(kinds, int(RowKind.UPDATE_AFTER)))
        if not updates.num_rows:
            return
        old = self._rows_before(updates.column(ROW_BEFORE_COLUMN))
        names = [field.name for field in fields]
        kinds_of_order = [self._context.schema.arrow_schema.field(name).type for name in names]
        orders = [
            [one_chunk(table.column(name)).cast(kind) for name, kind in zip(names, kinds_of_order, strict=True)]
            for table in (updates, old)
        ]
        losing = np.flatnonzero(comes_before(orders[0], orders[1], [field.descending for field in fields]))
        if not len(losing):
            return
        row, before = updates.slice(losing[0], 1), old.slice(losing[0], 1)
        raise InvalidInputError(
            f"{self._where}: {self._change.operation} sets {shown_row(row, names)} in the row with "
            f"{shown_row(row, self._context.schema.primary_keys)}, which has {shown_row(before, names)}: by sequence.field = "
            f"{', '.join(names)} the stored row wins, in every reader of the table, and nothing would change. Set no "
            f"{'greater' if fields[0].descending else 'smaller'} value and no NULL, leave such rows out with a condition, or "
            "replace their partition with INSERT OVERWRITE",
            kind="update-order",
        )

    def _rows_before(self, before: pa.ChunkedArray) -> pa.Table:
        """The columns of the rows that updates replace."""
        if not pa.types.is_struct(before.type) or before.null_count:
            raise InvalidInputError(
                f"expected in {ROW_BEFORE_COLUMN} the old row of each update of {self._where} as a struct, found "
                + (f"{before.null_count} nulls" if pa.types.is_struct(before.type) else str(before.type)),
                kind="row-before",
            )
        names = [field.name for field in before.type]
        return pa.Table.from_arrays([pc.struct_field(before, [place]) for place in range(len(names))], names=names)

    def _write_positions(self, rows: pa.Table, kinds: pa.ChunkedArray) -> None:
        old = pc.not_equal(kinds, int(RowKind.INSERT))
        for name in POSITION_COLUMNS:
            if pc.any(pc.and_(pc.invert(old), pc.is_valid(rows.column(name)))).as_py():
                raise InvalidInputError(
                    f"expected NULL in {name} of a new row (+I) of {self._where}, found a value; a row that takes the place of "
                    "another is of kind +U",
                    kind="row-position",
                )
        self.removed.add(rows.column(DATA_FILE_COLUMN).filter(old), rows.column(ROW_POSITION_COLUMN).filter(old))
        adds = pc.not_equal(kinds, int(RowKind.DELETE))
        if pc.any(adds).as_py():
            values = rows.drop_columns([ROW_KIND_COLUMN, *POSITION_COLUMNS])
            self._writer.change(values.filter(adds), kinds.filter(adds))

    def _write_pairs(self, rows: pa.Table, kinds: pa.ChunkedArray) -> None:
        """Write rows, each update with the row that it replaces before it."""
        fields = self._context.schema.fields
        inserts, updates = (pc.equal(kinds, int(kind)) for kind in (RowKind.INSERT, RowKind.UPDATE_AFTER))
        before = rows.column(ROW_BEFORE_COLUMN).filter(updates)
        values = rows.drop_columns([ROW_KIND_COLUMN, ROW_BEFORE_COLUMN])
        self._writer.change(values.filter(inserts), kinds.filter(inserts))
        not_inserts = pc.invert(inserts)
        new = conform(values.filter(not_inserts), fields, where=self._where, fill=False)
        old = conform(self._rows_before(before), fields, where=self._where, fill=False) if len(before) else new.slice(0, 0)
        self._writer.change(*_interleaved(old, new, kinds.filter(not_inserts)))


def _interleaved(old: pa.Table, new: pa.Table, kinds: pa.ChunkedArray) -> tuple[pa.Table, pa.ChunkedArray]:
    """The rows of ``new``, each update with its row of ``old`` before it, and the kinds of all."""
    codes = kinds.to_numpy()
    updates = np.flatnonzero(codes == RowKind.UPDATE_AFTER)
    order = np.argsort(np.concatenate([2 * updates, 2 * np.arange(new.num_rows) + 1]))
    all_kinds = np.concatenate([np.full(len(updates), RowKind.UPDATE_BEFORE, np.int8), codes])
    rows = take_rows(pa.concat_tables([old, new]), order)
    return rows, pa.chunked_array([pa.array(all_kinds[order])])
