"""Defines the port to what records lineage, ``Lineage``: which tables a job read, which it wrote, and which column is from which.

    begin(job) -> run -> completed | failed | aborted

What the values say: a dataset lies at an address; a column of an output is from columns of inputs, ``how`` each of them went in.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

LOG = logging.getLogger(__name__)
_CANCELLED = "cancelled"


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
    """A job that writes one dataset. ``operation``: such as ``INSERT`` or ``REFRESH``; ``is_stream``: it has no end of its own.
    ``dialect``: the words of ``sql``; ``engine``: what runs it."""

    operation: str
    inputs: tuple[LineageDataset, ...]
    output: LineageDataset
    sources: ColumnSources = ColumnSources()
    sql: str | None = None
    dialect: str = "spark"
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


@dataclass(slots=True)
class Outcome:
    """The end of a run, as far as its job says: what it has written; None: nothing."""

    written: Written | None = None


@contextmanager
def recorded(lineage: Lineage, make_job: Callable[[], LineageJob]) -> Iterator[Outcome]:
    """Records what goes on inside as a run of a job, and how it ends. A job that cannot be described is not recorded."""
    outcome = Outcome()
    try:
        run = lineage.begin(make_job())
    except Exception:
        # The statement itself will say what is wrong, if anything is.
        LOG.debug("a job could not be described, and has no lineage", exc_info=True)
        yield outcome
        return
    try:
        yield outcome
    except BaseException as error:
        if getattr(error, "kind", None) == _CANCELLED or not isinstance(error, Exception):
            run.aborted()
        else:
            run.failed(error)
        raise
    run.completed(outcome.written)
