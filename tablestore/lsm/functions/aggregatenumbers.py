"""Aggregate functions sum, product, bool_and and bool_or: one number per key, from all its values at once.

A sum or product that leaves the column's type is an error, not another number: all are worked out wider than the type, the
64-bit ones in two halves, decimals in four.
"""

from collections.abc import Iterator
from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.lsm.functions.mergefunction import ColumnFunction
from tablestore.lsm.functions.versions import Events
from tablestore.types.arrays import Mask, Places

_LOW = np.int64(0xFFFFFFFF)
_LEAST = np.iinfo(np.int64).min
_EXACT = Context(prec=76)


def sum_up(function: ColumnFunction, values: pa.Array, events: Events, name: str) -> pa.Array:
    """The sum; retractions count negative."""
    starts = events.starts()
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            return pa.array(np.add.reduceat(np.where(events.adds, numbers, -numbers), starts), values.type)
    sums = _decimal_sums if pa.types.is_decimal(values.type) else _integer_sums
    return sums(values, events.adds, starts, name)


def multiply(function: ColumnFunction, values: pa.Array, events: Events, name: str) -> pa.Array:
    """The product; retractions divide, integers towards zero, decimals rounded. The first event of each key adds."""
    if pa.types.is_floating(values.type):
        return _float_products(values, events)
    products = _decimal_products if pa.types.is_decimal(values.type) else _integer_products
    return products(values, events, name)


def truth(function: ColumnFunction, values: pa.Array, events: Events, name: str) -> pa.Array:
    """bool_and and bool_or."""
    combine = np.logical_and if function.name == "bool_and" else np.logical_or
    return pa.array(combine.reduceat(values.to_numpy(zero_copy_only=False).astype(np.bool_), events.starts()))


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


def _float_products(values: pa.Array, events: Events) -> pa.Array:
    numbers = values.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if events.adds.all():
            return pa.array(np.multiply.reduceat(numbers, events.starts()), values.type)
        product = numbers[events.starts()]
        for chosen, place in _later_events(events):
            # Divided, not multiplied by the reciprocal: 49 x (1 / 49) is not 1.
            product[chosen] = np.where(events.adds[place], product[chosen] * numbers[place], product[chosen] / numbers[place])
    return pa.array(product, values.type)


def _integer_products(values: pa.Array, events: Events, name: str) -> pa.Array:
    kind = values.type
    numbers = values.to_numpy(zero_copy_only=False).astype(np.int64)
    if events.adds.all():
        with np.errstate(over="ignore"):
            sizes = np.multiply.reduceat(np.abs(numbers.astype(np.float64)), events.starts())
        # Far from the end of the type, whatever the rounding of the sizes: then no step of it can have left the type either.
        if bool((sizes < 2.0**62).all()) and bool(numbers.all()):
            return _fitting(np.multiply.reduceat(numbers, events.starts()), kind, name, "product")
    product = numbers[events.starts()]
    for chosen, place in _later_events(events):
        one, other, adds = product[chosen], numbers[place], events.adds[place]
        _check_divisors(other[~adds] == 0, name)
        product[chosen] = np.where(adds, _times(one, other), _quotients(one, np.where(adds, 1, other)))
        if bool(np.where(adds, _leaves_type(one, other), (one == _LEAST) & (other == -1)).any()):
            raise _overflow(name, kind, "product")
    return _fitting(product, kind, name, "product")


def _times(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    with np.errstate(over="ignore"):
        return one * other


def _leaves_type(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> Mask:
    """The mask of the products that overflow 64-bit integers: the wrapped product does not divide back."""
    product, divisor = _times(one, other), np.where(one == 0, 1, one)
    # The least number divided by -1 is itself again, without being its negative.
    wrong: Mask = (one != 0) & ((_quotients(product, divisor) != other) | ((one == -1) & (other == _LEAST)))
    return wrong


def _quotients(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Divided towards zero."""
    with np.errstate(over="ignore"):
        down = one // other
        up = ((one < 0) != (other < 0)) & (down * other != one)
        return np.where(up, down + 1, down)


def _decimal_products(values: pa.Array, events: Events, name: str) -> pa.Array:
    """Each step is rounded to the column's scale, halves away from zero, as Paimon does."""
    kind = values.type
    wide = pa.decimal256(kind.precision, kind.scale)
    starts = events.starts()
    values = values.cast(wide)
    product = values.take(pa.array(starts))
    for chosen, place in _later_events(events):
        adds = events.adds[place]
        parts = [product]
        if (some := np.flatnonzero(adds)).size:
            products = _exact_products(product.take(pa.array(chosen[some])), values.take(pa.array(place[some])))
            rounded = pc.round(products, ndigits=kind.scale, round_mode="half_towards_infinity")
            parts.append(_narrowed(rounded, wide, name, "product"))
        if (retracted := np.flatnonzero(~adds)).size:
            parts.append(
                _decimal_quotients(product.take(pa.array(chosen[retracted])), values.take(pa.array(place[retracted])), name)
            )
        source = np.arange(len(product))
        source[chosen[np.concatenate([some, retracted])]] = len(product) + np.arange(len(chosen))
        product = pa.concat_arrays(parts).take(pa.array(source))
    return product.cast(kind)


def _exact_products(one: pa.Array, other: pa.Array) -> pa.Array:
    """Products of decimals of up to 38 digits, of which Arrow says that they take 77 digits, and they take 76."""
    if one.type.precision < 38:
        return pc.multiply(one, other)
    scale = one.type.scale
    narrow = (_as_type(side, pa.decimal256(37, scale)) for side in (one, other))
    return _as_type(pc.multiply(*narrow), pa.decimal256(76, 2 * scale))


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same bytes under another type."""
    return pa.Array.from_buffers(kind, len(array), array.buffers(), offset=array.offset)


def _decimal_quotients(one: pa.Array, other: pa.Array, name: str) -> pa.Array:
    """Rounded to the scale, halves away from zero."""
    kind = one.type
    # Numbers of up to 76 digits: Arrow divides no decimals of that size, so they are Python's, one for each key with a retraction.
    dividends, divisors = (np.array([_unscaled(value) for value in side.to_pylist()], dtype=object) for side in (one, other))
    _check_divisors(divisors == 0, name)
    sizes, steps = abs(dividends) * 10**kind.scale, abs(divisors)
    rounded = (2 * sizes + steps) // (2 * steps)
    signed = np.where((dividends < 0) != (divisors < 0), -rounded, rounded)
    if any(abs(value) >= 10**kind.precision for value in signed):
        raise _overflow(name, kind, "product")
    return pa.array([Decimal(value).scaleb(-kind.scale, _EXACT) for value in signed.tolist()], kind)


def _unscaled(value: Decimal) -> int:
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


def _check_divisors(zero: npt.NDArray[np.bool_], name: str) -> None:
    if bool(zero.any()):
        raise InvalidInputError(
            f"the product of column {name!r} cannot be divided by 0, which a retraction asks for; set "
            f"fields.{name}.ignore-retract to skip retractions",
            kind="retraction",
        )


def _later_events(events: Events) -> Iterator[tuple[Places, Places]]:
    """The keys that have a second event, a third and so on, and its place: what needs an order is done for all keys at once."""
    starts = events.starts()
    counts = np.diff(np.append(starts, len(events.rows)))
    for step in range(1, int(counts.max())):
        longer = np.flatnonzero(counts > step)
        yield longer, starts[longer] + step


def _fitting(numbers: npt.NDArray[np.int64], kind: pa.DataType, name: str, quantity: str) -> pa.Array:
    try:
        return pa.array(numbers).cast(kind)
    except pa.ArrowInvalid as error:
        raise _overflow(name, kind, quantity) from error


def _narrowed(numbers: pa.Array, kind: pa.DataType, name: str, quantity: str) -> pa.Array:
    try:
        out = numbers.cast(kind)
        # A cast to the same type looks at nothing.
        out.validate(full=True)
    except pa.ArrowInvalid as error:
        raise _overflow(name, kind, quantity) from error
    return out


def _overflow(name: str, kind: pa.DataType, quantity: str) -> InvalidInputError:
    return InvalidInputError(
        f"the {quantity} of column {name!r} leaves its type {kind}: some key's values are too large together; widen the column",
        kind="overflow",
    )
