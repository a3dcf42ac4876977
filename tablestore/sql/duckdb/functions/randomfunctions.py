"""Writes functions of random numbers.

Without a seed each run has other values, in Spark too: DuckDB's own. With a seed they are those of Spark's generator, of which
each task takes its share: they are known where a query has one row, and no FROM.
"""

import math
from collections.abc import Callable, Sequence

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.coercion import common
from tablestore.sql.binding.signatures import Types, always
from tablestore.sql.binding.sqltypes import BIGINT, DOUBLE, FLOAT, INT, STRING, VOID, SqlType, Type
from tablestore.sql.duckdb.functions.argumenttypes import written_integer
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, as_type, from_text

_OTHERS = "without a seed the values are DuckDB's; with one a query of one row, without FROM, has Spark's"
_U32, _U64 = 2**32 - 1, 2**64 - 1
_ARRAY_SEED = 0x3C074A61
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_LETTERS = 1000


class SparkRandom:
    """Spark's generator of random numbers (``XORShiftRandom``)."""

    def __init__(self, seed: int) -> None:
        data = (seed & _U64).to_bytes(8, "big")
        low = _murmur(data, _ARRAY_SEED)
        self._state = (_murmur(data, low) << 32) | low

    def bits(self, count: int) -> int:
        """The next number of some bits, as Java has it: those of 32 bits have a sign."""
        state = self._state
        state ^= (state << 21) & _U64
        state ^= state >> 35
        state ^= (state << 4) & _U64
        self._state = state
        value = state & ((1 << count) - 1)
        return value - 2**32 if value >= 2**31 else value

    def double(self) -> float:
        """A number from 0 to 1."""
        first = self.bits(26)
        return float((first << 27) + self.bits(27)) * 2.0**-53

    def gaussian(self) -> float:
        """A number of the normal distribution, by the polar method."""
        while True:
            one, other = 2 * self.double() - 1, 2 * self.double() - 1
            square = one * one + other * other
            if 0 < square < 1:
                return one * math.sqrt(-2 * math.log(square) / square)


def _murmur(data: bytes, seed: int) -> int:
    """MurmurHash3 of whole words of bytes, as Scala has it."""
    value = seed
    for at in range(0, len(data), 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0xCC9E2D51 & _U32
        word = ((word << 15) | (word >> 17)) * 0x1B873593 & _U32
        value ^= word
        value = ((value << 13) | (value >> 19)) & _U32
        value = (value * 5 + 0xE6546B64) & _U32
    value ^= len(data)
    value = (value ^ (value >> 16)) * 0x85EBCA6B & _U32
    value = (value ^ (value >> 13)) * 0xC2B2AE35 & _U32
    return value ^ (value >> 16)


def _generator(call: RuleCall, place: int) -> SparkRandom:
    """The generator of a call with a seed. Raises UnsupportedError where a query has other rows than one."""
    select = call.node.parent_select
    is_alone = (
        isinstance(select, exp.Select)
        and select.parent is None
        and not any(select.args.get(key) for key in ("from_", "from", "joins", "laterals", "group"))
        and call.node.find_ancestor(exp.Lambda) is None
        and not any(isinstance(one, (exp.UDTF, exp.Explode)) for one in select.find_all(exp.Func))
    )
    if not is_alone:
        raise call.refusal("with a seed over rows of a table, which Spark shares out among tasks,")
    kind = call.type(place)
    if kind != VOID and not kind.is_integer:
        raise call.mismatch(place, "a whole number")
    return SparkRandom(0 if kind == VOID else written_integer(call, place, "a seed"))


def _number(value: float) -> exp.Expr:
    return exp.cast(exp.Literal.string(repr(value)), "DOUBLE")


def _random(call: RuleCall) -> exp.Expr:
    return _number(_generator(call, 0).double()) if call.values else call.text("RANDOM()")


def _normal(call: RuleCall) -> exp.Expr:
    if call.values:
        return _number(_generator(call, 0).gaussian())
    # Half a turn has each sine once: the other half would bring the same, of angles that cost more.
    return call.text("SQRT(-2 * LN(1 - RANDOM())) * SIN(PI() * RANDOM() - PI() / 2)")


def _uniform_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    bounds = tuple(types[:2])
    if VOID in bounds:
        return VOID
    # FLOAT is wider than whole numbers and decimals here, where other functions take a DOUBLE.
    return FLOAT if FLOAT in bounds and DOUBLE not in bounds and None not in bounds else common(bounds)


def _uniform(call: RuleCall) -> exp.Expr:
    for place, value in enumerate(call.values):
        bound_kind = call.type(place)
        if place < 2 and not (bound_kind.is_number or bound_kind == VOID):
            raise call.mismatch(place, "a number")
        if place == 2 and bound_kind not in (INT, BIGINT, VOID):
            raise call.mismatch(place, "an INT or a BIGINT")
        if value.find(exp.Column) is not None:
            raise InvalidInputError(f"the function `uniform`: expected a constant as argument {place + 1}", kind="query")
    kind = call.result
    if kind == VOID:
        return exp.null()
    if kind is None or not (kind.is_integer or kind in (FLOAT, DOUBLE)):
        raise call.refusal(f"of {call.type(0)} and {call.type(1)}")
    random = _number(_generator(call, 2).double()) if len(call.values) > 2 else call.text("RANDOM()")
    least, most = (as_type(value, DOUBLE) for value in call.values[:2])
    text = "$0 + ($1 - $0) * $2"
    return as_type(from_text(f"TRUNC({text})" if kind.is_integer else text, least, most, random), kind)


def _random_text(call: RuleCall) -> exp.Expr:
    if len(call.values) < 2:
        raise call.refusal("without a seed")
    random, length = _generator(call, 1), written_integer(call, 0, "a length")
    if not 0 <= length <= _MOST_LETTERS:
        raise call.refusal(f"of more than {_MOST_LETTERS} letters")
    return exp.Literal.string("".join(_LETTERS[abs(int(math.fmod(random.bits(32), len(_LETTERS))))] for _ in range(length)))


def _rule(
    name: str, bounds: tuple[int, int], result: SqlType, write: Callable[[RuleCall], exp.Expr], *aliases: str
) -> FunctionRule:
    return FunctionRule(name=name, bounds=bounds, result=always(result), write=write, aliases=aliases, note=_OTHERS)


RULES = (
    _rule("rand", (0, 1), DOUBLE, _random, "random"),
    _rule("randn", (0, 1), DOUBLE, _normal),
    _rule("randstr", (1, 2), STRING, _random_text),
    FunctionRule(name="uniform", bounds=(2, 3), result=_uniform_type, write=_uniform, note=_OTHERS),
)
