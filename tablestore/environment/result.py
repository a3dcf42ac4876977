"""Defines the result of a statement: rows, the snapshot that it published, or nothing but that it is done.

    kind        rows                                    snapshot
    rows        those of the query, run at each use     None
    snapshot    one row: snapshot_id, and the rows      the snapshot; None if there was nothing to publish
                affected, inserted, updated, deleted
                (NULL: not known)
    nothing     one row: result = OK                    None

Rows that are one text (a plan, a statement) have it as ``text``.

Beside them it may have notices: what the statement left out, or did not do.

Rows of a query over streams have no end (``is_endless``).

The result of a job that is under way (``job``) waits for its end where something of it is asked for.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Literal, Protocol

import pyarrow as pa

from tablestore.environment.jobs import Job
from tablestore.environment.objectpath import ObjectPath
from tablestore.errors import InvalidInputError
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.format.writecounts import NOTHING_DONE, WriteCounts
from tablestore.htmltext import HtmlText, html_element, html_join, html_table
from tablestore.table.read.scan import ArrowSource

ResultKind = Literal["rows", "snapshot", "nothing"]
ROW_COUNTS = ("num_affected_rows", "num_inserted_rows", "num_updated_rows", "num_deleted_rows")
"""The names of Delta for the rows that a statement changed."""
SNAPSHOT_SCHEMA = pa.schema([(name, pa.int64()) for name in ("snapshot_id", *ROW_COUNTS)])
DONE_SCHEMA = pa.schema([("result", pa.string())])
_WIDEST = 60
"""Characters of a cell that are shown."""
NOTEBOOK_ROWS, NOTEBOOK_COLUMNS = 20, 100


class NoticeKind(StrEnum):
    """The subject of a notice."""

    ALREADY_THERE = "already-there"
    HINTS_LEFT_OUT = "hints-left-out"
    ONE_SNAPSHOT = "one-snapshot"
    REFRESHED_HERE = "refreshed-here"
    ROWS_REPLACED = "rows-replaced"


@dataclass(frozen=True, slots=True)
class Notice:
    """Tells what a statement that succeeded did not do as one might expect."""

    kind: NoticeKind
    message: str


class RereadableRows(Protocol):
    """Rows that can be read several times."""

    @property
    def schema(self) -> pa.Schema: ...

    def to_reader(self) -> pa.RecordBatchReader: ...


class Result(ArrowSource):
    """The result of one statement: an Arrow stream with the conversions of a scan."""

    def __init__(
        self,
        rows: RereadableRows | pa.Table,
        *,
        kind: ResultKind = "rows",
        snapshot: Snapshot | None = None,
        job: "Job[Result] | None" = None,
        text: str | None = None,
        notices: tuple[Notice, ...] = (),
        cancel: Callable[[], None] | None = None,
    ) -> None:
        self._rows, self._kind, self._snapshot, self._job, self._text = rows, kind, snapshot, job, text
        self._notices, self._cancel = notices, cancel
        self._seconds: float | None = None

    @property
    def kind(self) -> ResultKind:
        """``rows``, ``snapshot`` or ``nothing``."""
        return self._kind

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that the statement published."""
        return self._snapshot if self._job is None else self._job.result().snapshot

    @property
    def counts(self) -> WriteCounts | None:
        """The rows, files and bytes that the statement added and removed; None for one that changes no rows."""
        if self._kind != "snapshot":
            return None
        return NOTHING_DONE if (landed := self.snapshot) is None else landed.counts

    @property
    def seconds(self) -> float | None:
        """The seconds that the statement ran before it returned this result: rows of a query are read after that, and a job goes
        on. None for what was not run as a statement."""
        return self._seconds

    @property
    def job(self) -> "Job[Result] | None":
        """The job that makes it, where the statement did not wait for its end (``table.dml-sync`` = false)."""
        return self._job

    @property
    def text(self) -> str | None:
        """The plan of EXPLAIN or the statement of SHOW CREATE, with its line breaks; None for other statements."""
        return self._text

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The notices on what the statement left out or did not do; empty for most, and while its job runs."""
        if self._job is None or not self._job.done():
            return self._notices
        return (*self._notices, *self._job.result().notices)

    def noting(self, *notices: Notice, seconds: float | None = None) -> "Result":
        """The same result, with notices in front of its own, and the time that it took."""
        self._notices, self._seconds = (*notices, *self._notices), seconds
        return self

    @property
    def is_endless(self) -> bool:
        """True for rows of a SELECT in streaming mode: they come as the tables change, until :meth:`cancel`."""
        return self._cancel is not None

    def cancel(self) -> None:
        """Ends rows without end, and a job that is under way; nothing else has to be ended."""
        if self._cancel is not None:
            self._cancel()
        if self._job is not None:
            self._job.cancel()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._rows.schema

    def to_arrow(self) -> pa.Table:
        """All rows as one table in memory. Raises InvalidInputError for rows without end."""
        if self.is_endless:
            raise InvalidInputError(
                "a SELECT in streaming mode has no last row: read its batches, for batch in result.to_reader(): …, until "
                "result.cancel(); or SET 'execution.runtime-mode' = 'batch'",
                kind="streaming",
            )
        return super().to_arrow()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed."""
        return self._rows.to_reader()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, streamed."""
        yield from self.to_reader()

    def show(self, limit: int = 20) -> None:
        """Writes the first rows to standard output as a table, and the notices below it; a plan or a statement as it is."""
        shown = self._text if self._text is not None else _text_table(self.to_reader(), limit)
        sys.stdout.write("\n".join([shown, *(f"Notice: {notice.message}" for notice in self.notices), ""]))

    def __repr__(self) -> str:
        return f"Result({self._kind!r}, columns={self.schema.names})"

    def _repr_html_(self) -> str:
        """The first rows, a plan or a statement, and the notices. It waits for no job and reads no rows without end."""
        if self.is_endless or (self._job is not None and not self._job.done()):
            return html_element("code", None, repr(self))
        shown = html_element("pre", None, self._text) if self._text is not None else rows_as_html(self.to_reader())
        return html_join([shown, *(html_element("p", None, f"Notice: {notice.message}") for notice in self.notices)])


def rows_as_html(reader: pa.RecordBatchReader, limit: int = NOTEBOOK_ROWS) -> HtmlText:
    """The first rows as a table for notebooks; its last line says if there are more. Reads no further than that."""
    batches, rows = [], 0
    for batch in reader:
        batches.append(batch.slice(0, limit + 1 - rows))
        rows += batches[-1].num_rows
        if rows > limit:
            break
    table = pa.Table.from_batches(batches, schema=reader.schema)
    shown = table.slice(0, limit).select(range(min(table.num_columns, NOTEBOOK_COLUMNS)))
    # Only a notebook shows them so.
    from tablestore.table.inspect.cells import cell_rows, is_number_column

    lines = [["NULL" if text is None else text for text in row] for row in cell_rows(shown)]
    numbers = [place for place, field in enumerate(shown.schema) if is_number_column(field.type)]
    notes = [f"only the first {limit} rows"] if rows > limit else []
    notes += [f"{table.num_columns - NOTEBOOK_COLUMNS:,} more columns"] if table.num_columns > NOTEBOOK_COLUMNS else []
    parts = [html_table([f"{name:.{_WIDEST}}" for name in shown.column_names], lines, numbers)]
    return html_join([*parts, *([html_element("p", None, ", ".join(notes))] if notes else [])])


def done(*notices: Notice) -> Result:
    """The result of a statement that only does something."""
    return Result(pa.table({"result": ["OK"]}, schema=DONE_SCHEMA), kind="nothing", notices=notices)


def landed(snapshot: Snapshot | None, *notices: Notice) -> Result:
    """The result of a statement that changes rows."""
    return Result(_Landed(snapshot), kind="snapshot", snapshot=snapshot, notices=notices)


@dataclass(frozen=True, slots=True)
class _Landed:
    """The row about a statement that changes rows: most callers do not look at it."""

    snapshot: Snapshot | None
    schema: pa.Schema = SNAPSHOT_SCHEMA

    def to_reader(self) -> pa.RecordBatchReader:
        row = [None if self.snapshot is None else self.snapshot.id, *row_counts(self.snapshot)]
        return pa.Table.from_arrays([pa.array([value], pa.int64()) for value in row], schema=self.schema).to_reader()


def row_counts(snapshot: Snapshot | None) -> tuple[int | None, ...]:
    """The rows that a statement changed, in the order of ROW_COUNTS; all 0 if it published nothing."""
    counts = NOTHING_DONE if snapshot is None else snapshot.counts
    return counts.rows_affected, counts.rows_inserted, counts.rows_updated, counts.rows_deleted


def hints_left_out(engine: str, hints: Iterable[str]) -> Notice:
    """The notice where an engine takes no hints of Spark."""
    return Notice(NoticeKind.HINTS_LEFT_OUT, f"the engine {engine} takes no hints of Spark; left out: {' '.join(hints)}")


def reads_one_snapshot(options: Iterable[str]) -> Notice:
    """The notice on options of a reference that are for readers which follow changes."""
    return Notice(
        NoticeKind.ONE_SNAPSHOT,
        f"a query reads one snapshot, so {' and '.join(options)} changed nothing; table.consume(), `tablestore consume` and "
        "spark.readStream follow changes",
    )


def inserted(snapshot: Snapshot | None) -> Result:
    """The result of an INSERT, which says how many stored rows its rows replaced, where the commit has looked them up."""
    if snapshot is None or snapshot.commit_kind is not CommitKind.APPEND:
        return landed(snapshot)
    if snapshot.row_change is None or snapshot.delta_record_count is None:
        return landed(snapshot)
    replaced = snapshot.delta_record_count - snapshot.row_change
    if replaced <= 0:
        return landed(snapshot)
    return landed(snapshot, Notice(NoticeKind.ROWS_REPLACED, f"{replaced:,} of the rows took the place of stored ones"))


def already_there(path: ObjectPath) -> Notice:
    """The notice of IF NOT EXISTS on a table that is there."""
    return Notice(NoticeKind.ALREADY_THERE, f"table {path} is there already; nothing was done")


def pending(job: Job[Result], kind: ResultKind, schema: pa.Schema) -> Result:
    """The result of a job that is under way."""
    return Result(_Pending(job, schema), kind=kind, job=job)


class _Pending:
    def __init__(self, job: Job[Result], schema: pa.Schema) -> None:
        self._job, self.schema = job, schema

    def to_reader(self) -> pa.RecordBatchReader:
        return self._job.result().to_reader()


def listed(column: str, names: Iterable[str]) -> Result:
    """Names, a row each."""
    return Result(pa.table({column: pa.array(list(names), pa.string())}))


def one_text(column: str, text: str) -> Result:
    """A plan, or a statement."""
    return Result(pa.table({column: pa.array([text], pa.string())}), text=text)


def records(schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> Result:
    """Rows that were made one by one: listings are short."""
    return Result(pa.Table.from_pylist(list(rows), schema=schema))


def pairs(items: Iterable[tuple[str, str | None]]) -> Result:
    """Keys and their values, a row each."""
    schema = pa.schema([("key", pa.string()), ("value", pa.string())])
    return records(schema, [{"key": key, "value": value} for key, value in items])


def _text_table(reader: pa.RecordBatchReader, limit: int) -> str:
    """The first ``limit`` rows; the last line says if there are more. Reads no further than that."""
    rows: list[list[str]] = []
    for batch in reader:
        values = batch.slice(0, limit + 1 - len(rows)).to_pydict()
        rows.extend([_cell(value) for value in row] for row in zip(*values.values(), strict=True))
        if len(rows) > limit:
            break
    names = [_cell(name) for name in reader.schema.names]
    shown = list(islice(rows, limit))
    widths = [max([_width(name), *(_width(row[i]) for row in shown)]) for i, name in enumerate(names)]
    rule = "+".join("-" * (width + 2) for width in widths)
    lines = [_line(names, widths), rule, *(_line(row, widths) for row in shown)]
    return "\n".join([*lines, *([f"only the first {limit} rows"] if len(rows) > limit else [])])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "|".join(f" {cell}{' ' * (width - _width(cell))} " for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    # Line breaks and control characters would break the table, or the terminal.
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: _WIDEST + 1])
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text if not unicodedata.combining(char))
