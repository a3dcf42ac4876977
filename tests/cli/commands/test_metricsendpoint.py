"""The port at which ``mt serve`` shows its figures: what strangers on the network get from it."""

import contextlib
import http.client
import socket
import struct
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Gauge

import tablestore as ts
from tablestore.cli.commands.materialized.metricsendpoint import MOST_CONNECTIONS, served_metrics

TEXT = b"# EOF\n"
EMPTY = CollectorRegistry()


def large() -> CollectorRegistry:
    """A registry whose text fills the buffers of a connection."""
    registry = CollectorRegistry()
    Gauge("large", "x" * 8_000_000, registry=registry)
    return registry


def get(port: int, path: str = "/metrics", host: str | None = None) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Host": host} if host is not None else {})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers


def test_metrics_are_served_at_a_port_of_the_machine() -> None:
    with served_metrics("127.0.0.1", 0, EMPTY) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.read() == TEXT
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        with pytest.raises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/")
        missing.value.close()
        with pytest.raises(ts.InvalidInputError, match="--metrics-port"), served_metrics("127.0.0.1", port, EMPTY):
            pass


def test_a_foreign_name_of_this_machine_is_refused() -> None:
    with served_metrics("127.0.0.1", 0, EMPTY) as port:
        assert [get(port, host=host)[0] for host in ("localhost", "LOCALHOST:1", f"127.0.0.1:{port}", "[::1]:80")] == [200] * 4
        assert [get(port, host=host)[0] for host in ("evil.example", "evil.example:80", "", "localhost.evil.example")] == [421] * 4


def test_the_header_server_names_no_version() -> None:
    with served_metrics("127.0.0.1", 0, EMPTY) as port:
        for path in ("/metrics", "/", "/%2e%2e/etc/passwd"):
            assert get(port, path)[2]["Server"] == "tablestore"


def test_a_client_that_says_nothing_is_hung_up_on() -> None:
    with (
        served_metrics("127.0.0.1", 0, EMPTY, silence_s=0.05) as port,
        socket.create_connection(("127.0.0.1", port)) as silent,
    ):
        silent.settimeout(30)
        assert silent.recv(1) == b""


def test_more_connections_than_the_bound_are_hung_up_on_and_the_rest_is_served_again() -> None:
    with served_metrics("127.0.0.1", 0, EMPTY) as port, contextlib.ExitStack() as opened:
        held = [opened.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(MOST_CONNECTIONS)]
        with socket.create_connection(("127.0.0.1", port)) as one_more:
            one_more.settimeout(30)
            assert one_more.recv(1) == b""
        held[0].sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        held[0].settimeout(30)
        assert held[0].recv(12) == b"HTTP/1.0 200"


def test_a_client_that_resets_its_connection_leaves_no_trace(capsys: pytest.CaptureFixture[str]) -> None:
    with served_metrics("127.0.0.1", 0, large()) as port:
        for _ in range(3):
            rude = socket.create_connection(("127.0.0.1", port))
            rude.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            rude.close()
        assert get(port)[0] == 200
    assert capsys.readouterr() == ("", "")


def test_the_format_is_openmetrics_unless_the_collector_asks_for_another() -> None:
    registry = CollectorRegistry()
    Gauge("rows", "Rows.", registry=registry).set(7)
    with served_metrics("127.0.0.1", 0, registry) as port:
        for accept, content_type in (
            ("text/plain", "text/plain"),
            ("application/openmetrics-text", "application/openmetrics-text"),
        ):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
            with urllib.request.urlopen(request) as answer:
                assert answer.headers["Content-Type"].startswith(content_type)
                assert b"rows 7.0\n" in answer.read()
