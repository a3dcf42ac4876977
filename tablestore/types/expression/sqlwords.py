"""Quotes names and literals as SQL text (Spark's dialect). They are quoted here and nowhere else."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa

from tablestore.types.arrays import python_values


def name_text(name: str) -> str:
    """The name of a column, between backticks where it needs them."""
    if name.isidentifier() and name.isascii() and name.upper() not in _WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def text_literal(value: str) -> str:
    """A text between quotes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def literal_text(scalar: pa.Scalar) -> str:
    """A literal that is read as exactly this value."""
    if not scalar.is_valid:
        return "NULL"
    if pa.types.is_nested(scalar.type):
        return str(scalar.as_py())  # No text is read as one of these; this one is for messages.
    (value,) = python_values(pa.array([scalar], scalar.type))
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case Decimal():
            text = format(value, "f")
            return text if "." in text or len(value.as_tuple().digits) > 18 else f"CAST('{text}' AS {_decimal(scalar.type)})"
        case float():
            if not math.isfinite(value):
                return f"CAST('{value}' AS DOUBLE)"
            return repr(value) if "e" in repr(value) else f"{value!r}E0"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime() | dt.date():
            return f"{'TIMESTAMP' if isinstance(value, dt.datetime) else 'DATE'} '{value}'"
        case str():
            return text_literal(value)
        case _:
            return f"TIMESTAMP '{str(value).replace('T', ' ')}'"


def _decimal(data_type: pa.DataType) -> str:
    return f"DECIMAL({data_type.precision}, {data_type.scale})"


# Words that cannot stand as a bare column name in the filter grammar.
_WORDS = frozenset(
    """
    ALL AND ANY AS BETWEEN CASE CAST CROSS DATE DISTINCT DIV ELSE END ESCAPE EXISTS FALSE FROM FULL GROUP HAVING IN INNER INTERVAL
    IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL ON OR ORDER OUTER RIGHT RLIKE SELECT SEMI TABLE THEN TIME TIMESTAMP TRUE UNION USING
    VALUES WHEN WHERE WITH
    """.split()  # noqa: SIM905
)
