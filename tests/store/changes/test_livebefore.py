"""The files before a commit are those of its base list, which is read once by whoever goes from snapshot to snapshot."""

from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.manifest.liveset import live_entries
from tablestore.store.manifests import Manifests

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])


@pytest.fixture
def written(tmp_path: Path) -> ts.Table:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})


def upsert(table: ts.Table, number: int) -> None:
    table.upsert(pa.table({"id": [number % 5, 7], "v": [number, number]}, schema=SCHEMA))


def test_the_base_list_of_the_next_snapshot_is_not_read(written: ts.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ts.open_catalog(str(tmp_path)).table("shop.t").context
    names: list[str] = []
    read_list = Manifests.read_list
    for number in range(4):
        upsert(written, number)
        latest = reader.snapshots.latest()
        assert latest is not None
        delta = reader.manifests.delta(latest)
        monkeypatch.setattr(Manifests, "read_list", lambda self, name: names.append(name) or read_list(self, name))
        live = reader.manifests.live_before(latest, delta)
        monkeypatch.setattr(Manifests, "read_list", read_list)
        base = reader.manifests.read_list(latest.base_manifest_list)
        assert live == live_entries(reader.manifests.read_manifest(manifest.file_name) for manifest in base)
    assert len(names) == 1


def test_changes_are_the_same_for_a_reader_that_knows_nothing(written: ts.Table, tmp_path: Path) -> None:
    """Compactions come in between, a rollback, and commits on top of it."""
    follower = ts.open_catalog(str(tmp_path)).table("shop.t")
    compactions = 0

    def check(first: int) -> None:
        last = written.snapshots()[-1].id
        fresh = ts.open_catalog(str(tmp_path)).table("shop.t")
        for snapshot in range(first, last + 1):
            known = follower.changes(snapshot - 1, snapshot).to_arrow()
            assert known.to_pylist() == fresh.changes(snapshot - 1, snapshot).to_arrow().to_pylist()

    for number in range(14):
        before = written.snapshots()[-1].id if number else 0
        upsert(written, number)
        compactions += written.snapshots()[-1].id - before - 1
        check(before + 1)
    assert compactions
    written.rollback_to(3)
    for number in range(20, 26):
        before = written.snapshots()[-1].id
        upsert(written, number)
        check(before + 1)


def test_lists_that_grow_are_folded_as_from_the_start(written: ts.Table, tmp_path: Path) -> None:
    reader = ts.open_catalog(str(tmp_path)).table("shop.t").context
    for number in range(10):
        upsert(written, number)
        if number % 3 == 1:
            written.compact(full=True)
        latest = reader.snapshots.latest()
        assert latest is not None
        manifests = reader.manifests.all_manifests(latest)
        live = live_entries(reader.manifests.read_manifest(manifest.file_name) for manifest in manifests)
        assert list(reader.manifests.live_of(manifests)) == list(live)


def test_a_known_fold_keeps_what_it_is(written: ts.Table) -> None:
    for number in range(3):
        upsert(written, number)
    context = written.context
    first, last = context.snapshots.read(1), context.snapshots.read(3)
    before = list(context.manifests.live_of(context.manifests.all_manifests(first)))
    context.manifests.live_of(context.manifests.all_manifests(last))
    assert list(context.manifests.live_of(context.manifests.all_manifests(first))) == before
