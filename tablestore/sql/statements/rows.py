"""Statements that read and change rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from tablestore.sql.source import NOWHERE, Fragment, Path, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A SELECT, VALUES, TABLE, WITH or whatever else gives rows."""

    query: Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """``INSERT INTO|OVERWRITE [TABLE] target [PARTITION (…)] [(columns) | BY NAME] query``.

    ``partition``: column -> text of a literal, None for a dynamic one; None without the clause. ``columns`` is None without a list.
    """

    target: Path
    query: Fragment
    overwrite: bool = False
    partition: Mapping[str, Fragment | None] | None = None
    columns: tuple[str, ...] | None = None
    by_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """``DELETE FROM target [AS alias] [WHERE condition]``."""

    target: Path
    alias: str | None = None
    where: Fragment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """``column = expression``; the column may lead into a struct. ``value`` None stands for ``DEFAULT``."""

    column: tuple[str, ...]
    value: Fragment | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """``UPDATE target [AS alias] SET … [WHERE condition]``."""

    target: Path
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    where: Fragment | None = None


class Match(Enum):
    """The rows that a MERGE clause is for."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class MergeAction(Enum):
    """The action of a MERGE clause."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """``WHEN … [AND condition] THEN …``. ``assignments`` is None for ``*`` (columns by name), and for DELETE."""

    match: Match
    action: MergeAction
    condition: Fragment | None = None
    assignments: tuple[Assignment, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """``MERGE INTO target [AS alias] USING source [AS alias] ON condition WHEN …``; ``source`` is a table name or ``(query)``."""

    target: Path
    source: Fragment
    on: Fragment
    clauses: tuple[MergeClause, ...]
    alias: str | None = None
    source_alias: str | None = None
    source_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteStatementSet:
    """``EXECUTE STATEMENT SET BEGIN insert; … END``: several INSERTs, one job."""

    inserts: tuple[Insert, ...]
