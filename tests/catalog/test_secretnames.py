"""Secrets are named: what is kept, shown, pickled and sent is ``env:NAME`` or ``file:PATH``, and who uses one finds it."""

import pickle
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

import tablestore as ts
from tablestore.errors import InvalidInputError, StorageError
from tablestore.io.lock.sqllock import SqlCatalogLock
from tablestore.redaction import HIDDEN
from tablestore.secretnames import resolved
from tests.support.attacks.canary import CANARY
from tests.support.attacks.listener import PasswordListener, listening


class Unlocked(LocalFileSystem):
    """A protocol that needs a lock."""

    protocol = "unlocked"


def test_a_name_stands_for_what_the_process_that_uses_it_has(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(CANARY.encode() + b"\n")
    environ = {"DB_PASSWORD": CANARY}
    assert resolved("env:DB_PASSWORD", "password", environ) == CANARY
    assert resolved(f"file:{tmp_path}/key", "password", environ) == CANARY
    assert resolved({"a": ["env:DB_PASSWORD", 1], "b": None}, "client_kwargs", environ) == {"a": [CANARY, 1], "b": None}
    for plain in ("hunter2", "env:", "env:a b", "environ:X", "file:relative", "file:///x*", "", 7):
        assert resolved(plain, "password", environ) == plain


@pytest.mark.parametrize("name", ["env:NOT_THERE", "file:/not/there", HIDDEN])
def test_a_name_without_a_secret_is_our_error_that_says_which(name: str) -> None:
    with pytest.raises(InvalidInputError, match="the password") as refused:
        resolved(name, "the password", {})
    assert refused.value.kind == "secret" and name in str(refused.value)


def test_a_file_that_is_no_secret_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff" + CANARY.encode())
    with pytest.raises(InvalidInputError, match="cannot read it") as refused:
        resolved(f"file:{tmp_path}/f", "key", {})
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("given", ["env:CATALOG_PASSWORD", "file:{folder}/password", CANARY])
def test_the_password_of_a_catalog_is_found_when_its_database_is_asked_and_is_in_no_pickle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("CATALOG_PASSWORD", CANARY)
    (tmp_path / "password").write_text(CANARY)
    with listening(PasswordListener()) as database:
        options = {"metastore": "jdbc", "uri": f"postgresql://me@{database.address}/db"}
        catalog = ts.open_catalog(str(tmp_path / "warehouse"), **options, **{"jdbc.password": given.format(folder=tmp_path)})
        pickled = pickle.dumps(catalog)
        assert CANARY.encode() not in pickled and CANARY not in str(catalog.properties) + repr(catalog)
        for one in (catalog, pickle.loads(pickled)):
            database.calls.clear()
            with pytest.raises(StorageError) as failed:
                one.list_databases()
            assert CANARY.encode() in database.said, "the database that the catalog names gets it"
            assert CANARY not in str(failed.value)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://me@{host}/db?password={secret}",
        "jdbc:postgresql://me@{host}/db?sslmode=disable&password={secret}",
        "postgresql://{host}/db?user=me&sslpassword={secret}&password={secret}",
        "postgresql://me:{secret}@{host}/db?application_name=x",
        "postgresql://me@{host}/db?opensesame={secret}&opensesame={secret}",
    ],
)
@pytest.mark.parametrize("warehouse", ["{folder}/warehouse", "unlocked://{folder}/warehouse"])
def test_no_pickle_holds_a_password_that_the_url_of_a_catalog_has_anywhere(tmp_path: Path, uri: str, warehouse: str) -> None:
    pytest.importorskip("psycopg")
    fsspec.register_implementation("unlocked", Unlocked, clobber=True)
    with listening(PasswordListener()) as database:
        address = uri.format(host=database.address, secret=CANARY)
        catalog = ts.open_catalog(warehouse.format(folder=tmp_path), metastore="jdbc", uri=address)
        pickled = pickle.dumps(catalog)
        assert CANARY.encode() not in pickled and CANARY not in str(catalog.properties) + repr(catalog)
        again = pickle.loads(pickled)
        assert CANARY.encode() not in pickle.dumps(again)
        for one in (catalog, again):
            database.calls.clear()
            with pytest.raises(StorageError) as failed:
                one.list_databases()
            assert CANARY not in str(failed.value)
            assert CANARY.encode() in database.said or "opensesame" in uri, "this process has it"
        if warehouse.startswith("unlocked"):
            assert CANARY not in str(again.storage_options) and "catalog.lock.location" in again.storage_options
            lock = again._meta.lock
            assert isinstance(lock, SqlCatalogLock)
            database.calls.clear()
            with pytest.raises(StorageError):
                replace(lock, timeout_s=0).run_with_lock("shop.db/t", lambda: None)
            assert CANARY.encode() in database.said or "opensesame" in uri, "the lock has it, too"


def test_a_password_that_did_not_come_along_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    catalog = ts.open_catalog(str(tmp_path), metastore="jdbc", uri=f"postgresql://me@127.0.0.1:9/db?sslpassword={CANARY}")
    pickled = pickle.dumps(catalog)
    monkeypatch.setattr("tablestore.io.lock.databaseurl._COMPLETE", {})  # as in another process
    with pytest.raises(InvalidInputError, match="the parameter sslpassword in uri is") as refused:
        pickle.loads(pickled).list_databases()
    assert refused.value.kind == "secret"


def test_a_parameter_of_a_database_may_be_the_name_of_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("CATALOG_PASSWORD", CANARY)
    with listening(PasswordListener()) as database:
        uri = f"postgresql://me@{database.address}/db?password=env:CATALOG_PASSWORD"
        catalog = pickle.loads(pickle.dumps(ts.open_catalog(str(tmp_path), metastore="jdbc", uri=uri)))
        with pytest.raises(StorageError):
            catalog.list_databases()
        assert CANARY.encode() in database.said


def test_options_of_a_file_system_are_pickled_and_shown_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    monkeypatch.setenv("S3_SECRET", CANARY)
    options = {"key": "k", "secret": "env:S3_SECRET", "endpoint_url": "http://127.0.0.1:1"}
    catalog = ts.open_catalog("s3://bucket/warehouse", **options)
    assert catalog.properties["secret"] == "env:S3_SECRET"
    assert CANARY.encode() not in pickle.dumps(catalog) and CANARY not in str(catalog.storage_options)
    monkeypatch.delenv("S3_SECRET")
    with pytest.raises(InvalidInputError, match="S3_SECRET; set it"):
        ts.open_catalog("s3://bucket/warehouse", **options).list_databases()


def test_what_a_table_stores_is_never_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READERS_OWN", CANARY)
    (tmp_path / "secret").write_text(CANARY)
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    for number, name in enumerate(("env:READERS_OWN", f"file:{tmp_path}/secret")):
        options = {"log.kafka.topic": name, "schema.0.expr": name}
        catalog.create_table(f"shop.t{number}", {"id": "int"}, options=options)
        table = catalog.table(f"shop.t{number}")
        assert table.options()["log.kafka.topic"] == name == table.change_log.settings.topic
        assert CANARY not in str(table.system("options").scan().to_arrow())
