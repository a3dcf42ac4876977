"""Puts the rows of a query into the files of a table: what names their folders is asked of the query itself, so that a value is
spelled as Spark casts it to a text, in the time zone of the session."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tablestore.environment.engine import BoundQuery, ConnectorRelation, QueryEngine, QueryRelation
from tablestore.ids import Ids
from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.sparktypes import cast_text
from tablestore.sql.source import Edit, Span
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import Field, is_float
from tablestore_duckdb.fileencoding import check_write_options
from tablestore_duckdb.filetables import FileTable
from tablestore_duckdb.filewriting import check_columns, check_place, float_text, static_folder, text_column, write_files


def insert_into_files(
    engine: QueryEngine,
    ids: Ids,
    query: BoundQuery,
    target: ConnectorRelation,
    *,
    overwrite: bool,
    partition: Mapping[str, str | None] | None,
) -> None:
    """Writes the rows of a query as :class:`tablestore.environment.engine.WritesConnectors` says. Raises UnsupportedError,
    InvalidInputError before anything is written for what files do not hold."""
    table = checked_target(target)
    declared = table.fields is not None and not table.partition_by
    schema = None if declared else engine.query(query).schema
    fields: Sequence[Field] = (
        table.fields if table.fields is not None else fields_from_arrow(schema, where=f"table {table.name}")[0]
    )
    if table.fields is None:
        check_columns(table, fields)
    if schema is not None and table.partition_by:
        floats = {field.name for field in fields if is_float(field.type)}
        query = _with_texts(query, table.partition_by, schema.names, floats)
    emptied = None if partition is None else static_folder(_spelled(engine, partition, fields))
    write_files(table, fields, engine.read(query), ids, overwrite=overwrite, emptied=emptied)


def checked_target(target: ConnectorRelation) -> FileTable:
    """The table of files. Raises UnsupportedError, InvalidInputError for one that is not written."""
    table = FileTable.of(target, verb="write")
    check_place(table)
    check_write_options(table)
    if table.fields is not None:
        check_columns(table, table.fields)
    return table


def _with_texts(query: BoundQuery, partition_by: Sequence[str], names: Sequence[str], floats: Collection[str]) -> BoundQuery:
    """The query with a column for each partition column that it gives, of its values as texts; not for ``floats``. The rows of a
    partition come one after another, so that they lie in one file."""
    partitions = [(place, quote_name(name), name not in floats) for place, name in enumerate(partition_by) if name in names]
    if not partitions:
        return query
    texts = [f", CAST({name} AS STRING) AS {quote_name(text_column(place))}" for place, name, is_text in partitions if is_text]
    before, after = f"SELECT *{''.join(texts)} FROM ", f" AS `_rows` ORDER BY {', '.join(name for _, name, _ in partitions)}"
    edit = Edit(span=Span(len(before), len(before)), relation=0)
    return replace(
        BoundQuery(text=before + after, relations=(QueryRelation(name="the rows", query=query),), edits=(edit,)),
        parameters=query.parameters,
        statement=query.statement,
        is_closed=query.is_closed,
    )


def _spelled(engine: QueryEngine, partition: Mapping[str, str | None], fields: Sequence[Field]) -> dict[str, str | None]:
    """The texts of the values of a partition as Spark casts them, from those of the statement."""
    types = {field.name: field.type for field in fields}
    named = {f"value{place}": text for place, text in enumerate(partition.values())}
    columns = []
    for parameter, name in zip(named, partition, strict=True):
        value = cast_text(f"CAST(:{parameter} AS STRING)", types[name])
        columns.append(f"{value if is_float(types[name]) else f'CAST({value} AS STRING)'} AS {parameter}")
    rows = engine.query(BoundQuery(text=f"SELECT {', '.join(columns)}", parameters=named)).to_reader().read_all()
    values = zip(rows.schema.types, (column[0].as_py() for column in rows.columns), strict=True)
    texts = [float_text(value, kind) if isinstance(value, float) else value for kind, value in values]
    return dict(zip(partition, texts, strict=True))
