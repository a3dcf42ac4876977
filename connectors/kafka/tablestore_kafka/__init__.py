"""Keeps the change log of a tablestore table in Kafka; tablestore finds it by the entry point group ``tablestore.log_stores``."""

import os
from collections.abc import Mapping

from tablestore_kafka.clientsettings import client_settings
from tablestore_kafka.logstore import KafkaLogStore

__all__ = ["KafkaLogStore", "open_log_store"]


def open_log_store(topic: str, properties: Mapping[str, str]) -> KafkaLogStore:
    """The log of a table: the client properties that the table sets, and what the environment adds (``TABLESTORE_KAFKA_…``).

    Raises InvalidInputError, as :func:`client_settings` does.
    """
    return KafkaLogStore(topic, client_settings(properties, os.environ, owner=f"the log of topic {topic}"))
