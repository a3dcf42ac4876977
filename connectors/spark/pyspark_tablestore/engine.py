"""Runs queries in Spark: the implementation of :class:`tablestore.environment.engine.QueryEngine`.

The user's text goes to Spark as it is, but for the names of tables, whose places are taken by DataFrames of tablestore's own
(``namedframes``): one fresh relation per reference, of the pinned snapshot, the columns and the condition that the query needs.
Works in classic sessions and through Spark Connect.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from threading import get_ident
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.utils import is_remote

from pyspark_tablestore.change import change_messages
from pyspark_tablestore.compact import compact
from pyspark_tablestore.functions import register_function
from pyspark_tablestore.publish import spark_log
from pyspark_tablestore.query.connected import check_connected, read_connected, write_connected
from pyspark_tablestore.query.driverrows import held_frame
from pyspark_tablestore.query.keypairs import has_few_rows, is_surely_small, key_pairs
from pyspark_tablestore.query.matching import kept, needed_part
from pyspark_tablestore.query.namedframes import frame_of
from pyspark_tablestore.query.queryerrors import query_errors
from pyspark_tablestore.query.sealing import lists_subqueries, sealed
from pyspark_tablestore.query.sparksession import own_session, running_session
from pyspark_tablestore.query.streamedrows import streamed_batches
from pyspark_tablestore.relation import read_by, read_pinned, write_job
from pyspark_tablestore.sparkserver import check_server
from pyspark_tablestore.streaming.followed import followed_query
from pyspark_tablestore.streaming.ingest import SparkIngest
from pyspark_tablestore.streaming.inserting import StreamingInsert, start_insert
from pyspark_tablestore.typemapping import arrow_schema, collectable, result_schema, spark_schema
from tablestore.distributed.change import prepare_change
from tablestore.distributed.read import ReadPin, pinned_fields, pinned_scan
from tablestore.distributed.write import prepare_write
from tablestore.environment.engine import (
    BoundQuery,
    ChangeTarget,
    ConnectorRelation,
    Function,
    InsertTarget,
    ManagedRelation,
    NativeRelation,
    QueryRelation,
    Relation,
    RowsRelation,
)
from tablestore.environment.streams.streamedquery import streams_of
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.ids import Ids, SystemIds
from tablestore.table.table import Table
from tablestore.table.upkeep.compaction import CompactReport
from tablestore.table.write.changetasks import commit_changes

# Settings of Spark that say what literals, names and operators mean, with the value that they have by themselves.
_MEANINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
}


class SparkRows:
    """A query that is ready to run. Its result is collected in this process; ``native`` is the DataFrame to go on with in Spark."""

    def __init__(self, engine: "SparkEngine", frame: DataFrame, query: BoundQuery | None = None) -> None:
        self._engine, self._native, self._query = engine, frame, query

    @cached_property
    def _frame(self) -> DataFrame:
        return collectable(self._native)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns; times with a zone are in UTC."""
        with query_errors("the query", self._query):
            return result_schema(self._frame.schema)

    @property
    def native(self) -> DataFrame:
        """The DataFrame."""
        return self._native

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, collected when the first is asked for: Spark hands over a whole result at once. Memory: all of it."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def streamed(self) -> pa.RecordBatchReader:
        """The rows, one partition after another. Memory: two partitions of the result (``streamedrows``)."""
        return pa.RecordBatchReader.from_batches(self.schema, self._partitions())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with query_errors("the query", self._query), self._engine.cancellable():
            table = self._frame.toArrow()
        yield from _cast(table, self.schema).to_batches()

    def _partitions(self) -> Iterator[pa.RecordBatch]:
        with query_errors("the query", self._query), self._engine.cancellable() as run:
            for batch in streamed_batches(self._frame, run.check):
                yield from _cast(pa.Table.from_batches([batch]), self.schema).to_batches()


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [column.cast(field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(eq=False, slots=True)
class _Run:
    """The run of one thread."""

    thread: int
    cancelled: bool = False

    def check(self) -> None:
        """Raises if it was cancelled: between two jobs of Spark there is nothing that Spark could end."""
        if self.cancelled:
            raise UnsupportedError("the query was cancelled; what it wrote is not in the table", kind="cancelled")


class SparkEngine:
    """Queries in one Spark session. A session that was handed in is not stopped."""

    name = "spark"
    takes_hints = True

    def __init__(self, spark: SparkSession, *, owned: bool = False, ids: Ids | None = None) -> None:
        check_server(spark)
        self._spark, self._owned = spark, owned
        self._closed = False
        self._runs: set[_Run] = set()
        self._ids = ids or SystemIds()
        self._tag = f"tablestore-{self._ids.uuid()}"

    @property
    def session(self) -> SparkSession:
        """The Spark session."""
        return self._spark

    def query(self, query: BoundQuery) -> SparkRows:
        return SparkRows(self, self._frame(query), query)

    def read(self, query: BoundQuery) -> pa.RecordBatchReader:
        return self.query(query).to_reader()

    def explain(self, query: BoundQuery) -> str:
        frame = self._frame(query)
        with query_errors("the query", query):
            return "\n\n".join([*map(self._explained, _managed(query)), _plan_text(frame)])

    def _explained(self, relation: ManagedRelation) -> str:
        """A managed table, with what is read of it and by whom."""
        pinned = pinned_scan(relation.pin, relation.columns, relation.filter)
        scan = pinned.explain()
        if pinned.context.view is not None:
            return f"{relation.name}: {scan}"
        by = read_by(self._spark, relation.pin, relation.columns, relation.filter, positions=relation.positions)
        return f"{relation.name}: {scan}\n  read by    {by}"

    def insert(self, query: BoundQuery, target: InsertTarget) -> Snapshot | None:
        with query_errors(f"writing to {target.table.name}", query), self.cancellable():
            frame = self._frame(query)
            if frame.isStreaming:
                raise UnsupportedError(
                    f"writing to {target.table.name}: the query reads a stream, which does not end: SET 'execution.runtime-mode' = "
                    "'streaming'",
                    kind="streaming",
                )
            overwrite = target.overwrite is not None or target.dynamic
            rows = arrow_schema(frame.schema)
            job = prepare_write(target.table, target.spec, rows=rows, missing_columns=target.missing_columns, overwrite=overwrite)
            return write_job(
                frame,
                job,
                table=target.table,
                partition=target.overwrite,
                dynamic=target.dynamic,
                commit_user=target.commit_user,
                commit_identifier=target.commit_identifier,
                note=target.note,
            )

    def is_stream(self, query: BoundQuery) -> bool:
        return next(streams_of(query), None) is not None or self._frame(query).isStreaming

    def insert_stream(
        self, query: BoundQuery, target: InsertTarget, *, checkpoint: str, interval_ms: int | None = None
    ) -> StreamingInsert:
        if is_remote():
            raise UnsupportedError(
                "execution.runtime-mode = streaming: streams into tables need a session of this process, not Spark Connect; write "
                'the stream with df.writeStream.format("tablestore")',
                kind="engine",
            )
        with query_errors(f"writing the stream to {target.table.name}", query):
            frame = self._frame(followed_query(self._spark, query, target.table))
        return start_insert(frame, query, target, checkpoint=checkpoint, interval_ms=interval_ms)

    def change(self, query: BoundQuery, target: ChangeTarget) -> Snapshot | None:
        """Applies the rows of a query as changes; files are written again in tasks too. Raises StalePlan if rows changed since."""
        job = prepare_change(target.table, target.pin, target.change)
        with (
            query_errors(f"{target.change.operation} on {target.table.name}", query),
            self.cancellable(),
            self._changes(query, target) as (rows, is_small),
        ):
            messages = change_messages(rows, target.pin.spec, job, target.table, is_small=is_small)
        log = spark_log(self._spark, target.pin.spec, target.table)
        return commit_changes(target.table.context, log, job, messages, note=target.note, prepared=True)

    def check_target(self, target: ConnectorRelation) -> None:
        check_connected(target)

    def write(
        self, query: BoundQuery, target: ConnectorRelation, *, overwrite: bool, partition: Mapping[str, str | None] | None = None
    ) -> None:
        with query_errors(f"writing to {target.name}", query), self.cancellable():
            write_connected(self._frame(query), target, overwrite=overwrite, partition=partition)

    def compact(self, table: Table, pin: ReadPin, partitions: Sequence[Mapping[str, Any]] | None) -> CompactReport:
        with query_errors(f"compacting {table.name}"), self.cancellable():
            return compact(self._spark, table.location, full=True, partitions=partitions, storage_options=pin.spec.storage_options)

    def ingest_engine(self, storage_options: Mapping[str, Any]) -> SparkIngest:
        return SparkIngest(self._spark, storage_options)

    def knows(self, parts: tuple[str, ...]) -> bool:
        quoted = ".".join("`" + part.replace("`", "``") + "`" for part in parts)
        try:
            return bool(self._spark.catalog.tableExists(quoted))
        except AnalysisException:
            # There is no such catalog, or none with names of so many parts.
            return False

    def list_views(self) -> tuple[str, ...]:
        return tuple(sorted(table.name for table in self._spark.catalog.listTables() if table.isTemporary))

    def register_function(self, name: str, function: Function) -> None:
        with query_errors(f"function {function.name}"):
            register_function(self._spark, name, function)

    def drop_function(self, name: str) -> None:
        with query_errors("DROP FUNCTION"):
            self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")

    def agrees(self, *, calls: bool) -> bool:
        """True if the settings are Spark's own that say what literals, names and operators mean. Any function may be replaced."""
        with query_errors("the settings"):
            return not calls and all(self._spark.conf.get(key, value) == value for key, value in _MEANINGS.items())

    def has_function(self, name: str) -> bool:
        with query_errors("the names of functions"):
            return bool(self._spark.catalog.functionExists("`" + name.replace("`", "``") + "`"))

    def is_native(self, value: object) -> bool:
        return isinstance(value, DataFrame)

    def execute(self, text: str) -> SparkRows | None:
        with query_errors("the statement"):
            return SparkRows(self, self._spark.sql(text))

    def set_option(self, key: str, value: str | None) -> None:
        with query_errors(f"SET {key}"):
            if value is None:
                self._spark.conf.unset(key)
            else:
                self._spark.conf.set(key, value)

    def cancel(self, thread: int | None = None) -> None:
        for run in list(self._runs):
            run.cancelled = run.cancelled or thread in (None, run.thread)
        tag = self._tag if thread is None else self._tag_of(thread)
        if is_remote():
            self._spark.interruptTag(tag)
        else:
            self._spark.sparkContext.cancelJobsWithTag(tag)

    def close(self) -> None:
        if self._owned:
            self._closed = True
            self._spark.stop()

    @contextmanager
    def cancellable(self) -> Iterator[_Run]:
        """Lets another thread end what runs inside, by :meth:`cancel`. Raises InvalidInputError once the session was stopped."""
        self._check_open()
        tags = (self._tag, self._tag_of(get_ident()))
        add, remove = self._spark.addTag, self._spark.removeTag
        if not is_remote():
            add, remove = self._spark.sparkContext.addJobTag, self._spark.sparkContext.removeJobTag
        for tag in tags:
            add(tag)
        self._runs.add(run := _Run(get_ident()))
        try:
            yield run
        finally:
            self._runs.discard(run)
            for tag in tags:
                remove(tag)

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError(
                "the engine spark was closed, with its environment: read the rows of a query before env.close()", kind="closed"
            )

    def _tag_of(self, thread: int) -> str:
        return f"{self._tag}-{thread}"

    @contextmanager
    def _changes(self, query: BoundQuery, target: ChangeTarget) -> Iterator[tuple[DataFrame, bool]]:
        """The rows of a query that changes a table, read of it only what counts; and whether one task is enough for them."""
        seals = lists_subqueries(query.text)
        if (matching := target.matching) is None:
            yield self._frame(query), False
            return
        source = self._relation(query.relations[matching.source], seals=seals)
        changed = query.relations[matching.target]
        paired, pairs = matching.paired, None
        if paired is not None and isinstance(changed, ManagedRelation):
            pairs = key_pairs(source, changed, matching.columns, target.table.primary_key)
        if paired is not None and pairs is not None and is_surely_small(source):
            yield self._frame(paired, [pairs.of(source)]), True
            return
        with kept(source) as source:
            if paired is not None and pairs is not None and has_few_rows(source):
                yield self._frame(paired, [pairs.of(source)]), True
                return
            # Subqueries may read large tables.
            key = target.table.primary_key if len(query.relations) == 2 else ()
            needed = needed_part(source, changed, matching.columns, key)
            frames = {
                matching.source: source.coalesce(1) if needed.is_small else source,
                matching.target: needed.of(lambda relation: self._relation(relation, seals=seals, filtered=True)),
            }
            other_relations = {place: relation for place, relation in enumerate(query.relations) if place not in frames}
            frames |= {place: self._relation(relation, seals=seals) for place, relation in other_relations.items()}
            yield self._frame(query, [frames[place] for place in range(len(frames))]), needed.is_small

    def _frame(self, query: BoundQuery, relations: Sequence[DataFrame] | None = None, *, seals: bool = False) -> DataFrame:
        """The query as a DataFrame. ``relations``: where they are made already; ``seals``: it is part of a query that keeps
        projections out of tables."""
        self._check_open()
        if relations is None:
            seals = seals or lists_subqueries(query.text)
            with query_errors("the query"):
                relations = [self._relation(relation, seals=seals) for relation in query.relations]
        values = query.parameters
        parameters: dict[str, Any] | list[Any]
        if isinstance(values, Mapping):
            parameters = {name: _parameter(value) for name, value in values.items()}
        else:
            parameters = [_parameter(value) for value in values]
        with query_errors("the query", query):
            return frame_of(self._spark, query, relations, parameters, self._ids)

    def _relation(self, relation: Relation, *, seals: bool, filtered: bool = False) -> DataFrame:
        """The rows of a relation. ``filtered``: only those that pass its filter, which a query says again in most cases."""
        match relation:
            case ManagedRelation(pin=pin) if pin.snapshot_id is None and not relation.positions:
                fields = spark_schema(pinned_fields(pin, relation.columns))
                # The source of data is asked by a process of its own.
                return self._spark.range(0).select(sf.lit(None).cast(fields).alias("row")).select("row.*")
            case ManagedRelation():
                rows = read_pinned(
                    self._spark,
                    relation.pin,
                    columns=relation.columns,
                    filter=relation.filter,
                    positions=relation.positions,
                    filtered=filtered,
                )
                return sealed(rows) if seals else rows
            case QueryRelation():
                return self._frame(relation.query, seals=seals)
            case RowsRelation():
                # System tables are small; the changes of a table take the driver's memory.
                return held_frame(self._spark, relation.rows.to_arrow(), relation.name)
            case ConnectorRelation():
                return read_connected(self._spark, relation)
            case NativeRelation(value=DataFrame() as value):
                return value
            case NativeRelation():
                raise InvalidInputError(
                    f"{relation.name}: expected a Spark DataFrame, found {type(relation.value).__qualname__}", kind="native-object"
                )


def open_engine(session: object | None = None, **settings: str) -> SparkEngine:
    """The engine over a session: the given one, the one that runs in this process, or a new local one with ``settings``.

    Raises UnsupportedError for a session of a server that is no Apache Spark.
    """
    if session is not None and not _is_session(session):
        raise InvalidInputError(f"expected a SparkSession as spark, found {type(session).__module__}.{type(session).__qualname__}")
    spark_session: Any = session or running_session()
    return SparkEngine(spark_session) if spark_session is not None else SparkEngine(own_session(settings), owned=True)


def _is_session(value: object) -> bool:
    """Spark Connect's sessions are no subclass of the classic ones, and importing them needs packages that few have."""
    return any((kind.__module__.partition(".")[0], kind.__name__) == ("pyspark", "SparkSession") for kind in type(value).__mro__)


def _parameter(value: Any) -> Any:
    """A value for Spark, which takes a datetime without a zone, a time without one, for a moment in the session's zone."""
    if isinstance(value, Mapping):
        return sf.struct(*(sf.lit(_parameter(part)).alias(str(name)) for name, part in value.items()))
    if isinstance(value, list):
        return sf.array(*(sf.lit(_parameter(part)) for part in value))
    if isinstance(value, datetime) and value.tzinfo is None:
        return sf.expr(f"TIMESTAMP_NTZ'{value.isoformat(' ')}'")
    return value


def _managed(query: BoundQuery) -> Iterator[ManagedRelation]:
    """The managed tables that a query reads, those of views too."""
    for relation in query.relations:
        if isinstance(relation, QueryRelation):
            yield from _managed(relation.query)
        elif isinstance(relation, ManagedRelation):
            yield relation


def _plan_text(frame: DataFrame) -> str:
    if is_remote():
        return str(frame._explain_string())  # type: ignore[operator]
    plan: Any = frame
    return str(plan.sparkSession._jvm.PythonSQLUtils.explainString(plan._jdf.queryExecution(), "formatted"))
