"""One day of the flights as it happened: the late snow of 8 March 2013, when a flight left 84 minutes late on average.

    plan       every flight of the day, before anything is known of it
    slices     what happened next, a stretch of the day at a time: flights that left, flights that arrived, and cancelled ones

A flight that was cancelled goes an hour after it was due.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import csv

from examples.flights import dataset as data

KEY = ["carrier", "flight", "origin"]
DAY = (2013, 3, 8)
TITLE = "New York, Friday 8 March 2013"
SCHEMA = pa.schema(
    [
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("flight", pa.int32(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("dest", pa.string()),
        pa.field("due", pa.timestamp("us")),
        pa.field("status", pa.string()),
        pa.field("dep_delay", pa.int32()),
        pa.field("arr_delay", pa.int32()),
        # When it happened, on the clock of the replay.
        pa.field("at", pa.timestamp("us")),
        # When it was sent, on the clock of this machine: milliseconds since the epoch.
        pa.field("sent", pa.int64()),
    ]
)
CHANGES_SCHEMA = pa.schema([pa.field("_row_kind", pa.string(), nullable=False), *SCHEMA])
SCHEDULED, LEFT, ARRIVED = "scheduled", "left", "arrived"


@dataclass(frozen=True, slots=True)
class Slice:
    """What happened up to ``until``: rows with their ``_row_kind``, one for each flight."""

    until: datetime
    changes: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Replay:
    """``last``: what is known of each flight at the end."""

    plan: pd.DataFrame
    slices: tuple[Slice, ...]
    last: pd.DataFrame
    carriers: dict[str, str]


def replay(archive: Path, *, slices: int) -> Replay:
    """The day, cut into so many stretches of one length. Stretches in which nothing happened are left out."""
    raw = _of_the_day(archive)
    plan = raw.assign(status=SCHEDULED, dep_delay=None, arr_delay=None, at=raw["due"].min())
    changes = _changes(raw).sort_values(["at", *KEY], kind="stable")
    begin, end = changes["at"].min().floor("h"), changes["at"].max().ceil("h")
    step = (end - begin) / slices
    number = ((changes["at"] - begin) // step).clip(upper=slices - 1)
    parts = tuple(
        Slice((begin + (int(which) + 1) * step).to_pydatetime(), part.drop_duplicates(KEY, keep="last"))
        for which, part in changes.groupby(number)
    )
    last = pd.concat([plan.assign(_row_kind="+I"), changes]).drop_duplicates(KEY, keep="last")
    names = csv.read_csv(archive.parent / "airlines.csv").to_pylist() if (archive.parent / "airlines.csv").is_file() else []
    carriers = {row["carrier"]: row["name"] for row in names}
    busiest = plan["carrier"].value_counts().index
    return Replay(plan, parts, last[last["_row_kind"] != "-D"], {code: carriers.get(code, code) for code in busiest})


def to_rows(frame: pd.DataFrame, schema: pa.Schema, **columns: int | None) -> pa.Table:
    """The rows as a table or a stream takes them; ``columns``: what they lack, the same in all."""
    return pa.Table.from_pandas(frame.assign(**columns)[schema.names], schema=schema, preserve_index=False)


def _of_the_day(archive: Path) -> pd.DataFrame:
    year, month, day = DAY
    frame = data.read_flights(archive).to_pandas()
    frame = frame[(frame["year"] == year) & (frame["month"] == month) & (frame["day"] == day)]
    minutes = frame["sched_dep_time"] // 100 * 60 + frame["sched_dep_time"] % 100
    return frame.assign(due=pd.Timestamp(year, month, day) + pd.to_timedelta(minutes, unit="min"))


def _changes(raw: pd.DataFrame) -> pd.DataFrame:
    minute = pd.Timedelta(minutes=1)
    left = raw[raw["dep_time"].notna()]
    left = left.assign(at=left["due"] + left["dep_delay"] * minute)
    landed = left[left["arr_delay"].notna()]
    landed = landed.assign(at=landed["at"] + landed["air_time"] * minute, status=ARRIVED, _row_kind="+U")
    gone = raw[raw["dep_time"].isna()]
    gone = gone.assign(at=gone["due"] + 60 * minute, status=SCHEDULED, _row_kind="-D")
    return pd.concat([left.assign(status=LEFT, arr_delay=None, _row_kind="+U"), landed, gone])
