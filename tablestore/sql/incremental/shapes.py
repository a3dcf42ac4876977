"""Describes tables to the planner of incremental refreshes, and gives their names in its SQL.

tablestore_relation_2_old        source 2 at the snapshot that the target was computed from
tablestore_relation_2_new        … at the snapshot that it is refreshed to
tablestore_relation_2_changes    the rows that went and came in between, each with a weight: -1 or 1
tablestore_target                the target, before the refresh
tablestore_step_3                rows of a step, which was run before
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from tablestore.types.datatypes import Field

PREFIX = "tablestore_relation_"
"""The beginning of the names of sources, with their numbers behind it."""
WEIGHT = "tablestore_weight"
"""The column that says how often a row comes (1) or goes (-1)."""
TARGET = "tablestore_target"
STEP = "tablestore_step_"

_OWN = re.compile(
    rf"(?<!\w)(?:{PREFIX}|{STEP}|tablestore_(?:weight|target|sub_|joined_|left|there|gone|times|number|place))", re.IGNORECASE
)

Moment = Literal["old", "new"]

RunStep = Callable[[str, str], pa.Table]
"""Run a query of a step and keep its rows under a name for those behind it; returns them."""
ReadTarget = Callable[[Sequence[str], int], pa.Table | None]
"""Columns of the target's rows before the refresh; None for more rows than that, and if they are not at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceShape:
    """A source of a query: its columns, and its primary key, none for rows that are only appended."""

    name: str
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetShape:
    """The table that holds the rows of the query; without a primary key it is a bag."""

    fields: tuple[Field, ...]
    primary_key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FullRefresh:
    """A query without a rule, and the reason: the whole is computed anew.

    Not ``repeatable``: it may give other rows although no source has changed.
    """

    reason: str
    repeatable: bool = True


class NoRuleError(Exception):
    """A part of a query for which there is no rule; ``reason`` says which. It does not leave this folder."""

    def __init__(self, reason: str, *, repeatable: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.repeatable = reason, repeatable


def check_names(texts: Iterable[str]) -> None:
    """Raises NoRuleError where a text, or the name of a column, has a name of those that the queries of a refresh give."""
    if (reserved := next((match for text in texts if (match := _OWN.search(text)) is not None), None)) is not None:
        raise NoRuleError(f"it has a name that begins with {reserved[0]}, as those of the refresh itself do")


def source_at(number: int, moment: Moment) -> str:
    """The name of a source at a moment."""
    return f"{PREFIX}{number}_{moment}"


def source_changes(number: int) -> str:
    """The name of the changes of a source."""
    return f"{PREFIX}{number}_changes"
