"""Writes to a table: many writes, one commit.

    with table.new_writer(commit_user="etl") as writer:
        writer.write(rows)
        writer.commit(identifier=7)        # a second commit with identifier 7 or less changes nothing

A writer that is left without a commit removes what it wrote. After a commit it can write again, for the next one.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.lsm.write.missingcolumns import MissingValues, lost_to_nulls, path_text
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.store.write.datawriter import DataWriter
from tablestore.store.write.rowconstraints import RowConstraints
from tablestore.store.write.writerfactory import data_writer
from tablestore.table.write.committing import CommitNote, Effect, Origin, commit_message
from tablestore.table.write.inputrows import Rows, ragged_columns, schema_and_tables
from tablestore.table.write.retractions import without_order
from tablestore.telemetry.tracing import traced
from tablestore.types.arrays import Kinds, Mask, mask_array, one_chunk, retracts
from tablestore.types.arrowtypes import to_arrow_schema, zero_of
from tablestore.types.conform import conform
from tablestore.types.defaults import default_scalar
from tablestore.types.rowkind import ROW_KIND_COLUMN, RowKind, kinds_from_symbols
from tablestore.types.schema import POSTPONE_BUCKET

# Distance between the sequence numbers of the tasks of one distributed write: later tasks win ties, and no task can
# write as many files.
TASK_STRIDE = 1 << 20

_MOST_ACCEPTED = 16
_ORDERLESS = "a delete by key takes the order (sequence.field) of the row that it removes"


class TableWriter:
    """Collects rows for one table and commits them. One writer, one thread.

    ``commit_user`` names the job: with it, and an increasing ``identifier`` per commit, a commit that is repeated after a crash is
    applied once. ``start``: the snapshot on which it begins and its first sequence number, for tasks that are numbered together
    (None: the newest snapshot). ``replaces``: the rows replace those of their partitions; ``overwrites``: the same, in a task whose
    driver commits. ``log``: the table's change log. ``early``: send it the rows before they land, if it shows such rows. ``once``:
    each key is changed at most once (:meth:`change`).
    """

    def __init__(
        self,
        context: TableContext,
        log: ChangeLog,
        *,
        commit_user: str | None = None,
        start: tuple[Snapshot | None, int] | None = None,
        replaces: bool = False,
        overwrites: bool = False,
        early: bool = False,
        once: bool = False,
    ) -> None:
        if commit_user is not None and not (isinstance(commit_user, str) and 0 < len(commit_user) <= 256):
            raise InvalidInputError(f"expected a commit user of 1 to 256 characters, found {commit_user!r:.80}")
        self._context, self._log = context, log
        self._user = commit_user or context.ids.uuid()
        self._is_new_user = commit_user is None
        self._start, self._replaces, self._once = start, replaces, once
        self._overwrites = overwrites
        tracking = context.settings.tracking
        self._is_tracked = tracking.tracked and (tracking.overwrites or not (replaces or overwrites))
        self._writer: DataWriter | None = None
        self._base: Snapshot | None = None
        self._failed = False
        self._early = log.ahead() if early else None

    def begin_at(self, newest: Snapshot | None) -> None:
        """Write on top of a snapshot that was just looked up, instead of looking for the newest one. Before the first row."""
        assert self._writer is None and self._start is None, "nothing was written"
        self._start = newest, self._context.sequence.next_after(newest)

    def write(
        self, rows: Rows, *, changes: bool | None = None, missing_columns: "str | MissingColumns" = MissingColumns.REFUSE
    ) -> None:
        """Add rows: anything that exports Arrow data. A ``_row_kind`` column (``+I``, ``-U``, ``+U``, ``-D``) makes them changes.

        ``changes`` True demands that column, False refuses it; with the option ``rowkind.field`` a column of the table takes its
        place. In a keyed table the later row of a key wins. Rows that lack columns are refused where stored values would be
        lost; ``missing_columns="null"`` writes NULL or the column's default, ``"keep"`` the value stored when the commit lands (new
        rows get the default, or NULL). Raises InvalidInputError for rows that do not fit; rows written before are kept.
        """
        choice = MissingColumns.of(missing_columns)
        context = self._context
        schema, tables = schema_and_tables(rows, lambda: context.schema.arrow_schema)
        where = f"table {context.files.root_uri}"
        fields = context.schema.fields
        has_kinds = ROW_KIND_COLUMN in schema.names
        if changes is not None and has_kinds is not changes:
            raise InvalidInputError(
                f"{where}: rows with a {ROW_KIND_COLUMN} column are changes, apply them with table.write_changes(rows)"
                if has_kinds
                else f"{where}: changes need a {ROW_KIND_COLUMN} column of +I, -U, +U or -D; without one use upsert or append",
                kind="row-kind",
            )
        kind_field = context.settings.rowkind_field
        if has_kinds and kind_field is not None:
            raise InvalidInputError(
                f"{where}: the column {kind_field!r} (rowkind.field) holds the kinds of rows, give no {ROW_KIND_COLUMN} as well",
                kind="row-kind",
            )
        if schema.names.count(ROW_KIND_COLUMN) > 1:
            raise InvalidInputError(f"{where}: column {ROW_KIND_COLUMN!r} is given more than once", kind="duplicate-column")
        if not set(schema.names) - {ROW_KIND_COLUMN}:
            raise InvalidInputError(
                f"{where}: expected rows with the columns {', '.join(f.name for f in fields)}, found none", kind="missing-column"
            )
        # A wrong schema is an error even without a row.
        choice = MissingColumns.NULL if self._replaces else choice
        missing_values = check_given(context, schema, choice, ragged=ragged_columns(rows))
        keeps = choice is MissingColumns.KEEP
        if keeps:
            self._check_looks_up('rows keep the values of columns that they lack (missing_columns="keep")')
        absent = _absent(context, missing_values) if keeps else ()
        fills = _fills(context)
        writer = self._data_writer()
        constraints = RowConstraints.of(context) if context.settings.constrained else None
        row_count = 0
        for table in tables:
            values = table.drop_columns([ROW_KIND_COLUMN]) if has_kinds else table
            kinds = kinds_from_symbols(table.column(ROW_KIND_COLUMN)) if has_kinds else self._kinds_in_rows(values, where)
            adds = None if kinds is None else pc.equal(pc.bit_wise_and(kinds, pa.scalar(1, pa.int8())), 0)
            orderless = None
            if kinds is not None:
                codes = kinds.to_numpy()
                missing_values.check_retractions(codes, where)
                values, orderless = without_order(context, values, codes)
                if orderless is not None:
                    self._check_looks_up(_ORDERLESS)
            lacks = missing_values if adds is None or pc.any(adds).as_py() else MissingValues()
            if not keeps and values.num_rows:
                lacks.check(where)
            conformed = conform(_with_nothing(values, absent), fields, where=where, fill=fills and (True if adds is None else adds))
            self._check_sizes(conformed, kinds)
            if constraints is not None:
                lacking = {path[0] for path in lacks.paths} if keeps else ()
                constraints.check(conformed, None if kinds is None else kinds.to_numpy(), lacking=lacking, first=row_count)
                row_count += conformed.num_rows
            writer.write(conformed, kinds, lacks=lacks.paths if keeps else (), orderless=orderless)
            if self._early is not None and orderless is None and not (keeps and lacks.paths):
                self._early.send(conformed, kinds)

    def _check_looks_up(self, what: str) -> None:
        """Raises UnsupportedError where stored rows cannot be looked up."""
        if self._context.settings.postpones:
            raise UnsupportedError(
                f"table {self._context.files.root_uri} postpones the choice of buckets (bucket = {POSTPONE_BUCKET}): {what}, and "
                "what is stored is not known before a compaction; write rows with all columns, or use UPDATE, DELETE and MERGE, "
                "which compact first",
                kind="postponed",
            )

    def _check_sizes(self, rows: pa.Table, kinds: pa.Array | pa.ChunkedArray | None) -> None:
        """Refuse rows that the table's log would not take. Raises RecordTooLarge."""
        if self._is_tracked:
            self._log.check_sizes(rows, kinds)

    def _kinds_in_rows(self, rows: pa.Table, where: str) -> pa.ChunkedArray | None:
        """The kinds that a column of the table holds (``rowkind.field``), None if none does."""
        name = self._context.settings.rowkind_field
        if name is None:
            return None
        if name not in rows.schema.names:
            raise InvalidInputError(
                f"the rows for {where} lack {name}, which holds their kinds (rowkind.field)", kind="missing-column"
            )
        field = self._context.schema.field(name)
        return kinds_from_symbols(conform(rows.select([name]), (field,), where=where).column(name), name)

    def keep(self, rows: pa.RecordBatch) -> None:
        """Write rows as they were read from the table: a null stays a null, also where the column has a default now."""
        self._data_writer().write(pa.Table.from_batches([rows]), None)

    def change(self, rows: pa.Table, kinds: pa.ChunkedArray) -> None:
        """Apply changes of rows that were read: rows with all columns, and the code of each row's kind.

        A null in an inserted row takes the column's default, in others it stays a null. Raises InvalidInputError.
        """
        context = self._context
        inserts = kinds.to_numpy() == RowKind.INSERT
        for chosen, fill in ((inserts, _fills(context)), (~inserts, False)):
            if not chosen.any() and rows.num_rows:
                continue
            part, codes = (rows, kinds) if chosen.all() else (rows.filter(pa.array(chosen)), kinds.filter(pa.array(chosen)))
            conformed = conform(part, context.schema.fields, where=f"table {context.files.root_uri}", fill=fill)
            self._check_sizes(conformed, codes)
            if context.settings.constrained:
                RowConstraints.of(context).check(conformed, codes.to_numpy())
            self._data_writer().write(conformed, codes if context.schema.is_keyed else None)

    def delete(self, keys: Rows) -> None:
        """Delete rows of a keyed table by key: rows that hold the primary key columns (others are ignored)."""
        context, schema = self._context, self._context.schema
        context.check_sees_all("DELETE")
        where = f"table {context.files.root_uri}"
        if not schema.is_keyed:
            raise InvalidInputError(f'{where} has no primary key: delete by a condition, table.delete("price > 10")')
        merge = context.settings.merge
        assert merge is not None, "keyed tables merge"
        merge.check_removal(where, by_key=True)
        key_fields = tuple(f for f in schema.fields if f.name in schema.primary_keys)
        key_schema, tables = schema_and_tables(keys, lambda: to_arrow_schema(key_fields))
        names = [f.name for f in key_fields]
        missing = [name for name in names if name not in key_schema.names]
        if missing:
            raise InvalidInputError(
                f"{where}: to delete by key, give the columns {', '.join(names)}; missing: {', '.join(missing)}",
                kind="missing-column",
            )
        if merge.orders_removals:
            self._check_looks_up(_ORDERLESS)
        for table in tables:
            rows = retractions_of(conform(table.select(names), key_fields, where=where, fill=False), context)
            self.retract(rows, orderless=np.ones(rows.num_rows, dtype=np.bool_) if merge.orders_removals else None)

    def retract(self, rows: pa.Table, *, orderless: Mask | None = None) -> None:
        """Delete these rows of a keyed table; they have the table's columns, of which only the key and what orders rows count.
        ``orderless``: those that take the order of the stored row."""
        kinds = pa.repeat(pa.scalar(int(RowKind.DELETE), pa.int8()), rows.num_rows)
        self._check_sizes(rows, kinds)
        self._data_writer().write(rows, kinds, orderless=orderless)
        if self._early is not None:
            self._early.send(rows, kinds)

    def flush(self) -> None:
        """Write the buffered rows to files, which no reader sees before the commit. A full writer flushes by itself."""
        if self._writer is not None:
            self._writer.flush()

    def commit(self, identifier: int | None = None, *, note: CommitNote | None = None) -> Snapshot | None:
        """Publish the rows written since the last commit as one snapshot; None if there are none.

        With an ``identifier`` even an empty commit is published, which records the job's progress. A replay
        (an identifier that is not above the user's last one) publishes nothing and returns the first commit's snapshot, None
        if that has expired. ``note``: what the snapshot says of its rows. Raises ConflictError (nothing is visible),
        CommitOutcomeUnknown (look for the uuid it names).
        """
        if identifier is not None and (isinstance(identifier, bool) or not isinstance(identifier, int)):
            raise InvalidInputError(
                f"expected a whole number as identifier, which grows with each commit, found {identifier!r:.80}"
            )
        return self.commit_as(Effect(allow_empty=identifier is not None), identifier, note=note)

    def commit_as(
        self,
        effect: Effect,
        identifier: int | None = None,
        *,
        note: CommitNote | None = None,
        before: CommitMessage | None = None,
    ) -> Snapshot | None:
        """Commits as :meth:`commit`, with deletes or another kind. ``before``: files of another writer, whose rows come before
        these."""
        message = self.prepare()
        message = merge_messages([message] if before is None else [before, message]) or message
        self._failed = True
        try:
            origin = Origin(user=self._user, identifier=identifier, is_new_user=self._is_new_user, note=note or CommitNote())
            snapshot = commit_message(self._context, self._log, message, effect, origin, early=self._early)
        except BaseException:
            self._take_back()
            raise
        self._is_new_user = self._is_new_user and identifier is None
        self._failed = False
        if snapshot is None:
            self._take_back()
        return snapshot

    def prepare(self) -> CommitMessage:
        """The files written so far, as a value for a committer. The writer starts anew."""
        self._check_usable()
        writer = self._writer
        if writer is None:
            return self._context.message(self._context.snapshots.latest() if self._start is None else self._start[0])
        tracer = self._context.shared.observers.tracer
        with traced(tracer, "write", self._context.files.root_uri) as span:
            entries = writer.finish()
            if tracer is not None:
                span.record(files=len(entries), size_bytes=sum(entry.file.file_size for entry in entries))
        message = self._context.message(self._base, created_millis=writer.created_millis)
        self._writer = None
        return replace(message, entries=entries, changelog=writer.take_changelog(), kept=writer.take_kept())

    def abort(self) -> None:
        """Remove the files that were written and not committed."""
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        self._take_back()

    def _take_back(self) -> None:
        if self._early is not None:
            self._early.take_back()

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.abort()

    def _check_usable(self) -> None:
        # The rows are gone, so repeating the commit would publish an empty one under their identifier.
        if self._failed:
            raise InvalidInputError(
                f"the last commit of this writer of table {self._context.files.root_uri} failed; begin a new writer, write the "
                "rows again and commit them with the same commit_user and identifier, if they had one: what has landed after all "
                "is not applied twice",
                kind="writer-failed",
            )

    def _data_writer(self) -> DataWriter:
        self._check_usable()
        if self._writer is None:
            if self._start is not None:
                self._base, first = self._start
            else:
                self._base, first = self._context.sequence.start()
                self._context.check_is_there()
            alone = self._overwrites or self._base is None
            self._writer = data_writer(self._context, first, replaces=self._replaces, once=self._once, alone=alone)
        return self._writer


def check_given(
    context: TableContext, row_schema: pa.Schema, choice: MissingColumns, *, ragged: Collection[str] = frozenset()
) -> MissingValues:
    """Check the columns of rows to be written; returns the columns that they lack and that rows of some kinds must have.

    ``ragged``: columns that only some rows have. Raises InvalidInputError.
    """
    accepted = context.once(_accepted_before)
    key = row_schema, choice, frozenset(ragged)
    if (missing_values := accepted.get(key)) is None:
        if len(accepted) >= _MOST_ACCEPTED:
            accepted.clear()
        missing_values = accepted[key] = _checked(context, row_schema, choice, ragged)
    return missing_values


def lost_columns(context: TableContext, column_names: Collection[str]) -> frozenset[str]:
    """The columns whose stored values rows with the columns ``column_names`` would replace by NULL."""
    schema = context.schema
    columns = pa.schema([field for field in schema.arrow_schema if field.name in column_names])
    return frozenset(path[0] for path in lost_to_nulls(context.settings.merge, schema.fields, columns).paths)


def _accepted_before(_context: TableContext) -> "dict[tuple[pa.Schema, MissingColumns, frozenset[str]], MissingValues]":
    """The results of :func:`check_given`, by its arguments: jobs write many batches with the same columns."""
    return {}


def _checked(context: TableContext, row_schema: pa.Schema, choice: MissingColumns, ragged: Collection[str]) -> MissingValues:
    where, schema = f"table {context.files.root_uri}", context.schema
    has_kinds = ROW_KIND_COLUMN in row_schema.names
    nothing = row_schema.empty_table().drop_columns([ROW_KIND_COLUMN] if has_kinds else [])
    full = pa.schema([field for field in nothing.schema if field.name not in ragged])
    missing_values = (
        MissingValues() if choice is MissingColumns.NULL else lost_to_nulls(context.settings.merge, schema.fields, full)
    )
    if choice is MissingColumns.KEEP:
        _check_keepable(context, missing_values, ragged, where)
        nothing = _with_nothing(nothing, _absent(context, missing_values))
    conform(nothing, schema.fields, where=where, fill=_fills(context))
    if choice is MissingColumns.REFUSE and not has_kinds and context.settings.rowkind_field is None:
        missing_values.check(where)
    return missing_values


def _check_keepable(context: TableContext, missing_values: MissingValues, ragged: Collection[str], where: str) -> None:
    missing_values.check_keepable(where)
    if uneven := sorted(path[0] for path in missing_values.paths if path[0] in ragged):
        raise InvalidInputError(
            f"some of the rows for {where} lack {', '.join(uneven)} and others do not: write those with the same "
            "columns together, one kind after the other",
            kind="missing-columns",
        )
    if missing_values.paths and context.changelog_settings.producer == INPUT:
        raise InvalidInputError(
            f"with changelog-producer = input the rows for {where} are its changelog, which has to be complete: give "
            f"{', '.join(path_text(path) for path in missing_values.paths)}, or choose the producer lookup",
            kind="missing-columns",
        )


def _absent(context: TableContext, missing_values: MissingValues) -> tuple[pa.Field, ...]:
    """The NOT NULL columns to be looked up as a whole, without the one that holds the kinds of rows."""
    names = {path[0] for path in missing_values.paths if len(path) == 1} - {context.settings.rowkind_field}
    return tuple(field for field in context.schema.arrow_schema if field.name in names and not field.nullable)


def _with_nothing(rows: pa.Table, absent: Sequence[pa.Field]) -> pa.Table:
    """The rows with placeholders for NOT NULL columns that will be looked up."""
    for field in absent:
        if field.name not in rows.schema.names:
            rows = rows.append_column(field.name, pa.chunked_array([pa.repeat(zero_of(field.type), rows.num_rows)]))
    return rows


def with_defaults(context: TableContext, rows: pa.Table, kinds: Kinds) -> pa.Table:
    """Rows with all columns, with the defaults that a write puts in place of nulls in those that add."""
    adds = mask_array(~retracts(kinds))
    filled = rows
    for number, field in enumerate(context.schema.fields):
        column = rows.column(field.name)
        if column.null_count and (default := default_scalar(field)) is not None and _fills(context):
            values = pc.if_else(pc.and_(pc.is_null(one_chunk(column)), adds), default, one_chunk(column))
            filled = filled.set_column(number, rows.schema.field(field.name), values)
    return filled


def _fills(context: TableContext) -> bool:
    """True if defaults replace nulls: not with merge engines for which a null keeps the stored value."""
    return context.settings.merge is None or not context.settings.merge.computes


def retractions_of(keys: pa.Table, context: TableContext) -> pa.Table:
    """Rows that hold the given key columns; the other columns are null, or zero where the type is NOT NULL."""
    target = context.schema.arrow_schema
    rows = keys.num_rows
    columns = []
    for field in target:
        if field.name in keys.schema.names:
            columns.append(keys.column(field.name))
        elif field.nullable:
            columns.append(pa.chunked_array([pa.nulls(rows, field.type)]))
        else:
            columns.append(pa.chunked_array([pa.repeat(zero_of(field.type), rows)]))
    return pa.Table.from_arrays(columns, schema=target)
