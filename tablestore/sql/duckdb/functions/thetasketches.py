"""Reads, combines and writes the theta and tuple sketches of Apache DataSketches as Spark has them, as bytes.

theta sketch    hashes of values below a limit: all of them while there are at most 2 ** lg, then the least 2 ** lg
tuple sketch    the same, and with each hash a number that combines those of its rows by a mode

A hash is the first half of MurmurHash3 (128 bits, seed 9001), shifted by one bit. The least hashes are the same in whatever order
rows come, so theta sketches are Spark's to the bit. Of a tuple sketch Spark keeps more or fewer of them by the order of the rows:
one of more than 2 ** lg hashes is refused; and its entries may come in another order in its bytes.
"""

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from tablestore.sql.duckdb.calls import refusal

SUM, MIN, MAX, ALWAYS_ONE = range(4)
MODES = {"sum": SUM, "min": MIN, "max": MAX, "alwaysone": ALWAYS_ONE}
"""How numbers of a tuple sketch combine, as they are stored."""
WHOLE = (1 << 63) - 1
"""The limit of a sketch that holds all of its hashes."""
Number: TypeAlias = "int | float"
Summary: TypeAlias = tuple[Number, int]
"""A number and its mode."""

SEED_HASH = 0x93CC
_EXACT_DOUBLES = 2**53
TABLE_MASK = 127
THETA_FAMILY, TUPLE_FAMILY = 3, 9
READ_ONLY, EMPTY, COMPACT, ORDERED = 2, 4, 8, 16


class BrokenSketchError(Exception):
    """Signals bytes that are no sketch."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """Hashes below ``theta``, and in a tuple sketch their numbers."""

    theta: int = WHOLE
    entries: Mapping[int, Summary | None] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return self.theta == WHOLE and not self.entries

    @property
    def estimate(self) -> float:
        """An estimate of the count of values."""
        if self.theta == WHOLE:
            return float(len(self.entries))
        return len(self.entries) / self.share

    @property
    def share(self) -> float:
        """The share of hashes that the sketch keeps."""
        return self.theta / float(WHOLE)


def cut(sketch: Sketch, lg_size: int) -> Sketch:
    """A sketch with no more than its size of hashes."""
    size = 1 << lg_size
    if len(sketch.entries) <= size:
        return sketch
    if any(summary is not None for summary in sketch.entries.values()):
        raise refusal(f"a tuple sketch of more than {size} values")
    theta = sorted(sketch.entries)[size]
    return Sketch(theta, {key: value for key, value in sketch.entries.items() if key < theta})


def united(sketches: Iterable[Sketch], lg_size: int, mode: int | None = None) -> Sketch:
    """The sketch of all values of some sketches."""
    theta = WHOLE
    entries: dict[int, Summary | None] = {}
    for sketch in sketches:
        theta = min(theta, sketch.theta)
        for key, summary in sketch.entries.items():
            entries[key] = combined(entries[key], summary, mode) if key in entries else summary
    return cut(Sketch(theta, {key: summary for key, summary in entries.items() if key < theta}), lg_size)


def common(sketches: Iterable[Sketch], mode: int | None = None) -> Sketch:
    """The sketch of the values that some sketches have in common; an empty one if there are none."""
    known: Sketch | None = None
    for sketch in sketches:
        if known is None:
            known = sketch
            continue
        if known.is_empty or sketch.is_empty:
            known = Sketch()
            continue
        theta = min(known.theta, sketch.theta)
        both = {key for key in known.entries.keys() & sketch.entries.keys() if key < theta}
        known = Sketch(theta, {key: combined(known.entries[key], sketch.entries[key], mode) for key in both})
    return known or Sketch()


def without(sketch: Sketch, other: Sketch) -> Sketch:
    """The sketch of the values of a sketch that another one does not have."""
    if sketch.is_empty or other.is_empty:
        return sketch
    theta = min(sketch.theta, other.theta)
    return Sketch(theta, {key: value for key, value in sketch.entries.items() if key < theta and key not in other.entries})


def combined(left: Summary | None, right: Summary | None, mode: int | None) -> Summary | None:
    """The numbers of one hash in two tuple sketches as one."""
    if left is None or right is None or mode is None:
        return None
    if mode == ALWAYS_ONE:
        return type(left[0])(1), mode
    if mode == SUM:
        return total([left[0], right[0]]), mode
    return (min if mode == MIN else max)(left[0], right[0]), mode


def of_rows(rows: Iterable[tuple[int, Number]], mode: int, lg_size: int) -> Sketch:
    """The tuple sketch of rows: hashes and numbers."""
    groups: dict[int, list[Number]] = {}
    for key, number in rows:
        groups.setdefault(key, []).append(number)
    return cut(Sketch(WHOLE, {key: (of_numbers(numbers, mode), mode) for key, numbers in groups.items()}), lg_size)


def of_numbers(numbers: list[Number], mode: int) -> Number:
    """The number that rows of one hash have."""
    if mode == ALWAYS_ONE:
        return type(numbers[0])(1)
    if mode == SUM:
        return total(numbers)
    return (min if mode == MIN else max)(numbers)


def as_tuples(sketch: Sketch, mode: int, *, is_double: bool) -> Sketch:
    """A theta sketch as a tuple sketch: each hash has the number that its mode begins with."""
    return Sketch(sketch.theta, dict.fromkeys(sketch.entries, (first_number(mode, is_double=is_double), mode)))


def first_number(mode: int, *, is_double: bool) -> Number:
    """The number that a mode begins with."""
    ends = (-math.inf, math.inf) if is_double else (-(2**31), 2**31 - 1)
    first: Number = {SUM: 0, MIN: ends[1], MAX: ends[0], ALWAYS_ONE: 1}[mode]
    return float(first) if is_double else first


def total(numbers: list[Number]) -> Number:
    """A sum: of 32 bits, or of doubles if it is the same in each order. Raises UnsupportedError where it is not."""
    if isinstance(numbers[0], int):
        return (sum(map(int, numbers)) + 2**31) % 2**32 - 2**31
    if len(numbers) > 2:
        require_one_order(numbers)
    return sum(numbers, 0.0)


def require_one_order(numbers: list[Number]) -> None:
    """Raises UnsupportedError if the last digits of a sum depend on the order of its numbers."""
    if not all(map(math.isfinite, numbers)):
        return
    fractions = [Fraction(number) for number in numbers]
    unit = max(fraction.denominator for fraction in fractions)
    if sum(abs(fraction) for fraction in fractions) * unit > _EXACT_DOUBLES:
        raise refusal("sums in a tuple sketch whose last digits depend on the order of the rows")


def read_theta(data: bytes) -> Sketch:
    """A theta sketch of its bytes. Raises BrokenSketchError for others."""
    head = _head(data, THETA_FAMILY)
    if data[1] == 4:
        return _unpacked(data, head)
    theta, count, at = _preamble(data, head)
    _require(len(data) >= at + 8 * count)
    return Sketch(theta, dict.fromkeys(struct.unpack_from(f"<{count}Q", data, at)))


def read_tuple(data: bytes, *, is_double: bool) -> Sketch:
    """A tuple sketch of its bytes. Raises BrokenSketchError for others."""
    head = _head(data, TUPLE_FAMILY)
    _require(data[1] == 3)
    theta, count, at = _preamble(data, head)
    form = struct.Struct("<QdB" if is_double else "<QiB")
    _require(len(data) == at + form.size * count)
    entries = {key: (number, mode) for key, number, mode in form.iter_unpack(data[at:])}
    return Sketch(theta, entries)


def _head(data: bytes, family: int) -> int:
    """The count of words before the entries."""
    _require(len(data) >= 8 and data[1] in (3, 4) and data[2] == family)
    _require(bool(data[5] & EMPTY) or data[6:8] == SEED_HASH.to_bytes(2, "little"))
    return data[0]


def _preamble(data: bytes, words: int) -> tuple[int, int, int]:
    """The limit of a sketch, the count of its entries, and where they begin."""
    if data[5] & EMPTY:
        return WHOLE, 0, 8
    _require(words in (1, 2, 3) and len(data) >= 8 * words)
    if words == 1:
        return WHOLE, 1, 8
    count = int.from_bytes(data[8:12], "little")
    return (int.from_bytes(data[16:24], "little") if words == 3 else WHOLE), count, 8 * words


def _unpacked(data: bytes, words: int) -> Sketch:
    """A sketch whose differences are packed in bits."""
    bits, count_bytes, at = data[3], data[4], 8 * words
    _require(words in (1, 2) and len(data) >= at + count_bytes)
    theta = int.from_bytes(data[8:16], "little") if words == 2 else WHOLE
    count = int.from_bytes(data[at : at + count_bytes], "little")
    packed = data[at + count_bytes :]
    _require(bits <= 64 and len(packed) == -(-count * bits // 8))
    whole = int.from_bytes(packed, "big") >> (len(packed) * 8 - count * bits)
    key, keys = 0, []
    for place in range(count):
        key += whole >> (count - 1 - place) * bits & ((1 << bits) - 1)
        keys.append(key)
    return Sketch(theta, dict.fromkeys(keys))


def _require(holds: bool) -> None:
    if not holds:
        raise BrokenSketchError


def write_theta(sketch: Sketch) -> bytes:
    """The bytes of a theta sketch: the differences of its hashes, packed in bits where that is shorter."""
    flags = READ_ONLY | COMPACT | ORDERED
    keys = sorted(sketch.entries)
    if len(keys) > (sketch.theta == WHOLE):
        steps = [key - before for before, key in zip([0, *keys], keys, strict=False)]
        bits = max(steps).bit_length()
        count_bytes = -(-len(keys).bit_length() // 8)
        words = 1 if sketch.theta == WHOLE else 2
        head = bytes([words, 4, THETA_FAMILY, bits, count_bytes, flags]) + SEED_HASH.to_bytes(2, "little")
        limit = b"" if sketch.theta == WHOLE else sketch.theta.to_bytes(8, "little")
        whole = 0
        for step in steps:
            whole = whole << bits | step
        size = -(-len(keys) * bits // 8)
        return (
            head + limit + len(keys).to_bytes(count_bytes, "little") + (whole << size * 8 - len(keys) * bits).to_bytes(size, "big")
        )
    first = flags | (EMPTY if sketch.is_empty else 32 if sketch.theta == WHOLE else 0)
    return _plain_head(sketch, THETA_FAMILY, 0, first) + b"".join(key.to_bytes(8, "little") for key in keys)


def _plain_head(sketch: Sketch, family: int, kind: int, flags: int) -> bytes:
    words = 3 if sketch.theta != WHOLE else 2 if len(sketch.entries) > 1 else 1
    # An empty theta sketch says nothing of its seed.
    seed = 0 if flags & EMPTY and family == THETA_FAMILY else SEED_HASH
    head = bytes([words, 3, family, kind, 0, flags]) + seed.to_bytes(2, "little")
    share = struct.pack("<f", 1) if family == THETA_FAMILY else bytes(4)
    count = len(sketch.entries).to_bytes(4, "little") + share if words > 1 else b""
    return head + count + (sketch.theta.to_bytes(8, "little") if words == 3 else b"")


def write_tuple(sketch: Sketch, *, is_double: bool) -> bytes:
    """The bytes of a tuple sketch. Raises UnsupportedError for one that does not hold all of its hashes."""
    if sketch.theta != WHOLE:
        raise refusal("a tuple sketch that does not hold all of its values")
    flags = READ_ONLY | COMPACT | (EMPTY if sketch.is_empty else 0)
    form = struct.Struct("<QdB" if is_double else "<QiB")
    entries = sorted(sketch.entries.items(), key=lambda entry: (entry[0] & TABLE_MASK, entry[0]))
    packed = (form.pack(key, *(summary or (0, SUM))) for key, summary in entries)
    return _plain_head(sketch, TUPLE_FAMILY, 1, flags) + b"".join(packed)
