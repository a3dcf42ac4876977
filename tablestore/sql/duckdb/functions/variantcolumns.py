"""Runs functions of VARIANT values, and of others beside them, over columns: each other row once."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa


def each(call: Callable[..., Any], result: pa.DataType) -> Callable[..., pa.Array]:
    """A function over columns by one over values, which is called for each other row once; NULL where the first value is."""

    def over_columns(*columns: pa.Array) -> pa.Array:
        known: dict[tuple[Any, ...], Any] = {}
        values = []
        # A VARIANT is read from its bytes: there is no other way than one value at a time.
        for row in zip(*map(values_of, columns), strict=True):
            if row not in known:
                known[row] = None if row[0] is None else call(*row)
            values.append(_plain(known[row]))
        return pa.array(values, result)

    return over_columns


def values_of(column: pa.Array) -> list[Any]:
    """The values of a column, a VARIANT as its value and metadata."""
    if not pa.types.is_struct(column.type):
        return list(column.to_pylist())
    values, metadata = (column.field(place).to_pylist() for place in (0, 1))
    is_there = column.is_valid().to_pylist()
    return [
        (one, other) if valid and one is not None else None for one, other, valid in zip(values, metadata, is_there, strict=True)
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"value": value[0], "metadata": value[1]}
    if isinstance(value, list):
        return [{"pos": pos, "key": key, "value": _plain(part)} for pos, key, part in value]
    return value
