"""Options are checked where a relation is made. These tests call the data source as Spark's workers do, without a session."""

import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tablestore import InvalidInputError, TablestoreError, open_catalog
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark_tablestore import DefaultSource

pytestmark = pytest.mark.spark


def source(**options: Any) -> "DefaultSource":
    from pyspark_tablestore import DefaultSource

    return DefaultSource({key.replace("_", "-"): str(value) for key, value in options.items()})


@pytest.fixture
def table(catalog: Catalog) -> Table:
    schema = pa.schema([pa.field("id", pa.int64()), ("name", pa.string())])
    table = catalog.create_table("shop.things", schema=schema, primary_key=["id"])
    table.upsert(pa.table({"id": [1], "name": ["one"]}))
    return table


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, r"found no options at all.*spark\.read.*warehouse.*CREATE TEMPORARY VIEW"),
        ({"table": "shop.things"}, r"warehouse and table; found table"),
        ({"path": "{path}", "table": "shop.things"}, "found both"),
        ({"path": "{path}", "colums": "id"}, "no option 'colums'; did you mean 'columns'"),
        ({"path": "{path}", "columns": "id, nope"}, "'nope'.*id, name"),
        ({"path": "{path}", "columns": "id, id"}, "more than once"),
        ({"path": "{path}", "filter": "nope > 1"}, "nope"),
        ({"path": "{path}", "filter": "id >"}, "id >"),
        ({"path": "{path}", "snapshot-id": "one"}, "snapshot-id: expected a whole number, found 'one'"),
        ({"path": "{path}", "snapshot-id": "77"}, "77"),
        ({"path": "{path}", "timestamp-millis": "5"}, "5|1970"),
        ({"path": "{path}", "snapshot-id": "1", "timestamp-millis": "5"}, "at most one"),
        ({"path": "{path}", "split-size": "huge"}, "split-size"),
        ({"path": "{path}", "commit-user": "me"}, "give both"),
        ({"path": "{path}-not-there"}, "no table at .*things-not-there"),
        ({"warehouse": "{warehouse}", "table": "shop.other"}, "shop.other.*does not exist"),
        ({"warehouse": "{warehouse}", "table": "../../etc"}, "etc"),
    ],
)
def test_what_is_wrong_is_said(table: Table, warehouse: str, options: dict[str, str], said: str) -> None:
    from pyspark_tablestore import DefaultSource

    filled = {key: value.format(path=table.location, warehouse=warehouse) for key, value in options.items()}
    with pytest.raises(TablestoreError, match=f"(?s){said}") as raised:
        DefaultSource(filled).schema()
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_pin_travels_with_the_source(table: Table) -> None:
    made = source(path=table.location)
    schema = made.schema()
    table.upsert(pa.table({"id": [2], "name": ["two"]}))
    reader = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(made)).reader(schema)))
    table.upsert(pa.table({"id": [3], "name": ["three"]}))
    assert sum(batch.num_rows for task in reader.partitions() for batch in reader.read(task)) == 2


def test_storage_options_reach_the_file_system_as_they_are_meant() -> None:
    from pyspark_tablestore.sourceoptions import parse_options

    parsed = parse_options(
        {"path": "s3://b/t", "storage.KEY": "007", "storage.use_ssl": "false", "storage.client_kwargs": '{"region_name": "x"}'}
    )
    assert parsed.storage == {"key": "007", "use_ssl": False, "client_kwargs": {"region_name": "x"}}


def test_tasks_find_a_table_of_a_catalog_in_a_database_by_its_files(tmp_path: Path) -> None:
    from pyspark_tablestore.sourceoptions import parse_options

    uri = f"jdbc:sqlite:{tmp_path}/names.db"
    catalog = open_catalog(str(tmp_path / "warehouse"), metastore="jdbc", uri=uri)
    catalog.create_database("shop")
    catalog.create_table("shop.t", pa.schema({"id": "int64"}), primary_key=["id"]).upsert([{"id": 1}])
    parsed = parse_options(
        {"warehouse": str(tmp_path / "warehouse"), "table": "shop.t", "storage.metastore": "jdbc", "storage.uri": uri}
    )
    _, spec = parsed.open()
    assert spec.storage_options == {}
    assert pickle.loads(pickle.dumps(spec)).table().scan().count() == 1


def test_relative_path_is_resolved_once(table: Table, monkeypatch: pytest.MonkeyPatch, warehouse: str) -> None:
    monkeypatch.chdir(warehouse)
    made = source(path="shop.db/things")
    schema = made.schema()
    monkeypatch.chdir("/")
    reader = made.reader(schema)
    assert sum(batch.num_rows for task in reader.partitions() for batch in reader.read(task)) == 1


def test_writer_takes_no_reading_options(table: Table) -> None:
    made = source(path=table.location, filter="id > 1", snapshot_id=1)
    with pytest.raises(InvalidInputError, match="no filter and no snapshot-id"):
        made.writer(made.schema(), overwrite=False)


def test_importing_the_source_loads_no_engine() -> None:
    import subprocess
    import sys

    code = "import pyspark_tablestore, sys; print([name for name in sys.modules if name.startswith(('tablestore', 'pyarrow'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("cores", [1, 2])
def test_a_process_of_one_core_reads_in_one_task_and_one_thread(
    catalog: Catalog, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_tablestore.reader import read_ahead

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr("tablestore.distributed.read.LEAST_TASK_BYTES", 1)
    parts = catalog.create_table(
        "shop.parts", schema=pa.schema({"id": "int64", "day": "string"}), primary_key=["id", "day"], partition_by=["day"]
    )
    parts.upsert([{"id": 1, "day": day} for day in "abcd"])
    made = source(path=parts.location)
    assert len(made.reader(made.schema()).partitions()) == cores
    threads: list[threading.Thread] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(2):
            threads.append(threading.current_thread())
            yield pa.RecordBatch.from_pydict({"id": [number]})

    assert [batch.num_rows for batch in read_ahead(batches())] == [1, 1]
    assert {thread is threading.current_thread() for thread in threads} == {cores == 1}
