"""Reads conditions on the columns of tables from the tree of a query in DuckDB's own words.

    FROM t WHERE day = 'mon' AND f(v)                   t: day = 'mon'
    FROM a JOIN b USING (id) WHERE a.day = 'mon'        a: day = 'mon'

Only what holds for every row that the query uses, and means the same for both: whole numbers with columns of them, texts with
texts, in a WHERE right above the table, or above inner joins where a name has its table in front. DuckDB filters again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore.types.datatypes import MAX_LENGTH, AtomicType, Field, TypeRoot
from tablestore.types.filter.binding import bind_comparison, bind_in
from tablestore.types.filter.predicate import FLIPPED, IsNull, Operator, Predicate, all_of

_OPERATORS: Mapping[str, Operator] = {
    "COMPARE_EQUAL": "=",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_NUMBERS = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConditions:
    """The conditions of a WHERE on one table.

    ``place``: of the table in the text, in bytes; ``alias``: its name; ``is_alone``: no other table is beside it, so that a name
    without a table is that of its column.
    """

    place: int
    alias: str
    is_alone: bool
    conjuncts: tuple[Mapping[str, Any], ...]


def conditions_of(select: Mapping[str, Any], bound: frozenset[str]) -> Iterator[TableConditions]:
    """The conditions of a SELECT on the tables in its FROM. ``bound``: names of WITH, which are no tables."""
    where, source = select.get("where_clause"), select.get("from_table")
    # A sample is taken of the rows before the WHERE.
    if where is None or source is None or "sample" in select:
        return
    tables = list(_inner(source))
    conjuncts = tuple(_conjuncts(where))
    for table in tables:
        path = table["qualified_name"]["path"]
        is_table = len(path) > 1 or path[0].casefold() not in bound
        if is_table and "query_location" in table and "column_name_alias" not in table and "sample" not in table:
            yield TableConditions(
                place=int(table["query_location"]),
                alias=str(table.get("alias") or path[-1]).casefold(),
                is_alone=source is table,
                conjuncts=conjuncts,
            )


def filter_of(conditions: TableConditions, fields: Sequence[Field], *, compares_texts: bool) -> Predicate | None:
    """The conditions that hold on the columns of a table; None if there are none. ``compares_texts``: by their bytes."""
    parts = [_predicate(part, conditions, fields, compares_texts) for part in conditions.conjuncts]
    predicates = [part for part in parts if part is not None]
    return all_of(predicates) if predicates else None


def _inner(source: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The tables of inner joins: a row that one of them lacks is a row that the result lacks."""
    if source.get("type") == "BASE_TABLE":
        yield source
    elif source.get("type") == "JOIN" and source.get("join_type") == "INNER" and source.get("ref_type") in ("REGULAR", "CROSS"):
        yield from _inner(source["left"])
        yield from _inner(source["right"])


def _conjuncts(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if node.get("type") == "CONJUNCTION_AND":
        for child in node["children"]:
            yield from _conjuncts(child)
    else:
        yield node


def _predicate(
    node: Mapping[str, Any], conditions: TableConditions, fields: Sequence[Field], compares_texts: bool
) -> Predicate | None:
    def field_of(part: Mapping[str, Any]) -> Field | None:
        return _field(part, conditions, fields)

    def value_of(part: Mapping[str, Any], field: Field) -> int | str | None:
        return _value(part, field, compares_texts)

    if node.get("class") == "COMPARISON" and (operator := _OPERATORS.get(node["type"])) is not None:
        column, other = node["left"], node["right"]
        if (field := field_of(column)) is None:
            column, other, operator = other, column, FLIPPED[operator]
            field = field_of(column)
        value = None if field is None else value_of(other, field)
        return None if field is None or value is None else bind_comparison(operator, field, value)
    if node.get("type") == "COMPARE_IN":
        column, *others = node["children"]
        field = field_of(column)
        values = [] if field is None else [value_of(other, field) for other in others]
        return None if field is None or not values or None in values else bind_in(field, values)
    if node.get("type") == "COMPARE_BETWEEN" and (field := field_of(node["input"])) is not None:
        lower, upper = value_of(node["lower"], field), value_of(node["upper"], field)
        if lower is not None and upper is not None:
            return all_of([bind_comparison(">=", field, lower), bind_comparison("<=", field, upper)])
    if node.get("type") == "OPERATOR_IS_NULL" and (field := field_of(node["children"][0])) is not None:
        return IsNull(field.name)
    return None


def _field(node: Mapping[str, Any], conditions: TableConditions, fields: Sequence[Field]) -> Field | None:
    """The column that a node is, if it is one of this table."""
    if node.get("class") != "COLUMN_REF":
        return None
    *table, name = (str(part).casefold() for part in node["column_names"])
    if table != [conditions.alias] and not (not table and conditions.is_alone):
        return None
    named = [field for field in fields if field.name.casefold() == name]
    # With a field of a row in a column of the table's name, `t.a` is that field.
    hidden = bool(table) and any(field.name.casefold() == conditions.alias for field in fields)
    return named[0] if len(named) == 1 and not hidden else None


def _value(node: Mapping[str, Any], field: Field, compares_texts: bool) -> int | str | None:
    """The literal that a node is, if it is of the kind of a column."""
    literal = node.get("literal") if node.get("class") == "CONSTANT" else None
    if not isinstance(literal, Mapping) or not isinstance(field.type, AtomicType):
        return None
    kind, text = literal.get("kind"), str(literal.get("text", ""))
    if kind == "INTEGER" and field.type.root in _NUMBERS and text.removeprefix("-").isdecimal() and text.isascii():
        return int(text)
    is_text = field.type.root is TypeRoot.VARCHAR and field.type.length == MAX_LENGTH
    return text if kind == "STRING" and is_text and compares_texts else None
