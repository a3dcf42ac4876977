"""The statements of a script, and where they stand."""

import pytest

from tablestore.errors import InvalidInputError
from tablestore.sql.parse.script import split_script
from tablestore.sql.parse.statement import parse_statement

SETS = [
    "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT CASE x WHEN 1 THEN 2 END FROM c; END",
    "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
    "EXPLAIN FORMATTED STATEMENT SET BEGIN INSERT INTO a SELECT 1; END",
]


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", []),
        (" ;; -- only a comment\n;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("-- a; b\nSELECT ';' /* ; */ ;\n\n /* c */ SELECT `;`", ["SELECT ';'", "SELECT `;`"]),
        ("SELECT \"a\\\";\" ; SELECT 'it''s;'", ['SELECT "a\\";"', "SELECT 'it''s;'"]),
        ("SELECT 1 /* a */, 2 -- b\n; SELECT 3", ["SELECT 1 /* a */, 2", "SELECT 3"]),
        ("SELECT (1; SELECT 2)", ["SELECT (1", "SELECT 2)"]),
        ("; ".join(SETS) + "; SELECT 1", [*SETS, "SELECT 1"]),
        ("SELECT statement, set FROM t; SELECT 1; END", ["SELECT statement, set FROM t", "SELECT 1", "END"]),
    ],
)
def test_a_script_becomes_its_statements(script: str, statements: list[str]) -> None:
    found = split_script(script)
    assert [piece.text for piece in found] == statements
    assert all(script[piece.span.start : piece.span.end] == piece.text for piece in found)


def test_an_error_of_a_statement_stands_where_it_is_in_the_file() -> None:
    script = "-- the file\nUSE a;\nDROP TABLE b;\n  DROP TABEL c;\n"
    _, _, wrong = split_script(script)
    with pytest.raises(InvalidInputError, match=r"(?s)line 4, column 8:\n    DROP TABEL c;\n +\^{5}$"):
        parse_statement(script, wrong.span)


def test_what_is_not_closed_is_shown_where_it_begins() -> None:
    with pytest.raises(InvalidInputError, match="line 2, column 8"):
        split_script("USE a;\nSELECT 'b;\nUSE c;")


def test_a_set_that_is_not_closed_is_one_statement_and_says_so() -> None:
    script = "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;\nSELECT 2;"
    (piece,) = split_script(script)
    with pytest.raises(InvalidInputError, match="expected END or INSERT, found 'SELECT'\nline 2, column 1"):
        parse_statement(script, piece.span)
