"""What is read of a query is handed on: one tree has one owner."""

import pytest

from tablestore.errors import InvalidInputError
from tablestore.sql.query.parsedquery import ParsedQuery
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Edit, Span

TEXT = "SELECT x FROM t"
EDIT = Edit(span=Span(14, 15), relation=0, text=" AS `t`")


def test_a_tree_that_was_taken_is_nobody_elses() -> None:
    query = ParsedQuery.of(TEXT, [EDIT])
    first = query.take()
    assert query.take() is not first
    query.put_back(first)
    assert query.take() is first


def test_what_is_moved_is_not_kept() -> None:
    query = ParsedQuery.of(TEXT, [EDIT])
    trees, tokens = query.take(), query.tokens
    query.put_back(trees)
    moved = query.moved()
    assert moved == query
    assert moved.tokens is tokens
    assert query.tokens is not tokens
    assert moved.take() is trees
    assert query.take() is not trees


@pytest.mark.parametrize("column", ["x", "`__relation_0`", "__RELATION__7", "'__relation_'"])
def test_no_text_of_the_users_has_the_name_of_a_relation(column: str) -> None:
    text = TEXT.replace("x", column)
    start = len(text) - 1
    query = ParsedQuery.of(text, [Edit(span=Span(start, start + 1), relation=0)])
    assert query.text == f"{text[:start]}{query.prefix}0"
    assert query.prefix.lower() not in text.lower()
    # Also where nothing is edited.
    assert ParsedQuery.of(text, []).prefix == query.prefix


def test_tokens_of_a_text_that_is_not_edited_are_not_read_again() -> None:
    tokens = Tokens(TEXT)
    assert ParsedQuery.of(TEXT, [], tokens=tokens).tokens is tokens
    assert ParsedQuery.of(TEXT, [EDIT], tokens=tokens).tokens is not tokens


def test_a_text_that_is_no_tokens_is_refused_when_it_is_read() -> None:
    query = ParsedQuery("SELECT 'x")
    with pytest.raises(InvalidInputError, match="not closed"):
        _ = query.tokens
