"""The lives of a table over a log (``simulation/test_log_lives.py``), over topics."""

from dataclasses import dataclass

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tablestore.testing.kafka import KafkaBroker
from tablestore.testing.night.logplay import LogPlay


@dataclass
class Brokers:
    """The cluster of the session, which is never silent: that is asked of the log in memory."""

    address: str
    silent: bool = False

    def limit(self, name: str, record_bytes: int) -> None:
        entry = ConfigEntry("max.message.bytes", str(record_bytes), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.incremental_alter_configs([resource])[resource].result()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_to_a_table_its_topic_and_its_followers_are_right_or_say_why_not(seed: int, broker: KafkaBroker) -> None:
    LogPlay(seed, Brokers(broker.servers), topic=f"lives-{seed}").run()
