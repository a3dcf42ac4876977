"""Commits through a catalog service publish their changes to the topic once each: both the service and its clients do, at once."""

import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import records
from tests.support.servers.serverthread import catalog_service

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
CLIENTS, COMMITS = 3, 4


@pytest.mark.parametrize("producer", ["input", "lookup"])
def test_rows_of_clients_that_race_through_a_service_are_in_the_topic_once(
    tmp_path: Path, broker: KafkaBroker, request: pytest.FixtureRequest, producer: str
) -> None:
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)
    options = {
        "bucket": "1",
        "changelog-producer": producer,
        "log.system": "kafka",
        "log.kafka.bootstrap.servers": broker.servers,
        "log.kafka.topic": topic,
    }
    with catalog_service(ts.open_catalog(str(tmp_path / "wh"))) as uri:
        catalog = ts.open_catalog(metastore="rest", uri=uri)
        catalog.create_database("shop")
        table = catalog.create_table("shop.t", SCHEMA, primary_key=["id"], options=options)
        errors: list[BaseException] = []

        def write(client: int) -> None:
            try:
                own = ts.open_catalog(metastore="rest", uri=uri).table("shop.t")
                assert isinstance(own, ts.Table)
                for turn in range(COMMITS):
                    own.upsert(pa.table({"id": [client * 100 + turn], "v": [f"{client}-{turn}"]}, schema=SCHEMA))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(client,)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        sent = records(table)
        expected = Counter(f"{client}-{turn}" for client in range(CLIENTS) for turn in range(COMMITS))
        assert Counter(value for _, _, _, _, value in sent) == expected
        # In the order of snapshots, each row of a snapshot once.
        places = [(snapshot, ordinal) for snapshot, ordinal, *_ in sent]
        assert places == sorted(set(places))
