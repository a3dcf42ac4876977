"""The log store of the simulations keeps the contracts that the Kafka connector keeps: so what they find holds of any log."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import pytest

import tablestore as ts
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.contracts.following import Following, make_table
from tablestore.testing.contracts.logstore import LogStoreContract
from tablestore.testing.memorylog import MemoryBroker, MemoryLogStore, memory_logs

NAMES = (f"contract-{number}" for number in count())


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    broker = MemoryBroker(next(NAMES))
    yield broker
    broker.close()


class TestMemory(LogStoreContract):
    @pytest.fixture
    def log_of(self, broker: MemoryBroker) -> Callable[..., MemoryLogStore]:
        def make(partitions: int = 1) -> MemoryLogStore:
            log = MemoryLogStore(broker, "contract")
            log.create(partitions=partitions, retention_ms=None, ignore_if_exists=True)
            return log

        return make


class TestMemoryFollowed(Following):
    @pytest.fixture
    def new_table(self, broker: MemoryBroker) -> Iterator[Callable[..., ts.Table]]:
        kafka = {"log.kafka.bootstrap.servers": broker.address}
        with memory_logs():
            yield partial(make_table, f"memory://{broker.address}", **kafka)
        MemoryFileStore.forget(broker.address)
