"""The live board: what a stream has said so far, and a picture of it.

Board       the fold of the stream: the last row of each flight that it knows, and how many went
picture     one moment of it, for a terminal that is drawn anew
line        the same moment as a line of text, where the output is no terminal
"""

import re
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from examples.flights.replay import ARRIVED, DAY, KEY, SCHEDULED, TITLE

# Cells of a bar on either side of the axis, and the delay in minutes that fills the one on the right.
_EARLY, _LATE, _FULL = 3, 23, 180.0
# Blocks of an eighth to eight eighths of a cell.
_EIGHTHS = "▏▎▍▌▋▊▉█"
_ON_TIME = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """One line: flights of a carrier. ``delay``: of those that left, in minutes on average; None while none has."""

    code: str
    name: str
    due: int
    left: int
    arrived: int
    cancelled: int
    delay: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is shown at once. ``clock``: of the replay, None before it is known. ``snapshot``: the table's newest; ``behind``: how
    many of its snapshots the stream has not read yet; ``seconds``: from sending the newest row that is shown to showing it."""

    clock: datetime | None
    carriers: tuple[Carrier, ...]
    flights: int
    batches: int
    of_batches: int
    snapshot: int = 0
    behind: int = 0
    seconds: float = 0.0

    @property
    def total(self) -> Carrier:
        """All carriers together."""
        left = sum(one.left for one in self.carriers)
        minutes = sum((one.delay or 0.0) * one.left for one in self.carriers)
        return Carrier(
            code="",
            name="all flights",
            due=sum(one.due for one in self.carriers),
            left=left,
            arrived=sum(one.arrived for one in self.carriers),
            cancelled=sum(one.cancelled for one in self.carriers),
            delay=minutes / left if left else None,
        )


def _no_counts() -> pd.Series:
    return pd.Series(dtype="int64")


@dataclass(frozen=True, slots=True)
class Board:
    """The fold of a stream of rows with ``_row_kind``. ``carriers``: names by code, in the order in which they are shown."""

    carriers: dict[str, str]
    rows: pd.DataFrame | None = None
    cancelled: pd.Series = field(default_factory=_no_counts)

    def after(self, changes: pd.DataFrame) -> "Board":
        """The fold with the next changes, those of each flight in their order."""
        last = changes.drop_duplicates(KEY, keep="last")
        known = last if self.rows is None else pd.concat([self.rows, last]).drop_duplicates(KEY, keep="last")
        gone = known["_row_kind"] == "-D"
        cancelled = self.cancelled.add(known[gone].groupby("carrier").size(), fill_value=0)
        return Board(self.carriers, known[~gone], cancelled)

    def moment(self, **of_stream: Any) -> Moment:
        """The board as it stands; ``of_stream``: the rest of the moment."""
        rows = self.rows if self.rows is not None else pd.DataFrame(columns=[*KEY, "status", "dep_delay", "at"])
        groups = dict(list(rows.groupby("carrier")))
        lines = []
        for code, name in self.carriers.items():
            own = groups.get(code, rows.iloc[:0])
            left = own[own["status"] != SCHEDULED]
            lines.append(
                Carrier(
                    code=code,
                    name=name,
                    due=len(own) - len(left),
                    left=len(left),
                    arrived=int((own["status"] == ARRIVED).sum()),
                    cancelled=int(self.cancelled.get(code, 0)),
                    delay=float(left["dep_delay"].astype(float).mean()) if len(left) else None,
                )
            )
        clock = rows["at"].max().to_pydatetime() if len(rows) else None
        return Moment(clock=clock, carriers=tuple(lines), flights=len(rows), **of_stream)


def picture(moment: Moment) -> RenderableType:
    """The board, about 90 cells wide."""
    grid = Grid(box=None, pad_edge=False, expand=True, header_style="dim")
    grid.add_column("carrier", no_wrap=True, width=22)
    for name, style in (("due", "cyan"), ("left", ""), ("arrived", "green"), ("cancelled", "red")):
        grid.add_column(name, justify="right", style=style, min_width=len(name))
    grid.add_column("mean delay", justify="right", no_wrap=True, min_width=10)
    grid.add_column("early ┊ late", no_wrap=True, width=_EARLY + 1 + _LATE)
    for one in moment.carriers:
        grid.add_row(f"[bold]{one.code}[/bold] {_short(one.name)}", *_counts(one), _delay(one.delay), _bar(one.delay))
    total = moment.total
    grid.add_row()
    grid.add_row(f"[bold]{total.name}[/bold]", *_counts(total), _delay(total.delay), _bar(total.delay), style="bold")
    below = Text.assemble(
        ("table ", "dim"),
        f"snapshot {moment.snapshot}, {moment.flights:,} rows   ",
        ("stream ", "dim"),
        f"{moment.behind} behind, sent to shown {moment.seconds:.1f} s   ",
        ("replay ", "dim"),
        (_progress(moment.batches, moment.of_batches), "blue"),
        f" {moment.batches}/{moment.of_batches}",
    )
    title = Text.assemble((f" {TITLE}  ", "bold"), (f" {_clock(moment)} ", "bold reverse"))
    return Panel(Group(grid, Text(), below), title=title, title_align="left", border_style="blue", width=100, padding=(1, 2))


def line(moment: Moment) -> str:
    """The moment in a line."""
    total = moment.total
    worst = max((one for one in moment.carriers if one.delay is not None), key=lambda one: one.delay or 0.0, default=None)
    shown = "" if worst is None else f", worst {worst.code} {_minutes(worst.delay)}"
    return (
        f"{_clock(moment)}  snapshot {moment.snapshot:3}  due {total.due:4}  left {total.left:4}  arrived {total.arrived:4}  "
        f"cancelled {total.cancelled:4}  mean delay {_minutes(total.delay)} min{shown}"
    )


def _clock(moment: Moment) -> str:
    if moment.clock is None:
        return "--:--"
    return f"{moment.clock:%H:%M}" + (" +1" if moment.clock.date() > date(*DAY) else "")


def _short(name: str) -> str:
    """A company's name without what kind of company it is."""
    return re.sub(r",? (Inc\.|Co\.|Corporation|Airlines Inc\.)$", "", name)[:19]


def _counts(one: Carrier) -> tuple[str, ...]:
    # Nothing where there is nothing: zeros would only fill the board.
    return tuple(f"{count:,}" if count else "" for count in (one.due, one.left, one.arrived, one.cancelled))


def _minutes(delay: float | None) -> str:
    return "-" if delay is None else f"{delay:+.0f}"


def _colour(delay: float | None) -> str:
    if delay is None:
        return "dim"
    return "green" if delay <= 0 else "yellow" if delay < _ON_TIME else "red"


def _delay(delay: float | None) -> Text:
    return Text("" if delay is None else f"{_minutes(delay)} min", style=_colour(delay))


def _bar(delay: float | None) -> Text:
    """To the right of the axis what is late, to the left what is early; an arrow where it is more than there is room for."""
    found = delay or 0.0
    eighths = min(round(abs(found) / _FULL * _LATE * 8), (_LATE if found > 0 else _EARLY) * 8)
    if found <= 0:
        # Half a cell is the least that can be drawn from the right.
        halves = -(-eighths // 4)
        blocks = "▐" * (halves % 2) + "█" * (halves // 2)
        return Text.assemble(" " * (_EARLY - len(blocks)), (blocks, _colour(delay)), ("┊", "dim"))
    blocks = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")
    if found > _FULL:
        blocks = blocks[:-1] + "▶"
    return Text.assemble(" " * _EARLY, ("┊", "dim"), (blocks, _colour(delay)))


def _progress(done: int, of: int) -> str:
    cells = round(10 * done / max(of, 1))
    return "━" * cells + "╌" * (10 - cells)
