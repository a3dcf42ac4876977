"""Decodes records of the log into rows as a reader asked for them: its columns, its schema, its filter.

A record has the columns of the schema that its snapshot was written with. Records are decoded in stretches of one schema.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError, NotFoundError, UnsupportedError
from tablestore.format.parquet.projection import Projection
from tablestore.log.changemessages import BadMessage, DecodedChanges, decode_changes
from tablestore.log.events import does_not_fit
from tablestore.log.position import LogPlace
from tablestore.log.publish.changerecords import find_changes
from tablestore.log.record import Mark, RawRecords
from tablestore.log.settings import LogSettings
from tablestore.store.changes.changefeed import filtered_kinds, update_pairs
from tablestore.store.context import TableContext
from tablestore.types.arrays import empty_batch
from tablestore.types.datatypes import Field
from tablestore.types.filter.predicate import Predicate, evaluate
from tablestore.types.filter.predicate import columns as columns_of
from tablestore.types.rowkind import RowKind, symbols_from_kinds
from tablestore.types.schema import TableSchema

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRows:
    """Decoded changes of one bucket and snapshot: ``rows`` with ``_row_kind`` first. ``place`` is the one behind them."""

    bucket: int
    snapshot_id: int
    rows: pa.RecordBatch
    place: LogPlace


class RecordDecoder:
    """Decodes records of one table's log for one reader. ``name`` is the log's; ``schema`` has ``_row_kind`` first."""

    def __init__(
        self,
        context: TableContext,
        name: str,
        settings: LogSettings,
        *,
        columns: tuple[str, ...],
        predicate: Predicate | None,
        schema: pa.Schema,
        pairs: bool = True,
    ) -> None:
        self._context, self._name, self._settings = context, name, settings
        self._columns, self._predicate, self._schema, self._pairs = columns, predicate, schema, pairs
        self._schemas: dict[int, TableSchema] = {}
        self._said_foreign = False
        self._uuid = (context.table_uuid or "").encode()

    def fresh(self, raw: RawRecords, done: Mark) -> npt.NDArray[np.int64]:
        """The indexes of the records that are this table's and not handed out yet."""
        if raw.tables.count(self._uuid) == len(raw):
            ours: npt.NDArray[np.bool_] = np.ones(len(raw), dtype=np.bool_)
        else:
            ours = np.fromiter((table == self._uuid for table in raw.tables), dtype=np.bool_, count=len(raw))
        foreign = len(raw) - int(ours.sum())
        if foreign and not self._said_foreign:
            self._said_foreign = True
            LOG.warning("%s holds records that are not of table %s: they are left out", self._name, self._context.files.root_uri)
        later = (raw.snapshots > done.snapshot_id) | ((raw.snapshots == done.snapshot_id) & (raw.ordinals > done.ordinal))
        fresh: npt.NDArray[np.int64] = np.flatnonzero(ours & later)
        return fresh

    def schema_of(self, snapshot_id: int) -> TableSchema:
        """The columns that a snapshot's messages have."""
        if (schema := self._schemas.get(snapshot_id)) is None:
            snapshot = find_changes(self._context, snapshot_id)
            schemas = self._context.schemas
            schema = schemas.read(snapshot.schema_id) if snapshot is not None else self._schema_of_expired(snapshot_id)
            if len(self._schemas) > 10_000:
                self._schemas.clear()
            self._schemas[snapshot_id] = schema
        return schema

    def _schema_of_expired(self, snapshot_id: int) -> TableSchema:
        """The schema of a snapshot that is gone: between those of its neighbours, if that leaves no choice."""
        context = self._context
        oldest = max((schema.id for other, schema in self._schemas.items() if other < snapshot_id), default=0)
        later = context.snapshots.live_ids()
        newest = context.snapshots.read(later[0]).schema_id if later else context.schema.id
        candidates = [context.schemas.read(i) for i in context.schemas.ids() if oldest <= i <= newest]
        if len({schema.fields for schema in candidates}) > 1:
            raise NotFoundError(
                f"table {context.files.root_uri}: snapshot {snapshot_id} has expired, and which columns its records in "
                f"{self._name} have is not known any more, because they were altered at about that time; begin anew with "
                'scan="full", and read under a consumer_id so that expiry keeps what is to be read',
                kind="snapshot-expired",
            )
        return candidates[-1]

    def decoded(self, raw: RawRecords, part: npt.NDArray[np.int64], written: TableSchema) -> tuple[pa.RecordBatch, DecodedChanges]:
        """Records written with one schema as rows of the reader's; the changes say which record each row is of."""
        reader_schema = self._context.schema
        predicate = self._predicate
        names = (
            set(self._columns) | (columns_of(predicate) if predicate is not None else frozenset()) | set(reader_schema.primary_keys)
        )
        ids = {reader_schema.field(name).id for name in names}
        fields = [f for f in written.fields if f.id in ids]
        arrow_schema = written.arrow_schema
        places = None if len(part) == len(raw) else part.tolist()
        try:
            changes = decode_changes(
                raw.keys if places is None else [raw.keys[i] for i in places],
                raw.values if places is None else [raw.values[i] for i in places],
                pa.schema([arrow_schema.field(f.name) for f in fields]),
                key=written.primary_keys,
                kinds=raw.kinds[part],
                form=self._settings.form,
                written=arrow_schema,
            )
        except BadMessage as error:
            offset = int(raw.offsets[part[error.position]])
            raise FormatError(
                f"record {offset} in bucket {raw.bucket} of {self._name} cannot be understood: {error.reason}; "
                "`tablestore log verify` finds others, `tablestore log rebuild` makes the log anew from the table",
                kind="bad-record",
            ) from error
        rows = pa.RecordBatch.from_struct_array(changes.rows.to_struct_array().combine_chunks())
        if written.fields != reader_schema.fields:
            targets = [reader_schema.field(name) for name in reader_schema.field_names if name in names]
            rows = self.fitting(rows, written, fields, targets)
        return rows, changes

    def selected(self, rows: pa.RecordBatch, kinds: npt.NDArray[np.int8]) -> pa.RecordBatch:
        """The rows that the filter lets through, with ``_row_kind`` and the columns asked for; they come in the reader's
        schema."""
        if self._predicate is not None:
            matches = evaluate(self._predicate, rows).fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
            kinds, mask = self._filtered(rows, kinds, matches)
            rows, kinds = rows.filter(pa.array(mask)), kinds[mask]
        if not self._pairs and (before := kinds == RowKind.UPDATE_BEFORE).any():
            rows, kinds = rows.filter(pa.array(~before)), kinds[~before]
        columns = [symbols_from_kinds(pa.array(kinds)), *(rows.column(name) for name in self._columns)]
        target = pa.schema([f if i == 0 else f.with_nullable(True) for i, f in enumerate(self._schema)])
        return pa.RecordBatch.from_arrays([pc.cast(c, f.type) for c, f in zip(columns, target, strict=True)], schema=target)

    @property
    def nothing(self) -> pa.RecordBatch:
        """No rows."""
        return empty_batch(self._schema)

    def fitting(
        self, rows: pa.RecordBatch, written: TableSchema, fields: Sequence[Field], targets: Sequence[Field]
    ) -> pa.RecordBatch:
        """Rows of another schema with the columns of the reader's. Raises ConflictError if one is too wide for them."""
        try:
            return Projection(fields, targets, where=self._name).apply(rows)
        except (FormatError, UnsupportedError) as error:
            if written.id <= self._context.schema.id:
                raise
            raise does_not_fit(self._name, written.id, self._context.schema.id, error) from error

    def _filtered(
        self, rows: pa.RecordBatch, kinds: npt.NDArray[np.int8], matches: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
        schema, predicate = self._context.schema, self._predicate
        assert predicate is not None
        pairs = update_pairs(rows, kinds, schema.primary_keys)
        complete = self._settings.mode == "all" or not schema.is_keyed or columns_of(predicate) <= set(schema.primary_keys)
        new, mask = filtered_kinds(kinds, matches, pairs, known_before=complete)
        # A pair that was cut apart: its row before leaves, its row after enters.
        unpaired = ~pairs
        unpaired[1:] &= ~pairs[:-1]
        new[unpaired & mask & (kinds == RowKind.UPDATE_BEFORE)] = RowKind.DELETE
        return new, mask


def runs(values: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Stretches of equal neighbours as (start, stop)."""
    cuts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    yield from pairwise(cuts)
