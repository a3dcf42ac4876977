"""A table is altered for its records only where nothing that it holds changes."""

from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cdc.records.evolving import MOST_COLUMNS, plan_evolution, type_of_schema, widened
from tablestore.types.newschema import new_schema
from tablestore.types.typestring import parse_type, type_to_sql


@pytest.mark.parametrize(
    ("old", "found", "wider"),
    [
        ("INT", "BIGINT", "BIGINT"),
        ("SMALLINT NOT NULL", "INT", "INT NOT NULL"),
        ("INT", "DOUBLE", "DOUBLE"),
        ("BIGINT", "DECIMAL(38, 0)", "DECIMAL(38, 0)"),
        ("DOUBLE", "DECIMAL(38, 0)", None),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("VARCHAR(3)", "STRING", "STRING"),
        ("DECIMAL(5, 2)", "DECIMAL(10, 4)", "DECIMAL(10, 4)"),
        ("BIGINT", "DOUBLE", None),
        ("BIGINT", "INT", None),
        ("INT", "STRING", None),
        ("DECIMAL(5, 2)", "DOUBLE", None),
        ("BOOLEAN", "BIGINT", None),
        ("DATE", "STRING", None),
    ],
)
def test_a_type_is_widened_only_if_every_value_stays(old: str, found: str, wider: str | None) -> None:
    made = widened(parse_type(old), parse_type(found))
    assert (None if made is None else type_to_sql(made)) == wider


def test_columns_of_the_key_names_of_ours_and_columns_without_end_are_left_alone() -> None:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("n", pa.int16())])
    table = new_schema(schema=schema, primary_key=["id"])
    big, text = parse_type("BIGINT"), parse_type("STRING")
    found = {"id": {big}, "n": {big, text}, "_VALUE_KIND": {big}, "": {text}, "a.b": {text, big}}
    assert plan_evolution(table, found) == (ts.ChangeType(("n",), big), ts.AddColumn(("a.b",), text))
    assert len(plan_evolution(table, {f"c{number}": {big} for number in range(2 * MOST_COLUMNS)})) == MOST_COLUMNS - 2
    assert plan_evolution(table, {}) == ()


def test_the_schema_of_a_record_names_types() -> None:
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    date = {"type": "int32", "name": "io.debezium.time.Date"}
    given: list[dict[str, Any]] = [{"type": "int32"}, date, {"type": "struct"}, decimal, {}]
    assert [type_to_sql(type_of_schema(one)) for one in given] == ["INT", "DATE", "STRING", "DECIMAL(38, 2)", "STRING"]
    broken = {**decimal, "parameters": {"scale": "x"}}
    assert type_to_sql(type_of_schema(broken)) == "BYTES"
