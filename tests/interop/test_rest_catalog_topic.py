"""What clients commit through the service is in the topic of the table, on a real broker; they know nothing of it themselves."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from oracles import Oracle

import tablestore as ts
from tablestore.testing.kafka import BrokerUnavailable, KafkaBroker, ensure_jars
from tests.integration.kafka.topics import Record, records
from tests.support.servers.catalogservice import CatalogService
from tests.support.services import require_service

pytestmark = [pytest.mark.interop, pytest.mark.kafka, pytest.mark.deep]

COLUMNS = [{"name": "id", "type": "BIGINT NOT NULL"}, {"name": "v", "type": "STRING"}]


@pytest.fixture(scope="module")
def broker(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    try:
        jars = ensure_jars(project / ".cache")
    except BrokerUnavailable as error:
        require_service(str(error), "install a JDK 17 and Maven", env=os.environ)
    with KafkaBroker(jars, tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def service(broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogService]:
    """A service whose catalog gives each table a topic."""
    default = f"table-default.log.kafka.bootstrap.servers={broker.servers}"
    with CatalogService(tmp_path_factory.mktemp("service") / "wh", "--storage", default) as service:
        yield service


def changes(service: CatalogService, name: str) -> list[Record]:
    table = ts.open_catalog(str(service.warehouse)).table(f"db.{name}")
    assert isinstance(table, ts.Table)
    return sorted(records(table))


@pytest.mark.parametrize("kind", ["java", "pypaimon_pure"])
def test_rows_of_other_clients_are_in_the_topic_once_their_commit_is_answered(
    request: pytest.FixtureRequest, service: CatalogService, kind: str
) -> None:
    client: Oracle = request.getfixturevalue(kind)
    table = service.warehouse / "db.db" / kind
    with client.through(service.client_options):
        client.create(table, COLUMNS, primary_key=["id"], options={"bucket": "1"})
        client.write(table, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
        assert changes(service, kind) == [(1, 0, "+I", 1, "a"), (1, 1, "+I", 2, "b")]
        client.write(table, [{"id": 2, "v": "c"}])
        assert changes(service, kind)[2:] == [(2, 0, "+I", 2, "c")]


def test_a_client_of_ours_makes_tables_with_a_topic_as_the_service_says(service: CatalogService) -> None:
    catalog = ts.open_catalog({"metastore": "rest", "uri": service.address})
    catalog.create_database("db", ignore_if_exists=True)
    table = catalog.create_table("db.ours", "id BIGINT, v STRING", primary_key=["id"], options={"bucket": "1"})
    table.upsert([{"id": 1, "v": "a"}])
    assert changes(service, "ours") == [(1, 0, "+I", 1, "a")]
