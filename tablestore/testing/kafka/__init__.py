"""A real Kafka broker on this machine, without containers, for tests, the demo and benchmarks."""

from tablestore.testing.kafka.artefacts import KAFKA_VERSION, BrokerUnavailable, ensure_jars
from tablestore.testing.kafka.broker import KafkaBroker

__all__ = ["KAFKA_VERSION", "BrokerUnavailable", "KafkaBroker", "ensure_jars"]
