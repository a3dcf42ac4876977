"""Runs DELETE, UPDATE and MERGE: one query that yields the changed rows of the table, and a commit that lands only on what it read.

Rows that others change meanwhile make the plan stale: the statement is planned again on the newest snapshot, for ``commit.timeout``
at most.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tablestore.distributed.change import change_columns, pin_change
from tablestore.distributed.read import ReadPin
from tablestore.environment.engine import (
    BoundQuery,
    ChangeTarget,
    ConnectorRelation,
    ManagedRelation,
    Matching,
    NativeRelation,
    QueryRelation,
    Relation,
    RowsRelation,
)
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result, landed
from tablestore.environment.rows.direct import write_directly
from tablestore.environment.rows.expressions import schema_of, types_of
from tablestore.environment.rows.freshrows import no_longer_there, table_gone
from tablestore.environment.rows.observing import job_of, observed
from tablestore.environment.rows.relations import Relations, by_name
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.query.rowlevel import PAIRS, SOURCE, TARGET, RowQuery, TargetTable
from tablestore.sql.source import NOWHERE, Span
from tablestore.sql.statements.rows import Delete, Merge, Update
from tablestore.sql.writing.columnvalues import AssignedValues, GivenTypes
from tablestore.sql.writing.mergerows import merge_query, merged_values
from tablestore.sql.writing.updating import delete_query, update_query, updated_values
from tablestore.table.table import Table
from tablestore.table.write.changetasks import ChangeJob, ChangeMessage, commit_changes
from tablestore.table.write.current import run_until_current
from tablestore.table.write.rowchange import RowChange
from tablestore.telemetry.lineage import LineageJob
from tablestore.types.filter.predicate import FALSE, Predicate

Change = Delete | Update | Merge


def change(session: Session, statement: Change, source: Source, parameters: Parameters, *, directly: bool = True) -> Result:
    """Changes rows. ``directly``: without the engine, where that is not needed. Raises InvalidInputError, UnsupportedError,
    NotFoundError, ConflictError."""
    operation = type(statement).__name__.upper()
    engine = session.engine_for(operation)
    if session.settings.is_streaming:
        raise UnsupportedError(f"{operation} needs batch mode: SET 'execution.runtime-mode' = 'batch'", kind="streaming")
    table = session.table(statement.target, operation, source)
    attempts = count()

    def attempt(base: Snapshot | None) -> Snapshot | None:
        # Others may have altered the table before a second attempt.
        target_table = session.table(statement.target, operation, source) if next(attempts) else table
        with table.context.reading():
            if directly and not isinstance(statement, Merge) and not parameters:
                written = write_directly(session, statement, target_table, base)
                if written is not None:
                    return _committed(target_table, *written)
            query, target = plan_change(session, statement, source, parameters, target_table, base)
            try:
                return engine.change(query, target)
            except TablestoreError as error:
                if (gone := no_longer_there(query, error)) is None or gone is error:
                    raise
                raise gone from error

    def describe() -> LineageJob:
        query, _ = plan_change(session, statement, source, parameters, table, table.context.snapshots.latest())
        return job_of(session, operation, table, query, source.statement)

    with observed(table, operation.lower(), describe) as landing:
        snapshot = run_until_current(table.context, attempt)
        if landing is not None:
            landing.note(snapshot)
        return landed(snapshot)


def _committed(table: Table, job: ChangeJob, message: ChangeMessage) -> Snapshot | None:
    try:
        return commit_changes(table.context, table.change_log, job, [message])
    except TablestoreError as error:
        if (gone := table_gone(table, error)) is None or gone is error:
            raise
        raise gone from error


def plan_change(
    session: Session, statement: Change, source: Source, parameters: Parameters, table: Table, base: Snapshot | None
) -> tuple[BoundQuery, ChangeTarget]:
    """The query of the changed rows, on the newest snapshot (``base``) of the target, and what they change."""
    plan = _Plan(session, statement, source, parameters, table, base)
    return plan.query, ChangeTarget(table=plan.table, pin=plan.pin, change=plan.change, matching=plan.matching)


@dataclass(init=False, slots=True)
class _Plan:
    table: Table
    path: ObjectPath
    pin: ReadPin
    query: BoundQuery
    change: RowChange
    matching: Matching | None

    def __init__(
        self,
        session: Session,
        statement: Change,
        source: Source,
        parameters: Parameters,
        table: Table,
        base: Snapshot | None,
    ) -> None:
        operation = type(statement).__name__.upper()
        self.table = table
        self.path = session.expand(statement.target)
        rows = _rows(statement, source, _target(self.table))
        change = RowChange(operation=operation, inserts=rows.inserts, deletes=rows.deletes, sets=rows.sets)
        with placing(source, statement.target.span):
            self.pin = pin_change(self.table, session.spec(self.path, self.table), change, base)
        relations = Relations(session=session, source=source, parameters=by_name(source, parameters), reads_rows=True)
        relations.pins[self.table.location, self.table.branch_name] = self.pin
        # Positions say which file and row of the pinned snapshot is meant, so the target is read at the pin in any case.
        relations_by_name: dict[str, Relation] = {
            TARGET: relations.managed(self.path, self.table, positions=change_columns(self.table).positions)
        }
        source_names: tuple[str, ...] = ()
        if rows.source is not None:
            relations.where = _places(rows.source)
            query = relations.bind(rows.source.text).made_of(source.text, rows.source.pieces)
            relations_by_name[SOURCE] = QueryRelation(name=SOURCE, query=query)
            source_names = tuple(_names_in(query))
        types = _value_types(session, statement, source, relations, relations_by_name, _target(self.table, source_names))
        if types or source_names:
            rows = _rows(statement, source, _target(self.table, source_names), types)
        relations.where = _places(rows)
        self.query = relations.bind(rows.text, relations_by_name).made_of(source.text, rows.pieces)
        target_relations = list(_of_table(self.query, self.table))
        self.change = replace(change, reads=_reads(target_relations), new_keys=rows.new_keys)
        self.matching = _matching(rows, relations.given_places, reads_once=len(target_relations) == 1)
        if self.matching is not None and rows.paired is not None:
            relations.where = _places(rows.paired)
            pairs = relations.bind(rows.paired.text, {PAIRS: NativeRelation(name=PAIRS, value=None)})
            self.matching = replace(self.matching, paired=pairs.made_of(source.text, rows.paired.pieces))


def _value_types(
    session: Session,
    statement: Change,
    source: Source,
    relations: Relations,
    relations_by_name: Mapping[str, Relation],
    target: TargetTable,
) -> GivenTypes:
    """The types of the values that a statement assigns. They are cast to those of their columns: raises InvalidInputError for
    values that an INSERT would refuse."""
    assigned = _assigned_values(statement, source, target)
    if assigned is None:
        return {}
    relations.where = _places(assigned.query)
    query = relations.bind(assigned.query.text, relations_by_name).made_of(source.text, assigned.query.pieces)
    return assigned.checked(source.text, types_of(schema_of(session.engine_for(type(statement).__name__.upper()), query)))


def _assigned_values(statement: Change, source: Source, target: TargetTable) -> AssignedValues | None:
    match statement:
        case Delete():
            return None
        case Update():
            return updated_values(source.text, statement, target)
        case Merge():
            return merged_values(source.text, statement, target)


def _target(table: Table, source_names: tuple[str, ...] = ()) -> TargetTable:
    needed = change_columns(table)
    return TargetTable(
        fields=table.table_schema.fields,
        keys=table.primary_key,
        positions=needed.positions,
        before=needed.before,
        replaces=bool(table.primary_key) and table.context.settings.is_plain,
        taken=source_names,
    )


def _names_in(query: BoundQuery) -> Iterator[str]:
    """The texts of a query and of the views that it reads, and the names of columns that are in its tables."""
    yield query.text
    for relation in query.relations:
        match relation:
            case QueryRelation(query=inner):
                yield from _names_in(inner)
            case ManagedRelation():
                yield from relation.schema.field_names
            case ConnectorRelation(schema=schema, metadata=metadata):
                yield from () if schema is None else schema.names
                yield from (column.name for column in metadata)
            case RowsRelation(rows=rows):
                yield from rows.schema.names
            case NativeRelation(value=value):
                yield from map(str, getattr(value, "columns", ()))


def _rows(statement: Change, source: Source, target: TargetTable, types: GivenTypes | None = None) -> RowQuery:
    match statement:
        case Delete():
            return delete_query(source.text, statement, target)
        case Update():
            return update_query(source.text, statement, target, types)
        case Merge():
            return merge_query(source.text, statement, target, types)


def _places(rows: RowQuery) -> Callable[[Span], Span]:
    return lambda span: rows.place(span) or NOWHERE


def _matching(rows: RowQuery, places: Mapping[str, int], *, reads_once: bool) -> Matching | None:
    if not rows.equal:
        return None
    return Matching(target=places[TARGET], source=places[SOURCE], columns=rows.equal, reads_once=reads_once)


def _reads(target_relations: Sequence[Relation]) -> Predicate | None:
    """The condition that all rows fulfil that a query reads of the table, by its relations of it; None if none is known, as where
    it reads the table more than once."""
    if not target_relations:
        # It writes what its source holds, whatever the table does.
        return FALSE
    return target_relations[0].filter if len(target_relations) == 1 and isinstance(target_relations[0], ManagedRelation) else None


def _of_table(query: BoundQuery, table: Table) -> list[Relation]:
    target_relations: list[Relation] = []
    for relation in query.relations:
        if isinstance(relation, QueryRelation):
            # Its rows are computed: what holds for the table below is not known here.
            target_relations += [QueryRelation(name=one.name, query=relation.query) for one in _of_table(relation.query, table)]
        elif isinstance(relation, ManagedRelation) and relation.table.location == table.location:
            target_relations.append(relation)
    return target_relations
