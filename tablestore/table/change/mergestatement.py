"""The merge statement as a value: of which rows, into which table, and its clauses in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from tablestore.log.port import ChangeLog
from tablestore.store.context import TableContext

Match = Literal["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"]
Action = Literal["UPDATE", "DELETE", "INSERT"]
On = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """``WHEN match [AND predicate] THEN action``. ``values`` None: all columns, by name."""

    match: Match
    action: Action
    values: Mapping[str, Any] | None = None
    predicate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStatement:
    """A merge statement. ``source`` is held in memory; ``on`` says which rows match."""

    context: TableContext
    log: ChangeLog
    source: pa.Table
    on: On
    clauses: tuple[MergeClause, ...] = ()
