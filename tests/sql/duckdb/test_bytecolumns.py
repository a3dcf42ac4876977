"""Functions of texts and bytes over columns give what their definitions give of each value."""

import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.errors import UnsupportedError
from tablestore.sql.duckdb.functions import bytecolumns, textvalues
from tablestore.sql.duckdb.functions.textfunctions import ARROW

_SOUNDEX = "01230127022455012623017202"
_NOT_CODED, _MUTE = "0", "7"
_CODE_LENGTH = 4
_FUNCTIONS = {function.name: function for function in ARROW}
_LETTERS = st.text(st.sampled_from("RobeTchwHkPz aé1-"), max_size=9) | st.text(max_size=4)


def soundex(text: str) -> str:
    """The code of how a word sounds; the text itself if it does not begin with a letter of ASCII."""
    encoded = text.encode().upper()
    if not encoded or not encoded[:1].isalpha():
        return text
    code = [chr(encoded[0])]
    last = _SOUNDEX[encoded[0] - ord("A")]
    for byte in encoded[1:]:
        if not ord("A") <= byte <= ord("Z"):
            last = _NOT_CODED
            continue
        sound = _SOUNDEX[byte - ord("A")]
        if sound == _MUTE:
            continue
        if sound not in (_NOT_CODED, last):
            code.append(sound)
            if len(code) == _CODE_LENGTH:
                break
        last = sound
    return "".join(code).ljust(_CODE_LENGTH, _NOT_CODED)


def _over(call: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return [None if value is None else call(value) for value in values]


@given(st.lists(st.none() | _LETTERS), st.integers(0, 3))
def test_soundex_of_a_column_is_that_of_each_word(words: list[str | None], cut: int) -> None:
    assert bytecolumns.soundex(pa.array(words, pa.string())[cut:]).to_pylist() == _over(soundex, words[cut:])


@given(st.lists(st.none() | st.binary(max_size=12)), st.integers(0, 3))
def test_base32_of_a_column_is_that_of_each_value(values: list[bytes | None], cut: int) -> None:
    texts = _over(lambda data: base64.b32encode(data).decode(), values[cut:])
    assert bytecolumns.to_base32(pa.array(values, pa.binary())[cut:]).to_pylist() == texts
    assert _FUNCTIONS["from_base32"].call(pa.array(texts, pa.string())).to_pylist() == values[cut:]


@given(st.lists(st.none() | st.text(st.sampled_from("ABYZ27=M"), max_size=16), min_size=1, max_size=3))
def test_texts_in_base32_are_read_or_refused_one_by_one(texts: list[str | None]) -> None:
    try:
        values = _over(textvalues.from_base32, texts)
    except UnsupportedError:
        with pytest.raises(UnsupportedError, match="would not write"):
            _FUNCTIONS["from_base32"].call(pa.array(texts, pa.string()))
        return
    assert _FUNCTIONS["from_base32"].call(pa.array(texts, pa.string())).to_pylist() == values


@given(
    st.lists(st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=6)),
    st.sampled_from(("UTF-16", "utf-16BE", "UTF-16LE")),
)
def test_utf16_of_a_column_is_that_of_each_text(texts: list[str | None], charset: str) -> None:
    assert bytecolumns.encode_utf16(pa.array(texts, pa.string()), charset).to_pylist() == _over(
        lambda text: textvalues.encode(text, charset), texts
    )
