"""What looks at all files makes objects of those alone that it changes."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.io.memory import MemoryFileStore
from tablestore.store import manifests as manifests_module
from tablestore.store.filesums import summed_files
from tablestore.table.inspect.check import check_table
from tablestore.testing.lab import Lab
from tests.format.manifest.test_livecolumns import EntryKind, entry

DAYS = 40


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", 3)


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[ManifestEntry]:
    """All entries that become objects from here on."""
    made: list[ManifestEntry] = []
    read, decode = EntryColumns.entries, manifests_module.decode_manifest

    def noted(columns: EntryColumns) -> tuple[ManifestEntry, ...]:
        made.extend(read(columns))
        return tuple(made[len(made) - len(columns) :])

    monkeypatch.setattr(EntryColumns, "entries", noted)
    monkeypatch.setattr(
        manifests_module, "decode_manifest", lambda *arguments: made.extend(decode(*arguments)) or decode(*arguments)
    )
    return made


@pytest.fixture
def table(tmp_path: Path) -> ts.Table:
    catalog = ts.open_catalog(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "1", "write-only": "true", "partition.expiration-time": "1 d"}
    schema = pa.schema([pa.field("day", pa.date32(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    table = catalog.create_table("d.t", schema, primary_key=["day", "id"], partition_by=["day"], options=options)
    for ids in ([1, 2], [2, 3]):
        rows = [{"day": pa.scalar(day, pa.date32()).as_py(), "id": number} for day in range(DAYS) for number in ids]
        table.upsert(pa.Table.from_pylist(rows, schema))
    return ts.open_table(table.location)


def test_verify_makes_none(table: ts.Table, entries: list[ManifestEntry]) -> None:
    assert check_table(table.context) == () and entries == []
    table.compact(full=True)
    del entries[:]
    assert check_table(ts.open_table(table.location).context) == () and entries == []


def test_verify_reads_each_manifest_once(table: ts.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    names = list[str]()
    check = manifests_module.Manifests.check
    monkeypatch.setattr(manifests_module.Manifests, "check", lambda self, one: names.append(one.file_name) or check(self, one))
    table.create_tag("here")
    assert check_table(ts.open_table(table.location).context) == ()
    assert len(names) == len(set(names)) == 2


def test_the_expiry_of_partitions_makes_those_of_the_files_that_go(table: ts.Table, entries: list[ManifestEntry]) -> None:
    assert table.expire_partitions(dry_run=True).files == 2 * DAYS and entries == []
    report = table.drop_partitions([{"day": "1970-01-03"}])
    assert (report.files, report.rows) == (2, 4) and 0 < len(entries) <= 6


def test_a_rollback_makes_those_of_the_files_that_come_back_or_go(table: ts.Table, entries: list[ManifestEntry]) -> None:
    before = sorted(table.scan().to_arrow().to_pylist(), key=repr)
    table.drop_partitions([{"day": "1970-01-03"}])
    table = ts.open_table(table.location)
    del entries[:]
    table.rollback_to(2)
    assert 0 < len({one.file.file_name for one in entries}) <= 4
    assert sorted(ts.open_table(table.location).scan().to_arrow().to_pylist(), key=repr) == before


@pytest.mark.parametrize("times", [(None, 5), (5, None), (None, None)])
def test_a_partition_with_a_file_of_unknown_time_has_none_whichever_comes_first(times: tuple[int | None, int | None]) -> None:
    files = [entry(EntryKind.ADD, 0, 0, file_name=f"{time}.parquet", creation_time_millis=time) for time in times]

    class Listed:
        def live_parts(self, _: object, names: Any, value: Any) -> list[Any]:
            return [value(EntryColumns.of([file], names(None))) for file in files]

    (sums,) = summed_files(Listed(), None, "partition")  # type: ignore[arg-type]
    assert not sums.is_dated and sums.newest_millis == max((time for time in times if time), default=None)


def test_snapshots_that_expire_while_they_are_streamed_are_left_out() -> None:
    lab = Lab(MemoryFileStore("streamed"))
    for number in range(5):
        lab.write_new((number, "a"))
    stream = lab.open().context.snapshots.stream()
    assert next(stream).id == 1
    lab.write_new((9, "b"))
    lab.expire(keep=3)
    assert [snapshot.id for snapshot in stream] == [4, 5]
    stream = lab.open().context.snapshots.stream()
    assert next(stream).id == 4
    for number in range(2):
        lab.write_new((number, "c"))
    lab.expire(keep=1)
    assert [snapshot.id for snapshot in stream] == [8], "all that were listed have gone"
