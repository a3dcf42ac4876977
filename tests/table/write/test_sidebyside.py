"""Buckets are written and compacted, and splits read, in several threads: rows are in order, failures leave nothing."""

from collections.abc import Iterator
from itertools import count
from threading import Barrier
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore import inorder
from tablestore.errors import StorageError
from tablestore.io.memory import MemoryFileStore
from tablestore.store.compact import bucketcompaction
from tablestore.store.message import CommitMessage
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import Split
from tablestore.store.write.datawriter import DataWriter
from tablestore.table.upkeep import compaction
from tablestore.testing.lab import COLUMNS, Lab

_NAMES = count()
OPTIONS = {"write-only": "true", "bucket": "5"}


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads, however little there is to do."""
    cores = pa.cpu_count()
    pa.set_cpu_count(2)
    monkeypatch.setattr(inorder, "_LEAST_BYTES", 0)
    yield
    pa.set_cpu_count(cores)


def _rows(version: int, rows: int = 6_000) -> pa.Table:
    """Rows of a few thousand keys in random order, several of them twice."""
    keys = np.random.default_rng(version).integers(0, 5_000, rows)
    return pa.table([keys, [f"{version}-{place}" for place in range(rows)]], schema=COLUMNS)


def _lab(**options: str) -> Lab:
    return Lab(MemoryFileStore(f"side-by-side-{next(_NAMES)}"), options=OPTIONS | options)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("producer", ["none", "input"])
def test_threads_write_and_read_the_rows_of_one_thread(producer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together = Barrier(2)
    calls, waited = count(), list[int]()
    written = DataWriter._written

    def met(self: DataWriter, run: object, **options: bool) -> object:
        if next(calls) < 2:
            waited.append(together.wait(20))
        return written(self, run, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(DataWriter, "_written", met)
    lab = _lab(**{"changelog-producer": producer})
    expected: dict[int, str] = {}
    for version in range(3):
        rows = _rows(version)
        lab.open().upsert(rows)
        expected |= dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
    assert sorted(waited) == [0, 1], "two runs were written at once"
    assert lab.audited() == sorted(expected.items(), key=repr)
    assert lab.read() == lab.audited()


@pytest.mark.usefixtures("two_threads")
def test_two_splits_are_read_at_once_and_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _lab()
    for version in range(3):
        lab.open().upsert(_rows(version))
    table = lab.open()
    one_by_one = pa.concat_tables(split.to_reader().read_all() for split in table.scan().splits())
    together = Barrier(2)
    calls, waited = count(), list[int]()
    read = SplitReader.read

    def met(self: SplitReader, split: Split) -> Iterator[pa.RecordBatch]:
        if next(calls) < 2:
            waited.append(together.wait(20))
        return read(self, split)

    monkeypatch.setattr(SplitReader, "read", met)
    assert table.scan().to_arrow().equals(one_by_one)
    assert sorted(waited) == [0, 1]


@pytest.mark.usefixtures("two_threads")
def test_two_buckets_are_compacted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _lab()
    for version in range(3):
        lab.open().upsert(_rows(version))
    before = lab.read()
    together = Barrier(2)
    calls, waited = count(), list[int]()
    run = bucketcompaction.run_compaction

    def met(*arguments: Any, **options: Any) -> CommitMessage:
        if next(calls) < 2:
            waited.append(together.wait(20))
        return run(*arguments, **options)

    monkeypatch.setattr(compaction, "run_compaction", met)
    shown: list[int] = []
    report = lab.open().compact(full=True, progress=lambda what, done, of: shown.append(done))
    assert sorted(waited) == [0, 1]
    assert (report.tasks, report.buckets, len(report.snapshot_ids)) == (5, 5, 1)
    assert shown == sorted(shown)
    assert lab.read() == before == lab.audited()
    assert len(lab.files.names("bucket-0")) == 4, "three files went in, one came out"


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("nth", range(1, 6))
def test_a_failed_compaction_of_threads_leaves_no_file(nth: int) -> None:
    lab = _lab()
    for version in range(3):
        lab.open().upsert(_rows(version))
    before, files = lab.read(), [lab.files.names(f"bucket-{bucket}") for bucket in range(5)]
    table, faults = lab.faulty()
    faults.fail_nth(nth, op="output.close")
    with pytest.raises(StorageError):
        table.compact(full=True)
    assert [lab.files.names(f"bucket-{bucket}") for bucket in range(5)] == files
    assert lab.open().compact(full=True).tasks == 5
    assert lab.read() == before == lab.audited()


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("nth", range(1, 6))
def test_a_failed_write_of_threads_leaves_no_file(nth: int) -> None:
    lab = _lab()
    table, faults = lab.faulty()
    faults.fail_nth(nth, op="output.close")
    with pytest.raises(StorageError), table.new_writer() as writer:
        writer.write(_rows(0))
        writer.commit()
    faults.clear()
    assert [name for bucket in range(5) for name in lab.files.names(f"bucket-{bucket}")] == []
    lab.open().upsert(_rows(1))
    assert lab.read() == lab.audited()
