"""Does a small commit cost what its files cost, does it matter how many snapshots are retained, and what does SQL add?

Measured are runs of upserts by a handle that stays open, of a table that is some seconds old, the compactions that they pay for
among them. The floor writes as many files of the same sizes one after the other, each synced, in plain Python: no table, no
Parquet, and the names of the files not made durable (or, beside it, so too).
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import count
from pathlib import Path

import tablestore as ts
from benchmarks import ours
from benchmarks.measure import Case, Sample, stopwatch
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.workloads import Workload
from tablestore.format.snapshot import encode_snapshot
from tablestore.store.snapshots import PARENT_PROPERTY

UPSERTS = 10
# A directory above is synced at every commit until this long after the last thing was made in it: a warm handle is older.
SETTLED_S = 4.0
ROWS = 140
RETAINING = {"write-only": "false", "snapshot.time-retained": "10 d", "snapshot.num-retained.max": "1000000"}


def run(setting: Setting) -> None:
    """All questions of this module."""
    _against_plain_files(setting)
    _by_retained_snapshots(setting)
    _statements(setting)
    _refreshes(setting)


def _against_plain_files(setting: Setting) -> None:
    workload = Workload("bigint", 20_000, setting.seed)
    with setting.workspace("small") as space:
        table = ours.create(space, "small", workload, buckets=1, extra={"write-only": "false"})
        made: list[int] = []
        (space / "plain").mkdir()
        upserts = _upserts(table, workload, ROWS, made)
        upserts()
        time.sleep(SETTLED_S)
        upserts()
        cases = [
            Case("upserts", upserts),
            Case("plain files", _plain(space / "plain", made, directories=False)),
            Case("plain files and directories", _plain(space / "plain", made, directories=True)),
        ]
        timings = setting.take_turns(cases)
    each = {name: timing.median / UPSERTS for name, timing in timings.items()}
    result = Result(
        name=f"{UPSERTS} upserts of {ROWS} rows",
        question="How much more than its files does a small commit cost?",
        rows=UPSERTS * ROWS,
        base="plain files",
        timings=timings,
        notes=f"{1 / each['upserts']:.0f} upserts a second, where the plain files of one take {each['plain files'] * 1000:.1f} ms. "
        f"Files of the last run: {len(made)}, of {sum(made):,} bytes.",
    )
    setting.add(result)
    setting.add_bar(result.bar(f"upserts of {ROWS} rows / plain files", "upserts", "plain files", 4.0, note=result.notes))


def _by_retained_snapshots(setting: Setting) -> None:
    few, many = 10, setting.scaled(10_000)
    workload = Workload("bigint", 1000, setting.seed)
    with setting.workspace("retained") as space:
        cases = []
        for snapshots in (few, many):
            table = ours.create(space, f"retained{snapshots}", workload, buckets=1, extra=RETAINING)
            _fill(table, workload, snapshots)
            cases.append(Case(f"{snapshots:,} snapshots", _upserts(table, workload, 1, [])))
        timings = setting.take_turns(cases)
    result = Result(
        name=f"{UPSERTS} upserts of one row by number of retained snapshots",
        question="Does the number of retained snapshots matter to a commit?",
        rows=UPSERTS,
        base=f"{few:,} snapshots",
        timings=timings,
    )
    setting.add(result)
    setting.add_bar(result.bar(f"upsert with {many:,} snapshots / with {few}", f"{many:,} snapshots", f"{few:,} snapshots", 1.2))


def _statements(setting: Setting) -> None:
    """Statements of one row by its key on DuckDB, in an environment that stays open, each in a table of its own.

    No text comes twice: each is parsed and bound."""
    workload = Workload("bigint", 1000, setting.seed)
    with setting.workspace("statements") as space:
        names = ("a", "u", "i", "p")
        tables = {name: ours.create(space, name, workload, buckets=1, extra={"write-only": "false"}) for name in names}
        rows = workload.table(workload.shuffled())
        for table in tables.values():
            table.upsert(rows)
        keys = rows.column("id").to_pylist()
        env = ts.TableEnvironment.create(warehouse=str(space), engine="duckdb")
        price, code = (_literal(rows.column(name)[0].as_py()) for name in ("price", "code"))
        quantities = count(1)

        def ten(run: Callable[[int], object]) -> Callable[[], Sample]:
            return lambda: stopwatch(lambda: [run(number) for number in range(UPSERTS)])[0]

        cases = [
            Case("table.upsert", ten(lambda number: tables["a"].upsert(rows.slice(number, 1)))),
            Case(
                "INSERT",
                ten(
                    lambda number: env.execute_sql(
                        f"INSERT INTO {ours.DATABASE}.i VALUES ({keys[number]}, {next(quantities)}, {price}, {code})"
                    )
                ),
            ),
            Case(
                "UPDATE",
                ten(
                    lambda number: env.execute_sql(
                        f"UPDATE {ours.DATABASE}.u SET quantity = quantity + {next(quantities)} WHERE id = {keys[number]}"
                    )
                ),
            ),
            Case(
                "table.update",
                ten(lambda number: tables["p"].update({"quantity": f"quantity + {next(quantities)}"}, f"id = {keys[number]}")),
            ),
        ]
        timings = setting.take_turns(cases)
        env.close()
    result = Result(
        name=f"{UPSERTS} statements of one row",
        question="How much more than an upsert of a row does a statement cost?",
        rows=UPSERTS,
        base="table.upsert",
        timings=timings,
    )
    setting.add(result)
    setting.add_bar(result.bar("INSERT of one row / table.upsert", "INSERT", "table.upsert", 1.3))
    setting.add_bar(result.bar("UPDATE of one row / table.upsert", "UPDATE", "table.upsert", 1.8))


def _refreshes(setting: Setting) -> None:
    """Refreshes from one changed row of the source, beside upserts of a row into a table with the same columns."""
    workload = Workload("bigint", 1000, setting.seed)
    with setting.workspace("refreshes") as space:
        source, like = (ours.create(space, name, workload, buckets=1, extra={"write-only": "false"}) for name in ("source", "like"))
        rows = workload.table(workload.shuffled())
        for table in (source, like):
            table.upsert(rows)
        env = ts.TableEnvironment.create(warehouse=str(space), engine="duckdb")
        others = ", ".join(name for name in rows.column_names if name not in ("id", "quantity"))
        env.execute_sql(
            f"CREATE MATERIALIZED TABLE {ours.DATABASE}.target (PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1') "
            f"REFRESH_MODE = FULL AS SELECT id, quantity + 1 AS quantity, {others} FROM {ours.DATABASE}.source WHERE price >= 0"
        )
        refresh = f"ALTER MATERIALIZED TABLE {ours.DATABASE}.target REFRESH"
        env.execute_sql(refresh)
        version = 1

        def refreshes() -> Sample:
            nonlocal version
            samples = []
            for number in range(UPSERTS):
                changed = workload.table(workload.shuffled()[number : number + 1], version=version)
                version += 1
                source.upsert(changed)
                samples.append(stopwatch(lambda: env.execute_sql(refresh))[0])
            return Sample(sum(sample.wall for sample in samples), sum(sample.cpu for sample in samples))

        upserts = Case("table.upsert", lambda: stopwatch(lambda: [like.upsert(rows.slice(n, 1)) for n in range(UPSERTS)])[0])
        timings = setting.take_turns([upserts, Case("REFRESH", refreshes)])
        env.close()
    result = Result(
        name=f"{UPSERTS} refreshes of one changed row",
        question="How much more than an upsert of a row does a refresh cost that writes one?",
        rows=UPSERTS,
        base="table.upsert",
        timings=timings,
    )
    setting.add(result)
    setting.add_bar(result.bar("REFRESH of one changed row / table.upsert", "REFRESH", "table.upsert", 1.6))


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else f"DATE '{value}'" if isinstance(value, date) else str(value)


def _upserts(table: ts.Table, workload: Workload, rows: int, made: list[int]) -> Callable[[], Sample]:
    """Upserts in a row; ``made`` then holds the sizes of the files that they made."""
    numbers = workload.shuffled()
    place = 0

    def attempt() -> Sample:
        nonlocal place
        parts = []
        for _ in range(UPSERTS):
            parts.append(workload.table(numbers[place : place + rows]))
            place = (place + rows) % (len(numbers) - rows)
        before = _files(table)
        sample = stopwatch(lambda: [table.upsert(part) for part in parts])[0]
        after = _files(table)
        # LATEST is written by every commit, under one name.
        commits = sum(name.startswith("snapshot-") for name in (Path(path).name for path in after.keys() - before.keys()))
        made[:] = [size for path, size in after.items() if path not in before] + [1] * commits
        return sample

    return attempt


def _files(table: ts.Table) -> dict[str, int]:
    return {
        entry.path: entry.stat().st_size for place in os.walk(table.location) for entry in os.scandir(place[0]) if entry.is_file()
    }


def _plain(directory: Path, sizes: list[int], *, directories: bool) -> Callable[[], Sample]:
    """Write files of these sizes, each synced, and (``directories``) its directory after it."""

    def write() -> None:
        for number, size in enumerate(sizes):
            descriptor = os.open(directory / str(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.write(descriptor, b"x" * size)
            os.fsync(descriptor)
            os.close(descriptor)
            if directories:
                descriptor = os.open(directory, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)

    def attempt() -> Sample:
        sample = stopwatch(write)[0]
        for path in directory.iterdir():
            path.unlink()
        return sample

    return attempt


def _fill(table: ts.Table, workload: Workload, snapshots: int) -> None:
    """Snapshots that changed nothing, up to so many, and then some real ones."""
    table.upsert(workload.table(workload.shuffled()[:1]))
    last = table.context.snapshots.latest()
    assert last is not None
    for snapshot_id in range(last.id + 1, snapshots):
        properties = {**last.properties, PARENT_PROPERTY: str(last.uuid)}
        last = replace(last, id=snapshot_id, uuid=f"filler-{snapshot_id}", properties=properties)
        (Path(table.location) / "snapshot" / f"snapshot-{snapshot_id}").write_bytes(encode_snapshot(last))
