"""What only a catalog in a database does: rows and files that disagree, its keys, its lock, a server that breaks."""

import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
import sqlalchemy as sa
from fsspec.implementations.local import LocalFileSystem

import tablestore as ts
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.sqlcatalog import SqlCatalog
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError, UnsupportedError
from tablestore.ids import SystemIds
from tablestore.io.local import LocalFileStore
from tablestore.io.lock.sqllock import SqlCatalogLock
from tablestore.io.wrapped import WrappedFileStore
from tablestore.testing.contracts.cataloglock import CatalogLockContract
from tablestore.testing.contracts.metacatalog import ORDERS, schema_of, stored
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, FaultyFileStore
from tests.support.servers.postgres import PostgresServer

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("who", pa.string())])
_databases = count()


class Bare(LocalFileSystem):
    """A protocol without a way to make a file only if it is absent."""

    protocol = "bare"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.make_database(f"sql{next(_databases)}")


def over(folder: Path, url: str, *, key: str = "jdbc") -> SqlCatalog:
    return SqlCatalog(LocalFileStore(str(folder / "warehouse")), SystemIds(), url=url, key=key)


def test_catalogs_of_two_keys_share_a_database_and_no_name(tmp_path: Path, url: str) -> None:
    first, second = over(tmp_path / "first", url, key="first"), over(tmp_path / "second", url, key="second")
    first.create_database("shop")
    first.create_table(ORDERS, schema_of("id"))
    assert second.list_databases() == () and not second.has_table(ORDERS)
    second.create_database("shop")
    second.create_table(ORDERS, schema_of("other"))
    first.drop_database("shop", cascade=True)
    assert stored(second, ORDERS).fields[0].name == "other"


def test_a_table_of_a_warehouse_that_had_no_database_is_taken_in_when_asked_for(tmp_path: Path) -> None:
    warehouse = str(tmp_path / "warehouse")
    plain = ts.open_catalog(warehouse)
    plain.create_database("shop")
    plain.create_table("shop.orders", SCHEMA, primary_key=["id"]).upsert([{"id": 1, "who": "a"}])
    catalog = ts.open_catalog(warehouse, metastore="jdbc", uri=f"sqlite:///{tmp_path}/catalog.db")
    assert catalog.list_databases() == ()
    catalog.create_database("shop")
    with pytest.raises(NotFoundError):
        catalog.table("shop.orders")
    with pytest.raises(AlreadyExistsError, match=r"does not name.*ignore_if_exists"):
        catalog.create_table("shop.orders", SCHEMA)
    with pytest.raises(NotFoundError):
        catalog.drop_table("shop.orders")
    with pytest.raises(InvalidInputError, match="does not name"):
        catalog.drop_database("shop", cascade=True)
    assert catalog.list_tables("shop") == () and plain.table("shop.orders").scan().count() == 1
    assert catalog.create_table("shop.orders", SCHEMA, ignore_if_exists=True).scan().count() == 1
    assert catalog.list_tables("shop") == ("orders",)


def test_where_directories_cannot_be_renamed_a_renaming_is_refused_and_changes_nothing(tmp_path: Path, url: str) -> None:
    files = WrappedFileStore(LocalFileStore(str(tmp_path / "warehouse")))
    catalog: MetaCatalog = SqlCatalog(files, SystemIds(), url=url, key="jdbc")  # type: ignore[arg-type]
    catalog.create_database("shop")
    catalog.create_table(ORDERS, schema_of("id"))
    with pytest.raises(UnsupportedError, match="in one step"):
        catalog.rename_table(ORDERS, type(ORDERS)("shop", "new"))
    assert catalog.list_tables("shop") == ("orders",)


def test_options_that_paimon_keeps_beside_a_table_go_and_move_with_it(tmp_path: Path) -> None:
    catalog = over(tmp_path, f"sqlite:///{tmp_path}/catalog.db")
    catalog.create_database("shop")
    catalog.create_table(ORDERS, schema_of("id"))
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
        database.execute("insert into paimon_table_properties values ('jdbc', 'shop', 'orders', 'bucket', '1')")
        database.commit()
        catalog.rename_table(ORDERS, type(ORDERS)("shop", "new"))
        kept = "select database_name, table_name, property_key from paimon_table_properties"
        assert database.execute(kept).fetchall() == [("shop", "new", "bucket")]
        catalog.drop_table(type(ORDERS)("shop", "new"))
        assert database.execute(kept).fetchall() == []


# ---- the lock of tables


def test_a_store_that_needs_a_lock_has_it_in_the_catalogs_database(tmp_path: Path, url: str) -> None:
    fsspec.register_implementation("bare", Bare, clobber=True)
    catalog = ts.open_catalog(f"bare://{tmp_path}/warehouse", metastore="jdbc", uri=url)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", SCHEMA, primary_key=["id"])
    table.upsert([{"id": 1, "who": "a"}])
    again = ts.open_table(f"bare://{tmp_path}/warehouse/shop.db/orders", **catalog.storage_options)
    again.upsert([{"id": 2, "who": "b"}])
    assert table.scan().count() == 2
    assert catalog.storage_options["catalog.lock.type"] == "sql"
    where = sa.create_engine(catalog.storage_options["catalog.lock.location"], poolclass=sa.NullPool)
    with where.connect() as connection:
        tokens = {row.place: row.token for row in connection.execute(sa.text("select place, token from tablestore_locks"))}
    assert tokens["shop.db/orders/snapshot"] >= 2  # a publish each
    assert "canary" not in str(catalog.properties)


@pytest.mark.xdist_group("postgres")
class TestPostgresLock(CatalogLockContract):
    @pytest.fixture
    def lock(self, postgres: PostgresServer) -> SqlCatalogLock:
        return SqlCatalogLock(url=postgres.make_database(f"lock{next(_databases)}"), longest_wait_s=0.01)

    @pytest.fixture
    def impatient(self, lock: SqlCatalogLock) -> SqlCatalogLock:
        return SqlCatalogLock(url=lock.url, timeout_s=5, clock=ManualClock())


# ---- a server that breaks


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("op", ["publish_if_absent", "delete_directory"])
def test_a_connection_that_breaks_leaves_a_whole_table_or_none(tmp_path: Path, postgres: PostgresServer, op: str) -> None:
    url = postgres.make_database(f"broken{next(_databases)}")
    catalog = over(tmp_path, url)
    catalog.create_database("shop")
    if op == "delete_directory":
        catalog.create_table(ORDERS, schema_of("id"))
    faults = Faults()
    faults.after(lambda call: end_connections(url) if "orders" in call.path else None, op=op)
    broken = SqlCatalog(FaultyFileStore(LocalFileStore(str(tmp_path / "warehouse")), faults), SystemIds(), url=url, key="jdbc")
    with pytest.raises(StorageError, match="look whether what you asked for is done") as failed:
        if op == "delete_directory":
            broken.drop_table(ORDERS)
        else:
            broken.create_table(ORDERS, schema_of("id"))
    assert failed.value.kind == "catalog-database"
    assert catalog.has_table(ORDERS) is (op == "publish_if_absent")
    catalog.drop_table(ORDERS)
    assert catalog.create_table(ORDERS, schema_of("other"))


def end_connections(url: str) -> None:
    """Break all connections to a database but this one, as a server that restarts does."""
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        others = "datname = current_database() and pid <> pg_backend_pid()"
        connection.execute(sa.text(f"select pg_terminate_backend(pid) from pg_stat_activity where {others}"))
