"""Defines the port to engines of queries, ``QueryEngine``, and the values that cross it.

    statement -> (names resolved, snapshots fixed, columns and conditions pruned) -> BoundQuery -> engine -> rows | snapshot

An engine is found by the entry point ``tablestore.query_engines``; ``spark`` and ``duckdb`` come with tablestore. The engine never
resolves the name of a managed table: each reference in a :class:`BoundQuery` says what it reads. Tables and views of
the engine's own it finds by the names that the query lists, functions by those in the text.

Errors that leave an engine are tablestore's: InvalidInputError of kind ``query`` for a query that it refuses, UnsupportedError of
kind ``engine`` for what it cannot do, with the name of an engine that can.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import pyarrow as pa

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.sql.query.parsedquery import ParsedQuery
from tablestore.sql.query.querytext import Piece, origin_of
from tablestore.sql.source import Edit, Path, Span, apply_edits
from tablestore.sql.sqldialect import SqlDialect

if TYPE_CHECKING:
    from tablestore.cdc.ingest.ingesting import IngestEngine
    from tablestore.distributed.read import ReadPin
    from tablestore.distributed.spec import TableSpec
    from tablestore.format.snapshot import Snapshot
    from tablestore.log.follow.request import ScanMode
    from tablestore.table.read.scan import ArrowSource
    from tablestore.table.table import Table
    from tablestore.table.write.committing import CommitNote
    from tablestore.table.write.rowchange import RowChange
    from tablestore.types.datatypes import DataType, Field
    from tablestore.types.filter.predicate import Predicate
    from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart:
    """The start of a stream that reads a managed table: as ``log.scan`` says, or where the consumer of this name stands."""

    scan: "ScanMode"
    time_millis: int | None = None
    consumer_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedRelation:
    """A managed table at one snapshot (``pin``).

    ``columns`` are the only ones that the query uses, None for all. ``filter`` is a condition on the columns of ``schema`` that
    every row which the query uses fulfils: the engine may leave other rows out, and filters again itself. ``positions``: the rows
    also have the columns of their place (file and row number), for deletes from append tables.

    ``follows``: it is a stream, the rows and then every change from there on. ``at_each_batch``: a stream's rows are looked up in
    it, at the newest snapshot as of each of its batches.
    """

    name: str
    table: "Table"
    pin: "ReadPin"
    columns: tuple[str, ...] | None = None
    filter: "Predicate | None" = None
    positions: bool = False
    follows: "StreamStart | None" = None
    at_each_batch: bool = False

    @property
    def schema(self) -> "TableSchema":
        """The schema that the snapshot is read with."""
        context = self.table.context
        return context.schema if self.pin.schema_id == context.schema.id else context.schemas.read(self.pin.schema_id)


@runtime_checkable
class PrunableRows(Protocol):
    """Rows that are cheaper to make where a query uses few of them."""

    @property
    def prunable_fields(self) -> "tuple[Field, ...]":
        """The columns that there are."""
        ...

    def pruned(self, columns: tuple[str, ...] | None, condition: "Predicate | None") -> "ArrowSource":
        """The same with these columns (None: all); rows that do not pass the condition may be left out."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRelation:
    """Rows that tablestore makes itself (a system table, ``table_changes``), read anew at each use."""

    name: str
    rows: "ArrowSource"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataField:
    """A column of what a connector says about its rows, which calls it ``key``."""

    name: str
    key: str
    type: "DataType"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRelation:
    """A table that is not managed: ``connector`` and its options, resolved by the engine when it is read.

    Behind the columns of ``schema`` come those of ``metadata``: what the connector says about a row. ``partition_by``: the columns
    whose values name the folders of its files.
    """

    name: str
    connector: str
    options: Mapping[str, str] = field(repr=False)
    schema: pa.Schema | None = None
    partition_by: tuple[str, ...] = ()
    metadata: tuple[MetadataField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectList:
    """The columns that a query selects from one table, by their names and as SQL: any of them can be left out.

    ``refused``: why some are not computed, by their names. A query that uses one of them is refused.
    """

    columns: Mapping[str, str]
    table: str
    refused: Mapping[str, TablestoreError] = field(default_factory=dict)

    def check_used(self, names: Container[str]) -> None:
        """Raises the error of the first column that is refused and used."""
        for name, error in self.refused.items():
            if name in names:
                raise error

    @property
    def text(self) -> str:
        """The query."""
        return f"SELECT {', '.join(self.columns.values())} FROM {self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRelation:
    """A view: a query of its own. ``selected``: what it selects, where that is a managed table with columns that are computed."""

    name: str
    query: "BoundQuery"
    selected: SelectList | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeRelation:
    """An object of the engine itself (a Spark DataFrame)."""

    name: str
    value: Any


Relation = ManagedRelation | RowsRelation | ConnectorRelation | QueryRelation | NativeRelation


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """A query whose tables are resolved. ``edits`` do not overlap and are in order of their place.

    ``dialect``: the words that it is in; an engine gets another one than Spark's only where it says that it runs that.
    ``tables``: the names in the text that the relations and ``engine_tables`` stand for, in order. ``is_closed``: it may read no
    file and no table but its relations, whatever its words would let it.

    ``engine_tables``: the names, in parts, that stand for tables of the engine's own; the text names no other tables.

    ``parameters`` are named (a mapping) or by position. ``statement``: what the user wrote, where the query is made of ``pieces``
    of it. ``parsed``: the text with the names of relations, of which the tree may be there already.
    """

    text: str
    relations: tuple[Relation, ...] = ()
    edits: tuple[Edit, ...] = ()
    engine_tables: tuple[tuple[str, ...], ...] = ()
    parameters: Mapping[str, Any] | Sequence[Any] = field(default_factory=dict)
    statement: str | None = None
    pieces: tuple[Piece, ...] = ()
    parsed: ParsedQuery | None = field(default=None, compare=False, repr=False)
    dialect: SqlDialect = SqlDialect.SPARK
    tables: tuple[Path, ...] = ()
    is_closed: bool = False

    def made_of(self, statement: str, pieces: tuple[Piece, ...]) -> "BoundQuery":
        """The same query, which was made of pieces of a statement."""
        return replace(self, statement=statement or None, pieces=pieces)

    def written(self, span: Span) -> tuple[str, Span] | None:
        """The user's text, and its place that a place of ``text`` came from; None where it is tablestore's own."""
        if self.statement is None:
            return self.text, span
        origin = origin_of(self.pieces, span)
        return None if origin is None else (self.statement, origin)

    def named(self) -> ParsedQuery:
        """The query with the names of relations."""
        return self.parsed or ParsedQuery.of(self.text, self.edits)

    def edited(self, name: Callable[[int], str], plain: Callable[[str], str] = lambda text: text) -> str:
        """The text with each relation's number replaced by its name; ``plain`` is applied to all text that is the user's."""
        return apply_edits(self.text, self.edits, name, plain)


FunctionKind = Literal["scalar", "aggregate", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of Python's, or of the engine's own kind. ``name`` is the user's, for errors.

    Types are None where they are not known. ``by_column``: it takes and gives Arrow arrays, and not a value at a time. ``kind``: of
    each row (``call`` is the function), of a group (``call`` is a :class:`~tablestore.environment.folding.Folded`), or giving rows
    (``call`` is a generator, and ``returns`` a struct of their columns).
    """

    name: str
    call: Callable[..., Any]
    arguments: tuple[pa.DataType, ...] | None = None
    returns: pa.DataType | None = None
    by_column: bool = False
    kind: FunctionKind = "scalar"

    def failed(self, error: Exception) -> InvalidInputError:
        """The error of a query in which the function raised one: with the line, since the trace ends at the engine."""
        frames = extract_tb(error.__traceback__)
        where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 else ""
        try:
            text = str(error)
        except Exception:  # It is the user's class.
            text = "an error that has no text"
        return InvalidInputError(f"function {self.name} raised {type(error).__name__}: {text}{where}", kind="query")


class QueryRows(Protocol):
    """The rows of a query that is ready to run. Nothing runs before rows are asked for; each reading runs it again."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        ...

    @property
    def native(self) -> Any:
        """The engine's own object: a Spark DataFrame, a DuckDB relation."""
        ...

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed as far as the engine can."""
        ...

    def streamed(self) -> pa.RecordBatchReader:
        """The rows in memory that does not grow with their number; it may take longer than :meth:`to_reader`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertTarget:
    """The target of the rows of a query: all columns of ``table`` that are given, by name and of its types; ``_row_kind`` makes
    changes.

    ``overwrite``: None to add rows; otherwise replace: the partitions of these values (``{}``: the whole table), or, where
    ``dynamic``, the partitions that the rows fall into. ``note``: what the snapshot says of its rows. ``missing_columns``: what
    rows that are added do about columns that they lack. ``spec``: how other processes find the table.
    """

    table: "Table"
    spec: "TableSpec"
    missing_columns: MissingColumns = MissingColumns.NULL
    overwrite: Mapping[str, object] | None = None
    dynamic: bool = False
    commit_user: str | None = None
    commit_identifier: int | None = None
    note: "CommitNote | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The condition that only rows of the query's relation ``target`` count that equal a row of its relation ``source`` in some
    columns.

    ``columns``: their names in target and source, without regard to case. An engine that leaves other rows of the target out has to
    see to it that the source gives the same rows each time that it is read.

    ``paired``: the same query, for an engine that looks the rows up by their primary key, which is among the columns. Its one
    relation the engine makes: a column ``_tablestore_source``, each row of the source as a struct, and ``_tablestore_target``, the
    row of the target that has its key, with all columns that relation ``target`` has, or NULL.

    ``reads_once``: nothing else in the query reads the table of ``target``. So what holds for the rows that count holds for all
    that the statement reads of it: :mod:`tablestore.environment.rows.matched`.
    """

    target: int
    source: int
    columns: tuple[tuple[str, str], ...]
    paired: BoundQuery | None = None
    reads_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTarget:
    """A row-level change (DELETE, UPDATE, MERGE): the rows of the query are changes of ``table`` as it was at ``pin``.

    What the rows are: :mod:`tablestore.table.write.rowchange`. The change only lands if no row changed since; otherwise StalePlan,
    and the statement is planned again. ``matching``: what it needs of the table, where that may be a small part. ``note``: what
    the snapshot says of its rows.
    """

    table: "Table"
    pin: "ReadPin"
    change: "RowChange"
    matching: Matching | None = None
    note: "CommitNote | None" = None


@runtime_checkable
class RunsDialects(Protocol):
    """An engine that also runs queries in other words than Spark's."""

    @property
    def dialects(self) -> frozenset[SqlDialect]:
        """The dialects that it runs."""
        ...


@runtime_checkable
class ListsFunctions(Protocol):
    """An engine that says which functions it runs without a statement of its own."""

    def function_names(self, dialect: SqlDialect) -> tuple[str, ...] | None:
        """The functions that queries in a dialect may call, ascending; None: only a statement of the engine's says so."""
        ...


@runtime_checkable
class WritesConnectors(Protocol):
    """An engine that also writes tables with a connector."""

    def check_target(self, target: ConnectorRelation) -> None:
        """Raises UnsupportedError, InvalidInputError for a table that it does not write, before anything is made. Columns that are
        not declared it checks when it writes."""
        ...

    def write(
        self, query: BoundQuery, target: ConnectorRelation, *, overwrite: bool, partition: Mapping[str, str | None] | None = None
    ) -> None:
        """Writes the rows of a query, as additions or in place of what is there: in a partitioned table, of the partitions that
        they fall into. ``partition``, the texts of all partition values, is emptied where there are no rows. A write that fails
        leaves no folder that it made, above its path neither.
        """
        ...


@runtime_checkable
class Agrees(Protocol):
    """An engine whose sessions may compute expressions as :mod:`tablestore.types.expression.agreement` says."""

    def agrees(self, *, calls: bool) -> bool:
        """True if no setting of this session changes what expressions mean; with ``calls``: functions by name, too."""
        ...


class Stream(Protocol):
    """A stream that an engine writes to a table, batch by batch, each once."""

    @property
    def id(self) -> str:
        """The user of its commits; the same after a restart."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Waits for its end; true if it has come. Raises the error that it ended with."""
        ...

    def stop(self) -> None:
        """Ends it. The batch that it is at lands whole or not at all. Of a stream that has ended: nothing."""
        ...


@runtime_checkable
class StreamsInserts(Protocol):
    """An engine that also writes the rows of a query without end."""

    def is_stream(self, query: BoundQuery) -> bool:
        """True if a query reads a stream. Raises InvalidInputError, UnsupportedError."""
        ...

    def insert_stream(self, query: BoundQuery, target: InsertTarget, *, checkpoint: str, interval_ms: int | None = None) -> Stream:
        """Begins to write the rows of a query that reads a stream, and goes on where a stream with this checkpoint ended.

        ``checkpoint``: the folder of its progress; ``interval_ms``: how often it commits. Raises InvalidInputError,
        UnsupportedError.
        """
        ...


@runtime_checkable
class IngestsTopics(Protocol):
    """An engine that also reads topics into tables with tasks of its own."""

    def ingest_engine(self, storage_options: Mapping[str, Any]) -> "IngestEngine":
        """The engine that ``tablestore.ingest`` takes. ``storage_options``: of the file system of the tables."""
        ...


class QueryEngine(Protocol):
    """Runs bound queries."""

    @property
    def name(self) -> str:
        """Its name among the entry points, such as ``spark``."""
        ...

    @property
    def takes_hints(self) -> bool:
        """True if hints of Spark (``/*+ BROADCAST(t) */``) mean something to it; otherwise it leaves them out."""
        ...

    def query(self, query: BoundQuery) -> QueryRows:
        """Makes a query ready: it is checked and its columns are known. Raises InvalidInputError, UnsupportedError."""
        ...

    def read(self, query: BoundQuery) -> pa.RecordBatchReader:
        """The rows of a query that is read once: it may begin now, and need not be made ready before. Raises as ``query``."""
        ...

    def explain(self, query: BoundQuery) -> str:
        """The plan of the query, with the files that the scans of managed tables read."""
        ...

    def insert(self, query: BoundQuery, target: InsertTarget) -> "Snapshot | None":
        """Writes the rows of a query as one snapshot; None if there was nothing to publish."""
        ...

    def change(self, query: BoundQuery, target: ChangeTarget) -> "Snapshot | None":
        """Applies the rows of a query as changes, as one snapshot. Raises StalePlan if rows changed since the pin."""
        ...

    def compact(self, table: "Table", pin: "ReadPin", partitions: Sequence[Mapping[str, Any]] | None) -> object:
        """Fully compacts a table or some partitions, and returns the report."""
        ...

    def knows(self, parts: tuple[str, ...]) -> bool:
        """True if the engine itself has a table or view of this name."""
        ...

    def list_views(self) -> tuple[str, ...]:
        """Names of the engine's own temporary views."""
        ...

    def register_function(self, name: str, function: Function) -> None:
        """Lets queries call a function by this name. Raises InvalidInputError, UnsupportedError for what cannot be one."""
        ...

    def drop_function(self, name: str) -> None:
        """Forgets a function that was registered."""
        ...

    def has_function(self, name: str) -> bool:
        """True if the engine has a function of its own of this name, regardless of case."""
        ...

    def is_native(self, value: object) -> bool:
        """True if a value is an object of the engine's own with rows: what NativeRelation holds."""
        ...

    def execute(self, text: str) -> QueryRows | None:
        """Runs a statement that is none of tablestore's."""
        ...

    def set_option(self, key: str, value: str | None) -> None:
        """Sets a setting of the engine's own (``SET`` of a key that is not tablestore's); None resets it."""
        ...

    def cancel(self, thread: int | None = None) -> None:
        """Ends what runs, or only what the thread of this number runs; there it raises UnsupportedError of kind ``cancelled``."""
        ...

    def close(self) -> None:
        """Gives up what was opened for this environment; a session that was handed in stays."""
        ...


# For errors about a table whose connector is ``kafka``, which no engine reads without packages of others.
WAY_OF_TOPICS = "rows of a topic come into a managed table with CALL sys.ingest('table', 'topic', servers => 'host:port')"


def ingest_engine(engine: QueryEngine, storage_options: Mapping[str, Any]) -> "IngestEngine":
    """The tasks of an engine, for an ingest. Raises UnsupportedError for an engine that has none."""
    if not isinstance(engine, IngestsTopics):
        raise UnsupportedError(
            f"the engine {engine.name} has no tasks that ingest a topic: run it on the engine spark, or in this process (without "
            "tasks)",
            kind="engine",
        )
    return engine.ingest_engine(storage_options)
