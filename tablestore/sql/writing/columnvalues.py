"""Finds the value that an UPDATE or a MERGE gives to each column, and casts it to the column's type.

    SET x = a, s.f = b, y = DEFAULT    {"x": a, "s": Inside({"f": b}), "y": None}

A value is the user's text; the column of a MERGE's source is text of our own, and None is the default. A field of a struct is set
by building the struct anew: its other fields keep their old values. Values are cast to the types of their columns; in Spark's ANSI
mode a value that does not fit is an error. Where the types are known that values have by themselves, those are refused that an
INSERT would refuse.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.querytext import RowText
from tablestore.sql.query.rowlevel import RowQuery, TargetTable
from tablestore.sql.query.sparktypes import as_type, cast_text, refusal
from tablestore.sql.source import NOWHERE, Fragment, Path, Span, marked
from tablestore.sql.statements.rows import Assignment
from tablestore.sql.writing.columntext import text_literal
from tablestore.types.datatypes import DataType, Field, RowType

Place = tuple[int, tuple[str, ...]]
"""The place that a value goes to: the number of the clause, the column and the fields inside it."""
GivenTypes = Mapping[Place, DataType | None]
"""The types that values have by themselves, None that of NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A value that a statement gives to a column, or to a field of one: its type there, and its place in the statement."""

    place: Place
    type: DataType
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedValues:
    """A query whose columns are the values that a statement assigns, in the types that they have by themselves."""

    query: RowQuery
    values: tuple[Assigned, ...]

    def checked(self, statement: str, query_types: Sequence[DataType | None]) -> GivenTypes:
        """The types of the query's columns, None that of NULL, by where the values go. Raises InvalidInputError for a value whose
        type its column does not take."""
        for value, value_type in zip(self.values, query_types, strict=True):
            if (wrong := refusal(".".join(value.place[1]), value.type, value_type)) is not None:
                raise InvalidInputError(f"{wrong}\n{marked(statement, value.span)}", kind="columns")
        return {value.place: value_type for value, value_type in zip(self.values, query_types, strict=True)}


@dataclass(frozen=True, slots=True)
class Inside:
    """The values assigned to fields of a struct, by name."""

    fields: Mapping[str, "Value"]


Value = Fragment | str | None | Inside  # text of our own; None: DEFAULT


def column_values(
    statement: str, assignments: Sequence[Assignment], target: TargetTable, named: tuple[str, Path]
) -> dict[str, Value]:
    """The value of each column of the target that is set, by its name in the schema. Raises InvalidInputError for an unknown
    column."""
    values: dict[str, Value] = {}
    for assignment in assignments:
        parts = _without_table(assignment.column, target, named)
        root = RowType(fields=target.fields)
        merged = _put(values, parts, assignment.value, root)
        if isinstance(merged, str):
            raise InvalidInputError(f"{merged}\n{marked(statement, assignment.span)}", kind="columns")
        values = merged
    return values


def leaves(values: Mapping[str, Value], fields: Sequence[Field], outer: Place) -> Iterator[tuple[Assigned, str | Fragment]]:
    """The values assigned to columns, and to fields inside; no defaults."""
    for field in fields:
        place = _field_place(outer, field)
        match values.get(field.name):
            case Inside(fields=inner):
                assert isinstance(field.type, RowType), "only a struct has fields"
                yield from leaves(inner, field.type.fields, place)
            case (Fragment() | str()) as value:
                span = value.span if isinstance(value, Fragment) else NOWHERE
                yield Assigned(place=place, type=field.type, span=span), value


def values_query(
    text: RowText, assigned_values: Sequence[tuple[Assigned, Sequence[str | Fragment]]], tables: Sequence[str | Fragment]
) -> AssignedValues | None:
    """The query of assigned values over ``tables``, which show the rows that the values are computed of; None without values."""
    if not assigned_values:
        return None
    text.add("SELECT ")
    for place, (_, value) in enumerate(assigned_values):
        text.add(", (" if place else "(", *value, f") AS {quote_name(f'_c{place}')}")
    text.add(" FROM ", *tables)
    return AssignedValues(query=RowQuery(text=text.text, pieces=text.pieces), values=tuple(leaf for leaf, _ in assigned_values))


def _without_table(column: tuple[str, ...], target: TargetTable, named: tuple[str, Path]) -> tuple[str, ...]:
    alias, path = named
    folded = [part.casefold() for part in column]
    if folded[0] in {field.name.casefold() for field in target.fields}:
        return column
    for table in ((alias,), *(path.parts[-count:] for count in range(1, len(path.parts) + 1))):
        if len(column) > len(table) and folded[: len(table)] == [part.casefold() for part in table]:
            return column[len(table) :]
    return column


def _put(values: Mapping[str, Value], parts: Sequence[str], value: Value, row: RowType) -> dict[str, Value] | str:
    """The ``values`` with one more; or the reason why it cannot be added."""
    names = [field.name for field in row.fields]
    candidates = [field for field in row.fields if field.name.casefold() == parts[0].casefold()]
    if not candidates:
        return f"there is no column {parts[0]!r} to set{did_you_mean(parts[0], names)}; the columns are {', '.join(names)}"
    field = next((candidate for candidate in candidates if candidate.name == parts[0]), candidates[0])
    earlier_value = values.get(field.name)
    if len(parts) == 1 or not isinstance(field.type, RowType):
        if len(parts) > 1:
            return f"the column {field.name!r} is no struct; it has no field {parts[1]!r} to set"
        if field.name in values:
            return f"the column {field.name!r} is set twice"
        return {**values, field.name: value}
    if field.name in values and not isinstance(earlier_value, Inside):
        return f"the column {field.name!r} is set as a whole, and its field {parts[1]!r} too"
    inner = _put(earlier_value.fields if isinstance(earlier_value, Inside) else {}, parts[1:], value, field.type)
    return inner if isinstance(inner, str) else {**values, field.name: Inside(inner)}


def cast_value(value: Value, old: str, field: Field, types: GivenTypes, place: Place) -> list[str | Fragment]:
    """A value as its column has it. ``place``: where it goes."""
    if isinstance(value, (Fragment, str)):
        cast = as_type("\0", types[place], field.type) if place in types else cast_text("\0", field.type)
        opening, closing = cast.split("\0")
        return [opening or "(", value, closing or ")"]
    if value is None:
        return [_default(field.default_value, field.type)]
    assert isinstance(field.type, RowType), "only a struct has fields"
    parts: list[str | Fragment] = ["named_struct("]
    for number, inner in enumerate(field.type.fields):
        before = f"{old}.{quote_name(inner.name)}"
        parts.append(f"{', ' if number else ''}{text_literal(inner.name)}, ")
        within = value.fields.get(inner.name, before)
        parts += cast_value(within, before, inner, types, _field_place(place, inner)) if inner.name in value.fields else [before]
    return [*parts, ")"]


def _field_place(place: Place, field: Field) -> Place:
    return place[0], (*place[1], field.name)


def _default(text: str | None, data_type: DataType) -> str:
    if text is None or "${" not in text:
        return cast_text("NULL" if text is None else text_literal(text), data_type)
    # It is stored, and Spark would put a variable of the process in the place of ${env:…}.
    parts = text.replace("${", "$\0{").split("\0")
    return cast_text(f"concat({', '.join(map(text_literal, parts))})", data_type)
