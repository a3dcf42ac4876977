"""Tags and branches keep what they need, give it back when they go, and neither a race nor a failure leaves half of one."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.format.tagfile import decode_tag, encode_tag
from tablestore.io.memory import MemoryFileStore
from tablestore.table.table import Table
from tablestore.testing.auditor import walk
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import FileCall
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tablestore.testing.night.powercut import VolatileFileStore

ALL: dict[str, Any] = {"retain_min": 1, "retain_max": 1}
Make = Callable[..., Lab]


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Make:
    made = 0

    def one(**options: Any) -> Lab:
        nonlocal made
        made += 1
        clock = ManualClock()
        store = MemoryFileStore(f"references-{abs(hash(request.node.name))}-{made}", clock=clock)
        keyed = options.pop("keyed", False)
        return Lab(store, keyed=keyed, options={"write-only": "true", **options}, clock=clock)

    return one


def rows_of(table: Table, **options: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(**options).to_arrow().to_pylist())


def check_whole(lab: Lab, *, clean: bool = True) -> None:
    """Nothing that anything needs is missing, and (``clean``) nothing is there that nothing needs."""
    assert Holdings(lab.files).missing() == {}
    if clean:
        assert Holdings(lab.files).unheld() == set()


# ---- tags


def test_a_tag_is_read_after_its_snapshot_expired(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    tag = lab.open().create_tag("v1.0", retain=timedelta(days=3))
    assert (tag.name, tag.snapshot.id, tag.retained_millis) == ("v1.0", 1, 3 * 86_400_000)
    assert tag.create_time_millis == lab.clock.now_ms()
    lab.open().overwrite(lab.rows((2, "b")), {})
    lab.write_new((3, "c"))
    lab.open().expire_snapshots(**ALL)
    assert lab.read(tag="v1.0") == [(1, "a")]
    assert lab.read() == [(2, "b"), (3, "c")]
    check_whole(lab)


def test_deleting_a_tag_gives_back_what_only_it_kept(make: Make) -> None:
    lab = make()
    for number in range(4):
        lab.open().overwrite(lab.rows((number, "a")), {})
        lab.open().create_tag(f"t{number}")
    lab.write_new((9, "z"))
    lab.open().expire_snapshots(**ALL)
    for number in (1, 3, 0, 2):
        lab.open().delete_tag(f"t{number}")
        check_whole(lab)
        for tag in lab.open().tags():
            assert lab.read(tag=tag.name) == [(int(tag.name[1]), "a")]
    assert lab.read() == [(3, "a"), (9, "z")]
    with pytest.raises(NotFoundError) as missing:
        lab.open().delete_tag("t1")
    assert missing.value.kind == "no-such-tag"
    lab.open().delete_tag("t1", ignore_if_not_exists=True)


def test_two_tags_of_one_snapshot_keep_it_together(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    for name in ("one", "two"):
        lab.open().create_tag(name)
    lab.open().overwrite(lab.rows((2, "b")), {})
    lab.open().expire_snapshots(**ALL)
    lab.open().delete_tag("one")
    assert lab.read(tag="two") == [(1, "a")]
    lab.open().delete_tag("two")
    check_whole(lab)


def test_a_taken_tag_name_is_refused_or_ignored(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    first = lab.open().create_tag("t")
    lab.write_new((2, "b"))
    with pytest.raises(AlreadyExistsError, match="has a tag 't' of snapshot 1"):
        lab.open().create_tag("t")
    assert lab.open().create_tag("t", ignore_if_exists=True) == first


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "-x", "a" * 129, "a\0b", "a b"])
def test_names_that_are_no_names_are_refused_before_any_path_is_made(make: Make, name: str) -> None:
    lab = make()
    lab.write_new((1, "a"))
    before = sorted(walk(lab.files))
    table = lab.open()
    calls: list[Callable[[], Any]] = [
        lambda: table.create_tag(name),
        lambda: table.delete_tag(name),
        lambda: table.rename_tag(name, "x"),
        lambda: table.create_branch(name),
        lambda: table.delete_branch(name),
        lambda: table.branch(name),
        lambda: table.fast_forward(name),
        lambda: table.rollback_to(tag=name),
        lambda: table.reset_consumer(name, 1),
        lambda: table.delete_consumer(name),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError) as refused:
            call()
        assert refused.value.kind == "invalid-name"
    assert sorted(walk(lab.files)) == before


def test_a_renamed_tag_keeps_its_snapshot_and_its_times(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    old = lab.open().create_tag("old", retain=1000)
    lab.write_new((2, "b"))
    lab.open().expire_snapshots(**ALL)
    lab.open().rename_tag("old", "new")
    (tag,) = lab.open().tags()
    assert (tag.name, tag.snapshot, tag.create_time_millis, tag.retained_millis) == (
        "new",
        old.snapshot,
        old.create_time_millis,
        1000,
    )


def test_tags_go_when_their_time_is_over(make: Make) -> None:
    lab = make(**{"tag.default-time-retained": "1 h"})
    lab.open().overwrite(lab.rows((1, "a")), {})
    lab.open().create_tag("short")
    lab.open().create_tag("long", retain=timedelta(days=1))
    lab.open().overwrite(lab.rows((2, "b")), {})
    lab.clock.advance(3601)
    assert lab.open().expire_snapshots(**ALL, dry_run=True).tags == ("short",)
    assert lab.open().expire_snapshots(**ALL).tags == ("short",)
    assert [tag.name for tag in lab.open().tags()] == ["long"]
    check_whole(lab)


def test_an_expiry_that_begins_while_a_tag_is_made_leaves_both_right(make: Make) -> None:
    """Before whichever call of the tag: either the tag is whole, or it is refused and not there."""
    outcomes = set()
    for step in range(1, 40):
        lab = make()
        for number in range(3):
            lab.open().overwrite(lab.rows((number, "a")), {})
        table, faults = lab.faulty()
        steps = 0

        def other(call: FileCall, lab: Lab = lab, step: int = step) -> None:
            nonlocal steps
            steps += 1
            if steps == step:
                lab.open().expire_snapshots(**ALL)

        faults.before(other)
        try:
            table.create_tag("t", 2)
            assert lab.read(tag="t") == [(1, "a")]
            outcomes.add("made")
        except NotFoundError:
            assert lab.open().tags() == ()
            outcomes.add("refused")
        check_whole(lab, clean=False)
        lab.clock.advance(1)
        lab.open().remove_orphan_files(0, dry_run=False)
        check_whole(lab)
        if steps < step:
            break
    assert outcomes == {"made", "refused"}


@pytest.mark.deep
def test_a_tag_made_at_whichever_step_of_an_expiry_is_whole_or_refused(make: Make) -> None:
    outcomes = set()
    for step in range(1, 80):
        lab = make()
        for number in range(3):
            lab.open().overwrite(lab.rows((number, "a")), {})
        table, faults = lab.faulty()
        steps = 0

        def other(call: FileCall, lab: Lab = lab, step: int = step) -> None:
            nonlocal steps
            steps += 1
            if steps == step:
                try:
                    lab.open().create_tag("t", 2)
                    outcomes.add("made")
                except NotFoundError:
                    outcomes.add("refused")

        faults.before(other)
        table.expire_snapshots(**ALL)
        for tag in lab.open().tags():
            assert lab.read(tag=tag.name) == [(1, "a")]
        check_whole(lab, clean=False)
        if steps < step:
            break
    assert outcomes == {"made", "refused"}


def test_tag_files_hold_the_keys_of_others_and_leave_the_checksum_valid(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    data = encode_tag(lab.files.read("snapshot/snapshot-1"), create_time_millis=1_700_000_000_123, retained_millis=90_500)
    tag = decode_tag(data, "t", "tag/tag-t")
    assert (tag.create_time_millis, tag.retained_millis) == (1_700_000_000_123, 90_500)
    assert b'"tagTimeRetained": 90.5' in data
    plain = decode_tag(lab.files.read("snapshot/snapshot-1"), "t", "tag/tag-t")
    assert (plain.create_time_millis, plain.retained_millis) == (None, None)
    assert plain.snapshot == tag.snapshot


# ---- branches


def test_a_branch_and_the_table_go_their_own_ways_over_the_same_files(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    branch = lab.open().create_branch("b1")
    assert (branch.name, branch.created_from_snapshot, branch.created_from_tag) == ("b1", 1, "branch-b1")
    other = lab.open().branch("b1")
    assert other.branch_name == "b1" and other.name == "lab$branch_b1"
    other.append(lab.rows((2, "branch")))
    lab.write_new((2, "main"))
    assert rows_of(other) == [(1, "a"), (2, "branch")]
    assert lab.read() == [(1, "a"), (2, "main")]
    assert [s.id for s in other.snapshots()] == [1, 2] == [s.id for s in lab.open().snapshots()]
    assert rows_of(other.branch("main")) == lab.read()
    assert not any(path.startswith("branch/") and "bucket" in path for path in walk(lab.files)), "data lies where main's does"
    check_whole(lab)


def test_expiry_on_either_side_spares_what_the_other_needs(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.write_new((2, "b"))
    lab.open().create_branch("b1")
    lab.open().overwrite(lab.rows((3, "c")), {})
    lab.open().expire_snapshots(**ALL)
    other = lab.open().branch("b1")
    assert rows_of(other) == [(1, "a"), (2, "b")]
    other.overwrite(lab.rows((4, "d")), {})
    other.append(lab.rows((5, "e")))
    other.expire_snapshots(**ALL)
    assert rows_of(other) == [(4, "d"), (5, "e")] and lab.read() == [(3, "c")]
    check_whole(lab)


def test_without_its_tags_a_branch_is_spared_all_the_same(make: Make) -> None:
    """As after another engine deleted the tag."""
    lab = make()
    lab.write_new((1, "a"))
    lab.open().create_branch("b1")
    lab.files.delete("tag/tag-branch-b1")
    lab.files.delete("branch/branch-b1/tag/tag-branch-b1")
    lab.open().overwrite(lab.rows((3, "c")), {})
    lab.open().expire_snapshots(**ALL)
    assert rows_of(lab.open().branch("b1")) == [(1, "a")]
    check_whole(lab)


def test_deleting_a_tag_that_a_branch_needs_is_refused_on_both_sides(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.open().create_tag("release")
    lab.open().create_branch("b1", tag="release")
    for table in (lab.open(), lab.open().branch("b1")):
        for refused in (lambda t=table: t.delete_tag("release"), lambda t=table: t.rename_tag("release", "other")):
            with pytest.raises(InvalidInputError, match=r"delete_branch\('b1'\) first") as error:
                refused()
            assert error.value.kind == "tag-in-use"
    lab.open().delete_branch("b1")
    lab.open().delete_tag("release")
    check_whole(lab)


def test_deleting_a_branch_gives_back_its_files_and_its_own_tag(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    lab.open().create_branch("b1")
    other = lab.open().branch("b1")
    other.append(lab.rows((2, "b")))
    other.create_tag("inside")
    lab.open().delete_branch("b1")
    assert lab.open().branches() == () and lab.open().tags() == ()
    assert not any(path.startswith("branch/") for path in walk(lab.files))
    lab.check([(1, "a")])
    check_whole(lab)
    with pytest.raises(NotFoundError) as missing:
        lab.open().branch("b1")
    assert missing.value.kind == "no-such-branch"
    with pytest.raises(NotFoundError):
        other.append(lab.rows((3, "c")))


def test_branches_begin_on_the_table_and_not_on_branches(make: Make) -> None:
    lab = make()
    with pytest.raises(NotFoundError):
        lab.open().create_branch("b1")
    lab.write_new((1, "a"))
    lab.open().create_branch("b1")
    with pytest.raises(UnsupportedError):
        lab.open().branch("b1").create_branch("b2")
    with pytest.raises(AlreadyExistsError) as taken:
        lab.open().create_branch("b1")
    assert taken.value.kind == "branch-exists"
    with pytest.raises(InvalidInputError):
        lab.open().create_branch("main")
    with pytest.raises(NotFoundError):
        lab.open().create_branch("b2", tag="nowhere")
    with pytest.raises(NotFoundError):
        lab.open().create_branch("b2", snapshot_id=7)
    assert [branch.name for branch in lab.open().branches()] == ["b1"]


def test_a_branch_that_is_made_twice_at_once_is_made_once(make: Make) -> None:
    for step in range(1, 40):
        lab = make()
        lab.write_new((1, "a"))
        lab.open().create_tag("t")
        table, faults = lab.faulty()
        steps, made = 0, []

        def other(call: FileCall, lab: Lab = lab, step: int = step, made: list[str] = made) -> None:
            nonlocal steps
            steps += 1
            if steps == step:
                with suppress(AlreadyExistsError):
                    made.append(lab.open().create_branch("b", tag="t").name)

        faults.before(other)
        with suppress(AlreadyExistsError):
            made.append(table.create_branch("b", tag="t").name)
        assert made == ["b"], f"step {step}"
        assert rows_of(lab.open().branch("b")) == [(1, "a")]
        check_whole(lab)
        if steps < step:
            return
    raise AssertionError("it never ended")


@pytest.mark.deep
def test_a_branch_that_fails_at_any_step_is_there_or_can_be_made_again(make: Make) -> None:
    for when in ("before", "after"):
        for step in range(1, 60):
            lab = make()
            lab.write_new((1, "a"))
            table, faults = lab.faulty()
            faults.fail_nth(step, when=when)
            try:
                table.create_branch("b")
            except TablestoreError:
                assert faults.injected_total == 1
            lab.check([(1, "a")])
            check_whole(lab)
            if "b" not in [branch.name for branch in lab.open().branches()]:
                lab.open().delete_branch("b", ignore_if_not_exists=True)
                lab.open().delete_tag("branch-b", ignore_if_not_exists=True)
                lab.open().create_branch("b")
            assert rows_of(lab.open().branch("b")) == [(1, "a")]
            if faults.injected_total == 0:
                break
        else:
            raise AssertionError("it never ended")


@pytest.mark.parametrize("named", [False, True], ids=["made now", "made by others, who copy the snapshot as it was"])
def test_a_branch_of_a_tag_whose_changelog_has_expired_holds_nothing_up(
    named: bool, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make(keyed=True, **{"changelog-producer": "input"})
    lab.write_new((1, "a"))
    lab.write_new((2, "a"))
    lab.open().create_tag("then")
    for key in range(3, 6):
        lab.write_new((key, "b"))
    lab.open().expire_snapshots(**ALL)
    with monkeypatch.context() as m:
        if named:
            m.setattr("tablestore.store.history.branches.has_changelog", lambda *_: True)
        lab.open().create_branch("work", tag="then")
    lab.write_new((9, "c"))
    assert lab.open().expire_snapshots(**ALL).snapshots == (5,)
    lab.files.write("manifest/stray", b"x")
    lab.clock.advance(1)
    assert [orphan.path for orphan in lab.open().remove_orphan_files(0, dry_run=False).orphans] == ["manifest/stray"]
    branch = lab.open().branch("work")
    branch.upsert(lab.rows((7, "x")))
    assert rows_of(lab.open().branch("work")) == [(1, "a"), (2, "a"), (7, "x")]
    assert lab.open().branch("work").expire_snapshots(**ALL).snapshots == (2,)
    lab.open().delete_branch("work")
    lab.open().expire_snapshots(**ALL)
    lab.clock.advance(1)
    lab.open().remove_orphan_files(0, dry_run=False)
    assert Holdings(lab.files).missing() == {} and Holdings(lab.files).unheld() == set()


@pytest.mark.parametrize("reference", ["tag", "branch"])
def test_what_was_deleted_is_not_back_without_its_files_after_a_power_failure(make: Make, reference: str) -> None:
    lab = make()
    lab.write_new((0, "kept by nothing else"))
    table = lab.open()
    table.create_tag("t")
    if reference == "branch":
        table.create_branch("b", tag="t")
    table.overwrite(lab.rows((1, "new")))
    table.expire_snapshots(**ALL)
    # The names that were removed last come back, and nothing else does.
    volatile = VolatileFileStore(lab.files, lambda path: path.startswith(f"{reference}/"))
    table = lab.open(volatile)
    table.delete_branch("b") if reference == "branch" else None
    table.delete_tag("t")
    volatile.cut()
    assert Holdings(lab.files).missing() == {}
    assert rows_of(lab.open()) == [(1, "new")]
