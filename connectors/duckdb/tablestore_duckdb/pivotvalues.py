"""Finds where a PIVOT of DuckDB's leaves its columns to the rows, since they have to be known before it runs.

PIVOT t ON k USING sum(v)          PIVOT t ON k IN ('a', 'b') USING sum(v)
        -    -                                  ^ put in here, by a query of the values
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tablestore.environment.engine import BoundQuery
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Edit, Path, Span
from tablestore.sql.sqldialect import SqlDialect

_PIVOT = frozenset({"PIVOT", "PIVOT_WIDER"})
_BEHIND_ITEMS = frozenset({"USING", "GROUP", "ORDER", "LIMIT", "OFFSET"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPivot:
    """An expression whose values become columns: where it stands, and where the rows come from."""

    source: Span
    expression: Span


def open_pivots(text: str) -> tuple[OpenPivot, ...]:
    """The expressions without IN of a query that is a PIVOT itself."""
    tokens = Tokens(text, SqlDialect.DUCKDB)
    if tokens.key(0) not in _PIVOT:
        return ()
    on = next(_level(tokens, 1, {"ON"}), None)
    if on is None or on == 1:
        return ()
    end = next(_level(tokens, on + 1, _BEHIND_ITEMS), len(tokens))
    source = Span(tokens[1].start, tokens[on - 1].end)
    first, opened = on + 1, list[OpenPivot]()
    for comma in (*(at for at in _level(tokens, on + 1, {","}) if at < end), end):
        is_open = not any(at < comma for at in _level(tokens, first, {"IN"}))
        # Several in parentheses are pivoted together.
        inside = tokens.key(first) == "(" and next(_level(tokens, first + 1, {","}, tokens.close(first)), None) is not None
        if comma > first and is_open and not inside:
            opened.append(OpenPivot(source=source, expression=Span(tokens[first].start, tokens[comma - 1].end)))
        first = comma + 1
    return tuple(opened)


def with_values(query: BoundQuery, values: Sequence[tuple[OpenPivot, Sequence[str]]]) -> BoundQuery:
    """The query with the values of its open expressions written behind them."""
    text, edits, tables, at = "", list(query.edits), list(query.tables), 0
    for pivot, texts in values:
        listed = ", ".join("'" + one.replace("'", "''") + "'" for one in texts)
        text += query.text[at : pivot.expression.end]
        place, at = len(text), pivot.expression.end
        text += f" IN ({listed})"
        length = len(text) - place
        edits = [replace(edit, span=_behind(edit.span, place, length)) if edit.span.start >= place else edit for edit in edits]
        tables = [replace(path, span=_behind(path.span, place, length)) if path.span.start >= place else path for path in tables]
    return replace(query, text=text + query.text[at:], edits=tuple(edits), tables=tuple(tables))


def values_query(query: BoundQuery, pivot: OpenPivot) -> BoundQuery:
    """The query of the values of an open expression, over the same relations."""
    text = "SELECT DISTINCT CAST("
    edits, tables = list[Edit](), list[Path]()
    for span, behind in ((pivot.expression, " AS VARCHAR) FROM "), (pivot.source, " ORDER BY 1 NULLS LAST")):
        length = len(text) - span.start
        inside = [edit for edit in query.edits if span.start <= edit.span.start and edit.span.end <= span.end]
        edits += [replace(edit, span=_behind(edit.span, 0, length)) for edit in inside]
        named = [path for path in query.tables if span.start <= path.span.start < span.end]
        tables += [replace(path, span=_behind(path.span, 0, length)) for path in named]
        text += query.text[span.start : span.end] + behind
    return replace(query, text=text, edits=tuple(edits), tables=tuple(tables))


def _behind(span: Span, place: int, length: int) -> Span:
    return Span(span.start + length, span.end + length) if span.start >= place else span


def _level(tokens: Tokens, at: int, words: frozenset[str] | set[str], end: int | None = None) -> Iterator[int]:
    """The places of words outside of parentheses, from one on."""
    end = len(tokens) if end is None else end
    while at < end:
        if tokens.key(at) == ")":
            return
        if tokens.key(at) in words and tokens.key(at - 1) != ".":
            yield at
        at = tokens.after_group(at) if tokens.key(at) == "(" else at + 1
