"""Another number of buckets: every row stays, whatever lands meanwhile, and an interrupted rescale goes on."""

from itertools import count

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.io.memory import MemoryFileStore
from tablestore.store.commit.alterschema import alter_schema
from tablestore.testing.files import FileCall
from tablestore.testing.lab import Lab
from tablestore.types.evolution.schemachanges import SetOption

NAMES = count()
SCHEMA = pa.schema(
    [pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())]
)


def make(*, keyed: bool = True, **options: str) -> Lab:
    bucketed = {"bucket": "2"} if keyed else {"bucket": "2", "bucket-key": "id"}
    return Lab(
        MemoryFileStore(f"rescale-{next(NAMES)}"),
        keyed=keyed,
        schema=SCHEMA,
        primary_key=["day", "id"],
        partition_by=["day"],
        options={**bucketed, "write-only": "true", **options},
    )


def counts(lab: Lab) -> dict[int, int]:
    """Live files by the bucket count that they were written for."""
    context = lab.open().context
    found: dict[int, int] = {}
    for entry in context.manifests.live(context.snapshots.latest()):
        found[entry.total_buckets] = found.get(entry.total_buckets, 0) + 1
    return found


ROWS = [(f"d{i % 3}", i, f"v{i}") for i in range(30)]


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("buckets", [1, 5])
def test_every_row_is_in_the_new_buckets(keyed: bool, buckets: int) -> None:
    lab = make(keyed=keyed)
    lab.write_new(*ROWS)
    lab.open().delete("id < 3")
    table = lab.open().rescale(buckets)
    assert table.options()["bucket"] == str(buckets)
    assert set(counts(lab)) == {buckets}
    lab.check(ROWS[3:])
    lab.write(table, ("d0", 100, "new"), ("d9", 101, "new"))
    lab.check([*ROWS[3:], ("d0", 100, "new"), ("d9", 101, "new")])
    assert table.scan(filter="id = 7").to_arrow().num_rows == 1
    assert lab.read(snapshot_id=1) == sorted(ROWS, key=repr)
    assert lab.auditor.orphans() == set()


def test_the_same_number_changes_nothing() -> None:
    lab = make()
    lab.write_new(*ROWS)
    lab.open().rescale(2)
    assert len(lab.open().snapshots()) == 1
    assert lab.open().table_schema.id == 0


def test_an_altered_partition_is_read_by_its_own_number_refused_to_writers_and_taken_by_an_overwrite() -> None:
    lab = make()
    lab.write_new(*ROWS)
    alter_schema(lab.open().context, SetOption("bucket", "4"), rescaling=True)
    table = lab.open()
    for i in range(30):
        assert table.scan(filter=f"id = {i}").to_arrow().num_rows == 1
    with pytest.raises(ts.ConflictError, match=r"table\.rescale\(4\)") as refused:
        lab.write(table, ("d0", 1, "x"))
    assert refused.value.kind == "rescaled"
    lab.write(table, ("new", 1, "x"))
    table.overwrite(lab.rows(("d0", 50, "over")), {"day": "d0"})
    lab.write(table, ("d0", 51, "after"))
    assert set(counts(lab)) == {2, 4}
    lab.check([*(row for row in ROWS if row[0] != "d0"), ("new", 1, "x"), ("d0", 50, "over"), ("d0", 51, "after")])
    table.rescale(4)
    assert set(counts(lab)) == {4}


@pytest.mark.deep
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_rescale_goes_on(when: str) -> None:
    for n in count(1, 17):
        lab = make()
        lab.write_new(*ROWS)
        table, faults = lab.faulty()
        faults.fail_nth(n, when=when)  # type: ignore[arg-type]
        try:
            table.rescale(3)
        except (ts.StorageError, ts.CommitOutcomeUnknown):
            lab.open().rescale(3)
        assert set(counts(lab)) == {3}
        lab.check(ROWS)
        if not faults.injected_total:
            break
    assert n > 30


@pytest.mark.parametrize("operation", ["output.write", "publish_if_absent"])
def test_a_rescale_whose_first_commit_fails_takes_its_option_back(operation: str) -> None:
    lab = make()
    lab.write_new(*ROWS)
    table, faults = lab.faulty()

    def refuse(call: FileCall) -> None:
        if not call.path.startswith("schema/"):
            raise ts.StorageError("the disk is full")

    faults.before(refuse, op=operation)
    with pytest.raises(ts.StorageError, match="the disk is full"):
        table.rescale(3)
    assert set(counts(lab)) == {2} and lab.open().options()["bucket"] == "2"
    lab.write_new(("d0", 0, "after"))
    lab.check([("d0", 0, "after"), *(row for row in ROWS if row[:2] != ("d0", 0))])
    lab.open().rescale(3)
    assert set(counts(lab)) == {3}


def test_what_lands_while_a_partition_is_rewritten_is_kept() -> None:
    lab = make()
    lab.write_new(*ROWS)
    lab.write_new(*[(day, i, "second") for day, i, _ in ROWS])
    table, faults = lab.faulty()
    done: list[bool] = []

    def compact(call: FileCall) -> None:
        if "snapshot" in call.path and not done:
            done.append(True)
            lab.open().compact(full=True)

    faults.before(compact, op="publish_if_absent")
    table.rescale(5)
    assert done
    assert set(counts(lab)) == {5}
    lab.check([(day, i, "second") for day, i, _ in ROWS])
    assert lab.auditor.orphans() == set()


@pytest.mark.parametrize("buckets", [0, -1, 2.5, "4", True, None])
def test_only_a_positive_number_is_a_number_of_buckets(buckets: object) -> None:
    lab = make()
    with pytest.raises(ts.InvalidInputError, match="positive number"):
        lab.open().rescale(buckets)  # type: ignore[arg-type]


def test_a_table_without_fixed_buckets_has_nothing_to_rescale() -> None:
    lab = Lab(MemoryFileStore(f"rescale-{next(NAMES)}"), keyed=False)
    with pytest.raises(ts.UnsupportedError, match="fixed number"):
        lab.open().rescale(4)


def test_progress_counts_the_bytes_of_the_partitions_up_to_all_of_them() -> None:
    lab = make()
    lab.write_new(*ROWS)
    told: list[tuple[str, int, int]] = []
    size = sum(entry.file.file_size for entry in lab.open().context.manifests.live(lab.open().context.snapshots.latest()))
    lab.open().rescale(5, progress=lambda what, done, total: told.append((what, done, total)))
    assert [what for what, _, _ in told] == [f"rescaling, {left} partition(s) left" for left in (2, 1, 0)]
    assert {total for _, _, total in told} == {size}
    assert 0 < told[0][1] < told[1][1] < told[2][1] == size
