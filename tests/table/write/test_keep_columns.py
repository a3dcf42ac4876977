"""``missing_columns="keep"``: rows that lack columns keep what is stored there, whoever writes meanwhile."""

import random
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import commit_messages, prepare_write, write_partition
from tablestore.io.memory import MemoryFileStore
from tablestore.store.message import CommitMessage
from tablestore.testing.files import FileCall
from tablestore.testing.lab import Lab

INNER = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.int32()), ("d", pa.int32())]))])
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32()), ("s", pa.string()), ("r", INNER)])
ONE: dict[str, Any] = {"id": 1, "n": 1, "s": "one", "r": {"a": 1, "b": {"c": 2, "d": 3}}}


def lab_of(name: str, schema: pa.Schema = SCHEMA, **options: str) -> Lab:
    return Lab(MemoryFileStore(f"keep-{name}"), schema=schema, options={"bucket": "1", **options})


def part(*rows: dict[str, Any], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows of the columns that the first one has."""
    return pa.Table.from_pylist(list(rows), schema=pa.schema([field for field in schema if field.name in rows[0]]))


def changes(*rows: dict[str, Any]) -> pa.Table:
    return part(*rows).append_column("_row_kind", pa.array([row["kind"] for row in rows]))


def content(table: ts.Table) -> list[dict[str, Any]]:
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    table.compact(full=True)
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == found
    return found


@pytest.mark.parametrize("bucket", ["1", "4", "-1"])
def test_what_is_stored_stays_and_new_rows_get_null_or_the_default(bucket: str) -> None:
    table = lab_of(f"plain{bucket}", bucket=bucket).open()
    table = table.alter(ts.ChangeDefault("s", "new"))
    table.upsert(part(ONE, {**ONE, "id": 2}))
    table.upsert(part({"id": 1, "n": 7}, {"id": 3, "n": 8}), missing_columns="keep")
    assert content(table) == [{**ONE, "n": 7}, {**ONE, "id": 2}, {"id": 3, "n": 8, "s": "new", "r": None}]


def test_fields_inside_rows_are_kept_at_every_depth() -> None:
    table = lab_of("nested").open()
    table.upsert(part(ONE, {**ONE, "id": 2, "r": None}, {**ONE, "id": 3}))
    thin = pa.struct([("b", pa.struct([("d", pa.int32())]))])
    rows = pa.table({"id": [1, 2, 3, 4], "r": pa.array([{"b": {"d": 9}}, {"b": {"d": 9}}, None, {"b": None}], thin)})
    table.upsert(rows, missing_columns="keep")
    assert [(row["s"], row["r"]) for row in content(table)] == [
        ("one", {"a": 1, "b": {"c": 2, "d": 9}}),
        ("one", {"a": None, "b": {"c": None, "d": 9}}),
        ("one", None),
        (None, {"a": None, "b": None}),
    ]


def test_fields_inside_lists_cannot_be_kept() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("l", pa.list_(INNER))])
    table = lab_of("lists", schema).open()
    with pytest.raises(ts.InvalidInputError, match=r"lack l\[\]\.b: .*cannot look it up"):
        table.upsert(pa.table({"id": [1], "l": [[{"a": 1}]]}), missing_columns="keep")


def test_a_not_null_column_is_kept_and_demanded_of_new_rows() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32(), nullable=False), ("s", pa.string())])
    table = lab_of("not-null", schema).open()
    table.upsert(part({"id": 1, "n": 1, "s": "a"}, schema=schema))
    table.upsert(part({"id": 1, "s": "b"}, schema=schema), missing_columns="keep")
    assert content(table) == [{"id": 1, "n": 1, "s": "b"}]
    with pytest.raises(ts.InvalidInputError, match=r"lack n, which is NOT NULL .* 1 of them"):
        table.upsert(part({"id": 1, "s": "c"}, {"id": 2, "s": "c"}, schema=schema), missing_columns="keep")
    table.write_changes(pa.table({"id": [1, 5], "s": ["x", "x"], "_row_kind": ["-D", "-D"]}), missing_columns="keep")
    assert content(table) == []


def test_writes_before_one_commit_build_on_each_other() -> None:
    table = lab_of("one-commit", **{"write-buffer-size": "1 kb"}).open()
    table.upsert(part(ONE))
    with table.new_writer() as writer:
        writer.write(part({"id": 1, "n": 5}, {"id": 2, "n": 6}), missing_columns="keep")
        writer.write(part({"id": 1, "s": "S"}, {"id": 2, "s": "T"}), missing_columns="keep")
        writer.write(part({**ONE, "id": 3}))
        writer.write(part({"id": 3, "s": "U"}), missing_columns="keep")
        writer.commit()
    assert content(table) == [{**ONE, "n": 5, "s": "S"}, {"id": 2, "n": 6, "s": "T", "r": None}, {**ONE, "id": 3, "s": "U"}]


def test_nothing_is_kept_of_a_row_that_was_deleted_before() -> None:
    table = lab_of("deleted").open()
    table.upsert(part(*({**ONE, "id": number} for number in range(1, 5))))
    with table.new_writer() as writer:
        rows = changes({"id": 1, "n": 1, "kind": "-D"}, {"id": 1, "n": 5, "kind": "+I"}, {"id": 2, "n": 5, "kind": "+U"})
        writer.write(rows, missing_columns="keep")
        writer.write(changes({"id": 3, "n": 0, "kind": "-D"}), missing_columns="keep")
        writer.write(part({"id": 3, "n": 6}), missing_columns="keep")
        writer.write(changes({"id": 4, "n": 0, "kind": "-D"}, {"id": 2, "n": 5, "kind": "+U"}), missing_columns="keep")
        writer.write(part({"id": 4, "n": 7}), missing_columns="keep")
        writer.commit()
    assert [(row["id"], row["n"], row["s"]) for row in content(table)] == [
        (1, 5, None), (2, 5, "one"), (3, 6, None), (4, 7, None),
    ]  # fmt: skip


def test_the_stored_order_is_kept_where_the_sequence_field_is_missing() -> None:
    table = lab_of("sequence", **{"sequence.field": "n"}).open()
    table.upsert(part({**ONE, "n": 9}))
    table.upsert(part({"id": 1, "s": "later"}), missing_columns="keep")
    table.upsert(part({**ONE, "n": 8}))
    assert content(table) == [{**ONE, "n": 9, "s": "later"}]


def test_columns_that_a_computing_engine_would_lose_are_kept_and_no_others() -> None:
    options = {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "fields.s.aggregate-function": "last_value",
        "fields.r.aggregate-function": "last_non_null_value",
    }
    table = lab_of("aggregation", **options).open()
    table.upsert(part(ONE))
    table.upsert(part({"id": 1, "n": 5}), missing_columns="keep")
    table.upsert(part({"id": 1, "s": "two"}), missing_columns="keep")
    assert content(table) == [{**ONE, "n": 6, "s": "two"}]
    groups = lab_of("groups", **{"merge-engine": "partial-update", "fields.n.sequence-group": "s"}).open()
    groups.upsert(part(ONE))
    groups.upsert(part({"id": 1, "n": 5}), missing_columns="keep")
    assert content(groups) == [{**ONE, "n": 5}]


@pytest.mark.parametrize("options", [{"deletion-vectors.enabled": "true"}, {"changelog-producer": "lookup"}], ids=str)
def test_rows_that_readers_do_not_see_yet_count(options: dict[str, str]) -> None:
    table = lab_of(f"no_progress-{'-'.join(options)}", **options, **{"write-only": "true"}).open()
    table.upsert(part(ONE))
    table.upsert(part({**ONE, "s": "no_progress"}))
    table.upsert(part({"id": 1, "n": 5}), missing_columns="keep")
    table.alter(ts.SetOption("write-only", "false")).compact(full=True)
    assert table.refresh().scan().to_arrow().to_pylist() == [{**ONE, "n": 5, "s": "no_progress"}]


def test_an_input_changelog_has_to_be_complete() -> None:
    table = lab_of("input", **{"changelog-producer": "input"}).open()
    with pytest.raises(ts.InvalidInputError, match=r"are its changelog"):
        table.upsert(part({"id": 1, "n": 5}), missing_columns="keep")


def test_an_overwrite_keeps_nothing() -> None:
    table = lab_of("overwrite").open()
    table.upsert(part(ONE))
    table.overwrite(part({"id": 1, "n": 5}))
    assert content(table) == [{"id": 1, "n": 5, "s": None, "r": None}]


@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_an_upsert_that_lands_between_look_up_and_commit_is_kept(bucket: str) -> None:
    lab = lab_of(f"between{bucket}", bucket=bucket)
    lab.open().upsert(part(ONE, {**ONE, "id": 2}))
    with lab.open().new_writer() as writer:
        writer.write(part({"id": 1, "n": 5}, {"id": 2, "n": 5}, {"id": 3, "n": 5}), missing_columns="keep")
        writer.flush()
        lab.open().upsert(part({**ONE, "s": "meanwhile"}, {**ONE, "id": 3, "s": "new meanwhile"}))
        lab.open().compact(full=True)
        lab.open().delete([{"id": 2}])
        landed = writer.commit()
    assert landed is not None and landed.row_change == 1, "two of its three keys were there when it landed"
    assert [(row["id"], row["n"], row["s"]) for row in content(lab.open())] == [
        (1, 5, "meanwhile"), (2, 5, None), (3, 5, "new meanwhile"),
    ]  # fmt: skip


@pytest.mark.parametrize("bucket", ["1", "3", "-1"])
def test_an_upsert_that_wins_the_race_for_the_snapshot_is_kept(bucket: str) -> None:
    """The commit has decided on snapshot N, and loses it to an upsert of the same key, twice."""
    lab = lab_of(f"race{bucket}", bucket=bucket)
    lab.open().upsert(part(ONE))
    slow, faults = lab.faulty()
    lost = iter(["first", "second"])

    def overtake(call: FileCall) -> None:
        if call.path.startswith("snapshot/snapshot-") and (text := next(lost, None)) is not None:
            lab.open().upsert(part({**ONE, "s": text}, {**ONE, "id": 2, "s": text}))

    faults.before(overtake, op="publish_if_absent")
    slow.upsert(part({"id": 1, "n": 5}, {"id": 2, "n": 6}, {"id": 9, "n": 7}), missing_columns="keep")
    assert [(row["id"], row["n"], row["s"]) for row in content(lab.open())] == [(1, 5, "second"), (2, 6, "second"), (9, 7, None)]


@pytest.mark.parametrize("made_anew", [False, True])
def test_what_was_looked_up_in_a_snapshot_that_others_took_back_is_not_kept(made_anew: bool) -> None:
    """Other engines roll back by removing the newest snapshots, and use their ids again."""
    lab = lab_of(f"taken-back-{made_anew}")
    lab.open().upsert(part(ONE))
    last = lab.open().upsert(part({**ONE, "s": "taken back"}))
    assert last is not None
    with lab.open().new_writer() as writer:
        writer.write(part({"id": 1, "n": 5}), missing_columns="keep")
        writer.flush()
        lab.files.delete(f"snapshot/snapshot-{last.id}")
        lab.files.overwrite("snapshot/LATEST", str(last.id - 1).encode())
        if made_anew:
            anew = lab.open().upsert(part({**ONE, "id": 2}))
            assert anew is not None
            assert anew.id == last.id
        writer.commit()
    found = content(lab.open())[0]
    assert (found["id"], found["n"], found["s"]) == (1, 5, "one")


def test_files_whose_keys_nobody_else_wrote_are_not_written_again() -> None:
    lab = lab_of("untouched")
    lab.open().upsert(part(ONE, {**ONE, "id": 5}))
    with lab.open().new_writer() as writer:
        writer.write(part({"id": 1, "n": 5}), missing_columns="keep")
        message = writer.prepare()
        lab.open().upsert(part({**ONE, "id": 5, "s": "elsewhere"}))
        landed = commit_messages(lab.open(), [CommitMessage.from_bytes(message.to_bytes())])
    assert landed is not None
    names = {entry.file.file_name for entry in lab.open().context.manifests.delta(landed)}
    assert names == {entry.file.file_name for entry in message.entries}


def test_tasks_of_a_distributed_write_keep_what_lands_before_they_are_committed() -> None:
    lab = lab_of("tasks", bucket="2")
    table = lab.open()
    table.upsert(part(*({**ONE, "id": number} for number in range(6))))
    given = part(*({"id": number, "n": 50} for number in range(6)))
    job = prepare_write(table, TableSpec(location=table.location, storage_options={}), rows=given.schema, missing_columns="keep")
    messages = [write_partition(job, given.slice(start, 3).to_batches(), task) for task, start in enumerate((0, 3))]
    assert all(message.kept for message in messages)
    lab.open().upsert(part({**ONE, "id": 4, "s": "meanwhile"}))
    landed = commit_messages(lab.open(), messages)
    for _ in range(2):
        assert [(row["n"], row["s"]) for row in content(lab.open())] == [(50, "meanwhile" if n == 4 else "one") for n in range(6)]
        assert commit_messages(lab.open(), messages) == landed


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(8))
def test_random_partial_rows_and_writers_agree_with_a_dict(seed: int) -> None:
    chance = random.Random(seed)
    options = chance.choice([{}, {"deletion-vectors.enabled": "true"}, {"changelog-producer": "lookup"}, {"bucket": "-1"}])
    lab = lab_of(f"model-{seed}", **options, **{"write-buffer-size": chance.choice(["200 b", "64 mb"])})
    stored: dict[int, dict[str, Any]] = {}
    names = ["n", "s", "r"]
    counted = 0

    def rows(keys: list[int], columns: list[str]) -> list[dict[str, Any]]:
        made = {"n": lambda: chance.randrange(99), "s": lambda: chance.choice("abc"), "r": lambda: ONE["r"]}
        return [{"id": key, **{name: made[name]() for name in columns}} for key in keys]

    def drawn(columns: list[str]) -> list[dict[str, Any]]:
        return rows(chance.sample(range(8), chance.randrange(1, 6)), columns)

    def apply(given: list[dict[str, Any]]) -> None:
        for row in given:
            stored[row["id"]] = {**dict.fromkeys(("id", *names)), **stored.get(row["id"], {}), **row}

    for _ in range(12):
        with lab.open().new_writer() as writer:
            pending = [drawn(chance.sample(names, chance.randrange(0, 4)) or ["n"]) for _ in range(chance.randrange(1, 4))]
            if options.get("bucket") == "-1":
                # Files that lack different things cannot be moved to other buckets together.
                pending = pending[:1]
            for given in pending:
                columns = [field.name for field in SCHEMA if field.name in given[0]]
                writer.write(part(*({name: row[name] for name in columns} for row in given)), missing_columns="keep")
            if chance.random() < 0.3:
                writer.flush()
            if chance.random() < 0.5:
                other = drawn(names)
                lab.open().upsert(part(*other))
                apply(other)
            if stored and chance.random() < 0.3:
                gone = chance.choice(sorted(stored))
                lab.open().delete([{"id": gone}])
                del stored[gone]
            landed = writer.commit()
        before = len(stored)
        for given in pending:
            apply(given)
        assert landed is not None
        assert landed.row_change in (None, len(stored) - before) and landed.rows in (None, len(stored))
        counted += landed.row_change is not None
        if chance.random() < 0.3:
            lab.open().compact(full=True)
    assert content(lab.open()) == [stored[key] for key in sorted(stored)]
    # Readers of a table with deletion vectors see the rows after a compaction only.
    assert (counted > 0) is ("deletion-vectors.enabled" not in options)


def test_rows_of_a_task_keep_what_an_earlier_task_of_the_same_write_gives(tmp_path: Any) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema=SCHEMA, primary_key=["id"])
    table.upsert(part({**ONE, "s": "old"}))
    job = prepare_write(table, TableSpec(location=table.location, storage_options={}), missing_columns="keep")
    tasks = [part({**ONE, "s": "new"}, {**ONE, "id": 9, "s": "new"}), part({"id": 1, "n": 7}, {"id": 9, "n": 7})]
    commit_messages(table, [write_partition(job, rows.to_batches(), task) for task, rows in enumerate(tasks)])
    assert [(row["id"], row["n"], row["s"]) for row in content(table)] == [(1, 7, "new"), (9, 7, "new")]
