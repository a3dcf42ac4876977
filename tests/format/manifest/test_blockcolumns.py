"""Blocks that are decoded side by side hold what fastavro reads, or are refused: rare forms, damage, and claims that would cost."""

import json
import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError
from tablestore.format.manifest.avro import AVRO_MAGIC, container_blocks, read_container
from tablestore.format.manifest.blockcolumns import IrregularBlocks, Path, decode_columns

NONCE = b"0123456789abcdef"
INNER = {
    "type": "record",
    "name": "inner",
    "fields": [
        {"name": "x", "type": "bytes"},
        {"name": "names", "type": ["null", {"type": "array", "items": "string"}]},
        {"name": "counts", "type": [{"type": "array", "items": ["long", "null"]}, "null"]},
    ],
}
UNREAD = {"type": "record", "name": "unread", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "bytes"]}]}
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "number", "type": "long"},
        {"name": "ratio", "type": "double"},
        {"name": "text", "type": ["string", "null"]},
        {"name": "inner", "type": ["null", INNER]},
        {"name": "flag", "type": "boolean"},
        {"name": "others", "type": {"type": "array", "items": UNREAD}},
        {"name": "lists", "type": {"type": "array", "items": {"type": "array", "items": "float"}}},
        {"name": "any", "type": ["null", "long", "bytes"]},
        {"name": "numbers", "type": {"type": "array", "items": "int"}},
        {"name": "last", "type": ["null", "int"]},
    ],
}
PATHS: list[Path] = [
    ("number",),
    ("text",),
    ("inner", "x"),
    ("inner", "names"),
    ("inner", "counts"),
    ("numbers",),
    ("last",),
]

LONGS = st.sampled_from([0, -1, 63, 64, -65, 2**31 - 1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=20) | st.sampled_from(["twelve bytes", "é中🦉" * 5, "x" * 70_000])
BYTES = st.binary(max_size=20)
RECORD = st.fixed_dictionaries(
    {
        "number": LONGS,
        "ratio": st.just(1.5),
        "text": st.none() | TEXTS,
        "inner": st.none()
        | st.fixed_dictionaries(
            {
                "x": BYTES,
                "names": st.none() | st.lists(TEXTS, max_size=4),
                "counts": st.none() | st.lists(st.none() | LONGS, max_size=9),
            }
        ),
        "flag": st.booleans(),
        "others": st.lists(st.fixed_dictionaries({"a": st.integers(-9, 9), "b": st.none() | BYTES}), max_size=3),
        "lists": st.lists(st.lists(st.just(0.5), max_size=3), max_size=3),
        "any": st.none() | LONGS | BYTES,
        "numbers": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
        "last": st.none() | st.integers(0, 300),
    }
)


def _long(value: int, *, spare: int = 0) -> bytes:
    """A zigzag number, with as many bytes more as ``spare`` says."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    for _ in range(min(spare, 10 - len(out))):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def _encode(schema: Any, value: Any, chance: random.Random) -> bytes:
    """A value as Avro lets it be written: arrays in any groups, with or without their sizes, numbers with bytes to spare."""
    if isinstance(schema, list):
        index = next(index for index, branch in enumerate(schema) if _is_of(branch, value))
        return _long(index, spare=chance.choice((0, 0, 1))) + _encode(schema[index], value, chance)
    match schema if isinstance(schema, str) else schema["type"]:
        case "null":
            return b""
        case "int" | "long":
            return _long(value, spare=chance.choice((0, 0, 3)))
        case "string" | "bytes":
            data = value.encode() if isinstance(value, str) else value
            return _long(len(data)) + data
        case "boolean":
            return bytes([value])
        case "float" | "double" as kind:
            return bytes(4 if kind == "float" else 8)
        case "record":
            return b"".join(_encode(field["type"], value[field["name"]], chance) for field in schema["fields"])
        case kind:
            assert kind == "array"
    out, rest = b"", list(value)
    while rest:
        size = chance.randint(1, len(rest))
        body = b"".join(_encode(schema["items"], item, chance) for item in rest[:size])
        out += _long(size) if chance.random() < 0.5 else _long(-size) + _long(len(body))
        out, rest = out + body, rest[size:]
    return out + b"\0"


def _is_of(schema: Any, value: Any) -> bool:
    kinds = {"null": type(None), "long": int, "int": int, "string": str, "bytes": bytes, "record": dict, "array": list}
    return isinstance(value, kinds[schema if isinstance(schema, str) else schema["type"]])


def _container(schema: Any, blocks: list[tuple[int, bytes]]) -> bytes:
    out = AVRO_MAGIC + _long(1) + _long(11) + b"avro.schema"
    text = json.dumps(schema).encode()
    out += _long(len(text)) + text + b"\0" + NONCE
    return out + b"".join(_long(count) + _long(len(body)) + body + NONCE for count, body in blocks)


def _decode(blocks: list[tuple[int, bytes]], schema: Any = SCHEMA, paths: list[Path] = PATHS) -> dict[Path, list[Any]]:
    cleaned = container_blocks(_container(schema, []), name="f").schema
    return {path: column.to_pylist() for path, column in decode_columns(blocks, cleaned, paths).items()}


def _expected(records: list[Any]) -> dict[Path, list[Any]]:
    """The columns of records."""
    return {path: [_value_at(record, path) for record in records] for path in PATHS}


def _value_at(record: Any, path: Path) -> Any:
    for name in path:
        record = None if record is None else record[name]
    return record


def _blocks(records: list[list[Any]], chance: random.Random) -> list[tuple[int, bytes]]:
    return [(len(block), b"".join(_encode(SCHEMA, record, chance) for record in block)) for block in records]


@settings(max_examples=20)
@given(st.lists(st.lists(RECORD, max_size=5), max_size=6), st.randoms(use_true_random=False))
def test_columns_hold_the_values_of_all_records_in_order(records: list[list[Any]], chance: random.Random) -> None:
    blocks = _blocks(records, chance)
    expected = _expected([record for block in records for record in block])
    assert _decode(blocks) == expected
    assert _expected(read_container(_container(SCHEMA, blocks), name="f")) == expected, "fastavro reads the same"


RECORDS: list[Any] = [
    {
        "number": number * 1_000_003 ** (number % 3),
        "ratio": 1.5,
        "text": None if number % 3 == 0 else "text" * number,
        "inner": None
        if number % 4 == 0
        else {"x": bytes(number), "names": ["a", "é"] if number % 2 else None, "counts": [None, number] * (number % 3)},
        "flag": True,
        "others": [{"a": 1, "b": None}, {"a": 2, "b": b"xy"}],
        "lists": [[0.5], []],
        "any": [None, 7, b"z"][number % 3],
        "numbers": [number],
        "last": number % 2 or None,
    }
    for number in range(9)
]


def _damaged(body: bytes, chance: random.Random) -> bytes:
    data = bytearray(body)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                del data[place:]
            case 1:
                data[place:place] = chance.randbytes(chance.choice((1, 2, 12)))
            case 2:
                data[place : place + 1] = chance.choice((b"\x80", b"\xff", b"\xff" * 9 + b"\x01", b"\xff" * 10 + b"\x01"))
            case 3:
                data[place : place + 1] = bytes([chance.randrange(256)])
            case _:
                data[place : place + 1] = bytes([(data[place] if place < len(data) else 0) ^ 1 << chance.randrange(8)])
    return bytes(data)


def _check_damage(rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    outcomes = [0, 0]
    for _ in range(rounds):
        blocks = _blocks([RECORDS[:2], RECORDS[2:6], RECORDS[6:]], chance)
        at = chance.randrange(len(blocks))
        blocks[at] = (blocks[at][0], _damaged(blocks[at][1], chance))
        try:
            columns = _decode(blocks)
        except IrregularBlocks:
            outcomes[0] += 1
            continue
        outcomes[1] += 1
        assert columns == _expected(read_container(_container(SCHEMA, blocks), name="f")), blocks
    assert min(outcomes) > rounds // 50, "some damage is refused, some is other values"


@pytest.mark.deep
def test_damaged_blocks_are_refused_or_hold_what_fastavro_reads() -> None:
    _check_damage(300, 30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_much_damage_in_blocks_is_refused_or_holds_what_fastavro_reads(seed: int) -> None:
    _check_damage(3_000, seed)


def _of(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


ITEMS = {"type": "array", "items": "long"}
WIDE = b"\xff" * 9 + b"\x01"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ITEMS, _long(2**40) + bytes(30)),
        (ITEMS, _long(-(2**63)) + b"\0" + bytes(30)),
        (ITEMS, _long(2**63 - 1) + bytes(30)),
        (ITEMS, WIDE + b"\0" + bytes(30)),
        (ITEMS, _long(3) + b"\0\0"),
        ({"type": "array", "items": ["null", "long"]}, _long(1) + _long(2) + b"\x02\0"),
        ({"type": "array", "items": ["null", "long"]}, _long(1) + _long(-2) + b"\x02\0"),
        ({"type": "array", "items": "string"}, _long(1) + _long(-1) + b"\0"),
        ({"type": "array", "items": "string"}, _long(1) + _long(2**62) + b"\0"),
        ("string", _long(-1) + b"x"),
        ("string", _long(2**63 - 1) + b"x"),
        ("string", _long(2**63 - 8) + b"x"),
        ("string", _long(2**31) + b"x"),
        ("string", _long(1) + b"\xff"),
        ("string", _long(3) + "\ud800".encode("utf-8", "surrogatepass")),
        ("string", b""),
        ("long", b"\x80" * 10 + b"\0"),
        ("long", b"\x80" * 40),
        ("long", b"\x80"),
        ("long", b"\0\0"),
        ("long", b""),
        (["null", "long"], _long(2) + b"\0"),
        (["null", "long"], _long(-1) + b"\0"),
        (["null", "long"], _long(2**62)),
    ],
)
def test_a_record_that_is_none_is_refused_also_between_others(kind: Any, body: bytes) -> None:
    for blocks in ([(1, body)], [(1, body), (2, bytes(2)), (1, body)], [(0, b""), (1, body), (1, b"\0")]):
        with pytest.raises(IrregularBlocks):
            _decode(blocks, _of(kind), [("a",)])


def test_a_value_does_not_continue_in_the_next_block() -> None:
    for kind in ("long", "string", "bytes", ["null", "long"]):
        with pytest.raises(IrregularBlocks):
            _decode([(1, b"\x84"), (1, b"\0" + b"\2a")], _of(kind), [("a",)])
    assert _decode([(1, b"\x84\1"), (1, b"\2")], _of("long"), [("a",)]) == {("a",): [66, 1]}


@pytest.mark.parametrize("count", [-1, 2, 2**40, 2**62])
def test_more_records_than_a_block_has_bytes_are_refused_before_memory_is_taken(count: int) -> None:
    with pytest.raises(IrregularBlocks):
        _decode([(1, b"\0"), (count, b"\0")], _of("long"), [("a",)])


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ({"type": "array", "items": ["null", "string"]}, True),
        ({"type": "array", "items": "long"}, True),
        ({"type": "array", "items": "long"}, False),
        ({"type": "array", "items": {"type": "array", "items": "long"}}, False),
    ],
)
def test_a_long_array_costs_memory_of_its_size_only(kind: Any, wanted: bool) -> None:
    # Side by side it would take a few numpy arrays for each.
    size = 1 << 17
    body = _long(size) + bytes(size) + b"\0"
    tracemalloc.start()
    try:
        with pytest.raises(IrregularBlocks):
            _decode([(1, body)], _of(kind), [("a",)] if wanted else [])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 80 * size


@pytest.mark.parametrize("kind", [{"type": "map", "values": "long"}, ["null", {"type": "map", "values": "string"}]])
def test_maps_are_left_to_others_whether_they_are_wanted_or_not(kind: Any) -> None:
    for paths in ([], [("a",)]):
        with pytest.raises(IrregularBlocks):
            _decode([(1, b"\0")], _of(kind), list(paths))


@pytest.mark.parametrize(
    "kind",
    [
        "boolean",
        "double",
        {"type": "array", "items": {"type": "array", "items": "long"}},
        {"type": "array", "items": "double"},
        {"type": "array", "items": ["null", "long", "string"]},
        ["null", "long", "string"],
    ],
)
def test_types_that_no_column_has_are_skipped_and_refused_where_they_are_wanted(kind: Any) -> None:
    body = bytes(8) if kind == "double" else b"\0"
    assert _decode([(1, body)], _of(kind), [("b",)]) == {}
    with pytest.raises(IrregularBlocks):
        _decode([(1, body)], _of(kind), [("a",)])


def test_no_blocks_have_empty_columns() -> None:
    for blocks in ([], [(0, b"")], [(0, b""), (0, b"")]):
        assert _decode(blocks) == {path: [] for path in PATHS}
    with pytest.raises(IrregularBlocks):
        _decode([(0, b"\0")])


def test_top_records_in_a_union_are_read_and_a_null_one_is_null() -> None:
    body = _long(1) + _long(5) + _long(0)
    assert _decode([(2, body)], ["null", _of("long")], [("a",)]) == {("a",): [5, None]}
    with pytest.raises(FormatError, match="null"):
        read_container(_container(["null", _of("long")], [(2, body)]), name="f")
