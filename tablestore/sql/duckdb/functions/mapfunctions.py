"""Writes functions of maps with Spark's meaning: entries keep their order, and neither two equal keys nor a NULL are keys."""

import re
from collections.abc import Sequence

from sqlglot import exp

from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.signatures import Types, always
from tablestore.sql.binding.sqltypes import BOOLEAN, STRING, VOID, SqlType, Type, array, map_of, struct_of
from tablestore.sql.duckdb.calls import call
from tablestore.sql.duckdb.functions.arrayfunctions import common_element, element_of
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall, from_text
from tablestore.sql.duckdb.functions.lambdafunctions import map_parts, new_map

# Texts that mean themselves as a regular expression of Java's.
_PLAIN = re.compile(r"[\w\s,:;=&#@!%~\"'<>/-]+")


def _of_arrays(types: Types, values: Sequence[exp.Expr]) -> Type:
    keys, items = (kind.parts[0] if kind is not None and kind.name == "array" else None for kind in types[:2])
    return map_of(keys, items)


def _key(call: RuleCall, key: SqlType) -> SqlType:
    """A type of keys. Raises UnsupportedError for keys whose equality is another one in DuckDB."""
    if key.is_nested or key == VOID:
        raise call.refusal(f"with keys of the type {key}")
    return key


def _from_arrays(call_: RuleCall) -> exp.Expr:
    key, _ = _key(call_, element_of(call_)), element_of(call_, 1)
    text = f"""CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL WHEN LEN($0) <> LEN($1)
        THEN ERROR('{call_.name}: expected as many keys as values, found ' || LEN($0) || ' and ' || LEN($1)) ELSE $0 END"""
    values = call_.value(1)
    return call_.as_result(from_text("CASE WHEN $1 IS NOT NULL THEN $0 END", new_map(call_.text(text), values, key), values.copy()))


def _entry(call: RuleCall) -> tuple[SqlType, SqlType]:
    row = element_of(call)
    if row.name != "struct" or len(row.parts) != 2:
        raise call.mismatch(0, "an array of rows of two values")
    key, value = row.parts
    assert key is not None and value is not None, "the type of an argument is known"
    return _key(call, key), value


def _from_entries(call_: RuleCall) -> exp.Expr:
    key, _ = _entry(call_)
    row = call_.type(0).parts[0]
    assert row is not None, "the type of an argument is known"
    entries = call_.text("CASE WHEN LEN($0) = LEN(LIST_FILTER($0, LAMBDA _row: _row IS NOT NULL)) THEN $0 END")
    parts = [
        call("LIST_TRANSFORM", entries.copy(), exp.Lambda(this=part, expressions=[exp.to_identifier("_row")]))
        for part in (call("STRUCT_EXTRACT", exp.column("_row"), exp.Literal.string(name)) for name in row.fields)
    ]
    return call_.as_result(new_map(parts[0], parts[1], key))


def _from_entries_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0] if types else None
    row = kind.parts[0] if kind is not None and kind.name == "array" else None
    return map_of(*row.parts) if row is not None and row.name == "struct" and len(row.parts) == 2 else None


def _concatenated(call_: RuleCall) -> exp.Expr:
    parts = [map_parts(call_, place) for place in range(len(call_.values))]
    key = _key(call_, common_element(call_, *(key for key, _ in parts)))
    kind = map_of(key, common_element(call_, *(value for _, value in parts)))
    maps = [call_.value(place, kind) for place in range(len(parts))]
    places = [f"${place}" for place in range(len(maps))]
    nulls = " OR ".join(f"{place} IS NULL" for place in places)
    keys, values = (", ".join(f"{name}({place})" for place in places) for name in ("MAP_KEYS", "MAP_VALUES"))
    text = f"CASE WHEN {nulls} THEN NULL ELSE MAP(FLATTEN([{keys}]), FLATTEN([{values}])) END"
    return call_.as_result(from_text(text, *maps))


def _entries_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0] if types else None
    return array(struct_of(("key", "value"), kind.parts)) if kind is not None and kind.name == "map" else None


def _entries(call_: RuleCall) -> exp.Expr:
    map_parts(call_)
    return call("MAP_ENTRIES", call_.value(0))


def _contains_key(call_: RuleCall) -> exp.Expr:
    key, _ = map_parts(call_)
    if call_.type(1) == VOID or key.is_nested or common_element(call_, key, call_.type(1)) != key:
        raise call_.refusal("of a key of another type than those of the map")
    text = "CASE WHEN $0 IS NULL OR $1 IS NULL THEN NULL ELSE LIST_POSITION(MAP_KEYS($0), $1) IS NOT NULL END"
    return from_text(text, call_.value(0), call_.value(1, key))


def _from_text(call_: RuleCall) -> exp.Expr:
    delimiters = [*call_.values[1:], exp.Literal.string(","), exp.Literal.string(":")]
    if len(call_.values) == 2:
        delimiters[1] = exp.Literal.string(":")
    if not all(isinstance(one, exp.Literal) and one.is_string and _PLAIN.fullmatch(one.name) for one in delimiters[:2]):
        raise call_.refusal("by a text that is computed, or is a regular expression")
    text = """LIST_TRANSFORM(STRING_SPLIT($0, $1), LAMBDA _pair: CASE WHEN STRPOS(_pair, $2) > 0
        THEN {'key': SUBSTRING(_pair, 1, STRPOS(_pair, $2) - 1), 'value': SUBSTRING(_pair, STRPOS(_pair, $2) + LENGTH($2))}
        ELSE {'key': _pair, 'value': NULL} END)"""
    return call_.as_result(
        from_text(
            "CASE WHEN $0 IS NOT NULL THEN MAP_FROM_ENTRIES($0) END", from_text(text, call_.value(0, STRING), *delimiters[:2])
        )
    )


RULES = (
    FunctionRule(name="map_from_arrays", bounds=(2, 2), result=_of_arrays, write=_from_arrays),
    FunctionRule(name="map_from_entries", bounds=(1, 1), result=_from_entries_type, write=_from_entries),
    FunctionRule(name="map_concat", bounds=(1, MANY), result=lambda types, values: common(types), write=_concatenated),
    FunctionRule(name="map_entries", bounds=(1, 1), result=_entries_type, write=_entries),
    FunctionRule(name="map_contains_key", bounds=(2, 2), result=always(BOOLEAN), write=_contains_key),
    FunctionRule(name="str_to_map", bounds=(1, 3), result=always(map_of(STRING, STRING)), write=_from_text),
)
