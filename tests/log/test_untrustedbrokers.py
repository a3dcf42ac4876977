"""Credentials of the environment go only to brokers that the environment, or the caller, names.

The attack: a table in a shared warehouse names a host of the attacker's as its brokers, and whoever reads it has credentials.
"""

import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError

pytest.importorskip("confluent_kafka")

from tablestore_kafka.clientsettings import client_settings

SECRETS = {
    "TABLESTORE_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "TABLESTORE_KAFKA_SASL_MECHANISM": "PLAIN",
    "TABLESTORE_KAFKA_SASL_USERNAME": "reader",
    "TABLESTORE_KAFKA_SASL_PASSWORD": "hunter2",
}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A host that waits for credentials."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


def has_caller(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except TimeoutError:
        return False
    return True


def test_a_table_does_not_have_credentials_sent_to_brokers_that_it_names(
    tmp_path: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    brokers = f"127.0.0.1:{listener.getsockname()[1]}"
    options = {"bucket": "1", "log.kafka.bootstrap.servers": brokers}
    with monkeypatch.context() as attack:
        attack.setattr("tablestore.log.publishedlog.PublishedLog.begin", lambda *_, **__: None)
        table = catalog.create_table("shop.t", pa.schema({"id": pa.int64()}), primary_key=["id"], options=options)
    catalog.close()
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    victim = ts.open_table(table.location)
    with pytest.raises(InvalidInputError, match="TABLESTORE_KAFKA_TRUSTED_BROKERS") as refused:
        list(victim.consume(scan="latest", follow=False))
    assert refused.value.kind == "untrusted-brokers" and brokers in str(refused.value) and "hunter2" not in str(refused.value)
    with pytest.raises(InvalidInputError, match="TABLESTORE_KAFKA_TRUSTED_BROKERS"):
        ts.open_catalog(str(tmp_path / "warehouse")).create_table(
            "shop.u", pa.schema({"id": pa.int64()}), primary_key=["id"], options=options
        )
    assert not has_caller(listener)


def settings(brokers: str, trusted: str = "", **more: bool) -> dict[str, str]:
    environ = SECRETS | ({"TABLESTORE_KAFKA_TRUSTED_BROKERS": trusted} if trusted else {})
    return client_settings({"bootstrap.servers": brokers}, environ, owner="table t", **more)


@pytest.mark.parametrize(
    ("brokers", "trusted"),
    [
        ("k1:9092,k2:9092", "k1,k2"),
        ("k1", "k1:9092"),
        ("K1:9093", "k1"),
        ("sasl_ssl://k1:9093", "k1:9093"),
        ("[::1]:9092", "[::1]"),
        ("10.0.0.1:9", "10.0.0.1"),
    ],
)
def test_brokers_are_trusted_by_host_or_by_host_and_port(brokers: str, trusted: str) -> None:
    assert settings(brokers, trusted)["sasl.password"] == "hunter2"
    assert "trusted.brokers" not in settings(brokers, trusted)


@pytest.mark.parametrize(
    ("brokers", "trusted"),
    [
        ("k1:9092,evil:9092", "k1"),
        ("k1:9093", "k1:9092"),
        ("k1.evil.example", "k1"),
        ("k1", ""),
        ("evil?k1", "k1"),
        ("evil:k1", "k1"),
    ],
)
def test_one_stranger_among_the_brokers_is_enough(brokers: str, trusted: str) -> None:
    with pytest.raises(InvalidInputError, match="names the brokers"):
        settings(brokers, trusted)


def test_brokers_of_the_environment_or_of_the_caller_are_trusted() -> None:
    environ = SECRETS | {"TABLESTORE_KAFKA_BOOTSTRAP_SERVERS": "ours:9092"}
    assert client_settings({"bootstrap.servers": "evil:9092"}, environ, owner="table t")["bootstrap.servers"] == "ours:9092"
    assert settings("mine:9092", named_by_caller=True)["sasl.password"] == "hunter2"


def test_without_credentials_any_broker_may_be_asked() -> None:
    environ = {"TABLESTORE_KAFKA_SOCKET_TIMEOUT_MS": "1000", "TABLESTORE_KAFKA_SSL_CA_LOCATION": "/etc/ca"}
    assert client_settings({"bootstrap.servers": "any"}, environ, owner="table t")["socket.timeout.ms"] == "1000"
