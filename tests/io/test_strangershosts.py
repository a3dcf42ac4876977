"""A host that a stranger names, in a table, a path or an answer, is not asked, and gets no credential.

The attacks: who writes into a warehouse stores options and paths that name a host; a server answers with the address of another.
Every place where this package makes a client of a network is listed here, so that a new one is looked at before it is there.
"""

import ast
import json
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.errors import TablestoreError
from tablestore.ids import SystemIds
from tests.support.attacks.canary import CANARY
from tests.support.attacks.listener import Listener, listening
from tests.support.syntax import parsed

CREDENTIALS = {
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), CANARY),
    "AWS_DEFAULT_REGION": "eu-west-1",
}

# Clients of networks, and the modules that may make one: each takes its address from a program, its user or the environment.
NETWORK = {
    *("aiohttp", "asyncio", "boto3", "botocore", "confluent_kafka", "fsspec", "ftplib", "grpc", "http", "httpx", "mcp", "psycopg"),
    *("requests", "s3fs", "smtplib", "socket", "socketserver", "sqlalchemy", "ssl", "urllib3", "websockets", "xmlrpc"),
}
CLIENTS = frozenset(
    {
        "tablestore.io.fsspec_store",
        "tablestore.io.s3requests",
        # The service that a catalog of metastore = rest names; no redirect is followed.
        "tablestore.io.service.serviceclient",
        # STS of the store that the service was started with.
        "tablestore.server.protocol.s3tokens",
        # It listens, and calls nobody.
        "tablestore.server.serving",
        "tablestore.io.lock.databaseurl",
        "tablestore.cli.rows.rowsource",
        "tablestore.cli.commands.materialized.metricsendpoint",
        # The keys of an issuer, at the address that the service's operator names.
        "tablestore.server.access.oidc",
        # The time that a request may take; the files of TLS.
        "tablestore.server.http.requesttime",
        "tablestore.server.http.address",
        # The loop of requests: turns of commits, streams of events, what runs beside.
        "tablestore.server.application",
        "tablestore.server.committurns",
        "tablestore.server.eventstreams",
        # It speaks over standard input and output, to who started it.
        "tablestore.agents.mcpserver",
        # The loop of an awaited job.
        "tablestore.environment.jobs",
    }
)


def redirect(status: str, to: str, *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Location: http://{to}/x", *headers, "Content-Length: 0", "Connection: close")
    return "\r\n".join((*lines, "", "")).encode()


@pytest.mark.deep
def test_only_modules_that_are_known_make_clients_of_networks(project: Path) -> None:
    networked = set()
    for file in (project / "tablestore").rglob("*.py"):
        name = ".".join(file.relative_to(project).with_suffix("").parts)
        for node in ast.walk(parsed(file)):
            modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if NETWORK & {module.partition(".")[0] for module in modules} or "urllib.request" in modules:
                networked.add(name)
    assert {name for name in networked if not name.startswith("tablestore.testing.")} <= CLIENTS


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect", "400 Bad Request"]
)
def test_a_store_that_sends_its_client_elsewhere_is_not_followed(monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    s3requests = pytest.importorskip("tablestore.io.s3requests")
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with listening(Listener()) as elsewhere:
        answers = (
            redirect(status, elsewhere.address),
            redirect(status, elsewhere.address, "x-amz-bucket-region: us-east-1"),
            redirect(status, elsewhere.address, f"x-amz-bucket-region: x@{elsewhere.address}/#"),
        )
        for answer in answers:
            with listening(Listener(answer)) as store:
                options = {"endpoint_url": f"http://{store.address}"}
                session = s3requests.S3Session(options, clock=SystemClock(), ids=SystemIds())
                for ask in ({"method": "list_objects_v2"}, {"method": "head_object", "Key": "t/schema/schema-0"}):
                    with pytest.raises(s3requests.REMOTE_ERRORS):
                        session.send(**ask, Bucket="bucket")
                assert store.calls, "the store that was named is asked"
        assert not elsewhere.calls


def test_a_redirect_of_http_does_not_take_the_authorization_along() -> None:
    pytest.importorskip("aiohttp")
    pytest.importorskip("requests")
    bearer = {"Authorization": f"Bearer {CANARY}"}
    for options in ({"client_kwargs": {"headers": bearer}}, {"headers": bearer}):
        with listening(Listener()) as elsewhere, listening(Listener(redirect("302 Found", elsewhere.address))) as first:
            with pytest.raises(TablestoreError):
                ts.open_table(f"http://{first.address}/t", **options)
            assert CANARY.encode() in first.said
            assert CANARY.encode() not in elsewhere.said


@pytest.mark.parametrize(
    "options",
    [
        {"path": "s3://{host}/t"},
        {"file.path": "s3://{host}/t"},
        {"warehouse": "http://{host}/"},
        {"uri": "http://{host}"},
        {"endpoint_url": "http://{host}"},
        {"s3.endpoint": "http://{host}", "fs.s3a.endpoint": "http://{host}"},
        {"data-file.external-paths": "s3://{host}/x", "data-file.external-paths.strategy": "round-robin"},
        {"catalog.lock.type": "sql", "catalog.lock.location": "postgresql://{host}/db"},
        {"connector": "jdbc", "url": "jdbc:postgresql://{host}/db"},
        {"log.system": "kafka", "log.kafka.schema.registry.url": "http://{host}"},
        {"scan.fallback-branch": "http://{host}"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_no_option_of_a_table_names_a_host_that_its_reader_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", {"id": "int"})
    table.append([{"id": 1}])
    with listening(Listener()) as host:
        schema = Path(table.location) / "schema" / "schema-0"
        stored = json.loads(schema.read_text())
        stored["options"] |= {key: value.format(host=host.address) for key, value in options.items()}
        # Another engine's file: without our checksum.
        stored = {key: value for key, value in stored.items() if not key.startswith("tablestore.")}
        schema.write_text(json.dumps(stored))
        try:
            reader = ts.open_catalog(str(tmp_path / "warehouse")).table("shop.t")
            assert reader.scan().to_arrow().to_pylist() == [{"id": 1}]
            reader.append([{"id": 2}])
            list(reader.consume(scan="latest", follow=False))
        except TablestoreError:
            pass
        assert not host.calls


def test_a_path_names_no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with listening(Listener(redirect("403 Forbidden", "127.0.0.1:1"))) as ours, listening(Listener()) as host:
        for path in (
            f"s3://bucket/t?endpoint_url=http://{host.address}",
            f"s3://{host.address}/t",
            f"s3://bucket@{host.address}/t",
            f"s3://bucket/../{host.address}",
        ):
            with pytest.raises(TablestoreError):
                ts.open_table(path, endpoint_url=f"http://{ours.address}")
        assert not host.calls
