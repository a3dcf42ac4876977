"""Handles travel: what is pickled here is the same table, or the same rows, in another process."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import ConflictError, NotFoundError, UnsupportedError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
THERE = """
import pickle, sys
table, branch, old, some, changes, system, listed = pickle.load(sys.stdin.buffer)
table.upsert([{"id": 3, "v": "there"}])
branch.upsert([{"id": 9, "v": "branch"}])
pickle.dump([old.to_arrow(), some.to_arrow(), changes.to_arrow(), system.count(), listed.to_arrow()], sys.stdout.buffer)
"""


@pytest.fixture(params=["filesystem", "jdbc"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> ts.Catalog:
    names = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path / 'names.db'}"} if request.param == "jdbc" else {}
    catalog = ts.open_catalog(str(tmp_path / "warehouse"), **names)
    catalog.create_database("shop")
    return catalog


def _table(catalog: ts.Catalog) -> ts.Table:
    table = catalog.create_table("shop.orders", SCHEMA, primary_key=["id"])
    table.upsert([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    return table


@pytest.mark.deep
def test_another_process_writes_the_same_table_and_reads_the_same_rows(catalog: ts.Catalog) -> None:
    table = _table(catalog)
    table.create_branch("b")
    branch = table.branch("b")
    old, some = table.scan(), table.scan(columns=["v"], filter="id >= 2 AND v IN ('a', 'b')")
    assert old.plan.files, "what was planned stays here"
    table.upsert([{"id": 1, "v": "new"}])
    given = [table, branch, old, some, table.changes(1), table.system("snapshots"), table.system("snapshots").scan(["snapshot_id"])]
    assert table.change_log is not None
    run = subprocess.run([sys.executable, "-c", THERE], input=pickle.dumps(given), stdout=subprocess.PIPE, check=True, timeout=120)
    was, few, changed, snapshots, listed = pickle.loads(run.stdout)
    assert was.to_pylist() == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}] and few.to_pylist() == [{"v": "b"}]
    assert [row["v"] for row in changed.to_pylist()] == ["a", "new"]
    assert (snapshots, listed.column("snapshot_id").to_pylist()) == (3, [1, 2, 3])
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [1, 2, 3]
    assert sorted(row["id"] for row in branch.scan().to_arrow().to_pylist()) == [1, 2, 9]


def _again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_a_pickled_handle_keeps_its_schema_and_knows_its_table(catalog: ts.Catalog) -> None:
    table = _table(catalog)
    frozen, scan = pickle.dumps(table), pickle.dumps(table.scan())
    table.alter(ts.AddColumn("w", pa.int64()))
    assert pickle.loads(frozen).schema == SCHEMA and _again(pickle.loads(frozen)).refresh().schema.names == ["id", "v", "w"]
    catalog.drop_table("shop.orders")
    with pytest.raises(NotFoundError):
        pickle.loads(frozen).scan()
    _table(catalog)
    for again in (lambda: pickle.loads(frozen).scan(), lambda: pickle.loads(scan).to_arrow()):
        with pytest.raises(ConflictError):
            again()


def test_what_lies_in_the_memory_of_this_process_does_not_pickle() -> None:
    catalog = ts.open_catalog(metastore="memory")
    catalog.create_database("shop")
    table = _table(catalog)
    for handle in (table, table.scan(), table.changes(0), table.system("files")):
        with pytest.raises(UnsupportedError, match="memory of this process") as refused:
            pickle.dumps(handle)
        assert refused.value.kind == "not-serializable"
