"""Computes functions of one text's or of one row's bytes as Spark does, value by value."""

import base64
import unicodedata

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import refusal

_PREFIX = 4
_BOOST = 0.1
_CHARSETS = {
    "UTF-8": "utf-8", "US-ASCII": "ascii", "ISO-8859-1": "latin-1", "UTF-16": "utf-16-be", "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le", "UTF-32": "utf-32-be",
}  # fmt: skip
_MARK = b"\xfe\xff"
# The marks of the order of bytes that a text may begin with.
_MARKS = {
    "UTF-16": ((b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le")),
    "UTF-32": ((b"\x00\x00\xfe\xff", "utf-32-be"), (b"\xff\xfe\x00\x00", "utf-32-le")),
}
_ALPHABET = {letter: place for place, letter in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
_SPACES = dict.fromkeys(map(ord, " \t\r\n\f\v"))
_PADDING = ord("=")


def levenshtein(left: str, right: str) -> int:
    """The least number of characters to put in, take out or replace."""
    before = list(range(len(right) + 1))
    for place, letter in enumerate(left, 1):
        after = [place]
        for at, other in enumerate(right):
            after.append(min(after[at] + 1, before[at + 1] + 1, before[at] + (letter != other)))
        before = after
    return before[-1]


def jaro_winkler(left: str, right: str) -> float:
    """The similarity of two texts by Jaro, more for those that begin alike. Java's characters are counted: the units of UTF-16."""
    if left == right:
        return 1.0
    if not left or not right:
        return 0.0
    left, right = _units(left), _units(right)
    reach = max(max(len(left), len(right)) // 2 - 1, 0)
    matches = [False] * len(right)
    matched: list[str] = []
    for place, letter in enumerate(left):
        for at in range(max(place - reach, 0), min(place + reach + 1, len(right))):
            if not matches[at] and right[at] == letter:
                matches[at] = True
                matched.append(letter)
                break
    if not matched:
        return 0.0
    others = [letter for letter, was_matched in zip(right, matches, strict=True) if was_matched]
    moved = sum(one != other for one, other in zip(matched, others, strict=True)) / 2
    count = len(matched)
    jaro = (count / len(left) + count / len(right) + (count - moved) / count) / 3
    prefix = 0
    for one, other in zip(left[:_PREFIX], right[:_PREFIX], strict=False):
        if one != other:
            break
        prefix += 1
    return jaro + prefix * _BOOST * (1 - jaro)


def _units(text: str) -> str:
    """A text whose characters are the units of another one in UTF-16."""
    if text.isascii():
        return text
    return "".join(map(chr, memoryview(text.encode("utf-16-le")).cast("H")))


def luhn_check(digits: str) -> bool:
    """True if the check sum of digits by Luhn is right."""
    if not digits or not (digits.isascii() and digits.isdigit()):
        return False
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        total += digit if place % 2 == 0 else sum(divmod(2 * digit, 10))
    return total % 10 == 0


def mask(text: str | None, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str | None:
    """A text with another character in the place of each capital, small letter, digit and other character; None keeps them."""
    if text is None:
        return None
    by_category = {"Lu": upper, "Ll": lower, "Nd": digit}
    return "".join(_masked(letter, by_category, other) for letter in text)


def _masked(letter: str, by_category: dict[str, str | None], other: str | None) -> str:
    instead = by_category.get(unicodedata.category(letter), other)
    return letter if instead is None else instead


class MaskOfLetters(dict[int, str]):
    """Maps the number of a character to the one that :func:`mask` puts in its place, computed once for each that occurs."""

    def __init__(self, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> None:
        super().__init__()
        self._by_category = {"Lu": upper, "Ll": lower, "Nd": digit}
        self._other = other

    def __missing__(self, code: int) -> str:
        masked = self[code] = _masked(chr(code), self._by_category, self._other)
        return masked


def substring_index(text: str, by: str, count: int) -> str:
    """The part before the ``count``-th delimiter; behind the last ones if that is negative. Delimiters may overlap."""
    if not by or count == 0:
        return ""
    if count > 0:
        at = -1
        for _ in range(count):
            at = text.find(by, at + 1)
            if at < 0:
                return text
        return text[:at]
    at = len(text) - len(by) + 1
    for _ in range(-count):
        at = text.rfind(by, 0, at - 1 + len(by)) if at > 0 else -1
        if at < 0:
            return text
    return text[at + len(by) :]


def instr(text: str, part: str, start: int, occurrence: int) -> int:
    """The place, from 1, of an occurrence of a part; from the end, of those that begin before a place, if it is negative."""
    if occurrence <= 0:
        raise InvalidInputError(f"the function `instr`: expected an occurrence from 1 on, found {occurrence}", kind="query")
    if start == 0:
        return 0
    if not part:
        return 1
    if start > 0:
        at = start - 2
        for _ in range(occurrence):
            at = text.find(part, at + 1)
            if at < 0:
                return 0
        return at + 1
    at = len(text) + start + 1
    for _ in range(occurrence):
        if at <= 0:
            return 0
        at = text.rfind(part, 0, at - 1 + len(part))
        if at < 0:
            return 0
    return at + 1


def unbase64(text: str) -> bytes:
    """The bytes that a text in Base64 stands for, as Java's decoder for MIME reads them: other characters are passed over."""
    source = text.encode("latin-1", "replace")
    bits, shift, result = 0, 18, bytearray()
    place, end = 0, len(source)
    while place < end:
        byte = source[place]
        place += 1
        if byte == _PADDING:
            is_alone = shift == 6 and (place == end or source[place] != _PADDING)
            place += shift == 6 and not is_alone
            if is_alone or shift == 18:
                raise _not_base64(text)
            break
        value = _ALPHABET.get(byte)
        if value is None:
            continue
        bits |= value << shift
        shift -= 6
        if shift < 0:
            result += bits.to_bytes(3, "big")
            bits, shift = 0, 18
    if shift == 12:
        raise _not_base64(text)
    if shift == 6:
        result += bits.to_bytes(3, "big")[:1]
    elif shift == 0:
        result += bits.to_bytes(3, "big")[:2]
    if any(byte in _ALPHABET for byte in source[place:]):
        raise _not_base64(text)
    return bytes(result)


def strict_base64(text: str) -> bytes | None:
    """The bytes that a text in Base64 stands for, which may have spaces; None for any other text."""
    letters, mark, padded = text.partition("=")
    letters = letters.translate(_SPACES)
    packed = letters + mark + padded
    if padded.strip("="):
        return None
    padding = len(packed) - len(letters)
    is_whole = len(packed) % 4 == 0 if padding else len(packed) % 4 != 1
    if padding > 2 or not is_whole or any(byte not in _ALPHABET for byte in letters.encode()):
        return None
    return unbase64(packed)


def _not_base64(text: str) -> InvalidInputError:
    return InvalidInputError(f"expected a text in Base64, found {text!r:.80}", kind="query")


def from_base32(text: str) -> bytes:
    """The bytes that a text in Base32 stands for. Raises UnsupportedError for one that is not written by ``to_base32``."""
    try:
        data = base64.b32decode(text)
    except ValueError:
        data = b""
    if base64.b32encode(data).decode() != text:
        raise refusal("from_base32 of a text that to_base32 would not write")
    return data


def encode(text: str, charset: str) -> bytes:
    """A text as bytes in a character set. Raises InvalidInputError for one that Spark has not, or has no such characters."""
    encoding = _encoding(charset)
    try:
        encoded = text.encode(encoding)
    except UnicodeEncodeError as error:
        message = f"the character set {charset} has not all characters of {text!r:.80}: expected another one"
        raise InvalidInputError(message, kind="query") from error
    return _MARK + encoded if charset.upper() == "UTF-16" and text else encoded


def decode(data: bytes, charset: str) -> str:
    """Bytes of a text in a character set. Raises InvalidInputError for one that Spark has not, and for other bytes."""
    encoding = _encoding(charset)
    for mark, marked_encoding in _MARKS.get(charset.upper(), ()):
        if data.startswith(mark):
            data, encoding = data[len(mark) :], marked_encoding
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        message = f"expected bytes of the character set {charset}, found {data[:20].hex()}"
        raise InvalidInputError(message, kind="query") from error


def _encoding(charset: str) -> str:
    encoding = _CHARSETS.get(charset.upper())
    if encoding is None:
        names = ", ".join(_CHARSETS)
        raise InvalidInputError(f"expected a character set out of {names}; found {charset!r:.80}", kind="query")
    return encoding


def is_utf8(data: bytes) -> bool:
    """True if bytes are a text in UTF-8."""
    return utf8_or_none(data) is not None


def utf8_or_none(data: bytes) -> str | None:
    """The text of bytes in UTF-8; None if they are none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def utf8(data: bytes) -> str:
    """The text of bytes in UTF-8. Raises InvalidInputError if they are none."""
    text = utf8_or_none(data)
    if text is None:
        raise InvalidInputError(f"expected bytes of a text in UTF-8, found {data[:20].hex()}", kind="query")
    return text


def made_utf8(data: bytes) -> str:
    """The text of bytes in UTF-8, with U+FFFD in the place of what is none."""
    return data.decode(errors="replace")


def bytes_between(data: bytes, start: int, length: int) -> bytes:
    """Some bytes from a place on, which counts from 1, or from the end if it is negative."""
    if length <= 0:
        return b""
    begin = start - 1 if start > 0 else len(data) + start if start < 0 else 0
    return data[max(begin, 0) : max(begin + length, 0)]


def padded_left(data: bytes, length: int, padding: bytes) -> bytes:
    """Bytes behind as many others as make a length; cut to it."""
    room = max(length, 0) - len(data)
    return _filling(padding, room) + data[: max(length, 0)]


def padded_right(data: bytes, length: int, padding: bytes) -> bytes:
    """Bytes before as many others as make a length; cut to it."""
    room = max(length, 0) - len(data)
    return data[: max(length, 0)] + _filling(padding, room)


def _filling(padding: bytes, room: int) -> bytes:
    return (padding * (room // len(padding) + 1))[:room] if padding and room > 0 else b""


def hexadecimal(text: str) -> bytes | None:
    """The bytes of hexadecimal digits; None for another text."""
    if not text.isascii():
        return None
    try:
        return bytes.fromhex(text.zfill(len(text) + len(text) % 2)) if not any(map(str.isspace, text)) else None
    except ValueError:
        return None
