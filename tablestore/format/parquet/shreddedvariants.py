"""Puts the values of shredded VARIANT columns together again: from the columns of their parts, for all rows at once.

    column      {metadata, value, typed_value}          a part of an object or an array   {value, typed_value}
    typed_value a number, a text, …; a row of such parts by the names of fields; or a list of such parts

Where ``typed_value`` is NULL, ``value`` has the bytes; where both are, a part is not there. An object has in ``value`` those of its
fields that have no column. The metadata names all fields, shredded or not, and stays as it is.
Source: the specification of Apache Parquet, "Variant Shredding".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError, UnsupportedError
from tablestore.types.arrowtypes import is_list_like
from tablestore.types.datatypes import SHREDDED_PART, VARIANT_PARTS

_VALUE = VARIANT_PARTS[0]
# Stored: what the six upper bits of the first byte of a value say, of one that is no short text, object or array.
_TRUE, _FALSE, _DOUBLE, _DATE, _INSTANT, _TIMESTAMP, _FLOAT, _BYTES, _TEXT, _UUID = 1, 2, 7, 11, 12, 13, 14, 15, 16, 20
_INTEGERS, _DECIMALS = ((3, 1), (4, 2), (5, 4), (6, 8)), ((8, 4, 9), (9, 8, 18), (10, 16, 38))
_SHORT_TEXT, _OBJECT, _ARRAY = 1, 2, 3
_MOST_SHORT_BYTES, _MOST_SMALL_COUNT = 63, 0xFF
_ONE_BYTE = pa.array([bytes([one]) for one in range(256)], pa.binary())

Numbers: TypeAlias = "npt.NDArray[np.int64]"
Bytes: TypeAlias = "npt.NDArray[np.uint8]"


def whole_values(array: pa.StructArray, metadata: pa.Array) -> pa.Array:
    """The bytes of the values of a shredded column; empty where it is NULL. Raises FormatError for parts that do not fit together,
    UnsupportedError for a type that is not read."""
    there = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    rows = array.take(pa.array(there))
    codes = metadata.take(pa.array(there)).dictionary_encode()
    names = _Names.of(codes.dictionary)
    values = _node(rows, names, codes.indices.to_numpy().astype(np.int64))
    if values.null_count:
        raise _malformed("a value that is nowhere")
    return _scattered(values, there, len(array))


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of fields in all metadata that a column has. ``texts``: the names, in the order in which objects have their fields;
    ``of_ids``: for each metadata the places in ``texts`` by the numbers that values have for names; ``ids`` the inverse, -1 for
    a name that it lacks."""

    texts: list[bytes]
    of_ids: "npt.NDArray[np.int64]"
    ids: "npt.NDArray[np.int64]"

    @classmethod
    def of(cls, dictionary: pa.Array) -> "_Names":
        # One after the other: rows share their metadata, and each has as many names as it likes.
        lists = [_names_of(one) for one in dictionary.to_pylist()]
        texts = sorted({name for names in lists for name in names}, key=lambda name: name.decode().encode("utf-16-be"))
        places = {name: place for place, name in enumerate(texts)}
        of_ids = np.full((len(lists), max(map(len, lists), default=0)), -1, np.int64)
        ids = np.full((len(lists), len(texts)), -1, np.int64)
        for code, names in enumerate(lists):
            name_places = [places[name] for name in names]
            of_ids[code, : len(names)] = name_places
            ids[code, name_places] = np.arange(len(names))
        return cls(texts, of_ids, ids)


def _names_of(metadata: bytes) -> list[bytes]:
    try:
        size = (metadata[0] >> 6) + 1
        count = int.from_bytes(metadata[1 : 1 + size], "little")
        ends = [int.from_bytes(metadata[1 + size * place : 1 + size * (place + 1)], "little") for place in range(1, count + 2)]
        start = 1 + size * (count + 2)
        if start + ends[-1] > len(metadata):
            raise IndexError
        return [metadata[start + ends[place] : start + ends[place + 1]] for place in range(count)]
    except IndexError:
        raise _malformed("metadata that is cut") from None


def _malformed(what: str) -> FormatError:
    return FormatError(
        f"a shredded VARIANT column has {what}; the file does not keep to the format: write it again with the engine that made it"
    )


def _node(rows: pa.StructArray, names: _Names, codes: Numbers) -> pa.Array:
    """The bytes of parts, NULL for those that are not there. ``codes``: the numbers of their metadata."""
    kind = rows.type
    columns = dict(zip([field.name for field in kind], rows.flatten(), strict=True))
    value = columns.get(_VALUE)
    rest = pa.nulls(len(rows), pa.binary()) if value is None else value.cast(pa.binary())
    typed = columns.get(SHREDDED_PART)
    if typed is None:
        return rest
    if pa.types.is_struct(typed.type):
        return pc.coalesce(_objects(typed, rest, names, codes), rest)
    whole = _arrays(typed, names, codes) if is_list_like(typed.type) else _scalars(typed)
    return pc.coalesce(whole, rest)


# ---- values without parts ------------------------------------------------------------------------------------------------------


def _scalars(column: pa.Array) -> pa.Array:
    there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return _scattered(_encoded(column.take(pa.array(there))), there, len(column), missing=True)


def _encoded(values: pa.Array) -> pa.Array:
    """The bytes of values that are all there."""
    types, kind = pa.types, values.type
    if types.is_boolean(kind):
        return _ONE_BYTE.take(pc.if_else(values, _TRUE << 2, _FALSE << 2))
    if types.is_integer(kind):
        return _integers(values.cast(pa.int64()).to_numpy())
    if types.is_float32(kind) or types.is_float64(kind):
        return _fixed(_FLOAT if types.is_float32(kind) else _DOUBLE, values.to_numpy())
    if types.is_date32(kind):
        return _fixed(_DATE, values.cast(pa.int32()).to_numpy())
    if types.is_timestamp(kind):
        micros = values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return _fixed(_TIMESTAMP if kind.tz is None else _INSTANT, micros.to_numpy())
    if types.is_decimal(kind):
        return _decimals(values.cast(pa.decimal128(kind.precision, kind.scale)))
    if types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return _joined(_heads(_UUID << 2, len(values)), values.cast(pa.binary()))
    if types.is_string(kind) or types.is_large_string(kind):
        return _texts(values.cast(pa.binary()))
    if types.is_binary(kind) or types.is_large_binary(kind):
        return _joined(_heads(_BYTES << 2, len(values)), _lengths(values), values.cast(pa.binary()))
    raise UnsupportedError(
        f"a VARIANT column is shredded into parts of the type {kind}, which is not read; reset variant.shreddingSchema and "
        "variant.inferShreddingSchema and compact the table fully with the engine that wrote it, or leave the column out",
        kind="shredded-variant",
    )


def _integers(numbers: Numbers) -> pa.Array:
    def encode(place: int, rows: Numbers) -> pa.Array:
        code, size = _INTEGERS[place]
        return _fixed(code, numbers[rows].astype(f"<i{size}"))

    fits = [(-(1 << 8 * size - 1) <= numbers) & (numbers <= (1 << 8 * size - 1) - 1) for _, size in _INTEGERS]
    return _by_group(np.argmax(fits, axis=0), encode)


def _decimals(values: pa.Array) -> pa.Array:
    scale = values.type.scale
    words = np.frombuffer(values.buffers()[1], "<i8", 2 * len(values), 16 * values.offset).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]

    def encode(place: int, rows: Numbers) -> pa.Array:
        code, size, _ = _DECIMALS[place]
        return _matrix(np.hstack([_repeated([code << 2, scale], len(rows)), _bytes(words[rows])[:, :size]]))

    is_narrow = high == low >> 63
    fits = [is_narrow & (-(10**digits) < low) & (low < 10**digits) & (scale <= digits) for _, _, digits in _DECIMALS[:2]]
    return _by_group(np.argmax([*fits, np.ones(len(words), np.bool_)], axis=0), encode)


def _texts(values: pa.Array) -> pa.Array:
    lengths = pc.binary_length(values).to_numpy().astype(np.int64)

    def encode(is_long: int, rows: Numbers) -> pa.Array:
        chosen = values.take(pa.array(rows))
        if is_long:
            return _joined(_heads(_TEXT << 2, len(rows)), _lengths(chosen), chosen)
        return _joined(_ONE_BYTE.take(pa.array(lengths[rows] << 2 | _SHORT_TEXT)), chosen)

    return _by_group((lengths > _MOST_SHORT_BYTES).astype(np.int64), encode)


def _fixed(code: int, numbers: npt.NDArray[np.generic]) -> pa.Array:
    return _matrix(np.hstack([_repeated([code << 2], len(numbers)), _bytes(numbers.reshape(-1, 1))]))


# ---- values with parts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entries:
    """Parts of objects or arrays: of which one each is, its bytes, and for objects the place of its name."""

    holders: Numbers
    parts: pa.Array
    names: Numbers


def _arrays(column: pa.Array, names: _Names, codes: Numbers) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    holders = np.repeat(np.arange(len(column)), lengths)
    parts = _node(column.flatten(), names, codes[holders])
    if parts.null_count:
        raise _malformed("an array with a part that is nowhere")
    there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return _containers(_Entries(holders, parts, np.zeros(0, np.int64)), there, len(column), None)


def _objects(typed: pa.StructArray, rest: pa.Array, names: _Names, codes: Numbers) -> pa.Array:
    """Objects from their fields that have a column, and from those in ``rest``; NULL where ``typed`` is."""
    is_there = typed.is_valid().to_numpy(zero_copy_only=False)
    places = {text: place for place, text in enumerate(names.texts)}
    entries = []
    for field, child in zip(typed.type, typed.flatten(), strict=True):
        parts = _node(child, names, codes)
        rows = np.flatnonzero(parts.is_valid().to_numpy(zero_copy_only=False) & is_there)
        place = places.get(field.name.encode(), -1)
        if len(rows) and (place < 0 or (names.ids[codes[rows], place] < 0).any()):
            raise _malformed(f"no name {field.name!r:.100} in its metadata")
        entries.append(_Entries(rows, parts.take(pa.array(rows)), np.full(len(rows), place, np.int64)))
    has_rest = np.flatnonzero(rest.is_valid().to_numpy(zero_copy_only=False) & is_there)
    entries += _fields_of(rest.take(pa.array(has_rest)), has_rest, names, codes)
    holders, fields = (np.concatenate([getattr(one, part) for one in entries]) for part in ("holders", "names"))
    order = np.lexsort((fields, holders))
    holders, fields = holders[order], fields[order]
    if ((holders[1:] == holders[:-1]) & (fields[1:] == fields[:-1])).any():
        raise _malformed("an object with a field that is there twice")
    parts = pa.concat_arrays([one.parts for one in entries]).take(pa.array(order))
    return _containers(_Entries(holders, parts, fields), np.flatnonzero(is_there), len(typed), names.ids[codes[holders], fields])


def _fields_of(objects: pa.Array, holders: Numbers, names: _Names, codes: Numbers) -> list[_Entries]:
    """The fields of objects in their binary form, by objects of the same layout."""
    if not len(objects):
        return []
    starts, data = _offsets(objects), np.frombuffer(objects.buffers()[2] or b"", np.uint8)
    ends, starts = starts[1:], starts[:-1]
    if (ends - starts < 2).any():
        raise _malformed("an object that is cut")
    heads = data[starts].astype(np.int64)
    if (heads & 3 != _OBJECT).any():
        raise _malformed("fields beside those of an object that are none of an object")
    is_large = heads >> 6 & 1 == 1
    counts = np.where(is_large, 0, data[starts + 1]).astype(np.int64)
    if is_large.any():
        counts[is_large] = _read(data, starts[is_large] + 1, 4)
    entries = []
    # By the first byte and the count: then all numbers lie at the same places.
    layouts, layout_of = np.unique(np.stack([heads, counts]), axis=1, return_inverse=True)
    for layout, (head, count) in enumerate(layouts.T.tolist()):
        rows = np.flatnonzero(layout_of.ravel() == layout)
        size, id_size, count_size = (head >> 2 & 3) + 1, (head >> 4 & 3) + 1, 4 if head >> 6 & 1 else 1
        ids_at = starts[rows] + 1 + count_size
        offsets_at = ids_at + id_size * count
        parts_at = offsets_at + size * (count + 1)
        if (parts_at > ends[rows]).any():
            raise _malformed("an object that is cut")
        if not count:
            continue
        ids = np.stack([_read(data, ids_at + id_size * place, id_size) for place in range(count)])
        offsets = np.stack([_read(data, offsets_at + size * place, size) for place in range(count + 1)])
        # A part ends where the next one begins, whatever the order of the names.
        order = np.argsort(offsets[:-1], axis=0, kind="stable")
        ordered = np.take_along_axis(offsets[:-1], order, axis=0)
        sizes = np.empty_like(ordered)
        np.put_along_axis(sizes, order, np.vstack([ordered[1:], offsets[-1:]])[:count] - ordered, axis=0)
        begins, lengths = (parts_at + offsets[:-1]).ravel(), sizes.ravel()
        of_rows = np.tile(holders[rows], count)
        ids = ids.astype(np.int64).ravel()
        known = names.of_ids.shape[1]
        if (lengths < 1).any() or (begins + lengths > np.tile(ends[rows], count)).any() or (ids >= known).any():
            raise _malformed("an object whose fields do not lie in it")
        entries.append(_Entries(of_rows, _slices(data, begins, lengths), names.of_ids[codes[of_rows], ids]))
    return entries


def _containers(entries: _Entries, there: Numbers, length: int, ids: "Numbers | None") -> pa.Array:
    """Arrays, or objects with the numbers of their names, of the entries, which lie in order; NULL for those not ``there``."""
    sizes = np.diff(_offsets(entries.parts))
    counts = np.bincount(entries.holders, minlength=length).astype(np.int64)
    firsts = np.concatenate([[0], np.cumsum(counts)])
    ends = np.concatenate([[0], np.cumsum(sizes)])
    totals = ends[firsts[1:]] - ends[firsts[:-1]]
    largest = np.zeros(length, np.int64)
    if ids is not None:
        np.maximum.at(largest, entries.holders, ids)
    is_large = (counts > _MOST_SMALL_COUNT).astype(np.int64)
    layouts = (is_large * 4 + _width(largest) - 1) * 4 + _width(totals) - 1
    content = _grouped(entries.parts, firsts)

    def encode(layout: int, places: Numbers) -> pa.Array:
        rows = there[places]
        large, id_size, size = layout >> 4, (layout >> 2 & 3) + 1, (layout & 3) + 1
        head = large << 4 | size - 1 << 2 | _ARRAY if ids is None else large << 6 | id_size - 1 << 4 | size - 1 << 2 | _OBJECT
        count_bytes = _matrix(_bytes(counts[rows].reshape(-1, 1))[:, : 4 if large else 1])
        chosen = _ranges(firsts[rows], counts[rows])
        numbers = [] if ids is None else [_cells(ids[chosen], id_size, counts[rows])]
        # One more than there are parts: where the last one ends.
        limits = _ranges(firsts[rows], counts[rows] + 1)
        relative = ends[limits] - np.repeat(ends[firsts[rows]], counts[rows] + 1)
        offsets = _cells(relative, size, counts[rows] + 1)
        return _joined(_heads(head, len(rows)), count_bytes, *numbers, offsets, content.take(pa.array(rows)))

    return _scattered(_by_group(layouts[there], encode), there, length, missing=True)


# ---- bytes ---------------------------------------------------------------------------------------------------------------------


def _by_group(groups: Numbers, encode: Callable[[int, Numbers], pa.Array]) -> pa.Array:
    """The bytes of all rows, of which ``encode`` makes those of a group."""
    chunks, order = [pa.array([], pa.binary())], [np.zeros(0, np.int64)]
    for group in np.unique(groups).tolist():
        rows = np.flatnonzero(groups == group)
        chunks.append(encode(group, rows))
        order.append(rows)
    return pa.concat_arrays(chunks).take(pa.array(np.argsort(np.concatenate(order), kind="stable")))


def _scattered(values: pa.Array, places: Numbers, length: int, *, missing: bool = False) -> pa.Array:
    """The values at these places, and at all others NULL if they may be ``missing``, or nothing."""
    if len(values) == length:
        return values
    source = np.full(length, -1, np.int64)
    source[places] = np.arange(len(places))
    at_places = values.take(pa.array(source, mask=source < 0))
    return at_places if missing else pc.fill_null(at_places, b"")


def _joined(*parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, b"")


def _heads(byte: int, count: int) -> pa.Array:
    return _ONE_BYTE.take(pa.array(np.full(count, byte)))


def _lengths(values: pa.Array) -> pa.Array:
    return _matrix(_bytes(pc.binary_length(values).to_numpy().astype("<u4").reshape(-1, 1)))


def _repeated(row: list[int], count: int) -> Bytes:
    return np.tile(np.array(row, np.uint8), (count, 1))


def _bytes(numbers: npt.NDArray[np.generic]) -> Bytes:
    """The bytes of rows of numbers, the lowest first."""
    little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(len(little), little.dtype.itemsize * little.shape[1])


def _matrix(data: Bytes) -> pa.Array:
    """Rows of bytes."""
    rows, size = data.shape
    return _cut(np.ascontiguousarray(data), np.arange(rows + 1) * size)


def _cells(numbers: Numbers, size: int, counts: Numbers) -> pa.Array:
    """Numbers of ``size`` bytes, so many in each row."""
    data = np.ascontiguousarray(_bytes(numbers.reshape(-1, 1))[:, :size])
    return _cut(data, np.concatenate([[0], np.cumsum(counts)]) * size)


def _cut(data: Bytes, offsets: Numbers) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _offsets(values: pa.Array) -> Numbers:
    if not len(values):
        return np.zeros(1, np.int64)
    return np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset).astype(np.int64)


def _grouped(parts: pa.Array, firsts: Numbers) -> pa.Array:
    """Parts that lie one behind the other, joined."""
    offsets = pa.py_buffer(_offsets(parts)[firsts].astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(firsts) - 1, [None, offsets, parts.buffers()[2] or pa.py_buffer(b"")])


def _slices(data: Bytes, begins: Numbers, lengths: Numbers) -> pa.Array:
    return _cut(data[_ranges(begins, lengths)], np.concatenate([[0], np.cumsum(lengths)]))


def _ranges(begins: Numbers, lengths: Numbers) -> Numbers:
    """The numbers from each begin on, so many."""
    total = np.concatenate([[0], np.cumsum(lengths)])
    return np.arange(total[-1]) - np.repeat(total[:-1] - begins, lengths)


def _read(data: Bytes, at: Numbers, size: int) -> Numbers:
    """The numbers of ``size`` bytes at some places."""
    numbers = np.zeros(len(at), np.int64)
    for place in range(size):
        numbers |= data[at + place].astype(np.int64) << 8 * place
    return numbers


def _width(numbers: Numbers) -> Numbers:
    """The bytes that numbers take."""
    return 1 + (numbers > 0xFF).astype(np.int64) + (numbers > 0xFFFF) + (numbers > 0xFFFFFF)
