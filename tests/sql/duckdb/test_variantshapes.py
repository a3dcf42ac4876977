"""Variants by their shapes: a column gives what its values give one by one."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.sql.duckdb.functions.functiontable import ARROW_FUNCTIONS
from tablestore.sql.duckdb.functions.variantformat import decode, encode, parse
from tablestore.sql.duckdb.functions.variantshapes import shapes_of

_VARIANT = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
_NUMBERS = st.sampled_from(
    """
    0 -0 7 -1 127 128 -128 -129 32767 32768 2147483647 2147483648 -2147483649 999999999999999999 9223372036854775807
    9223372036854775808 1.5 -0.0 0.05 1.50 10.0 123456789.5 1234567890.5 0.000000000001 12345678901234567.8
    123456789012345678.9 1e3 1E-2 1.0e400 0.1234567890123456789 12345678901234567890123456789012345678901234567
    """.split()  # noqa: SIM905
)
_SPECIAL_TEXTS = ['""', '"a"', '"12"', '"true"', '"é"', '"\U0001f600"', '"a,b:{[1"', '"a\\"b"', '"\\ud83d\\ude00"', '"\\n"']
_LONG_TEXTS = [f'"{"x" * 63}"', f'"{"é" * 32}"', f'"{"y" * 300}"', '"\x7f"', '"1.50"', '"-"']
_TEXTS = st.sampled_from([*_SPECIAL_TEXTS, *_LONG_TEXTS])
_NO_JSON = st.sampled_from(["", " ", "{", "1 2", "01", "1.", ".5", "+1", "-", "1-2", '"', '"a" "b"', "[1,]", "NaN", "tru1e"])
_NO_JSON_IN = st.sampled_from(['{"a":1,"a":2}', '"a":1', '"a"  :1', '"\t"', "--1", "1..2", "nul", "[1 2]", '{"a" "b"}'])
_SPACES = st.sampled_from(["", "", " ", "\n", "     \t "])


def _leaf(draw: Any) -> str:
    # Mostly what has a shape.
    kinds = [_NUMBERS] * 6 + [_TEXTS] * 6 + [st.sampled_from(["null", "true", "false"])] * 2 + [_NO_JSON_IN]
    return str(draw(st.sampled_from(kinds).flatmap(lambda kind: kind)))


@st.composite
def _columns(draw: Any) -> list[str | None]:
    """Texts of a few skeletons, most of which are of many rows."""
    texts: list[str | None] = []
    for _ in range(draw(st.integers(1, 2))):
        skeleton = draw(
            st.recursive(
                st.none(),
                lambda inner: (
                    st.lists(inner, max_size=4)
                    | st.dictionaries(st.sampled_from(["a", "b", "é", "1", "", "\U0001f600", "\uffee", "a b"]), inner, max_size=4)
                ),
                max_leaves=6,
            )
        )
        space = draw(_SPACES)
        leaves = [_leaf(draw) for _ in range(24)]
        for row in range(draw(st.sampled_from([3, 13, 16]))):
            texts.append(_filled(skeleton, leaves, row, space))
    texts += draw(st.lists(st.none() | _NO_JSON, max_size=2))
    return list(draw(st.permutations(texts)))


def _filled(skeleton: Any, leaves: list[str], row: int, space: str) -> str:
    places = iter(range(100))

    def written(value: Any) -> str:
        if isinstance(value, dict):
            fields = (f"{space}{json.dumps(name, ensure_ascii=False)}{space}:{written(part)}" for name, part in value.items())
            return f"{space}{{{','.join(fields)}{space}}}"
        if isinstance(value, list):
            return f"[{space}{f'{space},'.join(map(written, value))}{space}]"
        return leaves[(next(places) * 7 + row) % len(leaves)]

    return written(skeleton)


def _outcome(name: str, *columns: pa.Array) -> Any:
    """The value of a function of one row, or its error."""
    try:
        return ARROW_FUNCTIONS[name].call(*columns).to_pylist()[0]
    except TablestoreError as error:
        return error


def _exact(text: str | None) -> Any:
    """The binary form of a text, or the error of parsing it."""
    try:
        return None if text is None else dict(zip(("value", "metadata"), encode(parse(text)), strict=True))
    except TablestoreError as error:
        return error


def _compared(name: str, texts: pa.Array, *rest: pa.Array) -> None:
    """Compares a function over all texts with the function over binary forms, one at a time."""
    over_texts = ARROW_FUNCTIONS[f"{name}_of_parse_json"].call
    first = [column[:1] for column in rest]
    variants = {text: _exact(text) for text in texts.to_pylist()}
    expected = {
        text: one if isinstance(one, TablestoreError) else _outcome(name, pa.array([one], _VARIANT), *first)
        for text, one in variants.items()
    }
    sound = [text for text in texts.to_pylist() if not isinstance(expected[text], TablestoreError)]
    result = over_texts(pa.array(sound, pa.string()), *(column[: len(sound)] for column in rest))
    result.validate(full=True)
    assert result.to_pylist() == [expected[text] for text in sound]
    for text in expected.keys() - set(sound):
        with pytest.raises(TablestoreError):
            over_texts(pa.array([text] * 13, pa.string()), *(pa.concat_arrays([column] * 13) for column in first))


_SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.deep
@given(texts=_columns())
@_SETTINGS
def test_texts_become_the_binary_forms_that_they_have_one_by_one(texts: list[str | None]) -> None:
    expected = [(text, _exact(text)) for text in texts]
    sound = [(text, one) for text, one in expected if not isinstance(one, TablestoreError)]
    result = ARROW_FUNCTIONS["parse_json"].call(pa.array([text for text, _ in sound], pa.string()))
    result.validate(full=True)
    assert result.to_pylist() == [one for _, one in sound]
    tried = [(text, one) for text, one in expected if not isinstance(one, UnsupportedError)]
    values = ARROW_FUNCTIONS["try_parse_json"].call(pa.array([text for text, _ in tried], pa.string())).to_pylist()
    assert values == [None if isinstance(one, TablestoreError) else one for _, one in tried]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(
    ("name", "rest"),
    [
        *((f"variant_as_{kind}", ("$.a", False)) for kind in ("int", "bigint", "string", "double", "boolean")),
        *((f"variant_as_{kind}", ("$", True)) for kind in ("int", "bigint", "string", "double", "boolean")),
        ("variant_as_string", ("$[1]", True)),
        ("variant_part", ("$.a",)),
        ("variant_part", ("$[0].b",)),
        ("variant_delete", ("$.a",)),
        ("variant_delete", ("$[1]",)),
        ("variant_strip", (True,)),
        ("variant_strip", (False,)),
        ("variant_set", ("$.a", encode("new"), True, True)),
        ("variant_set", ("$[2]", encode({"b": 1, "a": None}), True, False)),
        ("variant_insert", ("$.b", encode(300), True, True)),
        ("variant_array_append", ("$.a", encode(True), True, True)),
        ("variant_explode", ()),
        ("is_valid_variant", ()),
        ("is_variant_null", ()),
        ("schema_of_variant", ()),
    ],
)
@given(texts=_columns())
@settings(_SETTINGS, max_examples=6)
def test_a_function_over_texts_gives_what_it_gives_over_binary_forms(name: str, rest: tuple[Any, ...], texts: list[Any]) -> None:
    arrow = {str: pa.string(), bool: pa.bool_(), tuple: _VARIANT}
    columns = [
        pa.array(
            [dict(zip(("value", "metadata"), one, strict=True)) if isinstance(one, tuple) else one] * len(texts), arrow[type(one)]
        )
        for one in rest
    ]
    name = {"variant_array_append": "variant_append"}.get(name, name)
    _compared(name, pa.array(texts, pa.string()), *columns)


def test_offsets_are_as_wide_as_the_values_of_a_row_need() -> None:
    texts = [f'{{"a": ["{"x" * length}"], "b": {length}}}' for length in (1, 63, 64, 255, 300, 65_535, 70_000) for _ in range(2)]
    expected = [_exact(text) for text in texts]
    assert ARROW_FUNCTIONS["parse_json"].call(pa.array(texts)).to_pylist() == expected


@pytest.mark.parametrize("text", ["1.23456789012345678901234567890123456", "-12345678901234567890123456789012345.25", "9" * 38])
def test_a_decimal_of_many_digits_keeps_them(text: str) -> None:
    assert str(decode(encode(parse(text)))) == text
    columns = pa.array([text]), pa.array(["$"]), pa.array([False])
    assert ARROW_FUNCTIONS["variant_as_string_of_parse_json"].call(*columns).to_pylist() == [text]


def test_rows_that_differ_in_values_alone_have_one_shape() -> None:
    texts = [f'{{"id": {number}, "tags": ["{number}", "ü"], "ok": null}}' for number in range(100)]
    (shape,) = shapes_of(pa.array(texts))
    assert shape.rows.tolist() == list(range(100))
    assert shape.value["id"].numbers.tolist() == list(range(100))
    assert shape.value["tags"][1].to_arrow(pa.string()).to_pylist() == ["ü"] * 100
    assert [len(one.rows) for one in shapes_of(pa.array([*map(str, range(50))]))] == [50]
