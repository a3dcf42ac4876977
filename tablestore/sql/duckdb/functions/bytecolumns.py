"""Computes functions of texts and bytes over whole columns: ``soundex``, Base32, UTF-16, and other characters for characters.

The bytes of a column lie behind each other: what happens to a byte depends on its place in its row, which the offsets tell.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction

_Numbers = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)
_NO_DIGIT = 255
_DIGITS = np.full(256, _NO_DIGIT, np.uint8)
_DIGITS[_ALPHABET] = np.arange(32)
_EQUALS = ord("=")
# Of a last block in Base32: its bytes, by the signs that fill it; and the bits of its last digit that say nothing.
_BYTES_OF_FILLED = {0: 5, 1: 4, 3: 3, 4: 2, 6: 1}
_FILLED_OF_BYTES = {count: filled for filled, count in _BYTES_OF_FILLED.items()}
_BLOCK, _LETTERS = 5, 8
_SHIFTS = np.arange(35, -1, -5, dtype=np.uint64)
_BYTE_SHIFTS = np.arange(32, -1, -8, dtype=np.uint64)
_MUTE = 7
_SOUNDS = np.zeros(256, np.uint8)
for _letter in b"Aa":
    # Of the letters from A to Z; 0 of vowels.
    _SOUNDS[_letter : _letter + 26] = list(map(int, "01230127022455012623017202"))
_CODE_LENGTH = 4
_BYTE_ORDERS = {"UTF-16": "utf-16-be", "UTF-16BE": "utf-16-be", "UTF-16LE": "utf-16-le"}
_MARK = b"\xfe\xff"


def _parts(column: pa.Array) -> tuple[_Numbers, _Bytes]:
    """The offsets and the bytes of a column without NULLs, from 0 on."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    return bounds - bounds[0], np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]


def _column(kind: pa.DataType, lengths: _Numbers, data: _Bytes | bytes, are_null: npt.NDArray[np.bool_]) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    if offsets[-1] >= 2**31:
        raise MemoryError("a batch of rows has more bytes than an Arrow array")
    validity = pa.array(~are_null, pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(lengths), [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)])


def soundex(texts: pa.Array) -> pa.Array:
    """The codes of how words sound; a text itself if it does not begin with a letter of ASCII."""
    filled = texts.fill_null("")
    offsets, data = _parts(filled)
    lengths = np.diff(offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    sounds = _SOUNDS[data]
    is_first = np.zeros(len(data), np.bool_)
    starts = offsets[:-1][lengths > 0]
    is_first[starts] = True
    kept = np.flatnonzero((sounds != _MUTE) | is_first)
    kept_sounds, kept_first = sounds[kept], is_first[kept]
    before = np.concatenate((kept_sounds[:1], kept_sounds[:-1]))
    counts = (kept_sounds != 0) & (kept_sounds != before) & ~kept_first
    coded = kept[counts]
    places = np.cumsum(counts)
    firsts = np.zeros(len(lengths), np.int64)
    firsts[rows[starts]] = places[np.flatnonzero(kept_first)]
    place = places[counts] - firsts[rows[coded]]
    codes = np.full((len(lengths), _CODE_LENGTH), ord("0"), np.uint8)
    codes[lengths > 0, 0] = data[starts] & ~np.uint8(0x20)
    is_short = place < _CODE_LENGTH
    codes[rows[coded[is_short]], place[is_short]] = sounds[coded[is_short]] + ord("0")
    fixed = _column(pa.string(), np.full(len(lengths), _CODE_LENGTH), codes, np.asarray(texts.is_null()))
    is_word = np.zeros(len(lengths), np.bool_)
    is_word[lengths > 0] = (codes[lengths > 0, 0] >= ord("A")) & (codes[lengths > 0, 0] <= ord("Z"))
    return fixed if is_word.all() else pc.if_else(pa.array(is_word), fixed, texts)


def to_base32(values: pa.Array) -> pa.Array:
    """Bytes in Base32."""
    offsets, data = _parts(values.fill_null(b""))
    lengths = np.diff(offsets)
    blocks = -(-lengths // _BLOCK)
    ends = np.cumsum(blocks)
    padded = np.zeros(int(blocks.sum()) * _BLOCK, np.uint8)
    padded[np.arange(len(data)) + np.repeat(_BLOCK * (ends - blocks) - offsets[:-1], lengths)] = data
    bits = (padded.reshape(-1, _BLOCK).astype(np.uint64) << _BYTE_SHIFTS).sum(axis=1, dtype=np.uint64)
    letters = _ALPHABET[((bits[:, None] >> _SHIFTS) & np.uint64(31)).astype(np.uint8)]
    for count, filling in _FILLED_OF_BYTES.items():
        if filling:
            letters[ends[lengths % _BLOCK == count] - 1, _LETTERS - filling :] = _EQUALS
    return _column(pa.string(), blocks * _LETTERS, letters, np.asarray(values.is_null()))


def from_base32(texts: pa.Array, beyond: ArrowFunction) -> pa.Array:
    """The bytes that texts in Base32 stand for. ``beyond`` reads those that ``to_base32`` would not write."""
    filled = texts.fill_null("")
    offsets, data = _parts(filled)
    lengths = np.diff(offsets)
    filling = np.zeros(len(lengths), np.int64)
    for sign in range(1, 7):
        is_long = lengths >= _LETTERS
        filling[is_long] += (filling[is_long] == sign - 1) & (data[offsets[1:][is_long] - sign] == _EQUALS)
    digits = _DIGITS[data]
    wrong = np.concatenate(([0], np.cumsum(digits == _NO_DIGIT)))
    is_plain = (lengths % _LETTERS == 0) & (wrong[offsets[1:]] - wrong[offsets[:-1]] == filling)
    is_plain &= np.isin(filling, list(_BYTES_OF_FILLED))
    whole = np.where(is_plain, lengths, 0)
    blocks = whole // _LETTERS
    ends = np.cumsum(blocks)
    letters = np.where(digits == _NO_DIGIT, 0, digits)[np.repeat(is_plain, lengths)].reshape(-1, _LETTERS)
    bits = (letters.astype(np.uint64) << _SHIFTS).sum(axis=1, dtype=np.uint64)
    octets = ((bits[:, None] >> _BYTE_SHIFTS) & np.uint64(255)).astype(np.uint8)
    kept = np.ones(octets.shape, np.bool_)
    for signs, count in _BYTES_OF_FILLED.items():
        rows = np.flatnonzero(is_plain & (filling == signs) & (blocks > 0))
        last = ends[rows] - 1
        kept[last, count:] = False
        # Bits behind the last byte are 0 in what is written.
        is_plain[rows[octets[last, count:].any(axis=1)]] = False
    decoded = _column(
        pa.binary(), np.where(blocks > 0, blocks * _BLOCK - _missing(filling), 0), octets[kept], np.asarray(texts.is_null())
    )
    if is_plain.all():
        return decoded
    others = pa.array(~is_plain)
    return pc.replace_with_mask(decoded, others, beyond.call(texts.filter(others)))


def _missing(filling: _Numbers) -> _Numbers:
    counts = np.zeros(_LETTERS, np.int64)
    for signs, count in _BYTES_OF_FILLED.items():
        counts[signs] = _BLOCK - count
    return counts[filling]


def is_utf16(charset: str) -> bool:
    """True for the character sets that :func:`encode_utf16` knows."""
    return charset.upper() in _BYTE_ORDERS


def encode_utf16(texts: pa.Array, charset: str) -> pa.Array:
    """Texts in UTF-16, whose bytes stand in an order that a mark says, or the name of the character set."""
    offsets, data = _parts(texts.fill_null(""))
    encoded = np.frombuffer(data.tobytes().decode().encode(_BYTE_ORDERS[charset.upper()]), np.uint16)
    # A character has one unit, and one of four bytes another.
    units = np.concatenate(([0], np.cumsum(((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0))))
    starts, lengths = units[offsets[:-1]], np.diff(units[offsets])
    if charset.upper() == "UTF-16":
        is_marked = lengths > 0
        encoded = np.insert(encoded, starts[is_marked], np.frombuffer(_MARK, np.uint16)[0])
        lengths = lengths + is_marked
    return _column(pa.binary(), lengths * 2, encoded.view(np.uint8), np.asarray(texts.is_null()))


def with_other_characters(texts: pa.Array, others: Mapping[int, str]) -> pa.Array:
    """Texts in which each character is another one, by its number."""
    offsets, data = _parts(texts.fill_null(""))
    before = np.concatenate(([0], np.cumsum((data & 0xC0) != 0x80)))[offsets]
    replaced = np.frombuffer(data.tobytes().decode().translate(others).encode(), np.uint8)
    starts = np.append(np.flatnonzero((replaced & 0xC0) != 0x80), len(replaced))
    return _column(pa.string(), np.diff(starts[before]), replaced, np.asarray(texts.is_null()))
