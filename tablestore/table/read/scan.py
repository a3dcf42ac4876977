"""Reads a table as of one snapshot.

A :class:`Scan` is a recipe, not a result: nothing is read before one of its conversions is called, and each call plans anew on
the snapshot that was fixed when the scan was made. It is an Arrow stream exporter itself, so DuckDB, polars and others read it
without a conversion.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tablestore.bounds import BATCHES_AHEAD
from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.htmltext import html_card
from tablestore.inorder import one_after_another, threads_for
from tablestore.lazy import extra, lazy
from tablestore.names import did_you_mean, names_of
from tablestore.options import is_materialized
from tablestore.store.context import TableContext
from tablestore.store.rowview import shown_fields, stored_condition
from tablestore.store.scan.filecounts import count_files
from tablestore.store.scan.scanplan import ScanPlan, WantedFiles, plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import Split, have_deletions, rows_of
from tablestore.telemetry.tracing import Tracer
from tablestore.timepoint import TimePoint, utc_text
from tablestore.types.datatypes import Field
from tablestore.types.filter.filters import Filter
from tablestore.types.filter.predicate import Predicate, all_of
from tablestore.types.filter.predicatetext import to_sql
from tablestore.types.rowposition import POSITION_COLUMNS
from tablestore.types.schema import TableSchema

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow.dataset

class ArrowSource:
    """The conversions that everything readable shares; subclasses give a schema and batches."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        raise AssertionError("a subclass gives the schema")

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Rows as record batches, streamed: memory does not grow with the table."""
        raise AssertionError("a subclass gives the batches")

    def to_reader(self) -> pa.RecordBatchReader:
        """Rows as a streaming reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All rows as one table in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def count(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.to_batches())

    def to_pandas(self, **options: Any) -> "pandas.DataFrame":
        """All rows as a pandas frame; ``options`` go to ``pyarrow.Table.to_pandas``."""
        extra("pandas", "to_pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> "polars.DataFrame":
        """All rows as a polars frame."""
        frame: polars.DataFrame = extra("polars", "to_polars").from_arrow(self.to_arrow())
        return frame

    def to_duckdb(self, connection: "duckdb.DuckDBPyConnection", name: str) -> "duckdb.DuckDBPyRelation":
        """Register the rows as the view ``name``; each query of it reads the scan again, streaming."""
        connection.register(name, self)
        return connection.table(name)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)


class Scan(ArrowSource):
    """Some columns and rows of a table as of one snapshot. Made by ``table.scan(...)``.

    It pickles with its snapshot: another process reads the same rows, or NotFoundError once the snapshot has expired. The rules of
    a catalog service are those of when it was made (:mod:`tablestore.store.rowview`).
    """

    def __init__(
        self,
        context: TableContext,
        snapshot: Snapshot | None,
        columns: tuple[str, ...],
        predicate: Predicate | None,
        *,
        positions: bool = False,
        limit: int | None = None,
    ) -> None:
        context = context.ruled()
        if positions:
            check_positions(context)
        self._context, self._snapshot = context, snapshot
        self._columns, self._predicate, self._positions = columns, predicate, positions
        self._limit = limit

    def __getstate__(self) -> dict[str, Any]:
        # A plan is as large as the table's list of files, and is soon made again.
        return {name: value for name, value in vars(self).items() if name != "plan"}

    @property
    def context(self) -> TableContext:
        """The engine's view of the table at the schema that is read."""
        return self._context

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; without numbers of rows where rules of a catalog service hide some of them."""
        return None if self._snapshot is None else self._context.shown(self._snapshot)

    @property
    def predicate(self) -> Predicate | None:
        """The filter of the rows; None means all."""
        return self._predicate

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that come out, in order."""
        return self._columns

    @property
    def limit(self) -> int | None:
        """The most rows that come out; None for all."""
        return self._limit

    def head(self, rows: int = 10) -> pa.Table:
        """The first rows, as they come, as a table: no more is read than they need."""
        most = check_limit(rows, "rows")
        return pa.Table.from_batches(
            _first(self._all_batches(), most if self._limit is None else min(most, self._limit)), schema=self.schema
        )

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None if the table has none yet."""
        return self._snapshot.id if self._snapshot else None

    @property
    def fields(self) -> dict[str, Field]:
        """The columns of the table that come out, by name."""
        fields = [self._context.schema.field(name) for name in self._columns]
        return {field.name: field for field in shown_fields(self._context.view, fields)}

    def narrowed(self, columns: Sequence[str], predicate: Predicate | None = None) -> "Scan":
        """Some columns of this scan, in the order of the scan, and some of its rows.

        The predicate only saves reading: rows for which it is not true may come out, as they do from a scan with a limit.
        """
        if predicate is None or self._limit is not None:
            combined = self._predicate
        else:
            combined = all_of([predicate] if self._predicate is None else [self._predicate, predicate])
        return type(self)(
            self._context,
            self._snapshot,
            tuple(name for name in self._columns if name in columns),
            combined,
            positions=self._positions and any(name in POSITION_COLUMNS for name in columns),
            limit=self._limit,
        )

    def to_dataset(self) -> "pyarrow.dataset.Dataset":
        """The rows as a ``pyarrow.dataset.Dataset``: DuckDB, polars and others read only the columns and rows that they ask for."""
        from tablestore.table.read.dataset import ScanDataset

        return ScanDataset(self)

    def to_duckdb(self, connection: "duckdb.DuckDBPyConnection", name: str) -> "duckdb.DuckDBPyRelation":
        """Register the rows as the view ``name``. Each query reads anew the columns and rows that it asks for, streaming."""
        connection.register(name, self.to_dataset())
        return connection.table(name)

    def scan_polars(self) -> "polars.LazyFrame":
        """The rows as a lazy frame of polars. When it is collected only the columns and rows that its query asks for are read."""
        extra("polars", "scan_polars")
        from tablestore.table.read.lazyframe import lazy_frame

        return lazy_frame(self)

    def splits(self) -> "tuple[ScanSplit, ...]":
        """The rows in parts that are read alone, in any order, by any process: each pickles, and is a scan of its own.

        As many as the files to read make, of a few megabytes each; none for an empty table. UnsupportedError for a scan with a
        limit, which no part could keep alone.
        """
        if self._limit is not None:
            raise UnsupportedError("a scan with a limit has no splits; take so many rows of what comes out of them", kind="limit")
        splits = self.plan.splits
        return tuple(ScanSplit(self, splits, place) for place in range(len(splits)))

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self.reader.arrow_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Rows as record batches of at most 128 k rows, streamed. Memory: a row group per overlapping run.

        Where there is much to read, splits are read side by side. With a ``limit`` none is read after it is reached.
        """
        check_filled(self._snapshot, self._context.schema, self._context.files.root_uri)
        return self._all_batches(side_by_side=True) if self._limit is None else _first(self._all_batches(), self._limit)

    def _all_batches(self, *, side_by_side: bool = False) -> Generator[pa.RecordBatch, None, None]:
        tracer = self._context.shared.observers.tracer
        if tracer is not None:
            yield from self._watched_batches(tracer, side_by_side)
            return
        with self._context.reading():
            yield from self._read_batches(side_by_side)

    def _watched_batches(self, tracer: Tracer, side_by_side: bool) -> Iterator[pa.RecordBatch]:
        """The rows, as one operation from the first that is asked for to the last."""
        rows = 0
        # Whoever reads does other things between two batches.
        with tracer.span("read", self._context.files.root_uri, encloses=False) as span, self._context.reading():
            try:
                for batch in self._read_batches(side_by_side):
                    rows += batch.num_rows
                    yield batch
            finally:
                span.record(rows=rows, snapshot_id=self.snapshot_id)

    def _read_batches(self, side_by_side: bool) -> Generator[pa.RecordBatch, None, None]:
        splits, reader = self.plan.splits, self.reader
        threads = min(threads_for(self.plan.size_bytes), len(splits)) if side_by_side else 1
        if threads < 2:
            for split in splits:
                yield from reader.read(split)
            return
        reader = replace(reader, bounds=reader.bounds.of_threads(threads))
        streams = (partial(reader.read, split) for split in splits)
        yield from one_after_another(streams, threads=threads, ahead=BATCHES_AHEAD)

    @property
    def reader(self) -> SplitReader:
        """The reader of the splits of its plan."""
        return SplitReader.of(self._context, self._columns, self._predicate, positions=self._positions)

    def count(self) -> int:
        """The number of rows, reading no more columns than that needs."""
        context, most = self._context, self._limit
        check_filled(self._snapshot, context.schema, context.files.root_uri)
        if self._snapshot is not None and self._is_whole and self._wanted is None and most is None:
            return self._counted(self._snapshot)
        if self._knows_counts and not have_deletions(self.plan.splits):
            count = int(rows_of(self.plan.splits).sum())
            return count if most is None else min(count, most)
        reader = SplitReader.of(context, (), self._predicate)
        with context.reading():
            batches = (batch for split in self.plan.splits for batch in reader.read(split))
            return sum(batch.num_rows for batch in (batches if most is None else _first(batches, most)))

    def _counted(self, snapshot: Snapshot) -> int:
        """The number of all rows, of which only those are read whose files do not tell how many they are."""
        context = self._context
        with context.reading():
            counts = count_files(context, snapshot)
            if not counts.to_read:
                # Manifests may have come out of a cache.
                context.still_there()
                return counts.rows
            plan = plan_scan(context, snapshot, wanted=WantedFiles(in_place=counts.to_read.__contains__))
            reader = SplitReader.whole(context, (), None)
            rows: int = sum(batch.num_rows for split in plan.splits for batch in reader.read(split))
            return counts.rows + rows

    @property
    def _knows_counts(self) -> bool:
        """True if files have as many rows as come out of them, but for those that are marked as deleted."""
        return self._is_whole and not self._context.schema.is_keyed

    @property
    def _is_whole(self) -> bool:
        """True if all rows come out: no filter, and no rule of a catalog service, leaves some out."""
        return self._predicate is None and self._context.view is None

    @lazy
    def plan(self) -> ScanPlan:
        """The splits that are read. Planned once: the snapshot is fixed, so it cannot change."""
        with self._context.reading():
            plan = plan_scan(
                self._context, self._snapshot, stored_condition(self._context.view, self._predicate), wanted=self._wanted
            )
        if self._limit is None or not self._knows_counts:
            return plan
        return replace(plan, splits=_splits_of(plan.splits, self._limit))

    @property
    def _wanted(self) -> WantedFiles | None:
        return None

    def explain(self) -> str:
        """The plan of the scan, as text for people."""
        view = self._context.view
        head = [
            f"Scan of {self._context.files.root_uri}",
            f"  snapshot   {self.snapshot_id if self._snapshot else 'none: the table is empty'}",
            f"  columns    {', '.join(self._columns) or '(none)'}",
            f"  filter     {'(none)' if self._predicate is None else to_sql(self._predicate)}",
            *([] if self._limit is None else [f"  limit      {self._limit:,} rows"]),
        ]
        if view is not None:
            # Which files a filter leaves tells of rows in them that are hidden.
            return "\n".join([*head, f"  rules      of the catalog service; masked: {', '.join(sorted(view.masks)) or '(none)'}"])
        plan = self.plan
        buckets = plan.buckets
        partitions = len({partition for partition, _ in buckets})
        among = f", in {partitions:,} partition{'s' * (partitions != 1)}" if self._context.schema.partition_keys else ""
        lines = [
            *head,
            f"  manifests  {plan.manifests_read} of {plan.manifests_total} read",
            f"  files      {plan.file_count} of {plan.files_total} read, {plan.merged_files} of them merged, "
            f"{plan.size_bytes:,} bytes",
            f"  splits     {len(plan.splits)}",
            f"  buckets    {len(buckets):,}{among}",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        text = None if self._predicate is None else to_sql(self._predicate)
        limit = "" if self._limit is None else f", limit={self._limit}"
        return f"Scan(snapshot_id={self.snapshot_id}, columns={list(self._columns)}, filter={text!r}{limit})"

    def _repr_html_(self) -> str:
        snapshot = (
            "none: the table is empty" if self._snapshot is None else f"{self._snapshot.id}, {utc_text(self._snapshot.time_millis)}"
        )
        return html_card(
            "Scan",
            self._context.files.root_uri,
            {
                "snapshot": snapshot,
                "columns": ", ".join(self._columns) or "(none)",
                "filter": "(none)" if self._predicate is None else to_sql(self._predicate),
                "limit": "(none)" if self._limit is None else f"{self._limit:,}",
            },
        )


class ScanSplit(ArrowSource):
    """A part of a scan. Made by ``scan.splits()``.

    It pickles with its snapshot and its files: another process reads the same rows, or NotFoundError once they have expired.
    """

    __slots__ = ("_place", "_scan", "_splits")

    def __init__(self, scan: Scan, splits: Sequence[Split], place: int) -> None:
        # A split becomes objects when it is read.
        self._scan, self._splits, self._place = scan, splits, place

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._scan, (self._split,), 0)

    @property
    def _split(self) -> Split:
        return self._splits[self._place]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._scan.schema

    @property
    def size_bytes(self) -> int:
        """The size of its files, all columns, as they are stored."""
        return self._split.size_bytes

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Rows as record batches of at most 128 k rows, streamed. Memory: a row group per overlapping run."""
        with self._scan.context.reading():
            yield from self._scan.reader.read(self._split)

    def __repr__(self) -> str:
        return f"ScanSplit({len(self._split.files)} files, {self.size_bytes:,} bytes, of {self._scan!r})"


class Readable(Protocol):
    """A table, as far as others read it."""

    @property
    def name(self) -> str: ...

    @property
    def location(self) -> str: ...

    @property
    def context(self) -> TableContext: ...

    @property
    def table_schema(self) -> TableSchema: ...

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        snapshot_id: int | None = None,
        timestamp: TimePoint | None = None,
        tag: str | None = None,
    ) -> Scan: ...


class ReadOptimizedScan(Scan):
    """A scan of the files of full compactions: nothing is merged, and newer rows are not seen. All of an append table."""

    @classmethod
    def of(cls, scan: Scan) -> "ReadOptimizedScan":
        """The same columns and rows of the same snapshot, read-optimised."""
        return cls(scan.context, scan.snapshot, scan.columns, scan.predicate, limit=scan.limit)

    @property
    def _wanted(self) -> WantedFiles | None:
        return compacted_files(self.context)


def _first(batches: Generator[pa.RecordBatch, None, None], most: int) -> Generator[pa.RecordBatch, None, None]:
    """The first rows of a stream, which is read no further, and closed."""
    with closing(batches):
        while most:
            if (batch := next(batches, None)) is None:
                return
            yield batch.slice(0, most)
            most -= min(batch.num_rows, most)


def _splits_of(splits: Sequence[Split], rows: int) -> Sequence[Split]:
    """The first splits that have so many rows; one with deletion vectors counts for none."""
    for place, split in enumerate(splits):
        if rows <= 0:
            return splits[:place]
        rows -= 0 if split.deletions else sum(file.row_count for file in split.files)
    return splits


def check_limit(limit: object, name: str = "limit") -> int:
    """A number of rows. Raises InvalidInputError."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise InvalidInputError(f"expected a number of rows as {name}, found {limit!r:.80}", kind="limit")
    return limit


def compacted_files(context: TableContext) -> WantedFiles | None:
    """The files that full compactions have left; None where everything is read without merging."""
    if not context.schema.is_keyed:
        return None
    top = context.changelog_settings.top_level
    return WantedFiles(at_level=lambda level: level == top)


def check_positions(context: TableContext) -> None:
    """Refuse to read positions of rows (see :mod:`~tablestore.types.rowposition`) where they have none. Raises UnsupportedError."""
    schema, where = context.schema, f"table {context.files.root_uri}"
    context.check_sees_all("where rows are stored")
    if schema.is_keyed:
        raise UnsupportedError(
            f"the rows of {where} have no positions in data files: it has a primary key ({', '.join(schema.primary_keys)}), and "
            "rows are merged from several files; name them by their key",
            kind="row-positions",
        )
    if clashing := [name for name in POSITION_COLUMNS if name in schema.field_names]:
        raise UnsupportedError(
            f"{where} has a column {clashing[0]!r}, a name that reads of positions need; rename the column",
            kind="row-positions",
        )


def check_filled(snapshot: Snapshot | int | None, schema: TableSchema, name: str) -> None:
    """Raise NotFoundError for a materialized table without a snapshot: that it has no rows is not the answer of its query."""
    if snapshot is None and is_materialized(schema.options):
        raise NotFoundError(
            f"materialized table {name} was not filled yet: its first refresh is still to come, or has failed. ALTER MATERIALIZED "
            "TABLE … REFRESH fills it now; DESCRIBE EXTENDED shows when it is due, and the last error",
            kind="not-filled",
        )


def check_columns(columns: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns to read, checked; None means all. Raises InvalidInputError."""
    if columns is None:
        return names
    if not isinstance(columns, Iterable):
        raise InvalidInputError(f"expected names of columns, found {columns!r}; write columns=['{names[0]}']")
    chosen = names_of(columns)
    for name in chosen:
        if name not in names:
            raise InvalidInputError(
                f"no column {name!r} in this table{did_you_mean(str(name), names)}; it has {', '.join(names)}",
                kind="unknown-column",
            )
    twice = sorted({name for name in chosen if chosen.count(name) > 1})
    if twice:
        raise InvalidInputError(f"column {twice[0]!r} is asked for more than once", kind="duplicate-column")
    return chosen
