"""Kafka as the change log of a tablestore table."""

from tablestore_kafka.logstore import KafkaLogStore

__all__ = ["KafkaLogStore"]
