"""Writes casts with Spark's meaning: DuckDB rounds, and takes parts of a row by their name."""

import re
from decimal import Decimal

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.sqltypes import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    SqlType,
    Type,
    decimal,
    engine_words,
    written_type,
)
from tablestore.sql.duckdb.calls import (
    call,
    first_shown,
    in_own_text,
    is_not_null,
    refusal,
    refused_where,
    unknown_operand,
    zoned_of_local,
)
from tablestore.sql.duckdb.textforms import boolean_of_text, date_of_text, float_of_text, moment_of_text, text_of_moment

_INTEGERS = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT}
_TEXTS = {exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR}
_FORMS = (
    (_INTEGERS, re.compile(r"\s*[+-]?[0-9]+\s*"), "the digits of a whole number"),
    ({exp.DType.DECIMAL}, re.compile(r"[^_]*"), "a number without underscores"),
)
_EXPONENT = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,2}\s*")
_ALONE = {BOOLEAN: "boolean", BINARY: "binary"}
# The least double that is rounded to no FLOAT.
_LARGER_THAN_FLOATS = exp.cast(exp.Literal.number("3.4028235677973366e38"), "DOUBLE")
_MICROS = 1_000_000
# DuckDB has no later moments.
_MOST_SECONDS = 9_000_000_000_000
_NO_TEXTS = {
    "float": "a float", "double": "a float", "array": "an array", "map": "a map", "struct": "a row", "interval": "an interval",
}  # fmt: skip


def cast(node: exp.Cast, kind: Type) -> exp.Expr:
    """A cast that cuts fractions off, and accepts the texts that Spark accepts. ``kind``: the type of the value that is cast."""
    inner = node.this
    target_kind = node.to.this
    to = written_type(node.to)
    is_row = kind is not None and kind.is_nested and target_kind is not exp.DType.VARIANT
    if to == VARIANT and kind not in (VARIANT, VOID) and not is_row:
        raise refusal("the cast to a VARIANT (parse_json and to_variant_object make one)")
    if to is not None and to.is_known and (to.is_nested or to in (TIMESTAMP, decimal(10, 0))):
        # A TIMESTAMP has a time zone, and a DECIMAL without digits ten.
        node.set("to", engine_words(to))
    if isinstance(inner, exp.Literal) and inner.is_string:
        return call("ENCODE", inner) if to == BINARY else _of_literal(node, inner.name)
    if kind is None:
        raise unknown_operand(f"CAST AS {node.to.sql(dialect='spark')}", node)
    if kind in (to, VOID):
        return node
    if to == TIMESTAMP and kind == TIMESTAMP_NTZ and type(node) is exp.Cast:
        return zoned_of_local(inner)
    if to == TIMESTAMP and kind in (DATE, TIMESTAMP_NTZ):
        return first_shown(node)
    if kind.is_nested and to is not None and to.is_nested:
        return _converted(node, kind, to)
    if to is not None:
        _refuse_pair(node, kind, to)
    if to == TIMESTAMP and kind.is_number:
        return _moment_of_seconds(node, kind)
    if kind == TIMESTAMP and to is not None and to.is_number:
        return _seconds_of_moment(node, to)
    if STRING in (kind, to) and BINARY in (kind, to):
        return call("ENCODE", inner) if kind == STRING else _decoded(inner)
    if target_kind is exp.DType.FLOAT and kind == DOUBLE:
        return _narrowed(node)
    if target_kind in _INTEGERS and (kind.scale or kind.is_float):
        node.set("this", call("TRUNC", inner))
    elif target_kind is exp.DType.DECIMAL and kind.is_float:
        node.set("this", _written(inner))
    elif kind == STRING:
        return _of_text(node)
    elif target_kind in _TEXTS and kind.name in _NO_TEXTS:
        raise refusal(f"the cast of {_NO_TEXTS[kind.name]} to a text")
    elif target_kind in _TEXTS and kind.is_decimal and kind.scale == kind.precision:
        # DuckDB writes no 0 before the point of a type that has no digits there.
        return call("REPLACE", node, exp.Literal.string("."), exp.Literal.string("0."))
    elif target_kind in _TEXTS and kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return text_of_moment(node, kind)
    return node


def _refuse_pair(node: exp.Cast, kind: SqlType, to: SqlType) -> None:
    """Refuses a pair of types that Spark casts in another way, or not at all: TRY_CAST would give NULL."""
    families = {_family(kind), _family(to)}
    if None in families or len(families) == 1 or families == {"number", "boolean"}:
        return
    if families == {"number", "moment"} and TIMESTAMP in (kind, to):
        return
    raise InvalidInputError(f"CAST{in_own_text(node)}: expected a value that can be {to}, found {kind}", kind="query")


def _moment_of_seconds(node: exp.Cast, kind: SqlType) -> exp.Expr:
    """A number of seconds since 1970 as a TIMESTAMP: a fraction is cut off behind the microseconds."""
    seconds = exp.paren(node.this)
    if kind.is_integer:
        micros: exp.Expr = exp.Mul(this=exp.cast(seconds, "HUGEINT"), expression=exp.Literal.number(_MICROS))
        is_outside: exp.Expr = exp.GT(
            this=exp.Abs(this=exp.cast(seconds.copy(), "HUGEINT")), expression=exp.Literal.number(_MOST_SECONDS)
        )
    else:
        # As of a DOUBLE, and a decimal by its digits.
        number = exp.cast(seconds, "DOUBLE") if kind.is_float else seconds
        size = exp.cast(exp.Literal.number(_MICROS), "DOUBLE" if kind.is_float else "HUGEINT")
        micros = call("TRUNC", exp.Mul(this=number, expression=size))
        is_outside = exp.Not(
            this=exp.paren(
                exp.Between(
                    this=exp.cast(seconds.copy(), "DOUBLE"),
                    low=exp.Literal.number(-_MOST_SECONDS),
                    high=exp.Literal.number(_MOST_SECONDS),
                )
            )
        )
    moment = call("MAKE_TIMESTAMPTZ", exp.cast(micros, "BIGINT"))
    return refused_where(is_outside, f"the cast of a number beyond {_MOST_SECONDS} seconds to a TIMESTAMP", moment)


def _seconds_of_moment(node: exp.Cast, to: SqlType) -> exp.Expr:
    """A TIMESTAMP as its seconds since 1970: whole ones down to the one before, others with their fraction, as a DOUBLE has it."""
    micros = call("EPOCH_US", node.this)
    if to.is_integer:
        size = exp.Literal.number(_MICROS)
        rest = exp.Mod(
            this=exp.paren(exp.Add(this=exp.Mod(this=micros, expression=size), expression=size.copy())), expression=size.copy()
        )
        whole = exp.Sub(this=micros.copy(), expression=exp.paren(rest))
        node.set("this", call("DIVIDE", exp.paren(whole), size.copy()))
        return node
    seconds = exp.Div(this=exp.cast(micros, "DOUBLE"), expression=exp.cast(exp.Literal.number(_MICROS), "DOUBLE"))
    if to == DOUBLE:
        return exp.paren(seconds)
    node.set("this", exp.cast(exp.paren(seconds), "DOUBLE"))
    return cast(node, DOUBLE)


def _family(kind: SqlType) -> str | None:
    """The family of types whose values are cast to each other; None for one that is cast by other rules."""
    return "number" if kind.is_number else "moment" if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ) else _ALONE.get(kind)


def _decoded(value: exp.Expr) -> exp.Expr:
    """The text of bytes, decoded as UTF-8. Spark makes a text of any bytes, which nobody can read as one."""
    text = call("DECODE", value)
    is_none = exp.Is(this=call("TRY", text.copy()), expression=exp.null())
    return refused_where(exp.and_(is_not_null(value.copy()), is_none), "the cast of bytes that are no UTF-8 to a text", text)


def _narrowed(node: exp.Cast) -> exp.Expr:
    """A DOUBLE as a FLOAT: infinite, where it is larger than the largest."""
    number = node.this
    is_large = exp.GTE(this=exp.Abs(this=number.copy()), expression=_LARGER_THAN_FLOATS.copy())
    infinite = exp.Mul(this=exp.paren(number.copy()), expression=exp.cast(exp.Literal.string("Infinity"), "DOUBLE"))
    return exp.Case(ifs=[exp.If(this=is_large, true=exp.cast(infinite, "FLOAT"))], default=node)


def _written(number: exp.Expr) -> exp.Expr:
    """A float as the shortest decimal that stands for it, which Spark rounds: 1.005 and not 1.00499999999999989."""
    double = exp.Cast(this=number, to=exp.DataType.build("DOUBLE"))
    return exp.Cast(this=double, to=exp.DataType.build("TEXT"))


def _in_form(node: exp.Cast) -> exp.Expr | None:
    """A cast of a text to a type of which the two engines read other forms; None if that is another type."""
    to = written_type(node.to)
    if to in (TIMESTAMP, TIMESTAMP_NTZ):
        return moment_of_text(node, to)
    read = date_of_text if to == DATE else boolean_of_text if to == BOOLEAN else float_of_text if to in (FLOAT, DOUBLE) else None
    return None if read is None else read(node)


def _of_literal(node: exp.Cast, text: str) -> exp.Expr:
    if (read := _in_form(node)) is not None:
        return read
    for types, pattern, form in _FORMS:
        if node.to.this not in types:
            continue
        if (match := pattern.fullmatch(text)) is not None:
            node.set("this", exp.Literal.string(_plain_digits(match[pattern.groups])))
        elif isinstance(node, exp.TryCast):
            node.set("this", exp.null())
        else:
            raise InvalidInputError(
                f"CAST({node.this.sql()} AS {node.to.sql()}): expected {form}, found {node.this.sql()}", kind="query"
            )
    return node


def _plain_digits(text: str) -> str:
    """The text of a number without an exponent, which DuckDB reads in no decimal below one."""
    return f"{Decimal(text.strip()):f}" if _EXPONENT.fullmatch(text) else text


def _of_text(node: exp.Cast) -> exp.Expr:
    if (read := _in_form(node)) is not None:
        return read
    for types, pattern, form in _FORMS:
        if node.to.this in types:
            return _checked(node, node.to, pattern, form)
    return node


def _checked(node: exp.Expr, target_type: exp.DataType, pattern: re.Pattern[str], form: str) -> exp.Expr:
    """A value of a text in one form, of more than one that DuckDB takes. It would round ``12.7`` to a whole number.

    What a group of the pattern matches is the value. What DuckDB refuses, it refuses itself: it says where it stands.
    """
    text, form_of = node.this, exp.Literal.string(pattern.pattern)
    matches = call("REGEXP_FULL_MATCH", text.copy(), form_of)
    value = node.copy()
    if pattern.groups:
        value.set("this", call("REGEXP_EXTRACT", text.copy(), form_of.copy(), exp.Literal.number(pattern.groups)))
    if isinstance(node, exp.TryCast):
        return exp.Case(ifs=[exp.If(this=matches, true=value)])
    is_taken = exp.Not(this=exp.Is(this=exp.TryCast(this=text.copy(), to=target_type.copy()), expression=exp.null()))
    message_parts = [exp.Literal.string(f"expected {form}, found '"), text.copy(), exp.Literal.string(f"'{in_own_text(node)}")]
    refused = call("ERROR", exp.Concat(expressions=message_parts))
    return exp.Case(ifs=[exp.If(this=matches, true=value), exp.If(this=is_taken, true=refused)], default=node)


def part_by_part(node: exp.Cast) -> None:
    """A cast of a written array, map or row as casts of its parts, whose types are known better; those of a row by place."""
    value, target_type = node.this, node.to
    if type(node) is not exp.Cast or not target_type.expressions:
        return
    if target_type.this is exp.DType.ARRAY and isinstance(value, exp.Array):
        value.set("expressions", [_part(one, target_type.expressions[0]) for one in value.expressions])
    elif target_type.this is exp.DType.MAP and isinstance(value, (exp.Map, exp.VarMap)):
        for name, kind in zip(("keys", "values"), target_type.expressions, strict=True):
            if isinstance(parts := value.args.get(name), exp.Array):
                parts.set("expressions", [_part(one, kind) for one in parts.expressions])
    elif (
        target_type.this is exp.DType.STRUCT
        and isinstance(value, exp.Struct)
        and len(value.expressions) == len(target_type.expressions)
    ):
        fields = [
            exp.PropertyEQ(
                this=exp.to_identifier(field.name, quoted=True),
                expression=_part(one.expression if isinstance(one, exp.PropertyEQ) else one.unalias(), field.kind),
            )
            for one, field in zip(value.expressions, target_type.expressions, strict=True)
        ]
        value.set("expressions", fields)


def _part(value: exp.Expr, target_type: exp.DataType) -> exp.Cast:
    part = exp.Cast(this=value, to=target_type.copy())
    part_by_part(part)
    return part


def _converted(node: exp.Cast, source_type: SqlType, target_type: SqlType, depth: int = 0) -> exp.Expr:
    """A nested value as one of another type, part by part. DuckDB would round numbers, and take parts of a row by their name."""
    value = node.this
    if not source_type.is_known or not target_type.is_known:
        raise unknown_operand(f"CAST AS {target_type}", node)
    if source_type.name != target_type.name or len(source_type.parts) != len(target_type.parts):
        raise InvalidInputError(
            f"CAST{in_own_text(node)}: expected a value that can be {target_type}, found {source_type}", kind="query"
        )
    name = f"_part{depth}"
    part = exp.column(name)

    def inside(value: exp.Expr, place: int, depth: int) -> exp.Expr:
        of, to = source_type.parts[place], target_type.parts[place]
        assert of is not None and to is not None
        inner = type(node)(this=value, to=engine_words(to))
        return _converted(inner, of, to, depth) if of.is_nested and of != to else cast(inner, of)

    converted: exp.Expr
    if source_type.name == "array":
        converted = _each(value, inside(part, 0, depth + 1), name)
    elif source_type.name == "map":
        keys, values = (
            _each(call(parts, value.copy()), inside(part.copy(), place, depth + 1), name)
            for place, parts in enumerate(("MAP_KEYS", "MAP_VALUES"))
        )
        converted = call("MAP", keys, values)
    else:
        fields = [
            exp.PropertyEQ(
                this=exp.to_identifier(to, quoted=True),
                expression=inside(call("STRUCT_EXTRACT", value.copy(), exp.Literal.string(of)), place, depth),
            )
            for place, (of, to) in enumerate(zip(source_type.fields, target_type.fields, strict=True))
        ]
        converted = exp.Struct(expressions=fields)
    is_null = exp.Is(this=value.copy(), expression=exp.null())
    return exp.Cast(this=exp.Case(ifs=[exp.If(this=is_null, true=exp.null())], default=converted), to=engine_words(target_type))


def _each(value: exp.Expr, inside: exp.Expr, name: str) -> exp.Expr:
    return exp.Transform(this=value, expression=exp.Lambda(this=inside, expressions=[exp.to_identifier(name)]))
