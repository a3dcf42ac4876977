"""Finds the event time up to which a table's rows are there.

The watermark that the newest snapshot was committed with; where nobody gave one, that of the newest row: the table's expression
over the largest value of its time column that any file's statistics know. No row is read.
"""

from datetime import UTC, datetime

import pyarrow as pa

from tablestore.environment.engine import BoundQuery, QueryEngine, RowsRelation
from tablestore.environment.managed.nonphysical import WatermarkOf
from tablestore.environment.memoryrows import MemoryRows
from tablestore.sql.source import Edit, Span
from tablestore.sql.stored.storedexpression import check_expressions
from tablestore.table.system.systemrows import column_statistics
from tablestore.table.table import Table
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.datatypes import TIMESTAMP_ROOTS, AtomicType

NO_WATERMARK = -(1 << 63)


def newest_watermark(engine: QueryEngine | None, table: Table, watermark: WatermarkOf) -> datetime | None:
    """The watermark of the newest data; None if there is none, an expression that no engine is there to compute, or a stored text
    that is none (:mod:`tablestore.sql.stored.storedexpression`), or a column that is no time."""
    context = table.context.still_there()
    latest = context.snapshots.latest()
    field = next((one for one in table.table_schema.fields if one.name == watermark.column), None)
    if field is None or not isinstance(field.type, AtomicType) or field.type.root not in TIMESTAMP_ROOTS:
        # Another writer has stored it so.
        return None
    if latest is not None and latest.watermark is not None and latest.watermark != NO_WATERMARK:
        return datetime.fromtimestamp(latest.watermark / 1000, UTC).replace(tzinfo=None)
    if context.view is not None:
        # Statistics count rows that rules of a catalog service hide.
        return None
    entries = context.manifests.live(latest)
    maxima = (column_statistics(context, entry.file)[watermark.column][1].max for entry in entries)
    newest = max((value for value in maxima if value is not None), default=None)
    if newest is None or watermark.expression.strip("` ") == watermark.column:
        return newest
    (checked,) = check_expressions((watermark.column,), (("", watermark.expression),)).values()
    return None if engine is None or checked.refusal else _computed(engine, table, watermark.column, checked.text, newest)


def _computed(engine: QueryEngine, table: Table, column: str, expression: str, newest: object) -> datetime | None:
    text = f"SELECT {expression} AS `value` FROM "
    schema = to_arrow_schema([table.table_schema.field(column)])
    rows = MemoryRows(pa.table([pa.array([newest], schema.field(0).type)], schema=schema))
    edit = Edit(span=Span(len(text), len(text)), relation=0)
    query = BoundQuery(text=text, relations=(RowsRelation(name="newest", rows=rows),), edits=(edit,))
    value: datetime | None = engine.read(query).read_all().column(0)[0].as_py()
    return value
