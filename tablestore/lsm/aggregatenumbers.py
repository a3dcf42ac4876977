"""sum, product, bool_and and bool_or: one number per key, from all its values at once.

A sum or product that leaves the column's type is an error, not another number: all are worked out wider than the type, the
64-bit ones in two halves, decimals in four.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.lsm.events import Events, Mask, Places, spread
from tablestore.lsm.mergefn import ColumnFunction

_LOW = np.int64(0xFFFFFFFF)


def sum_up(function: ColumnFunction, column: pa.Array, events: Events, name: str) -> pa.Array:
    """The sum; retractions count negative; null if there is no value."""
    kind = column.type
    events = events.where(events.valid(column))
    starts = events.starts()
    if not len(starts):
        return pa.nulls(events.keys, kind)
    values = column.take(pa.array(events.rows))
    if pa.types.is_floating(kind):
        numbers = values.to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.add.reduceat(np.where(events.adds, numbers, -numbers), starts)
        return spread(pa.array(sums, kind), events)
    if pa.types.is_decimal(kind):
        return spread(_decimal_sums(values, events.adds, starts, name), events)
    return spread(_integer_sums(values, events.adds, starts, name), events)


def multiply(function: ColumnFunction, column: pa.Array, events: Events, name: str) -> pa.Array:
    """The product; retractions divide, integers towards zero; one that comes before any value is left out."""
    kind = column.type
    events = events.where(events.valid(column))
    first = events.first(events.adds)
    events = events.where((first[events.key] >= 0) & (np.arange(len(events.rows)) >= first[events.key]))
    starts = events.starts()
    if not len(starts):
        return pa.nulls(events.keys, kind)
    values = column.take(pa.array(events.rows))
    if pa.types.is_decimal(kind):
        return spread(_decimal_products(values, events, name), events)
    numbers = values.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if pa.types.is_floating(kind):
            factors = numbers if events.adds.all() else np.where(events.adds, numbers, 1 / numbers)
            return spread(pa.array(np.multiply.reduceat(factors, starts), kind), events)
        sizes = np.multiply.reduceat(numbers.astype(np.float64), starts)
    if events.adds.all() and bool((np.abs(sizes) < 2.0**62).all()):
        return spread(_fitting(np.multiply.reduceat(numbers.astype(np.int64), starts), kind, name, "product"), events)
    return spread(_stepwise_products(numbers.astype(np.int64), events, kind, name), events)


def truth(function: ColumnFunction, column: pa.Array, events: Events, name: str) -> pa.Array:
    """bool_and and bool_or."""
    events = events.where(events.valid(column))
    starts = events.starts()
    if not len(starts):
        return pa.nulls(events.keys, column.type)
    values = column.take(pa.array(events.rows)).to_numpy(zero_copy_only=False).astype(np.bool_)
    combine = np.logical_and if function.name == "bool_and" else np.logical_or
    return spread(pa.array(combine.reduceat(values, starts)), events)


def _integer_sums(values: pa.Array, adds: Mask, starts: Places, name: str) -> pa.Array:
    numbers = values.to_numpy(zero_copy_only=False).astype(np.int64)
    if values.type.bit_width < 64:
        return _fitting(np.add.reduceat(np.where(adds, numbers, -numbers), starts), values.type, name, "sum")
    sign = np.where(adds, np.int64(1), np.int64(-1))
    low = np.add.reduceat((numbers & _LOW) * sign, starts)
    high = np.add.reduceat((numbers >> 32) * sign, starts) + (low >> 32)
    if bool((high != high.astype(np.int32)).any()):
        raise _overflow(name, values.type, "sum")
    return pa.array((high << 32) | (low & _LOW), values.type)


def _decimal_sums(values: pa.Array, adds: Mask, starts: Places, name: str) -> pa.Array:
    """Sums of 32-bit digits, then the carries."""
    kind = values.type
    wide = values.cast(pa.decimal128(38, kind.scale))
    words = np.frombuffer(wide.buffers()[1], dtype="<i4").reshape(-1, 4)[wide.offset : wide.offset + len(wide)]
    sign = np.where(adds, np.int64(1), np.int64(-1))
    digits = []
    for position in range(4):
        # The upper digit carries the sign of the number, the others are unsigned.
        digit = words[:, position].astype(np.int64)
        digits.append(np.add.reduceat((digit if position == 3 else digit & _LOW) * sign, starts))
    for position in range(3):
        digits[position + 1] += digits[position] >> 32
        digits[position] &= _LOW
    if bool((digits[3] != digits[3].astype(np.int32)).any()):
        raise _overflow(name, kind, "sum")
    packed = np.stack([digit.astype(np.uint32) for digit in digits], axis=1)
    raw = pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(starts), [None, pa.py_buffer(packed.tobytes())])
    return _narrowed(raw, kind, name, "sum")


def _stepwise_products(numbers: npt.NDArray[np.int64], events: Events, kind: pa.DataType, name: str) -> pa.Array:
    """The products of integers where order matters (division) or an overflow is near: the n-th event of all keys at once."""
    starts, counts = _segments(events)
    product = numbers[starts]
    for step in range(1, int(counts.max())):
        longer = np.flatnonzero(counts > step)
        place = starts[longer] + step
        one, other = product[longer], numbers[place]
        adds = events.adds[place]
        if bool((other[~adds] == 0).any()):
            raise InvalidInputError(
                f"the product of column {name!r} cannot be divided by 0, which a retraction asks for; set "
                f"fields.{name}.ignore-retract to skip retractions",
                kind="retraction",
            )
        size = one.astype(np.float64) * other.astype(np.float64)
        if bool((np.abs(size[adds]) >= 2.0**62).any()):
            raise _overflow(name, kind, "product")
        divisor = np.where(adds, 1, other)
        quotient = np.abs(one) // np.abs(divisor) * np.sign(one) * np.sign(divisor)
        product[longer] = np.where(adds, one * other, quotient)
    return _fitting(product, kind, name, "product")


def _decimal_products(values: pa.Array, events: Events, name: str) -> pa.Array:
    """Each step is rounded to the column's scale, halves away from zero, as Paimon does."""
    kind = values.type
    if not events.adds.all():
        raise InvalidInputError(
            f"a product of type {kind} (column {name!r}) cannot be divided exactly, which a retraction asks for; set "
            f"fields.{name}.ignore-retract to skip retractions",
            kind="retraction",
        )
    wide = pa.decimal256(kind.precision, kind.scale)
    starts, counts = _segments(events)
    values = values.cast(wide)
    product = values.take(pa.array(starts))
    for step in range(1, int(counts.max())):
        longer = np.flatnonzero(counts > step)
        found = pc.multiply(product.take(pa.array(longer)), values.take(pa.array(starts[longer] + step)))
        rounded = pc.round(found, ndigits=kind.scale, round_mode="half_towards_infinity")
        place = np.arange(len(product))
        place[longer] = len(product) + np.arange(len(longer))
        product = pa.concat_arrays([product, _narrowed(rounded, wide, name, "product")]).take(pa.array(place))
    return product.cast(kind)


def _segments(events: Events) -> tuple[Places, Places]:
    starts = events.starts()
    return starts, np.diff(np.append(starts, len(events.rows)))


def _fitting(numbers: npt.NDArray[np.int64], kind: pa.DataType, name: str, what: str) -> pa.Array:
    try:
        return pa.array(numbers).cast(kind)
    except pa.ArrowInvalid as error:
        raise _overflow(name, kind, what) from error


def _narrowed(numbers: pa.Array, kind: pa.DataType, name: str, what: str) -> pa.Array:
    try:
        out = numbers.cast(kind)
        # A cast to the same type looks at nothing.
        out.validate(full=True)
    except pa.ArrowInvalid as error:
        raise _overflow(name, kind, what) from error
    return out


def _overflow(name: str, kind: pa.DataType, what: str) -> InvalidInputError:
    return InvalidInputError(
        f"the {what} of column {name!r} leaves its type {kind}: some key's values are too large together; widen the column",
        kind="overflow",
    )
