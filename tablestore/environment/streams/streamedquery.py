"""Prepares a query that reads streams to be run batch by batch: over some changes of one stream at a time.

    INSERT INTO k SELECT id, upper(v) FROM t WHERE id > 1
    batch of t: rows with their number -> SELECT number, id, upper(v) … -> rows with the kinds of the rows that they come from

Rows come out in the order of those that they come from, whatever order the engine gives them. Memory: a batch, and its rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tablestore.distributed.read import pin_read
from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryEngine, QueryRelation, Relation, RowsRelation
from tablestore.environment.memoryrows import MemoryRows
from tablestore.environment.rows.expressions import schema_of
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.incremental.shapes import NoRuleError
from tablestore.sql.incremental.stateless import StreamShape, carry
from tablestore.sql.sqldialect import SQL_DIALECT, SqlDialect
from tablestore.types.rowkind import ROW_KIND_COLUMN

ROW_NUMBER = "_tablestore_row"
"""The column that says which row of a batch a row comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedQuery:
    """A query without state. ``streams``: what it reads as streams, by their names; ``schema``: its columns; ``shape``: which of
    them are columns of streams."""

    engine: QueryEngine
    query: BoundQuery
    streams: Mapping[str, ManagedRelation]
    schema: pa.Schema
    shape: StreamShape

    def rows(self, stream: str, changes: pa.Table) -> pa.RecordBatch:
        """The rows that come from changes of one stream: ``_row_kind``, then the columns."""
        kinds = changes.column(ROW_KIND_COLUMN)
        numbers = pa.array(np.arange(changes.num_rows, dtype=np.int64))
        numbered = changes.drop_columns([ROW_KIND_COLUMN]).add_column(0, ROW_NUMBER, numbers)
        rows = self.engine.read(_over(self.query, {stream: numbered})).read_all()
        origins = rows.column(0).to_numpy()
        if len(origins) and (origins[1:] < origins[:-1]).any():
            order = np.argsort(origins, kind="stable")
            rows, origins = rows.take(pa.array(order)), origins[order]
        kept = kinds if len(origins) == changes.num_rows and _is_each(origins) else kinds.take(pa.array(origins))
        columns = [kept, *rows.columns[1:]]
        schema = pa.schema([pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False), *self.schema])
        table = pa.Table.from_arrays(columns, names=schema.names).combine_chunks().cast(schema)
        return next(iter(table.to_batches()), pa.RecordBatch.from_pylist([], schema))


def streamed_query(engine: QueryEngine, query: BoundQuery) -> StreamedQuery:
    """A query that reads streams. Raises UnsupportedError for one that reads none, or has state."""
    streams: dict[str, ManagedRelation] = {}
    for relation in streams_of(query):
        known = streams.setdefault(relation.name, relation)
        if known.follows != relation.follows:
            raise UnsupportedError(
                f"execution.runtime-mode = streaming: the query reads {relation.name} from two places (log.scan, consumer-id); "
                "give both references the same OPTIONS",
                kind="streaming",
            )
        streams[relation.name] = _both(known, relation)
    if not streams:
        raise ends()
    try:
        carrying, shape = carrying_query(query, ROW_NUMBER)
    except NoRuleError as error:
        raise _has_state(engine, error.reason) from error
    schema = schema_of(engine, query)
    try:
        names = engine.query(_over(carrying, {})).schema.names
    except InvalidInputError as error:
        # The query without the column was fine: the engine cannot say of each row where it comes from.
        raise _has_state(engine, f"its rows are made of several ({error.message.splitlines()[0]})") from error
    if names != [ROW_NUMBER, *schema.names]:
        raise _has_state(engine, "its text is not understood by the planner of streams")
    return StreamedQuery(engine=engine, query=carrying, streams=streams, schema=schema, shape=shape)


def streams_of(query: BoundQuery) -> Iterator[ManagedRelation]:
    """The managed tables that a query reads as streams, also in views."""
    for relation in query.relations:
        if isinstance(relation, QueryRelation):
            yield from streams_of(relation.query)
        elif isinstance(relation, ManagedRelation) and relation.follows is not None:
            yield relation


def ends() -> UnsupportedError:
    """The error of a query that reads no stream."""
    return UnsupportedError(
        "execution.runtime-mode = streaming: the query reads no stream, so it would end. Read a managed table without AS OF, or "
        "SET 'execution.runtime-mode' = 'batch' to run it once",
        kind="streaming",
    )


def _has_state(engine: QueryEngine, reason: str) -> UnsupportedError:
    elsewhere = "" if engine.name == "spark" else " on the engine spark"
    return UnsupportedError(
        "execution.runtime-mode = streaming: here a stream's rows are filtered and computed one by one, added up with UNION ALL "
        f"and joined with tables as of now, and this query does more: {reason}. A materialized table keeps its rows up to date: "
        f"CREATE MATERIALIZED TABLE name FRESHNESS = INTERVAL '1' MINUTE AS query. INSERT INTO{elsewhere} streams what Spark can",
        kind="streaming",
    )


def _both(one: ManagedRelation, other: ManagedRelation) -> ManagedRelation:
    """A stream with what two references use of it."""
    columns = None
    if one.columns is not None and other.columns is not None:
        columns = tuple(name for name in one.schema.field_names if name in {*one.columns, *other.columns})
    return replace(one, columns=columns, filter=one.filter if one.filter == other.filter else None)


def carrying_query(query: BoundQuery, column: str) -> tuple[BoundQuery, StreamShape]:
    """The query with a column of its streams in front, also in its views. Raises NoRuleError, UnsupportedError."""
    relations, shapes = list(query.relations), dict[int, StreamShape]()
    for number, relation in enumerate(relations):
        if isinstance(relation, ManagedRelation) and relation.follows is not None:
            names = relation.schema.field_names if relation.columns is None else relation.columns
            shapes[number] = StreamShape.of(relation.name, names)
        elif isinstance(relation, QueryRelation) and next(streams_of(relation.query), None) is not None:
            inner, shapes[number] = carrying_query(relation.query, column)
            relations[number] = replace(relation, query=inner, selected=None)
    if query.dialect is not SqlDialect.SPARK:
        raise UnsupportedError(
            "execution.runtime-mode = streaming: streams are planned in Spark's words, and this query is in those of "
            f"{query.dialect}: SET '{SQL_DIALECT}' = '{SqlDialect.SPARK}'",
            kind="streaming",
        )
    written = carry(query.named(), shapes, column)
    carrying = replace(
        query, text=written.text, edits=written.edits, relations=tuple(relations), statement=None, pieces=(), parsed=None
    )
    return carrying, written.shape


def _over(query: BoundQuery, rows: Mapping[str, pa.Table]) -> BoundQuery:
    """The query over some rows of its streams, and over none of the others; tables are looked up in as they are now."""
    return replace(query, relations=tuple(_replaced(relation, rows) for relation in query.relations))


def _replaced(relation: Relation, rows: Mapping[str, pa.Table]) -> Relation:
    match relation:
        case QueryRelation():
            return replace(relation, query=_over(relation.query, rows))
        case ManagedRelation(follows=follows) if follows is not None:
            of_batch = rows.get(relation.name)
            return RowsRelation(name=relation.name, rows=MemoryRows(_no_rows(relation) if of_batch is None else of_batch))
        case ManagedRelation(at_each_batch=True, table=table, pin=pin):
            return replace(relation, pin=pin_read(table, pin.spec))
    return relation


def _no_rows(relation: ManagedRelation) -> pa.Table:
    schema = relation.schema.arrow_schema
    names = schema.names if relation.columns is None else relation.columns
    return pa.schema([pa.field(ROW_NUMBER, pa.int64()), *(schema.field(name) for name in names)]).empty_table()


def _is_each(origins: np.ndarray) -> bool:
    """True if each row of a batch gives one row, as far as the numbers of as many ascending rows tell."""
    return bool(len(origins) == 0 or (origins[0] == 0 and origins[-1] == len(origins) - 1 and (np.diff(origins) == 1).all()))
