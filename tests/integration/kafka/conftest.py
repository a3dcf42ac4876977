"""All tests here need a Kafka broker; every test has a topic of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tablestore_kafka import KafkaLogStore

from tablestore.testing.kafka import KafkaBroker


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.kafka)


@pytest.fixture
def log_of(broker: KafkaBroker, request: pytest.FixtureRequest) -> Callable[..., KafkaLogStore]:
    """Makes the log of a topic named after the test."""
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)

    def make(partitions: int = 1, *, suffix: str = "") -> KafkaLogStore:
        log = KafkaLogStore(topic + suffix, {"bootstrap.servers": broker.servers})
        # The records of tests are of 1970: the broker's own retention would remove them whenever it looks.
        log.create(partitions=partitions, retention_ms=10**14, ignore_if_exists=True)
        return log

    return make
