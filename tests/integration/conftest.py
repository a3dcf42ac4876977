"""One real Kafka broker for all tests of a process. Tests that kill brokers start their own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablestore.testing.kafka import BrokerUnavailable, KafkaBroker, ensure_jars
from tests.support.services import require_service

FIX = "install a JDK 17 and Maven (on Debian: apt-get install openjdk-17-jdk-headless maven)"


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
