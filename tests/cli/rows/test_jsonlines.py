"""JSON lines: a cell is read the same way, whatever stands beside it in the file."""

from io import BytesIO

import pyarrow as pa
import pytest

from tablestore.cli.rows.jsonlines import json_batches
from tablestore.errors import TablestoreError

KINDS = {
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "BIGINT": pa.int64(),
    "TINYINT": pa.int8(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP(0)": pa.timestamp("s"),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_LTZ(3)": pa.timestamp("ms", "UTC"),
    "DECIMAL": pa.decimal128(10, 2),
    "TIME": pa.time32("ms"),
    "BYTES": pa.binary(),
}
NUMBERS = ["0", "-0", "-0.0", "0.0", "1", "-1", "1e3", "1.5", "127", "128", "9223372036854775807", "9223372036854775808", "1e400"]
MOMENTS = [
    f'"{day}{time}{zone}"'
    for day in ("2024-02-29", "1582-10-15", "0001-01-01", "9999-12-31", "10000-01-01", "2024-02-30")
    for time in ("", " 01:02", " 01:02:03", "T01:02:03.5", " 01:02:03.123", " 01:02:03.123456", " 01:02:03.1234567", " 25:00:00")
    for zone in ("", "Z", "+02:00", "-0330", "+02")
]
OTHERS = ["null", "true", '"true"', '""', '"a"', '"1"', '" 1"', '"NaN"', "[]", "{}", '"AQ=="', '"12:30:00"', '"1.50"']


def read(value: str, kind: pa.DataType, *, exactly: bool) -> str:
    """The cell, or that it is refused; ``exactly``: in a file with a number that the fast reader does not take."""
    target = pa.schema([("cell", kind), ("other", pa.float64())])
    other = '"NaN"' if exactly else "1"
    try:
        _, batches = json_batches(BytesIO(f'{{"cell": {value}, "other": {other}}}\n'.encode()), "file", target)
        (cell,) = pa.Table.from_batches(batches)["cell"].chunks
    except TablestoreError as error:
        return error.kind
    return " ".join(cell.to_string().split())


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_the_same_beside_what_is_read_exactly(kind: str) -> None:
    values = NUMBERS + MOMENTS + OTHERS
    pairs = [(value, read(value, KINDS[kind], exactly=False), read(value, KINDS[kind], exactly=True)) for value in values]
    assert [pair for pair in pairs if pair[1] != pair[2]] == []


def test_a_zone_or_none_may_be_written() -> None:
    texts = ("2024-02-29 01:02:03", "2024-02-29", "2024-02-29 01:02:03Z", "2024-02-29T01:02:03+02:00")
    expected = (
        "2024-02-29 01:02:03.000000",
        "2024-02-29 00:00:00.000000",
        "2024-02-29 01:02:03.000000",
        "2024-02-28 23:02:03.000000",
    )
    for text, shown in zip(texts, expected, strict=True):
        assert read(f'"{text}"', pa.timestamp("us"), exactly=True) == f"[ {shown} ]"
        assert read(f'"{text}"', pa.timestamp("us", "UTC"), exactly=True) == f"[ {shown}Z ]"


@pytest.mark.parametrize("other", ["1", '"NaN"'])
def test_a_byte_order_mark_is_no_text(other: str) -> None:
    target = pa.schema([("cell", pa.int64()), ("other", pa.float64())])
    _, batches = json_batches(BytesIO(b"\xef\xbb\xbf" + f'{{"cell": 7, "other": {other}}}'.encode()), "file", target)
    assert pa.Table.from_batches(batches)["cell"].to_pylist() == [7]


@pytest.mark.parametrize(("value", "kind"), [('"1_0"', pa.float64()), ('"\u0661"', pa.float64()), ("1e18", pa.binary())])
def test_what_python_alone_reads_is_no_value(value: str, kind: pa.DataType) -> None:
    assert read(value, kind, exactly=True) == "bad-json" == read(value, kind, exactly=False)
