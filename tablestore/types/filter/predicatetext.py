"""A filter as SQL text: for people (``explain``) and for processes (tasks of a distributed read carry it).

``parse_filter(to_sql(predicate))`` keeps exactly the rows that ``predicate`` keeps. Text is quoted here and nowhere else.
"""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np

from tablestore.types.filter.predicate import And, Comparison, Constant, IsIn, IsNull, Like, Not, Or, Predicate, StartsWith


def to_sql(predicate: Predicate) -> str:
    """SQL text (Spark dialect) of a predicate."""
    match predicate:
        case And(children):
            return _joined(children, " AND ", "TRUE")
        case Or(children):
            return _joined(children, " OR ", "FALSE")
        case Not(child):
            return f"NOT ({to_sql(child)})"
        case Comparison(op, field, literal):
            return f"{_name(field)} {op} {_literal(literal)}"
        case IsIn(field, values):
            # SQL has no empty list. Nothing is in it, and for a null that is unknown.
            return f"{_name(field)} IN ({', '.join(map(_literal, values))})" if values else f"({_name(field)} IS NULL AND NULL)"
        case IsNull(field):
            return f"{_name(field)} IS NULL"
        case StartsWith(field, prefix):
            pattern = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            return f"{_name(field)} LIKE {_text(pattern + '%')}"
        case Like(field, pattern):
            return f"{_name(field)} LIKE {_text(pattern)}"
        case Constant(value):
            return {True: "TRUE", False: "FALSE", None: "NULL"}[value]


def _joined(children: tuple[Predicate, ...], joiner: str, empty: str) -> str:
    if not children:
        return empty
    return joiner.join(f"({to_sql(child)})" if isinstance(child, (And, Or)) else to_sql(child) for child in children)


def _name(field: str) -> str:
    if field.isidentifier() and field.isascii() and field.upper() not in _WORDS:
        return field
    return "`" + field.replace("`", "``") + "`"


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case str():
            return _text(value)
        case bytes():
            return f"X'{value.hex()}'"
        case np.datetime64():
            return f"TIMESTAMP '{str(value).replace('T', ' ')}'"
        case dt.datetime():
            zone = "Z" if value.tzinfo else ""
            plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return f"TIMESTAMP '{plain.isoformat(sep=' ')}{zone}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return _text(str(value))


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


# Words that cannot stand as a bare column name in the filter grammar.
_WORDS = frozenset(
    """
    ALL AND ANY AS BETWEEN CASE CAST CROSS DATE DISTINCT DIV ELSE END ESCAPE EXISTS FALSE FROM FULL GROUP HAVING IN INNER INTERVAL
    IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL ON OR ORDER OUTER RIGHT RLIKE SELECT SEMI TABLE THEN TIME TIMESTAMP TRUE UNION USING
    VALUES WHEN WHERE WITH
    """.split()  # noqa: SIM905
)
