"""Reports one refresh of a materialized table as one value, whichever way it was computed."""

from dataclasses import dataclass, field
from typing import Literal

from tablestore.format.snapshot import Snapshot
from tablestore.htmltext import PrintedInNotebooks

RefreshMode = Literal["incremental", "full", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange:
    """The part of one source that went in: its changes behind snapshot ``before``, up to ``after``. None: nothing yet, or no
    snapshot."""

    name: str
    before: int | None
    after: int | None

    def __str__(self) -> str:
        return f"{self.name}: {_shown(self.before)} -> {_shown(self.after)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshReport(PrintedInNotebooks):
    """One refresh. ``mode`` ``none``: no source has changed, and nothing was committed.

    ``reason`` says why the whole was computed anew; None where it was not. ``rows_in`` are the rows of the sources that came and
    went in between, ``rows_out`` the rows that were written, each None where nobody counted. ``snapshot_id``: what it published,
    ``snapshot`` the same as a value.
    """

    mode: RefreshMode
    reason: str | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    sources: tuple[SourceRange, ...] = ()
    snapshot_id: int | None = None
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{rows} rows {direction}" for rows, direction in ((self.rows_in, "in"), (self.rows_out, "out")) if rows is not None
        )
        parts = [f"{self.mode} refresh" if self.mode != "none" else "nothing to refresh", counts]
        parts += [f"snapshot {self.snapshot_id}" if self.snapshot_id is not None else "", self.reason or ""]
        return "; ".join(part for part in parts if part)


def _shown(snapshot_id: int | None) -> str:
    return "none" if snapshot_id is None else str(snapshot_id)
