"""Functions at the edges of their types: numbers against Python's, equal values of nested types, sets as bytes."""

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from tablestore.errors import FormatError, InvalidInputError
from tablestore.format.index.roaring64 import decode_bitmap64, encode_bitmap64
from tablestore.lsm.functions.aggregate import aggregate_column
from tablestore.lsm.functions.mergefunction import ColumnFunction
from tablestore.lsm.functions.valuecodes import value_codes
from tablestore.lsm.functions.versions import Events

Steps = list[tuple[bool, Any]]


def _combined(function: ColumnFunction | str, kind: pa.DataType, keys: list[Steps]) -> list[Any]:
    """The combined value per key; a step is (adds, value)."""
    steps = [step for key in keys for step in key]
    events = Events(
        np.arange(len(steps), dtype=np.int64),
        np.repeat(np.arange(len(keys), dtype=np.int64), [len(key) for key in keys]),
        len(keys),
        np.array([adds for adds, _ in steps], dtype=np.bool_),
        np.ones(len(steps), dtype=np.bool_),
    )
    column = pa.array([value for _, value in steps], kind)
    function = ColumnFunction(name=function) if isinstance(function, str) else function
    found = aggregate_column(function, column, events, "c")
    assert found.type == kind
    found.validate(full=True)
    return found.to_pylist()  # type: ignore[no-any-return]


def _steps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Steps]]:
    return st.lists(st.lists(st.tuples(st.booleans(), st.none() | values), max_size=6), min_size=1, max_size=5)


def _signed(steps: Steps) -> Any:
    values = [value if adds else -value for adds, value in steps if value is not None]
    return sum(values[1:], values[0]) if values else None


INTEGERS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@settings(max_examples=30)
@given(data=st.data())
def test_integer_sums_are_exact_or_an_error(kind: pa.DataType, data: st.DataObject) -> None:
    bound = 1 << INTEGERS[kind]
    edges = st.sampled_from([-bound, bound - 1, -1, 0, 1, bound // 2])
    keys = data.draw(_steps(edges | st.integers(-bound, bound - 1)))
    expected = [_signed(key) for key in keys]
    if all(value is None or -bound <= value < bound for value in expected):
        assert _combined("sum", kind, keys) == expected
    else:
        with pytest.raises(InvalidInputError, match="sum of column 'c' leaves its type"):
            _combined("sum", kind, keys)


def _unscaled(value: Decimal | None) -> int | None:
    if value is None:
        return None
    sign, digits, _ = value.as_tuple()
    return (-1 if sign else 1) * int("".join(map(str, digits)))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (18, 0), (19, 4), (38, 10)])
@settings(max_examples=30)
@given(data=st.data())
def test_decimal_sums_are_exact_or_an_error(precision: int, scale: int, data: st.DataObject) -> None:
    bound = 10**precision
    numbers = st.sampled_from([bound - 1, 1 - bound, 1, -1, 2**64, -(2**64), 2**32]).filter(lambda n: abs(n) < bound)
    numbers |= st.integers(1 - bound, bound - 1)
    keys = data.draw(_steps(numbers.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))))
    unscaled = [[(adds, _unscaled(value)) for adds, value in key] for key in keys]
    expected = [_signed(key) for key in unscaled]
    kind = pa.decimal128(precision, scale)
    if all(value is None or abs(value) < bound for value in expected):
        found = _combined("sum", kind, keys)
        assert [_unscaled(value) for value in found] == expected
    else:
        with pytest.raises(InvalidInputError, match="sum of column 'c' leaves its type"):
            _combined("sum", kind, keys)


@settings(max_examples=30)
@given(keys=_steps(st.integers(-9, 9).map(lambda n: n / 4)))
def test_sums_of_floats(keys: list[Steps]) -> None:
    assert _combined("sum", pa.float64(), keys) == [_signed(key) for key in keys]


def _product(steps: Steps) -> int | None:
    out: int | None = None
    for adds, value in steps:
        if value is None:
            continue
        if adds:
            out = value if out is None else out * value
        elif out is not None:
            out = (abs(out) // abs(value)) * (1 if (out < 0) == (value < 0) else -1)
    return out


@settings(max_examples=30)
@given(keys=_steps(st.integers(-9, 9).filter(bool)))
def test_products_divide_towards_zero_for_retractions(keys: list[Steps]) -> None:
    assert _combined("product", pa.int64(), keys) == [_product(key) for key in keys]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_integer_products_are_exact_or_an_error_at_the_ends_of_the_type(kind: pa.DataType, data: st.DataObject) -> None:
    bound = 1 << INTEGERS[kind]
    edges = st.sampled_from([-bound, bound - 1, -1, 1, 2, -2, bound // 2, -bound // 2, 3])
    keys = data.draw(_steps(edges | st.integers(-bound, bound - 1).filter(bool)))
    expected = [_product(key) for key in keys]
    # What leaves 64 bits on the way is an error too, even if a retraction brought it back.
    widest = max((abs(value) for key in keys for n in range(len(key)) if (value := _product(key[: n + 1]))), default=0)
    if all(value is None or -bound <= value < bound for value in expected) and widest < 2**63:
        assert _combined("product", kind, keys) == expected
    elif any(value is not None and not -bound <= value < bound for value in expected):
        with pytest.raises(InvalidInputError, match="product of column 'c' leaves its type"):
            _combined("product", kind, keys)


def test_products_at_the_ends_of_int64() -> None:
    least = -(2**63)
    good: list[Steps] = [[(True, 2**62), (True, 1)], [(True, least), (True, 1)], [(True, 2**62), (True, -2)]]
    assert _combined("product", pa.int64(), good) == [2**62, least, least]
    assert _combined("product", pa.int64(), [[(True, least), (False, 2)], [(True, 7), (False, least)]]) == [-(2**62), 0]
    assert _combined("product", pa.int64(), [[(True, 2**40), (True, 0), (True, 2**40)]]) == [0]
    for bad in ([(True, least), (True, -1)], [(True, -1), (True, least)], [(True, least), (False, -1)], [(True, 2**62), (True, 2)]):
        with pytest.raises(InvalidInputError, match="leaves its type int64"):
            _combined("product", pa.int64(), [bad])


@settings(max_examples=30)
@given(numbers=st.lists(st.floats(0.1, 1000), min_size=1, max_size=4), divisor=st.floats(0.1, 1000))
def test_a_float_product_divides_and_does_not_multiply_by_a_rounded_reciprocal(numbers: list[float], divisor: float) -> None:
    expected = math.prod(numbers[1:], start=numbers[0]) / divisor
    assert _combined("product", pa.float64(), [[*((True, number) for number in numbers), (False, divisor)]]) == [expected]


def test_a_decimal_product_takes_a_factor_back_at_every_width() -> None:
    for kind in (pa.decimal128(5, 2), pa.decimal128(18, 0), pa.decimal128(38, 0), pa.decimal128(38, 10)):
        steps = [(True, Decimal(12)), (True, Decimal(-3)), (False, Decimal(12))]
        assert _combined("product", kind, [steps, [(True, Decimal(7)), (False, Decimal(-2))]]) == [
            Decimal(-3),
            Decimal("-3.5") if kind.scale else Decimal(-4),
        ]
    wide = pa.decimal128(38, 0)
    assert _combined("product", wide, [[(True, Decimal(10**18)), (True, Decimal(10**19))]]) == [Decimal(10**37)]
    for bad in ([(True, Decimal(10**37)), (True, Decimal(10**37))], [(True, Decimal(10**19)), (True, Decimal(10**19))]):
        with pytest.raises(InvalidInputError, match="leaves its type"):
            _combined("product", wide, [bad])
    with pytest.raises(InvalidInputError, match="divided by 0"):
        _combined("product", wide, [[(True, Decimal(1)), (False, Decimal(0))]])


def test_the_extremes_of_floats_are_those_of_their_total_order() -> None:
    """As in Java's ``Double.compare``: -0.0 below 0.0, NaN above all."""
    values: Steps = [(True, 0.0), (True, -0.0), (True, math.inf), (True, math.nan), (True, -math.inf)]
    (greatest,), (least,) = _combined("max", pa.float64(), [values]), _combined("min", pa.float64(), [values])
    assert math.isnan(greatest) and least == -math.inf
    assert str(_combined("max", pa.float64(), [values[:2]])) == "[0.0]"
    assert str(_combined("min", pa.float64(), [values[:2]])) == "[-0.0]"
    negative = -math.nan
    assert math.isnan(_combined("max", pa.float64(), [[(True, 1.0), (True, negative)]])[0])


def test_a_product_beyond_its_type_or_divided_by_zero_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="product of column 'c' leaves its type int8"):
        _combined("product", pa.int8(), [[(True, 100), (True, 2)]])
    with pytest.raises(InvalidInputError, match="product of column 'c' leaves its type int64"):
        _combined("product", pa.int64(), [[(True, 1)], [(True, 2**40), (True, 2**40)]])
    with pytest.raises(InvalidInputError, match="divided by 0"):
        _combined("product", pa.int64(), [[(True, 1), (False, 0)]])


@settings(max_examples=30)
@given(
    keys=st.lists(
        st.lists(st.tuples(st.just(True), st.decimals("-99.99", "99.99", places=2)), min_size=1, max_size=4), min_size=1, max_size=4
    )
)
def test_products_of_decimals_are_rounded_at_each_step(keys: list[Steps]) -> None:
    expected = []
    for key in keys:
        product = key[0][1]
        for _, value in key[1:]:
            product = (product * value).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
        expected.append(product)
    assert _combined("product", pa.decimal128(20, 2), keys) == expected


@pytest.mark.parametrize(
    ("kind", "values", "least", "greatest"),
    [
        (pa.float64(), [0.0, -0.0, math.inf], "-0.0", "inf"),
        (pa.float64(), [math.nan, 1.0], "1.0", "nan"),
        (pa.string(), ["b", "", "é", "z"], "''", "'é'"),
        (pa.binary(), [b"\xff", b"a"], "b'a'", "b'\\xff'"),
        (pa.decimal128(38, 1), [Decimal("-1.5"), Decimal(10) ** 36], "Decimal('-1.5')", None),
        (pa.bool_(), [True, False], "False", "True"),
        (pa.timestamp("us"), [5, -7], None, None),
    ],
)
def test_least_and_greatest_by_the_order_of_keys(kind: pa.DataType, values: list[Any], least: Any, greatest: Any) -> None:
    steps = [(True, value) for value in [*values, None]]
    smallest, largest = _combined("min", kind, [steps]), _combined("max", kind, [[], steps])
    assert least is None or repr(smallest[0]) == least
    assert largest[0] is None
    assert greatest is None or repr(largest[1]) == greatest
    assert smallest[0] != largest[1]


NESTED = pa.list_(pa.struct([("k", pa.float32()), ("v", pa.map_(pa.string(), pa.list_(pa.int8())))]))
VALUES = st.none() | st.lists(
    st.none()
    | st.fixed_dictionaries(
        {
            "k": st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan]),
            "v": st.none()
            | st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.lists(st.integers(0, 1), max_size=2)), max_size=2),
        }
    ),
    max_size=2,
)


@settings(max_examples=30)
@given(values=st.lists(VALUES, max_size=12), cut=st.integers(0, 3))
def test_nested_values_are_equal_if_they_look_the_same(values: list[Any], cut: int) -> None:
    column = pa.array(values, NESTED).slice(cut)
    codes = value_codes(column).tolist()
    shown = [repr(value) for value in column.to_pylist()]
    for i, one in enumerate(shown):
        for j, other in enumerate(shown):
            assert (one == other) == (codes[i] == codes[j]), (one, other)


def test_nested_update_without_a_key_keeps_all_rows_up_to_its_limit() -> None:
    kind = pa.list_(pa.struct([("k", pa.int32())]))
    steps: Steps = [(True, [{"k": 1}, None, {"k": 2}]), (False, [{"k": 1}]), (True, [{"k": 1}, {"k": 1}, {"k": 3}])]
    assert _combined("nested_update", kind, [steps]) == [[{"k": 2}, {"k": 1}, {"k": 1}, {"k": 3}]]
    limited = ColumnFunction(name="nested_update", count_limit=2)
    assert _combined(limited, kind, [steps, [(True, None)]]) == [[{"k": 2}, {"k": 1}], None]


def test_sets_are_united() -> None:
    parts = [range(10), range(5, 20), range(1000, 1001)]
    maps: Steps = [(True, bytes(BitMap(part).serialize())) for part in parts]
    alone: Steps = [(True, None), (True, b"not read")]
    (united, kept) = _combined("rbm32", pa.binary(), [maps, alone])
    assert list(BitMap.deserialize(united)) == [*range(20), 1000]
    assert kept == b"not read"

    wide: Steps = [(True, encode_bitmap64(np.array(part, dtype=np.uint64) << np.uint64(20))) for part in parts]
    (united,) = _combined("rbm64", pa.binary(), [wide])
    assert decode_bitmap64(united).tolist() == [n << 20 for n in (*range(20), 1000)]

    thetas, hlls = [], []
    for part in parts:
        theta, hll = datasketches.update_theta_sketch(12), datasketches.hll_sketch(11)
        for value in part:
            theta.update(value)
            hll.update(value)
        thetas.append((True, bytes(theta.compact().serialize())))
        hlls.append((True, bytes(hll.serialize_compact())))
    (united,) = _combined("theta_sketch", pa.binary(), [thetas])
    assert datasketches.compact_theta_sketch.deserialize(united).get_estimate() == 21
    (united,) = _combined("hll_sketch", pa.binary(), [hlls])
    assert round(datasketches.hll_sketch.deserialize(united).get_estimate()) == 21


@pytest.mark.parametrize("function", ["rbm32", "rbm64", "theta_sketch", "hll_sketch"])
def test_bytes_that_are_no_set_are_an_error_by_name(function: str) -> None:
    with pytest.raises(FormatError, match=f"column 'c' holds bytes that are not a serialised {function}"):
        _combined(function, pa.binary(), [[(True, b"abc"), (True, b"xyz")]])
