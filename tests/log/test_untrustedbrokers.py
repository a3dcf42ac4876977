"""Credentials of the environment go only to brokers that the environment, or the caller, names.

The attack: a table in a shared warehouse names a host of the attacker's as its brokers, and whoever reads it has credentials.
"""

import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError

pytest.importorskip("confluent_kafka")

from tablestore_kafka.clientsettings import client_settings

from tests.support.attacks.listener import Listener, listening

SECRETS = {
    "TABLESTORE_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "TABLESTORE_KAFKA_SASL_MECHANISM": "PLAIN",
    "TABLESTORE_KAFKA_SASL_USERNAME": "reader",
    "TABLESTORE_KAFKA_SASL_PASSWORD": "hunter2",
}


# Addresses that a check may read as k1:9092, and the client of Kafka as the host in them, or as a host without a name.
DISGUISES = (
    "sasl_plaintext://{host}/://k1:9092",
    "SASL_PLAINTEXT://{host}/k1:9092",
    "plaintext://{host}/,k1:9092",
    "{host}/://k1:9092",
    "{host}/k1:9092",
    "sasl_plaintext://{host}?://k1:9092",
    "sasl_plaintext://{host}#k1:9092",
    "{host}@k1:9092",
    "k1:9092@{host}",
    "{host} k1:9092",
    "{host}\tk1:9092",
    "{host}\n,k1:9092",
    "{host}\0k1:9092",
    "://k1:9092,{host}",
    "sasl_plaintext://sasl_plaintext://{host}",
    "k1://{host}",
    "://{host}",
    ":{port}",
    "k1:9092,:{port}",
)


class Broker(Listener):
    """A host that says it is a broker of Kafka, as far as clients need to send it a password in clear text."""

    _KNOWN = ((18, 3), (17, 1), (36, 1), (3, 9), (0, 8), (1, 11))

    def _talk(self, caller: socket.socket) -> None:
        stream = caller.makefile("rb")
        while size := stream.read(4):
            request = stream.read(int.from_bytes(size))
            self.calls[-1] += request
            match int.from_bytes(request[:2]):
                case 18:
                    known = b"".join(struct.pack(">hhhb", key, 0, newest, 0) for key, newest in self._KNOWN)
                    body = bytes([0, 0, len(self._KNOWN) + 1]) + known + bytes(5)
                case 17:
                    body = struct.pack(">hih", 0, 1, 5) + b"PLAIN"
                case _:
                    return
            answer = request[4:8] + body
            caller.sendall(len(answer).to_bytes(4) + answer)


@pytest.fixture
def listener() -> Iterator[Broker]:
    """A host that waits for credentials."""
    with listening(Broker()) as broker:
        assert isinstance(broker, Broker)
        yield broker


def stored_table(folder: Path, brokers: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table with these brokers, by somebody who writes its files without this package."""
    catalog = ts.open_catalog(str(folder / "warehouse"))
    catalog.create_database("shop")
    with monkeypatch.context() as attack:
        attack.setattr("tablestore.log.publishedlog.PublishedLog.begin", lambda *_, **__: None)
        options = {"bucket": "1", "log.kafka.bootstrap.servers": "k1:9092"}
        location = catalog.create_table("shop.t", pa.schema({"id": pa.int64()}), primary_key=["id"], options=options).location
    catalog.close()
    schema = Path(location) / "schema" / "schema-0"
    # Without our checksum, as other engines store it.
    content = {key: value for key, value in json.loads(schema.read_text()).items() if not key.startswith("tablestore.")}
    content["options"]["log.kafka.bootstrap.servers"] = brokers
    schema.write_text(json.dumps(content))
    return location


def test_a_table_does_not_have_credentials_sent_to_brokers_that_it_names(
    tmp_path: Path, listener: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = listener.address
    location = stored_table(tmp_path, brokers, monkeypatch)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    victim = ts.open_table(location)
    with pytest.raises(InvalidInputError, match="TABLESTORE_KAFKA_TRUSTED_BROKERS") as refused:
        list(victim.consume(scan="latest", follow=False))
    assert refused.value.kind == "untrusted-brokers" and brokers in str(refused.value) and "hunter2" not in str(refused.value)
    with pytest.raises(InvalidInputError, match="TABLESTORE_KAFKA_TRUSTED_BROKERS"):
        ts.open_catalog(str(tmp_path / "warehouse")).create_table(
            "shop.u",
            pa.schema({"id": pa.int64()}),
            primary_key=["id"],
            options={"bucket": "1", "log.kafka.bootstrap.servers": brokers},
        )
    assert not listener.calls


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_table_does_not_disguise_its_brokers_as_trusted_ones(
    tmp_path: Path, listener: Broker, monkeypatch: pytest.MonkeyPatch, disguise: str
) -> None:
    brokers = disguise.format(host=listener.address, port=listener.address.rpartition(":")[2])
    location = stored_table(tmp_path, brokers, monkeypatch)
    trusted = ",".join(("k1:9092", "k1", "sasl_plaintext://k1:9092"))
    for name, value in (SECRETS | {"TABLESTORE_KAFKA_TRUSTED_BROKERS": trusted}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInputError, match="no broker was asked") as refused:
        list(ts.open_table(location).consume(scan="latest", follow=False))
    assert refused.value.kind in ("invalid-option", "untrusted-brokers")
    assert not listener.calls


@pytest.mark.parametrize("disguise", DISGUISES)
def test_what_is_no_list_of_brokers_is_not_stored(tmp_path: Path, disguise: str) -> None:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    brokers = {"log.kafka.bootstrap.servers": disguise.format(host="127.0.0.1:9", port=9)}
    with pytest.raises(InvalidInputError, match="expected brokers such as") as refused:
        catalog.create_table("shop.t", {"id": "int"}, options={"log.system": "filestore", **brokers})
    assert refused.value.kind == "invalid-option"
    table = catalog.create_table("shop.t", {"id": "int"})
    with pytest.raises(InvalidInputError, match="expected brokers such as"):
        table.alter(ts.SetOption("log.kafka.bootstrap.servers", brokers["log.kafka.bootstrap.servers"]))


def test_a_table_whose_brokers_are_no_addresses_is_read_and_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ts.open_table(stored_table(tmp_path, "sasl_plaintext://evil/://k1:9092", monkeypatch))
    assert table.scan().count() == 0
    table.alter(ts.SetOption("log.system", "filestore"))
    table.alter(ts.RemoveOption("log.kafka.bootstrap.servers"))
    assert "log.kafka.bootstrap.servers" not in table.refresh().options()


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
        (" k1 , k2:9092 ,", "k2, k1"),
        ("SSL://[2001:DB8::1]", "[2001:db8::1]:9092"),
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
        ("k1:9092,[::1]", "k1,[::2]"),
        ("k1", "k1:9093"),
        ("\u212a1", "k1"),
    ],
)
def test_one_stranger_among_the_brokers_is_enough(brokers: str, trusted: str) -> None:
    with pytest.raises(InvalidInputError, match=r"names the brokers|expected brokers"):
        settings(brokers, trusted)


def test_the_client_is_given_what_was_checked() -> None:
    assert settings(" k1 ,,sasl_plaintext://k2:9093 ", "k1,k2")["bootstrap.servers"] == "k1,sasl_plaintext://k2:9093"


def test_trusted_brokers_that_are_no_addresses_trust_nobody() -> None:
    with pytest.raises(InvalidInputError, match="TABLESTORE_KAFKA_TRUSTED_BROKERS: expected brokers"):
        settings("k1:9092", "k1:9092,*")


def test_brokers_of_the_environment_or_of_the_caller_are_trusted() -> None:
    environ = SECRETS | {"TABLESTORE_KAFKA_BOOTSTRAP_SERVERS": "ours:9092"}
    assert client_settings({"bootstrap.servers": "evil:9092"}, environ, owner="table t")["bootstrap.servers"] == "ours:9092"
    assert settings("mine:9092", named_by_caller=True)["sasl.password"] == "hunter2"


def test_without_credentials_any_broker_may_be_asked() -> None:
    environ = {"TABLESTORE_KAFKA_SOCKET_TIMEOUT_MS": "1000", "TABLESTORE_KAFKA_SSL_CA_LOCATION": "/etc/ca"}
    assert client_settings({"bootstrap.servers": "any"}, environ, owner="table t")["socket.timeout.ms"] == "1000"
