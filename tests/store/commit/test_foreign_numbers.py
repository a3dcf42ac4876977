"""Foreign commits number rows in their own way: what loses to ours is said, and ours do not lose to what landed before them."""

import logging
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.paths import snapshot_path
from tablestore.format.snapshot import decode_snapshot, encode_snapshot
from tablestore.table.write.writer import TableWriter

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])


def foreign_upsert(table: ts.Table, ids: list[int], first_sequence: int) -> None:
    """A commit with numbers of its own and without our properties, as another engine makes it."""
    with TableWriter(table.context, table.change_log, start=(table.context.snapshots.latest(), first_sequence)) as writer:
        writer.write(pa.table({"id": ids, "x": [0] * len(ids)}))
        snapshot = writer.commit()
    assert snapshot is not None
    files, path = table.context.files, snapshot_path(snapshot.id)
    plain = replace(decode_snapshot(files.read(path), path), properties={})
    files.overwrite(path, encode_snapshot(plain))


@pytest.mark.parametrize(("ids", "warned"), [([1, 2], True), ([100], False)])
def test_foreign_rows_that_lose_to_older_ones_are_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ids: list[int], warned: bool
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id"])
    for _ in range(3):
        table.upsert(pa.table({"id": [1, 2, 3], "x": [1, 2, 3]}))
    foreign_upsert(table, ids, first_sequence=1)
    with caplog.at_level(logging.WARNING):
        table.upsert(pa.table({"id": [7], "x": [7]}))
        table.upsert(pa.table({"id": [8], "x": [8]}))
    said = [record for record in caplog.records if "the older row may win" in record.getMessage()]
    assert len(said) == (1 if warned else 0)
    assert table.scan(filter="id >= 7").count() == (3 if 100 in ids else 2)


@pytest.mark.parametrize("taken_back", [1, 2])
def test_a_base_that_others_took_back_and_made_anew_under_its_id_does_not_win(tmp_path: Path, taken_back: int) -> None:
    """Other engines roll back by removing the newest snapshots, and use their ids again."""
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id"], options={"write-only": "true"})
    for x in range(3):
        table.upsert(pa.table({"id": [1], "x": [x]}))
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [1], "x": [7]}))
        writer.flush()
        for snapshot_id in range(3, 3 - taken_back, -1):
            table.context.files.delete(snapshot_path(snapshot_id))
        foreign_upsert(catalog.table("shop.orders"), [1], first_sequence=100)
        writer.commit()
    assert catalog.table("shop.orders").scan().to_arrow()["x"].to_pylist() == [7]
