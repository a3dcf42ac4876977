"""Folds the rows of a group into one value, by an aggregate function of a user's.

    class Mean:                                       def median(values: pa.Array) -> float: …
        def create(self) -> list[float]: …            whole groups: hints of arrays, and of a value
        def accumulate(self, state, value: float): …
        def merge(self, state, other): …              optional: of a state for each part of a group
        def value(self, state) -> float: …

``accumulate`` gets the values of one row, or with hints of pyarrow arrays the columns of a part of the group; it changes the state,
or returns the next one. Both engines call it with parts of at most :data:`PART_ROWS` rows. A group without rows has the value of a
new state. What the state holds is all that is kept of a group, but for a function of whole groups, which gets its columns at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablestore.errors import InvalidInputError

PART_ROWS = 65_536
"""Rows of a group that are folded at once."""
_METHODS = ("create", "accumulate", "value")

Columns = Sequence[pa.Array]


@dataclass(frozen=True, slots=True)
class Folded:
    """An aggregate function, as an engine calls it: with the columns of the parts of one group.

    ``function``: an object with ``create``, ``accumulate``, ``value`` and maybe ``merge``, or a function of whole columns.
    """

    function: Any
    by_column: bool

    def __call__(self, parts: Iterable[Columns], types: Sequence[pa.DataType]) -> Any:
        """The value of a group. ``types``: of its columns, where there is no part."""
        if not hasattr(self.function, "accumulate"):
            columns = list(zip(*parts, strict=True)) or [() for _ in types]
            return self.function(*(_joined(chunks, of) for chunks, of in zip(columns, types, strict=True)))
        state, merge = self.function.create(), getattr(self.function, "merge", None)
        for number, part in enumerate(parts):
            if merge is None or number == 0:
                state = self._accumulated(state, part)
            else:
                merged = merge(state, self._accumulated(self.function.create(), part))
                state = state if merged is None else merged
        return self.function.value(state)

    def _accumulated(self, state: Any, part: Columns) -> Any:
        # The function is one of Python's values: only it knows what to do with a row.
        rows = [part] if self.by_column else zip(*(column.to_pylist() for column in part), strict=True)
        for values in rows:
            returned = self.function.accumulate(state, *values)
            state = state if returned is None else returned
        return state


def accumulating(name: str, instance: Any) -> Callable[..., Any]:
    """The method that takes the rows of an aggregate function. Raises InvalidInputError for an object that lacks one it needs."""
    missing = [method for method in _METHODS if not callable(getattr(instance, method, None))]
    if missing:
        raise InvalidInputError(
            f"function {name}: the aggregate function {type(instance).__name__} has no {missing[0]}(): it needs create() for the "
            "state of a group, accumulate(state, …) for its rows, value(state) for the result, and may have merge(state, other)",
            kind="function",
        )
    method: Callable[..., Any] = instance.accumulate
    return method


def parts_of(columns: Columns, start: int, rows: int) -> Iterator[Columns]:
    """Some rows of columns, in parts."""
    for first in range(start, start + rows, PART_ROWS):
        yield [column.slice(first, min(PART_ROWS, start + rows - first)) for column in columns]


def _joined(chunks: Sequence[pa.Array], of: pa.DataType) -> pa.Array:
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.array([], of)
