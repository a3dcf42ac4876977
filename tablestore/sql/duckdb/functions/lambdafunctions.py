"""Writes functions that apply lambdas to the elements of arrays and to the entries of maps.

A variable is bound by a lambda of its own over a list of one value, so that names mean what they mean in the query. Names that are
written here begin with two underscores.
"""

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.signatures import Types, always, as_argument
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    SqlType,
    Type,
    array,
    map_of,
)
from tablestore.sql.duckdb.calls import call, refusal
from tablestore.sql.duckdb.functions.arrayfunctions import common_element, element_of
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, as_type, from_text

_ROW = "__row"


def lambda_at(call: RuleCall, place: int, *counts: int) -> exp.Lambda:
    """An argument that is a lambda of one of some numbers of variables. Raises InvalidInputError for anything else."""
    call.type(place)
    function = call.values[place]
    if not isinstance(function, exp.Lambda) or len(function.expressions) not in counts:
        raise call.mismatch(place, f"a lambda of {' or '.join(map(str, counts))} variables")
    return function


def applied(function: exp.Lambda, *values: exp.Expr) -> exp.Expr:
    """The value of a lambda for values, which name no variable of the query's."""
    substituted = _substituted(function, values)
    if substituted is not None:
        return substituted
    result: exp.Expr = function.this.copy()
    for name, value in reversed(list(zip(function.expressions, values, strict=True))):
        bound = exp.Lambda(this=result, expressions=[name.copy()])
        each = call("LIST_TRANSFORM", exp.Array(expressions=[value.copy()]), bound)
        result = call("LIST_EXTRACT", each, exp.Literal.number(1))
    return result


# In these a name may be another thing than a variable, or another variable.
_OPAQUE = (exp.Dot, exp.Interval, exp.Kwarg, exp.Lambda, exp.PropertyEQ, exp.Query, exp.Struct, exp.Subquery, exp.Window)
_OF_VALUES = (exp.Binary, exp.Between, exp.Case, exp.Func, exp.If, exp.In, exp.Paren, exp.Unary)
_OF_REFERENCES = (exp.Anonymous, exp.Cast, exp.Column, exp.DataType, exp.Identifier, exp.Literal)


def _substituted(function: exp.Lambda, values: tuple[exp.Expr, ...]) -> exp.Expr | None:
    """A lambda's body with values in the places of its variables: None where they are more than parts of rows, or where a name of
    the body might be another one."""
    by_name = {variable.name: value for variable, value in zip(function.expressions, values, strict=True)}
    folded = {name.casefold() for name in by_name}
    if len(folded) < len(values) or any(not isinstance(node, _OF_REFERENCES) for value in values for node in value.walk()):
        return None
    body = exp.Paren(this=function.this.copy())
    references = []
    for node in body.walk():
        if isinstance(node, _OPAQUE):
            return None
        if isinstance(node, exp.Identifier) and node.name.casefold() in folded:
            if node.name not in by_name or not isinstance(node.parent, _OF_VALUES):
                return None
            references.append(node)
    for node in references:
        node.replace(by_name[node.name].copy())
    result: exp.Expr = body.this
    return result if isinstance(result, (exp.Func, exp.Column, exp.Literal)) else body


def part_of_row(name: str) -> exp.Expr:
    """A part of the row that the variable ``__row`` is."""
    return call("STRUCT_EXTRACT", exp.column(_ROW), exp.Literal.string(name))


def each_row(rows: exp.Expr, inside: exp.Expr, function: str = "LIST_TRANSFORM") -> exp.Expr:
    """A value for each of some rows."""
    return call(function, rows, exp.Lambda(this=inside, expressions=[exp.to_identifier(_ROW)]))


def _numbered(array: exp.Expr) -> exp.Expr:
    """The elements of an array as rows with their places, counted from 0."""
    return from_text("LIST_TRANSFORM($0, LAMBDA __value, __at: {'value': __value, 'at': CAST(__at - 1 AS INTEGER)})", array)


def _transformed(call_: RuleCall) -> exp.Expr:
    element_of(call_)
    function = lambda_at(call_, 1, 1, 2)
    if len(function.expressions) == 1:
        return call("LIST_TRANSFORM", call_.value(0), function.copy())
    return each_row(_numbered(call_.value(0)), applied(function, part_of_row("value"), part_of_row("at")))


def _filtered(call_: RuleCall) -> exp.Expr:
    element_of(call_)
    function = lambda_at(call_, 1, 1, 2)
    _check_condition(call_, 1)
    if len(function.expressions) == 1:
        return call("LIST_FILTER", call_.value(0), function.copy())
    rows = each_row(_numbered(call_.value(0)), applied(function, part_of_row("value"), part_of_row("at")), "LIST_FILTER")
    return each_row(rows, part_of_row("value"))


def _check_condition(call: RuleCall, place: int) -> None:
    if call.type(place) not in (BOOLEAN, VOID):
        raise call.mismatch(place, "a lambda that gives a BOOLEAN")


def _quantified(text: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes a function that asks for the conditions of all elements."""

    def write(call_: RuleCall) -> exp.Expr:
        element_of(call_)
        _check_condition(call_, 1)
        conditions = call("LIST_TRANSFORM", call_.value(0), lambda_at(call_, 1, 1).copy())
        return from_text(text, as_type(conditions, array(BOOLEAN)))

    return write


def _elements_and_places(place: int, types: Types) -> Types:
    """The types of the variables of a lambda that takes elements of the first argument, and their places."""
    kind = types[0] if types else None
    return (kind.parts[0] if kind is not None and kind.name == "array" else None, INT)


def _elements_of_both(place: int, types: Types) -> Types:
    return tuple(kind.parts[0] if kind is not None and kind.name == "array" else None for kind in types[:2])


def _zipped(call_: RuleCall) -> exp.Expr:
    element_of(call_), element_of(call_, 1)
    function = lambda_at(call_, 2, 2)
    text = """CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL ELSE LIST_TRANSFORM(RANGE(1, GREATEST(LEN($0), LEN($1)) + 1),
        LAMBDA __at: {'one': LIST_EXTRACT($0, __at), 'other': LIST_EXTRACT($1, __at)}) END"""
    return each_row(call_.text(text, *call_.values[:2]), applied(function, part_of_row("one"), part_of_row("other")))


def _of_reduction(place: int, types: Types) -> Types:
    initial = types[1] if len(types) > 1 else None
    return (initial,) if place == 3 else (initial, *_elements_and_places(place, types)[:1])


def _reduced_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    return types[3] if len(types) > 3 else types[1] if len(types) > 1 else None


def _reduced(call_: RuleCall) -> exp.Expr:
    element, initial = element_of(call_), call_.type(1)
    merge = lambda_at(call_, 2, 2)
    if call_.type(2) != initial or initial == VOID:
        raise call_.refusal(f"whose first value is {initial}, and whose lambda gives {call_.type(2)}")
    start = as_type(call_.value(1), initial)
    if element == initial:
        result: exp.Expr = call("LIST_REDUCE", call_.value(0), merge.copy(), start)
    elif (element, initial) in _WIDENED and (merged := _substituted_value(merge, element)) is not None:
        # Elements of the wider type are those of their own again in the lambda.
        result = call("LIST_REDUCE", as_type(call_.value(0), array(initial)), merged, start)
    else:
        # DuckDB has one type for both: here it is that of rows with a place for each.
        sum_, value = (as_type(exp.null(), kind) for kind in (initial, element))
        rows = from_text(
            "CASE WHEN $0 IS NOT NULL THEN LIST_CONCAT([{'sum': $1, 'value': $3}], "
            "LIST_TRANSFORM($0, LAMBDA __value: {'sum': $2, 'value': __value})) END",
            *(call_.value(0), start, sum_, value),
        )
        parts = (call("STRUCT_EXTRACT", exp.column(row), exp.Literal.string(part)) for row, part in _SIDES)
        row = from_text("{'sum': $0, 'value': $1}", as_type(applied(merge, *parts), initial), value)
        last = call("LIST_REDUCE", rows, exp.Lambda(this=row, expressions=[exp.to_identifier(name) for name, _ in _SIDES]))
        result = call("STRUCT_EXTRACT", last, exp.Literal.string("sum"))
    result = as_type(result, initial)
    return result if len(call_.values) < 4 else applied_to(lambda_at(call_, 3, 1), result, call_.value(0))


# Types of elements and of sums for which each element is also a value of the other type.
_WIDENED = frozenset(
    (one, other)
    for place, one in enumerate((TINYINT, SMALLINT, INT, BIGINT))
    for other in (*(TINYINT, SMALLINT, INT, BIGINT)[place + 1 :], *(DOUBLE,) * (one != BIGINT))
) | {(FLOAT, DOUBLE)}


def _substituted_value(merge: exp.Lambda, element: SqlType) -> exp.Lambda | None:
    """A lambda whose second variable has another type, which is cast to that of elements; None where its names are not plain."""
    total, value = (exp.column(row) for row, _ in _SIDES)
    body = _substituted(merge, (total, as_type(value, element)))
    return None if body is None else exp.Lambda(this=body, expressions=[exp.to_identifier(row) for row, _ in _SIDES])


_SIDES = (("__left", "sum"), ("__right", "value"))


def applied_to(function: exp.Lambda, value: exp.Expr, unless_null: exp.Expr) -> exp.Expr:
    """The value of a lambda for a value, which is computed outside of it; NULL where another value is."""
    is_null = exp.Is(this=unless_null, expression=exp.null())
    return exp.Case(ifs=[exp.If(this=is_null, true=exp.null())], default=applied(function, value))


def _of_comparison(place: int, types: Types) -> Types:
    element = _elements_and_places(place, types)[0]
    return (element, element)


def _sorted(call_: RuleCall) -> exp.Expr:
    """Writes ``array_sort``. By a lambda: the place of an element is the number of those that come before it."""
    element = element_of(call_)
    if len(call_.values) == 1:
        if element.is_nested:
            raise call_.refusal("of nested values, in whose order a NULL is the least")
        return call("LIST_SORT", call_.value(0), exp.Literal.string("ASC"), exp.Literal.string("NULLS LAST"))
    function = lambda_at(call_, 1, 2)
    if call_.type(1) != INT:
        raise call_.refusal(f"by a lambda that gives {call_.type(1)}, and no INT")
    order = _written_order(function) if element.is_integer or element.is_decimal or element in _ORDERED else None
    by_pairs = _sorted_by_pairs(call_, function)
    if order is None:
        return by_pairs
    # A comparison with NULL is none of a written order.
    return from_text(
        f"CASE WHEN $0 IS NULL OR LIST_COUNT($0) = LEN($0) THEN LIST_SORT($0, '{order}') ELSE $1 END", call_.value(0), by_pairs
    )


_ORDERED = (STRING, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ)
# What a comparison of two elements gives where the first is less, where they are equal, and where it is more.
_COMPARISONS: Mapping[type[exp.Expr], tuple[bool, bool, bool]] = {
    exp.LT: (True, False, False), exp.LTE: (True, True, False), exp.GT: (False, False, True), exp.GTE: (False, True, True),
    exp.EQ: (False, True, False), exp.NEQ: (True, False, True),
}  # fmt: skip


def _written_order(function: exp.Lambda) -> str | None:
    """ASC or DESC for a lambda that compares its two variables and gives written numbers in that order; None for another one."""
    names = [variable.name.casefold() for variable in function.expressions]
    signs = [_sign(function.this, names, place) for place in range(3)]
    return {(-1, 0, 1): "ASC", (1, 0, -1): "DESC"}.get(tuple(signs))  # type: ignore[arg-type]


def _sign(node: exp.Expr, names: list[str], place: int) -> int | None:
    """The sign of what a choice of written numbers gives for a place of :data:`_COMPARISONS`; None for another expression."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        sign = _sign(node.this, names, place)
        return None if sign is None else -sign
    if isinstance(node, exp.Literal):
        return int(int(node.name) > 0) if not node.is_string and node.name.isdecimal() else None
    if not isinstance(node, (exp.Case, exp.If)) or (node.this is None and isinstance(node, exp.If)):
        return None
    choices = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    default = node.args.get("default" if isinstance(node, exp.Case) else "false")
    if (isinstance(node, exp.Case) and node.this is not None) or default is None:
        return None
    for choice in choices:
        condition = choice.this.unnest()
        sides = (
            [part.unnest().name.casefold() for part in (condition.this, condition.expression)]
            if isinstance(condition, exp.Binary)
            else []
        )
        if type(condition) not in _COMPARISONS or sides not in (names, names[::-1]):
            return None
        if any(
            not isinstance(part.unnest(), (exp.Column, exp.Identifier)) or part.find(exp.Dot)
            for part in (condition.this, condition.expression)
        ):
            return None
        if _COMPARISONS[type(condition)][place if sides == names else 2 - place]:
            return _sign(choice.args["true"], names, place)
    return _sign(default, names, place)


def _sorted_by_pairs(call_: RuleCall, function: exp.Lambda) -> exp.Expr:
    numbered = "LIST_TRANSFORM($0, LAMBDA __value, __at: {'value': __value, 'at': __at})"
    names = ("__left", "__right")
    left, right = (call("STRUCT_EXTRACT", exp.column(name), exp.Literal.string("value")) for name in names)
    less = from_text(
        "CASE WHEN STRUCT_EXTRACT(__left, 'at') = STRUCT_EXTRACT(__right, 'at') THEN FALSE ELSE "
        "COALESCE($0, ERROR('array_sort: expected a lambda that gives a number for all elements, found NULL')) "
        "< CASE WHEN STRUCT_EXTRACT(__left, 'at') < STRUCT_EXTRACT(__right, 'at') THEN 1 ELSE 0 END END",
        applied(function, left, right),
    )
    before = exp.Lambda(this=less, expressions=[exp.to_identifier(names[0])])
    rows = from_text(numbered, call_.value(0))
    place = call("LEN", call("LIST_FILTER", exp.column("__rows"), before))
    ranked = from_text("{'place': $0, 'value': STRUCT_EXTRACT(__right, 'value')}", place)
    all_ranked = call("LIST_TRANSFORM", exp.column("__rows"), exp.Lambda(this=ranked, expressions=[exp.to_identifier(names[1])]))
    once = exp.Lambda(this=all_ranked, expressions=[exp.to_identifier("__rows")])
    ranks = call("LIST_EXTRACT", call("LIST_TRANSFORM", exp.Array(expressions=[rows]), once), exp.Literal.number(1))
    text = f"""CASE WHEN LEN(LIST_DISTINCT(LIST_TRANSFORM($0, LAMBDA __row: STRUCT_EXTRACT(__row, 'place')))) < LEN($0)
        THEN ERROR('{call_.refusal("by a lambda that contradicts itself")}')
        ELSE LIST_TRANSFORM(LIST_SORT($0), LAMBDA __row: STRUCT_EXTRACT(__row, 'value')) END"""
    return call_.as_result(from_text(text, ranks))


def _entry_types(place: int, types: Types) -> Types:
    kind = types[0] if types else None
    return kind.parts if kind is not None and kind.name == "map" else (None, None)


def map_parts(call: RuleCall, place: int = 0) -> tuple[SqlType, SqlType]:
    """The types of the keys and values of an argument. Raises InvalidInputError if it is no map."""
    kind = call.type(place)
    if kind.name != "map":
        raise call.mismatch(place, "a map")
    key, value = kind.parts
    assert key is not None and value is not None, "the type of an argument is known"
    return key, value


def _entries(call_: RuleCall, inside: Callable[[exp.Lambda], exp.Expr], function: str = "LIST_TRANSFORM") -> exp.Expr:
    """The values that a lambda makes of the entries of a map."""
    map_parts(call_)
    return each_row(call("MAP_ENTRIES", call_.value(0)), inside(lambda_at(call_, 1, 2)), function)


def _of_entry(function: exp.Lambda) -> exp.Expr:
    return applied(function, part_of_row("key"), part_of_row("value"))


def new_map(keys: exp.Expr, values: exp.Expr, key: SqlType) -> exp.Expr:
    """A map of keys and values; NULL where the keys are. The key -0.0 is refused: Spark makes it 0.0 in some functions only."""
    if key.is_float:
        refused = refusal("a map with the key -0.0")
        text = f"CASE WHEN LEN(LIST_FILTER($0, LAMBDA __key: __key = 0 AND SIGNBIT(__key))) > 0 THEN ERROR('{refused}') ELSE $0 END"
        keys = from_text(text, keys)
    return from_text("CASE WHEN $0 IS NOT NULL THEN MAP($0, $1) END", keys, values)


def _transformed_keys(call_: RuleCall) -> exp.Expr:
    map_parts(call_)
    key = call_.type(1)
    if key.is_nested or key == VOID:
        raise call_.refusal(f"whose lambda gives {key}")
    keys = as_type(_entries(call_, _of_entry), array(key))
    return call_.as_result(new_map(keys, call("MAP_VALUES", call_.value(0)), key))


def _transformed_values(call_: RuleCall) -> exp.Expr:
    key, _ = map_parts(call_)
    keys = call("MAP_KEYS", call_.value(0))
    return call_.as_result(new_map(keys, _entries(call_, _of_entry), key))


def _filtered_map(call_: RuleCall) -> exp.Expr:
    _check_condition(call_, 1)
    return call_.as_result(from_text("MAP_FROM_ENTRIES($0)", _entries(call_, _of_entry, "LIST_FILTER")))


def _with_new_keys(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0] if types else None
    return map_of(types[1], kind.parts[1]) if kind is not None and kind.name == "map" and len(types) > 1 else None


def _with_new_values(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0] if types else None
    return map_of(kind.parts[0], types[-1]) if kind is not None and kind.name == "map" and len(types) > 1 else None


def _of_both_maps(place: int, types: Types) -> Types:
    one, other = (kind.parts if kind is not None and kind.name == "map" else (None, None) for kind in types[:2])
    return (common((one[0], other[0])), one[1], other[1])


def _zipped_maps(call_: RuleCall) -> exp.Expr:
    (key, _), (other_key, _) = map_parts(call_), map_parts(call_, 1)
    if common_element(call_, key, other_key) != key or key != other_key or key.is_nested:
        raise call_.refusal("of maps with other keys")
    function = lambda_at(call_, 2, 3)
    rows = call_.text(
        """CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL ELSE LIST_TRANSFORM(
            LIST_CONCAT(MAP_KEYS($0), LIST_FILTER(MAP_KEYS($1), LAMBDA __key: LIST_POSITION(MAP_KEYS($0), __key) IS NULL)),
            LAMBDA __key: {'key': __key, 'one': MAP_EXTRACT_VALUE($0, __key), 'other': MAP_EXTRACT_VALUE($1, __key)}) END""",
        *call_.values[:2],
    )
    value = applied(function, *(part_of_row(name) for name in ("key", "one", "other")))
    entries = each_row(rows, from_text("{'key': STRUCT_EXTRACT(__row, 'key'), 'value': $0}", value))
    return call_.as_result(from_text("MAP_FROM_ENTRIES($0)", entries))


def _array_of_lambda(types: Types, values: Sequence[exp.Expr]) -> Type:
    return array(types[-1]) if len(types) > 1 else None


_ANY = """CASE WHEN $0 IS NULL THEN NULL WHEN LIST_CONTAINS($0, TRUE) THEN TRUE WHEN LEN($0) > LIST_COUNT($0) THEN NULL
    ELSE FALSE END"""
_ALL = """CASE WHEN $0 IS NULL THEN NULL WHEN LIST_CONTAINS($0, FALSE) THEN FALSE WHEN LEN($0) > LIST_COUNT($0) THEN NULL
    ELSE TRUE END"""
RULES = (
    FunctionRule(name="transform", bounds=(2, 2), result=_array_of_lambda, write=_transformed, variables=_elements_and_places),
    FunctionRule(name="filter", bounds=(2, 2), result=as_argument(), write=_filtered, variables=_elements_and_places),
    FunctionRule(name="exists", bounds=(1, 2), result=always(BOOLEAN), write=_quantified(_ANY), variables=_elements_and_places),
    FunctionRule(name="forall", bounds=(2, 2), result=always(BOOLEAN), write=_quantified(_ALL), variables=_elements_and_places),
    FunctionRule(name="zip_with", bounds=(3, 3), result=_array_of_lambda, write=_zipped, variables=_elements_of_both),
    FunctionRule(
        name="aggregate", bounds=(3, 4), result=_reduced_type, write=_reduced, aliases=("reduce",), variables=_of_reduction
    ),
    FunctionRule(name="array_sort", bounds=(1, 2), result=as_argument(), write=_sorted, variables=_of_comparison),
    FunctionRule(name="transform_keys", bounds=(2, 2), result=_with_new_keys, write=_transformed_keys, variables=_entry_types),
    FunctionRule(
        name="transform_values", bounds=(2, 2), result=_with_new_values, write=_transformed_values, variables=_entry_types
    ),
    FunctionRule(name="map_filter", bounds=(2, 2), result=as_argument(), write=_filtered_map, variables=_entry_types),
    FunctionRule(name="map_zip_with", bounds=(3, 3), result=_with_new_values, write=_zipped_maps, variables=_of_both_maps),
)
