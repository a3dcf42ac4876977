"""How a catalog is opened: which one, with which options, and what of them is shown."""

import builtins
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.catalog.settings import parse_catalog_settings
from tablestore.catalog.sqlcatalog import database_url, lock_url
from tablestore.errors import InvalidInputError, StorageError, UnsupportedError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("who", pa.string())])


def sqlite(folder: Path) -> dict[str, str]:
    return {"warehouse": str(folder / "warehouse"), "metastore": "jdbc", "uri": f"jdbc:sqlite:{folder}/catalog.db"}


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"metastor": "jdbc"}, "unknown-option", "did you mean 'metastore'"),
        ({"warehouse": None, "warehous": "/data"}, "invalid-option", "did you mean 'warehouse' by 'warehous'"),
        ({"jdbc.usr": "x"}, "unknown-option", "did you mean 'jdbc.user'"),
        ({"table-defaults.bucket": "2"}, "unknown-option", "did you mean 'table-default.bucket'"),
        ({"lock.enabled": "true"}, "unknown-option", "'lock.enabled'"),
        ({"warehouse": "s3://b/w", "catalog-kye": "x"}, "unknown-option", "did you mean 'catalog-key'"),
        ({"key": "x"}, "unknown-option", "'key'"),
        ({"table-default.bukket": "2"}, "unknown-option", "table-default.*did you mean 'bucket'"),
        ({"table-default.bucket": "many"}, "invalid-option", "table-default.*bucket"),
        ({"table-default.bucket": [2]}, "invalid-option", "expected text"),
        ({"metastore": "hive"}, "invalid-option", "filesystem, memory, jdbc"),
        ({"uri": "sqlite:////c.db"}, "invalid-option", "metastore = jdbc and rest, found filesystem"),
        ({"metastore": "rest"}, "invalid-option", "needs the option uri"),
        ({"metastore": "rest", "uri": "localhost:8743"}, "invalid-option", "address of a catalog service"),
        ({"metastore": "rest", "uri": "https://me:secret@host"}, "invalid-option", "give a token instead"),
        ({"token.provider": "bear"}, "invalid-option", "is for metastore = rest, found filesystem"),
        ({"token": "env:T"}, "unknown-option", "no option 'token'"),
        ({"metastore": "jdbc"}, "invalid-option", "needs the option uri"),
        ({"metastore": "memory"}, "invalid-option", "warehouse"),
        ({"metastore": "memory", "warehouse": None, "key": "x"}, "invalid-option", "option key"),
        ({"warehouse": None}, "invalid-option", "expected a warehouse"),
        ({"metastore": "jdbc", "uri": "sqlite:////c.db", "catalog-key": ""}, "invalid-option", "1 to 255"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_by_name(options: Mapping[str, Any], kind: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=f"(?s){words}") as refused:
        ts.open_catalog({"warehouse": "/nowhere", **options})
    assert refused.value.kind == kind


@pytest.mark.parametrize(
    "uri", ["jdbc:sqlite:c.db", "sqlite:///c.db", "sqlite://", "jdbc:sqlite::memory:", "nonsense", "postgresql+nodriver://h/d", ""]
)
def test_a_uri_that_is_no_database_of_all_processes_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError, match=r"option uri|needs the option uri"):
        ts.open_catalog("/nowhere", metastore="jdbc", uri=uri).list_databases()


@pytest.mark.parametrize(
    ("uri", "given", "url"),
    [
        ("jdbc:sqlite:/a/c.db", {}, "sqlite:////a/c.db"),
        ("jdbc:sqlite:file:/a/c.db", {}, "sqlite:////a/c.db"),
        ("sqlite:////a/c.db", {}, "sqlite:////a/c.db"),
        ("jdbc:postgresql://h:5432/d", {"jdbc.user": "u", "jdbc.password": "p@ss/w"}, "postgresql://u:p%40ss%2Fw@h:5432/d"),
        ("postgresql://a:b@h/d?sslmode=require", {"jdbc.password": "c"}, "postgresql://a:c@h/d?sslmode=require"),
    ],
)
def test_the_database_is_named_as_paimon_or_as_sqlalchemy_names_it(uri: str, given: Mapping[str, str], url: str) -> None:
    settings = parse_catalog_settings({"warehouse": "/w", "metastore": "jdbc", "uri": uri, **given})
    assert database_url(settings) == url


def test_the_lock_of_tables_has_a_sqlite_file_of_its_own() -> None:
    assert lock_url("sqlite:////a/c.db") == "sqlite:////a/c.db.locks"
    assert lock_url("postgresql://u:p@h/d") == "postgresql://u:p@h/d"


def test_what_is_shown_of_a_catalog_holds_no_secret() -> None:
    options = {
        "warehouse": "s3://user:canary@bucket/w",
        "metastore": "jdbc",
        "uri": "jdbc:postgresql://me:canary@host/db?password=canary",
        "jdbc.password": "canary",
        "key": "canary",
        "secret": "canary",
        "client_kwargs": {"x": "canary"},
        "endpoint_url": "http://localhost:9000",
        "catalog.lock.type": "sql",
        "catalog.lock.location": "postgresql://me:canary@host/locks",
        "table-default.bucket": "2",
    }
    settings = parse_catalog_settings(options)
    shown = settings.shown()
    assert "canary" not in str(dict(shown)) and "canary" not in repr(settings)
    assert shown["uri"] == "jdbc:postgresql://***@host/db?***" and shown["catalog.lock.location"] == "postgresql://***@host/locks"
    assert (shown["secret"], shown["jdbc.password"], shown["table-default.bucket"]) == ("***", "***", "2")
    assert shown["endpoint_url"] == "http://localhost:9000"


# ---- options of tables


def test_a_table_option_comes_from_the_table_then_the_catalog_then_the_default(tmp_path: Path) -> None:
    defaults = {"table-default.bucket": "3", "table-default.snapshot.num-retained.max": "70"}
    catalog = ts.open_catalog(str(tmp_path), **defaults)
    catalog.create_database("shop")
    given = catalog.create_table("shop.given", SCHEMA, primary_key=["id"], options={"bucket": "5"})
    assert (given.options()["bucket"], given.options()["snapshot.num-retained.max"]) == ("5", "70")
    assert catalog.create_table("shop.plain", SCHEMA, primary_key=["id"]).options()["bucket"] == "3"
    plain = ts.open_catalog(str(tmp_path)).create_table("shop.other", SCHEMA, primary_key=["id"])
    assert plain.options()["bucket"] == "1" and "snapshot.num-retained.max" not in plain.options()


def test_a_table_that_exists_gets_no_options_of_the_catalog(tmp_path: Path) -> None:
    plain = ts.open_catalog(str(tmp_path))
    plain.create_database("shop")
    plain.create_table("shop.orders", SCHEMA, primary_key=["id"])
    later = ts.open_catalog(str(tmp_path), **{"table-default.bucket": "3"})
    assert later.create_table("shop.orders", SCHEMA, primary_key=["id"], ignore_if_exists=True).options()["bucket"] == "1"


# ---- the handle


def test_what_is_there_is_asked_for_without_errors(tmp_path: Path) -> None:
    catalog = ts.open_catalog(sqlite(tmp_path))
    assert not catalog.database_exists("shop") and not catalog.table_exists("shop.orders")
    catalog.create_database("shop")
    assert catalog.database_exists("shop") and not catalog.table_exists("shop.orders")
    catalog.create_table("shop.orders", SCHEMA)
    assert catalog.table_exists("shop.orders")
    for ask in (lambda: catalog.database_exists("a/b"), lambda: catalog.table_exists("orders")):
        with pytest.raises(InvalidInputError):
            ask()


def test_a_catalog_in_memory_is_its_own_and_does_not_travel() -> None:
    catalog, other = ts.open_catalog(metastore="memory"), ts.open_catalog(metastore="memory")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", SCHEMA, primary_key=["id"])
    table.upsert([{"id": 1, "who": "a"}])
    assert other.list_databases() == () and catalog.supports_managed_table
    del catalog  # the table keeps its files
    assert table.scan().count() == 1
    for kept in (other, ts.open_catalog("memory://shared")):
        assert not kept.serializable
        with pytest.raises(UnsupportedError, match="memory of this process") as refused:
            pickle.dumps(kept)
        assert refused.value.kind == "not-serializable"


@pytest.mark.deep
@pytest.mark.parametrize("metastore", ["filesystem", "jdbc"])
def test_another_process_opens_a_pickled_catalog_with_its_options(tmp_path: Path, metastore: str) -> None:
    options: dict[str, str] = {"warehouse": str(tmp_path / "warehouse")} if metastore == "filesystem" else sqlite(tmp_path)
    catalog = ts.open_catalog({**options, "table-default.bucket": "2"})
    catalog.create_database("shop")
    code = f"""
import pickle, pyarrow as pa
catalog = pickle.loads(bytes.fromhex({pickle.dumps(catalog).hex()!r}))
table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]), primary_key=["id"])
table.upsert([{{"id": 7}}])
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    table = catalog.table("shop.orders")
    assert table.scan().to_arrow().to_pylist() == [{"id": 7}] and table.options()["bucket"] == "2"


# ---- what is missing


def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(*missing: str) -> None:
        def load(name: str, *args: Any, **given: Any) -> Any:
            if name.partition(".")[0] in missing:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return real(name, *args, **given)

        monkeypatch.setattr(builtins, "__import__", load)

    without("psycopg")
    monkeypatch.delitem(sys.modules, "psycopg", raising=False)
    with pytest.raises(UnsupportedError, match=r"pip install 'managed-tablestore\[postgresql\]'") as refused:
        ts.open_catalog("/nowhere", metastore="jdbc", uri="jdbc:postgresql://host/db").list_databases()
    assert refused.value.kind == "missing-package"
    without("sqlalchemy")
    ours = ("tablestore.catalog.sqlcatalog", "tablestore.io.lock.databaseurl")
    for module in [name for name in sys.modules if name.startswith(ours)]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(UnsupportedError, match=r"pip install 'managed-tablestore\[sql-catalog\]'"):
        ts.open_catalog(sqlite(tmp_path))


def test_a_database_that_does_not_answer_is_our_error_without_its_password() -> None:
    catalog = ts.open_catalog("/nowhere", metastore="jdbc", uri="postgresql://me:canary@127.0.0.1:1/db")
    with pytest.raises(StorageError, match=r"\*\*\*@127") as failed:
        catalog.list_databases()
    assert failed.value.kind == "catalog-database" and "canary" not in str(failed.value)
