"""Prints a predicate as SQL text: for people (``explain``) and for processes (tasks of a distributed read carry it).

``parse_filter(to_sql(predicate))`` keeps exactly the rows that ``predicate`` keeps.
"""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np

from tablestore.types.expression.expression import expression_text
from tablestore.types.expression.sqlwords import name_text, text_literal
from tablestore.types.filter.predicate import (
    And,
    Comparison,
    Computed,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    StartsWith,
)


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
            return f"{name_text(field)} {op} {_literal(literal)}"
        case IsIn(field, values):
            # SQL has no empty list. Nothing is in it, and for a null that is unknown.
            return (
                f"{name_text(field)} IN ({', '.join(map(_literal, values))})"
                if values
                else f"({name_text(field)} IS NULL AND NULL)"
            )
        case IsNull(field):
            return f"{name_text(field)} IS NULL"
        case StartsWith(field, prefix):
            pattern = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            return f"{name_text(field)} LIKE {text_literal(pattern + '%')}"
        case Like(field, pattern):
            return f"{name_text(field)} LIKE {text_literal(pattern)}"
        case Computed(expression):
            return expression_text(expression)
        case Constant(value):
            return {True: "TRUE", False: "FALSE", None: "NULL"}[value]


def _joined(children: tuple[Predicate, ...], joiner: str, empty: str) -> str:
    if not children:
        return empty
    return joiner.join(f"({to_sql(child)})" if isinstance(child, (And, Or)) else to_sql(child) for child in children)


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
            return text_literal(value)
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
            return text_literal(str(value))
