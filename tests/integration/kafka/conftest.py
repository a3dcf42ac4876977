"""One real Kafka broker for all tests of a process; every test has a topic of its own. Tests that kill brokers start their own."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tablestore_kafka import KafkaLogStore

from tablestore.testing.kafka import BrokerUnavailable, KafkaBroker, ensure_jars
from tablestore.testing.services import require_service

FIX = "install a JDK 17 and Maven (on Debian: apt-get install openjdk-17-jdk-headless maven)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def jars(project: Path) -> Path:
    try:
        return ensure_jars(project / ".cache")
    except BrokerUnavailable as error:
        require_service(str(error), FIX, env=os.environ)


@pytest.fixture(scope="session")
def broker(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(jars, tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def own_broker(jars: Path, tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker that the test may kill."""
    with KafkaBroker(jars, tmp_path / "kafka") as broker:
        yield broker


@pytest.fixture
def log_of(broker: KafkaBroker, request: pytest.FixtureRequest) -> Callable[..., KafkaLogStore]:
    """Makes the log of a topic named after the test."""
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)

    def make(partitions: int = 1, *, suffix: str = "") -> KafkaLogStore:
        log = KafkaLogStore(topic + suffix, {"bootstrap.servers": broker.servers})
        log.create(partitions=partitions, retention_ms=None, ignore_if_exists=True)
        return log

    return make
