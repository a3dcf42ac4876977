"""Writes functions of arrays with Spark's meaning.

Equal are values that ``=`` finds equal, two NULLs, and two NaN; of equal ones the first stays. NULL for an array gives NULL.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.signatures import Types, always, as_argument
from tablestore.sql.binding.sqltypes import BIGINT, BOOLEAN, DATE, INT, INTERVAL, STRING, VOID, SqlType, Type, array, struct_of
from tablestore.sql.duckdb.calls import call, refused_where
from tablestore.sql.duckdb.floats import has_zeros, without_signs
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall, converted, from_text
from tablestore.sql.duckdb.functions.momentsequences import MOMENTS, moment_sequence

_DISTINCT = "LIST_FILTER($0, LAMBDA _value, _at: LIST_POSITION($0, _value) = _at)"
# Longer ones than these Spark refuses by a limit of its own.
_LONGEST = 10_000_000


def element_of(call: RuleCall, place: int = 0) -> SqlType:
    """The type of the elements of an argument. Raises InvalidInputError if it is no array."""
    kind = call.type(place)
    if kind.name != "array":
        raise call.mismatch(place, "an array")
    element = kind.parts[0]
    assert element is not None, "the type of an argument is known"
    return element


def common_element(call: RuleCall, *types: Type) -> SqlType:
    """The type of values that stand in one array. Raises UnsupportedError where Spark casts texts, or finds none."""
    kinds = {kind for kind in types if kind != VOID}
    element = common(types)
    if element is None or (STRING in kinds and len(kinds) > 1):
        raise call.refusal(f"of {' and '.join(sorted(map(str, kinds)))}")
    return element


def _with_another(call: RuleCall, element: SqlType, value: SqlType) -> SqlType:
    """The type of the elements of an array that gets another one. Spark takes decimals of the same digits only."""
    if element != value and VOID not in (element, value) and (element.is_decimal or value.is_decimal):
        raise call.refusal(f"of {element} and {value}")
    return common_element(call, element, value)


def _array_with_value(types: Types, values: Sequence[exp.Expr]) -> Type:
    """The type of an array that gets another element, the last argument."""
    if len(types) < 2 or types[0] is None or types[0].name != "array":
        return None
    return array(common((types[0].parts[0], types[-1])))


def _both_arrays(types: Types, values: Sequence[exp.Expr]) -> Type:
    return common(types)


def _of_element(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0] if types else None
    return kind.parts[0] if kind is not None and kind.name == "array" else None


def _one(text: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes a function of one array."""

    def write(call: RuleCall) -> exp.Expr:
        element_of(call)
        return call.text(text)

    return write


def _without_signs(value: exp.Expr, kind: SqlType) -> exp.Expr:
    """An array, with 0.0 for each -0.0 in it."""
    return without_signs(value, kind) if has_zeros(kind) else value


def _compared(call: RuleCall, place: int = 0) -> SqlType:
    """The type of elements that are compared. Raises InvalidInputError for maps, which Spark does not compare."""
    element = element_of(call, place)
    if _has_map(element):
        raise call.mismatch(place, "an array of values that can be compared")
    return element


def _has_map(kind: SqlType) -> bool:
    return kind.name == "map" or any(part is not None and _has_map(part) for part in kind.parts)


def _distinct(call: RuleCall) -> exp.Expr:
    _compared(call)
    return call.text(_DISTINCT, _without_signs(call.value(0), call.type(0)))


def _extreme(name: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes ``array_max`` and ``array_min``. Of -0.0 and 0.0 they give the first one."""

    def write(call_: RuleCall) -> exp.Expr:
        element = element_of(call_)
        if element.is_nested:
            raise call_.refusal("of nested values, in whose order a NULL is the least")
        if not element.is_float:
            return call(name, call_.value(0))
        return call_.text(f"CASE WHEN {name}($0) = 0 THEN LIST_EXTRACT($0, LIST_POSITION($0, 0)) ELSE {name}($0) END")

    return write


def _with_value(text: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes a function of an array and of a value that becomes an element of it."""

    def write(call: RuleCall) -> exp.Expr:
        kind = array(_with_another(call, element_of(call), call.type(1)))
        value = converted(call.value(1), call.type(1), kind.parts[0] or VOID)
        return call.as_result(call.text(text, call.value(0, kind), value))

    return write


def _of_two(text: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes a function of two arrays, whose elements get one type."""

    def write(call: RuleCall) -> exp.Expr:
        kind = array(common_element(call, _compared(call), _compared(call, 1)))
        return call.text(text, *(_without_signs(call.value(place, kind), kind) for place in (0, 1)))

    return write


def _sought(text: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes a function that looks for a value in an array."""

    def write(call: RuleCall) -> exp.Expr:
        if call.type(1) == VOID:
            raise call.refusal("of a NULL that is written")
        element = common_element(call, _compared(call), call.type(1))
        return call.text(text, call.value(0, array(element)), call.value(1, element))

    return write


def _insert(call: RuleCall) -> exp.Expr:
    kind = array(_with_another(call, element_of(call), call.type(2)))
    value = converted(call.value(2), call.type(2), kind.parts[0] or VOID)
    text = f"""CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL
        WHEN $1 = 0 THEN ERROR('array_insert counts from 1, or from -1 at the end: expected another place than 0')
        WHEN ABS($1) > {_LONGEST} THEN ERROR('{call.refusal(f"at a place beyond {_LONGEST}")}')
        WHEN $1 > 0 THEN LIST_CONCAT(LIST_RESIZE(LIST_SLICE($0, 1, $1 - 1), $1 - 1), [$2], LIST_SLICE($0, $1, LEN($0)))
        WHEN LEN($0) + $1 + 1 >= 0 THEN LIST_CONCAT(
            LIST_SLICE($0, 1, LEN($0) + $1 + 1), [$2], LIST_SLICE($0, LEN($0) + $1 + 2, LEN($0)))
        ELSE LIST_CONCAT([$2], LIST_RESIZE(LIST_SLICE($0, 1, 0), -(LEN($0) + $1 + 1)), $0) END"""
    return call.as_result(from_text(text, call.value(0, kind), call.value(1, BIGINT), value))


def _repeated(call_: RuleCall) -> exp.Expr:
    if not call_.type(1).is_integer and call_.type(1) != VOID:
        raise call_.mismatch(1, "a whole number")
    count, element = call_.value(1, INT), call_.type(0)
    text = "CASE WHEN $1 IS NOT NULL THEN LIST_RESIZE(LIST_SLICE([$0], 1, 0), GREATEST($1, 0), $0) END"
    repeated = call_.as_result(from_text(text, call_.value(0, element), count))
    is_long = exp.GT(this=exp.paren(count.copy()), expression=exp.Literal.number(_LONGEST))
    return repeated if isinstance(count, exp.Literal) else refused_where(is_long, f"array_repeat of more than {_LONGEST}", repeated)


def _slice(call: RuleCall) -> exp.Expr:
    element_of(call)
    text = """CASE WHEN $0 IS NULL OR $1 IS NULL OR $2 IS NULL THEN NULL
        WHEN $1 = 0 THEN ERROR('slice counts from 1, or from -1 at the end: expected another place than 0')
        WHEN $2 < 0 THEN ERROR('slice: expected a length from 0')
        WHEN $1 > 0 THEN LIST_SLICE($0, $1, $1 + $2 - 1)
        WHEN LEN($0) + $1 < 0 THEN LIST_SLICE($0, 1, 0)
        ELSE LIST_SLICE($0, LEN($0) + $1 + 1, LEN($0) + $1 + $2) END"""
    return from_text(text, call.value(0), call.value(1, BIGINT), call.value(2, BIGINT))


def _zipped_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    elements = [kind.parts[0] if kind is not None and kind.name == "array" else None for kind in types]
    names = tuple(_field_name(value, place) for place, value in enumerate(values))
    return array(struct_of(names, tuple(elements)))


def _field_name(value: exp.Expr, place: int) -> str:
    inner = value.expression if isinstance(value, exp.Dot) else value
    return inner.name if isinstance(inner, (exp.Column, exp.Identifier)) else str(place)


def _zipped(call: RuleCall) -> exp.Expr:
    for place in range(len(call.values)):
        element_of(call, place)
    names = [f"$f{place}" for place in range(len(call.values))]
    places = [f"${place}" for place in range(len(call.values))]
    fields = ", ".join(f"'{name[1:]}': LIST_EXTRACT({place}, _at)" for name, place in zip(names, places, strict=True))
    longest = ", ".join(f"LEN({place})" for place in places)
    nulls = " OR ".join(f"{place} IS NULL" for place in places)
    text = f"""CASE WHEN {nulls} THEN NULL
        ELSE LIST_TRANSFORM(RANGE(1, GREATEST({longest}) + 1), LAMBDA _at: {{{fields}}}) END"""
    result = call.result
    if result is None or not result.is_known or result.parts[0] is None:
        raise call.refusal("of values whose types are not known")
    if len({name.casefold() for name in result.parts[0].fields}) < len(names):
        raise call.refusal("of columns of one name")
    return _named_rows(call.text(text), result)


def _named_rows(rows: exp.Expr, kind: SqlType) -> exp.Expr:
    """Rows whose parts get the names of a type, by their places."""
    row = kind.parts[0]
    assert row is not None, "the type is known"
    fields = [
        exp.PropertyEQ(
            this=exp.to_identifier(name, quoted=True),
            expression=call("STRUCT_EXTRACT", exp.column("_row"), exp.Literal.string(f"f{place}")),
        )
        for place, name in enumerate(row.fields)
    ]
    return call("LIST_TRANSFORM", rows, exp.Lambda(this=exp.Struct(expressions=fields), expressions=[exp.to_identifier("_row")]))


def _element_at(*, is_try: bool) -> Callable[[RuleCall], exp.Expr]:
    def write(call_: RuleCall) -> exp.Expr:
        kind = call_.type(0)
        if kind.name == "map":
            return key_value(call_)
        element_of(call_)
        if not call_.type(1).is_integer:
            raise call_.refusal(f"of a place that is a {call_.type(1)}")
        shown = call_.own_text
        behind, null = (
            ("NULL", "NULL")
            if is_try
            else (
                f"ERROR('expected an array of ' || ABS($1) || ' elements or more, found fewer (try_element_at gives NULL){shown}')",
                f"ERROR('{call_.refusal('of a place that is NULL')}')",
            )
        )
        message = "element_at counts from 1, or from -1 at the end: expected another place than 0"
        index = call_.values[1]
        if isinstance(index, exp.Literal) and index.name == "0":
            raise InvalidInputError(message, kind="query")
        text = f"""CASE WHEN $0 IS NULL THEN NULL WHEN $1 IS NULL THEN {null} WHEN $1 = 0 THEN ERROR('{message}{shown}')
            WHEN ABS($1) > LEN($0) THEN {behind} ELSE LIST_EXTRACT($0, $1) END"""
        return from_text(text, call_.value(0), call_.value(1, BIGINT))

    return write


def key_value(call: RuleCall) -> exp.Expr:
    """The value of a key of a map; NULL where it has none."""
    key = call.type(0).parts[0]
    assert key is not None, "the type of an argument is known"
    if call.type(1) == VOID or key.is_nested or common_element(call, key, call.type(1)) != key:
        raise call.refusal("of a key of another type than those of the map")
    return from_text("MAP_EXTRACT_VALUE($0, $1)", call.value(0), call.value(1, key))


def _element_or_value(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0] if types else None
    return kind.parts[-1] if kind is not None and kind.name in ("array", "map") else None


def _get(call: RuleCall) -> exp.Expr:
    element_of(call)
    if not call.type(1).is_integer:
        raise call.refusal(f"at a place that is a {call.type(1)}")
    return from_text("CASE WHEN $1 >= 0 THEN LIST_EXTRACT($0, $1 + 1) END", call.value(0), call.value(1, BIGINT))


def _sequence_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    ends = common(types[:2])
    if ends in MOMENTS and all(kind in MOMENTS for kind in types[:2]) and (len(types) < 3 or types[2] == INTERVAL):
        return array(ends)
    kind = common(types)
    return array(kind) if kind is not None and kind.is_integer else None


def _sequence(call_: RuleCall) -> exp.Expr:
    ends = call_.result.parts[0] if call_.result is not None and call_.result.parts else None
    if ends in MOMENTS and (ends != DATE or len(call_.values) > 2):
        assert ends is not None, "the call has a type"
        return call_.as_result(moment_sequence(call_, ends))
    if ends == DATE:
        text = """CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL ELSE LIST_TRANSFORM(
            GENERATE_SERIES(0, $1 - $0, CASE WHEN $0 <= $1 THEN 1 ELSE -1 END), LAMBDA _day: $0 + CAST(_day AS INTEGER)) END"""
        return call_.as_result(call_.text(text))
    kinds = [call_.type(place) for place in range(len(call_.values))]
    if not all(kind.is_integer for kind in kinds):
        raise call_.refusal("of other values than whole numbers, dates and timestamps")
    first, last = (call_.value(place, BIGINT) for place in (0, 1))
    if len(kinds) == 2:
        text = (
            "CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL ELSE GENERATE_SERIES($0, $1, CASE WHEN $0 <= $1 THEN 1 ELSE -1 END) END"
        )
        return call_.as_result(_bounded(call_, from_text(text, first, last)))
    text = """CASE WHEN $0 IS NULL OR $1 IS NULL OR $2 IS NULL THEN NULL
        WHEN $0 = $1 AND $2 = 0 THEN [$0]
        WHEN $2 = 0 OR ($2 > 0 AND $0 > $1) OR ($2 < 0 AND $0 < $1)
            THEN ERROR('sequence: expected a step from the first end to the last')
        ELSE GENERATE_SERIES($0, $1, $2) END"""
    return call_.as_result(_bounded(call_, from_text(text, first, last, call_.value(2, BIGINT))))


def _bounded(call_: RuleCall, sequence: exp.Expr) -> exp.Expr:
    """A sequence that is refused where it is longer than Spark makes one, before it is made."""
    ends = [exp.paren(exp.cast(call_.value(place, BIGINT), "DOUBLE")) for place in (0, 1)]
    span = exp.Abs(this=exp.Sub(this=ends[0], expression=ends[1]))
    steps = exp.Abs(this=exp.cast(call_.value(2, BIGINT), "DOUBLE")) if len(call_.values) > 2 else exp.Literal.number(1)
    is_long = exp.GT(this=span, expression=exp.Mul(this=steps, expression=exp.Literal.number(_LONGEST)))
    return refused_where(is_long, f"a sequence of more than {_LONGEST} numbers", sequence)


def _shuffled(call: RuleCall) -> exp.Expr:
    element_of(call)
    rows = "LIST_SORT(LIST_TRANSFORM($0, LAMBDA _value: {'place': RANDOM(), 'value': _value}))"
    return call.text(f"LIST_TRANSFORM({rows}, LAMBDA _row: STRUCT_EXTRACT(_row, 'value'))")


_NULL = "CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL ELSE {} END"
_HAS_BOTH = "LEN(LIST_FILTER($0, LAMBDA _value: _value IS NOT NULL AND LIST_POSITION($1, _value) IS NOT NULL)) > 0"
_HAS_NULL = "LEN($0) > 0 AND LEN($1) > 0 AND (LEN($0) > LIST_COUNT($0) OR LEN($1) > LIST_COUNT($1))"
_UNION = "LIST_CONCAT($0, $1)"
RULES = (
    FunctionRule(
        name="array_compact", bounds=(1, 1), result=as_argument(), write=_one("LIST_FILTER($0, LAMBDA _value: _value IS NOT NULL)")
    ),
    FunctionRule(name="array_distinct", bounds=(1, 1), result=as_argument(), write=_distinct),
    FunctionRule(name="array_max", bounds=(1, 1), result=_of_element, write=_extreme("LIST_MAX")),
    FunctionRule(name="array_min", bounds=(1, 1), result=_of_element, write=_extreme("LIST_MIN")),
    FunctionRule(
        name="array_append",
        bounds=(2, 2),
        result=_array_with_value,
        write=_with_value("CASE WHEN $0 IS NOT NULL THEN LIST_CONCAT($0, [$1]) END"),
    ),
    FunctionRule(
        name="array_prepend",
        bounds=(2, 2),
        result=_array_with_value,
        write=_with_value("CASE WHEN $0 IS NOT NULL THEN LIST_CONCAT([$1], $0) END"),
    ),
    FunctionRule(name="array_insert", bounds=(3, 3), result=_array_with_value, write=_insert),
    FunctionRule(
        name="array_union",
        bounds=(2, 2),
        result=_both_arrays,
        write=_of_two(
            _NULL.format(
                f"LIST_FILTER({_UNION}, LAMBDA _value, _at: CASE WHEN _at <= LEN($0) THEN LIST_POSITION($0, _value) = _at "
                "ELSE LIST_POSITION($0, _value) IS NULL AND LIST_POSITION($1, _value) = _at - LEN($0) END)"
            )
        ),
    ),
    FunctionRule(
        name="array_except",
        bounds=(2, 2),
        result=_both_arrays,
        write=_of_two(
            _NULL.format(
                "LIST_FILTER($0, LAMBDA _value, _at: LIST_POSITION($0, _value) = _at AND LIST_POSITION($1, _value) IS NULL)"
            )
        ),
    ),
    FunctionRule(
        name="array_intersect",
        bounds=(2, 2),
        result=_both_arrays,
        write=_of_two(
            _NULL.format(
                "LIST_FILTER($0, LAMBDA _value, _at: LIST_POSITION($0, _value) = _at AND LIST_POSITION($1, _value) IS NOT NULL)"
            )
        ),
    ),
    FunctionRule(
        name="arrays_overlap",
        bounds=(2, 2),
        result=always(BOOLEAN),
        write=_of_two(_NULL.format(f"CASE WHEN {_HAS_BOTH} THEN TRUE WHEN {_HAS_NULL} THEN NULL ELSE FALSE END")),
    ),
    FunctionRule(
        name="array_contains",
        bounds=(2, 2),
        result=always(BOOLEAN),
        write=_sought(
            _NULL.format("CASE WHEN LIST_POSITION($0, $1) IS NOT NULL THEN TRUE WHEN LEN($0) = LIST_COUNT($0) THEN FALSE END")
        ),
    ),
    FunctionRule(
        name="array_position",
        bounds=(2, 2),
        result=always(BIGINT),
        write=_sought(_NULL.format("CAST(COALESCE(LIST_POSITION($0, $1), 0) AS BIGINT)")),
    ),
    FunctionRule(
        name="array_remove",
        bounds=(2, 2),
        result=_array_with_value,
        write=_sought(_NULL.format("LIST_FILTER($0, LAMBDA _value: CASE WHEN _value = $1 THEN FALSE ELSE TRUE END)")),
    ),
    FunctionRule(
        name="array_repeat", bounds=(2, 2), result=lambda types, values: array(types[0] if types else None), write=_repeated
    ),
    FunctionRule(name="arrays_zip", bounds=(1, MANY), result=_zipped_type, write=_zipped),
    FunctionRule(name="slice", bounds=(3, 3), result=as_argument(), write=_slice),
    FunctionRule(name="element_at", bounds=(2, 2), result=_element_or_value, write=_element_at(is_try=False)),
    FunctionRule(name="try_element_at", bounds=(2, 2), result=_element_or_value, write=_element_at(is_try=True)),
    FunctionRule(name="get", bounds=(2, 2), result=_of_element, write=_get),
    FunctionRule(name="sequence", bounds=(2, 3), result=_sequence_type, write=_sequence),
    FunctionRule(name="shuffle", bounds=(1, 1), result=as_argument(), write=_shuffled),
)
