"""Writes functions that choose a value, ask for the session, or raise an error."""

from collections.abc import Sequence

from sqlglot import exp

from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.signatures import Types, always
from tablestore.sql.binding.sqltypes import BOOLEAN, DOUBLE, FLOAT, INT, INTERVAL, STRING, VOID, SqlType, Type
from tablestore.sql.duckdb.functions.argumenttypes import double
from tablestore.sql.duckdb.functions.arrayfunctions import common_element
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, by_text, converted, from_text


def _number(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = types[0] if types else None
    return INT if kind == VOID else kind if kind is not None and kind.is_number else None


def _number_or_null(types: Types, values: Sequence[exp.Expr]) -> Type:
    return VOID if tuple(types) == (VOID,) else _number(types, values)


def _with_zero(types: Types, values: Sequence[exp.Expr]) -> Type:
    kind = _number(types, values)
    return None if kind is None else common((kind, INT))


def _null_if_zero(call: RuleCall) -> exp.Expr:
    if call.result is None:
        raise call.refusal(f"of {call.type(0)}")
    if call.result == VOID:
        return exp.null()
    return call.as_result(call.text("CASE WHEN $0 = 0 THEN NULL ELSE $0 END"))


def _zero_if_null(call: RuleCall) -> exp.Expr:
    if call.result is None:
        raise call.refusal(f"of {call.type(0)}")
    return call.as_result(from_text("COALESCE($0, 0)", call.value(0, call.result)))


def _one_of_floats(types: Types, values: Sequence[exp.Expr]) -> Type:
    return FLOAT if set(types[:2]) == {FLOAT} else DOUBLE


def _unless_nan(call: RuleCall) -> exp.Expr:
    if call.result == FLOAT:
        return call.text("CASE WHEN ISNAN($0) THEN $1 ELSE $0 END")
    return call.text("CASE WHEN ISNAN($0) THEN $1 ELSE $0 END", double(call, 0), double(call, 1))


def _equal_null(call: RuleCall) -> exp.Expr:
    left, right = call.type(0), call.type(1)
    kinds = {left, right} - {VOID}
    if any(kind.is_nested or kind == INTERVAL for kind in kinds):
        raise call.refusal("of nested values")
    if STRING in kinds and len(kinds) == 2:
        to = common((left, right))
        if to is None:
            raise call.refusal(f"of {left} and {right}")
    else:
        to = common_element(call, left, right)
    sides = [value if to == VOID else converted(value, kind, to) for value, kind in zip(call.values, (left, right), strict=True)]
    return exp.NullSafeEQ(this=exp.paren(sides[0].copy()), expression=exp.paren(sides[1].copy()))


def type_text(kind: SqlType) -> str:
    """A type as ``typeof`` says it."""
    match kind.name:
        case "decimal":
            return f"decimal({kind.precision},{kind.scale})"
        case "array" | "map":
            return f"{kind.name}<{','.join(type_text(part) for part in kind.parts if part is not None)}>"
        case "struct":
            fields = zip(kind.fields, kind.parts, strict=True)
            return f"struct<{','.join(f'{name}:{type_text(part)}' for name, part in fields if part is not None)}>"
        case name:
            return name


def _type_of(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if "interval" in (text := type_text(kind)) or any(not name.isidentifier() for name in _fields(kind)):
        raise call.refusal(f"of {kind}")
    return exp.Literal.string(text)


def _fields(kind: SqlType) -> list[str]:
    return [*kind.fields, *(name for part in kind.parts if part is not None for name in _fields(part))]


def _asserted(call: RuleCall) -> exp.Expr:
    if call.type(0) not in (BOOLEAN, VOID):
        raise call.mismatch(0, "a BOOLEAN")
    message = call.value(1, STRING) if len(call.values) > 1 else exp.Literal.string("the condition of assert_true is not true")
    return from_text("CASE WHEN $0 THEN NULL ELSE ERROR(COALESCE($1, 'assert_true'))  END", call.value(0), message)


def _raised(call: RuleCall) -> exp.Expr:
    if call.type(0) != STRING:
        raise call.refusal("of what is no text")
    return call.text("ERROR(COALESCE($0, 'raise_error'))")


def _collation(call: RuleCall) -> exp.Expr:
    if call.type(0) != STRING or call.values[0].find(exp.Collate) is not None:
        raise call.refusal("of what is no text, or has a collation")
    return exp.Literal.string("SYSTEM.BUILTIN.UTF8_BINARY")


_OF_THE_SESSION = "DuckDB does not know the catalogs of the session; SHOW CURRENT DATABASE and SHOW CURRENT CATALOG say them"
_OF_TASKS = "it counts the tasks of Spark, of which DuckDB has none"
_OF_THE_USER = "DuckDB has no users"
RULES = (
    FunctionRule(name="nullifzero", bounds=(1, 1), result=_number_or_null, write=_null_if_zero),
    FunctionRule(name="zeroifnull", bounds=(1, 1), result=_with_zero, write=_zero_if_null),
    FunctionRule(name="nanvl", bounds=(2, 2), result=_one_of_floats, write=_unless_nan),
    FunctionRule(name="equal_null", bounds=(2, 2), result=always(BOOLEAN), write=_equal_null),
    FunctionRule(name="typeof", bounds=(1, 1), result=always(STRING), write=_type_of),
    FunctionRule(name="assert_true", bounds=(1, 2), result=always(VOID), write=_asserted),
    FunctionRule(name="raise_error", bounds=(1, 1), result=always(VOID), write=_raised),
    FunctionRule(name="uuid", bounds=(0, 0), result=always(STRING), write=by_text("CAST(UUID() AS TEXT)")),
    FunctionRule(name="collation", bounds=(1, 1), result=always(STRING), write=_collation),
    FunctionRule(name="current_timezone", bounds=(0, 0), result=always(STRING), write=by_text("CURRENT_SETTING('TimeZone')")),
)
REFUSED = {
    **dict.fromkeys(("current_catalog", "current_database", "current_schema"), _OF_THE_SESSION),
    **dict.fromkeys(("current_user", "user", "session_user"), _OF_THE_USER),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id"), _OF_TASKS),
    **dict.fromkeys(("input_file_name", "input_file_block_start", "input_file_block_length"), _OF_TASKS),
    "version": "it is that of Spark",
}
