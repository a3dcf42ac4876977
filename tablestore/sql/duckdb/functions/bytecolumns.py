"""Computes functions of texts and bytes over whole columns: ``soundex``, Base32, UTF-16, and other characters for characters.

The bytes of a column lie behind each other: what happens to a byte depends on its place in its row, which the offsets tell. In
Base32 the eight letters of a block are the bytes of one word, which are computed together.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction

_Numbers = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_EQUALS = ord("=")
# Of a last block in Base32: its bytes, by the signs that fill it.
_BYTES_OF_FILLED = {0: 5, 1: 4, 3: 3, 4: 2, 6: 1}
_BLOCK, _LETTERS = 5, 8
_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
# How often five bits, and ten, and twenty move to fill a word, and which of them do.
_SPREAD = tuple(
    (np.uint64(by), np.uint64(moved), np.uint64(kept))
    for by, moved, kept in (
        (12, 0x000000FFFFF00000, 0x00000000000FFFFF),
        (6, 0x000FFC00000FFC00, 0x000003FF000003FF),
        (3, 0x03E003E003E003E0, 0x001F001F001F001F),
    )
)
# Masks of the first bytes of a word, by how many they are.
_FIRST_BYTES = np.array([(1 << 64) - (1 << 8 * (_LETTERS - count)) for count in range(_LETTERS + 1)], np.uint64)
# The signs that fill a last block by the bytes that it lacks, these by the signs, and the signs in a word.
_SIGNS_OF_LACKING, _LACKING = np.zeros(_BLOCK, np.int64), np.zeros(_LETTERS + 1, np.int64)
for _signs, _count in _BYTES_OF_FILLED.items():
    _SIGNS_OF_LACKING[_BLOCK - _count], _LACKING[_signs] = _signs, _BLOCK - _count
_FILLING = _ONES * np.uint64(_EQUALS) & ~_FIRST_BYTES[_LETTERS - _SIGNS_OF_LACKING]
_MUTE, _SOUND_COUNT, _DIGITS = 7, 8, 7
_SOUNDS = np.zeros(256, np.uint8)
for _letter in b"Aa":
    # Of the letters from A to Z; 0 of vowels.
    _SOUNDS[_letter : _letter + 26] = list(map(int, "01230127022455012623017202"))
_CODE_LENGTH = 4
_STEPS_AT_ONCE = 4
UTF16_CHARSETS = ("UTF-16", "UTF-16BE", "UTF-16LE")
"""The character sets that :func:`encode_utf16` knows."""
_BYTE_ORDERS = {"UTF-16": "utf-16-be", "UTF-16BE": "utf-16-be", "UTF-16LE": "utf-16-le"}
# As numbers with a sign the bytes that follow the first one of a character are less than this.
_FIRST_LEAD, _FIRST_OF_FOUR = -64, 0xF0
_MARK = np.frombuffer(b"\xfe\xff", np.uint16)[0]
_U64 = npt.NDArray[np.uint64]


def _parts(column: pa.Array) -> tuple[_Numbers, _Bytes]:
    """The offsets and the bytes of a column, from 0 on."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    if bounds[0]:
        return bounds - bounds[0], np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return bounds, np.frombuffer(data or b"", np.uint8)[: bounds[-1]]


def _column(kind: pa.DataType, lengths: _Numbers, data: _Bytes | bytes, like: pa.Array) -> pa.Array:
    """A column of so many bytes each, with the NULLs of another one."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] >= 2**31:
        raise MemoryError("a batch of rows has more bytes than an Arrow array")
    validity = None if like.null_count == 0 else like.buffers()[0] if like.offset == 0 else like.is_valid().buffers()[1]
    return pa.Array.from_buffers(kind, len(lengths), [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)])


def _sound_states() -> "tuple[_Numbers, npt.NDArray[np.uint32]]":
    """The state of a word behind a sound, and the code of a state, by the numbers of states and sounds.

    A state is three digits, of which those that are not there yet are 0, and the sound before.
    """
    sizes = (_DIGITS, _DIGITS, _DIGITS, _SOUND_COUNT, _SOUND_COUNT)
    *digits, before, sound = np.indices(sizes).reshape(len(sizes), -1)
    adds = (sound > 0) & (sound != before) & (sound != _MUTE)
    after = []
    for digit in digits:
        is_next = adds & (digit == 0)
        after.append(np.where(is_next, sound, digit))
        adds = adds & ~is_next
    heard = np.where(sound == _MUTE, before, sound)
    states = np.ravel_multi_index((*after, heard), sizes[:-1]).astype(np.int64)
    codes = np.stack([np.zeros(len(before), np.int64), *(digit + ord("0") for digit in digits)], axis=1).astype(np.uint8)
    return states, codes[::_SOUND_COUNT].copy().view(np.uint32).reshape(-1)


_SOUND_STATES, _SOUND_CODES = _sound_states()
_IS_WHOLE_CODE = np.arange(len(_SOUND_CODES)) // _SOUND_COUNT % _DIGITS > 0


def soundex(texts: pa.Array) -> pa.Array:
    """The codes of how words sound; a text itself if it does not begin with a letter of ASCII."""
    offsets, data = _parts(texts)
    has_letters = offsets[1:] > offsets[:-1]
    firsts = np.append(data, np.uint8(0))[offsets[:-1]] & np.uint8(0xDF)
    is_word = has_letters & (firsts >= ord("A")) & (firsts <= ord("Z"))
    words = np.flatnonzero(is_word)
    codes = np.zeros(len(is_word), np.uint32)
    codes[words] = firsts[words] + _sounded(data, offsets[:-1][words], offsets[1:][words] - 1)
    fixed = _column(pa.string(), is_word * _CODE_LENGTH, codes[words].view(np.uint8), texts)
    return fixed if len(words) == np.count_nonzero(has_letters) else pc.if_else(pa.array(is_word), fixed, texts)


def _sounded(data: _Bytes, at: _Numbers, last: _Numbers) -> "npt.NDArray[np.uint32]":
    """The codes of words behind their first letters, the next letter of all at once. ``at``: the places of the first letters."""
    sounds = np.frombuffer(data.tobytes().translate(_SOUNDS.tobytes()), np.uint8)
    codes, places = np.zeros(len(at), np.uint32), np.arange(len(at))
    states = sounds[at].astype(np.int64)
    while len(places):
        for _ in range(_STEPS_AT_ONCE):
            # The last sound of a word changes nothing when it is heard once more.
            at = np.minimum(at + 1, last)
            states = _SOUND_STATES[states * _SOUND_COUNT + sounds[at]]
        codes[places] = _SOUND_CODES[states]
        goes_on = (at < last) & ~_IS_WHOLE_CODE[states]
        at, last, states, places = at[goes_on], last[goes_on], states[goes_on], places[goes_on]
    return codes


def _words_at(data: _Bytes, places: _Numbers) -> _U64:
    """The eight bytes from each place on, the first one in the highest bits; behind the last byte are zeros."""
    padded = np.zeros(len(data) + _LETTERS, np.uint8)
    padded[: len(data)] = data
    # Bytes are taken faster than numbers that lie between two words.
    octets = np.ndarray((len(padded) - _LETTERS + 1,), np.dtype(f"V{_LETTERS}"), padded, 0, (1,))
    return octets[places].view(np.dtype("<u8")).byteswap(inplace=True)


def to_base32(values: pa.Array) -> pa.Array:
    """Bytes in Base32."""
    offsets, data = _parts(values)
    lengths = offsets[1:] - offsets[:-1]
    blocks = -(-lengths // _BLOCK)
    ends = np.cumsum(blocks)
    at = np.repeat(offsets[:-1] - _BLOCK * (ends - blocks), blocks)
    at += np.arange(0, _BLOCK * len(at), _BLOCK)
    words = _words_at(data, at)
    lacks = _BLOCK * blocks - lengths
    some = np.flatnonzero(lacks)
    last, lacks = ends[some] - 1, lacks[some]
    words[last] &= _FIRST_BYTES[_BLOCK - lacks]
    words >>= np.uint64(8 * (_LETTERS - _BLOCK))
    other = np.empty_like(words)
    for by, moved, _ in _SPREAD:
        # What moves is added so often that it is by so many bits higher.
        np.bitwise_and(words, moved, out=other)
        other *= (np.uint64(1) << by) - np.uint64(1)
        words += other
    # A letter or, from 26 on, a digit from 2 on.
    np.add(words, _ONES * np.uint64(128 - 26), out=other)
    other &= _HIGHS
    other >>= np.uint64(7)
    other *= np.uint64(ord("A") - (ord("2") - 26))
    words += _ONES * np.uint64(ord("A"))
    words -= other
    words[last] = (words[last] & _FIRST_BYTES[_LETTERS - _SIGNS_OF_LACKING[lacks]]) | _FILLING[lacks]
    words.byteswap(inplace=True)
    return _column(pa.string(), blocks * _LETTERS, words.view(np.uint8), values)


def from_base32(texts: pa.Array, beyond: ArrowFunction) -> pa.Array:
    """The bytes that texts in Base32 stand for. ``beyond`` reads those that ``to_base32`` would not write."""
    offsets, data = _parts(texts)
    lengths = np.diff(offsets)
    is_plain = lengths & (_LETTERS - 1) == 0
    if not is_plain.all():
        data = data[np.repeat(is_plain, lengths)]
    blocks = (lengths >> 3) * is_plain
    ends = np.cumsum(blocks)
    words = data.view(np.dtype("<u8")).byteswap()
    rows = np.flatnonzero(blocks)
    last = ends[rows] - 1
    signs = words[last] ^ _ONES * np.uint64(_EQUALS)
    filling = np.zeros(len(blocks), np.int64)
    if (signs & np.uint64(0xFF) == 0).any():
        for count in range(1, _LETTERS + 1):
            filling[rows] += signs & np.uint64((1 << 8 * count) - 1) == 0
        masks = _FIRST_BYTES[_LETTERS - filling[rows]]
        # It stands for zeros, as the letter A does.
        words[last] = (words[last] & masks) | (_ONES * np.uint64(ord("A")) & ~masks)
        is_plain &= np.isin(filling, list(_BYTES_OF_FILLED))
    is_wrong = _without_letters(words)
    if is_wrong.any():
        is_plain[np.searchsorted(ends, np.flatnonzero(is_wrong), "right")] = False
    other = np.empty_like(words)
    for by, moved, kept in reversed(_SPREAD):
        np.bitwise_and(words, moved << by, out=other)
        other >>= by
        words &= kept
        words |= other
    lacks = _LACKING[filling]
    counts = blocks * _BLOCK - lacks
    some = np.flatnonzero(lacks)
    # Bits behind the last byte are 0 in what is written.
    is_plain[some[words[ends[some] - 1] & ~_FIRST_BYTES[_LETTERS - lacks[some]] > 0]] = False
    words <<= np.uint64(8 * (_LETTERS - _BLOCK))
    octets = words.byteswap(inplace=True).view(np.uint8).reshape(-1, _LETTERS)[:, :_BLOCK].reshape(-1)
    if len(some):
        kept_octets = np.ones(octets.shape, np.bool_).reshape(-1, _BLOCK)
        kept_octets[ends[some] - 1] = np.arange(_BLOCK) < (_BLOCK - lacks[some])[:, None]
        octets = octets[kept_octets.reshape(-1)]
    decoded = _column(pa.binary(), counts, octets, texts)
    if is_plain.all():
        return decoded
    others = pa.array(~is_plain)
    return pc.replace_with_mask(decoded, others, beyond.call(texts.filter(others)))


def _without_letters(words: _U64) -> "npt.NDArray[np.bool_]":
    """Puts their numbers in the places of the letters of words in Base32; true for words with other bytes."""

    def reach(least: int) -> _U64:
        return words + _ONES * np.uint64(128 - least)

    beyond = words & _HIGHS
    letters = reach(ord("A")) & ~reach(ord("Z") + 1) & _HIGHS
    digits = reach(ord("2")) & ~reach(ord("7") + 1) & _HIGHS
    is_wrong: npt.NDArray[np.bool_] = ((letters | digits) ^ _HIGHS | beyond) > 0
    words -= (letters >> np.uint64(7)) * np.uint64(ord("A")) + (digits >> np.uint64(7)) * np.uint64(ord("2") - 26)
    return is_wrong


def is_utf16(charset: str) -> bool:
    """True for the character sets that :func:`encode_utf16` knows."""
    return charset.upper() in _BYTE_ORDERS


def encode_utf16(texts: pa.Array, charset: str) -> pa.Array:
    """Texts in UTF-16, whose bytes stand in an order that a mark says, or the name of the character set."""
    offsets, data = _parts(texts.fill_null(""))
    encoded = data.tobytes().decode().encode(_BYTE_ORDERS[charset.upper()])
    lengths = np.diff(offsets)
    following = np.flatnonzero(data.view(np.int8) < _FIRST_LEAD)
    if len(following):
        # A character has one unit, and one of four bytes another.
        units = np.where(data[following - 1] >= _FIRST_OF_FOUR, 0.0, 1.0)
        rows = np.searchsorted(offsets, following, "right") - 1
        lengths -= np.bincount(rows, units, len(lengths)).astype(np.int64)
    if charset.upper() != "UTF-16":
        return _column(pa.binary(), lengths * 2, encoded, texts)
    is_marked = lengths > 0
    lengths += is_marked
    marks = (np.cumsum(lengths) - lengths)[is_marked]
    whole = np.empty(int(lengths.sum()), np.uint16)
    is_text = np.ones(len(whole), np.bool_)
    is_text[marks] = False
    whole[marks] = _MARK
    whole[is_text] = np.frombuffer(encoded, np.uint16)
    return _column(pa.binary(), lengths * 2, whole.view(np.uint8), texts)


def with_other_characters(texts: pa.Array, others: Mapping[int, str]) -> pa.Array:
    """Texts in which each character is another one, by its number."""
    offsets, data = _parts(texts.fill_null(""))
    before = np.concatenate(([0], np.cumsum((data & 0xC0) != 0x80)))[offsets]
    replaced = np.frombuffer(data.tobytes().decode().translate(others).encode(), np.uint8)
    starts = np.append(np.flatnonzero((replaced & 0xC0) != 0x80), len(replaced))
    return _column(pa.string(), np.diff(starts[before]), replaced, texts)
