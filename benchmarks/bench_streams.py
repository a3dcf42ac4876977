"""How fast does a stream in SQL follow a table, and how soon is a change of the source a row of the target? With DuckDB.

catch-up    INSERT INTO … SELECT of what is there, in streaming mode, next to the same INSERT in batch mode
latency     the source gets a commit of 100 rows now and then; from the stamp of its snapshot to that of the target's
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

import tablestore as ts
from benchmarks.measure import Case, Sample, WrongRows, stopwatch
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from tablestore.environment.jobs import Job
from tablestore.format.snapshot import Snapshot

ROWS, COMMITS, PART = 4_000_000, 40, 100
STREAM, BATCH = "a stream", "a batch"
QUERY = "SELECT id, v * 2 AS v, upper(t) AS t FROM facts WHERE v >= 100000"
KEPT = 100_000


def run(setting: Setting) -> None:
    """Both questions, for append tables and keyed ones."""
    for keyed in (False, True):
        with setting.workspace("streams") as space:
            _catch_up(setting, space, keyed=keyed)
            _latency(setting, space, keyed=keyed)


def _catch_up(setting: Setting, space: Path, *, keyed: bool) -> None:
    rows, kind, number = setting.scaled(ROWS), "keyed" if keyed else "append", count()
    with _environment(space / "catchup", keyed=keyed) as env:
        facts = _facts(np.arange(rows), setting.seed)
        kept = int((facts.column("v").to_numpy() >= KEPT).sum())
        _write(_table(env, "facts"), facts)

        def attempt(mode: str) -> Sample:
            name = f"target_{next(number)}"
            _make(env, name, keyed=keyed)
            env.execute_sql(f"SET 'execution.runtime-mode' = '{mode}'")
            sample, _ = stopwatch(lambda: _insert(env, name, kept))
            found = _table(env, name).scan().count()
            env.execute_sql(f"DROP TABLE {name}")
            if found != kept:
                raise WrongRows(f"expected {kept} rows, found {found}")
            return sample

        timings = setting.take_turns([Case(BATCH, lambda: attempt("batch")), Case(STREAM, lambda: attempt("streaming"))])
    setting.add(
        Result(
            name=f"DuckDB: a stream of {rows:,} rows into {kind} tables",
            question="How many rows of the source a second does a stream take that catches up, on one core?",
            rows=rows,
            base=BATCH,
            timings=timings,
        )
    )
    setting.add_bar(
        Bar(
            name=f"catch-up of a stream, {kind}",
            measured=rows / timings[STREAM].median,
            bound=500_000,
            unit="rows/s",
            at_least=True,
            note="rows of the source, one of ten filtered",
        )
    )


def _latency(setting: Setting, space: Path, *, keyed: bool) -> None:
    kind = "keyed" if keyed else "append"
    rng = np.random.default_rng(setting.seed)
    with _environment(space / "latency", keyed=keyed) as env:
        _make(env, "target", keyed=keyed)
        source, target = _table(env, "facts"), _table(env, "target")
        env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
        job = env.execute_sql(f"INSERT INTO target {QUERY}").job
        assert job is not None
        millis: list[int] = []
        rows = 0
        for turn in range((8 if setting.quick else COMMITS) + 1):
            time.sleep(float(rng.uniform(0.2, 1.0)))
            facts = _facts(np.arange(PART) + turn * PART, setting.seed + turn)
            rows += int((facts.column("v").to_numpy() >= KEPT).sum())
            landed = _write(source, facts)
            _until(lambda rows=rows: _first_with(target, rows) is not None, job)
            taken = _first_with(target, rows)
            assert landed is not None and taken is not None
            millis.append(taken - landed.time_millis)
        # The first one has the beginning of the stream in it.
        millis = millis[1:]
        job.cancel()
        job.wait()
    setting.add_bar(
        Bar(
            name=f"commit to commit, {kind}",
            measured=float(median(millis)),
            bound=100,
            unit="ms",
            note=f"p50 of {len(millis)} commits of {PART} rows, 0.2 to 1 s apart; the slowest took {max(millis)} ms",
        )
    )


@contextmanager
def _environment(warehouse: Path, *, keyed: bool) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(warehouse, engine="duckdb") as env:
        _make(env, "facts", keyed=keyed)
        yield env


def _make(env: ts.TableEnvironment, name: str, *, keyed: bool) -> None:
    key = ", PRIMARY KEY (id) NOT ENFORCED" if keyed else ""
    env.execute_sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, v BIGINT, t STRING{key})")


def _insert(env: ts.TableEnvironment, name: str, rows: int) -> None:
    job = env.execute_sql(f"INSERT INTO {name} {QUERY}").job
    if job is None:
        return
    table = _table(env, name)
    # The counts that its snapshots state: nothing is read.
    _until(lambda: (latest := table.context.snapshots.latest()) is not None and latest.total_record_count >= rows, job)
    job.cancel()
    job.wait()


def _until(holds: Callable[[], bool], job: Job[ts.Result]) -> None:
    while not holds():
        if job.wait(0.005):
            job.result()


def _facts(ids: "np.ndarray[tuple[int], np.dtype[np.int64]]", seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    texts = pa.array([f"text {place}" for place in range(1000)]).take(pa.array(rng.integers(0, 1000, len(ids))))
    return pa.table({"id": ids, "v": rng.integers(0, 1_000_000, len(ids)), "t": texts})


def _table(env: ts.TableEnvironment, name: str) -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


def _write(table: ts.Table, rows: pa.Table) -> Snapshot | None:
    return (table.upsert if table.primary_key else table.append)(rows)


def _first_with(table: ts.Table, rows: int) -> int | None:
    """The stamp of the first snapshot with so many rows: all keys differ."""
    return next((one.time_millis for one in table.refresh().snapshots() if one.total_record_count >= rows), None)
