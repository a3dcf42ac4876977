"""Changes of a table in a topic, each once for whoever reads what was committed, whenever the delivery dies."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.testing.kafka import KafkaBroker
from tests.environment.conftest import _entry_points  # noqa: F401
from tests.integration.kafka.endurance import PROCESSES, SCHEMA, rows
from tests.integration.kafka.topics import messages
from tests.support.commandline import run_command

CLOCK = SystemClock()


@pytest.fixture
def catalog(tmp_path: Path, _entry_points: None) -> ts.Catalog:  # noqa: F811
    made = ts.open_catalog(str(tmp_path / "wh"))
    made.create_database("shop")
    return made


def keyed(catalog: ts.Catalog, name: str = "shop.s", **options: str) -> ts.Table:
    return catalog.create_table(name, schema=SCHEMA, primary_key=["id"], options={"bucket": "2", **options})


def fold(found: list[tuple[object, object]]) -> dict[int, Any]:
    state: dict[int, Any] = {}
    for key, value in found:
        assert isinstance(key, dict)
        if value is None:
            del state[key["id"]]
        else:
            state[key["id"]] = value
    return state


@pytest.mark.deep
def test_rows_updates_and_deletes_are_json_messages_and_tombstones(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    table, to = keyed(catalog), ts.Topic("deliver-plain", broker.servers)
    table.upsert(rows([1, 2, 3], 'ü"'))
    assert str(ts.deliver(table, to)) == "3 changes in 1 commits"
    table.upsert(rows([2], "new"))
    table.delete("id = 1")
    ts.deliver(table, to)
    found = messages(broker.servers, to.name)
    assert fold(found) == {2: {"id": 2, "v": "new2"}, 3: {"id": 3, "v": 'ü"3'}}
    assert len(found) == 5 and ({"id": 1}, None) in found
    # Nothing is left, and another name has a place of its own, also one that no topic's name can hold.
    assert ts.deliver(table, to) == ts.DeliveryReport()
    assert ts.deliver(table, to, name="ä b/" * 60, scan="latest").rows == 0
    table.delete("id = 3")
    assert ts.deliver(table, to, name="ä b/" * 60).rows == 1
    with pytest.raises(ts.InvalidInputError, match="'id'"):
        ts.deliver(table, to, columns=["v"])
    table.upsert([{"id": 4, "v": "x" * 2_000_000}])
    with pytest.raises(ts.InvalidInputError, match=r"no record of that size; raise max\.message\.bytes of the topic") as error:
        ts.deliver(table, to)
    assert error.value.kind == "log-record-too-large"
    with pytest.raises(ts.InvalidInputError, match="debezium-json as format, found 'avro'"):
        ts.Topic("t", format="avro")  # type: ignore[arg-type]


@pytest.mark.deep
def test_changemessages_messages_go_back_into_a_table_and_a_table_without_a_key_has_null_keys(
    catalog: ts.Catalog, broker: KafkaBroker
) -> None:
    table, other = keyed(catalog), keyed(catalog, "shop.t")
    table.upsert(rows([1, 2, 3], "a"))
    table.upsert(rows([2], "b"))
    table.delete("id = 1")
    to = ts.Topic("deliver-debezium", broker.servers, "debezium-json")
    ts.deliver(table, to)
    table.upsert(rows([2], "c"))
    assert ts.deliver(table, to).rows == 2
    assert ({"id": 2}, {"before": {"id": 2, "v": "b2"}, "after": None, "op": "d"}) in messages(broker.servers, to.name)
    ts.ingest(other, to.name, servers=broker.servers)
    assert other.scan().to_arrow().sort_by("id") == table.scan().to_arrow().sort_by("id")
    adding = catalog.create_table("shop.a", schema=SCHEMA, options={"bucket": "-1"})
    adding.append(rows([7, 7], "x"))
    ts.deliver(adding, ts.Topic("deliver-added", broker.servers))
    assert messages(broker.servers, "deliver-added") == [(None, {"id": 7, "v": "x7"})] * 2


@pytest.mark.deep
@pytest.mark.parametrize("kills", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_a_change_is_in_the_topic_once_whatever_is_killed(kills: int, catalog: ts.Catalog, broker: KafkaBroker) -> None:
    chance, topic = random.Random(7), f"deliver-killed-{kills}"
    table, step = keyed(catalog, **{"snapshot.num-retained.max": "1000"}), 0
    expected: Counter[tuple[int, str | None]] = Counter()
    ts.deliver(table, ts.Topic(topic, broker.servers), scan="latest")
    for _ in range(kills):
        for _ in range(8):
            step += 1
            ids = list(range(step * 1000, step * 1000 + 400))
            table.upsert(rows(ids, "a"))
            expected.update((id, f"a{id}") for id in ids)
            table.delete(pa.table({"id": ids[:50]}))
            expected.update((id, None) for id in ids[:50])
        process = PROCESSES.Process(target=deliver_for_ever, args=(table.location, broker.servers, topic), daemon=True)
        before = len(messages(broker.servers, topic))
        process.start()
        deadline_s = CLOCK.steady_s() + 120
        while len(messages(broker.servers, topic)) == before:
            assert CLOCK.steady_s() < deadline_s, "the delivery does not get to work"
        CLOCK.sleep(0.1 * chance.random())
        process.kill()
        process.join()
    ts.deliver(table, ts.Topic(topic, broker.servers))
    found = messages(broker.servers, topic)
    assert Counter((key["id"], value and value["v"]) for key, value in found) == expected  # type: ignore[index]


def deliver_for_ever(location: str, servers: str, topic: str) -> None:
    """Deliver in small commits until somebody kills this process."""
    ts.deliver(ts.open_table(location), ts.Topic(topic, servers), follow=True, commit_rows=70)


def test_the_earlier_of_two_runs_of_one_name_is_fenced(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    """The later one goes on where the first has come to."""
    table, to = keyed(catalog), ts.Topic("deliver-fenced", broker.servers)
    for step in range(5):
        table.upsert(rows([step], "a"))
    overtaken: list[int] = []

    def overtake(report: ts.DeliveryReport) -> None:
        if not overtaken:
            overtaken.append(ts.deliver(ts.open_table(table.location), to).rows)

    with pytest.raises(ts.ConflictError, match="another process delivers to topic deliver-fenced") as error:
        ts.deliver(table, to, follow=True, commit_rows=1, on_commit=overtake)
    assert error.value.kind == "fenced"
    assert sorted(key["id"] for key, _ in messages(broker.servers, to.name)) == list(range(5))  # type: ignore[index]


def test_the_command_line_delivers_to_a_topic(catalog: ts.Catalog, tmp_path: Path, broker: KafkaBroker) -> None:
    table, given = keyed(catalog), ("--to-topic", "deliver-cli", "--brokers", broker.servers, "-w", tmp_path / "wh")
    table.upsert(rows([1], "a"))
    assert "shop.s to deliver-cli: 1 changes in 1 commits." in run_command("consume", "shop.s", *given).out
    table.delete("id = 1")
    ran = run_command("consume", "shop.s", *given, "--json")
    assert ran.rows[-1]["rows"] == 1
    assert messages(broker.servers, "deliver-cli") == [({"id": 1}, {"id": 1, "v": "a1"}), ({"id": 1}, None)]
    run_command("consume", "shop.s", *given, "--to", "shop.t", code=2)
    run_command("consume", "shop.s", *given, "--format", "parquet", code=2)


def test_a_topic_made_again_is_refused_since_what_it_held_is_gone(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    table, to = keyed(catalog), ts.Topic("deliver-again", broker.servers)
    table.upsert(rows([1], "a"))
    ts.deliver(table, to)
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    admin.delete_topics([to.name])[to.name].result(30)
    with pytest.raises(ts.ConflictError, match="deleted and made again since the delivery") as error:
        ts.deliver(table, to)
    assert error.value.kind == "source-position"
    assert ts.deliver(table, to, name="anew").rows == 1
    with pytest.raises(ts.InvalidInputError, match="no brokers are named"):
        ts.deliver(table, ts.Topic("deliver-again"))
