"""Writes functions of JSON with Spark's meaning, where DuckDB's parser and Jackson read a text alike.

A text that is no JSON to DuckDB may be one to Jackson, up to where it has read: it allows single quotes, and text behind the value.
"""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from sqlglot import exp

from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    VARIANT,
    VOID,
    SqlType,
    array,
)
from tablestore.sql.duckdb.calls import refused_where
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, as_type, from_text
from tablestore.sql.duckdb.functions.variantcolumns import each
from tablestore.sql.duckdb.functions.variantformat import json_of


def _of_kind(kind: str, end: str, text: str, result: SqlType) -> Callable[[RuleCall], exp.Expr]:
    """Writes a function of JSON of one kind; NULL for any other one."""

    def write(call: RuleCall) -> exp.Expr:
        if call.type(0) not in (STRING, VOID):
            raise call.mismatch(0, "a text")
        json_text = call.value(0, STRING)
        is_broken = from_text(f"NOT JSON_VALID($0) AND REGEXP_MATCHES($0, '[''{end}]')", json_text)
        value = from_text(f"CASE WHEN JSON_VALID($0) AND JSON_TYPE($0) = '{kind}' THEN {text} END", json_text)
        return as_type(refused_where(is_broken, f"{call.name} of JSON that is not well-formed", value), result)

    return write


_OF_VARIANT = ArrowFunction(name="json_of_variant", arguments=(VARIANT,), result=STRING, call=each(json_of, pa.string()))
# Java writes decimals of as many digits behind the point without an exponent.
_MOST_PLAIN = 6
_WHOLE = (TINYINT, SMALLINT, INT, BIGINT)


def _to_json(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if kind == VARIANT:
        return _OF_VARIANT.of(call.value(0))
    if not kind.is_nested:
        raise call.mismatch(0, "a row, an array or a map")
    return json_text(call, call.value(0), kind)


def json_text(call: RuleCall, value: exp.Expr, kind: SqlType, *, keeps_nulls: bool = False, depth: int = 0) -> exp.Expr:
    """A value as JSON: NULL for a NULL. An array and a map have parts that are NULL, a row if ``keeps_nulls``."""
    write = partial(json_text, call, keeps_nulls=keeps_nulls, depth=depth + 1)
    if kind in _WHOLE or kind == BOOLEAN:
        return exp.cast(value, "TEXT")
    if kind == STRING:
        return from_text("CAST(TO_JSON($0) AS TEXT)", value)
    if kind == VOID and not keeps_nulls:
        return exp.cast(exp.null(), "TEXT")
    if kind.is_decimal and not keeps_nulls:
        written: exp.Expr = exp.cast(value, "TEXT")
        if kind.scale == kind.precision:
            # DuckDB writes no 0 before the point of a type that has no digits there.
            written = from_text("REPLACE($0, '.', '0.')", written)
        if kind.scale <= _MOST_PLAIN:
            return written
        is_small = from_text(f"ABS($0) < CAST('1e-{_MOST_PLAIN}' AS DECIMAL(38, {kind.scale}))", value.copy())
        return refused_where(is_small, "to_json of decimals that Java writes with an exponent", written)
    if kind == BINARY and not keeps_nulls:
        return from_text("'\"' || TO_BASE64($0) || '\"'", value)
    if kind == DATE and not keeps_nulls:
        is_far = from_text("$0 < DATE '0001-01-01' OR $0 > DATE '9999-12-31'", value)
        return refused_where(is_far, "to_json of years beyond 9999", from_text("'\"' || CAST($0 AS TEXT) || '\"'", value))
    if kind == VARIANT:
        raise call.refusal("of a VARIANT")
    if kind.name == "array" and kind.parts[0] is not None:
        name = f"_element{depth}"
        inner = from_text("COALESCE($0, 'null')", write(exp.column(name), kind.parts[0]))
        elements: exp.Expr = exp.Anonymous(
            this="LIST_TRANSFORM", expressions=[value, exp.Lambda(this=inner, expressions=[exp.to_identifier(name)])]
        )
        text = "CASE WHEN $0 IS NOT NULL THEN '[' || COALESCE(ARRAY_TO_STRING($0, ','), '') || ']' END"
        return from_text(text, elements)
    if kind.name == "map" and kind.parts[0] == STRING and kind.parts[1] is not None:
        name = f"_entry{depth}"
        entry = write(_part(name, "value"), kind.parts[1])
        inner = from_text("CAST(TO_JSON($0) AS TEXT) || ':' || COALESCE($1, 'null')", _part(name, "key"), entry)
        elements = from_text("MAP_ENTRIES($0)", value)
        each = exp.Anonymous(
            this="LIST_TRANSFORM", expressions=[elements, exp.Lambda(this=inner, expressions=[exp.to_identifier(name)])]
        )
        return from_text("CASE WHEN $0 IS NOT NULL THEN '{' || COALESCE(ARRAY_TO_STRING($0, ','), '') || '}' END", each)
    if kind.name == "struct":
        parts = []
        for name, part in zip(kind.fields, kind.parts, strict=True):
            assert part is not None, "the type of an argument is known"
            field = exp.Anonymous(this="STRUCT_EXTRACT", expressions=[value.copy(), exp.Literal.string(name)])
            key = exp.Literal.string(f"{_key(call, name)}:")
            parts.append(from_text("$0 || COALESCE($1, 'null')" if keeps_nulls else "$0 || $1", key, write(field, part)))
        joined = exp.Anonymous(this="CONCAT_WS", expressions=[exp.Literal.string(","), *parts])
        return from_text("CASE WHEN $0 IS NOT NULL THEN '{' || $1 || '}' END", value, joined)
    raise call.refusal(f"of {kind}")


def _part(name: str, part: str) -> exp.Expr:
    return exp.Anonymous(this="STRUCT_EXTRACT", expressions=[exp.column(name), exp.Literal.string(part)])


def _key(call: RuleCall, name: str) -> str:
    if any(char in '"\\' or ord(char) < 0x20 for char in name):
        raise call.refusal("of a part whose name has quotes")
    return f'"{name}"'


ARROW = (_OF_VARIANT,)
_FORMS = "a type and options of a parser of Spark's"
RULES = (
    FunctionRule(
        name="json_array_length",
        bounds=(1, 1),
        result=always(INT),
        write=_of_kind("ARRAY", "\\]", "JSON_ARRAY_LENGTH($0)", INT),
    ),
    FunctionRule(
        name="json_object_keys",
        bounds=(1, 1),
        result=always(array(STRING)),
        write=_of_kind("OBJECT", "}", "JSON_KEYS($0)", array(STRING)),
    ),
    FunctionRule(name="to_json", bounds=(1, 1), result=always(STRING), write=_to_json),
)
REFUSED = {
    "from_xml": _FORMS,
    "schema_of_xml": "what a parser of Spark's takes a value for",
    **dict.fromkeys(("from_avro", "to_avro", "schema_of_avro"), "Spark has it with its package spark-avro only"),
    **dict.fromkeys(
        ("from_protobuf", "to_protobuf"), "Spark has it with its package spark-protobuf and a file of descriptors only"
    ),
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), "it calls a method of Java"),
    "python_worker_logs": "there are no Python workers of Spark's",
    "count_min_sketch": "its bytes hang on the generator of numbers of Java",
    **dict.fromkeys(("collate", "collations"), "texts have no collation but UTF8_BINARY"),
    "sql_keywords": "the words of Spark's grammar are Spark's",
}
