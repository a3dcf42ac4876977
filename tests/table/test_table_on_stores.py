"""The same table on every kind of store: what works on a laptop works on an object store."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tests.support.services import require_service

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("day", pa.string())])


@pytest.fixture(scope="module")
def s3_warehouse() -> Iterator[ts.Catalog]:
    try:
        from tests.support.s3 import FakeS3

        server = FakeS3().__enter__()
    except ImportError as error:
        require_service(f"no S3 to test with ({error})", "pip install 'managed-tablestore[dev]'", env=os.environ)
    try:
        yield ts.open_catalog(f"{server.make_bucket('tables')}/root", **server.options)
    finally:
        server.__exit__(None, None, None)


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.xdist_group("s3"))])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ts.Catalog]:
    if request.param == "s3":
        yield request.getfixturevalue("s3_warehouse")
    elif request.param == "local":
        yield ts.open_catalog(str(tmp_path))
    else:
        name = str(uuid5(NAMESPACE_URL, str(tmp_path)))
        yield ts.open_catalog(f"memory://{name}")
        MemoryFileStore.forget(name)


@pytest.fixture
def table(catalog: ts.Catalog, request: pytest.FixtureRequest) -> ts.Table:
    catalog.create_database("shop", ignore_if_exists=True)
    name = request.node.originalname.replace("[", "_").replace("]", "")
    return catalog.create_table(f"shop.{name}", schema=SCHEMA, primary_key=["id", "day"], partition_by=["day"])


def rows(ids: range, price: float, day: str = "a") -> pa.Table:
    return pa.table({"id": ids, "price": [price] * len(ids), "day": [day] * len(ids)}, schema=SCHEMA)


@pytest.mark.deep
def test_the_life_of_a_table(table: ts.Table, catalog: ts.Catalog) -> None:
    table.upsert(rows(range(10), 1.0))
    table.upsert(rows(range(5, 15), 2.0))
    table.upsert(rows(range(3), 3.0, "b"))
    table.delete("price = 2 AND id >= 10")
    table.overwrite(rows(range(2), 4.0, "b"))
    assert table.scan().count() == 12
    assert table.scan(filter="day = 'a'").to_arrow()["price"].to_pylist().count(2.0) == 5
    assert table.scan(snapshot_id=1).count() == 10
    again = catalog.table(table.name)
    assert again.scan().to_arrow().sort_by("id").equals(table.scan().to_arrow().sort_by("id"))
    assert catalog.list_tables("shop").count(table.name.partition(".")[2]) == 1
    catalog.drop_table(table.name)
    with pytest.raises(ts.NotFoundError):
        catalog.table(table.name)


@pytest.mark.deep
def test_writers_at_the_same_time_all_land(table: ts.Table) -> None:
    def write(worker: int) -> None:
        for number in range(3):
            table.upsert(rows(range(worker * 10, worker * 10 + 10), float(number)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, len(kinds) + 1))
    assert kinds.count(CommitKind.APPEND) == 12 and set(kinds) <= {CommitKind.APPEND, CommitKind.COMPACT}
    found = table.scan().to_arrow()
    assert found.num_rows == 40
    assert set(found["price"].to_pylist()) == {2.0}
