"""Compares a statement that is to be printed with what it is printed from.

A definition is stored, and whoever writes into the warehouse can write any text into it. Who runs what SHOW CREATE printed runs one
statement that makes the same object, or was told which part of the definition is none.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tablestore.errors import FormatError, TablestoreError
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.sqldialect import SQL_DIALECT, SqlDialect
from tablestore.sql.statements.definition import Column, ComputedColumn, CreateCatalog, CreateTable, CreateView, PhysicalColumn
from tablestore.sql.statements.materialized import CreateMaterializedTable
from tablestore.types.datatypes import DataType
from tablestore.types.typestring import quote_identifier, type_to_sql

if TYPE_CHECKING:
    from tablestore.sql.statements.anystatement import Statement

Parts = Mapping[str, object]
"""The parts of a statement by what they are called in a message; a part that is missing is None or empty."""


def checked_text(text: str, name: str, expected_parts: Parts, dialect: SqlDialect = SqlDialect.SPARK) -> str:
    """The text of a statement that says ``expected_parts`` and nothing else. Raises FormatError that names a part that differs.

    ``dialect``: the words of its query; of others than Spark's it is a script, which sets the dialect before and resets it behind.
    """
    try:
        read_parts = dict(_parts(parse_statement(text, dialect=dialect)))
    except TablestoreError as error:
        raise _not_printed(name, f"the statement would not be one: {error.message}") from error
    for part in (*expected_parts, *read_parts):
        if (read_parts.get(part) or None) != (expected_parts.get(part) or None):
            read, stored = (f"{parts.get(part)!r:.200}" for parts in (read_parts, expected_parts))
            raise _not_printed(name, f"{part} would be read as {read}, and it is stored as {stored}")
    return text if dialect is SqlDialect.SPARK else f"SET '{SQL_DIALECT}' = '{dialect}';\n{text};\nRESET '{SQL_DIALECT}';"


def stored_column(name: str, of: DataType, comment: str | None, default: str | None) -> object:
    """A stored column, as a part."""
    return name, _type(of), comment, default


def computed_column(name: str, expression: str, comment: str | None) -> object:
    """A computed column, as a part."""
    return name, "AS", expression, comment


def metadata_column(name: str, of: DataType, key: str | None, virtual: bool, comment: str | None) -> object:
    """A metadata column, as a part."""
    return name, _type(of), "METADATA", name if key is None else key, virtual, comment


def _not_printed(name: str, why: str) -> FormatError:
    return FormatError(
        f"{name} is not printed as a statement: none makes what is stored. {why}\nDESCRIBE shows what is stored",
        kind="not-printable",
    )


def _parts(statement: "Statement") -> Iterator[tuple[str, object]]:
    yield "the kind", type(statement).__name__
    match statement:
        case CreateTable():
            yield "the name", statement.path.parts
            yield "the columns", [_column(column) for column in statement.columns or ()]
            yield "the primary key", statement.primary_key
            yield "the constraint", statement.constraint
            yield "the checks", {check.name: check.condition.text for check in statement.checks}
            if (watermark := statement.watermark) is not None:
                yield "the watermark", (watermark.column, watermark.expression.text)
            yield "the partitions", statement.partitioned_by
            yield "the comment", statement.comment and (statement.comment,)
            yield "the options", dict(statement.options)
            yield "TEMPORARY", statement.temporary
            yield "another clause", (*statement.names, *filter(None, (statement.provider, statement.like, statement.query)))
            yield "another word", statement.if_not_exists or statement.replace or statement.must_exist
        case CreateMaterializedTable():
            yield "the name", statement.path.parts
            yield "the primary key", statement.primary_key
            yield "the constraint", statement.constraint
            yield "the comment", statement.comment and (statement.comment,)
            yield "the partitions", statement.partitioned_by
            yield "the options", dict(statement.options)
            yield "the freshness", statement.freshness and (statement.freshness.interval, statement.freshness.unit)
            yield "the refresh mode", statement.refresh_mode
            yield "the query", statement.query.text
            yield "another word", statement.or_alter
        case CreateView():
            yield "the name", statement.path.parts
            yield "the columns", statement.columns
            yield "the comment", statement.comment and (statement.comment,)
            yield "the query", statement.query.text
            yield "the options", dict(statement.options)
            yield "TEMPORARY", statement.temporary
            yield "another word", statement.if_not_exists or statement.replace
        case CreateCatalog():
            yield "the name", (statement.name,)
            yield "the options", dict(statement.options)
            yield "another word", statement.if_not_exists or statement.comment


def _column(column: Column) -> object:
    match column:
        case PhysicalColumn():
            return stored_column(column.name, column.type, column.comment, column.default)
        case ComputedColumn():
            return computed_column(column.name, column.expression.text, column.comment)
        case _:
            return metadata_column(column.name, column.type, column.key, column.virtual, column.comment)


def _type(of: DataType) -> str:
    return type_to_sql(of, about=lambda inner: f" COMMENT {quote_identifier(inner.description)}" if inner.description else "")
