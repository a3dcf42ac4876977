"""A disk that is full at any moment of a stream's batch: an error of ours, nothing visible, and with room again the batch lands."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.streambatch import StreamBatch, commit_batch
from tablestore.distributed.write import abort_messages, prepare_write, write_partition
from tablestore.io.local import LocalFileStore
from tablestore.store.message import CommitMessage
from tablestore.testing.auditor import Auditor
from tests.distributed.smalldisk import SmallDisk, small_disk

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
# Each has a page more than the one before; the last ones find room for all.
BATCHES = 16


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as disk:
        yield disk


def send(table: ts.Table, number: int) -> None:
    """A batch of two tasks."""
    job = prepare_write(table, TableSpec(location=table.location, storage_options={}), rows=SCHEMA)
    messages: list[CommitMessage] = []
    try:
        for task in range(2):
            rows = pa.record_batch({"id": [number * 2 + task], "v": ["x"]}, schema=SCHEMA)
            messages.append(write_partition(job, [rows], task))
    except ts.StorageError:
        abort_messages(table, messages)
        raise
    commit_batch(table, messages, StreamBatch(query_id="q", batch_id=number, checkpoint="/c", run="r"))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("key", "options"),
    [([], {"write-only": "true"}), (["id"], {"bucket": "1", "num-sorted-run.compaction-trigger": "2"})],
    ids=["plain", "compacted"],
)
def test_batch_that_meets_a_full_disk_at_any_moment_lands_later_once(
    disk: SmallDisk, key: list[str], options: dict[str, str]
) -> None:
    catalog = ts.open_catalog(str(disk.folder / "warehouse"))
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema=SCHEMA, primary_key=key, options=options)
    kinds: list[str] = []
    for number in range(BATCHES):
        disk.fill(but=number)
        try:
            send(table, number)
        except ts.StorageError as error:
            kinds.append(error.kind)
            assert table.refresh().scan().count() == number * 2
            disk.clear()
            send(table, number)
        disk.clear()
        assert table.refresh().scan().count() == number * 2 + 2
    assert 5 < len(kinds) < BATCHES and set(kinds) == {"exhausted"}
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == list(range(BATCHES * 2))
    batches = [one for one in table.snapshots() if one.commit_kind is not ts.CommitKind.COMPACT]
    assert [one.commit_identifier for one in batches] == list(range(BATCHES))
    table.remove_orphan_files(older_than=timedelta(0), dry_run=False)
    assert Auditor(LocalFileStore(table.location)).orphans() == set()
    assert not list(Path(table.location).rglob(".tmp-*"))
