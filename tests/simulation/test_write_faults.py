"""The n-th file operation fails, for every n, of everything that writes: writes, deletes, compactions, alterations.

Expiry, clean, tags, branches and rollback are in ``test_retention_faults``; what must hold in ``tests.support.faultsweep``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import TablestoreError
from tablestore.io.local import LocalFileStore
from tablestore.table.table import Table
from tablestore.testing.auditor import walk
from tablestore.testing.files import Faults
from tablestore.testing.lab import Lab
from tests.support.faultsweep import Rows, Scene, Sweep

AUTO = {"write-only": "false", "num-sorted-run.compaction-trigger": "2"}
VECTORS = {"deletion-vectors.enabled": "true"}
LOOKUP = {"changelog-producer": "lookup"}
NUMBERS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64()), pa.field("s", pa.string())])


def writes(*commits: Rows) -> Callable[[Lab], None]:
    def build(lab: Lab) -> None:
        for rows in commits:
            lab.write_new(*rows)

    return build


def runs(lab: Lab) -> None:
    """An oldest run with a deleted row and two newer runs above it."""
    lab.write_new((0, "a"), (1, "a"), (2, "a"), (3, "a"))
    lab.open().compact(full=True)
    lab.write_new((1, "b"), (4, "b"))
    lab.open().delete("id = 2")


RUNS: Rows = [(0, "a"), (1, "b"), (3, "a"), (4, "b")]
MORE: Rows = [(0, "a"), (1, "new"), (3, "a"), (4, "b"), (5, "new")]


def upsert(lab: Lab, table: Table) -> object:
    return table.upsert(lab.rows((1, "new"), (5, "new")))


def compact(_: Lab, table: Table) -> object:
    return table.compact(full=True)


def retried(lab: Lab, table: Table) -> None:
    """A numbered commit, repeated by its job's next process if it failed."""
    for handle in (table, lab.open()):
        try:
            with handle.new_writer(commit_user="job") as writer:
                writer.write(lab.rows((7, "numbered")))
                writer.commit(identifier=8)
            return
        except TablestoreError:
            continue
    raise AssertionError("there was one fault only")


def numbered(lab: Lab) -> None:
    lab.write_new((0, "a"))
    with lab.open().new_writer(commit_user="job") as writer:
        writer.write(lab.rows((6, "numbered")))
        writer.commit(identifier=7)


def postponed(lab: Lab) -> None:
    """The golden table of another engine: two commits into the postponed bucket."""
    golden = LocalFileStore(Path(__file__).parent.parent / "golden" / "paimon" / "py_pk_postpone")
    lab.files.delete("schema/schema-0")
    for path in walk(golden):
        lab.files.write(path, golden.read(path))


def marked(lab: Lab) -> None:
    """Two small files, each with a deleted row."""
    lab.write_new((0, "a"), (1, "a"), (2, "a"))
    lab.write_new((3, "b"), (4, "b"), (5, "b"))
    lab.open().delete("id IN (1, 4)")


def settled(lab: Lab) -> None:
    """Two upper runs, in the older of which a row is marked."""
    lab.write_new(*[(i, "a") for i in range(4)])
    lab.open().compact(full=True)
    lab.write_new((1, "b"), (4, "b"))
    lab.open().delete("id = 2")


def sums(lab: Lab) -> Rows:
    """The rows of a table that adds up ``n`` and keeps the last ``s``: of all parts that are live."""
    last = lab.auditor.rows_by_key(("id",))
    names = [field.name for field in NUMBERS]
    total: dict[Any, int] = {}
    for file in lab.auditor.live_files():
        for row in lab.auditor._rows(file):
            total[row["id"]] = total.get(row["id"], 0) + row["n"]
    return sorted(tuple({**row, "n": total[row["id"]]}[name] for name in names) for row in last.values())


DEDUPLICATED = RUNS, MORE
APPENDED: Rows = [(0, "a"), (0, "b"), (1, "a"), (2, "b")]
MARKED: Rows = [(0, "a"), (2, "a"), (3, "b"), (5, "b")]
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "last_value"}

SCENES: dict[str, Scene] = {
    "append": Scene(
        keyed=False,
        build=writes([(0, "a")]),
        act=lambda lab, table: table.append(lab.rows((0, "a"), (1, "b"))),
        before=[(0, "a")],
        after=[(0, "a"), (0, "a"), (1, "b")],
    ),
    "append to partitions": Scene(
        keyed=False,
        partition_by=("v",),
        build=writes([(0, "a")]),
        act=lambda lab, table: table.append(lab.rows((0, "a"), (1, "b"), (2, "c"))),
        before=[(0, "a")],
        after=[(0, "a"), (0, "a"), (1, "b"), (2, "c")],
        audit=None,
    ),
    "numbered append, tried again": Scene(
        keyed=False,
        build=numbered,
        act=retried,
        before=[(0, "a"), (6, "numbered")],
        after=[(0, "a"), (6, "numbered"), (7, "numbered")],
    ),
    "upsert": Scene(options={"bucket": "2"}, build=runs, act=upsert, before=RUNS, after=MORE),
    "upsert, compact, expire": Scene(
        options={**AUTO, "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"},
        build=writes([(0, "a"), (1, "a"), (3, "a"), (4, "a")], [(1, "b"), (4, "b")]),
        act=upsert,
        before=RUNS,
        after=MORE,
    ),
    "upsert with the input producer": Scene(
        options={"changelog-producer": "input"}, build=runs, act=upsert, before=RUNS, after=MORE
    ),
    "upsert with the lookup producer": Scene(
        options={**AUTO, **LOOKUP}, build=runs, act=upsert, before=RUNS, after=MORE, follows_changes=True
    ),
    "upsert with the full-compaction producer": Scene(
        options={**AUTO, "changelog-producer": "full-compaction"},
        build=runs,
        act=upsert,
        before=RUNS,
        after=MORE,
        follows_changes=True,
    ),
    "upsert with vectors": Scene(options={**AUTO, **VECTORS}, build=settled, act=upsert, before=RUNS, after=MORE, settles=True),
    "upsert with vectors and lookup": Scene(
        options={**AUTO, **VECTORS, **LOOKUP},
        build=settled,
        act=upsert,
        before=RUNS,
        after=MORE,
        settles=True,
        follows_changes=True,
    ),
    "upsert, first row": Scene(
        options={**AUTO, "merge-engine": "first-row"},
        build=writes([(0, "a"), (1, "a")], [(4, "b")]),
        act=upsert,
        before=[(0, "a"), (1, "a"), (4, "b")],
        after=[(0, "a"), (1, "a"), (4, "b"), (5, "new")],
        settles=True,
    ),
    "upsert of sums": Scene(
        schema=NUMBERS,
        options={**AUTO, **SUM},
        build=writes([(0, 1, "a"), (1, 10, "a")], [(1, 20, "b")]),
        act=lambda lab, table: table.upsert(lab.rows((1, 300, "c"), (2, 5, "c"))),
        before=[(0, 1, "a"), (1, 30, "b")],
        after=[(0, 1, "a"), (1, 330, "c"), (2, 5, "c")],
        audit=sums,
        next_row=(1000, 1, "still writable"),
    ),
    "upsert of parts": Scene(
        schema=NUMBERS,
        options={**AUTO, "merge-engine": "partial-update"},
        build=writes([(0, 1, None), (1, 10, None)], [(1, None, "b")]),
        act=lambda lab, table: table.upsert(lab.rows((0, None, "c"), (2, 5, "c"))),
        before=[(0, 1, None), (1, 10, "b")],
        after=[(0, 1, "c"), (1, 10, "b"), (2, 5, "c")],
        audit=None,
        next_row=(1000, 1, "still writable"),
    ),
    "upsert with dynamic buckets": Scene(
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
        build=writes([(0, "a"), (1, "a"), (3, "a")], [(1, "b"), (4, "b")]),
        act=lambda lab, table: table.upsert(lab.rows((1, "new"), (5, "new"), (6, "new"), (7, "new"))),
        before=RUNS,
        after=[*MORE, (6, "new"), (7, "new")],
    ),
    "delete by key": Scene(
        build=runs, act=lambda lab, table: table.delete([{"id": 0}, {"id": 4}]), before=RUNS, after=[(1, "b"), (3, "a")]
    ),
    "delete by condition": Scene(build=runs, act=lambda _, table: table.delete("v = 'b'"), before=RUNS, after=[(0, "a"), (3, "a")]),
    "delete from files": Scene(
        keyed=False,
        build=writes([(0, "a"), (1, "a")], [(0, "b"), (2, "b")]),
        act=lambda _, table: table.delete("id = 0"),
        before=APPENDED,
        after=[(1, "a"), (2, "b")],
    ),
    "delete by marking": Scene(
        keyed=False,
        options=VECTORS,
        build=marked,
        act=lambda _, table: table.delete("id IN (2, 3, 5)"),
        before=MARKED,
        after=[(0, "a")],
    ),
    "delete with vectors": Scene(
        options={**AUTO, **VECTORS},
        build=settled,
        act=lambda _, table: table.delete("v = 'b'"),
        before=RUNS,
        after=[(0, "a"), (3, "a")],
        settles=True,
    ),
    "overwrite": Scene(build=runs, act=lambda lab, table: table.overwrite(lab.rows((9, "o")), {}), before=RUNS, after=[(9, "o")]),
    "compact": Scene(build=runs, act=compact, before=RUNS),
    "compact as far as it is due": Scene(
        options={"num-sorted-run.compaction-trigger": "3"}, build=runs, act=lambda _, table: table.compact(), before=RUNS
    ),
    "compact with the lookup producer": Scene(options=LOOKUP, build=runs, act=compact, before=RUNS, follows_changes=False),
    "compact with vectors": Scene(options={**AUTO, **VECTORS}, build=settled, act=compact, before=RUNS),
    "compact with dynamic buckets": Scene(
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
        build=writes([(0, "a"), (1, "a"), (3, "a")], [(1, "b"), (4, "b")]),
        act=compact,
        before=RUNS,
    ),
    "compact postponed buckets": Scene(
        build=postponed,
        act=lambda _, table: table.compact(),
        before=[],
        after=[(i, *((i, f"v{i}", i) if i != 2 else (22, "upd", 7))) for i in range(6)],
        audit=None,
        next_row=None,
    ),
    "compact small files": Scene(
        keyed=False, build=writes([(0, "a"), (1, "a")], [(0, "b"), (2, "b")]), act=compact, before=APPENDED
    ),
    "compact files with marks": Scene(keyed=False, options=VECTORS, build=marked, act=compact, before=MARKED),
    "rescale": Scene(
        build=runs, act=lambda _, table: table.rescale(2), before=RUNS, finish=lambda table: table.rescale(2), audit=None
    ),
    "add a column": Scene(build=runs, act=lambda _, table: table.alter(ts.AddColumn("w", "INT")), before=RUNS),
    "set an option": Scene(build=runs, act=lambda _, table: table.alter(ts.SetOption("file.compression", "none")), before=RUNS),
    "add a column and write": Scene(
        build=runs,
        act=lambda lab, table: table.alter(ts.AddColumn("w", "INT")).upsert(
            lab.rows((1, "new"), (5, "new")), missing_columns="null"
        ),
        before=RUNS,
        after=MORE,
    ),
}


# Long, and much like others: every third operation, unless there is time.
SAMPLED = frozenset(
    {
        "upsert with the lookup producer",
        "upsert with the full-compaction producer",
        "upsert with vectors and lookup",
        "upsert, first row",
        "upsert of sums",
        "upsert of parts",
        "delete with vectors",
    }
)


def fail(faults: Faults, n: int) -> None:
    faults.fail_nth(n)


@pytest.mark.deep
@pytest.mark.parametrize("name", SCENES)
def test_every_failing_operation_loses_nothing(name: str) -> None:
    assert Sweep(SCENES[name]).run(fail, step=3 if name in SAMPLED else 1) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAMPLED))
def test_really_every_failing_operation_loses_nothing(name: str) -> None:
    assert Sweep(SCENES[name]).run(fail) >= 5


def fail_afterwards(faults: Faults, n: int) -> None:
    faults.fail_nth(n, when="after")


def crash(faults: Faults, n: int) -> None:
    faults.crash_nth(n)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("arm", [fail_afterwards, crash])
def test_every_operation_that_is_applied_and_fails_or_is_the_last_loses_nothing(
    name: str, arm: Callable[[Faults, int], None]
) -> None:
    assert Sweep(SCENES[name]).run(arm) >= 5
