"""A staged table and its topic on a real broker: the topic comes with the table, or goes with what a dead creation has left."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.testing.files import SimulatedCrash
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import records, topics

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


@pytest.mark.deep
@pytest.mark.parametrize("dies", [None, "before", "after"])
def test_a_topic_comes_with_its_table_or_goes_with_what_is_left(
    broker: KafkaBroker, tmp_path: Path, dies: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, topic = ts.open_catalog(str(tmp_path)), f"staged-{dies}"
    catalog.create_database("shop")
    options = {"bucket": "1", "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": topic}
    staged = catalog.stage_table("shop.t", SCHEMA, ["id"], options=options)
    staged.table.upsert(ROWS)
    assert topic not in topics(broker.servers)
    step = FileSystemCatalog.publish_table

    def dying(*given: object, **more: object) -> None:
        if dies == "after":
            step(*given, **more)  # type: ignore[arg-type]
        raise SimulatedCrash("at the step that makes the table")

    if dies is None:
        staged.publish()
    else:
        with monkeypatch.context() as m, pytest.raises(SimulatedCrash):
            m.setattr(FileSystemCatalog, "publish_table", dying)
            staged.publish()
        assert topic in topics(broker.servers)
        ts.open_catalog(str(tmp_path)).sweep_creations(timedelta(seconds=-1))
    if dies == "before":
        assert topic not in topics(broker.servers) and catalog.list_tables("shop") == ()
        assert not list(tmp_path.rglob("*.parquet"))
        return
    table = ts.open_catalog(str(tmp_path)).table("shop.t")
    table.upsert([{"id": 3, "v": "c"}])
    assert [(snapshot, key) for snapshot, _, _, key, _ in records(table)] == [(1, 1), (1, 2), (2, 3)]
    assert table.change_log.verify().problems == ()
    catalog.drop_table("shop.t")
    assert topic not in topics(broker.servers)
