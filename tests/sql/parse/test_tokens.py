"""Words, names, texts and numbers, each with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.errors import InvalidInputError
from tablestore.sql.parse.statement import parse_path, parse_statement
from tablestore.sql.parse.tokens import Kind, text_of, tokenize
from tablestore.sql.source import Path, Span
from tablestore.sql.statements.definition import Drop
from tablestore.sql.statements.rows import Query
from tablestore.sql.statements.session import CallProcedure

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.text("`'\".;-/* \n\\$", min_size=1, max_size=8),
    st.sampled_from(["SELECT", "table", "Where", "WITH", "if", "exists", "ROW", "primary", "🦉", "ß", "名前"]),
)


def kinds(text: str) -> list[tuple[Kind, str]]:
    return [(token.kind, token.text) for token in tokenize(text)[:-1]]


def value(text: str) -> str:
    (token, _) = tokenize(text)
    assert token.kind is Kind.TEXT
    return text_of(text, token)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select A_1 t$x 1a ärger", [(Kind.WORD, word) for word in ("select", "A_1", "t$x", "1a", "ärger")]),
        ("`a``b` `c`", [(Kind.NAME, "`a``b`"), (Kind.NAME, "`c`")]),
        ("1 1.5 .5 1. 1e3", [(Kind.NUMBER, number) for number in ("1", "1.5", ".5", "1.", "1e3")]),
        ("1.5E-3 10L 1.5BD 2d", [(Kind.NUMBER, number) for number in ("1.5E-3", "10L", "1.5BD", "2d")]),
        ("t.1a", [(Kind.WORD, "t"), (Kind.SIGN, "."), (Kind.WORD, "1a")]),
        ("`t`.5x", [(Kind.NAME, "`t`"), (Kind.SIGN, "."), (Kind.WORD, "5x")]),
        ("a=>b", [(Kind.WORD, "a"), (Kind.SIGN, "=>"), (Kind.WORD, "b")]),
        ("a||'b'", [(Kind.WORD, "a"), (Kind.SIGN, "||"), (Kind.TEXT, "'b'")]),
        ("a|>b::c", [(Kind.WORD, "a"), (Kind.SIGN, "|>"), (Kind.WORD, "b"), (Kind.SIGN, "::"), (Kind.WORD, "c")]),
        ("1/*+ a */2", [(Kind.NUMBER, "1"), (Kind.HINT, "/*+ a */"), (Kind.NUMBER, "2")]),
        ("1/* /* ' */ ; */2-- '\n3", [(Kind.NUMBER, "1"), (Kind.NUMBER, "2"), (Kind.NUMBER, "3")]),
        ("1 -- a \\\n still a comment\n 2", [(Kind.NUMBER, "1"), (Kind.NUMBER, "2")]),
        ("\ufeff1", [(Kind.NUMBER, "1")]),
        ("r'a\\' R\"b\"", [(Kind.TEXT, "r'a\\'"), (Kind.TEXT, 'R"b"')]),
        ("", []),
    ],
)
def test_a_text_becomes_tokens(text: str, found: list[tuple[Kind, str]]) -> None:
    assert kinds(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"'a\nb\t\r\b\0\Z'", "a\nb\t\r\b\0\x1a"),
        (r"'\'\"\\\q\%\_'", "'\"\\q\\%\\_"),
        (r"'\101\u0041\U0001F989'", "AA🦉"),
        (r"'\uD83D\uDE00'", "😀"),
        (r"'\u00'", "u00"),
        ("'it''s'", "it's"),
        ("'a\"\"b'", 'a""b'),
        ('"a""b\'\'"', "a\"b''"),
        ("''", ""),
        ("''''", "'"),
        (r"r'a\nb'", r"a\nb"),
        ("'a\n;b'", "a\n;b"),
    ],
)
def test_a_text_is_read_as_spark_reads_it(text: str, found: str) -> None:
    assert value(text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"'\U00110000'", "is no character"),
        (r"'\uD83D'", "half a character"),
        ("'a\\'", "expected another '"),
        ("r'a", "expected another '"),
    ],
)
def test_a_text_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        value(text)


@given(TEXT)
def test_every_text_can_be_written(text: str) -> None:
    written = text.replace("\\", "\\\\")
    assert value("'" + written.replace("'", "''") + "'") == text
    assert value('"' + written.replace('"', '\\"') + '"') == text
    call = parse_statement("CALL p('" + written.replace("'", "\\'") + "')")
    assert isinstance(call, CallProcedure)
    assert call.arguments[0].value == text


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_every_name_can_be_written(names: list[str]) -> None:
    written = " . ".join("`" + name.replace("`", "``") + "`" for name in names)
    assert parse_path(written) == Path(tuple(names))
    assert parse_statement(f"DROP TABLE IF EXISTS {written} ;") == Drop(what="table", path=Path(tuple(names)), if_exists=True)


@given(
    st.lists(st.sampled_from(["a", "'b;'", "`c`", "1.5", "(", ")", "-- d\n", "/* e */", "\n", " ", "=>", "ü", "\t"]), max_size=30)
)
def test_tokens_stand_where_they_say(parts: list[str]) -> None:
    text = " ".join(parts)
    tokens = tokenize(text)
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert [token.start for token in tokens] == sorted(token.start for token in tokens)


def test_a_part_of_a_text_keeps_its_places() -> None:
    text = "DROP TABLE a; SELECT 'x' FROM b; -- c"
    found = parse_statement(text, Span(14, 31))
    assert isinstance(found, Query)
    assert found.query.text == "SELECT 'x' FROM b"
    assert (found.query.span.start, found.query.span.end) == (14, 31)


@pytest.mark.parametrize("text", ["", "a.", ".a", "a..b", "a.b.c.d", "`a", "a b", "``", "a.``", "'a'", "a.1"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_path(text)
