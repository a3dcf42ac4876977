"""System tables: what a table is made of, as tables.

    table.system("files").to_arrow()                            the live data files
    catalog.table("shop.orders$snapshots").scan(filter="commit_kind = 'APPEND'").to_pandas()
    table.system("files").scan(snapshot_id=3)                   the files of an older snapshot

    snapshots schemas options tags branches consumers           one row for each there is
    manifests files partitions buckets                          of the newest snapshot, or of the one that is asked for
    audit_log                                                   the changes of the retained snapshots, with their ``rowkind``
    ro                                                          read-optimised: the fully compacted part, no merging

Names and types of columns are Paimon's. A system table is read-only and computed anew by each scan.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.names import Names, did_you_mean
from tablestore.store.context import TableContext
from tablestore.table.read.scan import ArrowSource, Readable, ReadOptimizedScan, check_columns
from tablestore.table.system.systemkinds import AUDIT_LOG, METADATA, READ_OPTIMIZED, SEPARATOR, SYSTEM_TABLES, fields_of
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.datatypes import Field
from tablestore.types.filter.filters import Filter, parse_filter
from tablestore.types.filter.predicate import Predicate, evaluate

BATCH_ROWS = 65_536


class NotOfASystemTableError(UnsupportedError, AttributeError):
    """A table has this, and a system table has not. ``hasattr`` and ``getattr`` take it for what it is."""


class SystemTable(ArrowSource):
    """One system table of a table. Made by ``table.system(name)`` or ``catalog.table("db.table$name")``; see the module."""

    def __init__(self, base: Readable, name: str) -> None:
        if name not in SYSTEM_TABLES:
            raise NotFoundError(
                f"table {base.name} has no system table {name!r}{did_you_mean(name, SYSTEM_TABLES)} (there: "
                f"{', '.join(SYSTEM_TABLES)})",
                kind="no-such-table",
            )
        self._base, self._kind = base, name

    @property
    def name(self) -> str:
        """``database.table$name``."""
        return f"{self._base.name}{SEPARATOR}{self._kind}"

    @property
    def base(self) -> Readable:
        """The table that it is about."""
        return self._base

    @property
    def kind(self) -> str:
        """The kind of the system table, such as ``files``."""
        return self._kind

    @property
    def location(self) -> str:
        """The location of the table's files."""
        return self._base.location

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns with their logical types."""
        return fields_of(self._kind, self._base.table_schema)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its columns."""
        return to_arrow_schema(self.fields)

    def scan(self, columns: Names | None = None, filter: Filter = None, **at: Any) -> ArrowSource:
        """Some columns and rows; ``at`` is ``snapshot_id``, ``timestamp`` or ``tag`` for tables that can look back.

        Raises InvalidInputError, NotFoundError, ConflictError as ``Table.scan`` does; what cannot look back, when it is read.
        """
        kind = METADATA.get(self._kind)
        if at and (self._kind == AUDIT_LOG or (kind is not None and not kind.travels)):
            traveling = [name for name, kind in METADATA.items() if kind.travels]
            raise InvalidInputError(
                f"{self.name} is not about one snapshot, so {next(iter(at))} means nothing here; it does for "
                f"{', '.join((*traveling, READ_OPTIMIZED))}",
                kind="no-time-travel",
            )
        if self._kind == READ_OPTIMIZED:
            return ReadOptimizedScan.of(self._base.scan(columns, filter, **at))
        names = check_columns(columns, tuple(field.name for field in self.fields))
        predicate = parse_filter(filter, self.fields)
        context = self._base.context
        if kind is None:
            return _MetadataScan(context, self.fields, names, predicate, partial(_audit_log, context, self.schema))
        snapshot = self._base.scan((), **at).snapshot if kind.travels else None
        batches = partial(_metadata, context, self._kind, snapshot, self.schema)
        return _MetadataScan(context, self.fields, names, predicate, batches)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows as record batches, streamed."""
        return self.scan().to_batches()

    def count(self) -> int:
        """The number of rows."""
        return self.scan().count()

    def __repr__(self) -> str:
        return f"SystemTable({self.name!r})"

    def __getattr__(self, name: str) -> NoReturn:
        # The name behind a `$` opens this in place of a table: what a table has and this has not is said, not just missing.
        if not name.startswith("_") and hasattr(type(self._base), name):
            raise NotOfASystemTableError(
                f"{self.name} is a system table, which is computed and only read: it has no {name}; use scan(columns, filter), "
                f"to_arrow() and the like, or open {self._base.name} itself",
                kind="read-only-table",
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class _MetadataScan(ArrowSource):
    """Some columns and rows of batches that are computed when they are asked for."""

    def __init__(
        self,
        context: TableContext,
        fields: Sequence[Field],
        columns: tuple[str, ...],
        predicate: Predicate | None,
        batches: Callable[[], Iterator[pa.RecordBatch]],
    ) -> None:
        by_name = {field.name: field for field in fields}
        self._schema = to_arrow_schema([by_name[name] for name in columns])
        self._context, self._columns, self._predicate, self._batches = context, columns, predicate, batches

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        with self._context.reading():
            for batch in self._batches():
                matching = batch if self._predicate is None else batch.filter(evaluate(self._predicate, batch))
                if matching.num_rows:
                    yield matching.select(list(self._columns))


def _metadata(context: TableContext, name: str, snapshot: Snapshot | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    # Only who reads metadata as rows needs what makes them.
    from tablestore.table.system.systemrows import ROWS

    if METADATA[name].travels:
        # Their rows tell of values: of keys, partitions, and the least and the largest of each column.
        context.check_sees_all(f"${name}")
    rows = ROWS[name](context if METADATA[name].travels else context.still_there(), snapshot)
    batches = _batched(rows, schema)
    return batches if context.view is None else map(_without_counts, batches)


def _without_counts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same without numbers of rows, among which there are hidden ones."""
    for place, field in enumerate(batch.schema):
        if field.name.endswith("record_count"):
            batch = batch.set_column(place, field, pa.nulls(batch.num_rows, field.type))
    return batch


def _batched(rows: Iterator[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    pending: list[dict[str, Any]] = []
    for row in rows:
        pending.append(row)
        if len(pending) == BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(pending, schema=schema)
            pending = []
    if pending:
        yield pa.RecordBatch.from_pylist(pending, schema=schema)


def _audit_log(context: TableContext, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The changes of the retained snapshots, oldest first, without those of discontinuities."""
    from tablestore.table.read.changes import read_changes

    ids = context.still_there().snapshots.live_ids()
    if ids:
        changes = read_changes(context, ids[0] - 1, ids[-1], None, None, pairs=True, snapshot_ids=False, on_discontinuity="skip")
        for batch in changes.to_batches():
            # The kind comes first, under its own name.
            yield pa.RecordBatch.from_arrays(batch.columns, schema=target)
