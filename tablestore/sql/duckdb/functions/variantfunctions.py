"""Writes functions of VARIANT, whose values have Spark's binary form here too: a row of ``value`` and ``metadata``.

They run over columns as Arrow functions, each other value once. A function of what `parse_json` gives is one over the texts, which
reads them by their shapes (:mod:`variantshapes`) and makes no binary form that nobody sees. A VARIANT that is NULL cannot be a
column of a result, as on Spark.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.scopes import Columns
from tablestore.sql.binding.signatures import Types, always
from tablestore.sql.binding.sqltypes import BIGINT, BOOLEAN, DOUBLE, INT, STRING, VARIANT, VOID, SqlType, Type, array, struct
from tablestore.sql.duckdb.calls import refusal, refused_where
from tablestore.sql.duckdb.functions import variantarrays, variantformat
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall, as_type, converted, from_text
from tablestore.sql.duckdb.functions.jsonfunctions import json_text
from tablestore.sql.duckdb.functions.rowchunks import Chunk, put_together
from tablestore.sql.duckdb.functions.variantcolumns import each, values_of
from tablestore.sql.duckdb.functions.variantformat import Variant
from tablestore.sql.duckdb.functions.variantshapes import Decimals, Shape, Texts, Wholes, encoded, encoded_parts, shapes_of
from tablestore.sql.duckdb.generatedrows import generated_fields

_ARROW = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
_PART = struct(pos=INT, key=STRING, value=VARIANT)
_STEP = re.compile(r"\.([^.\[\]'\"*]+)|\[(\d{1,6})\]")
_DIGITS = re.compile(r"[+-]?\d{1,19}")
_NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?")
_WORDLESS = re.compile(r"[A-Za-z]+( [A-Za-z]+)*")
_NO_NUMBERS = {"nan", "infinity", "inf"}
_BOOLEANS = {"true": True, "false": False}
Path: TypeAlias = "list[str | int]"


def parse_path(text: str) -> Path:
    """The steps of a path. Raises UnsupportedError for one that is not of names and numbers behind a $."""
    steps: Path = []
    at = 1
    while text.startswith("$") and at < len(text) and (match := _STEP.match(text, at)) is not None:
        steps.append(match[1] if match[1] is not None else int(match[2]))
        at = match.end()
    if not text.startswith("$") or at < len(text):
        raise refusal(f"a function of a VARIANT by the path {text[:40]!r}")
    return steps


def _parsed(text: str) -> Variant:
    return variantformat.encode(variantformat.parse(text))


def _parsed_or_null(text: str) -> Variant | None:
    try:
        return _parsed(text)
    except InvalidInputError:
        return None


_VARIES = object()
# The rows of a shape, and the values of a function for some of them. The other rows are computed one by one.
_Chunks: TypeAlias = "Iterator[Chunk]"
_ByShape: TypeAlias = "Callable[..., _Chunks]"


def _by_shapes(by_shape: _ByShape, call: Callable[..., Any], result: pa.DataType) -> Callable[..., pa.Array]:
    """A function over JSON texts. ``by_shape`` takes the rows of a shape, ``call`` one text; both take further constants."""
    one_by_one = each(call, result)

    def over_columns(texts: pa.Array, *rest: pa.Array) -> pa.Array:
        constants = [_constant(column) for column in rest]
        shapes = [] if any(one is _VARIES for one in constants) else shapes_of(texts)
        chunks = (chunk for shape in shapes for chunk in by_shape(shape, *constants))
        return put_together(len(texts), result, chunks, lambda rows: one_by_one(*(column.take(rows) for column in (texts, *rest))))

    return over_columns


def _constant(column: pa.Array) -> Any:
    """The value of all rows."""
    parts = column.flatten() if pa.types.is_struct(column.type) else [column]
    is_one = all(len(part.unique()) == 1 for part in parts)
    return values_of(column[:1])[0] if is_one else _VARIES


class _NoPartError(Exception):
    """Signals a part that is not there."""


def _part(variant: Variant, path: str) -> Variant | None:
    try:
        return variantformat.encode(_reached(variantformat.decode(variant), parse_path(path)))
    except _NoPartError:
        return None


def _reached(value: Any, steps: Path) -> Any:
    for step in steps:
        is_there = step in value if isinstance(step, str) and isinstance(value, dict) else _has_place(value, step)
        if not is_there:
            raise _NoPartError
        value = value[step]
    return value


def _has_place(value: Any, step: str | int) -> bool:
    return isinstance(step, int) and isinstance(value, list) and step < len(value)


def _cast(to: Callable[[Any], Any]) -> Callable[[Variant, str, bool], Any]:
    """A part of a variant as a value of a type. What it cannot be is NULL, or an error unless it is tried."""

    def cast(variant: Variant, path: str, is_try: bool) -> Any:
        try:
            value = _reached(variantformat.decode(variant), parse_path(path))
        except _NoPartError:
            return None
        try:
            return None if value is None else to(value)
        except ValueError as error:
            if is_try:
                return None
            raise InvalidInputError(f"variant_get: the value {str(value)[:40]!r} cannot be cast", kind="query") from error

    return cast


def _to_bigint(value: Any) -> int:
    match value:
        case bool() | int():
            number = int(value)
        case Decimal():
            number = int(value)
        case float() if abs(value) < 2**53:
            number = int(value)
        case str() if _DIGITS.fullmatch(value):
            number = int(value)
        case str() if _WORDLESS.fullmatch(value):
            raise ValueError
        case dict() | list():
            raise ValueError
        case _:
            raise refusal(f"variant_get of {str(value)[:40]!r} as a whole number")
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _to_int(value: Any) -> int:
    number = _to_bigint(value)
    if not -(2**31) <= number < 2**31:
        raise ValueError
    return number


def _to_text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | str():
            return str(value)
        case Decimal():
            return f"{value.normalize(variantformat.EXACT):f}"
        case _:
            raise refusal("variant_get of a double, an object or an array as a text")


def _to_double(value: Any) -> float:
    match value:
        case bool() | int() | float() | Decimal():
            return float(value)
        case str() if _NUMBER.fullmatch(value):
            return float(value)
        case str() if _WORDLESS.fullmatch(value) and value.lower() not in _NO_NUMBERS:
            raise ValueError
        case dict() | list():
            raise ValueError
        case _:
            raise refusal(f"variant_get of {str(value)[:40]!r} as a double")


def _to_boolean(value: Any) -> bool:
    match value:
        case bool():
            return value
        case int():
            return value != 0
        case str() if value in _BOOLEANS:
            return _BOOLEANS[value]
        case dict() | list():
            raise ValueError
        case _:
            raise refusal(f"variant_get of {str(value)[:40]!r} as a BOOLEAN")


def _changed(kind: str) -> Callable[[Variant, str, Variant | None, bool, bool], Variant | None]:
    """A variant with another part. ``kind``: ``set``, ``insert`` or ``append``."""

    def change(variant: Variant, path: str, new: Variant | None, creates: bool, is_try: bool) -> Variant | None:
        if new is None:
            return None
        try:
            value = variantformat.decode(variant)
            return variantformat.encode(_put(value, parse_path(path), variantformat.decode(new), kind, creates))
        except _MisfitError as error:
            if is_try:
                return None
            raise InvalidInputError(f"variant_{kind}: {error} by the path {path[:40]!r}", kind="query") from error

    return change


class _MisfitError(Exception):
    """Signals a path that does not fit a value."""


def _put(value: Any, steps: Path, new: Any, kind: str, creates: bool) -> Any:
    """A value with a new one at the end of a path; places that are not there are made, and filled with NULL."""
    if kind == "append":
        try:
            target = _reached_or_misfit(value, steps)
        except _NoPartError:
            return value
        if not isinstance(target, list):
            raise _MisfitError("expected an array")
        target.append(new)
        return value
    if not steps:
        raise _MisfitError("expected a path with a step")
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if not isinstance(value, dict):
            raise _MisfitError("expected an object")
        if step in value and (rest or kind == "set"):
            value[step] = _put(value[step], rest, new, kind, creates) if rest else new
        elif step in value:
            raise _MisfitError("expected a name that is not there")
        elif creates:
            value[step] = _put(_empty(rest), rest, new, kind, creates) if rest else new
        return value
    if not isinstance(value, list):
        raise _MisfitError("expected an array")
    if step < len(value):
        if rest:
            value[step] = _put(value[step], rest, new, kind, creates)
        elif kind == "set":
            value[step] = new
        else:
            value.insert(step, new)
    elif creates:
        value += [None] * (step - len(value))
        value.append(_put(_empty(rest), rest, new, kind, creates) if rest else new)
    return value


def _empty(steps: Path) -> Any:
    return [] if isinstance(steps[0], int) else {}


def _reached_or_misfit(value: Any, steps: Path) -> Any:
    for step in steps:
        if isinstance(step, str) != isinstance(value, dict) or not isinstance(value, (dict, list)):
            raise _MisfitError("expected an object or an array")
        value = _reached(value, [step])
    return value


def _without(variant: Variant, path: str | None) -> Variant:
    return variantformat.encode(_without_part(variantformat.decode(variant), path))


def _without_part(value: Any, path: str | None) -> Any:
    steps = [] if path is None else parse_path(path)
    if path is not None and not steps:
        raise InvalidInputError("variant_delete: expected a path with a step", kind="query")
    try:
        if steps:
            holder = _reached(value, steps[:-1])
            _reached(holder, steps[-1:])
            del holder[steps[-1]]
    except _NoPartError:
        pass
    return value


def _stripped(variant: Variant, arrays: bool) -> Variant:
    return variantformat.encode(_without_nulls(variantformat.decode(variant), arrays))


def _without_nulls(value: Any, arrays: bool) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(part, arrays) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part, arrays) for part in value if part is not None or not arrays]
    return value


def _is_valid(variant: Variant) -> bool:
    try:
        variantformat.decode(variant)
    except InvalidInputError:
        return False
    return True


def _is_null_value(variant: Variant) -> bool:
    return variant[0] == b"\0"


def _schema(variant: Variant) -> str:
    return _type_text(_type_in(variantformat.decode(variant)))


def _shape_text(value: Any) -> str:
    """The shape of a value as a text, which is the same for values of one shape."""
    return json.dumps(_type_in(value))


def _shape_of(variant: Variant) -> str:
    return _shape_text(variantformat.decode(variant))


def _common_schema(shapes: list[str | None] | None) -> str:
    common: _Shape = ("VOID", None)
    for shape in sorted(filter(None, shapes or ())):
        common = _merged(common, json.loads(shape))
    return _type_text(common)


def _common_schemas(lists: pa.Array) -> pa.Array:
    return pa.array(map(_common_schema, lists.to_pylist()), pa.string())


# A kind, and what belongs to it: the digits of a decimal, the type of elements, the types of fields by their names.
_Shape: TypeAlias = "tuple[str, Any]"


def _type_in(value: Any) -> _Shape:
    match value:
        case None:
            return "VOID", None
        case bool():
            return "BOOLEAN", None
        case int():
            return "BIGINT", None
        case float():
            return "DOUBLE", None
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = -exponent if isinstance(exponent, int) and exponent < 0 else 0
            if scale and digits[-1] == 0:
                raise refusal("schema_of_variant of a decimal that ends with 0")
            return "DECIMAL", (max(len(digits), scale), scale)
        case str():
            return "STRING", None
        case list():
            element: _Shape = ("VOID", None)
            for part in value:
                element = _merged(element, _type_in(part))
            return "ARRAY", element
        case _:
            return "OBJECT", {name: _type_in(part) for name, part in value.items()}


def _merged(left: _Shape, right: _Shape) -> _Shape:
    kinds = {left[0], right[0]}
    if "VOID" in kinds:
        return right if left[0] == "VOID" else left
    if kinds == {"OBJECT"}:
        both = dict(left[1])
        for name, shape in right[1].items():
            both[name] = _merged(both[name], shape) if name in both else shape
        return "OBJECT", both
    if kinds == {"ARRAY"}:
        return "ARRAY", _merged(left[1], right[1])
    if len(kinds) == 1 and "DECIMAL" not in kinds:
        return left
    if kinds <= {"BIGINT", "DECIMAL"}:
        (precision, scale), (other_precision, other_scale) = (one[1] or (20, 0) for one in (left, right))
        most = max(scale, other_scale)
        digits = max(precision - scale, other_precision - other_scale) + most
        if digits > 38:
            raise refusal("schema_of_variant of decimals of more than 38 digits")
        return "DECIMAL", (digits, most)
    if kinds <= {"BIGINT", "DECIMAL", "DOUBLE"}:
        return "DOUBLE", None
    return "VARIANT", None


def _type_text(shape: _Shape) -> str:
    kind, inner = shape
    if kind == "DECIMAL":
        return f"DECIMAL({inner[0]},{inner[1]})"
    if kind == "ARRAY":
        return f"ARRAY<{_type_text(inner)}>"
    if kind == "OBJECT":
        fields = (
            f"{_quoted(name)}: {_type_text(inner[name])}" for name in sorted(inner, key=lambda name: name.encode("utf-16-be"))
        )
        return f"OBJECT<{', '.join(fields)}>"
    return kind


def _quoted(name: str) -> str:
    return name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name.replace('`', '``')}`"


def _exploded(variant: Variant) -> list[tuple[int, str | None, Variant]]:
    return [(pos, name, part) for pos, (name, part) in enumerate(variantformat.parts_of(variant))]


def _of_value(value: Any) -> Variant:
    return variantformat.encode(value)


def _parsed_by_shape(shape: Shape) -> _Chunks:
    return encoded(shape)


def _part_by_shape(shape: Shape, path: str) -> _Chunks:
    try:
        part = _reached(shape.decoded().value, parse_path(path))
    except _NoPartError:
        yield shape.rows, pa.nulls(len(shape.rows), _ARROW)
    else:
        yield from encoded(replace(shape, value=part))


def _cast_by_shape(kind: SqlType, arrow: pa.DataType) -> _ByShape:
    def cast(shape: Shape, path: str, is_try: bool) -> _Chunks:
        try:
            part = _reached(shape.value, parse_path(path))
        except _NoPartError:
            part = None
        if part is None:
            yield shape.rows, pa.nulls(len(shape.rows), arrow)
        elif (cast_column := _column_as(part, kind, arrow)) is not None:
            values, places = cast_column
            yield shape.rows[places], values

    return cast


def _column_as(part: Any, kind: SqlType, arrow: pa.DataType) -> "tuple[pa.Array, npt.NDArray[np.int64]] | None":
    """A column as values of a type, and the places of those that have one that is certain; None for what is cast one by one."""
    match part:
        case Texts() if kind == STRING:
            return part.to_arrow(arrow), np.arange(len(part.starts))
        case Wholes(numbers) if kind != BOOLEAN:
            ends = 2**31 if kind == INT else 2**63
            places = np.flatnonzero((numbers >= -ends) & (numbers < ends))
            return pa.array(numbers[places]).cast(arrow, safe=False), places
        case Decimals(unscaled, scales) if kind == DOUBLE:
            # Both are doubles without loss, so their quotient is the nearest one.
            places = np.flatnonzero(np.abs(unscaled) < 2**53)
            return pa.array(unscaled[places] / np.power(10.0, scales[places])), places
        case _:
            return None


def _changed_by_shape(kind: str) -> _ByShape:
    def change(shape: Shape, path: str, new: Variant | None, creates: bool, is_try: bool) -> _Chunks:
        if new is None:
            yield shape.rows, pa.nulls(len(shape.rows), _ARROW)
            return
        try:
            value = _put(shape.decoded().value, parse_path(path), variantformat.decode(new), kind, creates)
        except _MisfitError:
            return
        yield from encoded(replace(shape, value=value))

    return change


def _deleted_by_shape(shape: Shape, path: str | None) -> _Chunks:
    return encoded(replace(shape, value=_without_part(shape.decoded().value, path)))


def _stripped_by_shape(shape: Shape, arrays: bool) -> _Chunks:
    return encoded(replace(shape, value=_without_nulls(shape.decoded().value, arrays)))


def _valid_by_shape(shape: Shape) -> _Chunks:
    yield shape.rows, pa.repeat(pa.scalar(True), len(shape.rows))


def _null_by_shape(shape: Shape) -> _Chunks:
    yield shape.rows, pa.repeat(pa.scalar(shape.value is None), len(shape.rows))


def _schema_by_shape(shape: Shape) -> _Chunks:
    return _by_type(shape, lambda value: _type_text(_type_in(value)))


def _shape_by_shape(shape: Shape) -> _Chunks:
    return _by_type(shape, _shape_text)


def _by_type(shape: Shape, text_of: Callable[[Any], str]) -> _Chunks:
    for some in _alike_in_type(shape):
        yield some.rows, pa.repeat(pa.scalar(text_of(some.first())), len(some.rows))


def _alike_in_type(shape: Shape) -> Iterator[Shape]:
    """Rows whose decimals have as many digits in each place."""
    keys = np.zeros(len(shape.rows), np.int64)
    for leaf in shape.leaves():
        if isinstance(leaf, Decimals):
            kinds = (leaf.digits * 32 + leaf.scales) * 2 + (leaf.unscaled % 10 == 0)
            keys = np.unique(keys * 2048 + kinds, return_inverse=True)[1]
    return shape.split(keys)


def _exploded_by_shape(shape: Shape) -> _Chunks:
    if not isinstance(shape.value, dict | list) or not shape.value:
        yield shape.rows, pa.array([[]] * len(shape.rows), _PARTS)
        return
    for rows, parts in encoded_parts(shape):
        many, count = len(parts), len(rows)
        # The first parts of all rows, then the second ones: they are put together by rows.
        order = np.arange(many * count).reshape(many, count).T.reshape(-1)
        values = pa.concat_arrays([part for _, part in parts]).take(pa.array(order))
        keys = pa.array([key for key, _ in parts], pa.string()).take(pa.array(np.tile(np.arange(many), count)))
        places = pa.array(np.tile(np.arange(many, dtype=np.int32), count))
        pieces = pa.StructArray.from_arrays([places, keys, values], fields=list(_PARTS.value_type))
        yield rows, pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * many), pieces, type=_PARTS)


_PARTS = pa.list_(pa.struct([("pos", pa.int32()), ("key", pa.string()), ("value", _ARROW)]))
_CHANGES = (VARIANT, STRING, VARIANT, BOOLEAN, BOOLEAN)
_CAST_TYPES: "tuple[tuple[SqlType, Callable[[Any], Any], pa.DataType], ...]" = (
    (INT, _to_int, pa.int32()),
    (BIGINT, _to_bigint, pa.int64()),
    (STRING, _to_text, pa.string()),
    (DOUBLE, _to_double, pa.float64()),
    (BOOLEAN, _to_boolean, pa.bool_()),
)
_CASTS = {
    kind: ArrowFunction(
        name=f"variant_as_{kind.name}", arguments=(VARIANT, STRING, BOOLEAN), result=kind, call=each(_cast(to), arrow)
    )
    for kind, to, arrow in _CAST_TYPES
}
_OF_WHOLES = ArrowFunction(
    name="variant_of_wholes", arguments=(array(BIGINT),), result=VARIANT, call=variantarrays.of_whole_numbers
)
_OF_VALUES = {
    kind: ArrowFunction(name=f"variant_of_{kind.name}", arguments=(kind,), result=VARIANT, call=each(_of_value, _ARROW))
    for kind in (BIGINT, STRING, BOOLEAN)
}


def _variant(name: str, arguments: tuple[SqlType, ...], call: Callable[..., Any]) -> ArrowFunction:
    return ArrowFunction(name=name, arguments=arguments, result=VARIANT, call=each(call, _ARROW))


def _parse(name: str, call: Callable[..., Any]) -> ArrowFunction:
    return ArrowFunction(name=name, arguments=(STRING,), result=VARIANT, call=_by_shapes(_parsed_by_shape, call, _ARROW))


_PARSE = _parse("parse_json", _parsed)
_TRY_PARSE = _parse("try_parse_json", _parsed_or_null)
_GET = _variant("variant_part", (VARIANT, STRING), _part)
_DELETE = _variant("variant_delete", (VARIANT, STRING), _without)
_STRIP = _variant("variant_strip", (VARIANT, BOOLEAN), _stripped)
_CHANGE = {kind: _variant(f"variant_{kind}", _CHANGES, _changed(kind)) for kind in ("set", "insert", "append")}
_EXPLODE = ArrowFunction(name="variant_explode", arguments=(VARIANT,), result=array(_PART), call=each(_exploded, _PARTS))
_NULL = ArrowFunction(name="is_variant_null", arguments=(VARIANT,), result=BOOLEAN, call=each(_is_null_value, pa.bool_()))
_VALID = ArrowFunction(name="is_valid_variant", arguments=(VARIANT,), result=BOOLEAN, call=each(_is_valid, pa.bool_()))
_SCHEMA = ArrowFunction(name="schema_of_variant", arguments=(VARIANT,), result=STRING, call=each(_schema, pa.string()))
_SHAPE = ArrowFunction(name="variant_shape", arguments=(VARIANT,), result=STRING, call=each(_shape_of, pa.string()))
_SCHEMA_OF_ALL = ArrowFunction(name="schema_of_variant_agg", arguments=(array(STRING),), result=STRING, call=_common_schemas)
_BY_SHAPE: "tuple[tuple[ArrowFunction, Callable[..., Any], _ByShape, pa.DataType], ...]" = (
    *((_CASTS[kind], _cast(to), _cast_by_shape(kind, arrow), arrow) for kind, to, arrow in _CAST_TYPES),
    (_GET, _part, _part_by_shape, _ARROW),
    (_DELETE, _without, _deleted_by_shape, _ARROW),
    (_STRIP, _stripped, _stripped_by_shape, _ARROW),
    *((function, _changed(kind), _changed_by_shape(kind), _ARROW) for kind, function in _CHANGE.items()),
    (_EXPLODE, _exploded, _exploded_by_shape, _PARTS),
    (_VALID, _is_valid, _valid_by_shape, pa.bool_()),
    (_NULL, _is_null_value, _null_by_shape, pa.bool_()),
    (_SCHEMA, _schema, _schema_by_shape, pa.string()),
    (_SHAPE, _shape_of, _shape_by_shape, pa.string()),
)


def _of_texts(parse: ArrowFunction, parsed: Callable[[str], Variant | None]) -> Iterator[tuple[tuple[str, str], ArrowFunction]]:
    """The functions of what a function makes of JSON texts, by its name in DuckDB and theirs."""
    for function, call, by_shape, result in _BY_SHAPE:

        def of_text(text: str, *rest: Any, call: Callable[..., Any] = call) -> Any:
            variant = parsed(text)
            return None if variant is None else call(variant, *rest)

        yield (
            (parse.engine_name, function.name),
            ArrowFunction(
                name=f"{function.name}_of_{parse.name}",
                arguments=(STRING, *function.arguments[1:]),
                result=function.result,
                call=_by_shapes(by_shape, of_text, result),
            ),
        )


_OF_TEXTS = {**dict(_of_texts(_PARSE, _parsed)), **dict(_of_texts(_TRY_PARSE, _parsed_or_null))}
ARROW = (
    *_OF_TEXTS.values(),
    _NULL,
    _SHAPE,
    _SCHEMA_OF_ALL,
    _VALID,
    _SCHEMA,
    *_CASTS.values(),
    *_OF_VALUES.values(),
    _OF_WHOLES,
    _PARSE,
    _TRY_PARSE,
    _GET,
    _DELETE,
    _STRIP,
    *_CHANGE.values(),
    _EXPLODE,
)


def _as_variant(call: RuleCall, place: int) -> exp.Expr:
    """An argument as a VARIANT."""
    kind, value = call.type(place), call.value(place)
    if kind == VARIANT:
        return value
    if kind == VOID:
        return as_type(value, VARIANT)
    family = BIGINT if kind.is_integer else kind
    if family not in _OF_VALUES:
        raise call.refusal(f"with a value of the type {kind}")
    return _OF_VALUES[family].of(converted(value, kind, family))


def _whole(call: RuleCall, place: int = 0) -> exp.Expr:
    if call.type(place) not in (VARIANT, VOID):
        raise call.mismatch(place, "a VARIANT")
    return as_type(call.value(place), VARIANT)


def _over(function: ArrowFunction, variant: exp.Expr, *rest: exp.Expr) -> exp.Expr:
    """A call of a function of a VARIANT."""
    return _over_text(function, variant, *rest) or function.of(variant, *rest)


def _over_text(function: ArrowFunction, variant: exp.Expr, *rest: exp.Expr) -> exp.Expr | None:
    """A call of a function over the texts of a VARIANT that is parsed; None for another one."""
    parsing = variant.this if isinstance(variant, exp.Cast) else variant
    of_text = _OF_TEXTS.get((parsing.name, function.name)) if isinstance(parsing, exp.Anonymous) else None
    return None if of_text is None else of_text.of(*parsing.expressions, *rest)


def _result(call: RuleCall, value: exp.Expr) -> exp.Expr:
    """A VARIANT that is handed on; as a column of a query it is refused where it is NULL."""
    around = call.node.parent
    if not isinstance(around, (exp.Select, exp.Alias)):
        return value
    return refused_where(
        exp.Is(this=value, expression=exp.null()), f"the function {call.name} where it gives NULL for a column", value.copy()
    )


def _path_of(call: RuleCall, place: int) -> exp.Expr:
    path = call.values[place]
    if not isinstance(path, exp.Literal) or not path.is_string:
        raise call.refusal("by a path that is computed")
    parse_path(path.name)
    return path.copy()


def _parsing(function: ArrowFunction) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        if call.type(0) not in (STRING, VOID):
            raise call.mismatch(0, "a text")
        return _result(call, function.of(call.value(0, STRING)))

    return write


def _got_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    if len(values) < 3:
        return VARIANT
    name = values[2].name.lower() if isinstance(values[2], exp.Literal) else ""
    return {
        "int": INT,
        "integer": INT,
        "bigint": BIGINT,
        "long": BIGINT,
        "string": STRING,
        "double": DOUBLE,
        "boolean": BOOLEAN,
    }.get(name)


def _got(call: RuleCall) -> exp.Expr:
    variant, path = _whole(call), _path_of(call, 1)
    if len(call.values) < 3:
        return _result(call, _over(_GET, variant, path))
    if call.result is None:
        raise call.refusal(f"as {call.values[2].sql()}")
    is_try = exp.true() if call.name.startswith("try_") else exp.false()
    return _over(_CASTS[call.result], variant, path, is_try)


def _changing(kind: str) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        creates: exp.Expr = exp.true()
        if len(call.values) > 3:
            creates = call.value(3)
            if not isinstance(creates, exp.Boolean):
                raise call.refusal("with an argument that is computed")
        is_try = exp.true() if call.name.startswith("try_") else exp.false()
        return _result(call, _over(_CHANGE[kind], _whole(call), _path_of(call, 1), _as_variant(call, 2), creates, is_try))

    return write


def _deleting(call: RuleCall) -> exp.Expr:
    variant = _whole(call)
    for place in range(1, len(call.values)):
        path = call.value(place) if isinstance(call.values[place], exp.Null) else _path_of(call, place)
        variant = _over(_DELETE, variant, as_type(path, STRING))
    return _result(call, variant)


def _stripping(call: RuleCall) -> exp.Expr:
    arrays = call.value(1) if len(call.values) > 1 else exp.true()
    if not isinstance(arrays, exp.Boolean):
        raise call.refusal("with an argument that is computed")
    return _result(call, _over(_STRIP, _whole(call), arrays))


def _object_of(call: RuleCall) -> exp.Expr:
    if not call.type(0).is_nested:
        raise call.mismatch(0, "a row, an array or a map")
    kind = call.type(0)
    if kind.name == "array" and kind.parts[0] is not None and kind.parts[0].is_integer:
        return _result(call, _OF_WHOLES.of(as_type(call.value(0), array(BIGINT))))
    return _result(call, _PARSE.of(json_text(call, call.value(0), kind, keeps_nulls=True)))


def _schema_of_all(call: RuleCall) -> exp.Expr:
    """Writes the aggregate, which holds the different shapes of one group's values in memory."""
    shapes = exp.Distinct(expressions=[_over(_SHAPE, _whole(call))])
    return _SCHEMA_OF_ALL.of(call.around(exp.Anonymous(this="LIST", expressions=[shapes])))


def _is_null(call: RuleCall) -> exp.Expr:
    variant = _whole(call)
    is_null = _over_text(_NULL, variant) or from_text("STRUCT_EXTRACT($0, 'value') = FROM_HEX('00')", variant)
    return from_text("COALESCE($0, FALSE)", is_null)


def _exploded_columns(types: Types, values: Sequence[exp.Expr]) -> "Columns | None":
    return [("pos", INT), ("key", STRING), ("value", VARIANT)]


def _exploding(call: RuleCall) -> exp.Expr:
    parts = _over(_EXPLODE, _whole(call))
    if call.name.endswith("_outer"):
        parts = from_text("CASE WHEN LEN($0) > 0 THEN $0 ELSE [NULL] END", parts)
    return generated_fields(parts, ("pos", "key", "value"))


RULES = (
    FunctionRule(name="parse_json", bounds=(1, 1), result=always(VARIANT), write=_parsing(_PARSE)),
    FunctionRule(name="try_parse_json", bounds=(1, 1), result=always(VARIANT), write=_parsing(_TRY_PARSE)),
    FunctionRule(name="variant_get", bounds=(2, 3), result=_got_type, write=_got, aliases=("try_variant_get",)),
    FunctionRule(name="variant_set", bounds=(3, 4), result=always(VARIANT), write=_changing("set"), aliases=("try_variant_set",)),
    FunctionRule(
        name="variant_insert", bounds=(3, 3), result=always(VARIANT), write=_changing("insert"), aliases=("try_variant_insert",)
    ),
    FunctionRule(
        name="variant_array_append",
        bounds=(3, 3),
        result=always(VARIANT),
        write=_changing("append"),
        aliases=("try_variant_array_append",),
    ),
    FunctionRule(name="variant_delete", bounds=(2, MANY), result=always(VARIANT), write=_deleting),
    FunctionRule(name="variant_strip_nulls", bounds=(1, 2), result=always(VARIANT), write=_stripping),
    FunctionRule(name="is_variant_null", bounds=(1, 1), result=always(BOOLEAN), write=_is_null),
    FunctionRule(
        name="variant_explode",
        bounds=(1, 1),
        result=always(VOID),
        columns=_exploded_columns,
        write=_exploding,
        aliases=("variant_explode_outer",),
    ),
    FunctionRule(name="is_valid_variant", bounds=(1, 1), result=always(BOOLEAN), write=lambda call: _over(_VALID, _whole(call))),
    FunctionRule(name="schema_of_variant", bounds=(1, 1), result=always(STRING), write=lambda call: _over(_SCHEMA, _whole(call))),
    FunctionRule(name="schema_of_variant_agg", bounds=(1, 1), result=always(STRING), write=_schema_of_all, is_aggregate=True),
    FunctionRule(name="to_variant_object", bounds=(1, 1), result=always(VARIANT), write=_object_of),
)
