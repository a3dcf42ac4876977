"""Rules of snapshots as a history: searches, hints, order, durability, and what the losers of a race leave behind."""

from functools import partial

from tablestore.errors import ConflictError, NotFoundError
from tablestore.io.filestore import FileStore
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once, refused, rule


@rule
def ids_below_a_gap_are_ignored_by_every_search(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    for number in range(1, 7):
        lab.write(lab.open(), (number, "live"))
    dead = files.read("snapshot/snapshot-2")
    lab.expire(keep=2, hint=False)
    files.write("snapshot/snapshot-2", dead)
    table = lab.open()
    assert [snapshot.id for snapshot in table.snapshots()] == [5, 6]
    refused(NotFoundError, lambda: table.scan(snapshot_id=2).to_arrow())
    refused(NotFoundError, lambda: table.scan(timestamp=lab.clock.now_ms() + 2))
    snapshot = lab.write(table, (7, "live"))
    assert snapshot.id == 7
    assert table.scan().to_arrow().num_rows == 7


@rule
def the_newest_snapshot_is_found_in_a_listing_and_not_in_a_hint(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    for number in range(1, 4):
        lab.write(lab.open(), (number, "a"))
    for hint in (b"1", b"77", b"", b"\xff\x00nonsense"):
        files.overwrite("snapshot/LATEST", hint)
        number = lab.auditor.ids()[-1] + 1
        snapshot = lab.write(lab.open(), (number, "a"))
        assert snapshot.id == number
    lab.check([(number, "a") for number in range(1, 8)])


# what an open handle remembers


@rule
def an_open_handle_sees_what_others_committed_and_expired_meanwhile(files: FileStore) -> None:
    for others, keep in ((1, 9), (3, 9), (40, 99), (3, 2), (3, 1), (40, 1)):
        for hint in (True, False):
            lab = Lab(files.at(f"t{others}-{keep}-{hint}"), keyed=False)
            table = lab.open()
            lab.write(table, (0, "own"))
            quick = lab.open()
            for number in range(others):
                lab.write(quick, (1 + number, "others"))
            lab.expire(keep=keep, hint=hint)
            assert [snapshot.id for snapshot in table.snapshots()] == lab.auditor.ids()
            assert table.scan().to_arrow().num_rows == 1 + others
            assert lab.write(table, (99, "own")).id == others + 2
            lab.check([(0, "own"), (99, "own"), *[(1 + number, "others") for number in range(others)]])


@rule
def an_open_handle_is_not_misled_by_a_dead_file_under_the_id_that_it_saw_last(files: FileStore) -> None:
    """Another committer has published it there, or a late duplicate of the first publish: by its bytes, or EARLIEST."""
    for same_bytes in (False, True):
        lab = Lab(files.at(f"t{same_bytes}"), keyed=False)
        table = lab.open()
        lab.write(table, (0, "own"))
        lab.write(table, (1, "own"))
        seen = lab.files.read("snapshot/snapshot-2")
        for number in (3, 4, 5):
            lab.write_new((number, "others"))
        lab.expire(keep=1, hint=same_bytes)
        assert lab.files.publish_if_absent("snapshot/snapshot-2", seen if same_bytes else seen.replace(b"own", b"oWn") + b"\n")
        assert table.scan().to_arrow().num_rows == 5
        assert [snapshot.id for snapshot in table.snapshots()] == [5]
        assert lab.write(table, (6, "own")).id == 6
        lab.check([(0, "own"), (1, "own"), (3, "others"), (4, "others"), (5, "others"), (6, "own")])


@rule
def an_open_handle_does_not_go_on_from_a_dead_file_above_the_id_that_it_saw_last(files: FileStore) -> None:
    """Its own snapshot expires between the look at what follows and the look at it."""
    lab = Lab(files, keyed=False)
    table, faults = lab.faulty()
    lab.write(table, (0, "own"))
    lab.write_new((1, "others"))
    dead = files.read("snapshot/snapshot-2")

    def others() -> None:
        for number in (2, 3, 4):
            lab.write_new((number, "others"))
        lab.expire(keep=1, hint=False)
        assert files.publish_if_absent("snapshot/snapshot-2", dead)

    once(faults, "before", "exists", others)
    assert table.scan().to_arrow().num_rows == 5
    assert lab.write(table, (5, "own")).id == 6


@rule
def an_open_handle_is_not_misled_by_a_rollback_of_another_engine(files: FileStore) -> None:
    """Others roll back by removing the newest snapshots, and use their ids again."""
    for again in (0, 1, 3):
        lab = Lab(files.at(f"t{again}"), keyed=False)
        table = lab.open()
        for number in range(4):
            lab.write(table, (number, "own"))
        for snapshot_id in (4, 3):
            lab.files.delete(f"snapshot/snapshot-{snapshot_id}")
        for number in range(again):
            lab.write_new((10 + number, "others"))
        rows = [(0, "own"), (1, "own"), *[(10 + number, "others") for number in range(again)]]
        assert table.scan().to_arrow().num_rows == len(rows)
        assert lab.write(table, (9, "own")).id == 3 + again
        lab.check([*rows, (9, "own")])


@rule
def an_open_handle_is_not_misled_by_a_table_that_was_dropped_and_created_again(files: FileStore) -> None:
    for again in (0, 1, 2, 3, 5):
        lab = Lab(files.at(f"t{again}"), keyed=False)
        table = lab.open()
        for number in range(3):
            lab.write(table, (number, "old"))
        lab.drop()
        lab.create()
        for number in range(again):
            lab.write_new((number, "new"))
        assert list(table.context.snapshots.live_ids()) == list(range(1, again + 1))
        assert refused(ConflictError, table.snapshots).kind == "table-replaced"
        assert refused(ConflictError, partial(lab.write, table, (9, "old"))).kind == "table-replaced"
        lab.check([(number, "new") for number in range(again)])


@rule
def the_hint_is_written_after_the_commit_is_certain(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    slow, faults = lab.faulty()
    lab.write(slow, (1, "a"))
    operations = [(call.op, call.path) for call in faults.calls if "snapshot/" in call.path]
    published, hinted = (
        operations.index(("publish_if_absent", "snapshot/snapshot-1")),
        operations.index(("overwrite", "snapshot/LATEST")),
    )
    assert published < hinted
    faults.fail_nth(1, op="overwrite")
    lab.write(slow, (2, "a"))
    lab.check([(1, "a"), (2, "a")])


@rule
def snapshots_are_ordered_by_id_even_if_the_clock_goes_back(files: FileStore) -> None:
    lab = Lab(files)
    for number, now in enumerate((1_700_000_000_000, 1_600_000_000_000, 1_600_000_000_000, 1_700_000_000_001)):
        lab.clock.set_ms(now)
        lab.write(lab.open(), (1, f"v{number}"))
    lab.check([(1, "v3")])
    times = [snapshot["timeMillis"] for snapshot in lab.auditor.snapshots()]
    assert [lab.read(timestamp=time) for time in times] == [[(1, f"v{number}")] for number in range(4)]


@rule
def two_creators_of_snapshot_1_leave_each_others_metadata_alone(files: FileStore) -> None:
    for keyed in (False, True):
        lab = Lab(files.at(f"keyed-{keyed}"), keyed=keyed)
        slow, faults = lab.faulty()
        # Both write the same rows, so that only the nonce tells their files apart.
        once(faults, "before", "publish_if_absent", partial(lab.write_new, (1, "same")))
        lab.write(slow, (1, "same"))
        lab.check([(1, "same")] if keyed else [(1, "same"), (1, "same")])
        assert lab.auditor.orphans() == set(), "the loser left files behind"


@rule
def losers_leave_the_winners_manifests_alone_and_clean_up_their_own(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    tables = [lab.faulty() for _ in range(4)]

    def chain(position: int) -> None:
        if position == len(tables):
            return
        table, faults = tables[position]
        once(faults, "before", "publish_if_absent", lambda: chain(position + 1))
        lab.write(table, (1, "same"))

    chain(0)
    lab.check([(1, "same")] * 4)
    assert lab.auditor.orphans() == set()


@rule
def a_loser_that_cannot_clean_up_commits_all_the_same(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    slow, faults = lab.faulty()
    faults.fail_nth(1, op="delete")
    once(faults, "before", "publish_if_absent", lambda: lab.write(lab.open(), (1, "quick")))
    lab.write(slow, (9, "slow"))
    assert faults.injected_total == 1
    lab.check([(1, "quick"), (9, "slow")])


@rule
def what_a_snapshot_names_is_durable_before_the_snapshot_is_published(files: FileStore) -> None:
    lab = Lab(files, primary_key=["id", "v"], partition_by=["v"], options={"bucket": "2"})
    lab.write(lab.open(), (1, "first"))
    table, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.write(lab.open(), (1, "quick"), (2, "quick")))
    lab.write(table, (1, "a"), (2, "b"), (3, "c"))
    made: set[str] = set()
    for call in faults.calls:
        directory, _, name = call.path.rpartition("/")
        if call.op == "output.close" or (call.op == "write" and directory == "manifest"):
            made.add(directory)
        elif call.op == "sync":
            made.discard(call.path)
        elif call.op == "publish_if_absent" and name.startswith("snapshot-"):
            assert not made, f"{call.path} was published before the names in {sorted(made)} were durable"


@rule
def the_hint_of_the_first_commit_does_not_undo_that_of_an_expiry(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    slow, faults = lab.faulty()

    def others() -> None:
        lab.write_new((2, "quick"))
        lab.expire(keep=1)

    once(faults, "after", "publish_if_absent", others)
    lab.write(slow, (1, "slow"))
    assert files.read("snapshot/EARLIEST") == b"2"
    lab.check([(1, "slow"), (2, "quick")])
