"""Type strings: one canonical form out, many spellings in."""

import json
from pathlib import Path

import pytest

from tablestore.errors import FormatError, UnsupportedError
from tablestore.types.arrowtypes import from_arrow_type, to_arrow_field, to_arrow_type
from tablestore.types.datatypes import MAX_LENGTH, AtomicType, Field, RowType, TypeRoot
from tablestore.types.typestring import declared_type, field_to_json, parse_field, parse_type, type_to_json, type_to_sql

GOLDEN = sorted(Path(__file__).parents[1].joinpath("golden", "paimon").glob("*/schema/schema-*"))

CANONICAL = [
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "DECIMAL(38, 0)",
    "DECIMAL(10, 2)",
    "CHAR(1)",
    "CHAR(255)",
    "VARCHAR(10)",
    "STRING",
    "BINARY(3)",
    "VARBINARY(9)",
    "BYTES",
    "VARIANT",
    *[f"TIME({p})" for p in range(10)],
    *[f"TIMESTAMP({p})" for p in range(10)],
    *[f"TIMESTAMP({p}) WITH LOCAL TIME ZONE" for p in range(10)],
]
NESTED = {
    "type": "ROW NOT NULL",
    "fields": [
        {"id": 3, "name": "a`b", "type": {"type": "ARRAY", "element": "INT NOT NULL"}, "description": "words"},
        {"id": 4, "name": "m", "type": {"type": "MAP NOT NULL", "key": "STRING NOT NULL", "value": "DATE"}},
        {"id": 5, "name": "s", "type": {"type": "MULTISET", "element": "TIMESTAMP(3)"}, "defaultValue": "x"},
    ],
}


@pytest.mark.parametrize("text", [*CANONICAL, *[f"{text} NOT NULL" for text in CANONICAL]])
def test_canonical_text_comes_back_and_so_does_its_arrow_field(text: str) -> None:
    data_type = parse_type(text)
    assert type_to_json(data_type) == text
    assert parse_type(text.lower()) == data_type
    assert to_arrow_field(Field(id=0, name="x", type=data_type)).nullable is data_type.nullable


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("integer", "INT"),
        (" INT  not   null ", "INT NOT NULL"),
        ("INT NULL", "INT"),
        ("double precision NOT NULL", "DOUBLE NOT NULL"),
        ("DEC(5)", "DECIMAL(5, 0)"),
        ("NUMERIC(5,2)", "DECIMAL(5, 2)"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("VARCHAR(2147483647)", "STRING"),
        ("VARBINARY(2147483647)", "BYTES"),
        ("CHAR", "CHAR(1)"),
        ("VARCHAR", "VARCHAR(1)"),
        ("TIME", "TIME(0)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP_LTZ", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("timestamp_ltz(9) not null", "TIMESTAMP(9) WITH LOCAL TIME ZONE NOT NULL"),
    ],
)
def test_aliases_are_read(text: str, canonical: str) -> None:
    assert type_to_json(parse_type(text)) == canonical


@pytest.mark.parametrize("name", ["CHAR", "VARCHAR", "BINARY", "VARBINARY"])
def test_a_stored_type_without_a_length_keeps_the_length_of_the_format(name: str) -> None:
    assert type_to_json(parse_type(f"{name} NOT NULL")) == f"{name}(1) NOT NULL"


@pytest.mark.parametrize(("text", "meant"), [("varchar", "STRING"), ("BINARY NOT NULL", "BYTES NOT NULL"), ("VARBINARY", "BYTES")])
def test_a_declared_type_without_a_length_has_no_limit(text: str, meant: str) -> None:
    assert declared_type(text) == parse_type(meant)


def test_what_says_its_length_is_declared_as_it_is_stored() -> None:
    for text in CANONICAL:
        assert declared_type(text) == parse_type(text)


def test_constructed_types_come_back() -> None:
    data_type = parse_type(NESTED)
    assert type_to_json(data_type) == NESTED
    assert type_to_sql(data_type) == (
        "ROW<`a``b` ARRAY<INT NOT NULL>, `m` MAP<STRING NOT NULL, DATE> NOT NULL, `s` MULTISET<TIMESTAMP(3)>> NOT NULL"
    )


def test_the_redundant_nullable_key_of_other_writers_is_ignored() -> None:
    told = {"type": "ARRAY NOT NULL", "element": "INT", "nullable": True}
    assert type_to_json(parse_type(told)) == {"type": "ARRAY NOT NULL", "element": "INT"}


@pytest.mark.parametrize(
    "json_type",
    [
        "BLOB NOT NULL",
        "VECTOR(FLOAT, 3)",
        "GEOMETRY(OGC:CRS84)",
        "geography",
        {"type": "VECTOR", "element": "FLOAT", "length": 3},
        {"type": "VECTOR(3) NOT NULL"},
    ],
    ids=str,
)
def test_types_of_other_engines_are_refused_by_name(json_type: object) -> None:
    with pytest.raises(UnsupportedError, match=r"(?i)blob|vector|geometry|geography"):
        parse_type(json_type)


@pytest.mark.parametrize(
    "json_type",
    [
        "",
        "INTT",
        "INT(3)",
        "INT NOT",
        "DECIMAL(39, 0)",
        "DECIMAL(5, 6)",
        "DECIMAL(0, 0)",
        "CHAR(0)",
        "VARCHAR(2147483648)",
        "TIME(10)",
        "TIMESTAMP(3, 3)",
        "TIMESTAMP(10)",
        "STRING(3)",
        "DATE WITH LOCAL TIME ZONE",
        "ARRAY",
        None,
        5,
        [],
        {},
        {"type": 5},
        {"type": "INT"},
        {"type": "ARRAY"},
        {"type": "MAP", "key": "INT"},
        {"type": "ROW"},
        {"type": "ROW", "fields": [{"id": "0", "name": "a", "type": "INT"}]},
        {"type": "ROW", "fields": [{"id": 0, "name": "a"}]},
        {"type": "ROW", "fields": ["a"]},
    ],
    ids=str,
)
def test_what_is_no_type_is_a_format_error(json_type: object) -> None:
    with pytest.raises(FormatError):
        parse_type(json_type)


def test_bottomless_types_are_refused() -> None:
    nested: object = "INT"
    for _ in range(100):
        nested = {"type": "ARRAY", "element": nested}
    with pytest.raises(FormatError, match="levels deep"):
        parse_type(nested)


def test_optional_keys_of_a_field_are_left_out_rather_than_null() -> None:
    field = parse_field({"id": 0, "name": "a", "type": "INT", "description": None})
    assert field_to_json(field) == {"id": 0, "name": "a", "type": "INT"}


def test_nested_rows_and_multisets_survive_arrow_except_for_ids() -> None:
    data_type = parse_type({"type": "ROW", "fields": [{"id": 0, "name": "s", "type": NESTED["fields"][2]["type"]}]})
    ids = iter(range(10))
    back = from_arrow_type(to_arrow_type(data_type), True, lambda: next(ids))
    assert isinstance(back, RowType)
    assert type_to_sql(back) == "ROW<`s` MULTISET<TIMESTAMP(3) NOT NULL>>"  # Arrow's map keys are never null


def test_string_is_the_longest_varchar() -> None:
    assert parse_type("STRING") == AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_schema_files_of_other_engines_come_back(path: Path) -> None:
    for column in json.loads(path.read_text())["fields"]:
        field = parse_field(column)
        again = json.loads(json.dumps(field_to_json(field)))
        assert parse_field(again) == field
        # Known spellings that differ from the canonical ones.
        told = json.dumps(column["type"]).replace(', "nullable": true', "").replace(', "nullable": false', "")
        told = told.replace("TIMESTAMP_LTZ(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE")
        assert json.dumps(again["type"]) == told


def test_there_are_golden_schemas() -> None:
    assert GOLDEN
