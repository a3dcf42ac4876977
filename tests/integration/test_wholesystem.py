"""docker-compose.yml without containers: its services of ours run as it says, beside a real PostgreSQL and a real Kafka."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.testing.kafka import KafkaBroker
from tests.integration.composefile import ContainerRun, container_run
from tests.integration.kafka.topics import messages
from tests.support.s3 import FakeS3
from tests.support.servers.postgres import PostgresServer, free_port

pytestmark = [pytest.mark.kafka, pytest.mark.deep]
LIMIT_S, PAUSE_S = 300.0, 0.5


def until(holds: Callable[[], Any], why_not: Callable[[], str]) -> Any:
    """What ``holds`` returns once that is true."""
    clock = SystemClock()
    deadline_s = clock.steady_s() + LIMIT_S
    while clock.steady_s() < deadline_s:
        if value := holds():
            return value
        clock.sleep(PAUSE_S)
    raise AssertionError(f"not within {LIMIT_S:.0f} s: {why_not()}")


class Laptop:
    """The machine of the reader of docs/guides/whole-system.md."""

    def __init__(self, project: Path, folder: Path, places: dict[str, str], port: int) -> None:
        self._project, self._folder, self.places = project, folder, places
        self.address = f"http://127.0.0.1:{port}"
        # Of what a container has from its image and from Docker.
        kept = ("PATH", "HOME", "PYTHONPATH", "XDG_CACHE_HOME")
        self._own = {name: os.environ[name] for name in kept if name in os.environ}
        self._own["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{self._own['PATH']}"

    @contextmanager
    def service(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """A service that has become healthy; it ends by SIGTERM, as `docker compose down` does it."""
        run = container_run(self._project / "docker-compose.yml", name).at(self.places)
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                run.argv, cwd=self._project, env={**self._own, **run.environment}, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            until(lambda: self._is_healthy(run, process, name), lambda: self.log(name))
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=90)

    def log(self, name: str) -> str:
        """What a service has printed."""
        return (self._folder / f"{name}.log").read_text()

    def _is_healthy(self, run: ContainerRun, process: subprocess.Popen[bytes], name: str) -> bool:
        assert process.poll() is None, self.log(name)
        done = subprocess.run(run.health, cwd=self._project, env={**self._own, **run.environment}, capture_output=True, check=False)
        return done.returncode == 0


@pytest.fixture
def laptop(project: Path, tmp_path: Path, postgres: PostgresServer, broker: KafkaBroker) -> Iterator[Laptop]:
    with psycopg.connect(postgres.make_database("laptop"), autocommit=True) as connection:
        connection.execute("CREATE ROLE tablestore LOGIN")
        connection.execute("CREATE DATABASE tablestore OWNER tablestore")
        host, database_port = connection.info.host, connection.info.port
    (tmp_path / "token").mkdir()
    with FakeS3() as s3:
        port = free_port()
        places = {
            "http://s3:7070": str(s3.options["endpoint_url"]),
            "postgres:5432": f"{host}:{database_port}",
            "kafka:19092": broker.servers,
            "catalog:8181": f"127.0.0.1:{port}",
            "8181": str(port),
            "/var/lib/tablestore": str(tmp_path / "token"),
            "/tmp/alive": str(tmp_path / "alive"),
        }
        yield Laptop(project, tmp_path, places, port)


def test_the_system_of_the_compose_file_serves_writes_publishes_and_refreshes(
    project: Path, tmp_path: Path, laptop: Laptop, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_file = tmp_path / "token" / "token"
    with ExitStack() as stack:
        stack.enter_context(laptop.service("catalog"))
        token = token_file.read_text().strip()
        bearer = {"Authorization": f"Bearer {token}"}
        assert token_file.stat().st_mode & 0o777 == 0o600
        pages = stack.enter_context(httpx2.Client(base_url=laptop.address, auth=("", token), timeout=LIMIT_S))
        assert httpx2.get(f"{laptop.address}/page").status_code == 401
        assert pages.get("/page").status_code == 200

        # The reader's own program on the machine, with the ports that the compose file publishes.
        store = container_run(project / "docker-compose.yml", "demo").environment
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
            monkeypatch.setenv(name, store[name])
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", laptop.places["http://s3:7070"])
        monkeypatch.setenv("TABLESTORE_KAFKA_BOOTSTRAP_SERVERS", broker.servers)
        catalog = ts.open_catalog({"metastore": "rest", "uri": laptop.address, "token": f"file:{token_file}"})

        with laptop.service("demo"):
            orders, sales = (catalog.table(f"shop.{name}") for name in ("orders", "sales"))
            topic = orders.options()["log.kafka.topic"]
            seen = sales.snapshots()[-1].id
            until(lambda: sales.snapshots()[-1].id > seen + 1, lambda: laptop.log("catalog"))

        assert 'href="/page/tables/shop/orders"' in pages.get("/page").text
        assert topic in pages.get("/page/tables/shop/orders/readers").text
        assert "sales" in pages.get("/page/graph").text

        # Nobody writes now: what is due is refreshed, and what landed is in the topic.
        with ts.TableEnvironment.create(catalog, engine="duckdb") as environment:
            query = "SELECT item, count(*) AS orders, sum(price) AS total FROM shop.orders WHERE state <> 'new' GROUP BY item"
            expected = sorted(map(str, environment.sql_query(query).to_arrow().to_pylist()))
        assert expected
        until(
            lambda: sorted(map(str, catalog.table("shop.sales").to_arrow().to_pylist())) == expected, lambda: laptop.log("catalog")
        )
        held: dict[int, Any] = {}
        for key, value in messages(broker.servers, topic):
            held[key["id"]] = None if value is None else value["after"]["state"]
        rows = catalog.table("shop.orders").to_arrow().to_pylist()
        assert {row["id"]: row["state"] for row in rows} == {id: state for id, state in held.items() if state is not None}

    # A service that starts again keeps its token.
    with laptop.service("catalog"):
        assert token_file.read_text().strip() == token
        assert httpx2.get(f"{laptop.address}/v1/warehouse/databases", headers=bearer, timeout=LIMIT_S).status_code == 200
