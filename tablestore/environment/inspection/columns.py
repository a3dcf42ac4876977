"""Lists the columns of a table or query as rows: stored, computed and metadata columns in their order."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tablestore.environment.managed.nonphysical import Unstored, UnstoredColumn, in_order, read_unstored
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.objects import ConnectorTable, RowsView, View
from tablestore.environment.session.session import Session
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import Field, with_nullable
from tablestore.types.typestring import type_to_sql

COLUMNS_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("null", pa.bool_()),
        ("key", pa.string()),
        ("extras", pa.string()),
        ("watermark", pa.string()),
        ("comment", pa.string()),
    ]
)


def column_rows(table: Table | SystemTable | ConnectorTable) -> Iterator[dict[str, Any]]:
    """A row per column. ``key``: ``PRI(a, b)``; ``extras``: ``PARTITION``, ``DEFAULT …``, ``AS …``, ``METADATA FROM …``."""
    if isinstance(table, Table):
        yield from _of_table(table)
        return
    fields = {field.name: field for field in (fields_from_arrow(table.schema)[0] if table.schema is not None else ())}
    if isinstance(table, SystemTable):
        for field in fields.values():
            yield _row(field, (), (), None)
        return
    for column in in_order(list(fields), table.unstored or Unstored()):
        if isinstance(column, UnstoredColumn):
            yield _unstored_row(column)
        else:
            yield _row(fields[column], table.primary_key, table.partition_by, None)


def view_rows(session: Session, view: View | RowsView) -> Iterator[dict[str, Any]]:
    """A row per column of a view. Its query is looked at, not run."""
    query = Relations(session=session).bind(f"SELECT * FROM {view.path.quoted}")
    schema = session.engine_for("the columns of a view").query(query).schema
    for field in fields_from_arrow(schema)[0]:
        yield _row(field, (), (), None)


def _of_table(table: Table) -> Iterator[dict[str, Any]]:
    schema = table.table_schema
    unstored = read_unstored(schema.options, schema.field_names)
    for column in in_order(schema.field_names, unstored):
        if isinstance(column, UnstoredColumn):
            yield _unstored_row(column)
            continue
        watermark = unstored.watermark if unstored.watermark and unstored.watermark.column == column else None
        expression = watermark.expression if watermark else None
        yield _row(schema.field(column), schema.primary_keys, schema.partition_keys, expression)


def _row(field: Field, keys: tuple[str, ...], partitions: tuple[str, ...], watermark: str | None) -> dict[str, Any]:
    extras = ["PARTITION"] if field.name in partitions else []
    extras += [f"DEFAULT {field.default_value}"] if field.default_value is not None else []
    return {
        "name": field.name,
        "type": type_to_sql(with_nullable(field.type, True)),
        "null": field.type.nullable,
        "key": f"PRI({', '.join(keys)})" if field.name in keys else None,
        "extras": " ".join(extras) or None,
        "watermark": watermark,
        "comment": field.description,
    }


def _unstored_row(column: UnstoredColumn) -> dict[str, Any]:
    extras = f"AS {column.expression}" if column.expression is not None else f"METADATA FROM '{column.metadata}'"
    extras += " VIRTUAL" if column.virtual else ""
    null = not column.type_text.endswith("NOT NULL")
    return {
        "name": column.name,
        "type": column.type_text.removesuffix(" NOT NULL"),
        "null": null,
        "key": None,
        "extras": extras,
        "watermark": None,
        "comment": column.comment,
    }
