"""Publishers stay open between commits, one per slot, for the tables of one catalog; a forked process begins without any."""

from pathlib import Path

import pytest

from tablestore.log.publish.publisher import PublishReport
from tablestore.log.publish.publishers import PublisherKey, Publishers
from tablestore.log.publish.slotlocks import SlotLocks

ORDERS: PublisherKey = ("/wh/orders", "uuid", "orders", 1, 0)
ITEMS: PublisherKey = ("/wh/items", "uuid", "items", 1, 0)


class Counted:
    """A publisher that knows whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def publish(self, *, look: bool = False) -> PublishReport:
        return PublishReport(slot=0, snapshot_id=1, records=0, transactions=0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def publishers(tmp_path: Path) -> Publishers:
    return Publishers(SlotLocks(tmp_path))


def used(publishers: Publishers, key: PublisherKey = ORDERS) -> Counted:
    with publishers.use(key, Counted) as publisher:
        assert isinstance(publisher, Counted)
        return publisher


def test_a_publisher_stays_open_for_the_next_commit(publishers: Publishers) -> None:
    first = used(publishers)
    assert used(publishers) is first and used(publishers, ITEMS) is not first and not first.closed


def test_a_publisher_that_fails_is_closed_and_made_anew(publishers: Publishers) -> None:
    first = used(publishers)
    with pytest.raises(KeyboardInterrupt), publishers.use(ORDERS, Counted):
        raise KeyboardInterrupt
    assert first.closed and used(publishers) is not first


def test_two_threads_have_a_publisher_each_and_one_of_them_is_kept(publishers: Publishers) -> None:
    with publishers.use(ORDERS, Counted) as outer:
        inner = used(publishers)
        assert inner is not outer
    assert inner.closed and used(publishers) is outer


def test_closing_a_table_leaves_the_others_open(publishers: Publishers) -> None:
    orders, items = used(publishers), used(publishers, ITEMS)
    publishers.close("/wh/orders")
    assert orders.closed and not items.closed
    publishers.close()
    assert items.closed and used(publishers) is not orders


def test_a_forked_process_neither_uses_nor_closes_what_its_parent_has_open(
    publishers: Publishers, monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = used(publishers)
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        own = used(publishers)
        publishers.close()
    assert own is not parents and own.closed and not parents.closed and used(publishers) is parents
