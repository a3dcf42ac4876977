"""The sweep of ``test_after_landing`` for a table whose log is not the file store. Over Kafka it runs in integration/kafka."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import tablestore as ts
from tablestore.errors import StorageError
from tablestore.io.memory import MemoryFileStore
from tablestore.log.publish.publisher import LogPublisher
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.memorylog import MemoryBroker, memory_logs
from tests.support.changelogs.commitsweep import Foreign, make_busy, sweep


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    broker = MemoryBroker("after-landing-logs")
    with memory_logs():
        yield broker
    broker.close()
    MemoryFileStore.forget(broker.address)


def run(broker: MemoryBroker, error: Callable[[str], Exception], *, step: int, first: int = 1) -> None:
    clock = ManualClock()
    catalog = ts.open_catalog(f"memory://{broker.address}", clock=clock)
    make_busy(catalog, **{"log.kafka.bootstrap.servers": broker.address, "log.kafka.topic": "log"})
    written = sweep(catalog, error, step=step, first=first, clock=clock)
    assert Counter(row["v"] for row in broker.rows("log")) == written
    catalog.close()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("error", "step"),
    [
        pytest.param(Foreign, 5, id="foreign errors, now and then"),
        pytest.param(StorageError, 7, id="ours, now and then"),
        pytest.param(Foreign, 1, id="foreign errors", marks=pytest.mark.slow),
        pytest.param(StorageError, 1, id="ours", marks=pytest.mark.slow),
    ],
)
def test_whatever_fails_behind_a_landed_commit_the_log_has_each_row_once(
    broker: MemoryBroker, error: Callable[[str], Exception], step: int
) -> None:
    run(broker, error, step=step)


def test_a_publisher_that_takes_what_expires_for_what_is_still_to_be_sent_is_caught(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogPublisher, "_pending", lambda self, upto, latest: _unguarded(self, upto, latest))
    with pytest.raises(AssertionError, match="is gone"):
        run(broker, Foreign, step=9, first=100)


def _unguarded(publisher: LogPublisher, upto: int, latest: ts.Snapshot) -> Iterator[object]:
    for snapshot_id in range(publisher.done + 1, upto + 1):
        yield from publisher._changes(snapshot_id, latest)
