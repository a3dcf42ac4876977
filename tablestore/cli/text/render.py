"""Shows the results of a command: one JSON document, a table for eyes, or plain lines for other programs.

    --json        one JSON document on standard output; sizes in bytes, times ISO 8601 in UTC
    terminal      rich tables, human sizes, relative times
    piped         tab-separated lines with one header line, exact numbers, ISO times

Notes, progress bars and errors go to standard error, so that what is piped on is only the result. Everything that did not come
from this program passes :func:`~tablestore.cli.text.safetext.safe` before it is shown.
"""

import base64
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TextIO

from tablestore.cli.text.safetext import safe, safe_json, safe_lines
from tablestore.lazy import lazy
from tablestore.units import human_age, human_bytes, iso_time

# What is piped on is written without rich: it is loaded when something is drawn.
if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.table import Table as RichTable
    from rich.text import Text

CellKind = Literal["text", "count", "bytes", "time", "names", "flag", "id"]
Record = Mapping[str, Any]
# Asks rich to draw on what is no terminal.
_FORCE_DRAWING = ("FORCE_COLOR", "TTY_COMPATIBLE")
_UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
STATUS_STYLES = {"ok": "green", "absent": "dim", "warning": "yellow", "problem": "bold red"}


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of a listing: the key in the record (and in JSON), its heading, and what its values are."""

    key: str
    heading: str
    kind: CellKind = "text"


class Output:
    """The place that the results of one command go to."""

    def __init__(self, *, as_json: bool, now_millis: int) -> None:
        self.as_json, self._now = as_json, now_millis
        # Shows text that is longer than the terminal, and returns False if it cannot.
        self.pager: Callable[[str], bool] | None = None

    @lazy
    def console(self) -> "Console":
        """The console of standard output."""
        return _console(sys.stdout)

    @lazy
    def errors(self) -> "Console":
        """The console of standard error."""
        return _console(sys.stderr)

    @lazy
    def is_terminal(self) -> bool:
        """True if the result is for eyes."""
        return not self.as_json and self._draws

    @lazy
    def _draws(self) -> bool:
        forced = any(variable in os.environ for variable in _FORCE_DRAWING)
        return (forced or sys.stdout.isatty()) and self.console.is_terminal

    # -- results

    def document(self, value: Any) -> None:
        """One JSON document. Only under ``--json``."""
        self.write(json_text(value, indent=2 if self._draws else None))

    def line(self, value: Any) -> None:
        """One of several JSON documents, on a line of its own."""
        self.write(json_text(value))

    def flush(self) -> None:
        """Let readers see what was written so far."""
        sys.stdout.flush()

    def write(self, line: str) -> None:
        """One line, as it is."""
        sys.stdout.write(line + "\n")

    def say(self, text: str) -> None:
        """A sentence for people."""
        if self.is_terminal:
            _print(self.console, safe_lines(text))
        elif not self.as_json:
            self.write(safe_lines(text))

    def show_line(self, text: "Text") -> None:
        """A styled sentence for people, never broken by the width; what came from elsewhere is made safe."""
        text.plain = safe(text.plain)
        self.console.print(text, soft_wrap=True)

    def note(self, text: str) -> None:
        """A remark beside the result, on standard error."""
        _print(self.errors, safe_lines(text), style="dim")

    def notice(self, kind: str, message: str) -> None:
        """Notes on standard error what a command that succeeded did not do: a document of its own under ``--json``."""
        if self.as_json:
            self.error_line({"notice": {"kind": kind, "message": message}})
        else:
            self.note(f"Notice: {message}")

    def refuse(self, refusal: BaseException) -> None:
        """Says on standard error why nothing is done."""
        _print(self.errors, safe_lines(refusal))

    def error_line(self, value: Any) -> None:
        """One JSON document on standard error."""
        sys.stderr.write(json_text(value) + "\n")

    def fail(self, error: BaseException | str) -> None:
        """An error, on standard error."""
        from rich.text import Text

        self.errors.print(Text("Error: ", style="bold red") + Text(safe_lines(error)), soft_wrap=True)

    def show(self, renderable: "RenderableType") -> None:
        """Something rich knows how to draw."""
        self.console.print(renderable)

    def show_long(self, renderable: "RenderableType") -> None:
        """Something that rich draws, in the pager if the terminal has fewer lines."""
        if self.pager is not None:
            with self.console.capture() as captured:
                self.console.print(renderable)
            text = captured.get()
            if text.count("\n") >= self.console.height and self.pager(text):
                return
        self.show(renderable)

    def done(self, document: Record, sentence: str) -> None:
        """Says what a command has done: a document under ``--json``, else a sentence."""
        if self.as_json:
            self.document(document)
        else:
            self.say(sentence)

    def listing(self, key: str, columns: Sequence[OutputColumn], records: Sequence[Record], *, empty: str) -> None:
        """Records as a table; ``empty`` is said (on a terminal) when there are none."""
        if self.as_json:
            self.document({key: [self.record(columns, record) for record in records]})
        elif not self.is_terminal:
            self.write("\t".join(column.key for column in columns))
            for record in records:
                self.write("\t".join(self._plain(column, record.get(column.key)) for column in columns))
        elif not records:
            self.say(empty)
        else:
            self.show(self.table(columns, records))

    def table(self, columns: Sequence[OutputColumn], records: Sequence[Record], title: str | None = None) -> "RichTable":
        """Records as a table for a terminal."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=None, header_style="bold", title=title, title_justify="left", pad_edge=False)
        for column in columns:
            table.add_column(
                Text(column.heading), justify="right" if column.kind in ("count", "bytes") else "left", overflow="fold"
            )
        for record in records:
            table.add_row(*(Text(self._pretty(column, record.get(column.key))) for column in columns))
        return table

    def facts(self, document: Record, columns: Sequence[OutputColumn]) -> None:
        """One thing and its properties, one a line."""
        if self.as_json:
            self.document(self.record(columns, document))
            return
        shown = [column for column in columns if document.get(column.key) is not None]
        width = max((len(column.heading) for column in shown), default=0)
        for column in shown:
            heading, value = f"{column.heading:{width}}  ", document[column.key]
            if not self.is_terminal:
                self.write(heading + self._plain(column, value))
                continue
            from rich.text import Text

            self.show_line(Text(heading, style="bold") + Text(self._pretty(column, value)))

    def record(self, columns: Sequence[OutputColumn], record: Record) -> dict[str, Any]:
        """A record as JSON shows it."""
        times = {column.key for column in columns if column.kind == "time"}
        return {key: iso_time(value) if key in times and value is not None else value for key, value in record.items()}

    @property
    def now_millis(self) -> int:
        """The time when the command began."""
        return self._now

    def age(self, time_millis: int) -> str:
        """A time for people: relative on a terminal, else ISO."""
        return human_age(time_millis, self._now) if self.is_terminal else iso_time(time_millis)

    # -- progress

    @contextmanager
    def progress(self, title: str, total: float | None) -> Iterator["Bar"]:
        """A progress bar on standard error, if that is a terminal."""
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.errors, transient=True, disable=not self.errors.is_terminal or self.as_json) as bar:
            yield Bar(bar, bar.add_task(safe(title), total=total))

    # -- cells

    def _pretty(self, column: OutputColumn, value: Any) -> str:
        if value is None:
            return "-"
        match column.kind:
            case "count":
                return f"{value:,}"
            case "bytes":
                return human_bytes(value)
            case "time":
                return human_age(value, self._now)
            case "id":
                return short_ids(self._plain(column, value))
            case _:
                return self._plain(column, value)

    def _plain(self, column: OutputColumn, value: Any) -> str:
        if value is None:
            return ""
        match column.kind:
            case "time":
                return iso_time(value)
            case "names":
                return ", ".join(safe(name) for name in value)
            case "flag":
                return "yes" if value else "no"
            case _:
                return safe(value)


class Bar:
    """A progress bar that the work advances."""

    def __init__(self, progress: "Progress", task: Any) -> None:
        self._progress, self._task = progress, task

    def begin(self, title: str, total: float | None) -> None:
        """The next part of the work. ``total`` None: nobody knows how long it takes."""
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(safe(title), total=total)

    def show(self, what: str, done: int, total: int) -> None:
        """``done`` of ``total`` of what is being done. The bar's own total is 1."""
        self.reach(done / max(total, 1), what)

    def reach(self, done: float, note: str | None = None) -> None:
        """``done`` of the total are done."""
        if note is None:
            self._progress.update(self._task, completed=done)
        else:
            self._progress.update(self._task, completed=done, description=safe(note))


def _console(file: TextIO) -> "Console":
    from rich.console import Console

    class QuietConsole(Console):
        """A console that leaves a broken pipe to the command."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return QuietConsole(file=file, highlight=False, soft_wrap=False)


def _print(console: "Console", text: str, style: str = "") -> None:
    """Text as it is, never broken by the width."""
    from rich.text import Text

    console.print(Text(text, style=style), soft_wrap=True)


def json_text(value: Any, indent: int | None = None) -> str:
    """A value of metadata as JSON text."""
    return safe_json(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False, indent=indent))


def jsonable(value: Any) -> Any:
    """A value of metadata as JSON knows it: times ISO, decimals as text, bytes base64, non-finite numbers as text."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return (
                value
                if value == value and abs(value) != float("inf")
                else {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
            )
        case datetime():
            return value.isoformat() if value.tzinfo is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return {str(key): jsonable(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [jsonable(item) for item in value]
        case _:
            return str(value)


def short_ids(text: str) -> str:
    """A text with the first eight characters of each UUID in it, by which people tell one from another."""
    return _UUID.sub(r"\1", text)


def silence_stdout() -> None:
    """After the reader has left: what is still buffered must not raise while the interpreter shuts down."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
