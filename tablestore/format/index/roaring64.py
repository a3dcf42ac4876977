"""64-bit Roaring bitmaps in the bytes of the Java library ``Roaring64Bitmap``: columns of the aggregate function ``rbm64``.

    bitmap      := 0 | 1 keys:int64 node containers                    numbers are little-endian, 0 is the empty bitmap
    node        := leaf | branch node*                                 a branch's children follow it, in order
    leaf        := 4 0:int16 0 high:byte[6] container:int64            the upper 48 bits (big-endian), and where the rest is
    branch      := kind:int8 count:int16 length:int8 prefix body       an adaptive radix tree over the bytes of the upper bits
    body        := kind 0: the children's bytes in an int32; 1: in two int64; 2: 32 int64 with a place per byte value;
                   3: a bit per byte value in four int64               the first byte is the most significant
    containers  := arrays:int32 (tag:int8 size:int32 entry*)* used:int64 last array:int32 last place:int32
    entry       := 0 | 1 kind:int8 values:int32 data                   kind 0: runs; 1: 8 KiB of bits; 2: int16 each

Reading needs no tree: a leaf holds its whole key. Constants are stored and never change.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tablestore.errors import FormatError

Low = npt.NDArray[np.uint16]

_NODE4, _NODE16, _NODE48, _NODE256, _LEAF = range(5)
_BODY_BYTES = {_NODE4: 4, _NODE16: 16, _NODE48: 256, _NODE256: 32, _LEAF: 14}
_RUNS, _BITS, _ARRAY = range(3)
_NOT_TRIMMED = -2
_MAX_ARRAY = 4096


def decode_bitmap64(data: bytes) -> npt.NDArray[np.uint64]:
    """The values, ascending. Raises FormatError for other bytes."""
    parts = [np.uint64(high << 16) + low.astype(np.uint64) for high, low in sorted(_parts(data).items())]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def encode_bitmap64(values: npt.NDArray[np.uint64]) -> bytes:
    """The bytes of a set of values."""
    values = np.unique(values)
    high = values >> np.uint64(16)
    low = values.astype(np.uint16)
    stops = [*(np.flatnonzero(high[1:] != high[:-1]) + 1).tolist(), len(values)] if len(values) else []
    return _encode({int(high[a]): low[a:b] for a, b in pairwise([0, *stops])})


def union_bitmap64(bitmaps: Sequence[bytes]) -> bytes:
    """The union of bitmaps. Raises FormatError as :func:`decode_bitmap64`."""
    parts_by_high: dict[int, list[Low]] = {}
    for data in bitmaps:
        for high, low in _parts(data).items():
            parts_by_high.setdefault(high, []).append(low)
    return _encode({high: np.unique(np.concatenate(parts)) for high, parts in sorted(parts_by_high.items())})


def _parts(data: bytes) -> dict[int, Low]:
    """The lower 16 bits of the values, ascending, by their upper 48 bits."""
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError) as error:
        raise FormatError(f"{len(data)} bytes are not a 64-bit Roaring bitmap: {error}") from error


def _read(data: bytes) -> dict[int, Low]:
    if data[0] == 0:
        return {}
    keys, offset = struct.unpack_from("<q", data, 1)[0], 9
    leaves: list[tuple[int, int]] = []
    pending = 1
    while pending:
        kind, count, length = struct.unpack_from("<bhb", data, offset)
        offset += 4 + length
        if kind == _LEAF:
            leaves.append((int.from_bytes(data[offset : offset + 6], "big"), struct.unpack_from("<q", data, offset + 6)[0]))
        elif kind not in _BODY_BYTES:
            raise ValueError(f"unknown kind of node {kind}")
        offset += _BODY_BYTES[kind]
        pending += count - 1
    if len(leaves) != keys:
        raise ValueError(f"expected {keys} keys, found {len(leaves)}")
    places = dict(_containers(data, offset))
    return {high: places[place] for high, place in leaves if place in places}


def _containers(data: bytes, offset: int) -> Iterator[tuple[int, Low]]:
    arrays = struct.unpack_from("<i", data, offset)[0]
    offset += 4
    for array in range(arrays):
        size = struct.unpack_from("<xi", data, offset)[0]
        offset += 5
        for place in range(size):
            used, offset = data[offset], offset + 1
            if used:
                kind, count = struct.unpack_from("<bi", data, offset)
                low, offset = _values(data, offset + 5, kind, count)
                yield array << 32 | place, low


def _values(data: bytes, offset: int, kind: int, count: int) -> tuple[Low, int]:
    if kind == _ARRAY:
        return np.frombuffer(data, "<u2", count, offset).astype(np.uint16), offset + 2 * count
    if kind == _BITS:
        bits = np.unpackbits(np.frombuffer(data, np.uint8, 8192, offset), bitorder="little")
        return np.flatnonzero(bits).astype(np.uint16), offset + 8192
    if kind != _RUNS:
        raise ValueError(f"unknown kind of container {kind}")
    runs = struct.unpack_from("<H", data, offset)[0]
    pairs = np.frombuffer(data, "<u2", 2 * runs, offset + 2).reshape(-1, 2).astype(np.int64)
    lengths = pairs[:, 1] + 1
    first = np.repeat(pairs[:, 0] - np.cumsum(lengths) + lengths, lengths)
    return (first + np.arange(int(lengths.sum()))).astype(np.uint16), offset + 2 + 4 * runs


def _encode(parts: Mapping[int, Low]) -> bytes:
    if not parts:
        return b"\x00"
    keys = [high.to_bytes(6, "big") for high in parts]
    out = [b"\x01", struct.pack("<q", len(keys)), *_tree(keys, 0, 0)]
    out.append(struct.pack("<ibi", 1, _NOT_TRIMMED, len(keys)))
    for low in parts.values():
        kind, data = _container(low)
        out += [struct.pack("<bbi", 1, kind, len(low)), data]
    out.append(struct.pack("<qii", len(keys), 0, len(keys) - 1))
    return b"".join(out)


def _tree(keys: Sequence[bytes], depth: int, place: int) -> Iterator[bytes]:
    """The nodes of ascending keys that agree in their first ``depth`` bytes; the first key's container is at ``place``."""
    if len(keys) == 1:
        yield struct.pack("<bhb", _LEAF, 0, 0) + keys[0] + struct.pack("<q", place)
        return
    end = depth
    while keys[0][end] == keys[-1][end]:
        end += 1
    groups: dict[int, list[bytes]] = {}
    for key in keys:
        groups.setdefault(key[end], []).append(key)
    kind, body = _body(list(groups))
    yield struct.pack("<bhb", kind, len(groups), end - depth) + keys[0][depth:end] + body
    for group in groups.values():
        yield from _tree(group, end + 1, place)
        place += len(group)


def _body(children: Sequence[int]) -> tuple[int, bytes]:
    if len(children) <= 4:
        return _NODE4, bytes(children).ljust(4, b"\x00")[::-1]
    if len(children) <= 16:
        padded = bytes(children).ljust(16, b"\x00")
        return _NODE16, padded[:8][::-1] + padded[8:][::-1]
    if len(children) <= 48:
        places = np.full(256, 0xFF, dtype=np.uint8)
        places[list(children)] = np.arange(len(children))
        return _NODE48, places.reshape(-1, 8)[:, ::-1].tobytes()
    bits = np.zeros(256, dtype=np.uint8)
    bits[list(children)] = 1
    return _NODE256, np.packbits(bits, bitorder="little").tobytes()


def _container(low: Low) -> tuple[int, bytes]:
    """The smallest of the three forms."""
    ends = np.flatnonzero(np.diff(low.astype(np.int64)) != 1)
    firsts = np.concatenate([[0], ends + 1])
    lasts = np.concatenate([ends, [len(low) - 1]])
    plain = 2 * len(low) if len(low) <= _MAX_ARRAY else 8192
    if 2 + 4 * len(firsts) < plain:
        pairs = np.stack([low[firsts], low[lasts] - low[firsts]], axis=1)
        return _RUNS, struct.pack("<H", len(firsts)) + pairs.astype("<u2").tobytes()
    if len(low) <= _MAX_ARRAY:
        return _ARRAY, low.astype("<u2").tobytes()
    bits = np.zeros(65536, dtype=np.uint8)
    bits[low] = 1
    return _BITS, np.packbits(bits, bitorder="little").tobytes()
