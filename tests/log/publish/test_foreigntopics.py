"""The options of a table name a topic that is not its log: nobody who drops or alters the table deletes the topic."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

import tablestore as ts
from tablestore.format.schemafile import encode_schema
from tablestore.log.connector import open_log_store
from tablestore.log.settings import settings_of
from tablestore.testing.memorylog import MemoryBroker
from tablestore.types.evolution.schemachanges import SetOption
from tests.table.creation.places import COLUMNS, ROWS, Place, broker_of

NAME = "shop.stranger"
_numbers = count()


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with broker_of(f"foreign-{next(_numbers)}") as broker:
        yield broker


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place("memory", tmp_path_factory.mktemp("place"))


def stranger(place: Place, broker: MemoryBroker, *, topic: str, partitions: int = 1) -> ts.Catalog:
    """A table that never had a log, whose newest schema says that it is a topic."""
    catalog = place.open()
    table = catalog.create_table(NAME, COLUMNS, ["id"], options={"bucket": str(partitions)})
    assert isinstance(table, ts.Table)
    schema = table.table_schema
    options = {**schema.options, "log.kafka.bootstrap.servers": broker.address, "log.system": "kafka", "log.kafka.topic": topic}
    place.files.overwrite("shop.db/stranger/schema/schema-0", encode_schema(replace(schema, options=options)))
    return place.open()


def dropped(catalog: ts.Catalog) -> object:
    return catalog.drop_table(NAME)


def without_log(catalog: ts.Catalog) -> object:
    return catalog.alter_table(NAME, SetOption("log.system", "filestore"))


@pytest.mark.parametrize("end", [dropped, without_log])
@pytest.mark.parametrize("noted", [None, "log-0", ""])
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_topic_that_shows_nothing_of_the_table_stays(
    place: Place, broker: MemoryBroker, end: Callable[[ts.Catalog], object], noted: str | None, partitions: int
) -> None:
    catalog = stranger(place, broker, topic="payments", partitions=partitions)
    table = catalog.table(NAME)
    assert isinstance(table, ts.Table)
    open_log_store(settings_of(table.context)).create(partitions=1, retention_ms=None, ignore_if_exists=False)
    if noted is not None:
        owner = {"table": table.context.table_uuid, "location": table.location, "log": noted, "former": []}
        place.files.overwrite("shop.db/stranger/tablestore-log/owner.json", json.dumps(owner).encode())
    end(catalog)
    assert "payments" in broker.topics


@pytest.mark.parametrize("end", [dropped, without_log])
@pytest.mark.parametrize("written", [False, True])
def test_the_topic_of_the_table_goes(
    place: Place, broker: MemoryBroker, end: Callable[[ts.Catalog], object], written: bool
) -> None:
    catalog = place.open()
    table = catalog.create_table(NAME, COLUMNS, ["id"], options={"bucket": "1", "log.kafka.bootstrap.servers": broker.address})
    if written:
        table.upsert(ROWS)
    end(catalog)
    assert not broker.topics
