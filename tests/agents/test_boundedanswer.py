"""Answers to agents: no longer than their limit, whatever they hold, and as they are where they fit."""

import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.agents.boundedanswer import AnswerLimits, fitting, rows_document

LIMITS = AnswerLimits(cell_characters=150, characters=1_500)

texts = st.text(max_size=8) | st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=3), st.integers(1, 300))
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts
many = st.builds(lambda value, times: [value] * times, scalars, st.integers(0, 400))
values = st.recursive(
    scalars | many, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6), max_leaves=30
)


def characters(document: object) -> int:
    return len(json.dumps(document, ensure_ascii=False))


@settings(max_examples=60)
@given(st.dictionaries(texts, values, max_size=30))
def test_an_answer_is_never_longer_than_its_limit(document: dict[str, Any]) -> None:
    fitted = fitting(document, LIMITS)
    assert characters(fitted) <= LIMITS.characters
    json.dumps(fitted, ensure_ascii=False).encode()
    assert fitting(fitted, LIMITS) == fitted


@settings(max_examples=50)
@given(st.dictionaries(st.text("abc", max_size=5), st.lists(st.integers(0, 9), max_size=20), max_size=5))
def test_a_short_answer_is_given_as_it_is(document: dict[str, Any]) -> None:
    assert fitting(document, LIMITS) == document


@settings(max_examples=50)
@given(st.integers(1, 300), st.integers(1, 40), texts, st.text("abc", min_size=1, max_size=200))
def test_rows_have_a_cell_for_each_column_and_fit(columns: int, rows: int, text: str, name: str) -> None:
    valid = text.encode("utf-8", "replace").decode()
    table = pa.table({f"{name}{number}": [valid] * rows for number in range(columns)})
    fitted = fitting(rows_document(table, LIMITS), LIMITS)
    assert characters(fitted) <= LIMITS.characters
    assert {len(row) for row in fitted["rows"]} <= {len(fitted["columns"])}
    assert fitted["truncated"] or (len(fitted["rows"]), len(fitted["columns"])) == (rows, columns) or columns > 200
    assert fitted["columns"]


def test_lists_that_do_not_fit_are_cut_to_one_length() -> None:
    document = {"commits": [{"id": commit, "tags": [f"tag {commit} {tag}" for tag in range(100)]} for commit in range(5)]}
    fitted = fitting(document, LIMITS)
    assert [len(commit["tags"]) for commit in fitted["commits"]] == [fitted["lists_cut_at"]] * 5
    assert fitted["truncated"]
