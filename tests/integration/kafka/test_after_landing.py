"""The sweep of ``simulation/test_after_landing.py`` for a table whose log is a topic.

Every file operation behind the link fails in turn. The writer hears of its snapshot, the next write leaves nothing undone, and the
topic holds each row once.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import StorageError
from tablestore.log.opening import ChangeLogs
from tablestore.store.context import open_context
from tablestore.store.followup import read_undone
from tablestore.testing.files import Call, Faults, FaultyFileStore
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import records
from tests.support.holdings import Holdings

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
# Everything that goes by itself is due with each commit.
BUSY = {
    "bucket": "1",
    "num-sorted-run.compaction-trigger": "2",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "tag.automatic-creation": "process-time",
    "tag.creation-period": "hourly",
    "tag.num-retained-max": "1",
}


class Foreign(Exception):
    """An error of some library."""


def failing(n: int, error: Callable[[str], Exception]) -> tuple[Faults, list[Call]]:
    """Faults that strike at the n-th call behind the first link of a snapshot; and all calls behind it."""
    faults, behind, linked = Faults(), list[Call](), False

    def look(call: Call) -> None:
        nonlocal linked
        linked = linked or (call.op == "publish_if_absent" and call.path.startswith("snapshot/snapshot-"))

    def strike(call: Call) -> None:
        if linked:
            behind.append(call)
            if len(behind) == n:
                raise error(f"{call.op} {call.path}")

    faults.before(strike)
    faults.after(look)
    return faults, behind


@pytest.mark.parametrize(
    ("error", "step"),
    [
        pytest.param(Foreign, 11, id="foreign errors, now and then"),
        pytest.param(Foreign, 1, id="foreign errors", marks=pytest.mark.slow),
        pytest.param(StorageError, 1, id="ours", marks=pytest.mark.slow),
    ],
)
def test_whatever_fails_behind_a_landed_commit_the_topic_has_each_row_once(
    tmp_path: Path, broker: KafkaBroker, request: pytest.FixtureRequest, error: Callable[[str], Exception], step: int
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)
    options = {**BUSY, "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": topic}
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)
    files, written, noted = table.context.files, Counter[str](), set[str]()

    def write(handle: ts.Table, text: str) -> object:
        written[text] += 1
        return handle.upsert(pa.table({"id": [1], "v": [text]}, schema=SCHEMA))

    write(table, "first")
    for n in itertools.count(1, step):
        faults, behind = failing(n, error)
        # With publishers of its own: an open one would go on with the files that it was opened with.
        logs = ChangeLogs()
        broken = ts.Table(open_context(FaultyFileStore(files, faults)), "shop.t", logs)
        landed = write(broken, f"failing {n}")
        logs.close()
        failed = behind[n - 1] if len(behind) >= n else None
        assert isinstance(landed, ts.Snapshot), f"{failed} failed: it returned {landed}"
        assert table.scan().to_arrow()["v"].to_pylist() == [f"failing {n}"], f"{failed} failed"
        noted |= {one.chore for one in read_undone(files)}
        write(catalog.table("shop.t"), f"next {n}")
        undone = read_undone(files)
        assert undone == (), f"{failed} failed, and the next write left it undone: {[one.error for one in undone]}"
        assert Holdings(files).missing() == {}
        if failed is None:
            break
    assert n > 40 and {"compaction", "publish"} <= noted, f"{n} operations, notes of {noted}"
    assert Counter(record[-1] for record in records(table)) == written


def test_an_open_publisher_goes_on_where_another_one_sent_snapshots_that_have_expired(tmp_path: Path, broker: KafkaBroker) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {**BUSY, "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": "two-publishers"}
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)
    others = ts.open_catalog(str(tmp_path))
    for number in range(6):
        handle = (catalog if number % 2 else others).table("shop.t")
        assert isinstance(handle, ts.Table)
        handle.upsert(pa.table({"id": [1], "v": [str(number)]}, schema=SCHEMA))
        assert read_undone(table.context.files) == (), f"write {number}"
    assert [record[-1] for record in records(table)] == [str(number) for number in range(6)]
    catalog.close()
    others.close()
