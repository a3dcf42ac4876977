"""Assignments of an UPDATE, or of a clause of a MERGE: expressions by column, checked against the types of the table.

    {"price": "price * 1.1", "item": "upper(item)", "seen": datetime.date(2024, 1, 31)}

Texts are SQL; other values are literals (``pa.scalar("a text")`` and ``"'a text'"`` are a text).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import Field
from tablestore.types.expression.assignment import assigned_values
from tablestore.types.expression.evaluate import ColumnValues
from tablestore.types.expression.expression import Column, Expression, columns_of
from tablestore.types.expression.sqlexpression import ColumnOf, literal_value, parse_expression_text

TypeOf = Callable[[Column], pa.DataType]


@dataclass(frozen=True, slots=True)
class Assignments:
    """Expressions by the name of their column."""

    expressions: Mapping[str, Expression]

    @classmethod
    def parse(cls, assigned: Mapping[str, Any], fields: Mapping[str, Field], column_of: ColumnOf, type_of: TypeOf) -> "Assignments":
        """Read and check them. Raises InvalidInputError, UnsupportedError."""
        if not isinstance(assigned, Mapping) or not assigned:
            raise InvalidInputError(
                f"expected the columns to be set with their values, such as {{'price': 'price * 2'}}, found {assigned!r:.80}",
                kind="columns",
            )
        expressions: dict[str, Expression] = {}
        for name, value in assigned.items():
            field = _field(name, fields)
            if field.name in expressions:
                raise InvalidInputError(f"the column {field.name!r} is set twice", kind="columns")
            if isinstance(value, str):
                expressions[field.name] = _parsed(field.name, value, column_of)
            else:
                expressions[field.name] = literal_value(value, f"column {field.name!r}", to_arrow_type(field.type))
        assignments = cls(expressions)
        nothing = no_rows(type_of)
        for name in expressions:
            assignments.values(fields[name], nothing)
        return assignments

    def values(self, field: Field, rows: ColumnValues) -> pa.Array:
        """The values that a column is set to in each of the rows."""
        return assigned_values(self.expressions[field.name], field, rows)

    def columns(self) -> frozenset[Column]:
        """The columns that the expressions look at."""
        return frozenset().union(*map(columns_of, self.expressions.values()))


def _parsed(name: str, text: str, column_of: ColumnOf) -> Expression:
    """The expression of a text. A word that is no column may be meant as a value: the error says how that is written."""
    try:
        return parse_expression_text(text, column_of)
    except InvalidInputError as error:
        if error.kind == "unknown-column":
            quoted = text.replace("'", "''")
            error.message += f"; a text is an expression of SQL: the value {text!r:.80} is written {{{name!r}: \"'{quoted:.80}'\"}}"
            error.args = (error.message,)
        raise


def no_rows(type_of: TypeOf) -> ColumnValues:
    """Zero rows of a table: expressions over them have types."""
    return ColumnValues(0, lambda column: pa.nulls(0, type_of(column)))


def _field(name: object, fields: Mapping[str, Field]) -> Field:
    if name in fields:
        return fields[str(name)]
    matching_fields = [field for field in fields.values() if field.name.casefold() == str(name).casefold()]
    if len(matching_fields) == 1:
        return matching_fields[0]
    raise InvalidInputError(
        f"there is no column {name!r:.80} to set{did_you_mean(str(name), fields)}; the columns are {', '.join(fields)}",
        kind="columns",
    )
