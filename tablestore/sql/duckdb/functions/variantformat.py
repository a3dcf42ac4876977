"""Reads and writes the binary form of a VARIANT value of Spark's: JSON as bytes, beside the names of all fields.

    metadata   01, the number of names, where each begins and the last ends, the names
    value      a byte whose lower two bits say what it is (0 plain, 1 short text, 2 object, 3 array), and what belongs to it

Only what JSON has is read: NULL, booleans, whole numbers, decimals, doubles, texts, objects and arrays. A part of an object lies in
the order in which it was written; that of its fields is by their names. Source: the Variant specification of Apache Parquet.
"""

import json
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Context, Decimal
from typing import Any, TypeAlias

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.duckdb.calls import refusal

Variant: TypeAlias = tuple[bytes, bytes]
"""The value and the metadata."""
_NULL, _TRUE, _FALSE, _DOUBLE, LONG_TEXT = 0, 1, 2, 7, 16
_OBJECT, _ARRAY = 2, 3
INTEGERS = ((3, 1), (4, 2), (5, 4), (6, 8))
DECIMALS = ((8, 4, 9), (9, 8, 18), (10, 16, 38))
_MOST_DIGITS = 38
EXACT = Context(prec=2 * _MOST_DIGITS)
"""Computes with decimals without loss, which Python's own context does up to 28 digits."""


def parse(text: str) -> Any:
    """The value of a JSON text. Raises InvalidInputError for what is none."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_int=_whole, parse_float=_fraction, parse_constant=_no_constant)
        text.encode()
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
            # Spark reads one value, and does not look at what is behind it.
            raise refusal("JSON with something behind its value") from error
        raise InvalidInputError(f"expected a JSON text, found {text[:40]!r}", kind="query") from error
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name stands twice")
    return fields


def _whole(text: str) -> int | Decimal | float:
    number = int(text)
    return number if -(2**63) <= number < 2**63 else _fraction(text)


def _fraction(text: str) -> Decimal | float:
    """A number with digits only is a decimal, if that has as many."""
    if not set(text) <= set("-.0123456789"):
        return float(text)
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    digits = number.as_tuple().digits
    scale = -exponent if isinstance(exponent, int) else 0
    return number if max(len(digits), scale) <= _MOST_DIGITS and scale <= _MOST_DIGITS else float(text)


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def encode(value: Any) -> Variant:
    """The binary form of a value."""
    names: dict[str, int] = {}
    return _encoded(value, names), metadata_of(names)


def metadata_of(names: Iterable[str]) -> bytes:
    """The metadata of values with some names, in the order of their numbers."""
    texts = [name.encode() for name in names]
    size = width(max(sum(map(len, texts)), len(texts)))
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    head = bytes([1 | (size - 1) << 6]) + len(texts).to_bytes(size, "little")
    return head + b"".join(end.to_bytes(size, "little") for end in ends) + b"".join(texts)


def _encoded(value: Any, names: dict[str, int]) -> bytes:
    match value:
        case None:
            return bytes([_NULL << 2])
        case bool():
            return bytes([(_TRUE if value else _FALSE) << 2])
        case int():
            kind, size = next((kind, size) for kind, size in INTEGERS if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1)
            return bytes([kind << 2]) + value.to_bytes(size, "little", signed=True)
        case float():
            return bytes([_DOUBLE << 2]) + struct.pack("<d", value)
        case Decimal():
            return _decimal(value)
        case str():
            text = value.encode()
            return bytes([len(text) << 2 | 1]) + text if len(text) < 64 else bytes([LONG_TEXT << 2]) + _four(len(text)) + text
        case dict():
            return _encoded_object(value, names)
        case list():
            parts = [_encoded(part, names) for part in value]
            return _container(None, parts, range(len(parts)))
        case _:
            raise UnsupportedError(f"a VARIANT of {type(value).__name__}", kind="engine")


def _encoded_object(fields: dict[str, Any], names: dict[str, int]) -> bytes:
    ids, parts = [], []
    for name, value in fields.items():
        ids.append(names.setdefault(name, len(names)))
        parts.append(_encoded(value, names))
    places = {name: place for place, name in enumerate(fields)}
    order = [places[name] for name in field_order(fields)]
    return _container([ids[place] for place in order], parts, order)


def field_order(names: Iterable[str]) -> list[str]:
    """Names in the order in which an object has its fields: as Java compares texts, by their halves of 16 bits."""
    return sorted(names, key=lambda name: name.encode("utf-16-be"))


def _container(ids: list[int] | None, parts: list[bytes], order: "range | list[int]") -> bytes:
    starts, at = [], 0
    for part in parts:
        starts.append(at)
        at += len(part)
    size = width(at)
    offsets = b"".join(one.to_bytes(size, "little") for one in [*(starts[place] for place in order), at])
    return container_head(len(parts), ids, size) + offsets + b"".join(parts)


def container_head(count: int, ids: list[int] | None, size: int) -> bytes:
    """The bytes before the offsets of an array, or of an object with the numbers of its names; an offset has ``size`` bytes."""
    is_large = count > 0xFF
    id_size = width(max(ids, default=0)) if ids is not None else 0
    head = is_large << 4 | size - 1 << 2 | _ARRAY if ids is None else is_large << 6 | id_size - 1 << 4 | size - 1 << 2 | _OBJECT
    numbers = b"".join(one.to_bytes(id_size, "little") for one in ids or ())
    return bytes([head]) + count.to_bytes(4 if is_large else 1, "little") + numbers


def _decimal(value: Decimal) -> bytes:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "a decimal is finite"
    scale = max(-exponent, 0)
    unscaled = int(value.scaleb(scale, EXACT)) if digits else 0
    precision = max(len(str(abs(unscaled))), 1)
    kind, size, _ = next(one for one in DECIMALS if precision <= one[2] and scale <= one[2])
    return bytes([kind << 2, scale]) + unscaled.to_bytes(size, "little", signed=True)


def width(number: int) -> int:
    """The bytes that a number takes."""
    return 1 if number <= 0xFF else 2 if number <= 0xFFFF else 3 if number <= 0xFFFFFF else 4


def _four(number: int) -> bytes:
    return number.to_bytes(4, "little")


def decode(variant: Variant) -> Any:
    """The value of a binary form, the fields of objects by their names. Raises UnsupportedError for what JSON does not have,
    InvalidInputError for bytes that are no VARIANT. Memory: a multiple of the bytes, whatever they claim to have."""
    value, metadata = variant
    with _whole_bytes():
        return _Bytes(value, _names(metadata)).value(0)


@contextmanager
def _whole_bytes() -> Iterator[None]:
    try:
        yield
    except (LookupError, ValueError, OverflowError, RecursionError, struct.error) as error:
        raise InvalidInputError(
            f"expected the bytes of a VARIANT, found others ({error}); is_valid_variant finds such rows, and who wrote the file "
            "has to write them again",
            kind="variant",
        ) from error


def _names(metadata: bytes) -> list[str]:
    size = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + size], "little")
    start = 1 + size * (count + 2)
    if start > len(metadata):
        raise ValueError(f"{count} names in {len(metadata)} bytes")
    ends = [int.from_bytes(metadata[1 + size * place : 1 + size * (place + 1)], "little") for place in range(1, count + 2)]
    if sorted(ends) != ends or start + ends[-1] > len(metadata):
        raise ValueError("names that do not lie one behind the other")
    return [metadata[start + ends[place] : start + ends[place + 1]].decode() for place in range(count)]


# What Jackson puts before characters, the names of which it knows, and how it writes the others.
_ESCAPES = {place: f"\\u{place:04X}" for place in range(32)}
_ESCAPES |= {ord(char): f"\\{name}" for char, name in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)}


def json_of(variant: Variant) -> str:
    """A value as JSON, with the fields of objects in their order. Raises UnsupportedError for a double, whose digits are Java's."""
    return _json(decode(variant))


def _json(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case Decimal():
            return f"{value.normalize(EXACT):f}"
        case str():
            return _json_text(value)
        case list():
            return f"[{','.join(map(_json, value))}]"
        case dict():
            return f"{{{','.join(f'{_json_text(name)}:{_json(part)}' for name, part in value.items())}}}"
        case _:
            raise refusal("to_json of a VARIANT with a double")


def _json_text(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


class _Bytes:
    """The bytes of a value with its parts. Parts may claim to lie anywhere, so what is read of them all is bounded by the bytes."""

    def __init__(self, data: bytes, names: list[str]) -> None:
        self._data, self._names, self._left = data, names, len(data)

    def value(self, at: int) -> Any:
        """The value that begins somewhere."""
        kind, info = self._take(at, 1)[0] & 3, self._data[at] >> 2
        if kind == 1:
            return self._take(at + 1, info).decode()
        if kind >= 2:
            return self._container(at)
        if info in (_NULL, _TRUE, _FALSE):
            return {_NULL: None, _TRUE: True, _FALSE: False}[info]
        if info == _DOUBLE:
            return struct.unpack("<d", self._take(at + 1, 8))[0]
        if info == LONG_TEXT:
            return self._take(at + 5, int.from_bytes(self._take(at + 1, 4), "little")).decode()
        for code, size in INTEGERS:
            if code == info:
                return int.from_bytes(self._take(at + 1, size), "little", signed=True)
        for code, size, _ in DECIMALS:
            if code == info:
                return self._decimal(self._take(at + 1, 1 + size))
        raise UnsupportedError(f"a VARIANT of the type {info}, which JSON does not have", kind="engine")

    @staticmethod
    def _decimal(data: bytes) -> Decimal:
        unscaled = int.from_bytes(data[1:], "little", signed=True)
        if data[0] > _MOST_DIGITS or abs(unscaled) >= 10**_MOST_DIGITS:
            raise ValueError("a decimal of more than 38 digits")
        return Decimal(unscaled).scaleb(-data[0], EXACT)

    def _container(self, at: int) -> Any:
        entries = list(_entries(self._data, at))
        if self._data[at] & 3 == _ARRAY:
            return [self.value(start) for _, start in entries]
        return {self._names[name]: self.value(start) for name, start in entries}

    def _take(self, at: int, size: int) -> bytes:
        self._left -= size
        if self._left < 0 or at + size > len(self._data):
            raise ValueError(f"parts of more than {len(self._data)} bytes")
        return self._data[at : at + size]


def _entries(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """The numbers of names, and where parts begin."""
    info = data[at] >> 2
    is_object = data[at] & 3 == 2
    size = (info & 3) + 1
    id_size = (info >> 2 & 3) + 1 if is_object else 0
    count_size = 4 if info & (16 if is_object else 4) else 1
    count = int.from_bytes(data[at + 1 : at + 1 + count_size], "little")
    ids = at + 1 + count_size
    offsets = ids + id_size * count
    parts = offsets + size * (count + 1)
    if parts > len(data):
        raise ValueError(f"{count} parts in {len(data)} bytes")
    for place in range(count):
        name = int.from_bytes(data[ids + id_size * place : ids + id_size * (place + 1)], "little")
        yield name, parts + int.from_bytes(data[offsets + size * place : offsets + size * (place + 1)], "little")


def parts_of(variant: Variant) -> list[tuple[str | None, Variant]]:
    """The parts of an object or an array, with their names; each has the metadata of the whole. None for anything else."""
    value, metadata = variant
    if not value or value[0] & 3 < 2:
        return []
    decoded = decode((value, metadata))
    names: list[str | None] = list(decoded) if isinstance(decoded, dict) else [None] * len(decoded)
    with _whole_bytes():
        return [(name, (_cut(value, start), metadata)) for name, (_, start) in zip(names, _entries(value, 0), strict=True)]


def _cut(data: bytes, at: int) -> bytes:
    """The bytes of the value that begins somewhere."""
    kind, info = data[at] & 3, data[at] >> 2
    if kind == 1:
        return data[at : at + 1 + info]
    if kind >= 2:
        size = (info & 3) + 1
        is_object = kind == 2
        id_size = (info >> 2 & 3) + 1 if is_object else 0
        count_size = 4 if info & (16 if is_object else 4) else 1
        count = int.from_bytes(data[at + 1 : at + 1 + count_size], "little")
        offsets = at + 1 + count_size + id_size * count
        parts = offsets + size * (count + 1)
        return data[at : parts + int.from_bytes(data[offsets + size * count : parts], "little")]
    if info in (_NULL, _TRUE, _FALSE):
        return data[at : at + 1]
    if info == LONG_TEXT:
        return data[at : at + 5 + int.from_bytes(data[at + 1 : at + 5], "little")]
    sizes = {_DOUBLE: 8, **dict(INTEGERS), **{code: size + 1 for code, size, _ in DECIMALS}}
    return data[at : at + 1 + sizes[info]]
