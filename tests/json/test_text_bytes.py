"""How much text rows become is known before it is made, so that no batch is encoded into more than there is room for."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tablestore.json.jsontext import rows_to_json, text_bytes
from tablestore.log.changemessages import encode_changes
from tablestore.types.rebatch import slices_of

MIB = 1 << 20
DAY = datetime.date(2024, 2, 29)
VALUES = {
    "int": pa.array([1, -(2**62), None]),
    "text": pa.array(["a", 'quote " and \n', ""]),
    "long": pa.array(["x" * 10_000] * 3),
    "bool": pa.array([True, None, False]),
    "date": pa.array([DAY, None, DAY]),
    "time": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 678)] * 3),
    "decimal": pa.array([Decimal("12345678.90")] * 3, pa.decimal128(18, 2)),
    "double": pa.array([1.5, -2.25e300, float("nan")]),
    "bytes": pa.array([b"\x00" * 100] * 3),
    "list": pa.array([[1, 2, 3] * 50, [], None]),
    "map": pa.array([[("k", True)] * 9, [], None], pa.map_(pa.string(), pa.bool_())),
    "row": pa.array([{"a_long_field_name": True, "b": "x"}] * 3),
    "rows": pa.array([[{"a_long_field_name": True}] * 30] * 3),
}


@pytest.mark.parametrize("kind", VALUES)
def test_rows_become_no_more_text_than_was_said(kind: str) -> None:
    rows = pa.table({"column": VALUES[kind]})
    texts = rows_to_json([VALUES[kind]], ["column"])
    said, found = text_bytes(rows), sum(len(text) for text in texts.to_pylist())
    assert found <= said + 2 * rows.num_rows <= 20 * found + 200
    assert text_bytes(rows.slice(1, 1)) < said


def test_rows_of_bits_under_long_names_are_encoded_a_few_at_a_time() -> None:
    names = [f"a_column_with_quite_a_long_name_number_{number}" for number in range(200)]
    rows = pa.table({name: pa.repeat(pa.scalar(True), 4_000) for name in names})
    assert rows.nbytes < MIB / 4
    parts = list(slices_of(rows, max_rows=rows.num_rows, max_bytes=2 * MIB, size_of=text_bytes))
    texts = [encode_changes(part, pa.nulls(part.num_rows, pa.int8()).fill_null(0).to_numpy(), key=(), mode="all") for part in parts]
    assert sum(len(messages.values) for messages in texts) == 4_000
    assert max(sum(map(len, messages.values)) for messages in texts) <= 2 * MIB
    assert len(parts) < 60, "and not one by one"
