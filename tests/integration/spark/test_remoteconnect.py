"""A Spark Connect server that has no disk with its clients in common: tables lie in an object store."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tablestore.clock import SystemClock
from tests.integration.spark.program import run
from tests.support.s3 import FakeS3

pytestmark = [pytest.mark.spark, pytest.mark.deep]
CLOCK = SystemClock()
_STARTED = re.compile(r"Spark Connect server started at: \S*:(\d+)")


@contextmanager
def connect_server(folder: Path, hidden: Path) -> Iterator[str]:
    """The address of a server in a process of its own, for which the folder ``hidden`` is empty, if this machine can do that."""
    import pyspark

    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [submit, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    if can_hide():
        command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden), *command]
    env = {name: value for name, value in os.environ.items() if not name.startswith("SPARK") or name == "SPARK_SUBMIT_OPTS"}
    env |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    log = folder / "server.log"
    with log.open("wb") as said:
        server = subprocess.Popen(
            [*command, "spark-internal"], cwd=folder, env=env, stdout=said, stderr=said, start_new_session=True
        )
    try:
        deadline_s = CLOCK.steady_s() + 120
        while (started := _STARTED.search(log.read_text())) is None:
            assert server.poll() is None, log.read_text()[-4000:]
            assert CLOCK.steady_s() < deadline_s, log.read_text()[-4000:]
            CLOCK.sleep(0.1)
        yield f"sc://127.0.0.1:{started[1]}"
    finally:
        server.kill()
        server.wait()


def can_hide() -> bool:
    """True if a process here may have mounts of its own."""
    unshare = shutil.which("unshare")
    return unshare is not None and subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode == 0


def test_a_client_and_a_server_share_an_object_store_and_no_disk(tmp_path: Path) -> None:
    server_folder, client_folder = tmp_path / "server", tmp_path / "client"
    server_folder.mkdir()
    client_folder.mkdir()
    with FakeS3() as s3, connect_server(server_folder, client_folder) as address:
        arguments = (
            address,
            s3.make_bucket("remote"),
            json.dumps({name: s3.options[name] for name in ("key", "secret", "endpoint_url")}),
        )
        run("remoteconnect.py", client_folder, *arguments)
