"""Writes ``approx_top_k`` and its parts with Spark's meaning, while a sketch tracks all items: up to the number that it may track.

Items of one count come as they stand in the hash map of ``ItemsSketch`` of Apache DataSketches. Where items share a place there,
their order depends on how Spark shares out the rows, and the call is refused. An aggregate holds the values of one group in memory.
"""

import math
import struct as bytestruct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import Types
from tablestore.sql.binding.sqltypes import BIGINT, BINARY, INT, STRING, SqlType, Type, array, struct
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions.argumenttypes import written_integer
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, as_type, from_text

_COUNT, _MOST = 5, 10_000
_LIMIT = 1_000_000
_MASK = (1 << 64) - 1
_LG_LEAST = 3
_LOAD = 0.75
_GOLDEN = (math.sqrt(5) - 1) / 2
_FAMILY, _WORDS, _INT_TAG = 10, 4, 9
_WORDS_OF = {INT: "item INT NOT NULL", STRING: "item string not null"}


def _code(item: "int | str", kind: SqlType) -> int:
    """The hash code of an item in Java."""
    if isinstance(item, int):
        return item if kind == INT else _signed((item ^ (item & _MASK) >> 32) & 0xFFFFFFFF)
    code = 0
    data = item.encode("utf-16-be")
    for at in range(0, len(data), 2):
        code = code * 31 + (data[at] << 8 | data[at + 1]) & 0xFFFFFFFF
    return _signed(code)


def _signed(word: int) -> int:
    return word - 2**32 if word >= 2**31 else word


def _place(code: int) -> int:
    word = code & _MASK
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _MASK
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33


def _table(items: Iterable[Any], kind: SqlType) -> list[Any]:
    """The places of items in the map, as one after the other comes."""
    table: list[Any] = [None] * (1 << _LG_LEAST)
    for count, item in enumerate(items, 1):
        _put(table, item, kind)
        if count > _LOAD * len(table):
            grown: list[Any] = [None] * (2 * len(table))
            for one in table:
                if one is not None:
                    _put(grown, one, kind)
            table = grown
    return table


def _put(table: list[Any], item: Any, kind: SqlType) -> None:
    mask = len(table) - 1
    at = _place(_code(item, kind)) & mask
    while table[at] is not None:
        at = at + 1 & mask
    table[at] = item


def _ranked(counts: Counter[Any], kind: SqlType, count: int) -> list[tuple[Any, int]]:
    """The most frequent items. Raises UnsupportedError if their order depends on that of the rows."""
    nulls = counts.pop(None, 0)
    table = _table(counts, kind)
    ranked = _by_count(table, counts)
    numbers = [number for _, number in ranked[: count + 1]]
    if len(set(numbers)) < len(numbers) and _shares_places(table, kind):
        raise refusal("approx_top_k of items of one count, whose order depends on that of the rows,")
    ranked = ranked[:count]
    if nulls:
        at = sum(number >= nulls for _, number in ranked)
        ranked.insert(at, (None, nulls))
    return ranked[:count]


def _shares_places(table: list[Any], kind: SqlType) -> bool:
    """True if two items belong to one place, so that the one that comes first has it."""
    places = [_place(_code(item, kind)) & (len(table) - 1) for item in table if item is not None]
    return len(set(places)) < len(places)


def _by_count(table: list[Any], counts: Counter[Any]) -> list[tuple[Any, int]]:
    stride = int(len(table) * _GOLDEN) | 1
    walked = (table[place * stride & (len(table) - 1)] for place in range(len(table)))
    return sorted(((item, counts[item]) for item in walked if item is not None), key=lambda pair: -pair[1])


def _counted(values: list[Any] | None, most: int) -> Counter[Any]:
    counts = Counter(values or ())
    if len(counts) - (None in counts) > most:
        raise refusal(f"approx_top_k of more different items than it tracks ({most})")
    return counts


def _rows(pairs: list[tuple[Any, int]]) -> list[dict[str, Any]]:
    return [{"item": item, "count": number} for item, number in pairs]


def _written(counts: Counter[Any], kind: SqlType, most: int) -> bytes:
    """The bytes of the sketch, and the count of NULLs behind them."""
    nulls = counts.pop(None, 0)
    lg_most = math.ceil(math.log2(math.ceil(most / _LOAD)))
    table = _table(counts, kind)
    items = [one for one in table if one is not None]
    tail = nulls.to_bytes(8, "big")
    if nulls:
        raise refusal("approx_top_k_accumulate of NULL")
    if not items:
        raise refusal("approx_top_k_accumulate of no items")
    head = bytes([_WORDS, 1, _FAMILY, lg_most, len(table).bit_length() - 1, 0, 0, 0])
    head += bytestruct.pack("<QQQ", len(items), sum(counts.values()), 0)
    texts = (bytes([_INT_TAG]) + bytestruct.pack("<i", one) if kind == INT else _text_bytes(one) for one in items)
    return head + b"".join(bytestruct.pack("<Q", counts[one]) for one in items) + b"".join(texts) + tail


def _text_bytes(text: str) -> bytes:
    data = text.encode()
    return bytestruct.pack("<I", len(data)) + data


def _read(data: bytes, kind: SqlType) -> Counter[Any]:
    """The counts of a sketch that tracks all items."""
    try:
        words, _, family = data[:3]
        count, _, offset = bytestruct.unpack_from("<QQQ", data, 8)
        if words != _WORDS or family != _FAMILY or offset or any(data[-8:]):
            raise refusal("functions of a sketch of frequent items that does not track all of them")
        numbers = bytestruct.unpack_from(f"<{count}Q", data, 32)
        at = 32 + 8 * count
        counts: Counter[Any] = Counter()
        for number in numbers:
            if kind == INT:
                (item,) = bytestruct.unpack_from("<xi", data, at)
                at += 5
            else:
                (size,) = bytestruct.unpack_from("<I", data, at)
                item = data[at + 4 : at + 4 + size].decode()
                at += 4 + size
            counts[item] = number
    except (bytestruct.error, ValueError) as error:
        raise InvalidInputError("expected the bytes of a sketch, as approx_top_k_accumulate makes them", kind="query") from error
    return counts


def _combined(sketches: list[bytes | None] | None, kind: SqlType, most: int) -> bytes:
    counts: Counter[Any] = Counter()
    for data in sketches or ():
        if data is not None:
            counts.update(_read(data, kind))
    if len(counts) > most:
        raise refusal(f"approx_top_k_combine of more different items than it tracks ({most})")
    return _written(counts, kind, most)


def _over(call: Callable[..., Any], result: pa.DataType) -> Callable[..., pa.Array]:
    def over_columns(*columns: pa.Array) -> pa.Array:
        return pa.array([call(*row) for row in zip(*(column.to_pylist() for column in columns), strict=True)], result)

    return over_columns


def _list_of(kind: SqlType) -> SqlType:
    return array(struct(item=kind, count=BIGINT))


_ITEMS = {INT: pa.int32(), BIGINT: pa.int64(), STRING: pa.string()}


def _top(kind: SqlType) -> ArrowFunction:
    rows = pa.list_(pa.struct([("item", _ITEMS[kind]), ("count", pa.int64())]))

    def of(values: list[Any] | None, count: int, most: int) -> list[dict[str, Any]]:
        return _rows(_ranked(_counted(values, most), kind, count))

    return ArrowFunction(
        name=f"approx_top_k_{kind.name}", arguments=(array(kind), INT, INT), result=_list_of(kind), call=_over(of, rows)
    )


def _estimate(kind: SqlType) -> ArrowFunction:
    rows = pa.list_(pa.struct([("item", _ITEMS[kind]), ("count", pa.int64())]))

    def of(data: bytes | None, count: int) -> list[dict[str, Any]] | None:
        return None if data is None else _rows(_ranked(_read(data, kind), kind, count))

    return ArrowFunction(
        name=f"approx_top_k_estimate_{kind.name}", arguments=(BINARY, INT), result=_list_of(kind), call=_over(of, rows)
    )


def _accumulate(kind: SqlType) -> ArrowFunction:
    def of(values: list[Any] | None, most: int) -> bytes:
        return _written(_counted(values, most), kind, most)

    name = f"approx_top_k_accumulate_{kind.name}"
    return ArrowFunction(name=name, arguments=(array(kind), INT), result=BINARY, call=_over(of, pa.binary()))


def _combine(kind: SqlType) -> ArrowFunction:
    def of(sketches: list[bytes | None] | None, most: int) -> bytes:
        return _combined(sketches, kind, most)

    name = f"approx_top_k_combine_{kind.name}"
    return ArrowFunction(name=name, arguments=(array(BINARY), INT), result=BINARY, call=_over(of, pa.binary()))


_TOPS = {kind: _top(kind) for kind in _ITEMS}
_ESTIMATES, _ACCUMULATES, _COMBINES = ({kind: make(kind) for kind in _WORDS_OF} for make in (_estimate, _accumulate, _combine))


def _state(kind: Type) -> SqlType:
    return struct(sketch=BINARY, maxItemsTracked=INT, itemDataType=kind, itemDataTypeDDL=STRING)


def _item(kind: Type) -> Type:
    """The type of the items of a state; None for what is no state."""
    return kind.parts[2] if kind is not None and kind.name == "struct" and kind == _state(kind.field("itemDataType")) else None


def _top_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    return None if not types or types[0] is None else _list_of(types[0])


def _state_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    return None if not types or types[0] is None else _state(types[0])


def _estimate_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    item = _item(types[0]) if types else None
    return None if item is None else _list_of(item)


def _combine_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    return types[0] if types else None


def _number(call: RuleCall, place: int, default: int, least: int) -> int:
    number = written_integer(call, place, "a number") if len(call.values) > place else default
    if not least <= number <= _LIMIT:
        raise call.mismatch(place, f"a number from {least} to {_LIMIT}")
    return number


def _listed(call: RuleCall, value: exp.Expr) -> exp.Expr:
    listed = exp.Distinct(expressions=[value]) if call.is_distinct else value
    return call.around(exp.Anonymous(this="LIST", expressions=[listed]))


def _kind(call: RuleCall, functions: dict[SqlType, ArrowFunction]) -> ArrowFunction:
    kind = call.type(0)
    if kind not in functions:
        raise call.refusal(f"of {kind}")
    return functions[kind]


def _top_of(call: RuleCall) -> exp.Expr:
    count = _number(call, 1, _COUNT, 1)
    most = _number(call, 2, _MOST, count)
    numbers = exp.Literal.number(count), exp.Literal.number(most)
    return _kind(call, _TOPS).of(_listed(call, call.value(0)), *numbers)


def _state_of(call: RuleCall, kind: SqlType, sketch: exp.Expr, most: int) -> exp.Expr:
    row = from_text(
        f"{{'sketch': $0, 'maxItemsTracked': {most}, 'itemDataType': NULL, 'itemDataTypeDDL': '{_WORDS_OF[kind]}'}}", sketch
    )
    return as_type(row, _state(kind))


def _accumulated(call: RuleCall) -> exp.Expr:
    most = _number(call, 1, _MOST, 1)
    sketch = _kind(call, _ACCUMULATES).of(_listed(call, call.value(0)), exp.Literal.number(most))
    return _state_of(call, call.type(0), sketch, most)


def _item_of(call: RuleCall) -> SqlType:
    item = _item(call.type(0))
    if item not in _WORDS_OF:
        raise call.refusal(f"of {call.type(0)}")
    return item


def _sketch(call: RuleCall) -> exp.Expr:
    return exp.Anonymous(this="STRUCT_EXTRACT", expressions=[call.value(0), exp.Literal.string("sketch")])


def _estimated(call: RuleCall) -> exp.Expr:
    return _ESTIMATES[_item_of(call)].of(_sketch(call), exp.Literal.number(_number(call, 1, _COUNT, 1)))


def _combined_states(call: RuleCall) -> exp.Expr:
    item = _item_of(call)
    if len(call.values) < 2 or call.is_distinct:
        raise call.refusal("without the number of items that it tracks, or with DISTINCT")
    most = _number(call, 1, _MOST, 1)
    return _state_of(call, item, _COMBINES[item].of(_listed(call, _sketch(call)), exp.Literal.number(most)), most)


RULES = (
    FunctionRule(name="approx_top_k", bounds=(1, 3), result=_top_type, write=_top_of, is_aggregate=True),
    FunctionRule(name="approx_top_k_accumulate", bounds=(1, 2), result=_state_type, write=_accumulated, is_aggregate=True),
    FunctionRule(name="approx_top_k_combine", bounds=(1, 2), result=_combine_type, write=_combined_states, is_aggregate=True),
    FunctionRule(name="approx_top_k_estimate", bounds=(1, 2), result=_estimate_type, write=_estimated),
)
ARROW = (*_TOPS.values(), *_ESTIMATES.values(), *_ACCUMULATES.values(), *_COMBINES.values())
