"""The batches of a stream land once each, and only in the table and from the checkpoint that they belong to."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.streambatch import StreamBatch, commit_batch, has_landed
from tablestore.distributed.write import prepare_write, write_partition
from tablestore.errors import ConflictError, InvalidInputError
from tablestore.store.message import CommitMessage
from tablestore.table.table import Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
QUERY = "0b5a5e4e-7f6b-4c3a-9a53-6c2c7d2d3e4f"
OTHER = "11111111-7f6b-4c3a-9a53-6c2c7d2d3e4f"


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("d")
    return catalog


def make(catalog: ts.Catalog, **options: str) -> Table:
    return catalog.create_table("d.t", schema=SCHEMA, options=options)


def batch(number: int, checkpoint: str | None = "/checkpoints/a", query: str = QUERY) -> StreamBatch:
    return StreamBatch(query_id=query, batch_id=number, checkpoint=checkpoint)


def written(table: Table, *ids: int, overwrite: bool = False) -> list[CommitMessage]:
    """The messages of two tasks, the second without a row."""
    job = prepare_write(table, TableSpec(location=table.location, storage_options={}), rows=SCHEMA, overwrite=overwrite)
    rows = pa.record_batch({"id": list(ids), "v": list(ids)}, schema=SCHEMA)
    return [write_partition(job, iter([rows] if ids else []), 0), write_partition(job, iter(()), 1)]


def send(table: Table, one: StreamBatch, *ids: int, overwrite: bool = False) -> None:
    commit_batch(table, written(table, *ids, overwrite=overwrite), one, overwrite=overwrite)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def data_files(table: Table) -> Iterator[Path]:
    return Path(table.location).rglob("*.parquet")


def test_batch_is_one_snapshot_that_names_its_query_and_number(catalog: ts.Catalog) -> None:
    table = make(catalog)
    send(table, batch(0), 1, 2)
    send(table, batch(1), 3)
    assert [(one.commit_user, one.commit_identifier) for one in table.snapshots()] == [(QUERY, 0), (QUERY, 1)]
    assert ids(table) == [1, 2, 3]


def test_batches_that_are_repeated_at_random_are_applied_once(catalog: ts.Catalog) -> None:
    table, draw = make(catalog, **{"write-only": "true"}), random.Random(14)
    highest = {QUERY: -1, OTHER: -1}
    for number in range(40):
        query = draw.choice((QUERY, OTHER))
        again = draw.random() < 0.5 and highest[query] >= 0
        if not again:
            highest[query] += 1
        place = highest[query] * 2 + (query == OTHER)
        send(table, batch(highest[query], f"/checkpoints/{query}", query), place)
        if number % 7 == 6:
            table.expire_snapshots(retain_min=1, retain_max=1)
    done = [number * 2 + (query == OTHER) for query, last in highest.items() for number in range(last + 1)]
    assert ids(table) == sorted(done)
    assert table.snapshots()[-1].id == len(done)


def test_batch_is_known_after_its_snapshots_have_expired(catalog: ts.Catalog) -> None:
    table = make(catalog)
    for number in range(3):
        send(table, batch(number), number)
    table.append(pa.table({"id": [10], "v": [10]}, schema=SCHEMA))
    table.expire_snapshots(retain_min=1, retain_max=1)
    again = catalog.table("d.t")
    for number in (0, 2):
        assert has_landed(again, batch(number))
        send(again, batch(number), number)
    assert ids(again) == [0, 1, 2, 10]
    assert not has_landed(again, batch(3))


def test_batch_without_rows_is_no_snapshot_and_is_known_all_the_same(catalog: ts.Catalog) -> None:
    table = make(catalog)
    send(table, batch(0))
    assert table.snapshots() == ()
    assert has_landed(table, batch(0))
    send(table, batch(1), 1)
    send(table, batch(2))
    assert len(table.snapshots()) == 1
    assert has_landed(table, batch(2))
    assert not has_landed(table, batch(3))


def test_overwriting_batch_replaces_every_row_once(catalog: ts.Catalog) -> None:
    table = make(catalog)
    send(table, batch(0), 1, 2, overwrite=True)
    send(table, batch(1), 3, overwrite=True)
    send(table, batch(2), overwrite=True)
    assert ids(table) == []
    table.append(pa.table({"id": [9], "v": [9]}, schema=SCHEMA))
    send(table, batch(2), overwrite=True)
    assert ids(table) == [9]


def test_table_that_was_dropped_and_made_again_refuses_to_go_on_with_a_later_batch(catalog: ts.Catalog) -> None:
    table = make(catalog)
    send(table, batch(0), 1)
    catalog.drop_table("d.t")
    table = make(catalog)
    with pytest.raises(InvalidInputError, match="it was dropped and made again since") as refused:
        send(table, batch(1), 2)
    assert refused.value.kind == "foreign-checkpoint"
    assert not list(data_files(table))
    send(table, replace(batch(1), adopts=True), 2)
    send(table, batch(2), 3)
    assert ids(table) == [2, 3]


def test_copied_checkpoint_is_fenced_and_a_moved_one_is_adopted(catalog: ts.Catalog) -> None:
    table = make(catalog)
    send(table, batch(0), 1)
    with pytest.raises(ConflictError, match=r"writes to table d\.t from the checkpoint /checkpoints/a") as refused:
        send(table, batch(1, "/checkpoints/b"), 2)
    assert refused.value.kind == "copied-checkpoint"
    assert len(list(data_files(table))) == 1
    send(table, replace(batch(0, "/checkpoints/b"), adopts=True), 1)
    send(table, batch(1, "/checkpoints/b"), 2)
    with pytest.raises(ConflictError, match="from the checkpoint /checkpoints/b"):
        send(table, batch(2), 3)
    assert ids(table) == [1, 2]


def test_checkpoint_whose_place_nobody_knows_is_not_compared(catalog: ts.Catalog) -> None:
    table = make(catalog)
    send(table, batch(0, None), 1)
    send(table, batch(1, None), 2)
    send(table, batch(2), 3)
    send(table, batch(3, None), 4)
    assert ids(table) == [1, 2, 3, 4]
