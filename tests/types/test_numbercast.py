"""Every value becomes the same number in another type, or is refused."""

import math
from decimal import Context, Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tablestore.json.jsonrows import BadJson, rows_from_json
from tablestore.types.numbercast import to_decimal, to_float

EXACT = Context(prec=200)
# Arrow's own cast of 128 bits gives 370473639808768018.07399731798602678272.
OVERFLOWS = "214748364800000000000"


def fits(value: Decimal, kind: pa.Decimal128Type) -> bool:
    with localcontext(EXACT):
        moved = value.scaleb(kind.scale)
        return moved == moved.to_integral_value() and abs(moved) < Decimal(10) ** kind.precision


def outcome(values: pa.Array, kind: pa.DataType) -> Decimal | None:
    try:
        return to_decimal(values, kind)[0].as_py()
    except pa.ArrowInvalid:
        return None


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38), st.integers(1, 38), st.data())
@example(int(OVERFLOWS), 0, 38, None)
def test_a_decimal_is_the_same_number_or_refused(digits: int, scale: int, precision: int, data: st.DataObject | None) -> None:
    kind = pa.decimal128(precision, 20 if data is None else data.draw(st.integers(0, precision)))
    value = Decimal(digits).scaleb(-scale, EXACT)
    source = pa.array([value], pa.decimal128(38, scale))
    expected = value if fits(value, kind) else None
    assert outcome(source, kind) == expected
    assert outcome(pa.array([format(value, "f")]), kind) == expected


@given(st.integers(-(10**20), 10**20), st.integers(-30, 30))
@example(2147483648, 11)
def test_a_text_with_an_exponent_is_the_same_number_or_refused(digits: int, exponent: int) -> None:
    kind = pa.decimal128(38, 20)
    value = Decimal(digits).scaleb(exponent, EXACT)
    assert outcome(pa.array([f"{digits}e{exponent}"]), kind) in {value if fits(value, kind) else None, None}


@pytest.mark.parametrize("text", [f'"{OVERFLOWS}"', OVERFLOWS, '"2147483648e11"'])
def test_a_message_with_a_decimal_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(BadJson, match="'d'"):
        rows_from_json([b'{"d":1}', f'{{"d":{text}}}'.encode()], pa.schema([("d", pa.decimal128(38, 20))]))


@pytest.mark.parametrize(
    ("texts", "kind", "found"),
    [
        (["1.5", " -0.0", "", None], pa.float64(), None),
        (["1e308", "-1e308 ", "1e-400"], pa.float64(), [1e308, -1e308, 0.0]),
        (["inf", "+Infinity", " -INF "], pa.float64(), [math.inf, math.inf, -math.inf]),
        (["3.4028234e38", None], pa.float32(), [3.4028234663852886e38, None]),
        (["1e400"], pa.float64(), None),
        (["inf", "-1e309"], pa.float64(), None),
        (["1e39"], pa.float32(), None),
    ],
)
def test_a_text_that_is_too_large_is_refused_and_infinity_is_written_out(
    texts: list[str | None], kind: pa.DataType, found: list[float | None] | None
) -> None:
    given = pa.array(texts, pa.string())
    if found is None:
        with pytest.raises(pa.ArrowInvalid):
            to_float(given, kind)
    else:
        assert to_float(given, kind).to_pylist() == found


def test_a_double_that_no_float_holds_is_refused_and_infinity_stays_itself() -> None:
    given = pa.array([math.inf, -math.inf, None, -0.0, 1e-50], pa.float64())
    assert to_float(given, pa.float32()).to_pylist() == [math.inf, -math.inf, None, -0.0, 0.0]
    with pytest.raises(pa.ArrowInvalid, match="too large"):
        to_float(pa.array([1.0, 1e39]), pa.float32())
    assert math.isnan(to_float(pa.array([math.nan]), pa.float32())[0].as_py())
