"""Reads formats of digits of Spark's, and numbers by them: those of ``to_number``, ``try_to_number`` and ``to_char``.

    S or MI    the place of a sign            $          the place of a dollar
    0 or 9     a digit: of a run that begins with 0 each is there, of one with 9 at most as many
    , or G     between groups of digits       . or D     the point
    S, MI, PR  a sign behind the number; PR: a negative number stands in angle brackets

All rows whose numbers have as many digits are written alike: a template is made of each such kind of rows, and the digits are put
into it all at once.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import refusal

_FORM = re.compile(
    r"(?P<before>S|MI)?(?P<currency>\$)?(?P<whole>(?:[09]+(?:[,G][09]+)*)?)(?:(?P<point>[.D])(?P<rest>[09]*))?(?P<behind>S|MI|PR)?"
)
_SEPARATOR = re.compile("[,G]")
# A digit of a template: of the whole number, and behind the point.
_WHOLE, _REST = "w", "r"
_DIGITS = frozenset("0123456789" + _WHOLE)
_SPACES = " \t\n\v\f\r\x1c\x1d\x1e\x1f"

_Numbers = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class DigitFormat:
    """A format of digits. ``groups``: the digits of each group of the whole number, and whether all have to be there.

    ``before``, ``behind``: the signs of the format; ``rest``: the number of digits behind the point.
    """

    text: str
    before: str
    has_currency: bool
    groups: tuple[tuple[int, bool], ...]
    has_point: bool
    rest: int
    behind: str

    @property
    def whole(self) -> int:
        """The number of digits before the point."""
        return sum(count for count, _ in self.groups)

    @property
    def precision(self) -> int:
        """The number of all digits."""
        return self.whole + self.rest


@cache
def digit_format(text: str) -> DigitFormat | None:
    """The format that a text is; None for one that is none to Spark."""
    parts = _FORM.fullmatch(text.upper())
    if parts is None or not (parts["whole"] or parts["rest"]) or (parts["before"] and parts["before"] == parts["behind"]):
        return None
    runs = _SEPARATOR.split(parts["whole"]) if parts["whole"] else []
    return DigitFormat(
        text=text.upper(),
        before=parts["before"] or "",
        has_currency=bool(parts["currency"]),
        groups=tuple((len(run), run.startswith("0")) for run in runs),
        has_point=bool(parts["point"]),
        rest=len(parts["rest"] or ""),
        behind=parts["behind"] or "",
    )


def read_digits(text: str, form: DigitFormat) -> Decimal | None:
    """The number that a text is by a format; None if it is none. Raises UnsupportedError for digits and spaces beyond ASCII."""
    if not text.isascii() and any(unicodedata.category(char) in ("Nd", "Zs", "Zl", "Zp") for char in text):
        raise refusal("to_number of a text with digits or spaces beyond ASCII")
    place, is_negative = 0, False
    is_open = form.behind == "PR" and text.startswith("<")
    place += is_open
    if form.before and text[place : place + 1] in _signs(form.before):
        is_negative = text[place] == "-"
        place += 1
    if form.has_currency:
        if text[place : place + 1] != "$":
            return None
        place += 1
    whole, rest = "", ""
    if form.groups:
        place, sizes, whole = _digits(text, place)
        if len(sizes) > len(form.groups) or not _fit(sizes[::-1], form.groups[::-1]):
            return None
    has_point = form.has_point and text[place : place + 1] == "."
    place += has_point
    if form.rest:
        place, sizes, rest = _digits(text, place)
        if len(sizes) > 1 or sizes[0] > form.rest:
            return None
    end = text[place : place + 1]
    if form.behind == "PR":
        if is_open != (end == ">"):
            return None
        is_negative ^= is_open
        place += is_open
    elif form.behind and end in _signs(form.behind):
        is_negative ^= end == "-"
        place += 1
    if place < len(text) or not (whole or rest):
        return None
    if rest and not has_point:
        raise refusal("to_number of a whole number by a format that begins with a point")
    number = Decimal(f"{whole or '0'}.{rest.ljust(form.rest, '0')}") if form.rest else Decimal(whole)
    return -number if is_negative and number else number


def _signs(sign: str) -> tuple[str, ...]:
    return ("+", "-") if sign == "S" else ("-",)


def _digits(text: str, place: int) -> tuple[int, list[int], str]:
    """The end of the digits, commas and spaces from a place on, the sizes of the groups, and the digits."""
    end = place
    while end < len(text) and (text[end].isdecimal() or text[end] == "," or text[end] in _SPACES):
        end += 1
    groups = [re.sub(r"\D", "", group) for group in text[place:end].split(",")]
    return end, [len(group) for group in groups], "".join(groups)


def _fit(sizes: list[int], groups: tuple[tuple[int, bool], ...]) -> bool:
    sizes = sizes + [0] * (len(groups) - len(sizes))
    return all(size == most if is_exact else size <= most for size, (most, is_exact) in zip(sizes, groups, strict=True))


def plain_digits(form: DigitFormat) -> str:
    """A regular expression of texts without spaces that are numbers by a format, of which the digits alone say the number."""
    inner, is_needed = "", False
    for place, (count, is_exact) in enumerate(form.groups):
        least = count if is_exact else 1 if place == len(form.groups) - 1 else 0
        if inner:
            inner = f"{inner}," if is_needed else f"(?:{inner},)?"
        inner += f"[0-9]{{{least},{count}}}"
        is_needed = is_needed or is_exact
    rest = f"(?:\\.[0-9]{{1,{form.rest}}})?" if form.rest and form.groups else f"\\.[0-9]{{1,{form.rest}}}" if form.rest else ""
    before = "[+-]?" if form.before == "S" else "-?" if form.before else ""
    behind = "[+-]?" if form.behind == "S" else "-?" if form.behind == "MI" else ""
    number = f"{before}{'[$]' * form.has_currency}{inner}{rest}{behind}"
    return f"(?:<{number}>|{number})" if form.behind == "PR" else number


def write_digits(numbers: pa.Array, form: DigitFormat) -> pa.Array:
    """The texts of decimals in plain digits, of as many behind the point each, by a format."""
    rows = np.flatnonzero(np.asarray(numbers.is_valid()))
    if not len(rows):
        return pa.nulls(len(numbers), pa.string())
    valid = numbers.drop_null()
    offsets = np.frombuffer(valid.buffers()[1], np.int32, len(valid) + 1, valid.offset * 4).astype(np.int64)
    data = np.frombuffer(valid.buffers()[2], np.uint8)
    starts, ends = offsets[:-1], offsets[1:]
    first = valid[0].as_py()
    scale = len(first) - first.index(".") - 1 if "." in first else 0
    width = len(_template(form, 0, is_negative=False, is_over=False))
    written = np.empty((len(valid), width), np.uint8)
    are_negative = data[starts] == ord("-")
    starts = starts + are_negative
    points = ends - scale - (scale > 0)
    # The zero of a number below one is no digit.
    starts = starts + ((points - starts == 1) & (data[starts] == ord("0")))
    lengths = points - starts
    are_over = lengths > form.whole
    for place in range(form.rest, scale):
        are_over |= data[points + 1 + place] != ord("0")
    kinds = np.where(are_over, 2 * lengths.max() + 2, 2 * lengths) + are_negative
    for kind in np.unique(kinds):
        chosen = np.flatnonzero(kinds == kind)
        one = chosen[0]
        template = _template(
            form, 0 if are_over[one] else int(lengths[one]), is_negative=bool(are_negative[one]), is_over=bool(are_over[one])
        )
        written[chosen] = _filled(template, data, starts[chosen], points[chosen], scale)
    bounds = np.zeros(len(numbers) + 1, np.int64)
    bounds[rows + 1] = width
    offsets = np.cumsum(bounds).astype(np.int32)
    is_valid = pa.array(np.asarray(numbers.is_valid()), pa.bool_()).buffers()[1]
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(written), is_valid)


def _filled(template: str, data: _Bytes, starts: _Numbers, points: _Numbers, scale: int) -> _Bytes:
    letters = np.frombuffer(template.encode(), np.uint8)
    filled = np.broadcast_to(letters, (len(starts), len(letters))).copy()
    for place, column in enumerate(np.flatnonzero(letters == ord(_WHOLE))):
        filled[:, column] = data[starts + place]
    for place, column in enumerate(np.flatnonzero(letters == ord(_REST))):
        filled[:, column] = data[points + 1 + place] if place < scale else ord("0")
    return filled


@cache
def _template(form: DigitFormat, length: int, *, is_negative: bool, is_over: bool) -> str:
    """The text of numbers of as many digits before the point, with letters in the places of digits."""
    letters = list(_block(form, is_negative=is_negative))
    if form.has_currency:
        letters.append("$")
    places = iter("#" * form.whole if is_over else " " * (form.whole - length) + _WHOLE * length)
    for place, (count, is_exact) in enumerate(form.groups):
        if place:
            _put_whole(letters, "," if letters[-1] in _DIGITS else " ")
        for letter in _next(places, count):
            _put_whole(letters, "0" if letter == " " and is_exact else letter)
    if form.has_point:
        if letters and letters[-1] == " ":
            letters[-1] = "0"
        letters.append(".")
    letters += ("#" if is_over else _REST) * form.rest
    if form.behind == "S":
        _put_sign(letters, "-" if is_negative else "+")
    elif form.behind and is_negative:
        _put_sign(letters, "-" if form.behind == "MI" else ">")
    elif form.behind:
        letters += " " if form.behind == "MI" else "  "
    _strip_point(letters)
    return "".join(letters)


def _next(letters: Iterator[str], count: int) -> Iterator[str]:
    return (next(letters) for _ in range(count))


def _block(form: DigitFormat, *, is_negative: bool) -> str:
    """The part before the number: a bracket, and a sign or a space."""
    bracket = "<" if form.behind == "PR" and is_negative else ""
    sign = "" if not form.before else "-" if is_negative else "+" if form.before == "S" else " "
    return bracket + sign


def _put_whole(letters: list[str], letter: str) -> None:
    """Puts a letter behind others; a space before the signs that they end with."""
    place = len(letters)
    while letter == " " and place and letters[place - 1] in "+-<":
        place -= 1
    letters.insert(place, letter)


def _put_sign(letters: list[str], sign: str) -> None:
    """Puts a sign behind the number: before the spaces at its end."""
    _strip_point(letters)
    place = len(letters)
    while place and letters[place - 1] == " ":
        place -= 1
    letters.insert(place, sign)


def _strip_point(letters: list[str]) -> None:
    """Puts a space in the place of a point without digits behind it."""
    place = letters.index(".") if "." in letters else -1
    if place >= 0 and "".join(letters[place + 1 : place + 2]) in ("", " "):
        letters[place] = " "


def mismatch(text: str, form: str) -> InvalidInputError:
    """The error for a text that is no number by a format."""
    return InvalidInputError(f"the function `to_number`: expected a text of the format {form}, found {text!r:.80}", kind="query")
