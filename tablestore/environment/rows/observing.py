"""Lets those who watch a table see a statement that writes it: as a span, and as a run with its inputs, output and columns.

managed table       its location, and its name in the catalog
view                the tables below it
files by a path     the path
other rows          nothing: rows of a program, system tables, tables of the engine's own
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from tablestore.catalog.identifier import parse_identifier
from tablestore.cdc.lineagejobs import folder_dataset, table_dataset
from tablestore.environment.engine import BoundQuery, ConnectorRelation, ManagedRelation, QueryRelation, Relation, RowsRelation
from tablestore.environment.session.session import Session
from tablestore.format.paths import CREATIONS_DIR
from tablestore.format.snapshot import Snapshot
from tablestore.sql.query.columnlineage import ReadQuery, ReadTable, column_lineage
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statementmask import masked_statement
from tablestore.table.table import Table
from tablestore.telemetry.lineage import ColumnSources, LineageDataset, LineageJob, Outcome, Written, recorded
from tablestore.telemetry.observers import NOBODY, Observers
from tablestore.telemetry.tracing import Span

_PATH = "path"


@dataclass(slots=True)
class Landing:
    """Takes down what a statement that is watched has written."""

    span: Span | None = None
    outcome: Outcome | None = None

    def note(self, snapshot: Snapshot | None) -> None:
        """The statement has landed as this snapshot; None: there was nothing to do."""
        if snapshot is None:
            return
        if self.span is not None:
            self.span.record(snapshot_id=snapshot.id)
        if self.outcome is not None:
            self.outcome.written = written_by(snapshot)


_UNWATCHED: AbstractContextManager[Landing | None] = nullcontext(None)


def observed(table: Table, operation: str, describe: Callable[[], LineageJob]) -> AbstractContextManager[Landing | None]:
    """Shows a statement that writes a table to those who watch it; None where nobody does. ``describe``: what it reads, and how."""
    observers = table.context.shared.observers
    return _UNWATCHED if observers is NOBODY else _observed(observers, table.location, operation, describe)


@contextmanager
def _observed(observers: Observers, location: str, operation: str, describe: Callable[[], LineageJob]) -> Iterator[Landing]:
    with ExitStack() as ended:
        landing = Landing()
        if observers.tracer is not None:
            landing.span = ended.enter_context(observers.tracer.span(operation, location))
        if observers.lineage is not None:
            landing.outcome = ended.enter_context(recorded(observers.lineage, describe))
        yield landing


def written_by(snapshot: Snapshot) -> Written:
    """The rows, files and bytes of the commit that made a snapshot."""
    counts = snapshot.counts
    return Written(rows=counts.rows_affected, files=counts.files_added, size_bytes=counts.bytes_added, snapshot_id=snapshot.id)


def job_of(
    session: Session,
    operation: str,
    table: Table,
    query: BoundQuery | None,
    text: str | None,
    *,
    names: Sequence[str] | None = None,
    is_stream: bool = False,
) -> LineageJob:
    """The job of a statement. ``query``: of its rows; ``text``: the statement, of which options are hidden. ``names``: the columns
    of the table that those of the query become, in order; None: those of the same names."""
    inputs: tuple[LineageDataset, ...] = ()
    sources = ColumnSources()
    if query is not None:
        inputs = tuple(dict.fromkeys(_datasets_in(query)))
        # What a DELETE takes away gives no value to a column.
        columns = () if operation == "DELETE" else [field.name for field in table.table_schema.fields]
        sources = column_lineage(_read_query(query), columns, names)
    return LineageJob(
        operation=operation,
        inputs=inputs,
        output=table_dataset(table, _place_of(table)),
        sources=sources,
        sql=masked_statement(text) if text else None,
        dialect=str(SqlDialect.SPARK if query is None else query.dialect),
        engine=None if session.engine is None else session.engine.name,
        is_stream=is_stream,
    )


def _place_of(table: Table) -> str:
    """The address of a table; of one that is still made in a hidden place that where it will lie."""
    warehouse, made_in, _ = table.location.partition(f"/{CREATIONS_DIR}/")
    return f"{warehouse}/{parse_identifier(table.name).directory}" if made_in else table.location


def _datasets_in(query: BoundQuery) -> Iterator[LineageDataset]:
    for relation in query.relations:
        if isinstance(relation, QueryRelation):
            yield from _datasets_in(relation.query)
        elif (dataset := _dataset(relation)) is not None:
            yield dataset


def _dataset(relation: Relation) -> LineageDataset | None:
    match relation:
        case ManagedRelation(table=table):
            return table_dataset(table)
        case ConnectorRelation(options=options) if _PATH in options:
            return folder_dataset(options[_PATH])
    return None


def _read_query(query: BoundQuery) -> ReadQuery:
    """The query as the search for sources of columns takes it."""
    named = query.named()
    return ReadQuery(text=named.text, prefix=named.prefix, dialect=query.dialect, relations=tuple(map(_read, query.relations)))


def _read(relation: Relation) -> ReadQuery | ReadTable:
    match relation:
        case QueryRelation(query=query):
            return _read_query(query)
        case ManagedRelation(schema=schema):
            return ReadTable(dataset=_dataset(relation), columns=tuple(schema.field_names))
        case ConnectorRelation(schema=schema, metadata=metadata):
            names = () if schema is None else (*schema.names, *(column.name for column in metadata))
            return ReadTable(dataset=_dataset(relation), columns=tuple(names))
        case RowsRelation(rows=rows):
            return ReadTable(dataset=None, columns=tuple(rows.schema.names))
    return ReadTable(dataset=None, columns=())
