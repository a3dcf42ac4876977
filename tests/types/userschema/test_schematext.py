"""Columns and types that are given as text."""

import pytest

from tablestore.errors import InvalidInputError
from tablestore.types.datatypes import ArrayType, MapType, MultisetType, RowType, with_nullable
from tablestore.types.typestring import MAX_TYPE_DEPTH, parse_type
from tablestore.types.userschema.schematext import parse_column, parse_columns, parse_named, parse_type_text

INT, STRING = parse_type("INT"), parse_type("STRING")


def test_names_stand_bare_or_in_either_kind_of_quotes() -> None:
    found = parse_columns('id BIGINT NOT NULL, `a``,b`: INT, "say ""x""" STRING COMMENT \'it\'\'s, well\', 2024 DATE,')
    assert [(field.id, field.name, field.description) for field in found] == [
        (0, "id", None),
        (1, "a`,b", None),
        (2, 'say "x"', "it's, well"),
        (3, "2024", None),
    ]
    assert [field.type.nullable for field in found] == [False, True, True, True]
    assert parse_named("a b", "INT COMMENT 'x'") == parse_column("`a b` INT COMMENT 'x'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("array<int not null> NOT NULL", with_nullable(ArrayType(element=with_nullable(INT, False)), False)),
        ("MAP(STRING NOT NULL, ARRAY<INT>) NULL", MapType(key=with_nullable(STRING, False), value=ArrayType(element=INT))),
        ("MULTISET<STRING>", MultisetType(element=STRING)),
        ("varchar NOT NULL", with_nullable(STRING, False)),
        ("ARRAY<BINARY>", ArrayType(element=parse_type("BYTES"))),
        ("STRUCT<a: INT, `b,c` STRING COMMENT 'x>y'>", RowType(fields=parse_columns("a INT, `b,c` STRING COMMENT 'x>y'"))),
    ],
)
def test_types_are_nested_as_in_sql(text: str, expected: object) -> None:
    assert parse_type_text(text) == expected
    assert parse_column(f"c {text}").type == expected


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", "schema", "expected columns, found none"),
        ("id", "schema", "expected a column as 'name TYPE', found 'id'"),
        ("id INT, PRIMARY KEY (id)", "schema", "primary_key=['id'] or --primary-key id"),
        ("id INT) x", "schema", "found ')' without its beginning"),
        ("id ARRAY<INT", "schema", "'>' is missing at the end"),
        ("`id INT", "schema", "'`' is missing at the end"),
        ("id MAP<INT>", "invalid-type", "column 'id': expected 2 types inside MAP<…>, found 'INT'"),
        ("r ROW<a INTT>", "invalid-type", "column 'a': expected a type such as INT"),
        ("r ROW<a CHAR>", "invalid-type", "column 'a': the type 'CHAR' lacks its length; write STRING for any text"),
        ("r ROW<>", "schema", "expected columns, found none"),
        ("a " + "ARRAY<" * 99 + "INT" + ">" * 99, "limit", f"more than {MAX_TYPE_DEPTH} levels"),
        ("a " + "ROW<a " * 99 + "INT" + ">" * 99, "limit", f"more than {MAX_TYPE_DEPTH} levels"),
    ],
)
def test_what_is_no_column_is_refused(text: str, kind: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_columns(text)
    assert message in str(caught.value)
    assert caught.value.kind == kind


def test_one_column_is_asked_for_and_one_type() -> None:
    with pytest.raises(InvalidInputError, match="expected one column, found 2"):
        parse_column("a INT, b INT")
    with pytest.raises(InvalidInputError, match="expected a type such as INT"):
        parse_type_text("INTT")
