"""Types in the standard's, Flink's and Spark's spelling."""

import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.statements.definition import CreateTable, PhysicalColumn
from tablestore.types.datatypes import DataType
from tablestore.types.typestring import MAX_TYPE_DEPTH, parse_type, type_to_sql

PLAIN = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "BYTE": "TINYINT",
    "SMALLINT": "SMALLINT",
    "short": "SMALLINT",
    "INT": "INT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "LONG": "BIGINT",
    "FLOAT": "FLOAT",
    "REAL": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE",
    "DATE": "DATE",
    "STRING": "STRING",
    "BYTES": "BYTES",
    "DECIMAL": "DECIMAL(10, 0)",
    "DEC(5)": "DECIMAL(5, 0)",
    "numeric(38, 38)": "DECIMAL(38, 38)",
    "VARCHAR": "STRING",
    "CHAR(1)": "CHAR(1)",
    "CHARACTER(3)": "CHAR(3)",
    "VARCHAR(2147483647)": "STRING",
    "VARCHAR(7)": "VARCHAR(7)",
    "BINARY": "BYTES",
    "VARBINARY": "BYTES",
    "ARRAY<VARCHAR>": "ARRAY<STRING>",
    "BINARY(4)": "BINARY(4)",
    "VARBINARY(9)": "VARBINARY(9)",
    "TIME": "TIME(0)",
    "TIME(3)": "TIME(3)",
    "TIME(3) WITHOUT TIME ZONE": "TIME(3)",
    "TIMESTAMP": "TIMESTAMP(6)",
    "TIMESTAMP(3)": "TIMESTAMP(3)",
    "TIMESTAMP_NTZ": "TIMESTAMP(6)",
    "TIMESTAMP_NTZ(9)": "TIMESTAMP(9)",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP(6)",
    "TIMESTAMP_LTZ": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "TIMESTAMP(0) WITH LOCAL TIME ZONE": "TIMESTAMP(0) WITH LOCAL TIME ZONE",
    "TIMESTAMP_LTZ(3)": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "ARRAY<INT>": "ARRAY<INT>",
    "ARRAY(INT NOT NULL)": "ARRAY<INT NOT NULL>",
    "INT ARRAY": "ARRAY<INT>",
    "INT ARRAY MULTISET": "MULTISET<ARRAY<INT>>",
    "MULTISET<STRING>": "MULTISET<STRING>",
    "ARRAY<ARRAY<ARRAY<INT>>>": "ARRAY<ARRAY<ARRAY<INT>>>",
    "MAP<STRING, ARRAY<DECIMAL(5, 2)>>": "MAP<STRING, ARRAY<DECIMAL(5, 2)>>",
    "MAP(STRING NOT NULL, INT)": "MAP<STRING NOT NULL, INT>",
    "ROW<a INT, `b c` STRING NOT NULL>": "ROW<`a` INT, `b c` STRING NOT NULL>",
    "ROW(a INT 'x', b ROW<c INT>)": "ROW<`a` INT, `b` ROW<`c` INT>>",
    "STRUCT<a: INT NOT NULL COMMENT 'x', b: STRUCT<c: INT>>": "ROW<`a` INT NOT NULL, `b` ROW<`c` INT>>",
    "STRUCT<a INT, array ARRAY<INT>>": "ROW<`a` INT, `array` ARRAY<INT>>",
}
SPARKS = {
    "TIMESTAMP": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "TIMESTAMP(3)": "TIMESTAMP(3)",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP(6)",
    "TIMESTAMP_NTZ": "TIMESTAMP(6)",
    "BINARY": "BYTES",
    "BINARY(4)": "BINARY(4)",
    "TIME": "TIME(6)",
    "ARRAY<STRUCT<a: TIMESTAMP>>": "ARRAY<ROW<`a` TIMESTAMP(6) WITH LOCAL TIME ZONE>>",
}


def type_of(text: str, clauses: str = "") -> DataType:
    statement = parse_statement(f"CREATE TABLE t (c {text}) {clauses}")
    assert isinstance(statement, CreateTable)
    assert statement.columns is not None
    (column,) = statement.columns
    assert isinstance(column, PhysicalColumn)
    return column.type


@pytest.mark.parametrize("text", PLAIN)
def test_a_type_has_many_spellings(text: str) -> None:
    assert type_to_sql(type_of(text)) == PLAIN[text]
    assert type_to_sql(type_of(f"{text} NOT NULL")) == f"{PLAIN[text]} NOT NULL"


@pytest.mark.parametrize("text", SPARKS)
def test_bare_names_mean_what_spark_says_in_a_statement_with_using(text: str) -> None:
    assert type_to_sql(type_of(text, "COMMENT 'x' USING tablestore")) == SPARKS[text]


def test_the_fields_of_a_row_are_numbered_and_described() -> None:
    found = type_of("ROW<a INT COMMENT 'x', b ROW<c INT 'y'>, d INT>")
    parsed = parse_type(
        {
            "type": "ROW",
            "fields": [
                {"id": 0, "name": "a", "type": "INT", "description": "x"},
                {
                    "id": 1,
                    "name": "b",
                    "type": {"type": "ROW", "fields": [{"id": 2, "name": "c", "type": "INT", "description": "y"}]},
                },
                {"id": 3, "name": "d", "type": "INT"},
            ],
        }
    )
    assert found == parsed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("INTT", "expected a type, found 'INTT'; did you mean 'INT'?"),
        ("STRNG", "did you mean 'STRING'?"),
        ("`INT`", "a type, found `INT`"),
        ("INT(3)", "found 'INT(3)'"),
        ("DECIMAL(39)", "expected a precision from 1 to 38"),
        ("DECIMAL(3, 4)", "expected a scale from 0 to 3"),
        ("DECIMAL(a)", "expected a number, found 'a'"),
        ("DECIMAL(1, 2, 3)", "found 'DECIMAL(1, 2, 3)'"),
        ("CHAR", "the type 'CHAR' lacks its length; write STRING for any text, CHAR(1) for one character"),
        ("ARRAY<character>", "lacks its length; write STRING"),
        ("VARCHAR(0)", "expected a length from 1 to"),
        ("VARCHAR(99999999999999999999)", "expected a number, found '99999999999999999999'"),
        ("TIMESTAMP(10)", "expected a precision from 0 to 9"),
        ("TIMESTAMP WITH LOCAL TIME", "expected ZONE"),
        ("ARRAY", "expected < or (, found"),
        ("ARRAY<INT", "ARRAY, MULTISET, NOT, NULL or >, found"),
        ("ARRAY<INT)", "closes no bracket"),
        ("ARRAY<>", "expected a type, found '>'"),
        ("MAP<INT>", "ARRAY, MULTISET, NOT, NULL or ,, found '>'"),
        ("ROW<INT>", "expected : or a type, found '>'"),
        ("ROW<a INT b INT>", "found 'b'"),
        ("STRUCT<>", "expected the name of a field"),
    ],
)
def test_what_is_no_type_is_said(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        type_of(text)
    assert words in str(error.value)


@pytest.mark.parametrize("text", ["INTERVAL DAY", "OBJECT", "ARRAY<GEOMETRY>", "TIMESTAMP WITH TIME ZONE", "VOID"])
def test_types_that_the_engine_has_not_are_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(UnsupportedError, match=r"not supported; (store it|store a|take|name)"):
        type_of(text)


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("text", ["ARRAY<{}>", "MAP<INT, {}>", "ROW<a {}>", "{} ARRAY", "ARRAY<{} MULTISET>"])
def test_a_type_may_be_nested_to_the_limit_of_the_format_and_no_deeper(text: str) -> None:
    def nested(depth: int) -> str:
        before, after = text.split("{}")
        return before * depth + "INT" + after * depth

    limit = MAX_TYPE_DEPTH // (text.count("ARRAY") + text.count("M") or 1)
    type_of(nested(limit))
    for depth in (limit + 1, 5_000):
        with pytest.raises(InvalidInputError, match="a type is nested more than 64 levels deep"):
            type_of(nested(depth))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ROW<a INT, b INT, a STRING>", r"field 'a' stands here twice"),
        ("ARRAY<STRUCT<a: INT, `A`: INT>>", r"field 'A' cannot be told from 'a' by a query; rename one"),
    ],
)
def test_fields_of_one_name_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"(?s){message}.*\^"):
        type_of(text)
