"""Distributed writes and reads of tables with dynamic buckets or deletion vectors: many tasks, one commit."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.read import pin_read, plan_read, read_task
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import commit_messages, prepare_write, write_partition
from tablestore.io.local import LocalFileStore
from tablestore.testing.auditor import Auditor

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def rows(ids: range, text: str) -> pa.Table:
    return pa.table({"id": ids, "v": [text] * len(ids)}, schema=SCHEMA)


def made(tmp_path: Path, options: Mapping[str, str], *, keyed: bool = True) -> tuple[ts.Table, TableSpec]:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"] if keyed else [], options=dict(options))
    return table, TableSpec(location=table.location, storage_options={})


def write(table: ts.Table, spec: TableSpec, *parts: pa.Table, overwrite: bool = False) -> None:
    job = prepare_write(table, spec, rows=SCHEMA)
    messages = [write_partition(job, part.to_batches(max_chunksize=3), task) for task, part in enumerate(parts)]
    assert commit_messages(table, messages, overwrite=overwrite) is not None


def read(table: ts.Table, spec: TableSpec) -> dict[int, str]:
    plan = plan_read(pin_read(table, spec), task_bytes=1, parallelism=4)
    found = [row for task in plan.tasks for batch in read_task(spec, task) for row in batch.to_pylist()]
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


@pytest.mark.parametrize("target", ["3", "100"])
def test_tasks_of_a_dynamic_table_agree_on_buckets(tmp_path: Path, target: str) -> None:
    table, spec = made(tmp_path, {"bucket": "-1", "dynamic-bucket.target-row-num": target})
    # Each task fills buckets as if it were alone, and the tasks share keys.
    write(table, spec, rows(range(10), "a"), rows(range(19, 4, -1), "b"), rows(range(15, 25), "c"))
    expected = dict.fromkeys(range(5), "a") | dict.fromkeys(range(5, 15), "b") | dict.fromkeys(range(15, 25), "c")
    assert read(table, spec) == expected
    write(table, spec, rows(range(8), "d"), rows(range(20, 40), "e"))
    expected |= dict.fromkeys(range(8), "d") | dict.fromkeys(range(20, 40), "e")
    assert read(table, spec) == expected
    auditor = Auditor(LocalFileStore(table.location))
    auditor.check_dynamic_buckets(("id",))
    write(table, spec, rows(range(7), "f"), rows(range(30, 36), "f"), overwrite=True)
    assert read(table, spec) == dict.fromkeys([*range(7), *range(30, 36)], "f")
    auditor.check_dynamic_buckets(("id",))
    assert sum(entry["_ROW_COUNT"] for entry in auditor.index_entries()) == 13


def test_what_tasks_wrote_to_a_table_with_vectors_is_settled_by_the_commit(tmp_path: Path) -> None:
    table, spec = made(tmp_path, {"deletion-vectors.enabled": "true", "bucket": "2"})
    write(table, spec, rows(range(2000), "a" * 50))
    write(table, spec, rows(range(10), "b"), rows(range(5, 15), "c"))
    table.delete("id = 1999")
    expected = dict.fromkeys(range(1999), "a" * 50) | dict.fromkeys(range(5), "b") | dict.fromkeys(range(5, 15), "c")
    assert Auditor(LocalFileStore(table.location)).deleted_positions()
    assert read(table, spec) == expected
    plan = plan_read(pin_read(table, spec), plain_files=tuple)
    marked = set(Auditor(LocalFileStore(table.location)).deleted_positions())
    assert not marked & {path.rpartition("/")[2] for path in plan.plain_files}


def test_marked_rows_of_an_append_table_reach_no_task(tmp_path: Path) -> None:
    table, spec = made(tmp_path, {"deletion-vectors.enabled": "true"}, keyed=False)
    write(table, spec, rows(range(20), "a"), rows(range(20, 40), "b"))
    table.delete("id >= 15 AND id < 25")
    assert sorted(read(table, spec)) == [*range(15), *range(25, 40)]
