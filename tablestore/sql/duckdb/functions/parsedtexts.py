"""Writes ``from_json``, ``from_csv``, ``to_csv``, ``schema_of_json`` and ``schema_of_csv`` with Spark's meaning, where all parsers
read a text alike.

DuckDB reads what is plain. An Arrow function reads other texts as Spark's parsers do and gives JSON that DuckDB casts without a
choice. Most options, texts that are
not well-formed, and values that Java writes in its own way are refused.
"""

import datetime as dt
import json
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import ResultOf, Types, always
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    SqlType,
    Type,
    engine_words,
    written_type,
)
from tablestore.sql.duckdb.calls import refusal, refused_where
from tablestore.sql.duckdb.functions.argumenttypes import written_text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, from_text
from tablestore.sql.duckdb.functions.writtenoptions import is_set, written_options

_BITS = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
_FLAT = (*_BITS, DOUBLE, STRING, BOOLEAN)
_MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_WIDE = Context(prec=100)
_LARGE = Decimal("1e300")
_NO_NUMBERS = {"nan", "infinity", "inf"}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r" *[+-]?[0-9]{1,15}(\.[0-9]{1,15})? *")
_WORD = re.compile(r"[A-Za-z]+|[0-9]+\.[0-9]+")
_PLAIN_LINE = re.compile(r"""[^"'\\#\r\n\0]*""")
_PLAIN_CELL = r"^[\w.:/\-]([\w.:/ \-]*[\w.:/\-])?$"
# Of the signs that no other option has: a character that parts the cells of a line.
_SEPARATORS = frozenset(",;|:~^&@!\t")
_SHAPES_OF_CELLS = (
    ("INT", re.compile(r"-?[0-9]{1,9}")),
    ("BIGINT", re.compile(r"-?[1-9][0-9]{10,17}")),
    ("DOUBLE", re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}")),
    ("BOOLEAN", re.compile("true|false", re.IGNORECASE)),
    ("STRING", re.compile(r"|(?!nan\b|inf)[a-z][a-z ]*|[0-9]{2}/[0-9]{2}/[0-9]{4}(?: [0-9]{2}:[0-9]{2}:[0-9]{2})?", re.IGNORECASE)),
)
_MINUS_ZERO = re.compile("-0(?![0-9.])")
_MOST_DIGITS = 38
# JSON, and words that are types to sqlglot alone.
_NO_SCHEMA = re.compile(r"\bTEXT\b|\bVARCHAR\b(?!\s*\()|\bCHAR\b(?!\s*\()", re.IGNORECASE)


_TYPES_OF_JSON = {"integer": "INT", "long": "BIGINT", "short": "SMALLINT", "byte": "TINYINT"}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)(Z?)")
_NO_MOMENT = re.compile(r"[^0-9+\-\s].*", re.DOTALL)


_FRACTION = re.compile(r"[+-]?[0-9]{1,38}(?:\.[0-9]{1,38})?(?:[eE][+-]?[0-9]{1,2})?")
_PLAIN_FRACTION = re.compile(r"-?(?:0\.(?!000)|[1-9][0-9]{0,6}\.)(?:0|[0-9]{0,7}[1-9])")
# The beginning of a word that no parser of JSON takes.
_NO_JSON = re.compile(r"\s*(?!true|false|null|NaN|Inf|INF)[A-Za-z]")


class _MisfitError(Exception):
    """Signals a value that a type does not have."""


def schema_type(text: str) -> Type:
    """The type that a schema of Spark's names: a type, columns, or either as JSON. None for what is not understood."""
    if text.lstrip().startswith("{"):
        try:
            text = _written_schema(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
    if _NO_SCHEMA.search(text) or not text.strip():
        return None
    for form in (text, f"STRUCT<{text}>"):
        try:
            kind = written_type(exp.DataType.build(form, dialect="spark"))
        except (ValueError, SqlglotError):
            continue
        if kind is not None and kind.is_nested:
            # Of types that it does not know sqlglot makes rows without fields.
            return None if _has_empty_rows(kind) else kind
    return None


def _written_schema(schema: Any) -> str:
    """A schema in JSON as a type in SQL."""
    if isinstance(schema, str):
        return _TYPES_OF_JSON.get(schema, schema)
    if schema["type"] == "array":
        return f"ARRAY<{_written_schema(schema['elementType'])}>"
    if schema["type"] == "map":
        return f"MAP<{_written_schema(schema['keyType'])}, {_written_schema(schema['valueType'])}>"
    if schema["type"] != "struct":
        raise ValueError(schema["type"])
    fields = (f"`{field['name'].replace('`', '``')}` {_written_schema(field['type'])}" for field in schema["fields"])
    return f"STRUCT<{', '.join(fields)}>"


def _has_empty_rows(kind: SqlType) -> bool:
    return (kind.name == "struct" and not kind.fields) or any(part is not None and _has_empty_rows(part) for part in kind.parts)


def _read_json(text: str | None, kind: SqlType) -> str | None:
    if not text:
        return None
    if _NO_JSON.match(text):
        return _text_of(dict.fromkeys(kind.fields)) if kind.name == "struct" else None
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=Decimal, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise refusal("from_json of JSON that is not well-formed, or has a name twice,") from error
    if _MINUS_ZERO.search(text):
        raise refusal("from_json of -0")
    if isinstance(value, dict) and kind.name == "array" and kind.parts[0] is not None and kind.parts[0].name == "struct":
        raise refusal("from_json of an object as an array of rows")
    try:
        read = _as_kind(value, kind)
        if read is None:
            # The whole text is a null, which is no row.
            raise _MisfitError
    except _MisfitError:
        read = dict.fromkeys(kind.fields) if kind.name == "struct" else None
    return None if read is None else _text_of(read)


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _text_of(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if "\\u" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise refusal("from_json of characters of control, or of halves of one")
    return text


def _as_kind(value: Any, kind: SqlType) -> Any:
    """A value of JSON as one of a type. Raises _MisfitError for one that it does not have."""
    if value is None:
        return None
    if kind.name == "struct":
        if not isinstance(value, dict):
            raise _MisfitError
        return {name: _or_null(value.get(name), part) for name, part in zip(kind.fields, kind.parts, strict=True)}
    if kind.name == "array":
        if not isinstance(value, list):
            raise _MisfitError
        element = kind.parts[0]
        assert element is not None, "the type is known"
        if element.is_nested and not all(one is None or isinstance(one, (dict, list)) for one in value):
            raise refusal("from_json of an array whose elements do not fit")
        return [_as_kind(one, element) for one in value]
    if kind.name == "map":
        if not isinstance(value, dict):
            raise _MisfitError
        return {name: _value_of_map(part, kind.parts[1]) for name, part in value.items()}
    return _flat(value, kind)


def _value_of_map(value: Any, kind: Type) -> Any:
    assert kind is not None, "the type is known"
    try:
        return _as_kind(value, kind)
    except _MisfitError as error:
        raise refusal("from_json of a map whose values do not fit") from error


def _or_null(value: Any, kind: Type) -> Any:
    assert kind is not None, "the type is known"
    try:
        return _as_kind(value, kind)
    except _MisfitError:
        return None


def _flat(value: Any, kind: SqlType) -> Any:
    match value:
        case bool():
            if kind == STRING:
                return str(value).lower()
            if kind != BOOLEAN:
                raise _MisfitError
            return value
        case int() if kind in _BITS:
            if not -(2**63) <= value < 2**63:
                raise refusal("from_json of whole numbers beyond 64 bits")
            if not -(1 << _BITS[kind] - 1) <= value < 1 << _BITS[kind] - 1:
                raise _MisfitError
            return value
        case int() | Decimal() if kind.is_decimal:
            return _digits(value, kind)
        case int() | Decimal() if kind == DOUBLE:
            if abs(Decimal(value)) >= _LARGE:
                raise refusal("from_json of numbers near the end of doubles")
            return float(value)
        case int() if kind == STRING and -(2**63) <= value < 2**63:
            return str(value)
        case str():
            if kind == STRING:
                return value
            if kind.is_decimal:
                return _digits_of_text(value, kind)
            if kind in _MOMENTS:
                return _moment(value, kind)
            if kind == DOUBLE and value.lower().lstrip("+-") in _NO_NUMBERS:
                raise refusal("from_json of texts that name no number as a DOUBLE")
            raise _MisfitError
        case int() if kind == TIMESTAMP:
            raise refusal("from_json of numbers as timestamps")
        case Decimal() | dict() | list() if kind == STRING:
            return _shown_value(value)
        case _:
            raise _MisfitError


def _shown_value(value: Any) -> str:
    """A value of JSON as a text: as it is written, without blanks."""
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int() if -(2**63) <= value < 2**63:
            return str(value)
        case Decimal() if _PLAIN_FRACTION.fullmatch(str(value)):
            return str(value)
        case list():
            return f"[{','.join(map(_shown_value, value))}]"
        case dict():
            return f"{{{','.join(f'{_shown_value(name)}:{_shown_value(part)}' for name, part in value.items())}}}"
        case _:
            raise refusal("from_json of a number in this form as a text")


def _digits_of_text(text: str, kind: SqlType) -> str:
    if not text or text[0].isalpha():
        raise _MisfitError
    if not _FRACTION.fullmatch(text):
        raise refusal(f"from_json of {text[:40]!r} as {kind}")
    return _digits(Decimal(text), kind)


def _digits(value: int | Decimal, kind: SqlType) -> str:
    """A number as a decimal, rounded half up."""
    if isinstance(value, Decimal) and abs(value.adjusted()) > _MOST_DIGITS:
        raise refusal("from_json of decimals near the end of doubles")
    digits = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _WIDE)
    if digits.adjusted() >= kind.precision - kind.scale and digits:
        raise _MisfitError
    return f"{digits:f}"


def _moment(text: str, kind: SqlType) -> str:
    """A text that is a date or a timestamp; a refusal of one in another form than most have."""
    if kind == DATE and _DATE.fullmatch(text):
        try:
            return dt.date.fromisoformat(text).isoformat()
        except ValueError:
            if not text.startswith("0000"):
                raise _MisfitError from None
    elif kind != DATE and (parts := _MOMENT.fullmatch(text)) is not None and not (parts[3] and kind == TIMESTAMP_NTZ):
        try:
            return f"{dt.datetime.fromisoformat(f'{parts[1]} {parts[2]}')}{'+00' * bool(parts[3])}"
        except ValueError:
            if not text.startswith("0000"):
                raise _MisfitError from None
    elif _NO_MOMENT.fullmatch(text):
        raise _MisfitError
    raise refusal(f"from_json of {text[:40]!r} as {kind}")


def _read_csv(text: str | None, kind: SqlType, separator: str) -> str | None:
    if text is None:
        return None
    cells = _cells(text, separator, "from_csv")
    cells += [""] * (len(kind.fields) - len(cells))
    return _text_of({name: _cell(cell, part) for name, part, cell in zip(kind.fields, kind.parts, cells, strict=False)})


def _cells(text: str, separator: str, name: str) -> list[str]:
    if not _PLAIN_LINE.fullmatch(text):
        raise refusal(f"{name} of a text with quotes, comments or ends of lines")
    return text.split(separator)


def _cell(cell: str, kind: Type) -> Any:
    assert kind is not None, "the type is known"
    if not cell:
        return None
    if kind == STRING:
        return cell
    if kind == BOOLEAN and cell in ("true", "false"):
        return cell == "true"
    if kind in _BITS and _WHOLE.fullmatch(cell) and abs(int(cell)) < 1 << _BITS[kind] - 1:
        return int(cell)
    if kind == DOUBLE and _NUMBER.fullmatch(cell):
        return float(cell)
    is_other = _WORD.fullmatch(cell) and cell.lower() not in _NO_NUMBERS and kind != BOOLEAN
    if is_other and not (kind == DOUBLE and cell[-1] in "dDfF" and cell[:-1].replace(".", "").isdecimal()):
        return None
    raise refusal(f"from_csv of {cell[:40]!r} as {kind}")


def _over(call: Callable[..., str | None]) -> Callable[..., pa.Array]:
    def over_columns(texts: pa.Array, schemas: pa.Array, *others: pa.Array) -> pa.Array:
        kinds = {schema: _known_schema(schema) for schema in schemas.unique().to_pylist()}
        # A text is read by itself: there is no other way than one at a time.
        rows = zip(texts.to_pylist(), schemas.to_pylist(), *(one.to_pylist() for one in others), strict=True)
        return pa.array([call(text, kinds[schema], *rest) for text, schema, *rest in rows], pa.string())

    return over_columns


_FROM_JSON = ArrowFunction(name="from_json", arguments=(STRING, STRING), result=STRING, call=_over(_read_json))
_FROM_CSV = ArrowFunction(name="from_csv", arguments=(STRING, STRING, STRING), result=STRING, call=_over(_read_csv))


def _known_schema(schema: str) -> SqlType:
    kind = schema_type(schema)
    assert kind is not None, "the schema is read while the query is translated"
    return kind


def _schema_result(types: Types, values: Sequence[exp.Expr]) -> Type:
    schema = values[1] if len(values) > 1 else None
    return schema_type(schema.name) if isinstance(schema, exp.Literal) and schema.is_string else None


def _is_read(kind: Type) -> bool:
    if kind is None or (kind.name == "map" and kind.parts[0] != STRING):
        return False
    return all(map(_is_read, kind.parts)) if kind.is_nested else kind.is_decimal or kind in (*_FLAT, *_MOMENTS)


def _separator(call: RuleCall, options: dict[str, str]) -> str:
    """Takes the sign between cells out of the options."""
    other = options.pop("delimiter", ",")
    separator = options.pop("sep", other)
    separator = "\t" if separator == "\\t" else separator
    if separator not in _SEPARATORS:
        raise call.refusal(f"with the separator {separator[:10]!r}")
    return separator


def _check_options(call: RuleCall, options: dict[str, str], *known: str) -> None:
    """Raises UnsupportedError for an option that is not known. A mode that Spark does not know is PERMISSIVE."""
    mode = options.pop("mode", "").upper()
    if mode == "DROPMALFORMED" and call.name.startswith("from_"):
        raise InvalidInputError(
            f"the function `{call.name}`: expected the mode PERMISSIVE or FAILFAST, found DROPMALFORMED", kind="query"
        )
    if mode in ("FAILFAST", "DROPMALFORMED"):
        raise call.refusal(f"with the mode {mode}")
    for name in options:
        if name not in known:
            raise call.refusal(f"with the option {name}")


# What is JSON without them is read alike with and without them, and the rest is refused.
_LENIENT = (
    "allowcomments", "allowsinglequotes", "allowunquotedfieldnames", "allownumericleadingzeros",
    "allowbackslashescapinganycharacter",
)  # fmt: skip


def _parsing(function: ArrowFunction, *, is_flat: bool) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        options = written_options(call, 2)
        rest = [exp.Literal.string(_separator(call, options))] if is_flat else []
        _check_options(call, options)
        schema = written_text(call, 1, "a schema")
        if not schema.strip():
            raise InvalidInputError(f"the function `{call.name}`: expected a schema as argument 2, found none", kind="query")
        kind = schema_type(schema)
        if call.type(0) not in (STRING, VOID):
            raise call.mismatch(0, "a text")
        is_odd = kind is None or not _is_read(kind) or len({name.lower() for name in kind.fields}) < len(kind.fields)
        if kind is None or is_odd or (is_flat and (kind.name != "struct" or any(one not in _FLAT for one in kind.parts))):
            raise call.refusal(f"with the schema {schema[:80]!r}")
        read = function.of(call.value(0, STRING), call.value(1), *rest)
        careful = exp.Cast(this=exp.Cast(this=read, to=exp.DataType.build("JSON")), to=engine_words(kind))
        plain = _plain_csv(kind, rest[0].name) if is_flat else _plain_json(kind)
        if plain is None:
            return careful
        is_plain, value = plain
        words = engine_words(kind).sql("duckdb")
        is_usual = "" if is_flat else f"REGEXP_FULL_MATCH($0, '{_usual_json(kind)}') OR "
        template = f"CASE WHEN $0 IS NULL THEN NULL WHEN {is_usual}{is_plain} THEN CAST({value} AS {words}) ELSE $1 END"
        return call.text(template, call.value(0, STRING), careful)

    return write


def _to_csv(call: RuleCall) -> exp.Expr:
    kind, options = call.type(0), written_options(call, 1)
    if kind.name != "struct":
        raise call.mismatch(0, "a row")
    separator, quotes_all = _separator(call, options), is_set(call, options, "quoteall")
    _check_options(call, options, "quoteall")
    cells: list[exp.Expr] = []
    for name, part in zip(kind.fields, kind.parts, strict=True):
        if part not in (*_BITS, STRING, BOOLEAN):
            raise call.refusal(f"of {part}")
        field = exp.Anonymous(this="STRUCT_EXTRACT", expressions=[call.value(0), exp.Literal.string(name)])
        cell: exp.Expr = exp.cast(field, "TEXT")
        if part == STRING:
            is_odd = from_text(f"NOT REGEXP_MATCHES($0, '{_PLAIN_CELL}') OR CONTAINS($0, '{separator}')", cell)
            cell = refused_where(is_odd, "to_csv of texts that are empty, or have quotes, signs or space around them", cell.copy())
        cells.append(from_text("'\"' || COALESCE($0, '') || '\"'" if quotes_all else "COALESCE($0, '')", cell))
    joined: exp.Expr = exp.Anonymous(this="CONCAT_WS", expressions=[exp.Literal.string(separator), *cells])
    if len(cells) == 1 and not quotes_all:
        joined = refused_where(from_text("$0 = ''", joined), "to_csv of a row of one NULL", joined.copy())
    return from_text("CASE WHEN $0 IS NOT NULL THEN $1 END", call.value(0), joined)


def _schema_of_csv(call: RuleCall) -> exp.Expr:
    text, options = written_text(call, 0, "CSV"), written_options(call, 1)
    cells = _cells(text, _separator(call, options), "schema_of_csv")
    _check_options(call, options)
    if not text:
        raise call.refusal("of an empty text")
    fields = (f"_c{place}: {_shape_of_cell(call, cell)}" for place, cell in enumerate(cells))
    return exp.Literal.string(f"STRUCT<{', '.join(fields)}>")


def _shape_of_cell(call: RuleCall, cell: str) -> str:
    for shape, form in _SHAPES_OF_CELLS:
        if form.fullmatch(cell):
            return shape
    for shape, kind in (("DATE", DATE), ("TIMESTAMP", TIMESTAMP)):
        if (_DATE if kind == DATE else _MOMENT).fullmatch(cell) and not cell.startswith("0000"):
            try:
                _moment(cell, kind)
            except _MisfitError:
                return "STRING"
            return shape
    raise call.refusal(f"of the cell {cell[:40]!r}")


def _schema_of_json(call: RuleCall) -> exp.Expr:
    options = written_options(call, 1)
    are_texts = is_set(call, options, "primitivesasstring")
    if is_set(call, options, "prefersdecimal"):
        raise call.refusal("with the option prefersdecimal")
    for name in _LENIENT:
        is_set(call, options, name)
    _check_options(call, options, "primitivesasstring", "prefersdecimal", *_LENIENT)
    text = written_text(call, 0, "JSON")
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise call.refusal("of JSON that is not well-formed, or has a name twice") from error
    kind = _inferred(_as_texts(value) if are_texts else value)
    if kind in (None, {}):
        raise call.refusal("of an object without values")
    return exp.Literal.string(_shown(kind))


def _as_texts(value: Any) -> Any:
    """A value of JSON with texts in the place of numbers and booleans."""
    match value:
        case list():
            return [_as_texts(one) for one in value]
        case dict():
            return {name: _as_texts(part) for name, part in value.items()}
        case None:
            return None
        case _:
            return str(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len({name.lower() for name in fields}) < len(pairs):
        raise ValueError("a name stands twice")
    return fields


def _inferred(value: Any) -> Any:
    """A shape: a name of a type, the shapes of fields by their names, or that of elements in a list. None of an empty object."""
    match value:
        case None:
            return "VOID"
        case bool():
            return "BOOLEAN"
        case int() if -(2**63) <= value < 2**63:
            return "BIGINT"
        case int() if len(str(abs(value))) <= _MOST_DIGITS:
            return f"DECIMAL({len(str(abs(value)))},0)"
        case int() | float():
            return "DOUBLE"
        case str():
            return "STRING"
        case list():
            element: Any = "VOID"
            for one in value:
                element = _merged(element, _inferred(one))
            return [element]
        case _:
            return {name: _inferred(part) for name, part in value.items()}


def _merged(left: Any, right: Any) -> Any:
    if "VOID" in (left, right):
        return right if left == "VOID" else left
    if isinstance(left, dict) and isinstance(right, dict):
        return {name: _merged(left.get(name, "VOID"), right.get(name, "VOID")) for name in (*left, *(right.keys() - left.keys()))}
    if isinstance(left, list) and isinstance(right, list):
        return [_merged(left[0], right[0])]
    if left == right:
        return left
    if {left, right} == {"BIGINT", "DOUBLE"} if isinstance(left, str) and isinstance(right, str) else False:
        return "DOUBLE"
    if isinstance(left, str) and isinstance(right, str) and not any(one.startswith("DECIMAL") for one in (left, right)):
        return "STRING"
    raise refusal("schema_of_json of an array of values of several kinds")


def _shown(kind: Any) -> str:
    if isinstance(kind, list):
        if kind[0] == {}:
            raise refusal("schema_of_json of an object without values")
        return f"ARRAY<{_shown(kind[0])}>"
    if isinstance(kind, dict):
        fields = [(name, part) for name, part in sorted(kind.items(), key=lambda one: one[0].encode("utf-16-be")) if part != {}]
        if not fields:
            raise refusal("schema_of_json of an object without values")
        return f"STRUCT<{', '.join(f'{_quoted(name)}: {_shown(part)}' for name, part in fields)}>"
    return "STRING" if kind == "VOID" else str(kind)


def _quoted(name: str) -> str:
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_ ]*", name):
        raise refusal(f"schema_of_json of the name {name[:40]!r}")
    return f"`{name}`" if " " in name else name


_NAME_OF_FIELD = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# What a type takes as it is, by DuckDB's names of the types of JSON.
_PLAIN_TYPES = {
    **dict.fromkeys(_BITS, ("UBIGINT", "BIGINT")), DOUBLE: ("DOUBLE", "UBIGINT", "BIGINT"), STRING: ("VARCHAR",),
    BOOLEAN: ("BOOLEAN",),
}  # fmt: skip
_JSON_TYPES = ("ARRAY", "OBJECT", "BOOLEAN", "VARCHAR", "UBIGINT", "BIGINT", "DOUBLE")
_PLAIN_ELEMENTS = (BIGINT, DOUBLE, STRING, BOOLEAN)
# JSON to DuckDB alone: commas behind the last value and words for numbers. And what is read with care: -0, exponents, numbers that
# may have more than 64 bits, and characters by their numbers.
_WITH_CARE = r",[ \t\r\n]*[\]}]|[:,\[][ \t\r\n]*-?(?i:nan|inf)|-0|[:,\[][ \t\r\n]*-?[0-9.]+[eE]|[0-9]{19}|\\u"


def _plain_json(kind: SqlType) -> tuple[str, str] | None:
    """The condition that DuckDB reads a text as Spark does, and the row, in DuckDB's words. None if it reads none so."""
    if kind.name != "struct" or not all(_NAME_OF_FIELD.fullmatch(name) for name in kind.fields):
        return None
    fields = [(name, part) for name, part in zip(kind.fields, kind.parts, strict=True) if part is not None]
    arrays = [(name, part.parts[0]) for name, part in fields if part.name == "array"]
    is_flat = all(part in _PLAIN_TYPES or part.name == "array" for _, part in fields)
    if not is_flat or any(element not in _PLAIN_ELEMENTS for _, element in arrays):
        return None
    paths = ", ".join(f"'$.{name}'" for name in kind.fields)
    types = f"JSON_TYPE($0, [{paths}])"
    names = [_PLAIN_TYPES.get(part, ("ARRAY",)) for _, part in fields]
    most = ", ".join(f"'{one[0]}'" for one in names)
    each = ", ".join(f"({'|'.join(one)}|NULL)" for one in names)
    # As many names as fields, and each of these: none stands twice. With others they are compared.
    condition = f"""CASE WHEN LEN(JSON_KEYS($0)) = {len(fields)} AND {types} = [{most}] THEN TRUE
        ELSE REGEXP_FULL_MATCH(CAST({types} AS TEXT), '\\[{each}\\]')
            AND LIST_UNIQUE(LIST_TRANSFORM(JSON_KEYS($0), LAMBDA _key: LOWER(_key))) = LEN(JSON_KEYS($0)) END"""
    for name, element in arrays:
        others = ", ".join(f"'{one}'" for one in _JSON_TYPES if element is None or one not in _PLAIN_TYPES[element])
        condition = f"{condition} AND NOT LIST_HAS_ANY(JSON_TYPE($0, '$.{name}[*]'), [{others}])"
    is_json = f"STARTS_WITH($0, '{{') AND JSON_VALID($0) AND NOT REGEXP_MATCHES($0, '{_WITH_CARE}')"
    shape = json.dumps({name: _shape(part) for name, part in fields})
    return f"CASE WHEN {is_json} THEN {condition} ELSE FALSE END", f"JSON_TRANSFORM($0, '{shape}')"


_SPACE = "[ \\t\\r\\n]*"
_USUAL_NUMBER = "(?:0|-?[1-9][0-9]{{0,{}}})"
_USUAL_VALUES = {
    **{of: _USUAL_NUMBER.format(digits) for of, digits in ((TINYINT, 1), (SMALLINT, 3), (INT, 8), (BIGINT, 17))},
    DOUBLE: _USUAL_NUMBER.format(14) + "(?:\\.[0-9]{1,15})?", STRING: r'"[^"\\\x00-\x1f]*"', BOOLEAN: "(?:true|false)",
}  # fmt: skip


def _usual_json(kind: SqlType) -> str:
    """The form of an object that has the fields of a row of plain types, in their order, without escapes and exponents."""
    fields = (
        f'"{name}"{_SPACE}:{_SPACE}{_usual_value(part)}'
        for name, part in zip(kind.fields, kind.parts, strict=True)
        if part is not None
    )
    return f"\\{{{_SPACE}{f'{_SPACE},{_SPACE}'.join(fields)}{_SPACE}\\}}"


def _usual_value(kind: SqlType) -> str:
    if kind.name != "array":
        return f"(?:{_USUAL_VALUES[kind]}|null)"
    element = kind.parts[0]
    assert element is not None, "the type is known"
    value = _usual_value(element)
    return f"(?:\\[{_SPACE}(?:{value}(?:{_SPACE},{_SPACE}{value})*)?{_SPACE}\\]|null)"


def _shape(kind: Type) -> Any:
    assert kind is not None, "the type is known"
    return [_shape(kind.parts[0])] if kind.name == "array" else engine_words(kind).sql("duckdb")


def _plain_csv(kind: SqlType, separator: str) -> tuple[str, str]:
    """The condition that DuckDB reads the cells of a line as Spark does, and the row of their texts, in DuckDB's words."""
    sign = r"\^" if separator == "^" else f"[{separator}]"
    others = r"""[^"''\\#\r\n\x00"""
    forms = {
        **{of: f"(-?[0-9]{{1,{digits}}})?" for of, digits in ((TINYINT, 2), (SMALLINT, 4), (INT, 9), (BIGINT, 18))},
        DOUBLE: r"(-?[0-9]{1,15}(\.[0-9]{1,15})?)?", STRING: f"{others}{separator}]*", BOOLEAN: "(true|false)?",
    }  # fmt: skip
    line = sign.join(forms[part] for part in kind.parts if part is not None)
    cells = (f"NULLIF(SPLIT_PART($0, '{separator}', {place}), '')" for place in range(1, len(kind.parts) + 1))
    return f"REGEXP_FULL_MATCH($0, '{line}({sign}{others}]*)?')", f"ROW({', '.join(cells)})"


_SCHEMA: ResultOf = _schema_result
RULES = (
    FunctionRule(name="from_json", bounds=(2, 3), result=_SCHEMA, write=_parsing(_FROM_JSON, is_flat=False)),
    FunctionRule(name="from_csv", bounds=(2, 3), result=_SCHEMA, write=_parsing(_FROM_CSV, is_flat=True)),
    FunctionRule(name="to_csv", bounds=(1, 2), result=always(STRING), write=_to_csv),
    FunctionRule(name="schema_of_json", bounds=(1, 2), result=always(STRING), write=_schema_of_json),
    FunctionRule(name="schema_of_csv", bounds=(1, 2), result=always(STRING), write=_schema_of_csv),
)
ARROW = (_FROM_JSON, _FROM_CSV)
