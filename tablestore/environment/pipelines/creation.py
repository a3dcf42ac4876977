"""Runs CREATE TABLE … AS: makes a table with the columns that its query gives, and the rows.

    CREATE TABLE t AS SELECT id, name FROM s                                  the names and types of the query
    CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT …                with a key
    CREATE TABLE t (note STRING, id BIGINT) AS SELECT CAST(1 AS INT) AS id    its own columns first; one that the query gives too
                                                                              has the type that is written
    CREATE TABLE t (b, a) AS SELECT 1 AS a, 2 AS b                            names alone put the query's columns in order

Columns of the query may be NULL whatever the engine says of them, since engines know different things; key columns are NOT
NULL. CREATE OR REPLACE TABLE and REPLACE TABLE write the new table where nobody sees it: the old one stays until it is whole.
It is CREATE TABLE and then INSERT; with IF NOT EXISTS nothing happens where a table is there, hidden by a temporary object or not,
and the result says so. A table that is made has the rows, hidden or not. The query is planned before anything is made, and runs
once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore.environment.definition.create import connector_of, connector_table, created_path, new_managed
from tablestore.environment.definition.tabledefinition import TableDefinition, define
from tablestore.environment.engine import BoundQuery
from tablestore.environment.jobs import Job, JobStatusHook
from tablestore.environment.managed.factory import ManagedTableContext, StagesTables
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.pipelines.atomic import (
    CREATE_AS,
    HookedCreation,
    KeptCreation,
    NoRows,
    PendingRows,
    StagedCreation,
    check_atomic,
    hooked_stream,
)
from tablestore.environment.pipelines.inserts import OneInsert
from tablestore.environment.pipelines.pipeline import JobPlan, TablePipeline, run_statement
from tablestore.environment.pipelines.streams import StreamSetting, stream_into, stream_setting
from tablestore.environment.result import DONE_SCHEMA, SNAPSHOT_SCHEMA, Result, ResultKind, already_there, done, landed
from tablestore.environment.rows.insert import Insertion, QueryToInsert, bound_to, check_batch, check_writes
from tablestore.environment.rows.queries import explained
from tablestore.environment.session.objects import ConnectorTable
from tablestore.environment.session.session import Session, made_by_query, placing
from tablestore.environment.session.sessionsettings import CTAS_ATOMICITY
from tablestore.environment.source import Source
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.options import is_materialized
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.query.rowlevel import ROW_KIND
from tablestore.sql.source import Fragment, Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.definition import CreateTable, PhysicalColumn
from tablestore.sql.statements.rows import Insert
from tablestore.sql.writing.insertion import Given
from tablestore.sql.writing.naming import unusable_column
from tablestore.table.table import Table
from tablestore.types.datatypes import Field, nullable_throughout
from tablestore.types.typestring import type_to_sql


def create_as(session: Session, statement: CreateTable, source: Source, parameters: Parameters) -> Result:
    """Creates a table and writes the rows of its query. Raises what CREATE TABLE and INSERT raise."""
    plan = plan_creation(session, statement, source, parameters).begin()
    # Nothing is done for a table that is there, so there is no job.
    return plan.result() if isinstance(plan, LeftAsItIs) else run_statement(session, plan)


def replace_table(session: Session, statement: CreateTable, source: Source) -> Result:
    """Replaces a table by an empty one, or creates it: readers see the old one with its rows, or the new one.

    Raises InvalidInputError, UnsupportedError, NotFoundError.
    """
    path = created_path(session, statement, source)
    existing = _existing(session, path)
    if isinstance(existing, Table) and is_materialized(existing.options()):
        raise made_by_query(path, "CREATE OR REPLACE TABLE", source, statement.path.span)
    definition = define(session, statement, source)
    connector, options = connector_of(statement.provider, definition)
    with placing(source, statement.path.span):
        target = None if connector is None else connector_table(path, definition, connector, options)
        _check_replaceable(session, path, existing, target, must_exist=statement.must_exist)
        context = new_managed(session, path, definition)
        factory = session.factory
        assert isinstance(factory, StagesTables), "checked"
        plan = StagedCreation(rows=NoRows(), context=context, factory=factory, replaces=True, must_exist=statement.must_exist)
        return session.jobs.run(plan.run, plan.hooks)


def pipeline_of(session: Session, statement: CreateTable, source: Source, parameters: Parameters) -> TablePipeline:
    """Creates a table, and returns the pipeline that writes the rows of its query, anew at each execution."""
    planned = plan_creation(session, statement, source, parameters)

    def create() -> JobPlan:
        return plan_creation(session, statement, source, parameters).begin()

    def add() -> JobPlan:
        return plan_creation(session, statement, source, parameters, is_own=True).begin()

    # A pipeline that has made the table adds rows to it from then on; replacing gives a new one each time.
    again = create if statement.replace else add
    if planned.atomic or isinstance(planned.begin(), LeftAsItIs):
        return TablePipeline(session, create, again)
    return TablePipeline(session, again)


def plan_creation(
    session: Session, statement: CreateTable, source: Source, parameters: Parameters, *, is_own: bool = False
) -> "Creation | LeftAsItIs":
    """Plans it: nothing is made. ``is_own``: a table that is there was made before by the same pipeline, and gets the rows too.

    Raises InvalidInputError, UnsupportedError, AlreadyExistsError, NotFoundError.
    """
    assert statement.query is not None, "a CREATE TABLE without AS is not planned"
    path = created_path(session, statement, source)
    if statement.if_not_exists and not is_own and _exists(session, path):
        return LeftAsItIs.of(session, path)
    session.engine_for("CREATE TABLE … AS")
    if statement.replace:
        check_batch(session, "CREATE OR REPLACE TABLE … AS")
    insert = Insert(target=statement.path, query=statement.query)
    rows = QueryToInsert.of(session, insert, source, parameters)
    of_query = _columns(statement, rows.given, source)
    rows = replace(rows, statement=replace(insert, columns=tuple(name for name, _ in rows.given)))
    definition = define(session, statement, source, of_query)
    _check_filled(statement, rows.given, source)
    connector, options = connector_of(statement.provider, definition)
    connector_target = None if connector is None else connector_table(path, definition, connector, options)
    existing = _existing(session, path)
    if existing is not None and statement.if_not_exists and not is_own:
        # It came while the query was looked at.
        return LeftAsItIs.of(session, path)
    if isinstance(existing, Table) and is_materialized(existing.options()):
        operation = "CREATE OR REPLACE TABLE" if statement.replace else "CREATE TABLE"
        raise made_by_query(path, operation, source, statement.path.span)
    if statement.replace:
        with placing(source, statement.path.span):
            _check_replaceable(session, path, existing, connector_target, must_exist=statement.must_exist)
        existing = None
    if existing is not None and not is_own:
        raise _name_taken(path, statement, source)
    if existing is not None:
        with placing(source, statement.path.span):
            session.objects.check_permanent(path, "table", doing="adding rows to")
    atomic = statement.replace or (existing is None and session.settings.flag(CTAS_ATOMICITY))
    if atomic and not statement.replace:
        with placing(source, statement.path.span):
            check_atomic(session, path, connector_target)
    into = connector_target if existing is None else existing
    fields = definition.fields
    if isinstance(into, ConnectorTable):
        check_writes(session, into, source, statement.path.span)
        fields = rows.connector_fields(into)
    elif into is not None:
        fields = into.table_schema.fields
    query = rows.bound(fields)
    managed = not isinstance(into, ConnectorTable)
    return Creation(
        session=session,
        statement=statement,
        source=source,
        path=path,
        definition=definition,
        rows=rows,
        query=query,
        made=connector_target,
        existing=existing,
        atomic=atomic,
        is_own=is_own,
        stream=stream_setting(session, path, query, statement.query, is_managed=managed) if session.settings.is_streaming else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAsItIs:
    """The plan of CREATE TABLE IF NOT EXISTS … AS where a table is there: nothing is done, and the result says so."""

    path: ObjectPath
    kind: ResultKind
    atomic: bool = False
    hooks: tuple[JobStatusHook, ...] = ()

    @staticmethod
    def of(session: Session, path: ObjectPath) -> "LeftAsItIs":
        """The plan for a permanent table that is there: its result is that of an INSERT into it."""
        return LeftAsItIs(path=path, kind="snapshot" if not session.kept.has(path) else "nothing")

    @property
    def schema(self) -> pa.Schema:
        return SNAPSHOT_SCHEMA if self.kind == "snapshot" else DONE_SCHEMA

    def begin(self) -> JobPlan:
        return self

    def run(self, job: Job[Result]) -> Result:
        return self.result()

    def result(self) -> Result:
        """The result, which needs no job."""
        notice = already_there(self.path)
        return landed(None, notice) if self.kind == "snapshot" else done(notice)

    def explain(self) -> str:
        return f"== Nothing ==\n{self.path} is there already"


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A table to be made and filled with the rows of ``query``.

    ``made``: the table to be made, if it has a connector; ``existing``: the one that is there already, where that ``is_own``.
    """

    session: Session
    statement: CreateTable
    source: Source
    path: ObjectPath
    definition: TableDefinition
    rows: QueryToInsert
    query: BoundQuery
    made: ConnectorTable | None
    existing: Table | ConnectorTable | None
    atomic: bool
    is_own: bool
    stream: StreamSetting | None

    def begin(self) -> JobPlan:
        """Makes the table, and returns the plan of the INSERT into it. An atomic one is made when the plan runs."""
        if self.existing is not None:
            return self._insert(self.existing)
        if self.made is not None:
            if self.atomic:
                insert = self._batch(self.made)
                return KeptCreation(session=self.session, made=self.made, insert=insert, when_taken=self._when_taken)
            self.session.kept.keep(self.made)
            return self._batch(self.made)
        with placing(self.source, self.statement.path.span):
            context = new_managed(self.session, self.path, self.definition)
        if self.atomic:
            return self._atomic(context)
        try:
            self.session.factory.on_create_table(context, False)
        except AlreadyExistsError:
            if not self.statement.if_not_exists:
                raise
            return self._when_taken()
        table = self.session.open_table(self.path)
        assert isinstance(table, Table), "the name has no suffix"
        return self._insert(table)

    def _atomic(self, context: ManagedTableContext) -> JobPlan:
        rows = PendingRows(session=self.session, name=str(self.path), query=self.query, source=self.source)
        if self.stream is not None:
            return hooked_stream(rows, context, self.stream)
        factory = self.session.factory
        if isinstance(factory, StagesTables):
            return StagedCreation(
                rows=rows,
                context=context,
                factory=factory,
                replaces=self.statement.replace,
                must_exist=self.statement.must_exist,
                when_taken=None if self.statement.replace else self._when_taken,
            )
        return HookedCreation(rows=rows, context=context, when_taken=self._when_taken if self.statement.if_not_exists else None)

    def _when_taken(self) -> JobPlan:
        """The plan where another creation has taken the name since. Raises AlreadyExistsError without IF NOT EXISTS."""
        if self.is_own:
            return plan_creation(self.session, self.statement, self.source, self.rows.parameters, is_own=True).begin()
        if not self.statement.if_not_exists:
            raise _name_taken(self.path, self.statement, self.source)
        if self.made is None:
            # A directory that its catalog does not name is taken in, as by any CREATE TABLE IF NOT EXISTS.
            self.session.factory.on_create_table(new_managed(self.session, self.path, self.definition), True)
        return LeftAsItIs.of(self.session, self.path)

    def explain(self) -> str:
        """The table that is made, and the plan of the query."""
        columns = ", ".join(f"{field.name} {type_to_sql(field.type)}" for field in self.definition.fields)
        heading = "Writes into" if self.existing is not None else "Creates or replaces" if self.statement.replace else "Creates"
        return f"== {heading} ==\n{self.path}: {columns}\n\n{explained(self.session, self.query)}"

    def _insert(self, into: Table | ConnectorTable) -> JobPlan:
        if self.stream is not None:
            return stream_into(self.session, self.stream, self._insertion(into), self.source)
        return self._batch(into)

    def _batch(self, into: Table | ConnectorTable) -> OneInsert:
        return OneInsert(session=self.session, insertion=self._insertion(into), source=self.source)

    def _insertion(self, into: Table | ConnectorTable) -> Insertion:
        target = self.rows.table_target(self.path, into) if isinstance(into, Table) else into
        return Insertion(
            name=str(self.path), bind=bound_to(self.query), target=target, operation=CREATE_AS, text=self.source.statement
        )


def _name_taken(path: ObjectPath, statement: CreateTable, source: Source) -> AlreadyExistsError:
    return AlreadyExistsError(
        source.mark(
            f"Table '{path.quoted}' already exists: INSERT INTO adds rows to it, CREATE OR REPLACE TABLE replaces it, and CREATE "
            "TABLE IF NOT EXISTS leaves it as it is",
            statement.path.span,
        ),
        kind="table-exists",
    )


def _exists(session: Session, path: ObjectPath) -> bool:
    """True if there is a permanent table of a name, which a temporary one may hide. It is not opened."""
    if session.kept.has(path):
        return True
    return path.catalog in session.catalogs.names() and session.exists(path)


def _existing(session: Session, path: ObjectPath) -> Table | ConnectorTable | None:
    """The permanent table of a name, which a temporary one may hide."""
    if (kept := session.kept.find(path)) is not None:
        if isinstance(kept, ConnectorTable):
            return kept
        raise AlreadyExistsError(f"View '{path.quoted}' already exists: DROP VIEW it, or choose another name", kind="table-exists")
    if not _exists(session, path):
        return None
    table = session.open_table(path)
    return table if isinstance(table, Table) else None


def _check_replaceable(
    session: Session,
    path: ObjectPath,
    existing: Table | ConnectorTable | None,
    connector_target: ConnectorTable | None,
    *,
    must_exist: bool,
) -> None:
    """Raises if a table cannot be replaced, or there is none. A temporary object of its name would hide what becomes of it."""
    if connector_target is not None or isinstance(existing, ConnectorTable) or not isinstance(session.factory, StagesTables):
        raise UnsupportedError(f"{path}: only managed tables are replaced; DROP TABLE it, then CREATE TABLE", kind="not-managed")
    session.objects.check_permanent(path, "table")
    if existing is None and must_exist:
        raise NotFoundError(
            f"Table with identifier '{path.quoted}' does not exist: CREATE OR REPLACE TABLE makes it", kind="no-such-table"
        )


def _columns(statement: CreateTable, query_columns: Given, source: Source) -> list[Field]:
    """The columns that the query adds to those of the statement, in their order."""
    assert statement.query is not None
    declared = {one.name.casefold() for one in statement.columns or () if isinstance(one, PhysicalColumn)}
    fields = query_fields(statement.query, query_columns, source, declared)
    return _ordered(statement, fields, source) if statement.names else fields


def query_fields(query: Fragment, query_columns: Given, source: Source, declared: Collection[str] = ()) -> list[Field]:
    """The columns of a table that a query gives, without those ``declared``, in lower case. Raises InvalidInputError."""
    if query.dialect is SqlDialect.SPARK and (unusable := unusable_column(query)) is not None:
        if unusable.name is not None:
            raise _duplicate(source, unusable.name, unusable.column.span)
        raise InvalidInputError(
            source.mark(
                f"a column of the table needs a name, and {' '.join(unusable.column.text.split()):.60} has none: write … AS name, "
                "or SELECT * FROM VALUES … AS rows (name, …)",
                unusable.column.span,
            ),
            kind="unnamed-column",
        )
    names = [name.casefold() for name, _ in query_columns]
    for place, (name, _) in enumerate(query_columns):
        if name.casefold() in names[:place]:
            raise _duplicate(source, name, source.word(name, query.span))
    fields: list[Field] = []
    for name, data_type in query_columns:
        if name == ROW_KIND or name.casefold() in declared:
            continue
        if data_type is None:
            raise InvalidInputError(
                source.mark(
                    f"the type of the column {name!r} is not known: write CAST(NULL AS …), or declare the column",
                    source.word(name, query.span),
                ),
                kind="column-type",
            )
        fields.append(Field(id=0, name=name, type=nullable_throughout(data_type)))
    if not fields and not declared:
        raise InvalidInputError(
            source.mark(
                f"the query gives no column but {ROW_KIND}, which says how a row changes the table and is no column of it; give "
                "more columns, or that one another name: … AS name",
                source.word(ROW_KIND, query.span),
            ),
            kind="no-columns",
        )
    return fields


def _duplicate(source: Source, name: str, place: Span) -> InvalidInputError:
    return InvalidInputError(
        source.mark(
            f"duplicate column names: the query gives {name!r} twice, and SQL does not tell upper from lower case; name one of "
            "them anew: … AS name",
            place,
        ),
        kind="duplicate-column",
    )


def _ordered(statement: CreateTable, fields: Sequence[Field], source: Source) -> list[Field]:
    by_name = {field.name.casefold(): field for field in fields}
    for name in statement.names:
        if name.casefold() not in by_name:
            names = [field.name for field in fields]
            raise InvalidInputError(
                source.mark(
                    f"the query gives no column {name!r}{did_you_mean(name, names)}: names alone put its columns in order "
                    f"({', '.join(names)}); in the query, … AS {name} names one",
                    source.word(name),
                ),
                kind="unknown-column",
            )
    ordered = [replace(by_name.pop(name.casefold()), name=name) for name in statement.names]
    if by_name:
        missing = next(iter(by_name.values())).name
        raise InvalidInputError(
            source.mark(
                f"the list of columns lacks {missing!r}, which the query gives: name all {len(fields)}, or leave the list out",
                source.word(statement.names[0]),
            ),
            kind="columns",
        )
    return ordered


def _check_filled(statement: CreateTable, query_columns: Given, source: Source) -> None:
    names = {name.casefold() for name, _ in query_columns}
    for column in statement.columns or ():
        if not isinstance(column, PhysicalColumn) or column.name.casefold() in names:
            continue
        if column.default is None and (not column.type.nullable or column.name in statement.primary_key):
            raise InvalidInputError(
                source.mark(
                    f"the column {column.name!r} is NOT NULL, and the query does not give it: add it to the query, or give it a "
                    "DEFAULT",
                    column.span,
                ),
                kind="columns",
            )
