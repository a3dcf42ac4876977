"""The wheel on a standalone Spark cluster whose master and two workers never see the checkout: write, stream, compact, publish."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.endurance import check_topic
from tests.integration.spark.program import run

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def installed(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of Python with the wheel, beside the packages of other projects that this one has."""
    venv = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    command = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), "install", "--no-deps", "--no-index"]
    subprocess.run([*command, "--quiet", str(wheel_file)], check=True, capture_output=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    # A line of such a file is a folder to look into, whose own files of the kind (the editable checkout) do not count.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return venv


@pytest.fixture(scope="module")
def master(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as daemons:

        def start(name: str, daemon: str, *arguments: str) -> str:
            process = daemons.enter_context(running(folder / name, daemon, *arguments, python=installed))
            return address(process, folder / name)

        where = start("master", "master.Master", "--port", "0")
        for number in range(2):
            start(f"worker-{number}", "worker.Worker", "--cores", "1", "--memory", "1g", where)
        yield where


@contextmanager
def running(log: Path, daemon: str, *arguments: str, python: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A daemon of Spark's, which knows nothing of this process but where Python is."""
    import pyspark

    command = [Path(pyspark.__file__).parent / "bin" / "spark-class", f"org.apache.spark.deploy.{daemon}", "--host", "127.0.0.1"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("SPARK")}
    env |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_WORKER_DIR": str(log.parent), "PYSPARK_PYTHON": str(python / "bin" / "python")}
    with log.open("wb") as said:
        process = subprocess.Popen([*command, "--webui-port", "0", *arguments], cwd=log.parent, env=env, stderr=said)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """The address of the master, once a daemon says it."""
    while not (
        found := re.search(r"(?:Starting Spark master at|Successfully registered with master) (spark://\S+)", log.read_text())
    ):
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"it ended with {process.wait(timeout=0.1)}: {log.read_text()[-4000:]}")
    return found[1]


def test_cluster_with_the_wheel_writes_streams_compacts_and_reads(installed: Path, master: str, tmp_path: Path) -> None:
    run("cluster.py", tmp_path, python=installed, TEST_MASTER=master, TEST_INSTALLED=str(installed), TEST_KILL="1")


@pytest.mark.kafka
def test_cluster_with_the_wheel_publishes(installed: Path, master: str, tmp_path: Path, broker: KafkaBroker) -> None:
    run("publish.py", tmp_path, python=installed, TEST_MASTER=master, TEST_BROKERS=broker.servers)
    check_topic(ts.open_table(str(tmp_path / "warehouse" / "shop.db" / "t")), broker.servers)
