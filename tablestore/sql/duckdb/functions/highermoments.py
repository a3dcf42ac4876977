"""Computes the skewness and the kurtosis of lists of doubles, with the digits that Spark has where it keeps the rows together.

Spark takes one value after the other, and joins what parts of the rows gave. A list is parted here too, so that long ones are
computed by columns: the next value of all parts at once.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.sql.duckdb.functions.sketchcolumns import starts_of

_F64: TypeAlias = "npt.NDArray[np.float64]"
_I64: TypeAlias = "npt.NDArray[np.int64]"
PART = 1024
"""How many values at most are taken one after the other."""


@dataclass(slots=True)
class _Moments:
    """Holds moments of parts of rows: their counts, averages, and the sums of powers of the distances from these."""

    count: _F64
    average: _F64
    second: _F64
    third: _F64
    fourth: _F64

    def first(self, many: int) -> "_Moments":
        """The moments of so many parts; what is computed of it is computed of these."""
        return _Moments(
            self.count[:many], self.average[:many], self.second[:many], self.third[:many], self.fourth[:many]
        )  # fmt: skip

    def of(self, places: _I64) -> "_Moments":
        """The moments of some parts."""
        return _Moments(
            self.count[places], self.average[places], self.second[places], self.third[places], self.fourth[places]
        )  # fmt: skip

    def put(self, places: _I64, other: "_Moments") -> None:
        """Puts other parts in some places."""
        self.count[places], self.average[places], self.second[places] = other.count, other.average, other.second
        self.third[places], self.fourth[places] = other.third, other.fourth

    def take(self, values: _F64, count: int, *, is_fourth: bool) -> None:
        """Takes one value more in each part, of which it is the ``count``-th."""
        delta = values - self.average
        step = delta / count
        squared, squared_step = delta * delta, step * step
        self.average += step
        self.second += delta * (delta - step)
        # In this order: the first digits of what is added and taken away may be the same.
        self.third -= 3.0 * step * self.second
        self.third += delta * (squared - squared_step)
        if is_fourth:
            self.fourth -= 4.0 * step * self.third
            self.fourth -= 6.0 * squared_step * self.second
            self.fourth += delta * (delta * squared - step * squared_step)


def skewness(lists: pa.Array) -> pa.Array:
    """The skewness of lists; NULL for no values, and for values that do not differ."""
    moments = _of_lists(lists, is_fourth=False)
    with np.errstate(all="ignore"):
        values = np.sqrt(moments.count) * moments.third / np.sqrt(moments.second * moments.second * moments.second)
    return _unless_alike(moments, values)


def kurtosis(lists: pa.Array) -> pa.Array:
    """The kurtosis of lists beyond that of a normal distribution; NULL for no values, and for values that do not differ."""
    moments = _of_lists(lists, is_fourth=True)
    with np.errstate(all="ignore"):
        values = moments.count * moments.fourth / (moments.second * moments.second) - 3.0
    return _unless_alike(moments, values)


def _unless_alike(moments: _Moments, values: _F64) -> pa.Array:
    return pa.array(values, pa.float64(), mask=(moments.count == 0) | (moments.second == 0))


def _of_lists(lists: pa.Array, *, is_fourth: bool) -> _Moments:
    values, counts = _values_and_counts(lists)
    many = -(-counts // PART)
    of_part = np.repeat(np.arange(len(lists)), many)
    place = np.arange(len(of_part)) - np.repeat(starts_of(many), many)
    sizes = np.minimum(counts[of_part] - PART * place, PART)
    with np.errstate(all="ignore"):
        parts = _of_parts(values, starts_of(counts)[of_part] + PART * place, sizes, is_fourth=is_fourth)
        whole = _Moments(*(np.zeros(len(lists)) for _ in range(5)))
        for step in range(int(many.max(initial=0))):
            some = np.flatnonzero(many > step)
            whole.put(some, _joined(whole.of(some), parts.of(starts_of(many)[some] + step)))
    return whole


def _values_and_counts(lists: pa.Array) -> tuple[_F64, _I64]:
    """The values of lists one behind the other, without NULLs, and how many each list has."""
    values = lists.flatten()
    counts = np.asarray(pc.list_value_length(lists).fill_null(0)).astype(np.int64)
    if values.null_count:
        are_null = np.flatnonzero(np.asarray(values.is_null()))
        counts -= np.bincount(np.searchsorted(np.cumsum(counts), are_null, "right"), minlength=len(counts))
        values = values.drop_null()
    return np.asarray(values), counts


def _of_parts(values: _F64, starts: _I64, sizes: _I64, *, is_fourth: bool) -> _Moments:
    moments = _Moments(*(np.zeros(len(starts)) for _ in range(5)))
    # The largest come first: those that have one more value are the first ones.
    order = np.argsort(-sizes, kind="stable")
    ordered = sizes[order]
    at = starts[order]
    moments.count[:] = ordered
    most = int(sizes.max(initial=0))
    actives = np.searchsorted(-ordered, -np.arange(most), "left").tolist()
    for count, active in enumerate(actives, 1):
        moments.first(active).take(values[at[:active]], count, is_fourth=is_fourth)
        at += 1
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return moments.of(back)


def _joined(left: _Moments, right: _Moments) -> _Moments:
    count = left.count + right.count
    delta = right.average - left.average
    step = np.where(count == 0, 0.0, delta / count)
    n1, n2 = left.count, right.count
    third = left.third + right.third + step * step * delta * n1 * n2 * (n1 - n2)
    third += 3.0 * step * (n1 * right.second - n2 * left.second)
    fourth = left.fourth + right.fourth + step * step * step * delta * n1 * n2 * (n1 * n1 - n1 * n2 + n2 * n2)
    fourth += 6.0 * step * step * (n1 * n1 * right.second + n2 * n2 * left.second)
    fourth += 4.0 * step * (n1 * right.third - n2 * left.third)
    return _Moments(count, left.average + step * n2, left.second + right.second + delta * step * n1 * n2, third, fourth)
