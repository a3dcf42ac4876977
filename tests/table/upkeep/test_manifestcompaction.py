"""Manifests that are rewritten say the same as before, in an order by which plans skip them."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import ConflictError, FormatError, StorageError
from tablestore.format.binaryrow import decode_row, encode_row
from tablestore.format.manifest.entrycolumns import EntryColumns, decode_with_records, encode_records
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry, decode_manifest
from tablestore.format.manifest.manifestlist import ManifestFile, summarise, summarise_columns
from tablestore.format.manifest.sidecar import SIDECAR_PREFIX
from tablestore.format.stats import ColumnStats, decode_stats, encode_stats
from tablestore.io.s3 import S3FileStore
from tablestore.store import manifests as manifests_module
from tablestore.store.commit import clustering
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.postcommit import read_undone
from tablestore.store.scan.scanplan import plan_scan
from tablestore.table.inspect.check import check_table
from tablestore.table.table import Table
from tablestore.table.upkeep import aftercommit, manifestcompaction
from tablestore.types.filter.filters import parse_filter
from tests.store.test_sidecars import create, fill, plan, plans, rows, sidecars
from tests.support.s3 import FakeS3


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests_module, "FEWEST_ENTRIES", 3)
    monkeypatch.setattr(manifestcompaction, "FEWEST_ENTRIES", 3)
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", 2)
    monkeypatch.setattr(clustering, "_FEWEST_ENTRIES", 6)
    # A few entries a manifest.
    monkeypatch.setattr(clustering, "_MANIFEST_BYTES", 2_000)
    monkeypatch.setattr(clustering, "_RUN_MANIFEST_BYTES", 2_000)


def live(table: Table) -> list[str]:
    table = ts.open_table(table.location)
    return sorted(map(repr, table.context.manifests.live(table.context.snapshots.latest())))


def names(table: Table) -> list[str]:
    context = ts.open_table(table.location).context
    return [manifest.file_name for manifest in context.manifests.all_manifests(context.snapshots.latest())]


def read_for(table: Table, text: str) -> int:
    context = ts.open_table(table.location).context
    return plan_scan(context, context.snapshots.latest(), parse_filter(text, context.schema.fields)).manifests_read


@pytest.mark.deep
@pytest.mark.parametrize("name", ["keyed", "append"])
def test_it_says_the_same_and_plans_of_a_partition_read_less(tmp_path: Path, name: str) -> None:
    table = create(tmp_path, name, **{"manifest.merge-min-count": "1000"})
    fill(table)
    expected, files, before = list(plans(table)), live(table), read_for(table, "day = 3")
    snapshot = table.compact_manifests()
    assert snapshot is not None and snapshot.commit_kind == "COMPACT" and snapshot.delta_record_count == 0
    assert list(plans(table)) == expected and live(table) == files
    assert read_for(table, "day = 3") < before
    assert check_table(ts.open_table(table.location).context) == ()
    assert table.compact_manifests() is None, "nothing is left to do"
    fill(table, seed=2, commits=3)
    assert len(live(table)) > len(files)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("name", ["keyed", "append"])
def test_groups_that_do_not_fit_into_memory_together_become_one_run(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clustering, "MOST_ENTRIES", 16)
    monkeypatch.setattr(clustering, "_WINDOW_ENTRIES", 5)
    table = create(tmp_path, name, **{"manifest.merge-min-count": "1000"})
    fill(table, commits=14)
    monkeypatch.setattr(clustering, "_MOST_RUNS", 1000)
    table.compact_manifests()
    monkeypatch.setattr(clustering, "_MOST_RUNS", 1)
    expected, files, before = list(plans(table)), live(table), read_for(table, "day = 3")
    assert before > 2, "a group each has the partition"
    monkeypatch.setattr(clustering, "MOST_ENTRIES", 60)
    assert table.compact_manifests() is not None
    assert list(plans(table)) == expected and live(table) == files
    context = ts.open_table(table.location).context
    listed = context.manifests.all_manifests(context.snapshots.latest())
    days = [decode_stats(one.partition_stats, [field.type for field in context.schema.partition_fields])[0] for one in listed]
    assert all(one.max <= following.min for one, following in pairwise(days)), "in order"
    assert len(listed) > 2 and read_for(table, "day = 3") < before
    assert check_table(context) == ()
    assert table.compact_manifests() is None, "nothing is left to do"


@pytest.mark.deep
def test_a_plan_of_one_partition_takes_few_requests_of_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "_MANIFEST_BYTES", 20_000)
    monkeypatch.setattr(clustering, "_RUN_MANIFEST_BYTES", 20_000)
    monkeypatch.setattr(clustering, "MOST_ENTRIES", 150)
    table = create(tmp_path, "append", **{"manifest.merge-min-count": "1000"})
    fill(table, commits=20)
    monkeypatch.setattr(clustering, "_MOST_BYTES", 20_000)
    expected = plan(table, "day = 3")[0]
    with FakeS3() as s3:
        bucket = s3.make_bucket("tables")

        def requests() -> list[str]:
            store = S3FileStore(f"{bucket}/{len(list(table.snapshots()))}", s3.options)
            for path in (
                path for folder in ("manifest", "schema", "snapshot") for path in Path(table.location).glob(f"{folder}/*")
            ):
                store.overwrite(str(path.relative_to(table.location)), path.read_bytes())
            s3.clear()
            context = ts.open_table(store.root_uri, **s3.options).context
            planned = plan_scan(context, context.snapshots.latest(), parse_filter("day = 3", context.schema.fields))
            assert sorted(file.file_name for file in planned.files) == expected
            return [path for _, path in s3.requests]

        assert len(requests()) > 20, "each commit has all partitions"
        assert table.compact_manifests() is not None
        table = table.refresh()
        asked = requests()
    # Schemas and snapshots are listed, the newest of each and two lists are read, and the manifests that a partition fills.
    assert len(asked) <= 8, asked


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("seed", range(40))
def test_runs_that_are_merged_say_the_same_whatever_they_add_and_delete(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(clustering, "_WINDOW_ENTRIES", rng.randrange(1, 30))
    # Else by buckets.
    is_partitioned = seed % 4 != 3
    table = create(tmp_path, "append")
    table.append([{"day": 1, "id": 1, "price": 1.0, "name": "x"}])
    context = table.refresh().context
    (one,) = context.manifests.live(context.snapshots.latest())
    types = [field.type for field in context.schema.partition_fields] if is_partitioned else []
    store = manifests_module.Manifests(context.files, context.ids, types)
    written, listed, alive = manifests_module.WrittenMetadata(), [], list[ManifestEntry]()
    for number in range(rng.randrange(2, 8)):
        entries = []
        for place in range(rng.randrange(1, 12)):
            if alive and rng.random() < 0.4:
                # Some come back later.
                gone = alive.pop(rng.randrange(len(alive)))
                entries.append(replace(gone, kind=EntryKind.DELETE))
                if rng.random() < 0.3:
                    entries.append(gone)
                    alive.append(gone)
                continue
            partition = encode_row((rng.choice([None, *range(6)]),) if is_partitioned else (), types)
            name = f"data-{number}-{place}.parquet"
            added = replace(one, partition=partition, bucket=rng.randrange(2), file=replace(one.file, file_name=name))
            entries.append(added)
            alive.append(added)
        listed.extend(store.write_manifests(entries, written))
        store.flush(written)
    start = rng.choice([0, rng.randrange(len(listed))])
    group = clustering.merge_runs(listed[start:], store, written, types, is_first=start == 0)
    again = clustering.replace_groups(listed, [group])

    def names(manifests: Sequence[ManifestFile]) -> list[str]:
        live = manifests_module.live_entries(store.read_manifest(manifest.file_name) for manifest in manifests)
        return sorted(entry.file.file_name for entry in live.values())

    assert names(again) == names(listed) == sorted(entry.file.file_name for entry in alive)
    merged = [entry for manifest in group.manifests for entry in store.read_manifest(manifest.file_name)]
    places = [([(day is not None, day) for day in decode_row(entry.partition, types)], entry.bucket) for entry in merged]
    assert places == sorted(places)
    if start == 0:
        assert all(entry.kind is EntryKind.ADD for entry in merged)


def test_a_manifest_with_other_partitions_than_its_list_says_is_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "_WINDOW_ENTRIES", 1)
    table = create(tmp_path, "append", **{"manifest.merge-min-count": "1000"})
    fill(table, commits=3)
    context = table.refresh().context
    store, types = context.manifests, [field.type for field in context.schema.partition_fields]
    listed = list(store.all_manifests(context.snapshots.latest()))
    listed[1] = replace(listed[1], partition_stats=encode_stats([ColumnStats(min=3, max=4, null_count=0)], types))
    with pytest.raises(FormatError, match=f"{listed[1].file_name} to have partitions of the bounds"):
        clustering.merge_runs(listed, store, manifests_module.WrittenMetadata(), types, is_first=True)


def test_a_large_run_waits_until_the_later_ones_have_a_share_of_its_entries(tmp_path: Path) -> None:
    table = create(tmp_path, "append")
    table.append([{"day": 1, "id": 1, "price": 1.0, "name": "x"}])
    context = table.refresh().context
    types = [field.type for field in context.schema.partition_fields]
    (one,) = context.manifests.all_manifests(context.snapshots.latest())

    def run(count: int, low: int = 0, high: int = 9) -> ManifestFile:
        return replace(one, num_added=count, partition_stats=encode_stats([ColumnStats(min=low, max=high, null_count=0)], types))

    assert clustering.pick_runs([run(1000), run(100), run(10)], types) is None, "few enough of each size"
    assert clustering.pick_runs([run(2000), run(200), run(10), run(10)], types) == range(2, 4)
    assert clustering.pick_runs([run(1000), run(100), run(30)], types) == range(3)
    halves = [run(500, 0, 4), run(500, 4, 9)]
    assert clustering.pick_runs([*halves, run(100), run(30)], types) == range(4), "of several manifests"
    assert clustering.pick_runs([*halves, run(900)], types) is None, "two runs are left alone"
    assert clustering.pick_runs([run(200_000), run(40_000), run(30_000)], types) == range(1, 3), "what fits into memory"
    wide = [replace(run(count), file_size=30 * 2**20) for count in (300, 200, 100)]
    assert clustering.pick_runs(wide, types) == range(1, 3), "also in bytes"


@pytest.mark.deep
def test_adds_and_deletes_cancel_and_a_delete_without_its_add_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "_FEWEST_ENTRIES", 10**6)
    table = create(tmp_path, "keyed", **{"manifest.merge-min-count": "1000"})
    fill(table, commits=6)
    table.compact(full=True)
    fill(table, seed=3, commits=6)
    table.compact(full=True)
    files = live(table)
    context = table.refresh().context
    store, types = context.manifests, [field.type for field in context.schema.partition_fields]
    listed = store.all_manifests(context.snapshots.latest())
    for start in (0, 3):
        written = manifests_module.WrittenMetadata()
        group = clustering.rewrite_group(listed[start:], store, written, types, is_first=start == 0)
        again = clustering.replace_groups(listed, [group])
        assert again[:start] == listed[:start]
        assert sorted(map(repr, manifests_module.live_entries(store.read_manifest(m.file_name) for m in again).values())) == files
        deleted = sum(manifest.num_deleted for manifest in group.manifests)
        assert deleted == 0 if start == 0 else deleted > 0
        for manifest in group.manifests:
            entries = store.read_manifest(manifest.file_name)
            assert manifest == summarise(entries, manifest.file_name, manifest.file_size, types)
            assert manifest == summarise_columns(EntryColumns.of(entries), manifest.file_name, manifest.file_size, types)


def test_records_move_as_they_are(tmp_path: Path) -> None:
    table = create(tmp_path, "keyed")
    fill(table, commits=5)
    for path in Path(table.location).glob("manifest/manifest-[0-9a-f]*"):
        columns, records = decode_with_records(path.name, path.read_bytes())
        entries = decode_manifest(path.read_bytes(), path.name)
        assert columns.entries() == entries
        assert decode_manifest(encode_records(records, b"n" * 16), "again") == entries
        assert decode_manifest(encode_records(records.slice(1), b"n" * 16), "again") == entries[1:]


@pytest.mark.deep
def test_other_commits_land_beside_it_and_a_merge_of_the_same_manifests_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, "keyed", **{"manifest.merge-min-count": "1000"})
    fill(table, commits=8)
    other, rewrite = ts.open_table(table.location), clustering.rewrite_group

    def meanwhile(*given: object, **options: object) -> object:
        other.upsert(rows(range(1000, 1003), random.Random(1)))
        return rewrite(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(manifestcompaction, "rewrite_group", meanwhile)
    files = live(table)
    assert table.compact_manifests() is not None
    assert set(files) < set(live(table)) and table.refresh().scan(filter="id >= 1000").count() == 3

    fill(table, seed=5, commits=8)
    done = []

    def rewritten(*given: object, **options: object) -> object:
        if not done:
            done.append(True)
            monkeypatch.setattr(manifestcompaction, "rewrite_group", rewrite)
            other.refresh().compact_manifests()
        return rewrite(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(manifestcompaction, "rewrite_group", rewritten)
    before = {path.name for path in Path(table.location).glob("manifest/*")}
    with pytest.raises(ConflictError, match="no longer in the list"):
        table.compact_manifests()
    after = {path.name for path in Path(table.location).glob("manifest/*")}
    context = ts.open_table(table.location).context
    assert context.manifests.all_manifests(context.snapshots.latest())
    listed = set(names(table))
    assert {name for name in after - before if name.startswith("manifest-") and "list" not in name} <= listed, "its own are gone"


@pytest.mark.deep
def test_a_table_of_another_engine_gets_sidecars(tmp_path: Path) -> None:
    table = create(tmp_path, "append")
    fill(table)
    for path in sidecars(table):
        path.unlink()
    assert table.compact_manifests() is not None and sidecars(table)
    expected = list(plans(table))
    assert expected == list(plans(table)) and table.compact_manifests() is None


@pytest.mark.deep
def test_a_damaged_sidecar_is_written_anew(tmp_path: Path) -> None:
    table = create(tmp_path, "append")
    fill(table)
    table.compact_manifests()
    assert table.compact_manifests() is None
    damaged = next(path for path in sidecars(table) if path.name.removeprefix(SIDECAR_PREFIX) in names(table))
    damaged.write_bytes(damaged.read_bytes()[:-30])
    expected = list(plans(table))
    assert table.compact_manifests() is not None and table.compact_manifests() is None
    assert list(plans(table)) == expected


def test_it_is_called_in_sql(tmp_path: Path) -> None:
    table = create(tmp_path, "append")
    fill(table)
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        env.execute_sql("CALL sys.compact_manifests('d.append')")
    assert table.refresh().snapshots()[-1].commit_kind == "COMPACT"


def test_manifests_without_bounds_are_not_rewritten_for_ever(tmp_path: Path) -> None:
    table = create(tmp_path, "append", **{"manifest.merge-min-count": "1000"})
    for _ in range(8):
        table.append([{"day": None, "id": number, "price": 1.0, "name": "x"} for number in range(3)])
    table.compact_manifests()
    assert table.compact_manifests() is None


def test_a_compaction_that_landed_does_not_fail_because_others_rewrote_the_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, "keyed")
    fill(table, commits=4)

    def stale(*_: object, **options: object) -> None:
        raise StalePlan("others were faster")

    monkeypatch.setattr(aftercommit, "compact_manifests", stale)
    assert table.compact(full=True).snapshot_ids


def test_after_commits_each_run_has_more_entries_than_those_behind_it_and_few_moves_do_it(tmp_path: Path) -> None:
    table = create(tmp_path, "append")
    table.append([{"day": 1, "id": 1, "price": 1.0, "name": "x"}])
    context = table.refresh().context
    types = [field.type for field in context.schema.partition_fields]
    (one,) = context.manifests.all_manifests(context.snapshots.latest())
    days = encode_stats([ColumnStats(min=0, max=9, null_count=0)], types)
    rng = random.Random(5)
    for sizes in ([20_000] * 60, [rng.randrange(2_000, 40_000) for _ in range(60)]):
        runs, moved = list[int](), 0
        for size in sizes:
            runs.append(size)
            listed = [replace(one, num_added=count, file_size=count, partition_stats=days) for count in runs]
            # Whole runs would be of many manifests, which lie side by side.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(clustering, "MOST_ENTRIES", 10**9)
                picked = clustering.pick_later_runs(listed, types)
            if picked is not None:
                moved += sum(runs[picked.start :])
                runs[picked.start :] = [sum(runs[picked.start :])]
            assert len(runs) <= 2 or all(run > sum(runs[place + 1 :]) for place, run in enumerate(runs[:-1])), runs
        assert 1 < len(runs) <= 6 and sum(sizes) < moved < 5 * sum(sizes)


@pytest.mark.parametrize("name", ["keyed", "append"])
def test_large_commits_merge_manifests_and_small_ones_do_not(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def filled(path: Path) -> Table:
        table = create(path, name, **{"manifest.merge-min-count": "1000"})
        fill(table, commits=20)
        return table.refresh()

    before = filled(tmp_path / "each for itself")
    monkeypatch.setattr(clustering, "_FEWEST_ENTRIES_OF_LATER", 6)
    table = filled(tmp_path / "merged")
    assert read_for(table, "day = 3") < read_for(before, "day = 3") / 3
    assert [rows for _, rows in plans(table)][:-1] == [rows for _, rows in plans(before)][:-1]
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert kinds.count("APPEND") == 20 and 3 < kinds.count("COMPACT") < 20
    assert check_table(ts.open_table(table.location).context) == ()
    count = len(kinds)
    for number in range(4):
        (table.upsert if table.primary_key else table.append)(rows(range(500 + number, 501 + number), random.Random(1)))
    assert len(table.refresh().snapshots()) == count + 4, "of small commits"


def test_a_large_commit_that_others_merge_beside_it_has_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(clustering, "_FEWEST_ENTRIES_OF_LATER", 6)
    table = create(tmp_path, "append", **{"manifest.merge-min-count": "1000"})
    merge = manifestcompaction.merge_runs
    turns = []

    def meanwhile(*given: object, **options: object) -> object:
        if not turns:
            turns.append("other")
            manifestcompaction.merge_later_runs(ts.open_table(table.location).context)
        return merge(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(manifestcompaction, "merge_runs", meanwhile)
    fill(table, commits=3)
    assert turns and table.refresh().scan().count() == 24
    kinds = [snapshot.commit_kind for snapshot in table.refresh().snapshots()]
    assert kinds == ["APPEND"] * 3 + ["COMPACT"] and caplog.messages == []
    assert check_table(ts.open_table(table.location).context) == ()


def test_a_large_commit_whose_merge_fails_has_landed_and_the_next_one_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(clustering, "_FEWEST_ENTRIES_OF_LATER", 6)
    table = create(tmp_path, "append", **{"manifest.merge-min-count": "1000"})

    def full(*_: object, **__: object) -> None:
        raise StorageError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(manifestcompaction, "merge_runs", full)
        fill(table, commits=3)
    assert "its large manifests were not merged" in caplog.text
    (undone,) = read_undone(table.context.files)
    assert (undone.task, undone.snapshot_id) == ("manifest-merging", 3)
    fill(table.refresh(), seed=2, commits=1)
    assert read_undone(table.context.files) == () and table.refresh().scan().count() == 32
    assert table.refresh().snapshots()[-1].commit_kind == "COMPACT"


def test_postponed_files_stay_in_the_order_of_their_commits(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema=pa.schema([("id", pa.int64())]), primary_key=["id"], options={"bucket": "-2"})
    for number in (3, 1, 2):
        table.upsert({"id": [number]})
    context = table.refresh().context
    store = context.manifests
    entries = [
        replace(entry, file=replace(entry.file, min_sequence_number=number, max_sequence_number=9))
        for entry, number in zip(store.live(context.snapshots.latest()), (5, -1, 0), strict=True)
    ]
    written = manifests_module.WrittenMetadata()
    before = store.write_manifests(entries, written)
    store.flush(written)
    group = clustering.rewrite_group(before, store, written, [], is_first=True)
    store.flush(written)
    again = [entry for manifest in group.manifests for entry in store.read_manifest(manifest.file_name)]
    assert [entry.file.file_name for entry in again] == [entry.file.file_name for entry in entries]
