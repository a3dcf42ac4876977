"""Postponed buckets (``bucket = -2``): rows wait in a folder, and a compaction brings them into buckets."""

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.snapshot import CommitKind
from tablestore.io.local import LocalFileStore
from tablestore.store.compact.postpone import first_bucket_count
from tablestore.store.context import open_context
from tablestore.table.inspect.check import check_table
from tablestore.table.table import Table
from tablestore.testing.auditor import Auditor
from tablestore.testing.files import Faults, FaultyFileStore
from tests.support.commitrules.scenes import once

EXPECTED = [(i, *((i, f"v{i}", i) if i != 2 else (22, "upd", 7))) for i in range(6)]


@pytest.fixture
def path(tmp_path: Path, project: Path) -> Path:
    """A copy of the golden table: two commits into the postponed bucket."""
    target = tmp_path / "shop.db" / "t"
    shutil.copytree(project / "tests" / "golden" / "paimon" / "py_pk_postpone", target)
    return target


def rows(path: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in ts.open_table(str(path)).scan().to_arrow().to_pylist())


def test_a_compaction_makes_postponed_rows_visible_the_later_commit_winning(path: Path) -> None:
    table = ts.open_table(str(path))
    assert rows(path) == []
    report = table.compact()
    assert report.files_read == 2 and report.buckets == 1
    assert rows(path) == EXPECTED
    snapshot = table.snapshots()[2]
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert {file.bucket[1] for file in Auditor(LocalFileStore(str(path))).live_files()} == {0}
    assert table.compact().tasks == 0
    table.compact(full=True)
    assert rows(path) == EXPECTED


def test_the_option_says_how_many_buckets_a_partition_gets(path: Path) -> None:
    schema = path / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"bucket": "-2"', '"bucket": "-2", "postpone.default-bucket-num": "3"'))
    table = ts.open_table(str(path))
    table.compact()
    live = Auditor(LocalFileStore(str(path))).live_files()
    assert len({file.bucket[1] for file in live}) > 1
    assert rows(path) == EXPECTED
    assert [row for i in range(6) for row in table.scan(filter=f"id = {i}").to_arrow().column("id").to_pylist()] == list(range(6))


def test_of_two_compactions_at_once_one_brings_the_rows(path: Path) -> None:
    faults = Faults()
    store = LocalFileStore(str(path))
    slow = Table(open_context(FaultyFileStore(store, faults)), "slow")
    once(faults, "before", "publish_if_absent", lambda: ts.open_table(str(path)).compact())
    report = slow.compact()
    assert report.dropped == 1
    assert rows(path) == EXPECTED
    live = Auditor(store).live_files()
    assert sum(file.record["_ROW_COUNT"] for file in live) == 6
    assert sorted(p.name for p in path.glob("bucket-0/*")) == sorted(Path(file.path).name for file in live)


POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "3"}


def created(where: Path, columns: str = "id bigint, note string", **options: str) -> Table:
    catalog = ts.open_catalog(str(where))
    catalog.create_database("shop", ignore_if_exists=True)
    types = {"bigint": pa.int64(), "string": pa.string()}
    schema = pa.schema([(name, types[kind]) for name, kind in (column.split() for column in columns.split(", "))])
    chosen = {key.replace("__", "."): value for key, value in options.items()}
    return catalog.create_table("shop.t", schema=schema, primary_key=["id"], options={**POSTPONED, **chosen})


def contents(table: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def waiting(table: Table) -> list[Any]:
    context = table.refresh().context
    return [entry for entry in context.manifests.live(context.snapshots.latest()) if entry.bucket == -2]


def test_our_rows_wait_in_the_folder_that_other_engines_look_into(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.upsert({"id": [2, 1, 2], "note": ["a", "b", "c"]})
    table.upsert({"id": [2, 3], "note": ["d", "e"]})
    table.delete({"id": [1]})
    assert contents(table) == [] and table.scan().count() == 0
    entries = waiting(table)
    assert [(entry.total_buckets, entry.file.level, entry.file.row_count) for entry in entries] == [
        (-2, 0, 2),
        (-2, 0, 2),
        (-2, 0, 1),
    ]
    assert {(entry.file.min_sequence_number, entry.file.value_stats_cols) for entry in entries} == {(-1, ())}
    assert all(entry.file.file_name.startswith("data--u-tablestore-s-0-w-") for entry in entries)
    folder = Path(table.location) / "bucket-postpone"
    assert sorted(path.name for path in folder.iterdir()) == sorted(entry.file.file_name for entry in entries)
    report = table.compact()
    assert report.files_read == 3 and waiting(table) == []
    assert contents(table) == [(2, "d"), (3, "e")] and table.scan().count() == 2
    assert check_table(table.refresh().context, deep=True) == ()


def test_files_of_one_writer_are_created_one_after_the_other(tmp_path: Path) -> None:
    table = created(tmp_path)
    with table.new_writer() as writer:
        for number in range(8):
            writer.write({"id": [1], "note": [str(number)]})
            writer.flush()
        writer.commit()
    times = [entry.file.creation_time_millis for entry in waiting(table)]
    assert len(set(times)) == 8 and times == sorted(times)
    table.compact()
    assert contents(table) == [(1, "7")]


ENGINES: list[dict[str, str]] = [
    {},
    {"sequence.field": "n"},
    {"merge-engine": "first-row"},
    {"merge-engine": "partial-update"},
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "fields.s.aggregate-function": "listagg",
        "fields.s.ignore-retract": "true",
    },
    {"deletion-vectors.enabled": "true"},
    {"changelog-producer": "lookup"},
]


@pytest.mark.parametrize(
    "options",
    [pytest.param(options, marks=pytest.mark.deep if number not in (0, 4, 5) else ()) for number, options in enumerate(ENGINES)],
    ids=lambda options: ",".join(options.values()) or "plain",
)
def test_rows_that_waited_combine_as_those_that_did_not(tmp_path: Path, options: dict[str, str]) -> None:
    rng = random.Random(str(options))
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    tables = [
        catalog.create_table(f"d.t{number}", schema=schema, primary_key=["id"], options={**options, **buckets})
        for number, buckets in enumerate(({"bucket": "3"}, POSTPONED))
    ]
    engine = options.get("merge-engine")
    takes_deletes = engine == "aggregation" or "remove" in str(options) or not (engine or "sequence.field" in options)
    kinds = ["+I", "+U", "-D"] if takes_deletes else ["+I"]
    for _ in range(2):
        batches = [
            pa.table(
                {
                    "id": [rng.randrange(6) for _ in range(9)],
                    "n": pa.array([rng.randrange(9) for _ in range(9)], pa.int64()),
                    "s": pa.array([rng.choice([None, "a", "b"]) for _ in range(9)], pa.string()),
                    "_row_kind": [rng.choice(kinds) for _ in range(9)],
                }
            )
            for _ in range(3)
        ]
        for table in tables:
            for batch in batches:
                table.write_changes(batch)
        tables[1].compact()
        assert contents(tables[0]) == contents(tables[1])


def test_statements_that_read_what_they_change_see_rows_that_wait(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.upsert({"id": [1, 2, 3], "note": ["a", "b", "c"]})
    table.update({"note": "note || 'x'"}, "id < 3")
    table.update({"note": "note || 'y'"}, "note = 'ax'")
    table.delete("note = 'c'")
    table.merge({"id": [2, 9], "note": ["m", "n"]}, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert len(waiting(table)) == 1, "what the last one wrote"
    table.compact()
    assert contents(table) == [(1, "axy"), (2, "m"), (9, "n")]


def test_a_row_that_comes_to_wait_meanwhile_makes_a_statement_run_again(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.upsert({"id": [1], "note": ["a"]})
    table.compact()
    faults = Faults()
    slow = Table(open_context(FaultyFileStore(LocalFileStore(table.location), faults)), "slow")
    once(faults, "before", "publish_if_absent", lambda: table.upsert({"id": [1], "note": ["new"]}))
    slow.update({"note": "note || 'x'"}, "id = 1")
    table.compact()
    assert contents(table) == [(1, "newx")]


def test_a_writer_that_was_overtaken_does_not_write_its_files_again(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.upsert({"id": [1], "note": ["a"]})
    table.compact()
    with table.new_writer() as writer:
        writer.write({"id": [1], "note": ["late"]})
        writer.flush()
        table.upsert({"id": [1], "note": ["early"]})
        table.compact()
        writer.commit()
    table.compact()
    assert contents(table) == [(1, "late")], "the later commit wins"
    assert len(list((Path(table.location) / "bucket-postpone").iterdir())) == 3


def test_an_overwrite_takes_rows_away_that_wait(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.upsert({"id": [1], "note": ["a"]})
    table.compact()
    table.upsert({"id": [2], "note": ["b"]})
    table.overwrite({"id": [3], "note": ["c"]})
    assert contents(table) == []
    table.compact()
    assert contents(table) == [(3, "c")]


def test_changes_are_followed_when_rows_get_their_buckets(tmp_path: Path) -> None:
    table = created(tmp_path)
    for note in ("a", "b"):
        table.upsert({"id": [1], "note": [note]})
        assert table.changes(from_snapshot=table.snapshots()[-1].id - 1).to_arrow().num_rows == 0
        start = table.snapshots()[-1].id
        table.compact()
        kinds = table.changes(from_snapshot=start).to_arrow().column("_row_kind").to_pylist()
        assert kinds == ["+I" if note == "a" else "+U"] or kinds == ["-U", "+U"]


def test_a_snapshot_with_waiting_rows_comes_back(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.upsert({"id": [1], "note": ["a"]})
    first = table.snapshots()[-1].id
    table.create_tag("then")
    table.compact()
    table.upsert({"id": [1], "note": ["b"]})
    table.compact()
    assert contents(table) == [(1, "b")]
    table.rollback_to(first)
    assert contents(table) == []
    assert all("-s-0-w-" in entry.file.file_name for entry in waiting(table))
    table.compact()
    assert contents(table) == [(1, "a")]


def test_files_that_nobody_names_are_removed_and_waiting_ones_stay(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.upsert({"id": [1], "note": ["a"]})
    [entry] = waiting(table)
    folder = Path(table.location) / "bucket-postpone"
    stray = folder / entry.file.file_name.replace("-0.", "-1.")
    shutil.copy(folder / entry.file.file_name, stray)
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    report = table.remove_orphan_files(dry_run=False)
    assert [Path(orphan.path).name for orphan in report.orphans] == [stray.name]
    assert [path.name for path in folder.iterdir()] == [entry.file.file_name]


@pytest.mark.parametrize(
    ("options", "files", "count"),
    [
        ({}, [(10, 100)], 1),
        ({"postpone.default-bucket-num": "4", "postpone.target-row-num-per-bucket": "1"}, [(10, 100)], 4),
        ({"postpone.target-row-num-per-bucket": "4", "postpone.target-size-per-bucket": "1b"}, [(5, 100), (4, 1)], 3),
        ({"postpone.target-row-num-per-bucket": "100"}, [(5, 100)], 1),
        ({"postpone.target-size-per-bucket": "50b"}, [(5, 100), (4, 1)], 3),
    ],
)
def test_a_partition_gets_as_many_buckets_as_the_options_say(
    tmp_path: Path, options: dict[str, str], files: list[tuple[int, int]], count: int
) -> None:
    table = created(tmp_path)
    table.upsert({"id": [1], "note": ["a"]})
    [entry] = waiting(table)
    metas = [replace(entry.file, row_count=rows, file_size=size) for rows, size in files]
    assert first_bucket_count(options, metas) == count


def test_what_looks_stored_rows_up_is_refused_by_name(tmp_path: Path) -> None:
    table = created(tmp_path, "id bigint, n bigint, note string", sequence__field="n")
    with pytest.raises(ts.UnsupportedError, match=r"postpones the choice of buckets .* keep the values"):
        table.upsert({"id": [1], "n": [1]}, missing_columns="keep")
    with pytest.raises(ts.UnsupportedError, match="takes the order"):
        table.delete({"id": [1]})
    with pytest.raises(ts.UnsupportedError, match="takes the order"):
        table.write_changes({"id": [1], "n": pa.array([None], pa.int64()), "note": ["a"], "_row_kind": ["-D"]})
    with pytest.raises(ts.UnsupportedError, match="only a fixed number"):
        table.rescale(2)
    assert table.snapshots() == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changelog-producer": "input"}, "changelog-producer = input"),
        ({"log.system": "kafka", "log.kafka.bootstrap.servers": "localhost:9"}, "log.system = kafka"),
    ],
)
def test_tables_whose_rows_need_a_bucket_at_once_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(ts.UnsupportedError, match=message):
        created(tmp_path, **{key.replace(".", "__"): value for key, value in options.items()})
