"""Formats of digits: what DuckDB reads by a regular expression is what the format says, and texts are as wide as it."""

import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.errors import UnsupportedError
from tablestore.sql.duckdb.functions.digitformats import DigitFormat, digit_format, plain_digits, read_digits, write_digits

_RUN = st.text("09", min_size=1, max_size=4)
_FORMS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(("", "S", "MI", "s")),
    st.sampled_from(("", "$")),
    st.lists(_RUN, max_size=3).map(",".join),
    st.sampled_from(("", ".", "D9", ".99", ".0009")),
    st.sampled_from(("", "S", "MI", "PR")),
)
_TEXTS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(("", "+", "-", "<", "<-", " ")),
    st.sampled_from(("", "$")),
    st.lists(st.text("0123456789", max_size=4), max_size=3).map(",".join),
    st.sampled_from(("", ".", ".5", ".50", ".505")),
    st.sampled_from(("", "+", "-", ">", "->", " ")),
)


def _number(text: str, form: DigitFormat) -> Decimal | None:
    try:
        return read_digits(text, form)
    except UnsupportedError:
        return None


@given(_FORMS, _TEXTS)
def test_plain_texts_are_the_numbers_of_their_digits(text_of_form: str, text: str) -> None:
    form = digit_format(text_of_form)
    if form is None or not re.fullmatch(plain_digits(form), text):
        return
    is_negative = text.count("-") % 2 != text.startswith("<")
    number = Decimal(re.sub(r"[^0-9.]", "", text))
    assert _number(text, form) == (-number if is_negative else number)


@given(_FORMS, st.lists(st.none() | st.decimals(-99999, 99999, places=2)))
def test_numbers_are_written_in_one_width_and_read_again(text_of_form: str, numbers: list[Decimal | None]) -> None:
    form = digit_format(text_of_form)
    if form is None:
        return
    texts = write_digits(pa.array([None if one is None else f"{one:f}" for one in numbers], pa.string()), form).to_pylist()
    assert [text is None for text in texts] == [number is None for number in numbers]
    assert len({len(text) for text in texts if text is not None}) <= 1
    for number, text in zip(numbers, texts, strict=True):
        if number is None or not number or "#" in text or number != round(number, form.rest):
            continue
        is_signed = form.before or form.behind
        # A whole number that is all spaces has no point to be read; two signs make a number positive again.
        if not (form.before and form.behind) and (read := _number(text.strip(" ").replace("$ ", "$"), form)) is not None:
            assert read == (number if is_signed else abs(number))


@pytest.mark.parametrize("form", ["", "S", ".", "9,", ",9", "9,,9", "9.9,9", "9$", "S9S", "MI9MI", "9.9.9", "PR9", "L9", "MIS9"])
def test_other_formats_are_none(form: str) -> None:
    assert digit_format(form) is None


@pytest.mark.parametrize("text", ["٣", "1\u20032"])
def test_digits_and_spaces_beyond_ascii_are_refused(text: str) -> None:
    form = digit_format("999")
    assert form is not None
    with pytest.raises(UnsupportedError, match="beyond ASCII"):
        read_digits(text, form)
