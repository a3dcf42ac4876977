"""What one Spark session in one process cannot show: executors of their own, Spark Connect, bad neighbours, drivers that die."""

import json
import os
import random
import signal
import subprocess
import sys
import venv
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.endurance import check_topic
from tests.integration.spark.program import run, start
from tests.table.creation.where import where_of

pytestmark = pytest.mark.spark


@pytest.mark.deep
def test_cluster_of_executor_processes(tmp_path: Path) -> None:
    run("cluster.py", tmp_path)


@pytest.mark.slow
@pytest.mark.kafka
def test_executor_that_is_killed_while_it_publishes(tmp_path: Path, broker: KafkaBroker) -> None:
    run("publish.py", tmp_path, TEST_BROKERS=broker.servers)
    check_topic(ts.open_table(str(tmp_path / "warehouse" / "shop.db" / "t")), broker.servers)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", "s3", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_tasks_that_die_at_any_step_leave_the_whole_atomic_table_or_nothing(
    kind: str, project: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])
    with where_of(kind, f"dying-tasks-{kind}", tmp_path, lambda: request.getfixturevalue("broker")) as where:
        # It looks itself at what each case leaves.
        run("ctas.py", tmp_path, PYTHONPATH=path, TEST_WHERE=json.dumps(where.as_json()))


@pytest.mark.slow
def test_spark_connect_beside_a_broken_package(tmp_path: Path) -> None:
    broken = tmp_path / "packages" / "pyspark_broken"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    # In the C locale a JVM names no file beyond ASCII.
    path = [str(broken.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    run("connect.py", tmp_path, PYTHONPATH=os.pathsep.join(path), LC_ALL="C")


@pytest.mark.slow
def test_driver_whose_python3_is_another_interpreter_registers_the_source_and_doctor_sees_it(tmp_path: Path) -> None:
    other = tmp_path / "other"
    venv.create(other, symlinks=True)
    path = os.pathsep.join([str(other / "bin"), os.environ["PATH"]])
    run("otherpython.py", tmp_path, PATH=path)
    env = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    command = [sys.executable, "-m", "tablestore", "doctor", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env={**env, "PATH": path}, capture_output=True, text=True, check=False)
    (found,) = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "PYSPARK_PYTHON"]
    assert (found["status"], found["detail"]) == ("warning", "not set, and python3 has no pyspark_tablestore")
    assert "register(spark)" in found["fix"]


@pytest.fixture
def fed(tmp_path: Path) -> ts.Table:
    """A table for the rows 0, 1 and 2 of a stream of three batches."""
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("d")
    (tmp_path / "feed").mkdir()
    for number in range(3):
        path = tmp_path / "feed" / f"{number}.parquet"
        pq.write_table(pa.table({"id": [number]}), path)
        os.utime(path, (number + 1, number + 1))
    return catalog.create_table("d.t", schema=pa.schema([("id", pa.int64())]), options={"write-only": "true"})


@pytest.mark.slow
def test_driver_that_is_killed_after_a_commit_goes_on_with_the_next_batch(tmp_path: Path, fed: ts.Table) -> None:
    for crash in (0, 1):
        run("streamcrash.py", tmp_path, ends=-signal.SIGKILL, CRASH_AT=str(crash))
        assert fed.snapshots()[-1].commit_identifier == crash
        assert not (tmp_path / "checkpoint" / "commits" / str(crash)).exists()
    run("streamcrash.py", tmp_path, CRASH_AT="-1")
    check_fed(fed)


@pytest.mark.slow
@pytest.mark.kafka
def test_driver_that_is_killed_while_tasks_publish_goes_on_with_what_is_left(tmp_path: Path, broker: KafkaBroker) -> None:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("d")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    options = {
        "bucket": "4",
        "tablestore.log.publisher-slots": "2",
        "log.kafka.bootstrap.servers": broker.servers,
        "log.kafka.topic": "published-by-a-stream",
        "write-only": "true",
    }
    table = catalog.create_table("d.t", schema=schema, primary_key=["id"], options=options)
    (tmp_path / "feed").mkdir()
    pq.write_table(pa.table({"id": range(2000), "v": [f"v{one}" for one in range(2000)]}), tmp_path / "feed" / "0.parquet")
    run("streampublish.py", tmp_path, ends=-signal.SIGKILL)
    assert (tmp_path / "killed").exists() and not (tmp_path / "checkpoint" / "commits" / "0").exists()
    assert [one.commit_identifier for one in table.snapshots()] == [0]
    run("streampublish.py", tmp_path)
    assert [one.commit_identifier for one in table.snapshots()] == [0]
    check_topic(table, broker.servers)


@pytest.mark.slow
def test_query_that_runs_twice_from_one_checkpoint_is_ended_where_it_began_first(tmp_path: Path, fed: ts.Table) -> None:
    os.mkfifo(tmp_path / "go")
    first = start("streamtwice.py", tmp_path, HOLD_AT="1")
    while not (tmp_path / "held").exists():
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"it ended: {first.communicate(timeout=0.1)[1][-6000:]}")
    run("streamtwice.py", tmp_path, HOLD_AT="-1")
    (tmp_path / "go").write_bytes(b"")
    _, said = first.communicate(timeout=600)
    assert first.returncode == 1 and "ConflictError: query" in said and "(kind newer-run)" in said, said[-6000:]
    check_fed(fed)
    assert len(list(Path(fed.location).rglob("*.parquet"))) == 3, "what the first one wrote last is gone"


@pytest.mark.slow
def test_source_whose_driver_is_killed_anywhere_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """While others write, delete, compact and expire, before, during and between its runs."""
    chance, kills = random.Random(5), 8
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("d")
    (tmp_path / "batches").mkdir()
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    # So that each change says whether its key was there.
    options = {"bucket": "2", "changelog-producer": "lookup"}
    table = catalog.create_table("d.t", schema=schema, primary_key=["id"], options=options)
    for kill in range(1, kills + 1):
        process, step = start("sourcecrash.py", tmp_path, SEED=str(kill)), 0
        while process.poll() is None:
            SystemClock().sleep(0.5)
            step += 1
            if step > 40:
                continue
            ids = chance.sample(range(60), 5)
            table.upsert([{"id": one, "v": f"{kill}-{step}"} for one in ids])
            if chance.random() < 0.5:
                table.delete(f"id = {ids[0]}")
            if chance.random() < 0.3:
                table.compact(full=chance.random() < 0.5)
            if chance.random() < 0.3:
                table.expire_snapshots(retain_min=1, retain_max=1)
        _, said = process.communicate()
        assert process.returncode == -signal.SIGKILL, said[-6000:]
    run("sourcecrash.py", tmp_path, SEED="0")
    files = sorted((tmp_path / "batches").glob("*.json"))
    assert [int(file.stem) for file in files] == list(range(len(files))) and len(files) > kills
    rows: dict[int, str] = {}
    for file in files:
        for kind, id, v in json.loads(file.read_text()):
            # An insert of a key that is there came twice, a change of one that is not was lost.
            assert (kind == "+I") == (id not in rows), (file.name, kind, id)
            rows.pop(id, None)
            if kind != "-D":
                rows[id] = v
    assert rows == {row["id"]: row["v"] for row in table.refresh().scan().to_arrow().to_pylist()}


def check_fed(table: ts.Table) -> None:
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert [one.commit_identifier for one in table.snapshots()] == [0, 1, 2]
