"""A table has one change log, chosen when it is opened: the file store, or a log system that its options name."""

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.spec import TableSpec
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.log.filestorelog import FileStoreLog
from tablestore.log.publishedlog import PublishedLog

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
KAFKA = {"bucket": "1", "log.kafka.bootstrap.servers": "localhost:1"}


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


def make(catalog: ts.Catalog, name: str = "shop.t", **options: str) -> ts.Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PublishedLog, "begin", lambda *_, **__: None)
        return catalog.create_table(name, SCHEMA, primary_key=["id"], options=options)


def test_a_table_without_brokers_has_the_file_stores_log_and_one_with_them_its_own(catalog: ts.Catalog) -> None:
    assert isinstance(make(catalog, "shop.a").change_log, FileStoreLog)
    assert isinstance(make(catalog, "shop.b", **KAFKA).change_log, PublishedLog)
    assert isinstance(make(catalog, "shop.c", **KAFKA, **{"log.system": "filestore"}).change_log, FileStoreLog)


def test_a_branch_has_the_file_stores_log(catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublishedLog, "after_commit", lambda _: None)
    table = make(catalog, **KAFKA)
    table.upsert(pa.table({"id": [1], "v": ["a"]}))
    table.create_branch("b")
    branch = table.branch("b")
    assert isinstance(branch.change_log, FileStoreLog) and isinstance(branch.branch("main").change_log, PublishedLog)


def test_the_log_is_chosen_once_for_a_handle(catalog: ts.Catalog) -> None:
    table = make(catalog)
    log = table.change_log
    assert table.change_log is log and table.refresh().change_log is not log


def test_nothing_is_published_to_the_file_store_and_nothing_can_be_looked_after(catalog: ts.Catalog) -> None:
    log = make(catalog).change_log
    assert log.slots == 0 and log.publish(look=True) == () and log.unpublished() is None and log.properties() == {}
    for refused, kind in ((log.status, "no-log"), (log.verify, "no-log"), (log.adopt, "no-log"), (log.rebuild, "unsupported")):
        with pytest.raises(UnsupportedError, match="file store itself") as caught:
            refused()
        assert caught.value.kind == kind


def test_a_table_whose_options_name_no_log_of_ours_can_be_read_compacted_and_dropped(
    catalog: ts.Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(catalog, **{"write-only": "true"})
    for number in range(2):
        table.upsert(pa.table({"id": [1], "v": [f"v{number}"]}))
    _let_another_engine_write(Path(table.location.removeprefix("file://"), "schema", "schema-0"), {"log.system": "none"})
    foreign = catalog.table("shop.t")
    assert foreign.scan().to_arrow().to_pylist() == [{"id": 1, "v": "v1"}]
    with pytest.raises(InvalidInputError, match=r"log\.system"):
        foreign.upsert(pa.table({"id": [2], "v": ["w"]}))
    assert foreign.compact(full=True).tasks == 1 and "has landed" in caplog.text
    catalog.drop_table("shop.t")
    assert catalog.list_tables("shop") == ()


def _let_another_engine_write(schema: Path, options: dict[str, str]) -> None:
    """Rewrite a schema file with more options, without what only tablestore writes into it."""
    content = json.loads(schema.read_text())
    kept = {key: value for key, value in content["options"].items() if not key.startswith("tablestore.")}
    content = {key: value for key, value in content.items() if not key.startswith("tablestore.")}
    schema.write_text(json.dumps({**content, "options": {**kept, **options}}))


def test_a_catalog_travels_without_its_connections(catalog: ts.Catalog) -> None:
    make(catalog)
    table = pickle.loads(pickle.dumps(catalog)).table("shop.t")
    assert table.upsert(pa.table({"id": [1], "v": ["a"]})) is not None and catalog.table("shop.t").scan().count() == 1


def test_what_finds_a_table_travels_and_its_log_is_chosen_where_it_arrives(catalog: ts.Catalog) -> None:
    spec = TableSpec(location=make(catalog, **KAFKA).location, storage_options={})
    assert isinstance(pickle.loads(pickle.dumps(spec)).table().change_log, PublishedLog)
