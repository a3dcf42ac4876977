"""Removed rows of an append table, which a statement updates or deletes, by data file and position.

They come in any order and from any task; the sets of all tasks are put together. Each row may come once. Memory: two bytes a row
where few rows of a file come, an eighth of a byte a row of the file where many do.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from tablestore.errors import InvalidInputError
from tablestore.format.index.deletionvector import decode_deletion_vector, encode_deletion_vector
from tablestore.types.rowposition import DATA_FILE_COLUMN, ROW_POSITION_COLUMN

_MOST = 2**32


class RemovedRows:
    """A set of rows by file and position."""

    def __init__(self) -> None:
        self._positions: dict[str, BitMap] = {}

    def __bool__(self) -> bool:
        return bool(self._positions)

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files, ascending."""
        return tuple(sorted(self._positions))

    def positions(self, file_name: str) -> npt.NDArray[np.uint32]:
        """The positions in a file, ascending."""
        return np.frombuffer(self._positions[file_name].to_array(), np.uint32)

    def add(self, files: pa.ChunkedArray, positions: pa.ChunkedArray) -> None:
        """Add rows. Raises InvalidInputError for nulls and for what cannot be a position, of kind ``second-match`` for a row that
        was added before."""
        if not len(files):
            return
        if files.null_count or positions.null_count:
            raise InvalidInputError(
                f"expected {DATA_FILE_COLUMN} and {ROW_POSITION_COLUMN} in rows of kind +U and -D, found nulls; read the rows to "
                "be changed with their positions",
                kind="row-position",
            )
        encoded = files.cast(pa.string()).combine_chunks().dictionary_encode()
        codes, places = encoded.indices.to_numpy(), positions.cast(pa.int64()).combine_chunks().to_numpy()
        if places.min() < 0 or places.max() >= _MOST:
            raise InvalidInputError(
                f"expected positions from 0 to {_MOST - 1} in {ROW_POSITION_COLUMN}, found {places.min()} to {places.max()}",
                kind="row-position",
            )
        order = np.lexsort((places, codes))
        codes, places = codes[order], places[order].astype(np.uint32)
        bounds = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
        for start, stop in pairwise(bounds):
            self._add(encoded.dictionary[int(codes[start])].as_py(), places[start:stop])

    def _add(self, name: str, ascending: npt.NDArray[np.uint32]) -> None:
        if len(repeats := np.flatnonzero(ascending[1:] == ascending[:-1])):
            raise _second_match(name, int(ascending[repeats[0]]))
        self._unite(name, BitMap(ascending))

    def _unite(self, name: str, added: BitMap) -> None:
        positions = self._positions.setdefault(name, BitMap())
        if positions.intersect(added):
            raise _second_match(name, (positions & added).min())
        positions |= added

    def encoded(self) -> dict[str, bytes]:
        """The positions of each file, as bytes."""
        return {name: encode_deletion_vector(self.positions(name)) for name in self.files}

    @classmethod
    def decoded(cls, encoded: Mapping[str, bytes]) -> "RemovedRows":
        """The rows of :meth:`encoded`. Raises FormatError."""
        removed = cls()
        for name, data in encoded.items():
            removed._positions[name] = BitMap(decode_deletion_vector(data, "change message"))
        return removed

    def unite(self, other: "RemovedRows") -> None:
        """Add the rows of another set. Raises InvalidInputError of kind ``second-match`` for a row that is in both."""
        for name, positions in other._positions.items():
            self._unite(name, positions)

    def items(self) -> Iterator[tuple[str, npt.NDArray[np.uint32]]]:
        """Each file with its positions."""
        return ((name, self.positions(name)) for name in self.files)


def _second_match(name: str, position: int) -> InvalidInputError:
    return InvalidInputError(
        f"expected one change of each row, found a second one of row {position} of data file {name}: several rows of the source "
        "match it. Which of them counts is not defined; leave one source row for each, by an aggregation or a narrower condition",
        kind="second-match",
    )
