"""A stream whose process is killed at random, while its source changes, compacts, expires and gets columns: each change lands
once."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts

PROGRAM = Path(__file__).parent / "programs" / "streaming.py"
STEPS, KEYS = 5, 200


@contextmanager
def running(project: Path, warehouse: Path, engine: str, statement: str) -> Iterator[subprocess.Popen[str]]:
    """The stream in a process of its own, which is killed at the end."""
    path = os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(PROGRAM), str(warehouse), engine, statement]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        try:
            yield process
        finally:
            process.kill()


def steps(table: ts.Table, rng: random.Random, counter: Iterator[int], *, keyed: bool) -> None:
    """Some commits, and what maintenance does to them."""
    for _ in range(STEPS):
        numbers = [next(counter) for _ in range(rng.randrange(1, 50))]
        rows = {"id": [number % KEYS if keyed else number for number in numbers], "v": [f"v{number}" for number in numbers]}
        if keyed:
            kinds = ["-D" if rng.random() < 0.3 else "+I" for _ in numbers]
            table.write_changes(pa.table({"_row_kind": kinds, **rows}), missing_columns="null")
        else:
            with table.new_writer() as writer:
                writer.write(pa.table(rows), missing_columns="null")
                writer.commit()
        match rng.randrange(4):
            case 0:
                table.compact(full=True)
            case 1:
                table.expire_snapshots(retain_max=1, retain_min=1)
            case 2 if len(table.schema.names) < 6:
                table.alter(ts.AddColumn(f"c{len(table.schema.names)}", "INT"))


@pytest.mark.deep
@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
@pytest.mark.parametrize(
    ("engine", "kills"),
    [
        ("duckdb", 6),
        pytest.param("duckdb", 30, marks=pytest.mark.slow),
        pytest.param("spark", 30, marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_a_stream_that_is_killed_again_and_again_loses_and_doubles_nothing(
    project: Path, tmp_path: Path, engine: str, kills: int, keyed: bool
) -> None:
    seed = 7
    rng, warehouse = random.Random(seed), tmp_path / "wh"
    key = ", PRIMARY KEY (id) NOT ENFORCED" if keyed else ""
    with ts.TableEnvironment.create(warehouse, engine="duckdb") as env:
        env.execute_sql(f"CREATE TABLE s (id BIGINT, v STRING{key})")
        env.execute_sql(f"CREATE TABLE k (id BIGINT, v STRING{key})")
        source, target = env.catalog().table("default.s"), env.catalog().table("default.k")
        assert isinstance(source, ts.Table) and isinstance(target, ts.Table)
        query = "SELECT id, upper(v) AS v FROM s WHERE id % 5 <> 0"
        # What holds the source's snapshots for a stream of Spark's.
        follows = " /*+ OPTIONS('consumer-id' = 'k') */" if engine == "spark" else ""
        insert = f"INSERT INTO k {query.replace('FROM s', f'FROM s{follows}')}"
        counter = iter(range(10**9))
        for _ in range(kills):
            steps(source, rng, counter, keyed=keyed)
            with running(project, warehouse, engine, insert) as process:
                steps(source.refresh(), rng, counter, keyed=keyed)
                before = len(target.refresh().snapshots())
                # Spark takes its time until the first batch, so some of its processes are left alone until they have written one.
                patience = rng.randrange(200) if engine == "duckdb" or rng.random() < 0.3 else 10**9
                for _ in range(patience):
                    assert process.poll() is None, f"seed {seed}"
                    if len(target.refresh().snapshots()) > before + rng.randrange(3 if engine == "duckdb" else 1):
                        break
        expected = sorted(map(str, env.execute_sql(query).to_arrow().to_pylist()))
        with running(project, warehouse, engine, insert) as process:
            found: list[str] = []
            while found != expected:
                assert process.poll() is None, f"seed {seed}"
                found = sorted(map(str, target.refresh().to_arrow().to_pylist()))
                assert keyed or len(found) <= len(expected), f"doubled: seed {seed}"
            stream = [one.commit_identifier for one in target.snapshots() if (one.commit_user or "").startswith("stream:")]
        assert stream == sorted(set(stream)), f"seed {seed}"
