"""Which types widen: what an alteration may ask for is always something that every reader can do, and nothing is lost."""

from itertools import product

import pyarrow as pa
import pytest

from tablestore.format.parquet.casts import convert
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import AtomicType, TypeRoot
from tablestore.types.evolution.widening import can_read_as, is_same, keeps_values
from tablestore.types.typestring import parse_type, type_to_sql

TYPES = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(3, 0)", "DECIMAL(5, 2)", "DECIMAL(19, 0)",
    "DECIMAL(38, 10)", "CHAR(4)", "VARCHAR(4)", "VARCHAR(9)", "STRING", "BINARY(4)", "VARBINARY(4)", "BYTES", "DATE", "TIME(0)",
    "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE",
]  # fmt: skip
EXTREMES: dict[TypeRoot, list[object]] = {
    TypeRoot.TINYINT: [-128, 0, 127],
    TypeRoot.SMALLINT: [-(2**15), 2**15 - 1],
    TypeRoot.INT: [-(2**31), 2**31 - 1],
    TypeRoot.BIGINT: [-(2**63), 2**63 - 1],
    TypeRoot.FLOAT: [0.1, -1e38, 1e-45],
    TypeRoot.DATE: [-719162, 2932896],
}


def atomic(text: str) -> AtomicType:
    parsed = parse_type(text)
    assert isinstance(parsed, AtomicType)
    return parsed


@pytest.mark.parametrize("old", TYPES)
def test_what_may_be_asked_for_can_be_read(old: str) -> None:
    for new in TYPES:
        if keeps_values(atomic(old), atomic(new)):
            assert can_read_as(atomic(old), atomic(new)), new


def test_widening_goes_one_way_only() -> None:
    back = [
        (a, b) for a, b in product(TYPES, TYPES) if a != b and all(keeps_values(atomic(x), atomic(y)) for x, y in ((a, b), (b, a)))
    ]
    # A type and its padded or blank twin hold the same values.
    assert back in ([], [("VARBINARY(4)", "BINARY(4)")])


def test_widening_twice_is_widening() -> None:
    types = [atomic(text) for text in TYPES]
    broken = [
        (type_to_sql(a), type_to_sql(b), type_to_sql(c))
        for a, b, c in product(types, types, types)
        if keeps_values(a, b) and keeps_values(b, c) and not keeps_values(a, c)
    ]
    assert broken == []


@pytest.mark.parametrize("root", EXTREMES)
def test_no_value_is_lost_by_a_widening(root: TypeRoot) -> None:
    old = atomic(root.value)
    values = pa.array(EXTREMES[root], pa.int32() if root is TypeRoot.DATE else to_arrow_type(old)).cast(to_arrow_type(old))
    checked = 0
    for text in TYPES:
        new = atomic(text)
        if keeps_values(old, new) and not is_same(old, new):
            checked += 1
            assert convert(values, old, new).cast(to_arrow_type(old)).equals(values), text
    assert checked or root is TypeRoot.BIGINT
