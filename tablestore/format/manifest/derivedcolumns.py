"""Computes columns of manifest entries out of others, so that a walk over all files reads eight bytes instead of a name.

    name_hash        int64   the same for the same file name; of different names it differs, but for rare accidents
    is_plain         bool    a Parquet file in its place in the table, with all columns
    never_retracts   bool    none of its rows is ``-U`` or ``-D``

A sidecar stores them beside the entries.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.types.arrays import NO, places_array

NAME_HASH, IS_PLAIN, NEVER_RETRACTS = "name_hash", "is_plain", "never_retracts"

_NAMES_AT_A_TIME = 4_096
# A longer name has the hash of its begin, and of some of the rest.
_LONGEST = 1024
_NONE = places_array(np.zeros(1, np.int64))[0]


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """A column of ``type`` that ``compute`` makes of the columns ``of``."""

    type: pa.DataType
    of: tuple[str, ...]
    compute: Callable[..., pa.Array]


def name_hashes(names: pa.Array) -> pa.Array:
    """A number for each name: the sum of its bytes, each by a number of its place, modulo 2**64. Memory: the numbers, and some
    hundred bytes for each byte of a few thousand names."""
    starts = range(0, max(len(names), 1), _NAMES_AT_A_TIME)
    return pa.concat_arrays([_name_hashes(names.slice(start, _NAMES_AT_A_TIME)) for start in starts])


def _name_hashes(names: pa.Array) -> pa.Array:
    _, offsets_buffer, data_buffer = names.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[names.offset : names.offset + len(names) + 1].astype(np.int64)
    if not len(names) or offsets[-1] == offsets[0]:
        return places_array(np.zeros(len(names), np.int64))
    data = np.frombuffer(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
    ends = offsets - offsets[0]
    places = np.arange(len(data)) - np.repeat(ends[:-1], np.diff(ends))
    sums = np.zeros(len(data) + 1, np.uint64)
    # One more than the byte, so that a NUL at the end counts.
    np.cumsum((data + np.uint64(1)) * _FACTORS[places % _LONGEST], out=sums[1:])
    hashes = sums[ends[1:]] - sums[ends[:-1]]
    return pa.Array.from_buffers(pa.int64(), len(hashes), [None, pa.py_buffer(hashes)])


def _factors(count: int) -> npt.NDArray[np.uint64]:
    """Numbers without a pattern, the same for ever (splitmix64)."""
    numbers = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31)) | np.uint64(1)


_FACTORS = _factors(_LONGEST)


def _is_plain(names: Any, external_paths: Any, write_cols: Any) -> pa.Array:
    return pc.and_(pc.ends_with(names, ".parquet"), pc.and_(pc.is_null(external_paths), pc.is_null(write_cols)))


def _never_retracts(counts: Any, digests: Any) -> pa.Array:
    # Only our own count is believed: a file of ours has a digest.
    return pc.and_(pc.fill_null(pc.equal(counts, _NONE), NO), pc.is_valid(digests))


DERIVED_COLUMNS: Mapping[str, DerivedColumn] = {
    NAME_HASH: DerivedColumn(pa.int64(), ("file_name",), name_hashes),
    IS_PLAIN: DerivedColumn(pa.bool_(), ("file_name", "external_path", "write_cols"), _is_plain),
    NEVER_RETRACTS: DerivedColumn(pa.bool_(), ("delete_row_count", "footer_digest"), _never_retracts),
}
