"""Tables with sidecars: they are written with large manifests, plans are the same with and without, and they go when these go."""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import FormatError, NotFoundError, StorageError
from tablestore.format.binaryrow import encode_row
from tablestore.format.manifest import bucketsums, sidecar
from tablestore.format.manifest.avro import block_places
from tablestore.format.manifest.blockdigests import BlockDigests
from tablestore.format.manifest.entrycolumns import LateColumns, decode_with_records, places_of_records
from tablestore.format.manifest.manifestfile import LEAST_ENTRY_BYTES, entry_bytes
from tablestore.format.manifest.sidecar import SIDECAR_PREFIX
from tablestore.format.paths import manifest_path
from tablestore.format.snapshot import CommitKind
from tablestore.io.local import LocalFileStore
from tablestore.store import manifests as manifests_module
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splits import ColumnSplits
from tablestore.table.inspect.check import check_table
from tablestore.table.read.scan import Scan
from tablestore.table.table import Table
from tablestore.types.filter.filters import parse_filter

FEWEST = 6
FILTERS = ("day = 3", "id = 17", "day = 2 and id > 20", "name >= 'n3' and id < 40", "price > 10", "id in (1, 2, 30)", "day is null")


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests_module, "FEWEST_ENTRIES", FEWEST)
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", FEWEST - 1)
    monkeypatch.setattr(bucketsums, "_FEWEST_FILES_OF_A_ROW", 1)


def create(path: Path, name: str, **options: str) -> Table:
    catalog = ts.open_catalog(path)
    catalog.create_database("d", ignore_if_exists=True)
    keyed = name.startswith("keyed")
    return catalog.create_table(
        f"d.{name}",
        schema="day INT, id BIGINT, price DOUBLE, name STRING",
        primary_key=["day", "id"] if keyed else (),
        partition_by=["day"],
        options={"bucket": "1" if keyed else "-1", "manifest.merge-min-count": "3", "write-only": "true", **options},
    )


def rows(ids: range, rng: random.Random) -> pa.Table:
    return pa.table(
        {
            "day": pa.array([n % 5 for n in ids], pa.int32()),
            "id": pa.array(list(ids), pa.int64()),
            "price": pa.array([rng.uniform(0, 20) for _ in ids]),
            "name": [f"n{n % 9}" for n in ids],
        }
    )


def fill(table: Table, seed: int = 1, commits: int = 16) -> None:
    rng = random.Random(seed)
    for commit in range(commits):
        write = table.upsert if table.primary_key else table.append
        write(rows(range(commit * 8, commit * 8 + 8), rng))


def sidecars(table: Table) -> list[Path]:
    return sorted(Path(table.location).glob(f"manifest/{SIDECAR_PREFIX}*"))


def plan(table: Table, text: str | None) -> tuple[list[str], list[dict[str, object]]]:
    table = ts.open_table(table.location)
    found = plan_scan(
        table.context, table.context.snapshots.latest(), None if text is None else parse_filter(text, table.context.schema.fields)
    )
    rows = table.scan(filter=text).to_arrow().to_pylist()
    return sorted(file.file_name for file in found.files), sorted(rows, key=repr)


def plans(table: Table) -> Iterator[tuple[list[str], list[dict[str, object]]]]:
    yield from (plan(table, text) for text in (*FILTERS, None))
    opened = ts.open_table(table.location)
    listed = [sorted(rows.to_pylist(), key=repr) for rows in (opened.files(), opened.partitions())]
    yield [str(opened.scan().count())], [row for rows in listed for row in rows]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("name", ["keyed", "append"])
def test_plans_are_the_same_with_without_and_with_other_sidecars(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, name)
    fill(table)
    expected = list(plans(table))
    paths = sidecars(table)
    manifests = {path.name for path in Path(table.location).glob("manifest/manifest-*")}
    assert len(paths) > 2 and all(path.name.removeprefix(SIDECAR_PREFIX) in manifests for path in paths)
    reads = []
    read = manifests_module.open_sidecar
    monkeypatch.setattr(manifests_module, "open_sidecar", lambda *given: reads.append(given) or read(*given))
    assert list(plans(table)) == expected and reads
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert list(plans(table)) == expected, "those of other manifests"
    rng = random.Random(3)
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content[: rng.randrange(len(content))])
    assert list(plans(table)) == expected, "cut"
    for path in paths:
        path.unlink()
    assert list(plans(table)) == expected, "removed"
    assert check_table(ts.open_table(table.location).context) == ()


@pytest.mark.deep
def test_columns_of_a_table_without_sidecars_are_kept_on_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path / "t", "append")
    fill(table)
    for path in sidecars(table):
        path.unlink()
    monkeypatch.setenv("TABLESTORE_CACHE_DIR", "off")
    expected = list(plans(table))
    monkeypatch.setenv("TABLESTORE_CACHE_DIR", str(tmp_path / "cache"))
    assert list(plans(table)) == expected
    decoded = []
    decode = manifests_module.decode_manifests
    monkeypatch.setattr(manifests_module, "decode_manifests", lambda some: decode(decoded.append(one[0]) or one for one in some))
    assert list(plans(table)) == expected and decoded == [], "a second process starts warm"
    for path in (tmp_path / "cache" / "tablestore-manifests").iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    assert list(plans(table)) == expected and decoded, "damaged"
    count = len(decoded)
    assert list(plans(table)) == expected and len(decoded) == count, "and kept anew"


def test_what_is_kept_on_the_machine_is_not_held_in_memory_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path / "t", "append")
    fill(table)
    for path in sidecars(table):
        path.unlink()
    folder = tmp_path / "cache"
    monkeypatch.setenv("TABLESTORE_CACHE_DIR", str(folder))

    def held() -> int:
        context = ts.open_table(table.location).context
        manifests = context.manifests.all_manifests(context.snapshots.latest())
        deque(context.manifests.each(manifests, lambda columns: len(columns)), maxlen=0)
        return len(context.manifests._decoded.columns._values)

    assert held() == 0 and list((folder / "tablestore-manifests").iterdir())
    for path in (folder / "tablestore-manifests").iterdir():
        path.unlink()
    (folder / "tablestore-manifests").rmdir()
    (folder / "tablestore-manifests").write_text("a file in the place of the folder")
    assert held() > 0, "what could not be kept there"


def test_an_error_of_what_keeps_columns_behind_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path / "t", "append")
    fill(table)
    for path in sidecars(table):
        path.unlink()
    monkeypatch.setenv("TABLESTORE_CACHE_DIR", str(tmp_path / "cache"))

    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(manifests_module, "encode_sidecar", broken)
    with pytest.raises(RuntimeError, match="planted"):
        plan(table, "day = 3")


@pytest.mark.deep
def test_a_store_that_does_not_give_sidecars_is_asked_for_the_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path, "keyed")
    fill(table)
    expected = list(plans(table))

    def busy(*_: object) -> None:
        raise StorageError("the store answered 503")

    monkeypatch.setattr(manifests_module, "open_sidecar", busy)
    assert list(plans(table)) == expected


@pytest.mark.deep
def test_a_sidecar_that_goes_while_a_handle_is_open_is_not_missed(tmp_path: Path) -> None:
    table = create(tmp_path, "keyed")
    fill(table)
    expected = list(plans(table))
    opened = ts.open_table(table.location)
    warm = opened.context
    plan_scan(warm, warm.snapshots.latest(), parse_filter("id = 1000", warm.schema.fields))
    for path in sidecars(table):
        path.unlink()
    for text, (names, kept) in zip(FILTERS, expected, strict=False):
        planned = plan_scan(warm, warm.snapshots.latest(), parse_filter(text, warm.schema.fields))
        assert sorted(file.file_name for file in planned.files) == names
        assert sorted(opened.scan(filter=text).to_arrow().to_pylist(), key=repr) == kept
    assert opened.scan().count() == 128 and opened.files().num_rows == table.files().num_rows


def test_expiry_and_orphan_removal_know_them(tmp_path: Path) -> None:
    table = create(tmp_path, "keyed")
    fill(table)
    stray = Path(table.location) / "manifest" / f"{SIDECAR_PREFIX}manifest-00000000-0000-4000-8000-000000000000-0"
    stray.write_bytes(b"of a manifest that is gone")
    before = sidecars(table)
    table.compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    manifests = {path.name for path in Path(table.location).glob("manifest/manifest-*")}
    left = [path for path in sidecars(table) if path != stray]
    assert not set(before) <= {*left, stray} and all(path.name.removeprefix(SIDECAR_PREFIX) in manifests for path in left)
    report = table.remove_orphan_files(timedelta(0), dry_run=False)
    assert [orphan.path for orphan in report.orphans] == [f"manifest/{stray.name}"] and sidecars(table) == left


def test_a_small_commit_writes_none(tmp_path: Path) -> None:
    table = create(tmp_path, "keyed")
    table.upsert(rows(range(3), random.Random(1)))
    assert sidecars(table) == []


def test_a_plan_of_everything_loads_files_late_and_says_when_their_manifests_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, "append")
    fill(table)
    context = ts.open_table(table.location).context
    held = plan_scan(context, context.snapshots.latest())
    assert isinstance(held.splits, ColumnSplits) and isinstance(held.splits.files, LateColumns)
    names = [file.file_name for file in held.files]
    assert held.file_count == len(names) == table.files().num_rows
    for path in sidecars(table):
        path.unlink()
    without = ts.open_table(table.location).context
    assert [file.file_name for file in plan_scan(without, without.snapshots.latest()).files] == names
    assert [file.file_name for file in held.files] == names, "out of the manifests now"
    table.compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    monkeypatch.setattr(context.manifests, "_decoded", manifests_module.DecodedManifests())
    with pytest.raises(NotFoundError, match="the snapshot that names it has expired"):
        tuple(held.splits)


@pytest.fixture
def columns_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns that are read of sidecars."""
    names: list[str] = []
    read = sidecar.SidecarFile.read

    def noted(file: sidecar.SidecarFile, wanted: Sequence[str]) -> pa.Table:
        names.extend(wanted)
        return read(file, wanted)

    monkeypatch.setattr(sidecar.SidecarFile, "read", noted)
    return names


@pytest.mark.parametrize("name", ["keyed", "append"])
def test_a_count_reads_sums_alone(tmp_path: Path, name: str, columns_read: list[str]) -> None:
    table = create(tmp_path, name)
    fill(table)
    columns_read.clear()
    assert ts.open_table(table.location).scan().count() == 128 and columns_read == []
    for path in sidecars(table):
        path.unlink()
    assert ts.open_table(table.location).scan().count() == 128


@pytest.mark.parametrize("name", ["keyed", "append"])
def test_a_count_reads_the_entries_of_buckets_from_which_files_went(tmp_path: Path, name: str, columns_read: list[str]) -> None:
    table = create(tmp_path, name, **{"manifest.merge-min-count": "12"})
    fill(table)
    table.overwrite(rows(range(3, 8, 5), random.Random(3)), {"day": 3})
    columns_read.clear()
    expected = ts.open_table(table.location).to_arrow().num_rows
    assert expected < 128
    columns_read.clear()
    assert ts.open_table(table.location).scan().count() == expected and columns_read


def test_a_plan_of_a_partition_reads_nothing_of_sidecars_but_where_its_records_lie(tmp_path: Path, columns_read: list[str]) -> None:
    table = create(tmp_path, "append")
    fill(table)
    context = ts.open_table(table.location).context
    columns_read.clear()
    assert plan_scan(context, context.snapshots.latest(), parse_filter("day = 9", context.schema.fields)).files == ()
    assert plan_scan(context, context.snapshots.latest(), parse_filter("id = 1000", context.schema.fields)).files == ()
    assert columns_read == []


def publish_one_manifest(table: Table, files_of_a_day: int) -> tuple[str, int, int]:
    """Make a manifest of 500 days the only one of a table; returns its path, and where the block with the files of day 1 begins
    and ends."""
    table.append([{"day": 1, "id": 1, "price": 1.0, "name": "x"}])
    context = table.refresh().context
    (one,) = context.manifests.live(context.snapshots.latest())
    days = [encode_row((day,), [field.type for field in context.schema.partition_fields]) for day in range(500)]
    entries = [
        replace(one, partition=day, file=replace(one.file, file_name=f"data-{number}.parquet"))
        for number, day in enumerate(days * files_of_a_day)
    ]
    written = manifests_module.WrittenMetadata()
    manifests = context.manifests.write_manifests(entries, written)
    context.manifests.flush(written)
    committer(context).commit(
        CommitRequest(
            user="u",
            kind=CommitKind.COMPACT,
            message=context.message(context.snapshots.latest()),
            allow_empty=True,
            replace_manifests=lambda _: manifests,
        )
    )
    path = manifest_path(manifests[0].file_name)
    data = context.files.read(path)
    columns, records = decode_with_records(path, data)
    row = [entry.partition for entry in columns.entries()].index(days[1])
    begin = int(places_of_records(data, records).blocks[row])
    starts = [*block_places(data)[1], len(data)]
    return path, begin, starts[starts.index(begin) + 1]


@pytest.mark.parametrize("digests", [True, False])
def test_few_entries_are_read_from_their_block_which_is_checked(
    tmp_path: Path, digests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, "append")
    if not digests:
        # As earlier versions wrote it.
        monkeypatch.setattr(BlockDigests, "of", lambda *_: None)
    path, begin, end = publish_one_manifest(table, 3)
    whole, read = list[str](), LocalFileStore.read

    def noted(files: LocalFileStore, name: str, **options: int) -> bytes:
        whole.append(name)
        return read(files, name, **options)

    monkeypatch.setattr(LocalFileStore, "read", noted)
    monkeypatch.setenv("TABLESTORE_CACHE_DIR", "off")

    def files() -> list[str]:
        context = ts.open_table(table.location).context
        found = plan_scan(context, context.snapshots.latest(), parse_filter("day = 1", context.schema.fields))
        return sorted(file.file_name for file in found.files)

    expected = sorted(f"data-{number}.parquet" for number in (1, 501, 1001))
    assert files() == expected and (path in whole) is not digests
    place = Path(table.location) / path
    data = place.read_bytes()
    for damaged, is_seen in ((begin + 9, True), (end + 9, not digests), (9, True)):
        place.write_bytes(data[:damaged] + bytes([data[damaged] ^ 1]) + data[damaged + 1 :])
        if is_seen:
            with pytest.raises(FormatError, match=place.name):
                files()
        else:
            assert files() == expected
    place.unlink()
    with pytest.raises(NotFoundError, match="is gone"):
        files()


@pytest.mark.parametrize("name", ["keyed", "append"])
@pytest.mark.parametrize("sums", [None, b"AAAA"])
def test_sidecars_without_sums_and_with_other_ones_change_nothing(
    tmp_path: Path, name: str, sums: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = create(tmp_path / "whole", name)
    fill(whole)
    if sums is None:
        monkeypatch.setattr(sidecar, "sum_up", lambda *_: None)
    else:
        monkeypatch.setattr(sidecar, "encode_sums", lambda _: sums)
    other = create(tmp_path / "other", name)
    fill(other)
    assert len(sidecars(other)) == len(sidecars(whole)) > 2
    monkeypatch.setenv("TABLESTORE_CACHE_DIR", "off")
    expected, found = list(plans(whole)), list(plans(other))
    assert [rows for _, rows in found[:-1]] == [rows for _, rows in expected[:-1]] and found[-1][0] == expected[-1][0] == ["128"]
    assert [len(names) for names, _ in found] == [len(names) for names, _ in expected]


@pytest.mark.parametrize("name", ["keyed", "append"])
def test_a_file_that_two_manifests_add_is_an_error_of_a_count_too(tmp_path: Path, name: str) -> None:
    table = create(tmp_path, name)
    fill(table)
    context = ts.open_table(table.location).context
    snapshot = context.snapshots.latest()
    assert snapshot is not None
    listed, written = context.manifests.all_manifests(snapshot), manifests_module.WrittenMetadata()
    again = context.manifests.write_manifests(context.manifests.live(snapshot)[:FEWEST], written)
    name_of_list, _ = context.manifests.write_list((*listed, *again), 0, written)
    empty, _ = context.manifests.write_list((), 1, written)
    context.manifests.flush(written)
    twice = replace(snapshot, base_manifest_list=name_of_list, delta_manifest_list=empty)
    with pytest.raises(FormatError, match="found it added twice"):
        Scan(context, twice, ("id",), None).count()


def test_whether_a_large_manifest_is_full_is_known_without_its_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path, "append")
    fill(table)
    manifests = ts.open_table(table.location).context.manifests
    snapshot = ts.open_table(table.location).context.snapshots.latest()
    assert snapshot is not None
    largest = max(manifests.all_manifests(snapshot), key=lambda one: one.num_added)
    size = sum(map(entry_bytes, manifests.read_manifest(largest.file_name)))
    monkeypatch.setattr(manifests_module, "decode_manifest", pytest.fail)
    for most, is_full in ((size // 8, True), (size * 9, False), (3 * largest.num_added * LEAST_ENTRY_BYTES - 3, True)):
        monkeypatch.setattr(manifests_module, "MANIFEST_BYTES", most)
        assert ts.open_table(table.location).context.manifests.is_full(largest) == is_full
    monkeypatch.setattr(manifests_module.Manifests, "_read", pytest.fail)
    assert ts.open_table(table.location).context.manifests.is_full(replace(largest, file_size=size * 9))
