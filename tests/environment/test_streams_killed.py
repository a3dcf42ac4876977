"""Streams whose process is killed at random, while their sources change, compact, expire and get columns: each change lands once.

Several streams run in one process, so that one kill is one of each of them, wherever it is: a Spark takes its time to start.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts

PROGRAM = Path(__file__).parent / "programs" / "streaming.py"
STEPS, KEYS, SEED = 5, 200, 7


@dataclass(frozen=True)
class Source:
    """A table that is followed, and the numbers of its streams."""

    table: ts.Table
    name: str
    keyed: bool
    streams: Sequence[int]

    def query(self, number: int, hint: str = "") -> str:
        """The query of a stream; each leaves out other rows."""
        return f"SELECT id, upper(v) AS v FROM {self.name}{hint} WHERE id % 5 <> {number % 5}"

    def target(self, number: int) -> str:
        return f"{self.name}_{number}"


@contextmanager
def running(project: Path, warehouse: Path, engine: str, statements: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """The streams in a process of their own, which is killed at the end."""
    path = os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(PROGRAM), str(warehouse), engine, *statements]
    said = warehouse.parent / "said"
    with (
        said.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, "PYTHONPATH": path}
        ) as process,
    ):
        assert process.stdout is not None
        if process.stdout.readline() != "begun\n":
            process.wait()
            check_alive(process, warehouse)
        try:
            yield process
        finally:
            process.kill()


def check_alive(process: subprocess.Popen[str], warehouse: Path) -> bool:
    """True if it runs. One that Spark gave up, whose workers had no time to start, was killed too; any other end is an error."""
    if process.poll() is None:
        return True
    said = (warehouse.parent / "said").read_text()
    assert "failed to connect back" in said, f"seed {SEED}: {said[-4000:]}"
    return False


def steps(source: Source, rng: random.Random, counter: Iterator[int], count: int = STEPS) -> None:
    """Some commits, and what maintenance does to them."""
    table, keyed = source.table.refresh(), source.keyed
    for _ in range(count):
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


def table_of(env: ts.TableEnvironment, name: str) -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


def rows_of(env: ts.TableEnvironment, query: str) -> list[str]:
    return sorted(map(str, env.execute_sql(query).to_arrow().to_pylist()))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("engine", "kills", "streams"),
    [
        ("duckdb", 6, 1),
        pytest.param("duckdb", 30, 2, marks=pytest.mark.slow),
        pytest.param("spark", 15, 1, marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_streams_that_are_killed_again_and_again_lose_and_double_nothing(
    project: Path, tmp_path: Path, engine: str, kills: int, streams: int
) -> None:
    """``streams``: of each of two sources."""
    rng, warehouse = random.Random(SEED), tmp_path / "wh"
    with ts.TableEnvironment.create(warehouse, engine="duckdb") as env:
        sources = []
        for name, key in (("a", ""), ("k", ", PRIMARY KEY (id) NOT ENFORCED")):
            env.execute_sql(f"CREATE TABLE {name} (id BIGINT, v STRING{key})")
            source = Source(table=table_of(env, name), name=name, keyed=bool(key), streams=range(streams))
            for number in source.streams:
                env.execute_sql(f"CREATE TABLE {source.target(number)} (id BIGINT, v STRING{key})")
            sources.append(source)
        each = [(source, number) for source in sources for number in source.streams]
        targets = [table_of(env, source.target(number)) for source, number in each]
        inserts = []
        for source, number in each:
            # What holds the source's snapshots for a stream of Spark's.
            hint = f" /*+ OPTIONS('consumer-id' = 'c{number}') */" if engine == "spark" else ""
            inserts.append(f"INSERT INTO {source.target(number)} {source.query(number, hint)}")

        def landed() -> int:
            return sum(len(target.refresh().snapshots()) for target in targets)

        counter = iter(range(10**9))
        for _ in range(kills):
            for source in sources:
                steps(source, rng, counter)
            with running(project, warehouse, engine, inserts) as process:
                for source in sources:
                    steps(source, rng, counter)
                # Spark takes its time until the first batch, so some of its processes are left alone until they have written some.
                patience = rng.randrange(200) if engine == "duckdb" or rng.random() < 0.3 else 10**9
                wanted = landed() + rng.randrange(3 * len(each))
                for _ in range(patience):
                    if landed() > wanted or not check_alive(process, warehouse):
                        break
                    if engine == "spark":
                        # A batch takes all that is there: without more there are no more commits to wait for.
                        for source in sources:
                            steps(source, rng, counter, count=1)
        expected = [rows_of(env, source.query(number)) for source, number in each]
        held: list[list[str]] = []
        while held != expected:
            with running(project, warehouse, engine, inserts) as process:
                while held != expected and check_alive(process, warehouse):
                    held = [sorted(map(str, target.refresh().to_arrow().to_pylist())) for target in targets]
                    for (source, _), rows, wanted_rows in zip(each, held, expected, strict=True):
                        assert source.keyed or len(rows) <= len(wanted_rows), f"doubled: seed {SEED}"
        for target in targets:
            stream = [one.commit_identifier for one in target.snapshots() if (one.commit_user or "").startswith("stream:")]
            assert stream == sorted(set(stream)), f"seed {SEED}"
