"""Finds the values that do not fit, each with the reason.

Values are converted together. Only where that fails they are halved, again and again, until those at fault stand alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tablestore.errors import TablestoreError

Faults = dict[int, str]
"""Reasons by the place of the record that is at fault."""

_WRONG_VALUE = (
    TablestoreError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    pa.ArrowException,
)
_LONGEST_REASON = 500


def convert_each(values: Any, convert: Callable[[Any], pa.Array], kind: pa.DataType) -> tuple[pa.Array, Faults]:
    """Converts an array or list to the type ``kind``; null where ``convert`` raises, and the reasons by place."""
    try:
        return convert(values), {}
    except _WRONG_VALUE as error:
        if len(values) == 1:
            reason = str(error) or f"{_shown(values[0])} is no {kind}"
            return pa.nulls(1, kind), {0: reason[:_LONGEST_REASON]}
    half = len(values) // 2
    first, faults = convert_each(values[:half], convert, kind)
    second, more = convert_each(values[half:], convert, kind)
    return pa.concat_arrays([first, second]), {**faults, **{half + place: reason for place, reason in more.items()}}


def _shown(value: Any) -> str:
    return f"{value.as_py() if isinstance(value, pa.Scalar) else value!r:.100}"


def at_places(faults: Faults, places: Sequence[int]) -> Faults:
    """The faults of some records, by their places among all."""
    return {int(places[place]): reason for place, reason in faults.items()}
