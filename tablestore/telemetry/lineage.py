"""Defines the port to what records lineage, ``Lineage``: which tables a job read, which it wrote, and which column is from which.

    begin(job) -> run -> running … -> completed | failed | aborted

What the values say: a dataset lies at an address; a column of an output is from columns of inputs, ``how`` each of them went in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


class How(Enum):
    """The way in which a column goes into a result: into its values (direct), or into which rows there are (indirect)."""

    IDENTITY = "DIRECT", "IDENTITY"
    TRANSFORMATION = "DIRECT", "TRANSFORMATION"
    AGGREGATION = "DIRECT", "AGGREGATION"
    CONDITIONAL = "INDIRECT", "CONDITIONAL"
    FILTER = "INDIRECT", "FILTER"
    JOIN = "INDIRECT", "JOIN"
    GROUP_BY = "INDIRECT", "GROUP_BY"
    SORT = "INDIRECT", "SORT"
    WINDOW = "INDIRECT", "WINDOW"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageDataset:
    """A table, a topic or a folder of files. ``location``: its address; ``name``: ``database.table``, of what a catalog names.
    ``columns``: names with their types, in words of SQL."""

    location: str
    name: str | None = None
    columns: tuple[tuple[str, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """A column of an input, and how it went in."""

    dataset: LineageDataset
    column: str
    how: How


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSources:
    """The columns that the rows of a query are from: of each of its columns (one of which that is not known is left out), and of
    which rows there are."""

    columns: Mapping[str, tuple[ColumnUse, ...]] = field(default_factory=dict)
    rows: tuple[ColumnUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageJob:
    """A job that writes one dataset. ``operation``: such as ``INSERT`` or ``REFRESH``; ``is_stream``: it has no end of its own."""

    operation: str
    inputs: tuple[LineageDataset, ...]
    output: LineageDataset
    sources: ColumnSources = ColumnSources()
    sql: str | None = None
    engine: str | None = None
    is_stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The rows, files and bytes that a run has written, and the snapshot with them. None: not known."""

    rows: int | None = None
    files: int | None = None
    size_bytes: int | None = None
    snapshot_id: int | None = None


class LineageRun(Protocol):
    """One run of a job."""

    def running(self, written: Written) -> None:
        """A part has landed, and it goes on."""
        ...

    def completed(self, written: Written | None) -> None:
        """It has landed, or there was nothing to do (None)."""
        ...

    def failed(self, error: BaseException) -> None:
        """It ended with an error."""
        ...

    def aborted(self) -> None:
        """It was ended by whoever ran it."""
        ...


class Lineage(Protocol):
    """Records lineage. Nothing that happens here reaches the job, and nothing of it waits."""

    def begin(self, job: LineageJob) -> LineageRun:
        """A run of a job that begins now."""
        ...

    def close(self) -> None:
        """Waits a moment until what was recorded is sent."""
        ...
