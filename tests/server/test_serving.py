"""``tablestore serve`` as a process: one line with its address, an end that loses nothing, and errors that say what to do."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

import tablestore as ts
from tablestore.server.serving import Listening, bound
from tests.support.served import ids_of, orders, rows
from tests.support.servers.catalogservice import CatalogService

pytestmark = pytest.mark.deep_after(4)


def serve(*args: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tablestore", "serve", *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_free_port_is_picked_and_said_in_one_line(tmp_path: Path) -> None:
    with serve("--warehouse", str(tmp_path / "my lake"), "--port", "0") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.fullmatch(rf"Serving {re.escape(str(tmp_path))}/my lake as my-lake at (http://127\.0\.0\.1:\d+)\n", line)
        assert match, line
        assert httpx2.get(f"{match[1]}/healthz").json() == {"alive": True}
        assert httpx2.get(f"{match[1]}/v1/config?warehouse=my-lake").json()["overrides"] == {"prefix": "my-lake"}
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=60)
        assert (process.returncode, rest) == (0, "")
        # One hint, and nothing of requests.
        assert errors.splitlines() == [
            "Whoever reaches it may do all, without a token; tablestore token create makes the first one."
        ]


def test_small_answers_are_sent_at_once() -> None:
    # asyncio sets TCP_NODELAY where a socket names its protocol; without it each answer waits 40 ms for an acknowledgement.
    with bound(Listening(port=0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_interrupted_service_ends_in_peace(tmp_path: Path) -> None:
    with serve("--warehouse", str(tmp_path), "--port", "0", "--name", "wh", "--json") as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert (said["warehouse"], said["location"]) == ("wh", str(tmp_path))
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        assert (process.returncode, rest) == (0, "")
        assert errors == ""


def test_an_address_that_is_in_use_is_one_message(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with serve("--warehouse", str(tmp_path), "--port", str(other.getsockname()[1])) as process:
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "cannot listen" in errors
    assert "--port 0" in errors
    assert "Traceback" not in errors


def test_the_scheduler_refreshes_inside_of_the_service_and_ends_with_it(tmp_path: Path) -> None:
    statements = (
        "CREATE TABLE t (id BIGINT)",
        "CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' SECOND AS SELECT count(*) AS n FROM t",
        "INSERT INTO t VALUES (1), (2)",
    )
    # In a process of its own, which refreshes the table as long as it lives.
    command = [sys.executable, "-m", "tablestore", "sql", "--warehouse", str(tmp_path / "wh"), "-e", "; ".join(statements)]
    subprocess.run(command, check=True, capture_output=True)
    with serve("--warehouse", str(tmp_path / "wh"), "--port", "0", "--with-scheduler", "--json") as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        refreshed, address = sorted(lines, key=lambda line: "address" in line)
        assert "address" in address and "default.m" in json.dumps(refreshed)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 0
    assert ts.open_catalog(str(tmp_path / "wh")).table("default.m").to_arrow().to_pylist() == [{"n": 2}]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.com", "::", ""])
def test_an_address_that_others_reach_is_refused(tmp_path: Path, host: str) -> None:
    with serve("--warehouse", str(tmp_path), "--port", "0", "--host", host) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "tablestore token create" in errors and "127.0.0.1" in errors and "Traceback" not in errors


def test_a_request_that_runs_ends_before_the_service_does(tmp_path: Path) -> None:
    with CatalogService(tmp_path / "wh") as service:
        table = orders(ts.open_catalog(str(service.warehouse)))
        url = f"{service.address}/v1/wh/databases/shop/tables/orders"
        table.upsert(rows(1))
        # Many snapshots, so that listing them takes a while.
        stop, answers = threading.Event(), list[int]()

        def ask() -> None:
            while not stop.is_set():
                try:
                    answers.append(httpx2.get(f"{url}/snapshots", timeout=30).status_code)
                except httpx2.TransportError:
                    return  # it listens no more

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(answers) < 20:
            pass
        assert service.end() == 0
        stop.set()
        for thread in threads:
            thread.join()
        assert set(answers) <= {200, 503}
        assert ids_of(table) == [1]
        service.start()
        assert httpx2.get(url).json()["name"] == "orders"
        assert "Traceback" not in service.log


def test_a_service_that_was_killed_goes_on_at_its_address(tmp_path: Path) -> None:
    with CatalogService(tmp_path / "wh") as service:
        address = service.address
        orders(ts.open_catalog(str(service.warehouse)))
        service.kill()
        service.start()
        assert service.address == address
        assert httpx2.get(f"{address}/v1/wh/databases/shop/tables").json()["tables"] == ["orders"]


def test_other_commands_load_nothing_of_the_service(tmp_path: Path) -> None:
    ours = "(name for name in sys.modules if name.startswith(('starlette', 'uvicorn')))"
    program = f"import sys, tablestore.cli.main, tablestore; print(*{ours})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == ""
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run([sys.executable, "-m", "tablestore", "serve"], capture_output=True, check=True, cwd=tmp_path)
