"""Compares the serialised keys of metadata, such as the ends of a file's key range.

The order is exactly that of sorted rows (see ``keys``): nulls first, text by its UTF-8 bytes, -0.0 < 0.0 < NaN, and one NaN
whatever its bits. All comparisons of file keys (overlap, levels, sections, runs, pruning by key range) use this order. Python's
own has no place for null and NaN, and takes -0.0 for 0.0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tablestore.format.binaryrow import decode_row, header_bytes
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.rowcolumns import row_field
from tablestore.lsm.keys import key_at, plain_columns
from tablestore.types.arrays import numbers_of
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import INTEGER_ROOTS, TEXT_ROOTS, AtomicType, DataType, Field
from tablestore.types.filter.predicate import to_scalar

_PLAIN_ROOTS = INTEGER_ROOTS | TEXT_ROOTS
FEWEST_AT_ONCE = 16
"""Fewer keys are decoded as fast one by one."""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The order of serialised keys of these types. Called with a key, it gives a value that sorts as the key does."""

    types: tuple[DataType, ...]

    @classmethod
    def of(cls, fields: Iterable[Field]) -> "KeyOrder":
        """The order of a table's key columns."""
        return cls(tuple(field.type for field in fields))

    def __call__(self, key: bytes) -> tuple[tuple[int, Any], ...]:
        return comparable_key(decode_row(key, self.types))

    def of_all(self, keys: Sequence[bytes]) -> list[tuple[tuple[int, Any], ...]]:
        """The values of many keys, in order."""
        size = 4 + header_bytes(len(self.types)) + 8 * len(self.types)
        is_plain = all(isinstance(kind, AtomicType) and kind.root in INTEGER_ROOTS for kind in self.types)
        if self.types and is_plain and all(len(key) == size and not key[4] for key in keys):
            ends = pa.py_buffer(np.arange(len(keys) + 1, dtype=np.int32) * size)
            rows = pa.Array.from_buffers(pa.binary(), len(keys), [None, ends, pa.py_buffer(b"".join(keys))])
            columns = [row_field(rows, len(self.types), place, kind) for place, kind in enumerate(self.types)]
            # A null is a null or damage: the one is told from the other key by key.
            if not any(column.null_count for column in columns):
                return list(zip(*([(1, value) for value in numbers_of(column).tolist()] for column in columns), strict=True))
        return list(map(self, keys))

    def overlap(self, one: DataFileMeta, other: DataFileMeta) -> bool:
        """True if the key ranges of two files meet. Without a key any two do: then the number orders whole files."""
        if not self.types:
            return True
        return self(other.min_key) <= self(one.max_key) and self(one.min_key) <= self(other.max_key)


def comparable_key(values: Sequence[object]) -> tuple[tuple[int, Any], ...]:
    """A decoded key as a tuple that sorts as the key does."""
    return tuple((0, 0) if value is None else (1, _comparable(value)) for value in values)


def row_bound(key: bytes, fields: Sequence[Field]) -> tuple[int | bytes, ...]:
    """A serialised key in the form in which the plain columns of rows compare."""
    values = decode_row(key, [field.type for field in fields])
    if all(_has_plain_form(field.type) for field in fields) and None not in values:
        # The plain form of whole numbers and of text is at hand.
        return tuple(part for value, field in zip(values, fields, strict=True) for part in _plain_form(value, field.type))
    # One key of metadata. Arrow takes some values (nanoseconds with a zone) only as scalars.
    columns = [
        pa.nulls(1, to_arrow_type(field.type)) if value is None else pa.repeat(to_scalar(value, to_arrow_type(field.type)), 1)
        for value, field in zip(values, fields, strict=True)
    ]
    return key_at(plain_columns(columns, [field.type.nullable for field in fields]), 0)


def _has_plain_form(kind: DataType) -> bool:
    return isinstance(kind, AtomicType) and kind.root in _PLAIN_ROOTS


def _plain_form(value: Any, kind: DataType) -> tuple[int | bytes, ...]:
    plain = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return (1, plain) if kind.nullable else (plain,)


def _comparable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, float):
        bits = int(np.float64(np.nan if value != value else value).view(np.int64))
        return bits ^ ((bits >> 63) & (2**63 - 1))
    return value
