"""Postponed buckets: written by others, brought into buckets by a compaction."""

import shutil
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.format.snapshot import CommitKind
from tablestore.io.local import LocalFileStore
from tablestore.store.context import open_context
from tablestore.table.table import Table
from tablestore.testing.files import Faults, FaultyFileStore
from tests.support.auditor import Auditor
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
