"""Names in a database: Paimon's own JDBC catalog opens what ours made, and ours what it made, on SQLite and on PostgreSQL."""

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import canonical
import pyarrow as pa
import pytest
from oracles import JavaOracle, OracleError

import tablestore as ts
from tests.support.servers.postgres import PostgresServer

pytestmark = pytest.mark.interop

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
COLUMNS = [{"name": "id", "type": "BIGINT NOT NULL"}, {"name": "v", "type": "STRING"}]
_databases = count()


@pytest.fixture(params=["sqlite", "postgres"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
    """The options of both catalogs: those that Paimon names."""
    if request.param == "sqlite":
        return {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.make_database(f"interop{next(_databases)}")
    user, _, place = url.removeprefix("postgresql://").partition("@")
    return {"metastore": "jdbc", "uri": f"jdbc:postgresql://{place}", "jdbc.user": user, "catalog-key": "shared"}


@pytest.fixture
def theirs(java: JavaOracle, options: Mapping[str, str]) -> Iterator[JavaOracle]:
    with java.through(options):
        yield java


def rows_of(catalog: ts.Catalog, name: str) -> list[canonical.Row]:
    return sorted(canonical.encode_rows(catalog.table(name).scan().to_arrow()), key=lambda row: row["id"])


def test_both_catalogs_name_read_write_rename_and_drop_the_tables_of_each_other(
    theirs: JavaOracle, options: Mapping[str, str], warehouse: Path
) -> None:
    ours = ts.open_catalog({"warehouse": str(warehouse), **options})
    ours.create_database("db")
    ours.create_database("empty")
    ours.create_table("db.ours", SCHEMA, primary_key=["id"]).upsert([{"id": 1, "v": "a"}])
    at = {name: warehouse / "db.db" / name for name in ("ours", "theirs", "renamed", "again")}

    assert theirs.names(at["ours"]) == {"db": ["ours"], "empty": []}
    assert theirs.read(at["ours"]) == [{"id": 1, "v": "a"}]
    theirs.write(at["ours"], [{"id": 2, "v": "b"}])
    assert rows_of(ours, "db.ours") == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]

    theirs.create(at["theirs"], COLUMNS, primary_key=["id"], options={"bucket": "1"})
    theirs.write(at["theirs"], [{"id": 7, "v": "x"}])
    assert ours.list_tables("db") == ("ours", "theirs") and rows_of(ours, "db.theirs") == [{"id": 7, "v": "x"}]
    with pytest.raises(ts.AlreadyExistsError):
        ours.create_table("db.theirs", SCHEMA)
    with pytest.raises(OracleError, match="exist"):
        theirs.create(at["ours"], COLUMNS)

    theirs.rename(at["ours"], "renamed")
    assert ours.list_tables("db") == ("renamed", "theirs") and len(rows_of(ours, "db.renamed")) == 2
    ours.rename_table("db.theirs", "db.again")
    assert theirs.names(at["ours"])["db"] == ["again", "renamed"] and theirs.read(at["again"]) == [{"id": 7, "v": "x"}]

    # It keeps copies of options beside the rows: what is dropped here leaves none that its next creation would meet.
    ours.drop_table("db.again")
    theirs.create(at["again"], COLUMNS, primary_key=["id"], options={"bucket": "1"})
    assert theirs.read(at["again"]) == [] and rows_of(ours, "db.again") == []
    theirs.drop(at["renamed"])
    assert not ours.table_exists("db.renamed") and ours.create_table("db.renamed", SCHEMA).scan().count() == 0
    ours.drop_database("db", cascade=True)
    assert theirs.names(at["ours"]) == {"empty": []}
