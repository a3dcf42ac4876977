"""Writes functions of bits and bitmaps with Spark's meaning."""

from collections.abc import Callable

from sqlglot import exp

from tablestore.sql.binding.signatures import Types, always, as_argument
from tablestore.sql.binding.sqltypes import BIGINT, BINARY, INT, STRING, TINYINT, VOID, SqlType, Type
from tablestore.sql.duckdb.calls import failing, refused_where
from tablestore.sql.duckdb.functions.argumenttypes import binary, integer
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, from_text

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
# A bitmap of Spark's has as many bits.
_BITMAP_BITS = 32_768
_BITMAP_BYTES = _BITMAP_BITS // 8
# DuckDB combines bits of one length: bytes are filled up with zeros to the least of these that takes them.
_LENGTHS = (32, 256, _BITMAP_BYTES)


def _shifted_type(types: Types, values: object) -> Type:
    kind = types[0]
    if kind is None:
        return None
    return BIGINT if kind == BIGINT else INT


def _width(kind: SqlType) -> int:
    return 64 if kind == BIGINT else 32


def _shifted(template: str) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        kind = call.type(0)
        if not kind.is_integer and kind not in (STRING, VOID):
            raise call.mismatch(0, "a whole number")
        width = _width(kind)
        return call.as_result(
            call.text(
                template.format(mask=width - 1, size=2**width, half=2 ** (width - 1), room="HUGEINT" if width == 64 else "BIGINT"),
                call.value(0, kind if kind == BIGINT else INT),
                integer(call, 1),
            )
        )

    return write


# Of the bits of the number without its sign, those that are left: as the number that they are with one.
_RIGHT_UNSIGNED = (
    "CASE WHEN $1 & {mask} = 0 THEN CAST($0 AS HUGEINT) "
    "ELSE (CASE WHEN $0 < 0 THEN CAST($0 AS HUGEINT) + {size} ELSE CAST($0 AS HUGEINT) END) >> CAST($1 & {mask} AS HUGEINT) END"
)
_RIGHT = "$0 >> ($1 & {mask})"
# Multiplied as numbers that have room, and cut to the width.
_LEFT = (
    "((((CAST($0 AS {room}) + {size}) % {size}) % (CAST(1 AS {room}) << CAST({mask} + 1 - ($1 & {mask}) AS {room}))) "
    "* (CAST(1 AS {room}) << CAST($1 & {mask} AS {room})) + {half}) % {size} - {half}"
)


def _bit(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if not kind.is_integer and kind != VOID:
        raise call.mismatch(0, "a whole number")
    if kind == VOID:
        return call.as_result(exp.null())
    width = _BITS[kind.name]
    place = integer(call, 1)
    is_outside = call.text(f"$0 IS NOT NULL AND ($1 < 0 OR $1 >= {width})", call.value(0), place)
    bit = call.text("(CAST($0 AS BIGINT) >> CASE WHEN $1 BETWEEN 0 AND 63 THEN $1 END) & 1", call.value(0), place)
    return call.as_result(
        failing(is_outside, f"the function `{call.name}`: expected the place of a bit from 0 to {width - 1}", bit)
    )


def _aggregated(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if not kind.is_integer and kind not in (STRING, VOID):
        raise call.mismatch(0, "a whole number")
    value = call.value(0, BIGINT if kind in (STRING, VOID) else kind)
    return call.as_result(call.around(exp.Anonymous(this=call.name.upper(), expressions=[_distinct(call, value)])))


def _distinct(call: RuleCall, value: exp.Expr) -> exp.Expr:
    return exp.Distinct(expressions=[value]) if call.is_distinct else value


def _combined(aggregate: str, sign: str, *, empty: str) -> Callable[[RuleCall], exp.Expr]:
    """Writes an aggregate of bitmaps: bits of each length are combined, and then these. ``empty``: a byte of no bitmaps."""

    def write(call: RuleCall) -> exp.Expr:
        parts = []
        for shorter, length in zip((-1, *_LENGTHS), _LENGTHS, strict=False):
            is_last = length == _BITMAP_BYTES
            fits = f"OCTET_LENGTH($0) > {shorter}" + ("" if is_last else f" AND OCTET_LENGTH($0) <= {length}")
            filled = f"$0 || ARRAY_SLICE({_bytes('00', length)}, 1, {length} - OCTET_LENGTH($0))"
            if is_last:
                # Most bitmaps have this length.
                filled = f"CASE WHEN OCTET_LENGTH($0) < {length} THEN {filled} WHEN OCTET_LENGTH($0) = {length} THEN $0 "
                filled += f"ELSE ARRAY_SLICE($0, 1, {length}) END"
            filled = f"CASE WHEN {fits} THEN CAST({filled} AS BIT) END"
            bits = call.around(exp.Anonymous(this=aggregate, expressions=[from_text(filled, binary(call, 0))]))
            rest = "" if is_last else f" || {_bytes('00', _BITMAP_BYTES - length)}"
            whole = f"COALESCE(CAST(CAST($0 AS BLOB){rest} AS BIT), CAST({_bytes(empty, _BITMAP_BYTES)} AS BIT))"
            parts.append(from_text(whole, bits))
        return from_text(f"CAST($0 {sign} $1 {sign} $2 AS BLOB)", *parts)

    return write


def _bytes(octet: str, count: int) -> str:
    return f"FROM_HEX(REPEAT('{octet}', {count}))"


def _constructed(call: RuleCall) -> exp.Expr:
    """Writes a bitmap of positions. A byte of Spark's begins with its lowest bit, one of DuckDB's with its highest."""
    position = integer(call, 0, BIGINT)
    least, most = (call.around(exp.Anonymous(this=name, expressions=[position.copy()])) for name in ("MIN", "MAX"))
    turned = from_text(f"XOR($0 & {_BITMAP_BITS - 1}, 7)", position)
    bounds = (exp.Literal.number(0), exp.Literal.number(_BITMAP_BITS - 1))
    bits = call.around(exp.Anonymous(this="BITSTRING_AGG", expressions=[turned, *bounds]))
    is_outside = from_text(f"$0 < 0 OR $1 >= {_BITMAP_BITS}", least, most)
    bitmap = from_text(f"COALESCE(CAST($0 AS BLOB), {_bytes('00', _BITMAP_BYTES)})", bits)
    return refused_where(is_outside, "bitmap_construct_agg of a place beyond 32767", bitmap)


_COUNTED = "CASE WHEN OCTET_LENGTH($0) > 0 THEN BIT_COUNT(CAST($0 AS BIT)) WHEN $0 IS NOT NULL THEN 0 END"
_BUCKET = f"CASE WHEN $0 > 0 THEN 1 + ($0 - 1) // {_BITMAP_BITS} ELSE $0 // {_BITMAP_BITS} END"
_POSITION = f"CASE WHEN $0 > 0 THEN ($0 - 1) % {_BITMAP_BITS} ELSE CAST(-(CAST($0 AS HUGEINT)) % {_BITMAP_BITS} AS BIGINT) END"

RULES = (
    FunctionRule(name="shiftrightunsigned", bounds=(2, 2), result=_shifted_type, write=_shifted(_RIGHT_UNSIGNED)),
    FunctionRule(name="shiftright", bounds=(2, 2), result=_shifted_type, write=_shifted(_RIGHT)),
    FunctionRule(name="shiftleft", bounds=(2, 2), result=_shifted_type, write=_shifted(_LEFT)),
    FunctionRule(name="bit_get", aliases=("getbit",), bounds=(2, 2), result=always(TINYINT), write=_bit),
    FunctionRule(
        name="bitmap_bucket_number", bounds=(1, 1), result=always(BIGINT),
        write=lambda call: call.text(_BUCKET, integer(call, 0, BIGINT)),
    ),
    FunctionRule(
        name="bitmap_bit_position", bounds=(1, 1), result=always(BIGINT),
        write=lambda call: call.text(_POSITION, integer(call, 0, BIGINT)),
    ),
    FunctionRule(
        name="bitmap_count", bounds=(1, 1), result=always(BIGINT), write=lambda call: call.text(_COUNTED, binary(call, 0))
    ),
    *(
        FunctionRule(name=name, bounds=(1, 1), result=as_argument(), write=_aggregated, is_aggregate=True)
        for name in ("bit_and", "bit_or", "bit_xor")
    ),
    FunctionRule(
        name="bitmap_and_agg", bounds=(1, 1), result=always(BINARY), write=_combined("BIT_AND", "&", empty="FF"), is_aggregate=True
    ),
    FunctionRule(
        name="bitmap_or_agg", bounds=(1, 1), result=always(BINARY), write=_combined("BIT_OR", "|", empty="00"), is_aggregate=True
    ),
    FunctionRule(
        name="bitmap_construct_agg", bounds=(1, 1), result=always(BINARY), write=_constructed, is_aggregate=True
    ),
)  # fmt: skip
