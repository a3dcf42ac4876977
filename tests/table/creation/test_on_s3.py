"""Staged creation on an object store, which copies and does not rename."""

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest

import tablestore as ts
from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.settings import CatalogSettings
from tablestore.clock import SystemClock
from tablestore.errors import AlreadyExistsError, UnsupportedError
from tablestore.ids import SystemIds
from tablestore.io.s3 import S3FileStore
from tablestore.table.catalog import Catalog
from tablestore.testing.files import Faults, FaultyFileStore, SimulatedCrash
from tests.support.services import require_service
from tests.table.creation.places import COLUMNS, NAME, ROWS

pytestmark = pytest.mark.xdist_group("s3")
NOW = timedelta(seconds=-5)


@pytest.fixture(scope="module")
def server() -> Iterator[object]:
    try:
        from tests.support.s3 import FakeS3

        with FakeS3() as server:
            yield server
    except ImportError as error:
        require_service(f"no S3 to test with ({error})", "pip install 'managed-tablestore[dev]'", env=os.environ)


@pytest.fixture
def store(server: object, request: pytest.FixtureRequest) -> S3FileStore:
    name = "".join(c for c in request.node.name if c.isalnum())[-40:].lower()
    return S3FileStore(f"{server.make_bucket(name)}/warehouse", server.options)  # type: ignore[attr-defined]


def over(store: S3FileStore | FaultyFileStore) -> Catalog:
    ids = SystemIds()
    catalog = Catalog(FileSystemCatalog(store, ids), SystemClock(), ids, CatalogSettings(warehouse=store.root_uri))
    catalog.create_database("shop", ignore_if_exists=True)
    return catalog


def create(catalog: Catalog) -> ts.Table:
    staged = catalog.stage_table(NAME, COLUMNS, ["id"], options={"write-only": "true"})
    staged.table.upsert(ROWS)
    return staged.publish()


@pytest.mark.deep
def test_a_staged_table_gets_its_name_by_copies_that_the_store_makes(store: S3FileStore, server: object) -> None:
    catalog = over(store)
    staged = catalog.stage_table(NAME, COLUMNS, ["id"])
    staged.table.upsert(ROWS)
    assert not over(store).table_exists(NAME)
    server.clear()  # type: ignore[attr-defined]
    table = staged.publish()
    read = [path for method, path in server.requests if method == "GET" and ".parquet" in path]  # type: ignore[attr-defined]
    assert read == [] and table.scan().to_arrow().to_pylist() == ROWS
    assert store.list("_ctas") == [] and table.remove_orphan_files(0, dry_run=True).orphans == ()
    with pytest.raises(AlreadyExistsError):
        create(over(store))
    with pytest.raises(UnsupportedError, match="exchange"):
        catalog.stage_replacement(NAME, COLUMNS)
    replacement = catalog.stage_replacement(NAME, COLUMNS, ["id"])
    replacement.table.upsert(ROWS[:1])
    assert replacement.publish().scan().to_arrow().to_pylist() == ROWS[:1] and table.scan(snapshot_id=1).count() == 2


@pytest.mark.deep
def test_an_answer_that_is_lost_is_settled_by_looking(store: S3FileStore, server: object) -> None:
    catalog = over(store)
    lost = server.answer_next  # type: ignore[attr-defined]
    lost("PUT", status=500, apply_first=True, only_path="shop.db/orders/schema/schema-0")
    lost("PUT", status=500, apply_first=True, only_path="shop.db/orders/snapshot/snapshot-1")
    lost("PUT", status=503, only_path="_ctas")
    assert create(catalog).scan().to_arrow().to_pylist() == ROWS


@pytest.mark.deep
@pytest.mark.parametrize("nth", [75, 101])
def test_what_a_dead_creation_left_is_swept(store: S3FileStore, nth: int) -> None:
    faults = Faults()
    faults.crash_nth(nth)
    with pytest.raises(SimulatedCrash):
        create(over(FaultyFileStore(store, faults)))  # type: ignore[arg-type]
    catalog = over(store)
    catalog.sweep_creations(NOW)
    if catalog.table_exists(NAME):
        assert catalog.table(NAME).scan().to_arrow().to_pylist() == ROWS
    else:
        assert [info.name for info in store.list("shop.db")] == ["_database"]
    assert store.list("_ctas") == []
