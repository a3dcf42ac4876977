"""Plans what INSERT INTO or INSERT OVERWRITE writes, and where, and then runs it.

    INSERT INTO                          rows are added; with a column ``_row_kind`` they are changes
    OVERWRITE                            all rows of an unpartitioned table; the partitions that the rows fall into of another one
                                         (``dynamic-partition-overwrite`` = false: all of them)
    OVERWRITE … PARTITION (day = …)      the partitions of these values

Rows for a table with a connector are written by the engine, unless an installed package does it: an entry point of the group
``tablestore.row_sinks`` with the name of the connector gives a function that takes the rows in this process, whatever engine the
query runs on, in bounded memory (``QueryRows.streamed``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points

import pyarrow as pa

from tablestore.environment.engine import (
    BoundQuery,
    InsertTarget,
    QueryEngine,
    QueryRelation,
    Relation,
    RowsRelation,
    WritesConnectors,
)
from tablestore.environment.memoryrows import MemoryRows
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.rows.direct import direct_rows, written_rows
from tablestore.environment.rows.expressions import schema_of, types_of
from tablestore.environment.rows.freshrows import no_longer_there
from tablestore.environment.rows.literalrows import literal_rows
from tablestore.environment.rows.observing import job_of, observed
from tablestore.environment.rows.queries import in_place
from tablestore.environment.rows.relations import Relations, by_name, connector_relation
from tablestore.environment.session.objects import ConnectorTable
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import ConflictError, InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.names import did_you_mean
from tablestore.options import DYNAMIC_PARTITION_OVERWRITE, TableOptions
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.literals import constant
from tablestore.sql.query.parameters import Parameters, literal_value
from tablestore.sql.query.querytext import RowText, origin_of
from tablestore.sql.source import NOWHERE, Fragment, Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.rows import Insert
from tablestore.sql.writing.insertion import Given, insert_query, rows_to_insert
from tablestore.table.table import Table
from tablestore.telemetry.lineage import LineageJob
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import MAX_LENGTH, AtomicType, Field, TypeRoot
from tablestore.types.partitionspec import parse_partition_value

_ROW_SINKS = "tablestore.row_sinks"
# Its presence says that rows are to be encoded here. An engine's own source of this name takes messages that a query has made.
_VALUE_FORMAT = "value.format"
_VALUES = "_tablestore_values"
_TEXT = AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH)

RowSink = Callable[[str, Mapping[str, str], Sequence[str], pa.RecordBatchReader, str], None]
"""(name of the table, its options, its key, the rows, an id of this job) -> nothing; the rows have landed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """An INSERT that is ready to run. ``overwrite`` and the ``partition`` that is replaced are for a table with a connector; a
    managed one has them in its target. ``rows``: those of ``query``, where no engine is needed for them. ``operation`` and
    ``text``: of the statement, for those who watch the table."""

    name: str
    bind: Callable[[], BoundQuery]
    target: InsertTarget | ConnectorTable
    overwrite: bool = False
    partition: Mapping[str, str | None] | None = None
    rows: pa.Table | None = None
    operation: str = "INSERT"
    text: str | None = None

    @property
    def query(self) -> BoundQuery:
        """The query of the rows."""
        return self.bind()


def run_insertion(session: Session, insertion: Insertion, job_id: str) -> Snapshot | None:
    """Writes the rows, and returns the snapshot, None where there is none. Raises InvalidInputError, UnsupportedError,
    ConflictError."""
    engine = session.engine_for("INSERT")
    if not isinstance(insertion.target, InsertTarget):
        return _run(engine, insertion, job_id)
    with observed(insertion.target.table, "insert", lambda: _job(session, insertion)) as landing:
        snapshot = _run(engine, insertion, job_id)
        if landing is not None:
            landing.note(snapshot)
        return snapshot


def _job(session: Session, insertion: Insertion) -> LineageJob:
    assert isinstance(insertion.target, InsertTarget), "others are not watched"
    return job_of(session, insertion.operation, insertion.target.table, insertion.query, insertion.text)


def _run(engine: QueryEngine, insertion: Insertion, job_id: str) -> Snapshot | None:
    try:
        if insertion.rows is not None and isinstance(insertion.target, InsertTarget):
            with written_rows(insertion.rows, insertion.target) as writer:
                if writer is not None:
                    return writer.commit()
        return _written(engine, insertion, job_id)
    except TablestoreError as error:
        gone = _target_gone(insertion) or no_longer_there(insertion.query, error)
        if gone is None or gone is error:
            raise
        raise gone from error


def _target_gone(insertion: Insertion) -> TablestoreError | None:
    """The error where the table was dropped or replaced while its rows were made."""
    if not isinstance(insertion.target, InsertTarget):
        return None
    try:
        insertion.target.table.context.still_there()
    except NotFoundError as error:
        return NotFoundError(
            f"table {insertion.name} was dropped while rows were written to it, and they are gone with it; create it again, and "
            "repeat the statement",
            kind=error.kind,
        )
    except ConflictError as error:
        return ConflictError(
            f"table {insertion.name} was dropped and created again, or replaced, while rows were written to it: the new one has "
            "none of them; repeat the statement if it is to have them",
            kind=error.kind,
        )
    return None


def _written(engine: QueryEngine, insertion: Insertion, job_id: str) -> Snapshot | None:
    if isinstance(insertion.target, InsertTarget):
        return engine.insert(insertion.query, insertion.target)
    if (sink := _row_sink(insertion.target)) is not None:
        rows = engine.query(insertion.query).streamed()
        sink(insertion.name, insertion.target.options, insertion.target.primary_key, rows, job_id)
        return None
    assert isinstance(engine, WritesConnectors), "this was checked when it was planned"
    target = connector_relation(insertion.target)
    engine.write(insertion.query, target, overwrite=insertion.overwrite, partition=insertion.partition)
    return None


def _row_sink(table: ConnectorTable) -> RowSink | None:
    """The sink that writes to a table; None: the engine. Raises UnsupportedError for a connector that is not installed."""
    if _VALUE_FORMAT not in table.options:
        return None
    points = {point.name: point for point in entry_points(group=_ROW_SINKS)}
    if table.connector not in points:
        return None
    try:
        sink: RowSink = points[table.connector].load()
    except ImportError as error:
        raise UnsupportedError(
            f"the connector {table.connector} does not load ({error}); pip install 'managed-tablestore[{table.connector}]'",
            kind="no-connector",
        ) from error
    return sink


def plan_insert(session: Session, statement: Insert, source: Source, parameters: Parameters, *, directly: bool = True) -> Insertion:
    """Resolves an INSERT: its tables are found, their snapshots fixed. ``directly``: without the engine, where that is not needed.
    Raises InvalidInputError, UnsupportedError, NotFoundError."""
    session.engine_for("INSERT")
    _check_mode(session, statement)
    named_object = session.find(statement.target, source)
    if isinstance(named_object, ConnectorTable):
        check_writes(session, named_object, source, statement.target.span, overwrite=statement.overwrite)
        _check_partition(statement, str(named_object.path), named_object.partition_by, source)
        rows = QueryToInsert.of(session, statement, source, parameters)
        return Insertion(
            name=str(named_object.path),
            bind=bound_to(rows.bound(rows.connector_fields(named_object))),
            target=named_object,
            overwrite=statement.overwrite,
            partition=_whole_partition(statement, named_object, source, parameters),
        )
    table = session.checked_table(named_object, statement.target, "INSERT", source)
    _check_partition(statement, table.name, table.partition_by, source)
    path, missing_columns = session.expand(statement.target), session.settings.missing_columns
    if directly and not parameters and (literals := direct_rows(session, statement, table.table_schema.fields)) is not None:
        target = InsertTarget(table=table, spec=session.spec(path, table), missing_columns=missing_columns)
        bind = cache(lambda: QueryToInsert.of(session, statement, source, parameters).bound(table.table_schema.fields))
        return Insertion(name=str(path), bind=bind, target=target, rows=literals, text=source.statement)
    rows = QueryToInsert.of(session, statement, source, parameters)
    target = replace(rows.table_target(path, table), missing_columns=missing_columns)
    return Insertion(
        name=str(path),
        bind=bound_to(rows.bound(table.table_schema.fields)),
        target=target,
        operation="INSERT OVERWRITE" if statement.overwrite else "INSERT",
        text=source.statement,
    )


def bound_to(query: BoundQuery) -> Callable[[], BoundQuery]:
    """Gives an :class:`Insertion` a query that is bound already."""
    return lambda: query


def check_writes(session: Session, table: ConnectorTable, source: Source, span: Span, *, overwrite: bool = False) -> None:
    """Raises UnsupportedError unless somebody writes a table with a connector, and this session may have that done."""
    engine = session.engine_for("INSERT")
    if session.restrictions is not None:
        raise UnsupportedError(
            source.mark(f"{table.path} has a connector of its own, and a restricted environment writes managed tables alone", span),
            kind="restricted",
        )
    with placing(source, span):
        session.check_access(table, writes=True)
    if _row_sink(table) is not None:
        if overwrite:
            raise UnsupportedError(
                source.mark(f"{table.path} has the connector {table.connector!r}, which only adds rows: INSERT INTO it", span),
                kind="unsupported",
            )
        return
    if not isinstance(engine, WritesConnectors):
        raise UnsupportedError(
            source.mark(
                f"the engine {engine.name} does not write {table.path}, which has the connector {table.connector!r}; run the "
                "statement on the engine spark",
                span,
            ),
            kind="engine",
        )
    with placing(source, span):
        engine.check_target(connector_relation(table))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryToInsert:
    """The query of an INSERT whose columns are known: ``given``. ``literals``: its rows, where they were read without an engine."""

    statement: Insert
    source: Source
    parameters: Parameters
    relations: Relations
    given: Given
    literals: pa.Table | None = None

    @staticmethod
    def of(
        session: Session, statement: Insert, source: Source, parameters: Parameters, *, reads_rows: bool = True
    ) -> "QueryToInsert":
        """Reads VALUES of literals, or asks the engine for the columns of a query; not ``reads_rows``: for nothing else."""
        is_spark = statement.query.dialect is SqlDialect.SPARK
        relations = Relations(
            session=session,
            source=source,
            parameters=by_name(source, parameters) if is_spark else parameters,
            reads_rows=reads_rows,
            streams=session.settings.is_streaming,
        )
        query = rows_to_insert(statement) if is_spark else statement.query
        literals = literal_rows(query.text) if is_spark else None
        schema = _schema_of(session, relations, query, source) if literals is None else literals.schema
        return QueryToInsert(
            statement=statement,
            source=source,
            parameters=parameters,
            relations=relations,
            given=list(zip(schema.names, types_of(schema), strict=True)),
            literals=literals,
        )

    def bound(self, fields: Sequence[Field]) -> BoundQuery:
        """The rows for a table of these columns. Raises InvalidInputError for columns that do not match."""
        tables: dict[str, Relation] = {}
        inner = None
        if self.statement.query.dialect is not SqlDialect.SPARK:
            # What is written around it is in Spark's words.
            inner = self._inner()
            tables[_VALUES] = QueryRelation(name="the query", query=inner)
        if self.literals is not None:
            tables[_VALUES] = RowsRelation(name="VALUES", rows=MemoryRows(self.literals))
        written_query = insert_query(
            self.source.text, self.statement, fields, self.given, rows=f"SELECT * FROM {_VALUES}" if tables else None
        )
        self.relations.where = lambda span: written_query.place(span) or NOWHERE
        bound = self.relations.bind(written_query.text, tables).made_of(self.source.text, written_query.pieces)
        return bound if inner is None else replace(bound, parameters=inner.parameters)

    def _inner(self) -> BoundQuery:
        """The user's query, in its own words."""
        self.relations.where = lambda span: span
        bound = self.relations.bind_query(self.statement.query, in_place(self.statement.query, self.source))
        if bound.parameters:
            # What is written around it has none.
            self.relations.parameters = ()
        return bound

    def table_target(self, path: ObjectPath, table: Table) -> InsertTarget:
        """The target of the rows in a managed table."""
        overwrite, dynamic = _overwrite(self.statement, table, self.source, self.parameters)
        spec = self.relations.session.spec(path, table)
        return InsertTarget(table=table, spec=spec, overwrite=overwrite, dynamic=dynamic)

    def connector_fields(self, table: ConnectorTable) -> tuple[Field, ...]:
        """The columns of a table with a connector; one without columns of its own takes what the query gives."""
        if table.schema is not None:
            return fields_from_arrow(table.schema)[0]
        return tuple(Field(id=place, name=name, type=kind or _TEXT) for place, (name, kind) in enumerate(self.given))


def _schema_of(session: Session, relations: Relations, query: Fragment, source: Source) -> pa.Schema:
    if query.dialect is not SqlDialect.SPARK:
        relations.where = lambda span: span
        return schema_of(session.engine_for("INSERT"), relations.bind_query(query, in_place(query, source)))
    text = RowText(source.text, ())
    text.add(query)
    relations.where = lambda span: origin_of(text.pieces, span) or NOWHERE
    return schema_of(session.engine_for("INSERT"), replace(relations.bind(text.text), statement=source.text or None))


def _overwrite(statement: Insert, table: Table, source: Source, parameters: Parameters) -> tuple[Mapping[str, object] | None, bool]:
    """The partitions that are replaced, as :class:`InsertTarget` says it."""
    partition = statement.partition or {}
    if not statement.overwrite:
        return None, False
    fixed = {name: _value(table, name, value, source, parameters) for name, value in partition.items() if value is not None}
    open_columns = len(fixed) < len(table.partition_by)
    dynamic = open_columns and TableOptions(table.options()).flag(DYNAMIC_PARTITION_OVERWRITE)
    # With values of some columns the rows fall into partitions of these values: they alone say which.
    return (None if dynamic else fixed), dynamic


def _check_partition(statement: Insert, name: str, partition_by: Sequence[str], source: Source) -> None:
    if unknown := [column for column in statement.partition or {} if column not in partition_by]:
        raise InvalidInputError(
            source.mark(
                f"PARTITION ({unknown[0]} …): expected partition columns of {name} "
                f"({', '.join(partition_by) or 'it has none'}){did_you_mean(unknown[0], partition_by)}",
                source.word(unknown[0]),
            ),
            kind="unknown-partition-column",
        )


def _value(table: Table, name: str, value: Fragment, source: Source, parameters: Parameters) -> object:
    with placing(source, value.span):
        text = _value_text(value, source, parameters)
        return None if text is None else parse_partition_value(table.table_schema, name, text)


def _value_text(value: Fragment, source: Source, parameters: Parameters) -> str | None:
    if value.text.strip().upper() == "NULL":
        return None
    literal = literal_value(source.text, value, parameters)
    return str(literal) if literal is not None else constant(Cursor(value.text)).text


def _whole_partition(
    statement: Insert, table: ConnectorTable, source: Source, parameters: Parameters
) -> Mapping[str, str | None] | None:
    """The one partition that is replaced, where the statement gives values of all partition columns."""
    fixed = {name: value for name, value in (statement.partition or {}).items() if value is not None}
    if not statement.overwrite or not fixed or len(fixed) < len(table.partition_by):
        return None
    return {name: _value_text(fixed[name], source, parameters) for name in table.partition_by}


def _check_mode(session: Session, statement: Insert) -> None:
    if session.settings.is_streaming and statement.overwrite:
        raise UnsupportedError("Streaming mode does not support overwrite: INSERT OVERWRITE needs batch mode.", kind="streaming")


def check_batch(session: Session, what: str) -> None:
    """Raises UnsupportedError in streaming mode."""
    if session.settings.is_streaming:
        raise UnsupportedError(
            f"execution.runtime-mode = streaming: {what} needs batch mode: SET 'execution.runtime-mode' = 'batch'", kind="streaming"
        )
