"""What a write by an open handle costs besides writing its rows, as counts: no clock is asked."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tablestore.errors import NotFoundError
from tablestore.format import limits, schemafile, snapshot
from tablestore.format.manifest import avro
from tablestore.format.snapshot import encode_snapshot
from tablestore.io import local
from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.options import Option, TableOptions
from tablestore.store.snapshots import PARENT_PROPERTY
from tablestore.testing.files import Faults
from tablestore.testing.lab import Lab

_NAMES = count()
NEVER_COMPACTED = {
    "write-only": "false",
    "num-sorted-run.compaction-trigger": "1000",
    "compaction.min.file-num": "1000",
}
EVERYTHING = {
    "write-only": "false",
    "num-sorted-run.compaction-trigger": "3",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "4",
    "tag.automatic-creation": "process-time",
}


@pytest.mark.parametrize("keyed", [True, False])
def test_a_handle_parses_its_options_once(keyed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(MemoryFileStore(f"commit-cost-{next(_NAMES)}"), keyed=keyed, options=EVERYTHING)
    table = lab.open()
    asked: list[str] = []
    value = TableOptions.value

    def counted(self: TableOptions, option: Option) -> object:
        asked.append(option.key)
        return value(self, option)

    # As many commits as it takes to compact, to tag and to expire.
    for number in range(6):
        lab.write(table, (number, "first"))
    monkeypatch.setattr(TableOptions, "value", counted)
    lab.open()
    assert asked, "opening a table asks for its options"
    asked.clear()
    for number in range(6):
        lab.write(table, (number, "again"))
    assert sorted(set(asked)) == []


def test_a_handle_does_not_understand_again_what_it_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(MemoryFileStore(f"commit-cost-{next(_NAMES)}"), options=NEVER_COMPACTED)
    understood: list[str] = []
    parse = limits.parse_json_bounded

    def counted(data: bytes, name: str, *rest: limits.Limits) -> object:
        understood.append(name)
        return parse(data, name, *rest)

    for module in (avro, schemafile, snapshot):
        monkeypatch.setattr(module, "parse_json_bounded", counted)
    table = lab.open()
    lab.write(table, (1, "first"))
    lab.write(table, (1, "second"))
    assert understood, "opening a table reads its schema"
    understood.clear()
    for number in range(3):
        lab.write(table, (1, f"again {number}"))
    assert understood == [], "its own snapshots and the schema that it knows, read again, hold the same bytes"


def test_a_snapshot_that_is_listed_and_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    lab = Lab(LocalFileStore(tmp_path))
    lab.write_new((1, "a"))
    (tmp_path / "snapshot" / "snapshot-2").symlink_to(tmp_path / "nowhere")
    with pytest.raises(NotFoundError, match="no snapshot 2"):
        lab.open().scan()


# what it asks of the store

# What a handle asks that has done the same before. Who makes a number grow says why.
EXACTLY: dict[str, dict[str, int]] = {
    # One read of each is to look whether there is a newer schema.
    # The newest snapshot is looked for when the writer begins and in the round, three reads each; the snapshot is settled with
    # three more; the newest schema is read again. Written are a data file, a manifest, two lists, the snapshot and LATEST.
    "an upsert of two rows": {"reads": 11, "listings": 2, "writes": 6, "syncs": 2, "fsyncs": 8},
    # Seven reads for the round of the compaction, which is planned on the snapshot that has just landed.
    "an upsert of two rows that compacts five runs": {
        "reads": 18,
        "listings": 3,
        "data files read": 5,
        "writes": 12,
        "syncs": 4,
        "fsyncs": 16,
    },
    "a scan": {"reads": 4, "data files read": 3},
    # The snapshots are listed for the end of the history; the schemas, one of which is read, for whose history it is.
    "a scan of an older snapshot": {"reads": 3, "listings": 2, "data files read": 2},
    # Beside the newest one, the snapshot itself and the one before it, with whose rows the new ones are compared; and
    # the schema, for whose changes these are. Small data files were kept when they were read before.
    "a read of the changes of one snapshot": {"reads": 7, "listings": 1},
}
VERBS = {
    "read": "reads",
    "size": "reads",
    "exists": "reads",
    "open_input": "data files read",
    "list": "listings",
    "open_output": "writes",
    "write": "writes",
    "publish_if_absent": "writes",
    "overwrite": "writes",
    "delete": "deletes",
    "sync": "syncs",
}


@pytest.mark.parametrize("what", EXACTLY)
def test_how_often_a_warm_handle_reads_lists_writes_and_syncs(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(LocalFileStore(tmp_path), options={"write-only": "false"})
    table, faults = lab.faulty()
    # Directories above that have settled are not synced again.
    monkeypatch.setattr(local, "_CLOCK_TICK_NS", -1)
    # The eighth commit makes the fifth run.
    for number in range(8 if "compacts" in what else 7):
        lab.write(table, (number, "first"), (number + 1, "first"))
    newest = lab.auditor.ids()[-1]
    acts: dict[str, Callable[[], object]] = {
        "a scan": lambda: table.scan().to_arrow(),
        "a scan of an older snapshot": lambda: table.scan(snapshot_id=newest - 1).to_arrow(),
        "a read of the changes of one snapshot": lambda: table.changes(newest - 1).to_arrow(),
    }
    act = acts.get(what, lambda: lab.write(table, (1, "again"), (2, "again")))
    if what in acts:
        act()
    fsync, synced = os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(fsync(descriptor)))
    calls = counted(act, faults)
    found = Counter(fsyncs=len(synced))
    for call, number in calls.items():
        found[VERBS.get(call.split()[0], "")] += number
    del found[""]
    assert +found == EXACTLY[what]


def retaining(snapshots: int, *, keyed: bool, options: dict[str, str]) -> Lab:
    """A table with so many retained snapshots, all but a few of which changed nothing."""
    options = {**options, "snapshot.num-retained.max": "1000000", "snapshot.time-retained": "10 d"}
    lab = Lab(MemoryFileStore(f"commit-cost-{next(_NAMES)}"), keyed=keyed, options=options)
    table = lab.open()
    for number in range(8):
        lab.write(table, (number, "first"))
    last = table.context.snapshots.latest()
    assert last is not None
    for snapshot_id in range(last.id + 1, snapshots - 1):
        properties = {**last.properties, PARENT_PROPERTY: str(last.uuid)}
        last = replace(last, id=snapshot_id, uuid=f"filler-{snapshot_id}", properties=properties)
        lab.files.write(f"snapshot/snapshot-{snapshot_id}", encode_snapshot(last))
    lab.write_new((100, "the manifests of the fillers are its own again"))
    lab.write_new((101, "and so are its parent's"))
    return lab


def counted(act: Callable[[], object], faults: Faults) -> Counter[str]:
    """The calls of the store that ``act`` makes, by verb and directory."""
    before = len(faults.calls)
    act()
    return Counter(f"{call.op} {call.path.partition('/')[0]}" for call in faults.calls[before:])


def calls_of(what: str, snapshots: int, *, keyed: bool = True, warm: bool = True) -> Counter[str]:
    lab = retaining(snapshots, keyed=keyed, options=NEVER_COMPACTED)
    table, faults = lab.faulty()
    newest = lab.auditor.ids()[-1]
    acts: dict[str, Callable[[], object]] = {
        "write": lambda: lab.write(table, (1, "again")),
        "scan": lambda: table.scan().to_arrow(),
        "changes": lambda: table.changes(newest - 1).to_arrow(),
        "consume": lambda: list(table.consume(scan="latest", follow=False)),
    }
    if warm:
        acts[what]()
        acts[what]()
    return counted(acts[what], faults)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("keyed", [True, False])
def test_what_a_write_asks_of_the_store_does_not_depend_on_the_retained_snapshots(keyed: bool) -> None:
    few, many = calls_of("write", 10, keyed=keyed), calls_of("write", 1_000, keyed=keyed)
    assert few == many
    assert few["list snapshot"] == 0, "an open handle lists no snapshots"
    # The newest one is looked for when the writer begins, in the round, before a compaction and before an expiry.
    assert few["read snapshot"] <= 14 and few["exists snapshot"] <= 6, few


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("what", "reads"), [("scan", 2), ("changes", 8), ("consume", 8)])
def test_what_a_read_asks_of_the_store_does_not_depend_on_the_retained_snapshots(what: str, reads: int) -> None:
    few, many = calls_of(what, 10), calls_of(what, 1_000)
    assert few == many
    assert few["list snapshot"] == 0, "an open handle lists no snapshots"
    assert few["read snapshot"] <= reads, few


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("what", ["write", "scan"])
def test_a_handle_that_was_just_opened_lists_the_snapshots_once(what: str) -> None:
    few, many = calls_of(what, 10, warm=False), calls_of(what, 1_000, warm=False)
    assert few == many
    assert few["list snapshot"] == 1, few


def test_expiring_one_snapshot_a_commit_lists_no_snapshots() -> None:
    options = {"write-only": "false", "snapshot.num-retained.min": "3", "snapshot.num-retained.max": "5"}
    lab = Lab(MemoryFileStore(f"commit-cost-{next(_NAMES)}"), options=options)
    table, faults = lab.faulty()
    for number in range(12):
        lab.write(table, (number, "first"))
    for number in range(6):
        before = lab.auditor.ids()
        calls = counted(lambda: lab.write(table, (1, f"again {number}")), faults)  # noqa: B023
        assert lab.auditor.ids()[0] > before[0], "nothing expired"
        assert calls["list snapshot"] == 0, calls
