"""A table with a topic, a writer and two readers: ``make demo-kafka``.

    writer ── upserts, deletes ──> table ──> topic ──> reader A   the table as it was when it began, then every change
                                                 └──> reader B   only what comes

Each reader keeps a plain dictionary. At the end it has to be what the table holds, and every change has to have been seen once,
within a second of the call that made it.
"""

import os
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pyarrow as pa
from rich.console import Console

import tablestore as ts
from examples.flights.report import Report
from tablestore.clock import Clock, SystemClock

SERVERS_VARIABLE = "KAFKA_SERVERS"
CHANGES = 40
GATES_SCHEMA = pa.schema([pa.field("gate", pa.string(), nullable=False), ("flight", pa.string()), ("change", pa.int64())])
WAIT_S = 30.0


@dataclass(slots=True)
class Reader:
    """One reader: a dictionary that follows the table, and when each change arrived."""

    name: str
    location: str
    scan: Any
    clock: Clock
    rows: dict[str, str] = field(default_factory=dict)
    arrived: dict[int, float] = field(default_factory=dict)
    twice: int = 0
    done: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        batches = ts.open_table(self.location).consume(self.scan, stop=self.done.is_set)
        # Where to begin is decided by the call: from here on nothing is missed.
        self.begun.set()
        for batch in batches:
            now = self.clock.steady_s()
            for row in batch.rows.to_pylist():
                self._apply(row, now, in_frame=batch.in_frame)

    def _apply(self, row: dict[str, Any], now: float, *, in_frame: bool) -> None:
        if row["_row_kind"] == "-D":
            self.rows.pop(row["gate"], None)
            return
        self.rows[row["gate"]] = row["flight"]
        if not in_frame:
            self.twice += row["change"] in self.arrived
            self.arrived[row["change"]] = now


def run(warehouse: str, servers: str, report: Report, *, changes: int = CHANGES) -> None:
    """The whole demo; what does not hold is counted in the report."""
    clock = report.clock
    catalog = ts.open_catalog(warehouse)
    catalog.create_database("airport", ignore_if_exists=True)
    report.step("A table with a topic")
    options = {"bucket": "2", "log.kafka.bootstrap.servers": servers}
    table = catalog.create_table("airport.gates", schema=GATES_SCHEMA, primary_key=["gate"], options=options)
    report.say(f"CREATE made the topic {table.options()['log.kafka.topic']!r} at {servers}: one partition per bucket")
    gates = [f"{pier}{number}" for pier in "ABCD" for number in range(1, 6)]
    table.upsert(_rows(dict.fromkeys(gates, "closed"), 0))

    report.step("Two readers")
    readers = [Reader("A (full)", table.location, "full", clock), Reader("B (latest)", table.location, "latest", clock)]
    threads = [threading.Thread(target=reader.run, daemon=True) for reader in readers]
    for thread, reader in zip(threads, readers, strict=True):
        thread.start()
        reader.begun.wait(WAIT_S)
        report.say(f"reader {reader.name} follows the table")

    report.step(f"{changes} changes, one by one")
    sent: dict[int, float] = {}
    with report.progress("writing", changes) as bar:
        for number in range(1, changes + 1):
            sent[number] = clock.steady_s()
            table.upsert(_rows({gates[number % len(gates)]: f"UA{100 + number}"}, number))
            bar.advance(bar.task_ids[0])
    table.delete(pa.table({"gate": gates[:2]}))
    expected = {row["gate"]: row["flight"] for row in table.scan(["gate", "flight"]).to_arrow().to_pylist()}
    latest = _wait_for(readers, expected, gates[:2], clock)

    report.step("What the readers saw")
    for reader in readers:
        reader.done.set()
        waits = [reader.arrived[number] - sent[number] for number in sent if number in reader.arrived]
        slowest = max(waits, default=0.0)
        middle, slow = 1000 * median(waits or [0.0]), 1000 * slowest
        report.say(f"reader {reader.name}: {len(waits)} changes, from the write's call to the row in hand {middle:.0f} ms (median)")
        report.say(f"   and {slow:.0f} ms (slowest)")
        missing = [number for number in sent if number not in reader.arrived]
        report.check(
            f"reader {reader.name} saw every change once", None if not missing and not reader.twice else f"missing {missing}"
        )
        report.check(f"reader {reader.name} saw each within a second", None if slowest < 1 else f"the slowest took {slowest:.1f} s")
    report.check("reader A holds what the table holds", None if readers[0].rows == expected else f"{readers[0].rows} != {expected}")
    report.check("the readers came to the end", None if latest else f"not within {WAIT_S:.0f} s")
    for thread in threads:
        thread.join(WAIT_S)
    catalog.drop_table("airport.gates")
    report.say("DROP removed the table and its topic")


def _rows(flights: dict[str, str], change: int) -> pa.Table:
    return pa.table(
        {"gate": list(flights), "flight": list(flights.values()), "change": [change] * len(flights)}, schema=GATES_SCHEMA
    )


def _wait_for(readers: list[Reader], expected: dict[str, str], gone: list[str], clock: Clock) -> bool:
    deadline_s = clock.steady_s() + WAIT_S
    while clock.steady_s() < deadline_s:
        if readers[0].rows == expected and not any(gate in readers[1].rows for gate in gone) and readers[1].arrived:
            return True
        clock.sleep(0.05)
    return False


def main() -> int:
    """0 when every check passed, 1 when one failed, 2 without a broker."""
    console = Console() if sys.stdout.isatty() else Console(width=120)
    report = Report(console, SystemClock())
    servers = os.environ.get(SERVERS_VARIABLE)
    if not servers:
        console.print(f"{SERVERS_VARIABLE} names no broker; run: make demo-kafka")
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="tablestore-demo-") as warehouse:
            run(warehouse, servers, report)
    except ts.TablestoreError as error:
        console.print(f"\n{type(error).__name__} {error}", highlight=False, markup=False)
        return 1
    console.print(f"\n{report.passed} checks passed, {report.failed} failed", highlight=False)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
