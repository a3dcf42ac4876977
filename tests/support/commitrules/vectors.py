"""Rules about rows that are marked as deleted, and buckets that are made as keys arrive."""

from dataclasses import replace

from tablestore.io.filestore import FileStore
from tablestore.table.table import Table
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once, rule

VECTORS = {"deletion-vectors.enabled": "true", "write-only": "true"}
MERGE_ON_WRITE = {**VECTORS, "write-only": "false", "bucket": "1"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "3", "write-only": "true"}


def _stopped(lab: Lab) -> Table:
    """A writer that stops after its commit, before the compaction that should follow."""
    context = lab.open().context
    schema = replace(context.schema, options={**context.schema.options, "write-only": "true"})
    return Table(context.at_schema(schema), "stopped")


@rule
def two_deletes_in_one_file_lose_neither(files: FileStore) -> None:
    lab = Lab(files, keyed=False, options=VECTORS)
    lab.write_new(*((i, "a") for i in range(8)))
    lab.open().delete("id = 0")
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().delete("id = 3"))
    assert slow.delete("id = 5") is not None
    lab.check([(i, "a") for i in (1, 2, 4, 6, 7)])


@rule
def a_compaction_that_read_a_file_before_rows_of_it_were_marked_does_not_bring_them_back(files: FileStore) -> None:
    lab = Lab(files, keyed=False, options=VECTORS)
    for i in range(6):
        lab.write_new((2 * i, "a"), (2 * i + 1, "b"))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().delete("id IN (3, 8)"))
    slow.compact()
    lab.check([(i, "ab"[i % 2]) for i in range(12) if i not in (3, 8)])


@rule
def marks_in_a_file_that_another_compaction_rewrote_are_made_anew(files: FileStore) -> None:
    lab = Lab(files, options=MERGE_ON_WRITE)
    lab.write_new(*((i, "x" * 40 + str(i)) for i in range(400)))
    slow, faults = lab.faulty()
    # The snapshot after the writer's own is that of the compaction that follows it.
    once(
        faults,
        "before",
        "publish_if_absent",
        lambda: lab.open().compact(full=True),
        match=lambda call: call.path == "snapshot/snapshot-4",
    )
    lab.write(slow, (5, "new"))
    expected = {i: "x" * 40 + str(i) for i in range(400)} | {5: "new"}
    assert lab.read() == sorted(expected.items(), key=repr)


@rule
def a_delete_by_condition_does_not_delete_a_newer_row_that_is_not_settled_yet(files: FileStore) -> None:
    lab = Lab(files, options=MERGE_ON_WRITE)
    lab.write_new((1, "old"), (2, "old"))
    _stopped(lab).upsert(lab.rows((1, "new"), (4, "old")))
    assert lab.open().delete("v = 'old'") is not None
    assert lab.read() == [(1, "new")]


@rule
def writers_that_make_buckets_at_the_same_time_put_no_key_into_two(files: FileStore) -> None:
    lab = Lab(files, options=DYNAMIC)
    lab.write_new((0, "first"))
    slow, faults = lab.faulty()
    # With other keys between them, the shared ones are given other buckets.
    fast = [(i, "fast") for i in (*range(4, 8), *range(20, 40))]
    once(faults, "before", "publish_if_absent", lambda: lab.write_new(*fast))
    lab.write(slow, *((i, "slow") for i in range(8)))
    lab.check([(i, "slow") for i in range(8)] + fast[4:])
    lab.auditor.check_dynamic_buckets(("id",))


@rule
def an_overwrite_that_builds_the_hash_index_anew_is_noticed_by_a_writer_with_the_old_one(files: FileStore) -> None:
    lab = Lab(files, options=DYNAMIC)
    lab.write_new(*((i, "old") for i in range(9)))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().overwrite(lab.rows(*((i, "o") for i in range(4, 11))), {}))
    lab.write(slow, *((i, "slow") for i in range(8)))
    lab.check([(i, "slow") for i in range(8)] + [(i, "o") for i in range(8, 11)])
    lab.auditor.check_dynamic_buckets(("id",))
