"""SHOW CREATE TABLE, CATALOG, VIEW: the statement that makes one like this. What it prints can be executed."""

import re
from collections.abc import Iterator, Mapping

from tablestore.environment.definition.tabledefinition import TableDefinition, definition_of
from tablestore.environment.managed.nonphysical import UnstoredColumn, in_order
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.objects import ConnectorTable, View
from tablestore.options import holds_no_secret
from tablestore.redaction import masked_statement, shown_options
from tablestore.table.table import Table
from tablestore.types.datatypes import Field
from tablestore.types.typestring import quote_identifier, type_to_sql

# Options of a table for one reference; a comparison of the query is no option, whatever its column is called.
_HINT = re.compile(r"/\*\+.*?\*/", re.DOTALL)


def create_statement(path: ObjectPath, found: Table | ConnectorTable, *, temporary: bool) -> str:
    """The text of CREATE TABLE."""
    return _statement(path, definition_of(found), "TEMPORARY TABLE" if temporary else "TABLE")


def create_view_statement(view: View) -> str:
    """The text of CREATE TEMPORARY VIEW."""
    columns = f" ({', '.join(map(quote_identifier, view.columns))})" if view.columns else ""
    comment = "" if view.comment is None else f"\nCOMMENT {quoted_text(view.comment)}"
    query = _HINT.sub(lambda hint: masked_statement(hint[0], holds_no_secret), view.query)
    return f"CREATE TEMPORARY VIEW {view.path.quoted}{columns}{comment}\nAS {query}"


def create_catalog_statement(name: str, options: Mapping[str, str]) -> str:
    """The text of CREATE CATALOG."""
    return f"CREATE CATALOG {quote_identifier(name)}{with_options(options)}"


def _statement(path: ObjectPath, definition: TableDefinition, what: str) -> str:
    lines = list(_lines(definition))
    columns = " (\n  " + ",\n  ".join(lines) + "\n)" if lines else ""
    comment = "" if definition.comment is None else f"\nCOMMENT {quoted_text(definition.comment)}"
    by = ", ".join(map(quote_identifier, definition.partition_by))
    partitioned = f"\nPARTITIONED BY ({by})" if by else ""
    return f"CREATE {what} {path.quoted}{columns}{comment}{partitioned}{with_options(definition.options)}"


def _lines(definition: TableDefinition) -> Iterator[str]:
    fields = {field.name: field for field in definition.fields}
    for column in in_order(tuple(fields), definition.unstored):
        yield _unstored(column) if isinstance(column, UnstoredColumn) else _stored(fields[column])
    if (watermark := definition.unstored.watermark) is not None:
        yield f"WATERMARK FOR {quote_identifier(watermark.column)} AS {watermark.expression}"
    if definition.primary_key:
        name = "" if definition.constraint is None else f"CONSTRAINT {quote_identifier(definition.constraint)} "
        yield f"{name}PRIMARY KEY ({', '.join(map(quote_identifier, definition.primary_key))}) NOT ENFORCED"


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
    """``WITH (…)`` on lines of its own, secrets as ``***``; nothing where there are none."""
    if not options:
        return ""
    shown = sorted(shown_options(options, holds_no_secret).items())
    pairs = ",\n  ".join(f"{quoted_text(key)} = {quoted_text(value)}" for key, value in shown)
    return f"\nWITH (\n  {pairs}\n)"


def quoted_text(text: str | None) -> str:
    """A text as SQL."""
    return "'" + (text or "").replace("\\", "\\\\").replace("'", "''") + "'"
