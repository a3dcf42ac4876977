"""The log store of the simulations keeps the contracts that the Kafka connector keeps: so what they find holds of any log."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

import tablestore as ts
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.contracts.following import SCHEMA, Following
from tablestore.testing.contracts.logstore import LogStoreContract
from tests.support.changelogs.memorylog import MemoryBroker, MemoryLogStore, memory_logs

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
        def make(*, keyed: bool = True, by_day: bool = False, **options: Any) -> ts.Table:
            catalog = ts.open_catalog(f"memory://{broker.address}")
            catalog.create_database("shop", ignore_if_exists=True)
            key = ["day", "id"] if by_day else ["id"]
            given = {**({"bucket": "1"} if keyed else {}), "write-only": "true", **options}
            return catalog.create_table(
                "shop.t",
                schema=SCHEMA,
                primary_key=key if keyed else (),
                partition_by=["day"] if by_day else (),
                options={**given, "log.kafka.bootstrap.servers": broker.address},
            )

        with memory_logs():
            yield make
        MemoryFileStore.forget(broker.address)
