"""Each record stands for itself: the good ones become rows and the bad ones are named with a reason, in any order and batches."""

import itertools
import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.cdc.records.recordformats import DebeziumChanges, PlainRows
from tablestore.cdc.records.target import Target
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.datatypes import DataType, Field
from tablestore.types.typestring import parse_type

NESTED_DIGITS = '{"a":[12345678901234567890.123456789,1e400,{"b":null}],"é":"x"}'
GOOD: dict[str, dict[str, Any]] = {
    "INT": {"7": 7, '"7"': 7, "true": 1, "7.0": 7, "1e3": 1000, "-2147483648": -(2**31)},
    "BIGINT": {
        "1": 1,
        "9007199254740993.0": 2**53 + 1,
        "9223372036854775807": 2**63 - 1,
        "9223372036854775807.0": 2**63 - 1,
        '"-5"': -5,
    },
    "FLOAT": {
        "16777216": 2.0**24,
        "16777217.0": 2.0**24,
        "1.5": 1.5,
        '"NaN"': math.nan,
        "-0.0": -0.0,
        "3": 3.0,
        '"-Infinity"': -math.inf,
        '"1.5"': 1.5,
    },
    "DOUBLE": {
        "1.5": 1.5,
        "1e300": 1e300,
        '"Infinity"': math.inf,
        "16777217": 16777217.0,
        '"2.5"': 2.5,
        "9007199254740992": 2.0**53,
        "9007199254740993.0": 2.0**53,
        "123456789012345680000": 123456789012345680000.0,
        "1" + "0" * 23: 1e23,
    },
    "DECIMAL(20, 2)": {
        "1.5": Decimal("1.50"),
        '"1.5"': Decimal("1.50"),
        "7": Decimal("7.00"),
        "123456789012345678.91": Decimal("123456789012345678.91"),
    },
    "DATE": {"0": date(1970, 1, 1), '"2024-01-31"': date(2024, 1, 31), "-719162": date(1, 1, 1)},
    "TIME(3)": {"0": time(0), "86399999": time(23, 59, 59, 999000), '"12:30:00.5"': time(12, 30, 0, 500000)},
    "TIMESTAMP(3)": {"1": datetime(1970, 1, 1, 0, 0, 0, 1000), '"2024-01-31T12:30:00Z"': datetime(2024, 1, 31, 12, 30)},
    "BOOLEAN": {"true": True, "false": False, "0": False, "1": True, '"true"': True},
    "STRING": {
        '"x"': "x",
        "5": "5",
        "1.50": "1.50",
        "true": "true",
        "1E5": "1E5",
        "123456789012345678901234567890.123456789": "123456789012345678901234567890.123456789",
        NESTED_DIGITS: NESTED_DIGITS,
        "[1.10]": "[1.10]",
    },
    "BYTES": {'"AAE="': b"\0\1", '""': b""},
    "ARRAY<INT>": {"[1,null]": [1, None], "[]": []},
    "ARRAY<DOUBLE>": {"[1,0.5]": [1.0, 0.5], "[9007199254740992]": [2.0**53]},
    "MAP<STRING, FLOAT>": {'{"k":1}': [("k", 1.0)]},
    "ROW<a INT, b DOUBLE>": {
        '{"a":1,"b":0.5}': {"a": 1, "b": 0.5},
        '{"b":1}': {"a": None, "b": 1.0},
        '{"c":1}': {"a": None, "b": None},
    },
    "MAP<STRING, INT>": {'{"k":1}': [("k", 1)], "{}": []},
}
BAD: dict[str, list[str]] = {
    "INT": ['"x"', "7.5", "2147483648", "[1]", "{}", "1e400", '""', "1e9999999"],
    "BIGINT": ["9223372036854775808", "9007199254740993.5", "-1e19", '"1.5"', "[[]]"],
    "FLOAT": ["1e39", "1e400", '"1e39"', "[1]", '"x"', "true", "-1e400", "16777217", '"16777217"', "-33554433"],
    "DOUBLE": [
        *("1e400", "-1e400", '"1e400"', '"x"', "false", "1" + "0" * 400),
        *("9007199254740993", "-9007199254740993", '"9007199254740993"', "12345678901234567890"),
    ],
    "DECIMAL(20, 2)": ['"x"', "1.555", "1e30", "true", '"1.555"', "{}", "1e400", "1e9999999"],
    "DATE": ['"x"', "1e10", "9999999999", "true", "1.5", "[]", '"2024-02-30"'],
    "TIME(3)": ["86400000", "-1", '"24:00:00"', '"x"', "true", "99999999999"],
    "TIMESTAMP(3)": ['"x"', "true", "1.5", "[]", '"2024-13-01T00:00:00Z"', "99999999999999999999"],
    "BOOLEAN": ["2", '"x"', "1.5", "[]"],
    "STRING": [],
    "BYTES": ["1", '"!"', "true", '"AAE"', "{}", '"AA=A"'],
    "ARRAY<INT>": ['"x"', '"[1]"', "{}", '["x"]', "1", "[2147483648]", "true"],
    "ARRAY<DOUBLE>": ["[9007199254740993]", "[null,0.5,12345678901234567890]", '["x"]'],
    "MAP<STRING, FLOAT>": ['{"k":16777217}'],
    "ROW<a INT, b DOUBLE>": ['"x"', "[]", '{"b":9007199254740993}', '{"a":"x"}', '{"b":1e400}', "1", "true", '""'],
    "MAP<STRING, INT>": ['"x"', '{"k":"x"}', "1"],
}
TYPES = list(GOOD)
NULL = "null"


NESTED = {
    "ARRAY<INT>": pa.list_(pa.int32()),
    "ARRAY<DOUBLE>": pa.list_(pa.float64()),
    "MAP<STRING, FLOAT>": pa.map_(pa.string(), pa.float32()),
    "ROW<a INT, b DOUBLE>": pa.struct([("a", pa.int32()), ("b", pa.float64())]),
    "MAP<STRING, INT>": pa.map_(pa.string(), pa.int32()),
}


def type_of(text: str) -> DataType:
    ids = itertools.count(100)
    return from_arrow_type(NESTED[text], True, lambda: next(ids)) if text in NESTED else parse_type(text)


def target() -> Target:
    types = ["BIGINT NOT NULL", *TYPES]
    return Target(
        fields=tuple(Field(id=place, name=f"c{place}", type=type_of(text)) for place, text in enumerate(types)), key=("c0",)
    )


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return np.float64(one).tobytes() == np.float64(other).tobytes() or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


@st.composite
def cells(draw: st.DrawFn) -> dict[int, tuple[str, bool]]:
    """Some columns of a record: the JSON of each and whether it is good."""
    chosen = draw(st.lists(st.integers(0, len(TYPES) - 1), max_size=3, unique=True))
    found = {}
    for place in chosen:
        kind = TYPES[place]
        text = draw(st.sampled_from([NULL, *GOOD[kind], *BAD[kind]]))
        found[place] = (text, text == NULL or text in GOOD[kind])
    return found


@pytest.mark.deep
@pytest.mark.parametrize("form", ["json", "debezium-json"])
@settings(max_examples=150, deadline=None)
@given(records=st.lists(cells(), min_size=1, max_size=12), size=st.integers(1, 12))
def test_good_records_land_and_bad_ones_are_named_in_any_order_and_batches(
    form: str, records: list[dict[int, tuple[str, bool]]], size: int
) -> None:
    decoder = PlainRows(target()) if form == "json" else DebeziumChanges(target())
    texts = []
    for number, record in enumerate(records):
        parts = [f'"c0":{number}', *(f'"c{place + 1}":{text}' for place, (text, _) in record.items())]
        row = "{" + ",".join(parts) + "}"
        texts.append((row if form == "json" else f'{{"op":"c","before":null,"after":{row}}}').encode())
    rows: dict[int, dict[str, Any]] = {}
    faults: dict[int, str] = {}
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        decoded = decoder.decode([None] * len(part), part)
        rows |= {row["c0"]: row for row in decoded.rows.to_pylist()}
        faults |= {start + place: reason for place, reason in decoded.faults.items()}
    bad = {number for number, record in enumerate(records) if not all(good for _, good in record.values())}
    assert set(faults) == bad
    assert all(reason.strip() and "column 'c" in reason for reason in faults.values())
    assert set(rows) == set(range(len(records))) - bad
    for number, row in rows.items():
        for place, kind in enumerate(TYPES):
            text, _ = records[number].get(place, (NULL, True))
            expected = None if text == NULL else GOOD[kind][text]
            assert same(row[f"c{place + 1}"], expected), (kind, text, row[f"c{place + 1}"])


@pytest.mark.deep_after(51)
@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind in TYPES for text in [*GOOD[kind], *BAD[kind]]], ids=lambda one: str(one)[:30]
)
def test_a_null_is_good_after_any_value(kind: str, text: str) -> None:
    decoder = PlainRows(Target(fields=(Field(id=0, name="c", type=type_of(kind)),)))
    for _ in range(2):
        for batch in ([text], [text, NULL], [NULL], [NULL, text, NULL]):
            decoded = decoder.decode([None] * len(batch), [b'{"c":%b}' % one.encode() for one in batch])
            bad = [place for place, one in enumerate(batch) if one != NULL and text in BAD[kind]]
            assert sorted(decoded.faults) == bad
            assert all(reason.strip() for reason in decoded.faults.values())
            assert decoded.rows.column("c").null_count == batch.count(NULL)
