"""Values of a column's old type read as the new one, or are refused by name."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import UnsupportedError
from tablestore.format.parquet.casts import convert
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.typestring import parse_type

BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 59, 123456)


@pytest.mark.parametrize(
    ("old", "new", "value", "wanted"),
    [
        ("TINYINT", "BIGINT", -128, -128),
        ("BIGINT", "DOUBLE", 2**53 + 1, float(2**53)),
        ("INT", "FLOAT", 16_777_217, 16_777_216.0),
        ("INT", "DECIMAL(12, 2)", -7, Decimal("-7.00")),
        ("INT", "STRING", -7, "-7"),
        ("FLOAT", "DOUBLE", 0.5, 0.5),
        ("DECIMAL(5, 2)", "DECIMAL(19, 6)", Decimal("1.25"), Decimal("1.250000")),
        ("DECIMAL(5, 2)", "STRING", Decimal("-1.20"), "-1.20"),
        ("DECIMAL(38, 10)", "STRING", Decimal("-1E-10"), "-0.0000000001"),
        ("DECIMAL(38, 10)", "STRING", Decimal("0E-10"), "0.0000000000"),
        ("CHAR(3)", "STRING", "abc", "abc"),
        ("DATE", "TIMESTAMP(6)", dt.date(1969, 12, 31), dt.datetime(1969, 12, 31)),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", BEFORE_1970, BEFORE_1970.replace(microsecond=123000)),
        ("TIMESTAMP(6)", "TIMESTAMP(5)", BEFORE_1970, BEFORE_1970.replace(microsecond=123450)),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", BEFORE_1970.replace(microsecond=123000), BEFORE_1970.replace(microsecond=123000)),
    ],
)
def test_a_change_that_engines_agree_on_converts_downwards_and_keeps_nulls(old: str, new: str, value: Any, wanted: Any) -> None:
    old_type, new_type = parse_type(old), parse_type(new)
    array = pa.array([value, None], to_arrow_type(old_type))
    got = convert(array, old_type, new_type)
    assert got.type == to_arrow_type(new_type)
    assert got.to_pylist() == [wanted, None]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BIGINT", "INT"),
        ("DOUBLE", "FLOAT"),
        ("DOUBLE", "STRING"),
        ("DECIMAL(10, 2)", "DECIMAL(10, 4)"),
        ("DECIMAL(19, 6)", "VARCHAR(20)"),
        ("STRING", "VARCHAR(5)"),
        ("VARCHAR(5)", "CHAR(5)"),
        ("BYTES", "VARBINARY(12)"),
        ("TIMESTAMP(6)", "BIGINT"),
        ("TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "STRING"),
        ("TIMESTAMP(3)", "TIMESTAMP(0)"),
        ("STRING", "INT"),
        ("BOOLEAN", "INT"),
    ],
)
def test_a_change_that_engines_disagree_on_is_refused_by_name(old: str, new: str) -> None:
    old_type, new_type = parse_type(old), parse_type(new)
    with pytest.raises(UnsupportedError, match=r"engines disagree|is read with"):
        convert(pa.nulls(1, to_arrow_type(old_type)), old_type, new_type)


def test_decimals_become_text_without_exponents_beside_nulls_and_long_ones() -> None:
    decimals = [Decimal("1E-10"), None, Decimal("12345678901234567890.5"), Decimal("-2E-9"), Decimal("0.5")]
    got = convert(pa.array(decimals, pa.decimal128(38, 10)), parse_type("DECIMAL(38, 10)"), parse_type("STRING"))
    assert got.to_pylist() == ["0.0000000001", None, "12345678901234567890.5000000000", "-0.0000000020", "0.5000000000"]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("DATE", "TIMESTAMP(9)", dt.date(9999, 12, 31)),
        ("TIMESTAMP(3)", "TIMESTAMP(9)", dt.datetime(1, 1, 1)),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE", dt.datetime(9999, 1, 1, tzinfo=dt.UTC)),
    ],
)
def test_times_that_nanoseconds_do_not_reach_are_not_taken_for_damage(old: str, new: str, value: Any) -> None:
    old_type, new_type = parse_type(old), parse_type(new)
    with pytest.raises(UnsupportedError, match="this file holds times that Arrow cannot hold"):
        convert(pa.array([value], to_arrow_type(old_type)), old_type, new_type)
