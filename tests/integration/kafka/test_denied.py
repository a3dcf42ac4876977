"""A broker that refuses: a typed error that names it at create, publish and consume; nothing is half made, nothing is lost."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import tablestore as ts
from tablestore.errors import InvalidInputError
from tablestore.testing.contracts.following import SCHEMA, all_of, content, folded, rows, told
from tablestore.testing.kafka import KafkaBroker

sys.path.insert(0, str(Path(__file__).parent))

from topics import records, topics

Deny = Callable[[ResourceType, str, AclOperation], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def guarded(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that asks for rights; everything is allowed that no rule is about."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with KafkaBroker(jars, tmp_path_factory.mktemp("guarded"), settings=settings) as broker:
        yield broker


@pytest.fixture
def deny(guarded: KafkaBroker) -> Deny:
    admin = AdminClient({"bootstrap.servers": guarded.servers, "log_level": 0})

    @contextmanager
    def denied(kind: ResourceType, name: str, operation: AclOperation) -> Iterator[None]:
        where = (kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*")
        rules = [
            AclBinding(*where, AclOperation.ALL, AclPermissionType.ALLOW),
            AclBinding(*where, operation, AclPermissionType.DENY),
        ]
        for made in admin.create_acls(rules).values():
            made.result()
        yield
        whatever = AclBindingFilter(*where, AclOperation.ANY, AclPermissionType.ANY)
        for gone in admin.delete_acls([whatever]).values():
            gone.result()

    return denied


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


def make(catalog: ts.Catalog, guarded: KafkaBroker, topic: str) -> ts.Table:
    options = {"log.kafka.bootstrap.servers": guarded.servers, "log.kafka.topic": topic, "write-only": "true"}
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)


# Who may create topics of any name, or of this one, may create it.
NO_TOPIC = [(ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE), (ResourceType.TOPIC, "made", AclOperation.CREATE)]
NO_SLOT = [(ResourceType.TRANSACTIONAL_ID, "made-0", AclOperation.WRITE)]


@pytest.mark.deep
@pytest.mark.parametrize("denied", [NO_TOPIC, NO_SLOT])
def test_a_table_that_may_not_have_its_topic_is_not_made(
    catalog: ts.Catalog, guarded: KafkaBroker, deny: Deny, denied: list[tuple[ResourceType, str, AclOperation]]
) -> None:
    with ExitStack() as rules:
        for kind, name, operation in denied:
            rules.enter_context(deny(kind, name, operation))
        with pytest.raises(InvalidInputError, match="ask for the right") as caught:
            make(catalog, guarded, "made")
    assert caught.value.kind == "kafka-denied"
    assert catalog.list_tables("shop") == () and "made" not in topics(guarded.servers)


@pytest.mark.slow_after(1)
@pytest.mark.deep
@pytest.mark.parametrize(
    ("kind", "suffix", "operation"),
    [
        (ResourceType.TOPIC, "", AclOperation.WRITE),
        (ResourceType.TOPIC, "", AclOperation.READ),
        (ResourceType.TOPIC, "", AclOperation.DESCRIBE),
        (ResourceType.TRANSACTIONAL_ID, "-0", AclOperation.WRITE),
    ],
)
def test_what_may_not_be_published_is_published_once_it_may(
    catalog: ts.Catalog,
    guarded: KafkaBroker,
    deny: Deny,
    caplog: pytest.LogCaptureFixture,
    kind: ResourceType,
    suffix: str,
    operation: AclOperation,
) -> None:
    topic = f"published-{kind.name}-{operation.name}"
    table = make(catalog, guarded, topic)
    table.upsert(rows([1], "a"))
    table.close()
    with deny(kind, topic + suffix, operation):
        assert table.upsert(rows([2], "b")) is not None
        assert "has landed" in caplog.text and "ask for the right" in caplog.text
        with pytest.raises(InvalidInputError, match="ask for the right") as caught:
            table.change_log.publish()
        assert caught.value.kind == "kafka-denied" and content(table) == {1: "a1", 2: "b2"}
    assert sum(report.records for report in table.change_log.publish()) == 1
    assert [record[3:] for record in records(table)] == [(1, "a1"), (2, "b2")]


@pytest.mark.deep
@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.DESCRIBE])
def test_who_may_not_read_the_topic_is_told(catalog: ts.Catalog, guarded: KafkaBroker, deny: Deny, operation: AclOperation) -> None:
    topic = f"read-{operation.name}"
    table = make(catalog, guarded, topic)
    table.upsert(rows([1], "a"))
    with deny(ResourceType.TOPIC, topic, operation):
        with pytest.raises(InvalidInputError, match="ask for the right") as caught:
            all_of(table)
        assert caught.value.kind == "kafka-denied"
    assert folded(told(all_of(table))) == {1: "a1"}
