"""Rollback and fast-forward: commits forward that bring an older state, or a branch's, back."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import ConflictError, InvalidInputError, NotFoundError, TablestoreError
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tablestore.store.sequence import NEXT_SEQUENCE_PROPERTY
from tablestore.table.table import Table
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tablestore.types.evolution.schemachanges import AddColumn
from tests.support.commitrules.scenes import once

Make = Callable[..., Lab]
ALL: dict[str, Any] = {"retain_min": 1, "retain_max": 1}


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Make:
    made = 0

    def one(**options: Any) -> Lab:
        nonlocal made
        made += 1
        clock = ManualClock()
        store = MemoryFileStore(f"restore-{abs(hash(request.node.name))}-{made}", clock=clock)
        keyed = options.pop("keyed", True)
        return Lab(store, keyed=keyed, options={"write-only": "true", **options}, clock=clock)

    return one


def rows_of(table: Table, **options: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(**options).to_arrow().to_pylist())


def numbered(numbers: range, text: str) -> list[tuple[Any, ...]]:
    """Rows in the order in which a lab reads them."""
    return sorted(((number, text) for number in numbers), key=repr)


def added_names(lab: Lab, snapshot_id: int) -> set[str]:
    context = lab.open().context
    entries = context.manifests.delta(context.snapshots.read(snapshot_id))
    return {entry.file.file_name for entry in entries if entry.kind is EntryKind.ADD}


@pytest.mark.parametrize("keyed", [True, False])
def test_a_rollback_is_a_commit_forward_that_adds_no_known_name(make: Make, keyed: bool) -> None:
    lab = make(keyed=keyed)
    lab.write_new((1, "a"), (2, "b"))
    lab.write_new((3, "c"))
    lab.open().overwrite(lab.rows((9, "z")), {})
    snapshot = lab.open().rollback_to(2)
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind) == (4, CommitKind.OVERWRITE)
    lab.check([(1, "a"), (2, "b"), (3, "c")])
    before = set().union(*(added_names(lab, i) for i in (1, 2, 3)))
    assert len(added_names(lab, 4)) == 2 and not added_names(lab, 4) & before
    # It can be rolled back itself, and the table goes on.
    lab.open().rollback_to(3)
    lab.check([(9, "z")])
    lab.open().rollback_to(4)
    lab.write_new((3, "newer") if keyed else (4, "newer"))
    lab.check([(1, "a"), (2, "b"), (3, "newer")] if keyed else [(1, "a"), (2, "b"), (3, "c"), (4, "newer")])
    lab.open().expire_snapshots(**ALL)
    lab.check([(1, "a"), (2, "b"), (3, "newer")] if keyed else [(1, "a"), (2, "b"), (3, "c"), (4, "newer")])
    assert Holdings(lab.files).missing() == {} and Holdings(lab.files).unheld() == set()


def test_files_that_are_live_as_they_were_stay(make: Make) -> None:
    lab = make(keyed=False)
    lab.write_new((1, "a"))
    lab.write_new((2, "b"))
    snapshot = lab.open().rollback_to(1)
    assert snapshot is not None and added_names(lab, snapshot.id) == set()
    lab.check([(1, "a")])
    assert lab.open().rollback_to(snapshot.id) is None, "nothing differs"


def test_a_rollback_over_a_compaction_brings_the_rows_back(make: Make) -> None:
    lab = make()
    for number in range(4):
        lab.write_new((1, f"v{number}"), (number + 10, "x"))
    before = lab.read()
    lab.open().compact(full=True)
    lab.write_new((1, "after"))
    lab.open().delete("id >= 10")
    lab.open().rollback_to(4)
    lab.check(before)
    lab.open().rollback_to(5)
    lab.check(before)
    lab.write_new((1, "newest"))
    assert (1, "newest") in lab.read()
    lab.open().compact(full=True)
    assert (1, "newest") in lab.read()
    assert NEXT_SEQUENCE_PROPERTY in lab.open().snapshots()[-1].properties


@pytest.mark.parametrize("keyed", [True, False])
def test_deletion_vectors_come_back_with_their_files(make: Make, keyed: bool) -> None:
    lab = make(keyed=keyed, **{"deletion-vectors.enabled": "true"})
    lab.write_new(*((number, "a") for number in range(20)))
    lab.open().compact(full=True)
    lab.open().delete("id < 5")
    lab.open().compact(full=True)
    first = lab.open().snapshots()[-1].id
    expected = numbered(range(5, 20), "a")
    assert lab.read() == expected
    lab.open().delete("id < 10")
    lab.open().compact(full=True)
    assert lab.read() == numbered(range(10, 20), "a")
    lab.open().rollback_to(first)
    assert lab.read() == expected
    lab.open().overwrite(lab.rows((99, "z")), {})
    lab.open().rollback_to(first)
    assert lab.read() == expected
    lab.open().expire_snapshots(**ALL)
    assert lab.read() == expected
    assert Holdings(lab.files).missing() == {} and Holdings(lab.files).unheld() == set()


def test_a_table_with_dynamic_buckets_finds_its_keys_after_a_rollback(make: Make) -> None:
    lab = make(**{"bucket": "-1", "dynamic-bucket.target-row-num": "5"})
    lab.write_new(*((number, "a") for number in range(12)))
    lab.write_new(*((number, "b") for number in range(12, 30)))
    lab.open().overwrite(lab.rows((1, "z")), {})
    lab.open().rollback_to(1)
    assert lab.read() == numbered(range(12), "a")
    lab.write_new(*((number, "c") for number in range(12)))
    assert lab.read() == numbered(range(12), "c"), "a key went into another bucket"
    assert Holdings(lab.files).missing() == {}


def test_rollback_to_a_tag_after_its_snapshot_expired(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"), (2, "b"))
    lab.open().create_tag("good")
    lab.open().delete("id = 1")
    lab.open().compact(full=True)
    lab.open().expire_snapshots(**ALL)
    lab.open().rollback_to(tag="good")
    assert lab.read() == [(1, "a"), (2, "b")]
    lab.open().delete_tag("good")
    assert lab.read() == [(1, "a"), (2, "b")]
    assert Holdings(lab.files).missing() == {}


def test_what_others_commit_meanwhile_is_rolled_back_too(make: Make) -> None:
    lab = make(keyed=False)
    lab.write_new((1, "a"))
    lab.write_new((2, "b"))
    table, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.write_new((3, "c")))
    table.rollback_to(1)
    lab.check([(1, "a")])
    assert lab.auditor.orphans() == set()


def test_a_compaction_of_what_was_to_stay_makes_the_rollback_plan_again(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.write_new((1, "b"))
    lab.write_new((2, "c"))
    table, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().compact(full=True))
    table.rollback_to(2)
    lab.check([(1, "b")])
    assert Holdings(lab.files).unheld() == set(), "the first plan's copies are gone"


def test_the_newest_schema_stays(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.open().alter(AddColumn("extra", "INT"))
    table = lab.open()
    table.upsert(pa.table({"id": [2], "v": ["b"], "extra": pa.array([7], pa.int32())}))
    lab.open().rollback_to(1)
    assert lab.open().scan().to_arrow().to_pylist() == [{"id": 1, "v": "a", "extra": None}]


def test_targets_that_are_none_are_refused(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    with pytest.raises(NotFoundError):
        lab.open().rollback_to(7)
    with pytest.raises(NotFoundError):
        lab.open().rollback_to(tag="nowhere")
    with pytest.raises(InvalidInputError):
        lab.open().rollback_to()
    with pytest.raises(InvalidInputError):
        lab.open().rollback_to(1, tag="t")
    lab.check([(1, "a")])


def test_a_damaged_file_is_not_brought_back(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    (path,) = lab.open().files().column("file_path").to_pylist()
    lab.open().overwrite(lab.rows((2, "b")), {})
    data = bytearray(lab.files.read(path))
    data[-20] ^= 1
    lab.files.overwrite(path, bytes(data))
    with pytest.raises(TablestoreError):
        lab.open().rollback_to(1)
    lab.check([(2, "b")])
    assert Holdings(lab.files).unheld() == set()


# ---- fast-forward


def test_fast_forward_makes_the_table_what_the_branch_is(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"), (2, "b"))
    lab.open().create_branch("work")
    work = lab.open().branch("work")
    work.upsert(lab.rows((1, "changed"), (3, "c")))
    work.delete("id = 2")
    snapshot = lab.open().fast_forward("work")
    assert snapshot is not None and snapshot.commit_kind is CommitKind.OVERWRITE and snapshot.id == 2
    lab.check([(1, "changed"), (3, "c")])
    assert lab.open().fast_forward("work") is None
    # Both go on, and again.
    work = lab.open().branch("work")
    work.upsert(lab.rows((4, "d")))
    lab.open().fast_forward("work")
    lab.check([(1, "changed"), (3, "c"), (4, "d")])
    lab.write_new((1, "main"))
    lab.check([(1, "main"), (3, "c"), (4, "d")])
    lab.open().delete_branch("work")
    lab.open().expire_snapshots(**ALL)
    lab.check([(1, "main"), (3, "c"), (4, "d")])
    assert Holdings(lab.files).missing() == {} and Holdings(lab.files).unheld() == set()


def test_fast_forward_is_refused_once_the_table_went_on(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.open().create_branch("work")
    lab.open().branch("work").upsert(lab.rows((2, "b")))
    lab.write_new((3, "c"))
    with pytest.raises(ConflictError) as refused:
        lab.open().fast_forward("work")
    assert refused.value.kind == "not-a-fast-forward" and "snapshot 2" in str(refused.value)
    lab.check([(1, "a"), (3, "c")])
    lab.open().fast_forward("work", discard_newer=True)
    lab.check([(1, "a"), (2, "b")])


def test_fast_forward_sees_a_commit_that_lands_while_it_copies(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.open().create_branch("work")
    lab.open().branch("work").upsert(lab.rows((2, "b")))
    table, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.write_new((3, "c")))
    with pytest.raises(ConflictError) as refused:
        table.fast_forward("work")
    assert refused.value.kind == "not-a-fast-forward"
    lab.check([(1, "a"), (3, "c")])
    assert Holdings(lab.files).unheld() == set()


def test_a_compaction_of_the_table_does_not_stand_in_the_way(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.write_new((1, "b"))
    lab.open().create_branch("work")
    lab.open().branch("work").upsert(lab.rows((2, "c")))
    lab.open().compact(full=True)
    lab.open().fast_forward("work")
    lab.check([(1, "b"), (2, "c")])


def test_columns_that_a_branch_got_come_with_it(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.open().create_branch("work")
    work = lab.open().branch("work").alter(AddColumn("extra", "INT"))
    work.upsert(pa.table({"id": [2], "v": ["b"], "extra": pa.array([7], pa.int32())}))
    assert lab.open().schema.names == ["id", "v"]
    lab.open().fast_forward("work")
    assert rows_of(lab.open()) == [(1, "a", None), (2, "b", 7)]


def test_columns_that_both_sides_got_are_refused(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.open().create_branch("work")
    work = lab.open().branch("work").alter(AddColumn("extra", "INT"))
    work.upsert(pa.table({"id": [2], "v": ["b"], "extra": pa.array([7], pa.int32())}))
    lab.open().alter(AddColumn("other", "INT"))
    with pytest.raises(ConflictError) as refused:
        lab.open().fast_forward("work")
    assert refused.value.kind == "schema-changed"
    assert rows_of(lab.open()) == [(1, "a", None)]


def test_a_rollback_from_a_snapshot_that_is_no_longer_the_newest_undoes_nothing(make: Make) -> None:
    lab = make()
    for number in range(3):
        lab.write_new((number, "a"))
    table = lab.open()
    with pytest.raises(ConflictError, match="newest snapshot of table") as refused:
        table.rollback_to(1, newest=2)
    assert refused.value.kind == "moved-on"
    assert len(rows_of(table)) == 3
    assert table.rollback_to(1, newest=3) is not None
    assert rows_of(table) == numbered(range(1), "a")
