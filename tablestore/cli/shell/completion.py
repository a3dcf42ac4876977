"""Completion at the prompt: keywords, names of tables, and the columns of the tables that the statement names.

What is known is asked for once a prompt, when it is first needed. Completion shows no errors.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tablestore.errors import TablestoreError
from tablestore.types.typestring import sql_name

_WORDS = """
ADD ALTER ANALYZE AND AS ASC BETWEEN BY CALL CASE CAST CATALOG CATALOGS COLUMN COLUMNS COMMENT COMPACT CREATE CROSS DATABASE
DATABASES DELETE DESC DESCRIBE DISTINCT DROP ELSE END EXISTS EXPLAIN EXTENDED FALSE FROM FULL GROUP HAVING HISTORY IF IN
INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT MATCHED MERGE NOT NULL ON OR ORDER OUTER OVER OVERWRITE PARTITION
PARTITIONED PARTITIONS PRIMARY RENAME RESET RESTORE RIGHT SELECT SET SHOW SNAPSHOTS SYSTEM_TIME TABLE TABLES TAGS TEMPORARY
THEN TIMESTAMP TO TRUE TRUNCATE UNION UPDATE USE USING VALUES VERSION VIEW VIEWS WHEN WHERE WITH
"""
KEYWORDS = tuple(_WORDS.split())

_NAME = r"(?:`[^`]*`|[\w$-]+)"
_WORD = re.compile(rf"{_NAME}?(?:\.{_NAME})*\.?$")
_TABLES = re.compile(rf"\b(?:from|join|into|overwrite|update|table|using|describe|desc)\s+({_NAME}(?:\.{_NAME}){{0,2}})", re.I)

# Runs a statement; the values of its first column.
FirstColumn = Callable[[str], list[str]]


class SqlCompleter(Completer):
    """Completes statements. ``ask`` runs ``SHOW …``; :meth:`forget` is called when something may have changed."""

    def __init__(self, ask: FirstColumn) -> None:
        self._ask = ask
        self._answers: dict[str, list[str]] = {}

    def forget(self) -> None:
        """Ask anew at the next prompt."""
        self._answers.clear()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Completes the word before the cursor."""
        word = _WORD.search(document.text_before_cursor)
        typed = word[0] if word else ""
        for candidate in self._candidates(document.text, typed):
            if candidate.lower().startswith(typed.lower()) and candidate != typed:
                yield Completion(candidate, start_position=-len(typed))

    def _candidates(self, text: str, typed: str) -> Iterable[str]:
        head, dot, _ = typed.rpartition(".")
        if dot:
            yield from (f"{head}.{name}" for name in self._inside(head))
            tables = [path for path in _TABLES.findall(text) if path.lower() != head.lower()]
            yield from (f"{head}.{name}" for path in tables if path.endswith(head) for name in self._columns(path))
            return
        if not typed:
            return
        upper = typed.isupper()
        yield from (keyword if upper else keyword.lower() for keyword in KEYWORDS)
        yield from self._names("SHOW TABLES")
        yield from self._names("SHOW VIEWS")
        yield from self._names("SHOW DATABASES")
        yield from self._names("SHOW CATALOGS")
        for path in _TABLES.findall(text):
            yield from self._columns(path)

    def _inside(self, head: str) -> list[str]:
        """The tables of a database, the databases of a catalog, the columns of a table: whatever ``head`` names."""
        return [*self._names(f"SHOW TABLES IN {head}"), *self._names(f"SHOW DATABASES IN {head}"), *self._columns(head)]

    def _columns(self, path: str) -> list[str]:
        return self._names(f"SHOW COLUMNS IN {path}")

    def _names(self, statement: str) -> list[str]:
        if statement not in self._answers:
            try:
                self._answers[statement] = [quoted(name) for name in self._ask(statement)]
            except TablestoreError:
                self._answers[statement] = []
        return self._answers[statement]


def quoted(name: Any) -> str:
    """A name as it is written in a statement."""
    return sql_name(str(name))
