"""What is encoded for the log is decoded as the same, of every type in every other, at the ends of every range.

What others wrote is read, or refused by name.
"""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tablestore.json.jsonrows import BadJson, rows_from_json
from tablestore.json.jsontext import rows_to_json
from tablestore.log.changemessages import BadMessage, decode_changes, encode_changes
from tablestore.types.rowkind import RowKind


def _numbers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.sampled_from([low, low + 1, -1, 0, 1, high - 1, high]) | st.integers(low, high)


TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('ab,:{}[]"\\\n\x00\U0010ffff'), max_size=5)
# How values are drawn: as what the column holds (days, microseconds since the epoch).
ATOMIC: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): _numbers(8),
    pa.int64(): _numbers(64),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(5, 2): st.decimals(-999, 999, places=2),
    pa.decimal128(38, 0): st.decimals(-(10**38) + 1, 10**38 - 1, places=0),
    pa.string(): TEXT,
    pa.binary(): st.binary(max_size=5),
    pa.date32(): _numbers(32),
    pa.time32("ms"): st.sampled_from([0, 86_399_999]) | st.integers(0, 86_399_999),
    pa.timestamp("ms"): _numbers(64),
    pa.timestamp("us"): _numbers(64),
    pa.timestamp("ns"): _numbers(64),
    pa.timestamp("us", "UTC"): _numbers(64),
    pa.timestamp("ns", "UTC"): _numbers(64),
}
KEYS = [pa.string(), pa.int64(), pa.date32(), pa.decimal128(5, 2), pa.binary()]
TYPES = st.recursive(
    st.sampled_from(list(ATOMIC)),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.lists(inner, min_size=1, max_size=3).map(lambda kinds: pa.struct([(f"f{i}", kind) for i, kind in enumerate(kinds)])),
        st.tuples(st.sampled_from(KEYS), inner).map(lambda pair: pa.map_(*pair)),
    ),
    max_leaves=4,
)


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_list(kind):
        return st.lists(_nullable(kind.value_type), max_size=3)
    if pa.types.is_map(kind):
        return st.lists(st.tuples(ATOMIC[kind.key_type], _nullable(kind.item_type)), max_size=3, unique_by=lambda pair: pair[0])
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: _nullable(field.type) for field in kind})
    return ATOMIC[kind]


def _nullable(kind: pa.DataType) -> st.SearchStrategy[Any]:
    return st.none() | _values(kind)


@st.composite
def _columns(draw: st.DrawFn) -> list[tuple[pa.DataType, list[Any]]]:
    kinds = draw(st.lists(TYPES, min_size=1, max_size=3))
    rows = draw(st.integers(1, 4))
    return [(kind, draw(st.lists(_nullable(kind), min_size=rows, max_size=rows))) for kind in kinds]


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values, which are plain numbers where ``kind`` is a time, as an array of ``kind``."""
    return _retyped(pa.array(values, _plain(kind)), kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    if not pa.types.is_temporal(kind):
        return kind
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _retyped(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same buffers under another type of the same widths."""
    children = [_retyped(array.field(i), kind.field(i).type) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    if pa.types.is_list(kind):
        children = [_retyped(array.values, kind.value_type)]
    if pa.types.is_map(kind):
        entries = pa.struct([kind.key_field, kind.item_field])
        inner = [_retyped(array.keys, kind.key_type), _retyped(array.items, kind.item_type)]
        children = [pa.StructArray.from_arrays(inner, fields=list(entries))]
    buffers = array.buffers()[: 1 if pa.types.is_struct(kind) else 2] if children else array.buffers()
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=children or None)


def _seen(array: pa.Array) -> Any:
    """All values in a form that compares: plain numbers for times, the sign of zeros, one NaN."""
    return repr(_retyped(pa.concat_arrays([array]), _plain(array.type)).to_pylist())


@pytest.mark.deep
@pytest.mark.parametrize("copies", [1, 100])
@pytest.mark.parametrize("mode", ["upsert", "all"])
@given(columns=_columns())
@example(columns=[(pa.struct([("d", pa.decimal128(5, 2)), ("t", pa.time32("ms"))]), [None, {"d": None, "t": 5}])])
@example(columns=[(pa.struct([("d", pa.date32()), ("f", pa.timestamp("us"))]), [None]), (pa.float64(), [float("nan")])])
@example(columns=[(pa.map_(pa.string(), pa.int64()), [[("a", 1)]]), (pa.date32(), [3])])
@example(columns=[(pa.timestamp("ns"), [-(2**63)]), (pa.date32(), [2_932_897])])
def test_what_is_encoded_is_decoded_as_the_same(columns: list[tuple[pa.DataType, list[Any]]], mode: str, copies: int) -> None:
    arrays = [_array(values * copies, kind) for kind, values in columns]
    rows = len(arrays[0])
    schema = pa.schema([("id", pa.int64()), *((f"c{i}", array.type) for i, array in enumerate(arrays))])
    table = pa.Table.from_arrays([pa.array(range(rows)), *arrays], schema=schema)
    # Of many copies all are rows added: those have a faster way.
    codes = [RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE, RowKind.UPDATE_BEFORE] if copies == 1 else [RowKind.INSERT]
    kinds = np.resize(np.array(codes, dtype=np.int8), rows)
    messages = encode_changes(table, kinds, key=["id"], mode=mode)  # type: ignore[arg-type]
    assert all(json.loads(value) for value in messages.values if value is not None), "every value is JSON"
    back = decode_changes(messages.keys, messages.values, schema, key=["id"], kinds=messages.kinds)
    assert back.kinds.tolist() == messages.kinds.tolist()
    whole = pa.array(messages.kinds != RowKind.DELETE) if mode == "upsert" else pa.array([True] * len(messages.kinds))
    expected = table.take(pa.array(messages.places)).filter(whole)
    found = back.rows.filter(whole)
    assert back.rows.column("id").to_pylist() == messages.places.tolist()
    for name in schema.names:
        assert found.column(name).type == schema.field(name).type
        assert _seen(found.column(name).combine_chunks()) == _seen(expected.column(name).combine_chunks())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["", "NaN", "2024-02-30", "99999-01-01", "-292277026596-01-01", "12:00:61", "24:00:00", "aa==", "=", "1e400"])
    | st.sampled_from(["2024-01-01 00:00:00", "1677-09-21 00:12:43.1Z", "99999-01-01 00:00:00", "-0001-01-01 00:00:00.1234567Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["f0", "f1", "a", ""]), inner, max_size=3),
    max_leaves=6,
)


@given(kind=TYPES, values=st.lists(JSON, min_size=1, max_size=3), whole=st.booleans())
def test_foreign_values_are_read_or_refused_by_name(kind: pa.DataType, values: list[Any], whole: bool) -> None:
    schema = pa.schema([("a", kind)])
    texts = [json.dumps(value if whole else {"a": value}).encode() for value in values]
    try:
        found = rows_from_json(texts, schema)
    except BadJson as error:
        _names_one_of(values, error)
    else:
        found.validate(full=True)
        assert found.num_rows == len(values)


def _names_one_of(texts: list[Any], error: BadJson | BadMessage) -> None:
    assert 0 <= error.position < len(texts)


PIECES = st.lists(st.sampled_from([*'{}[]",:1\n\r\t\0 ', '"a"', '"id"', "null", "\\ud800", "{}", '{"id":1}']), max_size=8)


@pytest.mark.deep
@given(text=st.binary(max_size=12) | PIECES.map(lambda pieces: "".join(pieces).encode()), mapped=st.booleans())
@example(text=b"null", mapped=False)
@example(text=b'{"id":1} null {"id":2}', mapped=False)
@example(text=b'{"a":"\\ud800"}', mapped=False)
@example(text=b'{"a":"\xff"}', mapped=False)
def test_foreign_text_is_read_or_refused_by_name(text: bytes, mapped: bool) -> None:
    good = b'{"id":1,"a":"x"}'
    extra = [("m", pa.map_(pa.string(), pa.string()))] if mapped else []
    schema = pa.schema([("id", pa.int64()), ("a", pa.string()), *extra])
    for texts in ([text], [good, text], [good, b'{"after":' + text + b',"op":"c"}']):
        for decode in (
            lambda texts=texts: rows_from_json(texts, schema),
            lambda texts=texts: decode_changes([None] * len(texts), texts, schema, key=["id"]).rows,
            lambda texts=texts: decode_changes(texts, [None] * len(texts), schema, key=["id"]).rows,
        ):
            try:
                decode().validate(full=True)
            except (BadJson, BadMessage) as error:
                _names_one_of(texts, error)


# numpy writes other years before the year 0.
@given(st.lists(st.none() | _numbers(32).map(lambda day: max(day, -719_528)), min_size=1))
def test_dates_have_the_text_that_the_calendar_gives_them(days: list[int | None]) -> None:
    array = pa.array(days, pa.int32()).cast(pa.date32())
    expected = np.datetime_as_string(array.to_numpy(zero_copy_only=False).astype("M8[D]"))
    texts = [json.loads(text)["d"] for text in rows_to_json([array], ["d"]).to_pylist()]
    assert [None if text == "NaT" else text for text in expected] == texts


def test_a_date_with_more_than_the_column_holds_is_refused() -> None:
    for text, kind in (("5881580-07-12", pa.date32()), ("2262-04-11 23:47:16.854775808", pa.timestamp("ns"))):
        with pytest.raises(BadJson):
            rows_from_json([json.dumps({"a": text}).encode()], pa.schema([("a", kind)]))
        least = rows_from_json([json.dumps({"a": text[:-1] + "0"}).encode()], pa.schema([("a", kind)]))
        assert pc.count(least.column("a")).as_py() == 1
