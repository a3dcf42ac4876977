"""Keeps the tokens and the tree of a query whose relations have names of their own: each is made once, when it is first wanted.

    SELECT shop.t.x FROM shop.t          SELECT t.x FROM __relation_0 AS `t`          Select(Column(t, x), From(__relation_0))

Pruning looks at the tree, and the engine takes it away and rewrites it. So one tree has one owner at a time, in all threads.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tablestore.sql.freshnames import fresh_name
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Edit, apply_edits

if TYPE_CHECKING:
    from sqlglot import exp

RELATION_PREFIX = "__relation_"
"""The beginning of the names of relations, with their numbers behind it, in a text that has it nowhere else."""
Trees: TypeAlias = "list[exp.Expr | None]"
"""The trees of the statements of a text: a query is one."""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """The text of a query, with what was read of it. Of two with one text one will do, so they are equal.

    ``prefix``: with their numbers behind it relations are named in the text. ``is_checked``: its lists and hints were looked at.
    """

    text: str
    prefix: str = RELATION_PREFIX
    is_checked: bool = field(default=False, compare=False)
    # What was read, while nobody has it: to take the last item of a list is one step for all threads.
    _tokens: list[Tokens] = field(default_factory=list, compare=False, repr=False)
    _trees: list[Trees] = field(default_factory=list, compare=False, repr=False)

    @staticmethod
    def of(text: str, edits: Sequence[Edit], prefix: str = RELATION_PREFIX, tokens: Tokens | None = None) -> "ParsedQuery":
        """The query of a text with edits that name relations; ``prefix`` grows until the text has it not. ``tokens``: of the text,
        whose lists and hints were looked at."""
        prefix, is_checked = fresh_name(prefix, text), tokens is not None
        if edits:
            return ParsedQuery(apply_edits(text, edits, lambda number: f"{prefix}{number}"), prefix, is_checked)
        return ParsedQuery(text, prefix, is_checked, [] if tokens is None else [tokens])

    @property
    def tokens(self) -> Tokens:
        """The tokens of the text. Raises InvalidInputError."""
        if not self._tokens:
            self._tokens.append(Tokens(self.text))
        return self._tokens[0]

    def take(self) -> Trees:
        """The trees of the text, which the caller may change, or put back. Raises what sqlglot raises."""
        try:
            return self._trees.pop()
        except IndexError:
            # sqlglot takes a while to load; a query that reads no table of ours does without it.
            import sqlglot

            from tablestore.sql.query.dialect import Spark4

            return sqlglot.parse(self.text, read=Spark4)

    def put_back(self, trees: Trees) -> None:
        """Keeps trees that were taken and not changed."""
        self._trees.append(trees)

    def moved(self) -> "ParsedQuery":
        """The same query for somebody else, with what was read of it: memos hold texts, not trees."""
        other = ParsedQuery(self.text, self.prefix, self.is_checked)
        with suppress(IndexError):
            other._tokens.append(self._tokens.pop())
        with suppress(IndexError):
            other._trees.append(self._trees.pop())
        return other


@dataclass(frozen=True, slots=True)
class NumberedQuery:
    """A query whose relations are numbered among all that are read; in the place of a view stands its query."""

    parsed: ParsedQuery
    relations: tuple["int | NumberedQuery", ...]
