"""Writes functions that give rows: each as lists of one length, one a column, of which the query around it makes rows."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.scopes import Columns
from tablestore.sql.binding.signatures import Types
from tablestore.sql.binding.sqltypes import INT, STRING, VOID, Type, array
from tablestore.sql.duckdb.calls import refused_where
from tablestore.sql.duckdb.functions.arrayfunctions import common_element, element_of
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall, as_type, converted, from_text
from tablestore.sql.duckdb.generatedrows import generated

_OUTER = "CASE WHEN LEN($0) > 0 THEN {} ELSE [NULL] END"
# DuckDB takes a list out of written ones for less than it counts one.
_WRITTEN_PLACES = 16
_PLACES = f"""COALESCE(
    LIST_EXTRACT([[NULL], {", ".join(str(list(range(length))) for length in range(1, _WRITTEN_PLACES + 1))}], LEN($0) + 1),
    {_OUTER.format("CAST(RANGE(LEN($0)) AS INTEGER[])")}
)"""


def _no_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    return None


def _exploded_columns(names: tuple[str, ...]) -> Callable[[Types, Sequence[exp.Expr]], "Columns | None"]:
    def columns(types: Types, values: Sequence[exp.Expr]) -> Columns | None:
        kind = types[0] if types else None
        if kind is None or kind.name not in ("array", "map"):
            return None
        places = [(name, INT) for name in names]
        if kind.name == "map":
            return [*places, *zip(("key", "value"), kind.parts, strict=True)]
        return [*places, ("col", kind.parts[0])]

    return columns


def _exploded(*, has_place: bool) -> Callable[[RuleCall], exp.Expr]:
    """Writes ``explode_outer`` and ``posexplode_outer``: a row of NULLs instead of none."""

    def write(call: RuleCall) -> exp.Expr:
        kind, value = call.type(0), call.value(0)
        if kind.name == "map":
            lists = [("key", from_text("MAP_KEYS($0)", value)), ("value", from_text("MAP_VALUES($0)", value))]
        else:
            element_of(call)
            lists = [("col", value)]
        first = lists[0][1]
        columns = [(name, from_text(_OUTER.format("$1"), first.copy(), one)) for name, one in lists]
        places = [("pos", from_text(_PLACES, first))] if has_place else []
        return generated([*places, *columns])

    return write


def _row_columns(types: Types, values: Sequence[exp.Expr]) -> Columns | None:
    kind = types[0] if types else None
    row = kind.parts[0] if kind is not None and kind.name == "array" else None
    return list(zip(row.fields, row.parts, strict=True)) if row is not None and row.name == "struct" else None


def _inlined(*, is_outer: bool) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        row = element_of(call)
        if row.name != "struct":
            raise call.mismatch(0, "an array of rows")
        rows = call.value(0)
        text = "LIST_TRANSFORM($0, LAMBDA _row: STRUCT_EXTRACT(_row, $1))"
        lists = [(name, from_text(text, rows, exp.Literal.string(name))) for name in row.fields]
        return generated([(name, from_text(_OUTER.format("$1"), rows.copy(), one) if is_outer else one) for name, one in lists])

    return write


def _stacked_columns(types: Types, values: Sequence[exp.Expr]) -> Columns | None:
    rows = _written_count(values)
    if rows is None:
        return None
    width = -(-(len(types) - 1) // rows)
    return [(f"col{place}", common(types[1 + place :: width])) for place in range(width)]


def _written_count(values: Sequence[exp.Expr]) -> int | None:
    first = values[0] if values else None
    return int(first.name) if isinstance(first, exp.Literal) and first.name.isdecimal() and int(first.name) > 0 else None


def _stacked(call: RuleCall) -> exp.Expr:
    rows = _written_count(call.values)
    if rows is None:
        raise call.refusal("of a number of rows that is computed or not positive")
    width = -(-(len(call.values) - 1) // rows)
    lists = []
    for column in range(width):
        places = range(1 + column, len(call.values), width)
        kind = common_element(call, *(call.type(place) for place in places))
        values = [converted(call.value(place), call.type(place), kind) for place in places]
        values += [exp.null() for _ in range(rows - len(values))]
        lists.append((f"col{column}", as_type(exp.Array(expressions=values), array(kind))))
    return generated(lists)


def _tuple_columns(types: Types, values: Sequence[exp.Expr]) -> Columns | None:
    return [(f"c{place}", STRING) for place in range(len(types) - 1)]


def _json_tuple(call: RuleCall) -> exp.Expr:
    text = call.value(0)
    if call.type(0) not in (STRING, VOID):
        raise call.mismatch(0, "a text")
    names = call.values[1:]
    if any(
        not isinstance(name, exp.Literal) or not name.is_string or any(char in name.name for char in "\"\\*'") for name in names
    ):
        raise call.refusal("of a name that is computed, or has quotes")
    paths = exp.Array(expressions=[exp.Literal.string(f'$."{name.name}"') for name in names])
    # Of all names at once: DuckDB computes what is the same in all columns once.
    values = from_text("CASE WHEN JSON_VALID($0) THEN JSON_EXTRACT_STRING($0, $1) END", text, paths)
    begins = from_text("REGEXP_MATCHES($0, '^\\s*[\\[{]')", text)
    misfit = refused_where(begins, "json_tuple of JSON that is not well-formed", exp.null())
    lists = []
    for place, name in enumerate(names):
        # A name that stands twice is written twice, unless with escapes.
        repeated = from_text(
            """(CONTAINS(SUBSTRING($0, INSTR($0, $2) + 1), $2) OR CONTAINS($0, CHR(92)))
            AND LEN(LIST_FILTER(JSON_KEYS($0), LAMBDA _key: _key = $1)) > 1""",
            text,
            name.copy(),
            exp.Literal.string(f'"{name.name}"'),
        )
        value = from_text(f"LIST_EXTRACT($0, {place + 1})", values)
        value = refused_where(repeated, "json_tuple of JSON in which a name stands twice", value)
        value = exp.Case(ifs=[exp.If(this=exp.Is(this=values.copy(), expression=exp.null()), true=misfit.copy())], default=value)
        lists.append((f"c{place}", exp.Array(expressions=[value])))
    return generated(lists)


RULES = (
    FunctionRule(
        name="explode_outer", bounds=(1, 1), result=_no_type, columns=_exploded_columns(()), write=_exploded(has_place=False)
    ),
    FunctionRule(
        name="posexplode_outer",
        bounds=(1, 1),
        result=_no_type,
        columns=_exploded_columns(("pos",)),
        write=_exploded(has_place=True),
    ),
    FunctionRule(name="inline", bounds=(1, 1), result=_no_type, columns=_row_columns, write=_inlined(is_outer=False)),
    FunctionRule(name="inline_outer", bounds=(1, 1), result=_no_type, columns=_row_columns, write=_inlined(is_outer=True)),
    FunctionRule(name="stack", bounds=(2, MANY), result=_no_type, columns=_stacked_columns, write=_stacked),
    FunctionRule(name="json_tuple", bounds=(2, MANY), result=_no_type, columns=_tuple_columns, write=_json_tuple),
)
