"""The table handle: everything a user does with one table.

A handle holds no rows and no open files. It follows the table: each read and each write begins at the newest schema, and a handle
keeps the last one that it has seen. A scan, a writer and a stream of changes keep the schema that they began with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.htmltext import html_card, html_element
from tablestore.names import Names, check_reference, split_names
from tablestore.othernames import TABLE, missing_attribute, other_arguments
from tablestore.progress import Progress
from tablestore.store.context import TableContext
from tablestore.table.history.maintenance import Maintenance
from tablestore.table.read.scan import Scan, check_columns, check_limit
from tablestore.table.system.systemtable import SystemTable
from tablestore.telemetry.tracing import traced
from tablestore.timepoint import TimePoint, epoch_millis
from tablestore.types.filter.filters import Filter, parse_filter
from tablestore.types.filter.predicate import Predicate
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql

# Methods import the code of their work themselves: a program that only reads does not load what writes, compacts or follows.
if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.dataset

    from tablestore.log.follow.consumption import ChangeBatch
    from tablestore.log.follow.request import ScanMode
    from tablestore.log.position import Position
    from tablestore.table.change.merge import Merge
    from tablestore.table.change.mergestatement import On
    from tablestore.table.read.changes import Changes, OnDiscontinuity
    from tablestore.table.upkeep.compaction import CompactReport
    from tablestore.table.write.inputrows import Rows
    from tablestore.table.write.writer import TableWriter
    from tablestore.types.evolution.schemachanges import SchemaChange

# Of a table in a notebook: buckets that are drawn, and up to how many files it has then.
_DRAWN_BUCKETS, _DRAWN_FILES = 4, 1_000


class Table(Maintenance):
    """A managed table. Made by ``catalog.table(...)`` or ``tablestore.open_table(...)``.

    It pickles: another process gets a handle at the same schema, with the options of the file system (which may hold secrets).
    UnsupportedError of kind "not-serializable" for a table in the memory of this process.
    """

    # -- what it is

    @property
    def name(self) -> str:
        """``database.table``, or the path for a table opened by path."""
        return self._name

    @property
    def location(self) -> str:
        """The location of its files."""
        return self._context.files.root_uri

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its columns."""
        return self._context.schema.arrow_schema

    @property
    def table_schema(self) -> TableSchema:
        """Columns with ids, keys, partitioning and options, as stored."""
        return self._context.schema

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary key columns, empty for an append table."""
        return self._context.schema.primary_keys

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return self._context.schema.partition_keys

    @property
    def comment(self) -> str | None:
        """The comment of the table, which says what it is for."""
        return self._context.schema.comment

    @property
    def context(self) -> TableContext:
        """The engine's view of the table, for connectors and tools."""
        return self._context

    def options(self) -> dict[str, str]:
        """The table's options as stored."""
        return dict(self._context.schema.options)

    def refresh(self) -> "Table":
        """Look at the table anew, and return this handle: ``schema``, ``options()`` and ``comment`` are those of now.

        Raises NotFoundError for a dropped table, ConflictError if another is in its place.
        """
        self._move_to(self._context.still_there().reopened())
        return self

    # -- altering

    def alter(self, changes: "Sequence[SchemaChange] | SchemaChange") -> "Table":
        """Alter columns, options or comments (see :mod:`tablestore.types.evolution.schemachanges`), all changes or none.

        Returns this handle, which has the new schema. Options of the log may begin or end it (see
        :mod:`tablestore.log.alterlog`). Raises InvalidInputError, UnsupportedError, NotFoundError, AlreadyExistsError,
        ConflictError, StorageError (nothing was altered), CommitOutcomeUnknown.
        """
        from tablestore.types.evolution.schemachanges import RenameColumn

        if any(isinstance(change, RenameColumn) for change in (changes if isinstance(changes, Sequence) else (changes,))):
            # A rule of a catalog service would be about the column that has the name then.
            self._now.check_sees_all("a new name of a column")
        schema = self.change_log.alter(changes)
        self._move_to(self._context.reopened(schema))
        return self

    def writing_with(self, options: Mapping[str, str]) -> "Table":
        """A handle that writes with these options; nothing is altered, and nobody else sees them.

        Raises InvalidInputError for unknown ones, UnsupportedError for those that say what stored files mean.
        """
        from tablestore.options import validate_options
        from tablestore.types.evolution.optionchanges import check_against_data, check_never_changed

        context = self._now
        schema = context.schema
        new_options = {**schema.options, **options}
        for key in options:
            check_never_changed(key)
        validate_options(new_options)
        check_against_data(schema.options, new_options, has_data=True, was_written=True)
        return Table(context.at_schema(replace(schema, options=new_options)), self._name, self._logs)

    def rescale(self, buckets: int, *, progress: Progress | None = None) -> "Table":
        """Change the fixed number of buckets and overwrite every partition with its own rows, one after another.

        Writers that began before are refused. A call that was interrupted is continued by the next one. ``progress`` is called with
        a text, the bytes done and the bytes in all. Returns this handle.
        """
        from tablestore.table.history.rescale import rescale

        context = rescale(self._now, self._logs, buckets, progress=progress)
        self._move_to(context.reopened(context.schema))
        return self

    # -- reading

    @other_arguments(
        **dict.fromkeys(("where", "predicate", "row_filter", "query", "filters"), "filter"),
        **dict.fromkeys(("version", "as_of", "snapshot", "version_as_of"), "snapshot_id, timestamp or tag"),
        **dict.fromkeys(("selected_fields", "select", "projection", "fields"), "columns"),
        **dict.fromkeys(("timestamp_as_of", "as_of_timestamp"), "timestamp"),
    )
    def scan(
        self,
        columns: Names | None = None,
        filter: Filter = None,
        *,
        snapshot_id: int | None = None,
        timestamp: TimePoint | None = None,
        tag: str | None = None,
        positions: bool = False,
        limit: int | None = None,
    ) -> Scan:
        """Read the table, now or as of a snapshot id, a point in time or a tag (at most one of them).

        ``filter`` is SQL text, a pyarrow expression or a predicate. ``timestamp`` is a datetime or its text (without a zone: local
        time), or milliseconds since the epoch. Time travel sees the columns that the table had then. ``positions`` adds the columns
        ``_data_file`` and ``_row_position``, which say where each row of an append table is stored. At most ``limit`` rows come
        out, and no more is read than they need.

        Raises InvalidInputError, NotFoundError, UnsupportedError, ConflictError if another table is in the place of this one.
        """
        snapshot = self._snapshot(snapshot_id, timestamp, tag)
        # Looked up after the snapshot, so that it is no older.
        context = self._now
        if snapshot is not None and not (snapshot_id is None and timestamp is None and tag is None):
            context = context.at_schema(context.schemas.read(snapshot.schema_id))
        predicate = parse_filter(filter, context.schema.fields)
        names, most = check_columns(columns, context.schema.field_names), None if limit is None else check_limit(limit)
        return Scan(context, snapshot, names, predicate, positions=positions, limit=most)

    def count(self, filter: Filter = None) -> int:
        """The number of rows, or of those that fulfil a filter (as that of :meth:`scan`); no more is read than it needs."""
        return self.scan(filter=filter).count()

    def head(self, rows: int = 10) -> pa.Table:
        """The first rows, as they come: no more is read than they need."""
        return self.scan().head(rows)

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table in memory. ``scan`` reads some of them, and streams."""
        return self.scan().to_arrow()

    def to_pandas(self, **options: Any) -> "pandas.DataFrame":
        """All rows as a pandas frame; ``options`` go to ``pyarrow.Table.to_pandas``."""
        return self.scan().to_pandas(**options)

    def to_polars(self) -> "polars.DataFrame":
        """All rows as a polars frame."""
        return self.scan().to_polars()

    def to_dataset(self) -> "pyarrow.dataset.Dataset":
        """The rows as of now as a ``pyarrow.dataset.Dataset``, as ``table.scan().to_dataset()``."""
        return self.scan().to_dataset()

    def scan_polars(self) -> "polars.LazyFrame":
        """The rows as of now as a lazy frame of polars, as ``table.scan().scan_polars()``."""
        return self.scan().scan_polars()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        # A handle is one, however many rows the table has.
        return True

    def __getitem__(self, key: object) -> NoReturn:
        raise InvalidInputError(
            f"a table is no list of rows or columns, found [{key!r:.80}]; here it is table.scan(columns, filter).to_batches(), or "
            "table.to_arrow()[column]",
            kind="other-name",
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise missing_attribute(self, name, TABLE)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def _snapshot(self, snapshot_id: int | None, timestamp: TimePoint | None, tag: str | None) -> Snapshot | None:
        selectors = [
            name for name, value in (("snapshot_id", snapshot_id), ("timestamp", timestamp), ("tag", tag)) if value is not None
        ]
        if len(selectors) > 1:
            raise InvalidInputError(f"expected at most one of snapshot_id, timestamp and tag, found {' and '.join(selectors)}")
        snapshots = self._context.snapshots
        if not selectors:
            latest = snapshots.latest()
            self._context.check_is_there()
            return latest
        try:
            if snapshot_id is not None:
                return snapshots.live(_whole_number(snapshot_id, "snapshot_id"))
            if tag is not None:
                return snapshots.tagged(check_reference(tag, "tag"))
            return snapshots.at_time(epoch_millis(timestamp))
        finally:
            # Found or not: what was looked at may be the history of another table, and the newest snapshot was not.
            self._context.still_there()

    # -- writing

    def append(self, rows: "Rows") -> Snapshot | None:
        """Add rows to a table without a primary key. Returns the new snapshot, None if there were no rows."""
        if self._now.schema.is_keyed:
            raise InvalidInputError(
                f"table {self._name} has a primary key ({', '.join(self.primary_key)}): rows of a known key replace the old ones, "
                "so write with table.upsert(rows)",
                kind="keyed-table",
            )
        return self._write("append", rows)

    def upsert(self, rows: "Rows", *, missing_columns: str = "refuse") -> Snapshot | None:
        """Insert rows, replacing those of the same primary key. Returns the new snapshot, None if there were no rows.

        Rows that lack columns are refused where stored values would be lost (see :meth:`TableWriter.write`).
        """
        if not self._now.schema.is_keyed:
            raise InvalidInputError(
                f"table {self._name} has no primary key to upsert by: use table.append(rows)", kind="append-table"
            )
        return self._write("upsert", rows, missing_columns=missing_columns)

    def write_changes(self, rows: "Rows", *, missing_columns: str = "refuse") -> Snapshot | None:
        """Apply changes: rows with a ``_row_kind`` column of ``+I``, ``-U``, ``+U``, ``-D``; append tables take ``+I`` only.

        Within one call the later row of a key wins. ``missing_columns`` as in :meth:`upsert`; retractions may lack columns that do
        not order rows.
        """
        tracer = self._context.shared.observers.tracer
        with traced(tracer, "write_changes", self._context.files.root_uri), self.new_writer() as writer:
            writer.write(rows, changes=True, missing_columns=missing_columns)
            return writer.commit()

    @other_arguments(**dict.fromkeys(("where", "predicate", "delete_filter", "filter", "condition"), "the first: delete('id = 1')"))
    def delete(self, filter_or_keys: "Rows | str | pc.Expression | Predicate") -> Snapshot | None:
        """Delete rows by a filter (as that of :meth:`scan`), or by key: rows with the primary key columns.

        A condition is about the table at the moment of the commit: rows that others wrote meanwhile are tested too.
        Returns the new snapshot, None if nothing matched.
        """
        if isinstance(filter_or_keys, (str, pc.Expression)) or _is_predicate(filter_or_keys):
            context = self._now
            predicate = parse_filter(filter_or_keys, context.schema.fields)
            assert predicate is not None, "a filter was given"
            from tablestore.table.write.delete import delete_where

            with traced(self._context.shared.observers.tracer, "delete", self._context.files.root_uri):
                return delete_where(context, self.change_log, predicate)
        from tablestore.table.write.committing import Effect

        with traced(self._context.shared.observers.tracer, "delete", self._context.files.root_uri), self.new_writer() as writer:
            writer.delete(filter_or_keys)
            return writer.commit_as(Effect(operation="DELETE"))

    @other_arguments(
        **dict.fromkeys(("updates", "values", "new_values"), "set"), **dict.fromkeys(("where", "predicate", "condition"), "filter")
    )
    def update(self, set: Mapping[str, Any], filter: Filter = None) -> Snapshot | None:
        """Set columns of the rows that fulfil a filter (as that of :meth:`scan`; None: of all rows), as SQL's UPDATE does.

        ``set``: by column SQL text over the old row (``{"price": "price * 1.1"}``), or any other value of Python's. Conditions are
        about the table at the moment of the commit. Returns the new snapshot, None if nothing matched. Raises InvalidInputError
        for values that an INSERT would refuse, UnsupportedError for what only an SQL engine computes, ConflictError.
        """
        from tablestore.table.change.update import update_where

        context = self._now
        with traced(self._context.shared.observers.tracer, "update", self._context.files.root_uri):
            return update_where(context, self.change_log, set, parse_filter(filter, context.schema.fields))

    @other_arguments(
        **dict.fromkeys(("predicate", "condition", "join_cols"), "on"),
        **dict.fromkeys(("source_alias", "target_alias"), "left out: on names them source and target"),
    )
    def merge(self, source: "Rows", on: "On") -> "Merge":
        """Merge rows into the table, as SQL's MERGE does: ``merge(rows, on="id").when_matched_update_all().execute()``.

        ``on``: the name of a column, or of several, that have to be equal in the table and in ``source``; a dict where they are
        called differently (``{"id": "order_id"}``, the table's first); or a condition such as ``"target.id = source.id AND
        target.day > source.day"``. The clauses are methods of what comes back, and nothing is read before its ``execute``.
        """
        from tablestore.table.change.merge import merge_into

        return merge_into(self._now, self.change_log, source, on)

    def overwrite(self, rows: "Rows", partition: Mapping[str, Any] | None = None) -> Snapshot | None:
        """Replace rows. With ``partition`` exactly the partitions that match it (``{}``: the whole table); without it the
        partitions that ``rows`` fall into (option ``dynamic-partition-overwrite``), or the whole unpartitioned table."""
        from tablestore.table.write.overwrite import overwrite

        with traced(self._context.shared.observers.tracer, "overwrite", self._context.files.root_uri):
            return overwrite(self._now, self.change_log, rows, partition)

    def compact(
        self,
        *,
        full: bool = False,
        partitions: Iterable[Mapping[str, Any]] | None = None,
        order_by: Names | None = None,
        order_strategy: str = "auto",
        progress: Progress | None = None,
    ) -> "CompactReport":
        """Merge the files that are due, or (``full``) all files of each bucket into one sorted run. Queries see the same rows.

        ``partitions``: only these, each given by some or all of its column values. ``order_by``: the rows of an append table are
        put in the order of these columns (a text: separated by commas), by ``order_strategy`` (``order``, ``zorder``,
        ``hilbert``, or ``auto`` for the one that suits their number), so that queries leave files out by them; the option
        ``clustering.columns`` with ``clustering.incremental`` does so in each compaction. Afterwards manifests that overlap are
        rewritten (:meth:`compact_manifests`), and snapshots that are due expire, those of ``write-only`` tables too. ``progress``
        is called with a text, the bytes done and the bytes in all. Returns a report, which prints.
        """
        from tablestore.lsm.clusterorder import ClusterOrder
        from tablestore.table.upkeep.aftercommit import after_compaction
        from tablestore.table.upkeep.compaction import compact_table
        from tablestore.table.upkeep.postponed import compact_postponed

        context = self._present
        chosen = None if partitions is None else tuple(partitions)
        order = (
            None
            if order_by is None
            else ClusterOrder.of(split_names(order_by) if isinstance(order_by, str) else order_by, order_strategy)
        )
        with traced(self._context.shared.observers.tracer, "compact", self._context.files.root_uri) as span:
            report = compact_postponed(context, chosen)
            report += compact_table(context, full=full, partitions=chosen, order_by=order, progress=progress)
            after_compaction(context, lambda: self.change_log, report.snapshot_ids)
            span.record(files=report.files_written, size_bytes=report.bytes_written)
        return report

    def new_writer(self, commit_user: str | None = None) -> "TableWriter":
        """A writer for many writes in one commit; with a ``commit_user`` its numbered commits are applied once each."""
        return self._writer(self._now, commit_user)

    def _writer(self, context: TableContext, commit_user: str | None = None) -> "TableWriter":
        from tablestore.table.write.writer import TableWriter

        return TableWriter(context, self.change_log, commit_user=commit_user, early=True)

    def _write(self, operation: str, rows: Any, *, missing_columns: str = "refuse") -> Snapshot | None:
        tracer = self._context.shared.observers.tracer
        with traced(tracer, operation, self._context.files.root_uri), self._writer(self._context) as writer:
            writer.write(rows, changes=False, missing_columns=missing_columns)
            return writer.commit()

    def changes(
        self,
        from_snapshot: int,
        to_snapshot: int | None = None,
        columns: Names | None = None,
        filter: Filter = None,
        *,
        pairs: bool = True,
        snapshot_ids: bool = False,
        on_discontinuity: "OnDiscontinuity" = "raise",
    ) -> "Changes":
        """The changes after ``from_snapshot`` up to ``to_snapshot`` (default: the latest), oldest first, with ``_row_kind``.

        An update is a ``-U`` and a ``+U``. ``pairs=False`` leaves ``-U`` out; in tables whose new rows simply replace old ones that
        saves looking old rows up. ``snapshot_ids`` adds the column ``_snapshot_id``. With a ``filter`` a row that leaves it by an
        update becomes ``-D``, one that enters it ``+I``. Raises NotFoundError for snapshots that have expired, and when reading for
        one whose changes are not known (an overwrite, an untracked write) unless ``on_discontinuity`` is ``"skip"``.
        """
        from tablestore.table.read.changes import read_changes

        context = self._now
        return read_changes(
            context,
            from_snapshot,
            to_snapshot,
            columns,
            parse_filter(filter, context.schema.fields),
            pairs=pairs,
            snapshot_ids=snapshot_ids,
            on_discontinuity=on_discontinuity,
        )

    def consume(
        self,
        scan: "ScanMode | None" = None,
        *,
        consumer_id: str | None = None,
        position: "Position | Mapping[str, object] | str | None" = None,
        timestamp: TimePoint | None = None,
        columns: Names | None = None,
        filter: Filter = None,
        pairs: bool = False,
        as_written: bool = True,
        follow: bool = True,
        on_discontinuity: Literal["raise", "skip", "restart"] = "raise",
        stop: Callable[[], bool] | None = None,
    ) -> "Iterator[ChangeBatch]":
        """The rows of the table and then every change, as batches with ``_row_kind``: each change once, in order, without a gap.

        ``scan`` says where to begin (default: the table's ``log.scan``): ``"full"`` with all rows, ``"latest"`` behind the newest
        snapshot, ``"from-timestamp"`` with the changes of the first snapshot at or after ``timestamp``. A ``consumer_id`` that is
        known goes on where its last ``batch.commit()`` was; a ``position`` (or its text) where that batch ended, in this table
        and this history. ``pairs`` adds ``-U`` rows. ``as_written=False``: what the rows of a table with ``changelog-producer =
        input`` have changed is looked up, instead of the changes as they were written.
        ``follow=False`` ends at the newest snapshot, ``stop`` is asked between snapshots. Raises NotFoundError of kind
        ``discontinuity`` (unless asked to ``"skip"`` or ``"restart"``) and ``snapshot-expired``.
        """
        from tablestore.log.follow.request import Consumption, parse_start

        time_millis, context = None if timestamp is None else epoch_millis(timestamp), self._now
        request = Consumption(
            columns=check_columns(columns, context.schema.field_names),
            predicate=parse_filter(filter, context.schema.fields),
            pairs=pairs,
            as_written=as_written,
            start=parse_start(context, scan=scan, time_millis=time_millis, consumer_id=consumer_id, position=position),
            follow=follow,
            on_discontinuity=on_discontinuity,
            stop=stop,
        )
        return self.change_log.follow(request)

    def position_after(self, snapshot_id: int) -> "Position":
        """The position behind a snapshot: ``consume(position=...)`` goes on with the changes of the next one; 0 for all of them."""
        from tablestore.log.identity import Identity

        return Identity(self._present).after(_whole_number(snapshot_id, "snapshot_id"))

    # -- looking around

    def snapshots(self) -> tuple[Snapshot, ...]:
        """The retained snapshots, oldest first; without numbers of rows where rules of a catalog service hide some of them."""
        context = self._present.ruled()
        return tuple(map(context.shown, context.snapshots.retained()))

    def files(self) -> pa.Table:
        """The live data files of the newest snapshot."""
        from tablestore.table.inspect.listing import files_table

        return files_table(self._present)

    def partitions(self) -> pa.Table:
        """The partitions of the newest snapshot with rows (before merging), files and bytes."""
        from tablestore.table.inspect.listing import partitions_table

        return partitions_table(self._present)

    def schema_history(self) -> pa.Table:
        """Every schema that the table has had."""
        from tablestore.table.inspect.listing import schema_history_table

        return schema_history_table(self._present)

    def system(self, name: str) -> SystemTable:
        """One of its system tables, such as ``snapshots``, ``files`` or ``audit_log`` (see
        :mod:`tablestore.table.system.systemtable`).

        Raises NotFoundError that names them all.
        """
        return SystemTable(self, name)

    def __repr__(self) -> str:
        return f"Table({self._name!r}, location={self.location!r})"

    def _repr_html_(self) -> str:
        schema = self._context.schema
        facts = {
            "location": self.location,
            "columns": ", ".join(f"{field.name} {type_to_sql(field.type)}" for field in schema.fields),
            "primary key": ", ".join(schema.primary_keys),
            "partitioned by": ", ".join(schema.partition_keys),
            "comment": schema.comment,
        }
        card = html_card("Table", self._name, {key: value for key, value in facts.items() if value})
        return card + self._drawing()

    def _drawing(self) -> str:
        """The largest buckets as pictures, of a table that has few files; nothing where they cannot be read."""
        from tablestore.store.filesums import summed_files
        from tablestore.table.inspect.bucketdrawing import bucket_table, bucket_title
        from tablestore.table.inspect.bucketpicture import describe_buckets

        try:
            latest = self._context.snapshots.latest()
            sums = summed_files(self._context.manifests, latest, "bucket")
            if sum(one.files for one in sums) > _DRAWN_FILES:
                return ""
            pictures = describe_buckets(self._context, latest)
        except TablestoreError:
            # What is known without its files is shown all the same.
            return ""
        drawn = sorted(pictures, key=lambda picture: -picture.size_bytes)[:_DRAWN_BUCKETS]
        keyed = self._context.schema.is_keyed
        return "".join(html_element("div", None, bucket_title(one), bucket_table(one, keyed=keyed)) for one in drawn)


def _is_predicate(value: object) -> bool:
    # The union is written with `|`, which isinstance takes.
    return isinstance(value, Predicate)


def _whole_number(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInputError(f"expected a whole number as {name}, found {value!r}")
    return value
