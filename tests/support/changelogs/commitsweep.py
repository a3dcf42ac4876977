"""Every file operation behind the link of a snapshot fails in turn, for a table whose log is not the file store.

The writer hears of its snapshot, and the next write, of a process whose publisher is open, leaves nothing undone.
"""

import itertools
from collections import Counter
from collections.abc import Callable

import pyarrow as pa

import tablestore as ts
from tablestore.clock import Clock
from tablestore.log.opening import ChangeLogs
from tablestore.store.context import open_context
from tablestore.store.postcommit import read_undone
from tablestore.testing.files import Faults, FaultyFileStore, FileCall
from tablestore.testing.holdings import Holdings

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
# Everything that goes by itself is due with each commit.
BUSY = {
    "num-sorted-run.compaction-trigger": "2",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "tag.automatic-creation": "process-time",
    "tag.creation-period": "hourly",
    "tag.num-retained-max": "1",
}


class Foreign(Exception):
    """An error of some library."""


def make_busy(catalog: ts.Catalog, **options: str) -> ts.Table:
    """The table ``shop.t``."""
    catalog.create_database("shop")
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"bucket": "1", **BUSY, **options})


def sweep(
    catalog: ts.Catalog, error: Callable[[str], Exception], *, step: int, first: int = 1, clock: Clock | None = None
) -> Counter[str]:
    """The first, and every ``step``-th operation behind it; how often each text was written, all of which the log has to hold."""
    table = _table(catalog)
    files, written, noted = table.context.files, Counter[str](), set[str]()

    def write(handle: ts.Table, text: str) -> object:
        written[text] += 1
        return handle.upsert(pa.table({"id": [1], "v": [text]}, schema=SCHEMA))

    write(table, "first")
    for n in itertools.count(first, step):
        faults, behind = failing(n, error)
        # With publishers of its own: an open one would go on with the files that it was opened with.
        logs = ChangeLogs()
        broken = ts.Table(open_context(FaultyFileStore(files, faults), clock=clock), "shop.t", logs)
        landed = write(broken, f"failing {n}")
        logs.close()
        failed = behind[n - 1] if len(behind) >= n else None
        assert isinstance(landed, ts.Snapshot), f"{failed} failed: it returned {landed}"
        assert table.scan().to_arrow()["v"].to_pylist() == [f"failing {n}"], f"{failed} failed"
        noted |= {one.task for one in read_undone(files)}
        write(_table(catalog), f"next {n}")
        undone = read_undone(files)
        assert undone == (), f"{failed} failed, and the next write left it undone: {[one.error for one in undone]}"
        assert Holdings(files).missing() == {}
        if failed is None:
            break
    assert n > 40 and {"compaction", "publish"} <= noted, f"{n} operations, notes of {noted}"
    return written


def failing(n: int, error: Callable[[str], Exception]) -> tuple[Faults, list[FileCall]]:
    """Faults that strike at the n-th call behind the first link of a snapshot; and all calls behind it."""
    faults, behind, linked = Faults(), list[FileCall](), False

    def look(call: FileCall) -> None:
        nonlocal linked
        linked = linked or (call.op == "publish_if_absent" and call.path.startswith("snapshot/snapshot-"))

    def strike(call: FileCall) -> None:
        if linked:
            behind.append(call)
            if len(behind) == n:
                raise error(f"{call.op} {call.path}")

    faults.before(strike)
    faults.after(look)
    return faults, behind


def _table(catalog: ts.Catalog) -> ts.Table:
    table = catalog.table("shop.t")
    assert isinstance(table, ts.Table)
    return table
