"""NULL rows of a type with NOT NULL fields: stored, encoded and decoded as what they are."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.log.changemessages import BadMessage, LogFormat, decode_changes, encode_changes
from tablestore.types.requiredfields import cast_required, filled_below_nulls

_PARTS = [
    pa.field("n", pa.int32(), nullable=False),
    pa.field("d", pa.decimal128(38, 2), nullable=False),
    pa.field("s", pa.string(), nullable=False),
    pa.field("l", pa.list_(pa.int8()), nullable=False),
    pa.field("m", pa.map_(pa.string(), pa.int8()), nullable=False),
    pa.field("r", pa.struct([pa.field("b", pa.bool_(), nullable=False)]), nullable=False),
]
ROW = pa.struct(_PARTS)
VALUE = {"n": 1, "d": Decimal("1.00"), "s": "x", "l": [1, None], "m": [("k", 1)], "r": {"b": True}}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("one", ROW),
        pa.field("all", pa.list_(pa.field("element", ROW))),
        pa.field("by", pa.map_(pa.string(), pa.field("value", ROW))),
    ]
)
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "one": pa.array([VALUE, None, VALUE], ROW),
        "all": pa.array([[None, VALUE], None, []], SCHEMA.field("all").type),
        "by": pa.array([[("a", None), ("b", VALUE)], [], None], SCHEMA.field("by").type),
    },
    schema=SCHEMA,
)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_null_rows_are_stored_and_merged(tmp_path: Path, file_format: str) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, primary_key=["id"], options={"bucket": "1", "file.format": file_format})
    table.upsert(ROWS)
    table.upsert(ROWS.slice(1))
    table.compact(full=True)
    assert table.scan().to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("form", ["debezium-json", "canal-json", "json", "avro"])
def test_null_rows_are_messages(form: LogFormat) -> None:
    messages = encode_changes(ROWS, np.zeros(3, np.int8), key=["id"], mode="upsert", form=form)
    assert decode_changes(messages.keys, messages.values, SCHEMA, key=["id"], form=form).rows.to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("form", ["json", "avro"])
def test_a_field_that_is_null_in_a_row_is_refused(form: LogFormat) -> None:
    written = pa.schema([("id", pa.int64()), ("r", pa.struct([("b", pa.int32())]))])
    declared = pa.schema([("id", pa.int64()), ("r", pa.struct([pa.field("b", pa.int32(), nullable=False)]))])
    rows = pa.table({"id": [1, 2, 3], "r": [{"b": 1}, None, {"b": None}]}, schema=written)
    messages = encode_changes(rows, np.zeros(3, np.int8), key=["id"], mode="upsert", form=form)
    with pytest.raises(BadMessage, match="'b' is NOT NULL, found null") as error:
        decode_changes(messages.keys, messages.values, declared, key=["id"], form=form)
    assert error.value.position == 2


def test_slices_and_fields_that_are_null_in_rows_stay_as_they_are() -> None:
    for start in range(3):
        for column in ROWS.columns:
            part = column.chunk(0).slice(start)
            filled = filled_below_nulls(part)
            filled.validate(full=True)
            assert filled.to_pylist() == part.to_pylist()
    null_inside = pa.array([{"b": None}], pa.struct([("b", pa.int32())]))
    with pytest.raises(ValueError, match="'b' is NOT NULL"):
        cast_required(null_inside, pa.struct([pa.field("b", pa.int32(), nullable=False)]))
