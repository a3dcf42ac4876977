"""The flights once more, only in SQL: the statements that a user would type, each checked against pandas."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import tablestore as ts
from examples.flights import dataset as data
from examples.flights.expected import difference, flights_at, read_raw
from examples.flights.report import Report

CREATE = """
CREATE TABLE demo.flights (
  `year` INT, `month` INT, `day` INT, carrier STRING, flight INT, origin STRING, dest STRING, tailnum STRING, distance INT,
  time_hour TIMESTAMP_LTZ(6), sched_dep_time INT, sched_arr_time INT, dep_time INT, dep_delay INT, arr_time INT, arr_delay INT,
  air_time INT, status STRING,
  PRIMARY KEY (`month`, `day`, carrier, flight, origin) NOT ENFORCED
)
COMMENT 'flights that leave New York'
PARTITIONED BY (`month`)
WITH ('bucket' = '1')
"""
RAW = "CREATE TABLE demo.recorded WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{path}')"
SCHEDULE = """
INSERT INTO demo.flights (`year`, `month`, `day`, carrier, flight, origin, dest, tailnum, distance, time_hour, sched_dep_time,
                          sched_arr_time, status)
SELECT `year`, `month`, `day`, carrier, flight, origin, dest, tailnum, distance, time_hour, sched_dep_time, sched_arr_time,
       'scheduled'
FROM demo.recorded
"""
DEPARTED = """
MERGE INTO demo.flights AS f
USING (SELECT * FROM demo.recorded WHERE `month` = :month AND dep_time IS NOT NULL) AS r
ON f.`month` = r.`month` AND f.`day` = r.`day` AND f.carrier = r.carrier AND f.flight = r.flight AND f.origin = r.origin
   AND f.`month` = :month
WHEN MATCHED THEN UPDATE SET dep_time = r.dep_time, dep_delay = r.dep_delay, status = 'departed'
"""
ARRIVED = """
MERGE INTO demo.flights AS f
USING (SELECT * FROM demo.recorded WHERE `month` = :month AND arr_delay IS NOT NULL) AS r
ON f.`month` = r.`month` AND f.`day` = r.`day` AND f.carrier = r.carrier AND f.flight = r.flight AND f.origin = r.origin
   AND f.`month` = :month
WHEN MATCHED THEN UPDATE SET arr_time = r.arr_time, arr_delay = r.arr_delay, air_time = r.air_time, status = 'arrived'
"""
CANCELLED = "DELETE FROM demo.flights WHERE `month` = :month AND dep_time IS NULL"
LATE = """
SELECT carrier, count(*) AS flights, round(avg(dep_delay), 6) AS delay
FROM demo.flights WHERE `month` = 7 AND dep_delay IS NOT NULL
GROUP BY carrier ORDER BY delay DESC, flights DESC
"""


def run(warehouse: str, report: Report, scratch: Path, *, engine: str) -> None:
    """Live through the year in SQL and compare it with pandas."""
    archive = data.archive_path()
    raw = read_raw(archive)
    recorded = scratch / "recorded.parquet"
    pq.write_table(data.read_flights(archive), recorded)
    with report.part("SQL") as counts, ts.TableEnvironment.create(warehouse, engine=engine) as env:
        report.step(f"Create the table, and name the file with what was recorded (queries run in {engine})")
        _run(report, env, "CREATE DATABASE IF NOT EXISTS demo")
        _run(report, env, CREATE)
        _run(report, env, RAW.format(path=str(recorded).replace("'", "''")))
        _live_the_year(report, env, raw)
        _travel(report, env, raw)
        _ask(report, env, raw)
        counts.rows = _number(env, "SELECT count(*) FROM demo.flights")
        counts.snapshots = _number(env, "SELECT count(*) FROM demo.flights$snapshots")
        counts.files = _number(env, "SELECT count(*) FROM demo.flights$files")
    report.summary()


def _live_the_year(report: Report, env: ts.TableEnvironment, raw: pd.DataFrame) -> None:
    report.step("Insert the schedule; then, month by month: MERGE departures, MERGE arrivals, DELETE cancelled flights")
    _run(report, env, SCHEDULE)
    for statement in (DEPARTED, ARRIVED, CANCELLED):
        report.say(_short(statement))
    with report.progress("months", len(data.MONTHS)) as bar:
        for month in data.MONTHS:
            for statement in (DEPARTED, ARRIVED, CANCELLED):
                env.execute_sql(statement, month=month)
            if month == 6:
                env.execute_sql("CALL sys.create_tag(table => 'demo.flights', name => 'midyear')")
            bar.advance(bar.task_ids[0])
    year = env.execute_sql("SELECT * FROM demo.flights").to_arrow()
    expected = flights_at(raw, departed=12, arrived=12, cancelled=12)
    report.check(f"the end of the year: {year.num_rows:,} flights", _difference(year, expected))


def _travel(report: Report, env: ts.TableEnvironment, raw: pd.DataFrame) -> None:
    report.step("Travel in time, by number and by tag")
    for name, when, months in (("the schedule", "1", 0), ("the end of June", "'midyear'", 6)):
        rows = env.execute_sql(f"SELECT * FROM demo.flights FOR VERSION AS OF {when}").to_arrow()
        expected = flights_at(raw, departed=months, arrived=months, cancelled=months)
        report.check(f"{name}: {rows.num_rows:,} flights", _difference(rows, expected))


def _ask(report: Report, env: ts.TableEnvironment, raw: pd.DataFrame) -> None:
    report.step("Ask: which carriers were late in July?")
    report.say(_short(LATE))
    ours = env.execute_sql(LATE).to_arrow().to_pylist()
    report.rows(["carrier", "flights", "mean delay (minutes)"], [list(row.values()) for row in ours[:5]])
    july = raw[(raw["month"] == 7) & raw["dep_delay"].notna()].groupby("carrier")["dep_delay"]
    theirs = {carrier: (int(group.size), round(float(group.mean()), 6)) for carrier, group in july}
    found = {row["carrier"]: (row["flights"], row["delay"]) for row in ours}
    report.check("the same carriers, flights and delays as pandas", None if found == theirs else f"pandas has {theirs}")
    for line in env.execute_sql(f"EXPLAIN {LATE}").to_arrow().column(0)[0].as_py().splitlines()[:3]:
        report.say(line)


def _run(report: Report, env: ts.TableEnvironment, statement: str, parameters: Mapping[str, Any] | None = None) -> None:
    report.say(_short(statement))
    env.execute_sql(statement, **(parameters or {}))


def _number(env: ts.TableEnvironment, query: str) -> int:
    return int(env.execute_sql(query).to_arrow().column(0)[0].as_py())


def _difference(rows: pa.Table, expected: pd.DataFrame) -> str | None:
    return difference(rows.select(data.SCHEMA.names), expected)


def _short(statement: str) -> str:
    """A statement on one line."""
    text = " ".join(statement.split())
    return text if len(text) <= 110 else text[:107] + "..."
