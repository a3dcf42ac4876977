"""Runs SHOW CREATE TABLE, CATALOG, VIEW: the statement that makes one like this. What it prints can be executed."""

import re
from collections.abc import Iterator, Mapping

from tablestore.environment.definition.tabledefinition import TableDefinition, definition_of
from tablestore.environment.inspection.parsedback import checked_text, computed_column, metadata_column, stored_column
from tablestore.environment.managed.nonphysical import UnstoredColumn, in_order, refused_column
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.objects import ConnectorTable, View
from tablestore.errors import FormatError, TablestoreError
from tablestore.options import holds_no_secret
from tablestore.redaction import shown_options
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type
from tablestore.sql.statementmask import masked_statement
from tablestore.sql.stored.storedexpression import check_expression, check_expressions
from tablestore.table.table import Table
from tablestore.types.datatypes import DataType, Field, with_nullable
from tablestore.types.typestring import quote_identifier, type_to_sql

# Options of a table for one reference; a comparison of the query is no option, whatever its column is called.
_HINT = re.compile(r"/\*\+.*?\*/", re.DOTALL)


def create_statement(path: ObjectPath, table: Table | ConnectorTable, *, temporary: bool) -> str:
    """The text of CREATE TABLE. Raises FormatError where the stored definition is none that a statement makes, or one that has an
    expression in it that no reader computes."""
    definition = definition_of(table)
    if isinstance(table, Table):
        _check_expressions(path, definition)
    parts = {
        "the kind": "CreateTable",
        "the name": (path.catalog, path.database, path.name),
        "the columns": _column_parts(path, definition),
        "the primary key": definition.primary_key,
        "the constraint": definition.constraint if definition.primary_key else None,
        "the checks": dict(definition.checks),
        "the watermark": definition.unstored.watermark
        and (definition.unstored.watermark.column, definition.unstored.watermark.expression),
        "the partitions": definition.partition_by,
        "the comment": definition.comment is not None and (definition.comment,),
        "the options": shown_options(definition.options, holds_no_secret),
        "TEMPORARY": temporary,
    }
    return checked_text(_statement(path, definition, "TEMPORARY TABLE" if temporary else "TABLE"), path.plain.quoted, parts)


def _check_expressions(path: ObjectPath, definition: TableDefinition) -> None:
    """Raises InvalidInputError for what no reader of a managed table computes: CREATE would refuse it."""
    unstored, names = definition.unstored, tuple(one.name for one in definition.fields)
    texts = tuple((column.name, column.expression or "") for column in unstored.computed)
    for name, one in check_expressions(names, texts).items():
        if one.refusal is not None:
            raise refused_column(path.plain.quoted, name, one.refusal)
    if unstored.watermark is not None:
        check_expression(unstored.watermark.expression, names)


def _column_parts(path: ObjectPath, definition: TableDefinition) -> list[object]:
    fields = {field.name: field for field in definition.fields}
    parts: list[object] = []
    for column in in_order(tuple(fields), definition.unstored):
        if isinstance(column, str):
            field = fields[column]
            parts.append(stored_column(field.name, field.type, field.description, field.default_value))
        elif column.expression is not None:
            parts.append(computed_column(column.name, column.expression, column.comment))
        else:
            parts.append(metadata_column(column.name, _type_of(path, column), column.metadata, column.virtual, column.comment))
    return parts


def _type_of(path: ObjectPath, column: UnstoredColumn) -> DataType:
    """The type of a metadata column, whose text is stored."""
    try:
        cursor = Cursor(column.type_text)
        column_type = with_nullable(data_type(cursor), not cursor.accept("NOT", "NULL"))
        cursor.expect_end()
    except TablestoreError as error:
        raise FormatError(
            f"{path.plain.quoted}: expected a type of the column {column.name!r:.80}, found {column.type_text!r:.80}",
            kind="not-printable",
        ) from error
    return column_type


def create_view_statement(view: View) -> str:
    """The text of CREATE [TEMPORARY] VIEW."""
    columns = f" ({', '.join(map(quote_identifier, view.columns))})" if view.columns else ""
    comment = "" if view.comment is None else f"\nCOMMENT {quoted_text(view.comment)}"
    query = shown_query(view)
    parts = {
        "the kind": "CreateView",
        "the name": (view.path.catalog, view.path.database, view.path.name),
        "the columns": view.columns,
        "the comment": view.comment is not None and (view.comment,),
        "the query": query,
        "the options": shown_options(view.options, holds_no_secret),
        "TEMPORARY": view.temporary,
    }
    options = with_options(view.options).replace("WITH", "TBLPROPERTIES", 1)
    kind = "TEMPORARY VIEW" if view.temporary else "VIEW"
    text = f"CREATE {kind} {view.path.quoted}{columns}{comment}{options}\nAS {query}"
    return checked_text(text, view.path.quoted, parts, view.dialect)


def shown_query(view: View) -> str:
    """The query of a view, without secrets in its hints."""
    return _HINT.sub(lambda hint: masked_statement(hint[0], holds_no_secret), view.query)


def create_catalog_statement(name: str, options: Mapping[str, str]) -> str:
    """The text of CREATE CATALOG."""
    parts = {"the kind": "CreateCatalog", "the name": (name,), "the options": shown_options(options, holds_no_secret)}
    return checked_text(f"CREATE CATALOG {quote_identifier(name)}{with_options(options)}", quote_identifier(name), parts)


def _statement(path: ObjectPath, definition: TableDefinition, kind: str) -> str:
    lines = list(_lines(definition))
    columns = " (\n  " + ",\n  ".join(lines) + "\n)" if lines else ""
    comment = "" if definition.comment is None else f"\nCOMMENT {quoted_text(definition.comment)}"
    by = ", ".join(map(quote_identifier, definition.partition_by))
    partitioned = f"\nPARTITIONED BY ({by})" if by else ""
    return f"CREATE {kind} {path.quoted}{columns}{comment}{partitioned}{with_options(definition.options)}"


def _lines(definition: TableDefinition) -> Iterator[str]:
    fields = {field.name: field for field in definition.fields}
    for column in in_order(tuple(fields), definition.unstored):
        yield _unstored(column) if isinstance(column, UnstoredColumn) else _stored(fields[column])
    if (watermark := definition.unstored.watermark) is not None:
        yield f"WATERMARK FOR {quote_identifier(watermark.column)} AS {watermark.expression}"
    if definition.primary_key:
        name = "" if definition.constraint is None else f"CONSTRAINT {quote_identifier(definition.constraint)} "
        yield f"{name}PRIMARY KEY ({', '.join(map(quote_identifier, definition.primary_key))}) NOT ENFORCED"
    for check_name, condition in sorted(definition.checks.items()):
        yield f"CONSTRAINT {quote_identifier(check_name)} CHECK ({condition})"


def _stored(field: Field) -> str:
    default = "" if field.default_value is None else f" DEFAULT {quoted_text(field.default_value)}"
    data_type = type_to_sql(field.type, about=lambda inner: _comment(inner.description))
    return f"{quote_identifier(field.name)} {data_type}{default}{_comment(field.description)}"


def _unstored(column: UnstoredColumn) -> str:
    name = quote_identifier(column.name)
    if column.expression is not None:
        return f"{name} AS {column.expression}{_comment(column.comment)}"
    source = f" FROM {quoted_text(column.metadata)}" if column.metadata not in (None, column.name) else ""
    return f"{name} {column.type_text} METADATA{source}{' VIRTUAL' if column.virtual else ''}{_comment(column.comment)}"


def _comment(text: str | None) -> str:
    return "" if text is None else f" COMMENT {quoted_text(text)}"


def with_options(options: Mapping[str, str]) -> str:
    """The clause ``WITH (…)`` on lines of its own, secrets as ``***``; nothing where there are none."""
    if not options:
        return ""
    shown = sorted(shown_options(options, holds_no_secret).items())
    pairs = ",\n  ".join(f"{quoted_text(key)} = {quoted_text(value)}" for key, value in shown)
    return f"\nWITH (\n  {pairs}\n)"


def quoted_text(text: str | None) -> str:
    """A text as SQL."""
    return "'" + (text or "").replace("\\", "\\\\").replace("'", "''") + "'"
