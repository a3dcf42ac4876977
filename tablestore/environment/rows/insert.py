"""INSERT INTO and INSERT OVERWRITE, and several of them as a STATEMENT SET.

    INSERT INTO                          rows are added; with a column ``_row_kind`` they are changes
    OVERWRITE                            all rows of an unpartitioned table; the partitions that the rows fall into of another one
                                         (``dynamic-partition-overwrite`` = false: all of them)
    OVERWRITE … PARTITION (day = …)      the partitions of these values
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore.environment.engine import BoundQuery, ConnectorRelation, InsertTarget, WritesConnectors
from tablestore.environment.result import Result, done, landed
from tablestore.environment.rows.relations import Relations, by_name
from tablestore.environment.session.objects import ConnectorTable
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.options import DYNAMIC_PARTITION_OVERWRITE, TableOptions
from tablestore.sql.query.insertion import insert_query, rows_to_insert
from tablestore.sql.query.parameters import Parameters, literal_value
from tablestore.sql.query.querytext import RowText, origin_of
from tablestore.sql.source import NOWHERE, Fragment
from tablestore.sql.statements.rows import Insert, StatementSet
from tablestore.table.table import Table
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import MAX_LENGTH, AtomicType, DataType, Field, TypeRoot
from tablestore.types.partitionspec import parse_partition_value

_TEXT = AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH)


def insert(session: Session, statement: Insert, source: Source, parameters: Parameters) -> Result:
    """Write the rows of a query. Raises InvalidInputError, UnsupportedError, NotFoundError, ConflictError."""
    engine = session.engine_for("INSERT")
    _check_mode(session, statement)
    found = session.find(statement.target, source)
    if isinstance(found, ConnectorTable):
        return _into_connector(session, statement, found, source, parameters)
    insertion = plan_insert(session, statement, source, parameters)
    with placing(source, NOWHERE):
        return landed(engine.insert(insertion.query, insertion.target))


def insert_all(session: Session, statement: StatementSet, source: Source, parameters: Parameters) -> Result:
    """Run INSERTs one after another. An error says what has landed before it. The result has a row for each."""
    snapshots: list[tuple[str, int | None]] = []
    for number, one in enumerate(statement.inserts, 1):
        try:
            result = insert(session, one, source, parameters)
        except TablestoreError as error:
            before = ", ".join(f"{name} (snapshot {found})" for name, found in snapshots) or "nothing"
            error.message = f"{error.message}\nINSERT {number} of {len(statement.inserts)}; landed before it: {before}"
            error.args = (error.message,)
            raise
        snapshots.append((str(session.expand(one.target)), result.snapshot.id if result.snapshot is not None else None))
    names, ids = [name for name, _ in snapshots], [found for _, found in snapshots]
    return Result(pa.table({"table": pa.array(names, pa.string()), "snapshot_id": pa.array(ids, pa.int64())}), kind="snapshot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """An INSERT that is ready to run."""

    query: BoundQuery
    target: InsertTarget


def plan_insert(session: Session, statement: Insert, source: Source, parameters: Parameters) -> Insertion:
    """Resolve an INSERT into a managed table."""
    table = session.table(statement.target, "INSERT", source)
    path = session.expand(statement.target)
    relations = Relations(session=session, source=source, parameters=by_name(source, parameters))
    _check_partition(statement, table, source)
    given = _columns_of(session, relations, rows_to_insert(statement), source)
    made = insert_query(source.text, statement, table.table_schema.fields, given)
    relations.where = lambda span: made.place(span) or NOWHERE
    overwrite, dynamic = _overwrite(statement, table, source, parameters)
    return Insertion(
        query=replace(relations.bind(made.text), statement=source.text or None),
        target=InsertTarget(table=table, pin=relations.pin(path, table), overwrite=overwrite, dynamic=dynamic),
    )


def _columns_of(session: Session, relations: Relations, query: Fragment, source: Source) -> list[tuple[str, DataType | None]]:
    text = RowText(source.text, ())
    text.add(query)
    relations.where = lambda span: origin_of(text.pieces, span) or NOWHERE
    schema = session.engine_for("INSERT").query(relations.bind(text.text)).schema
    return [(column.name, None if pa.types.is_null(column.type) else _type(column)) for column in schema]


def _type(column: pa.Field) -> DataType:
    (field,), _ = fields_from_arrow(pa.schema([column]), where="the query")
    return field.type


def _overwrite(
    statement: Insert, table: Table, source: Source, parameters: Parameters
) -> tuple[Mapping[str, object] | None, bool]:
    """What is replaced: as :class:`InsertTarget` says it."""
    given = statement.partition or {}
    if not statement.overwrite:
        return None, False
    fixed = {name: _value(table, name, value, source, parameters) for name, value in given.items() if value is not None}
    open_columns = len(fixed) < len(table.partition_by)
    dynamic = open_columns and TableOptions(table.options()).flag(DYNAMIC_PARTITION_OVERWRITE)
    # With values of some columns the rows fall into partitions of these values: they alone say which.
    return (None if dynamic else fixed), dynamic


def _check_partition(statement: Insert, table: Table, source: Source) -> None:
    if unknown := [name for name in statement.partition or {} if name not in table.partition_by]:
        raise InvalidInputError(
            source.mark(
                f"PARTITION ({unknown[0]} …): expected partition columns of {table.name} "
                f"({', '.join(table.partition_by) or 'it has none'}){did_you_mean(unknown[0], table.partition_by)}",
                source.word(unknown[0]),
            ),
            kind="unknown-partition-column",
        )


def _value(table: Table, name: str, value: Fragment, source: Source, parameters: Parameters) -> object:
    with placing(source, value.span):
        if value.text.strip().upper() == "NULL":
            return None
        found = literal_value(source.text, value, parameters)
        text = str(found) if found is not None else value.text.strip()
        return parse_partition_value(table.table_schema, name, text)


def _check_mode(session: Session, statement: Insert) -> None:
    if not session.settings.is_streaming:
        return
    if statement.overwrite:
        raise UnsupportedError("Streaming mode does not support overwrite: INSERT OVERWRITE needs batch mode.", kind="streaming")
    raise UnsupportedError(
        "execution.runtime-mode = streaming: an INSERT without end is no statement here; write the stream with df.writeStream, or "
        "SET 'execution.runtime-mode' = 'batch'",
        kind="streaming",
    )


def _into_connector(
    session: Session, statement: Insert, found: ConnectorTable, source: Source, parameters: Parameters
) -> Result:
    engine = session.engine_for("INSERT")
    if not isinstance(engine, WritesConnectors):
        raise UnsupportedError(
            source.mark(
                f"the engine {engine.name} does not write {found.path}, which has the connector {found.connector!r}; run the "
                "statement on the engine spark",
                statement.target.span,
            ),
            kind="engine",
        )
    if statement.partition:
        raise UnsupportedError(source.mark("PARTITION is for managed tables", statement.target.span), kind="not-managed")
    target = ConnectorRelation(name=str(found.path), connector=found.connector, options=found.options, schema=found.schema)
    relations = Relations(session=session, source=source, parameters=by_name(source, parameters))
    given = _columns_of(session, relations, rows_to_insert(statement), source)
    # Without columns of its own it takes what the query gives.
    fields = [Field(id=place, name=name, type=kind or _TEXT) for place, (name, kind) in enumerate(given)]
    made = insert_query(source.text, statement, fields if found.schema is None else fields_from_arrow(found.schema)[0], given)
    relations.where = lambda span: made.place(span) or NOWHERE
    engine.write(relations.bind(made.text), target, overwrite=statement.overwrite)
    return done()


