"""Turns the rows of a CSV file, as dbt reads it, into Arrow."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dbt_common.clients.agate_helper import Integer

if TYPE_CHECKING:
    import agate

_TYPES = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us"),
    "DATE": pa.date32(),
    "STRING": pa.string(),
}


def seed_type(rows: "agate.Table", index: int) -> str:
    """The type of a column, in SQL."""
    # It takes long to import, and commands that build nothing need none of it.
    import agate

    kind = rows.column_types[index]
    if isinstance(kind, Integer):
        return "BIGINT"
    if isinstance(kind, agate.Number):
        return "DOUBLE" if rows.aggregate(agate.MaxPrecision(index)) else "BIGINT"
    known = ((agate.Boolean, "BOOLEAN"), (agate.DateTime, "TIMESTAMP"), (agate.Date, "DATE"))
    return next((name for kinds, name in known if isinstance(kind, kinds)), "STRING")


def to_arrow(rows: "agate.Table") -> pa.Table:
    """The rows, each column of its own type."""
    columns = {}
    for index, name in enumerate(rows.column_names):
        arrow_type = _TYPES[seed_type(rows, index)]
        columns[name] = pa.array([_value(value, arrow_type) for value in rows.columns[index].values()], arrow_type)
    return pa.table(columns)


def _value(value: Any, arrow_type: pa.DataType) -> Any:
    if isinstance(value, Decimal):
        return int(value) if pa.types.is_integer(arrow_type) else float(value)
    return value if value is None or not pa.types.is_string(arrow_type) else str(value)
