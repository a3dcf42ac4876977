"""Rules of what every commit checks, and of commits that read before they write."""

from dataclasses import replace
from functools import partial

import pyarrow as pa

from tablestore.errors import ConflictError
from tablestore.io.filestore import FileStore
from tablestore.store.message import merge_messages
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.lab import Lab, is_snapshot
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tests.support.commitrules.scenes import commit_prepared, compact, once, refused, rule


@rule
def a_commit_to_a_table_that_was_dropped_and_created_again_is_refused(files: FileStore) -> None:
    for op in ("write", "publish_if_absent"):
        for history in (0, 2):
            lab = Lab(files.at(f"{op}-{history}"), keyed=False)
            for number in range(history):
                lab.write(lab.open(), (number, "old table"))
            slow, faults = lab.faulty()

            def again(lab: Lab = lab) -> None:
                lab.drop()
                lab.create()

            once(faults, "before", op, again, match=lambda call: "manifest" in call.path or is_snapshot(call))
            error = refused(ConflictError, partial(slow.append, lab.rows((9, "slow"))))
            assert error.kind == "table-replaced", error
            lab.write(lab.open(), (1, "new table"))
            lab.check([(1, "new table")])


@rule
def a_commit_with_an_older_schema_that_means_other_rows_is_refused(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    slow = lab.open()
    writer = slow.new_writer()
    writer.write(lab.rows((9, "slow")))
    schemas = lab.open().context.schemas
    latest = schemas.latest()
    assert schemas.publish(replace(latest, id=1, options={**latest.options, "sequence.field": "v"}))
    error = refused(ConflictError, writer.commit)
    assert error.kind == "schema-changed"
    assert lab.auditor.orphans() == set()
    lab.check([(0, "first")])


@rule
def a_commit_with_an_older_schema_of_the_same_rows_lands_unless_it_replaces_values_of_a_new_column(files: FileStore) -> None:
    for keyed in (False, True):
        lab = Lab(files.at(f"keyed-{keyed}"), keyed=keyed)
        lab.write(lab.open(), (0, "first"))
        slow, slower = (lab.open().new_writer() for _ in range(2))
        slow.write(lab.rows((0, "slow")))
        schemas = lab.open().context.schemas
        latest = schemas.latest()
        added = Field(id=latest.highest_field_id + 1, name="n", type=AtomicType(root=TypeRoot.INT))
        assert schemas.publish(replace(latest, id=1, comment="new", fields=(*latest.fields, added), highest_field_id=added.id))
        assert slow.commit() is not None
        slower.write(lab.rows((0, "slower")))
        writer = lab.open().new_writer()
        writer.write([{"id": 0, "v": "new", "n": 7}])
        writer.commit()
        if keyed:
            error = refused(ConflictError, slower.commit)
            assert error.kind == "schema-changed", error
        else:
            slower.commit()
        found = sorted(lab.open().scan(["v", "n"]).to_arrow().to_pylist(), key=str)
        rows = [("new", 7)] if keyed else [("first", None), ("new", 7), ("slow", None), ("slower", None)]
        assert [(row["v"], row["n"]) for row in found] == rows
        assert lab.auditor.orphans() == set()


@rule
def a_commit_into_a_partition_with_another_bucket_count_is_refused(files: FileStore) -> None:
    lab = Lab(files, options={"bucket": "1"})
    rows = [(number, "old") for number in range(20)]
    lab.write(lab.open(), *rows)
    schemas = lab.open().context.schemas
    latest = schemas.latest()
    assert schemas.publish(replace(latest, id=1, options={**latest.options, "bucket": "3"}))
    # Opened after the change, on the newest snapshot: nothing has landed since, and yet the count does not fit.
    error = refused(ConflictError, lambda: lab.write(lab.open(), *[(number, "new") for number in range(20)]))
    assert error.kind == "rescaled", error
    lab.check(rows)
    # Overwriting is the way to rescale.
    lab.open().overwrite(lab.rows(*rows), {})
    lab.write(lab.open(), (3, "new"))
    lab.check([(number, "new" if number == 3 else "old") for number in range(20)])


@rule
def files_older_than_half_the_orphan_age_are_refused(files: FileStore) -> None:
    lab = Lab(files, keyed=False, options={"tablestore.orphan-age": "2 h", "commit.timeout": "1 d"})
    clock = ManualClock()
    table = lab.open(clock=clock)
    writer = table.new_writer()
    writer.write(lab.rows((1, "slow")))
    prepared = writer.prepare()
    clock.advance(3601)
    error = refused(ConflictError, lambda: commit_prepared(table, prepared))
    assert error.kind == "too-old"
    # Also when the time passes during the commit.
    slow, faults = lab.faulty(clock=clock)

    def dawdle() -> None:
        lab.write(lab.open(), (2, "quick"))
        clock.advance(3601)

    once(faults, "before", "publish_if_absent", dawdle)
    assert refused(ConflictError, lambda: slow.append(lab.rows((9, "slow")))).kind == "too-old"
    lab.check([(2, "quick")])


@rule
def files_that_are_no_longer_live_are_not_deleted_again(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (1, "a"), (2, "b"))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: compact(lab))
    slow.delete("id = 1")
    lab.check([(2, "b")])


@rule
def a_message_that_is_committed_twice_is_refused(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    writer = lab.open().new_writer()
    writer.write(lab.rows((1, "a")))
    message = writer.prepare()
    merged = merge_messages([message, message])
    assert merged is not None
    assert refused(ConflictError, lambda: commit_prepared(lab.open(), merged)).kind == "duplicate-file"


# read, modify, write


@rule
def an_overwrite_replaces_what_landed_meanwhile_too(files: FileStore) -> None:
    for keyed in (False, True):
        lab = Lab(files.at(f"keyed-{keyed}"), keyed=keyed)
        lab.write(lab.open(), (1, "old"))
        slow, faults = lab.faulty()
        once(faults, "before", "publish_if_absent", partial(lab.write_new, (2, "meanwhile")))
        slow.overwrite(lab.rows((3, "instead")), {})
        lab.check([(3, "instead")])


@rule
def a_delete_by_condition_looks_again_at_what_landed_meanwhile(files: FileStore) -> None:
    for keyed in (False, True):
        lab = Lab(files.at(f"keyed-{keyed}"), keyed=keyed)
        lab.write(lab.open(), (1, "bad"), (2, "good"), (3, "bad"))
        slow, faults = lab.faulty()
        meanwhile = [(1, "good"), (4, "bad"), (5, "good")] if keyed else [(4, "bad"), (5, "good")]
        once(faults, "before", "publish_if_absent", partial(lab.write_new, *meanwhile))
        slow.delete("v = 'bad'")
        lab.check([(1, "good"), (2, "good"), (5, "good")] if keyed else [(2, "good"), (5, "good")])


@rule
def a_delete_by_condition_on_rows_that_an_overwrite_removed_finds_nothing(files: FileStore) -> None:
    for keyed in (False, True):
        lab = Lab(files.at(f"keyed-{keyed}"), keyed=keyed)
        lab.write(lab.open(), (1, "bad"), (2, "good"))
        slow, faults = lab.faulty()
        once(faults, "before", "publish_if_absent", partial(lab.open().overwrite, lab.rows((1, "fresh")), {}))
        assert slow.delete("v = 'bad'") is None
        lab.check([(1, "fresh")])


@rule
def columns_that_an_upsert_keeps_are_those_of_the_newest_snapshot(files: FileStore) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("w", pa.string())])
    lab = Lab(files, schema=columns)
    lab.write_new((1, "old", "old"))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.write_new((1, "meanwhile", "meanwhile")))
    slow.upsert(pa.table({"id": [1, 2], "w": ["slow", "slow"]}), missing_columns="keep")
    lab.check([(1, "meanwhile", "slow"), (2, None, "slow")])
