"""Topics into tables on a real broker: exactly once over kills, transactions, fences, topics that come and go."""

import io
import json
import random
import struct
from datetime import timedelta
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.testing.kafka import KafkaBroker
from tests.environment.conftest import _entry_points  # noqa: F401
from tests.integration.kafka.endurance import PROCESSES
from tests.integration.kafka.feeding import Message, aborted, change, ingest_for_ever, make_topic, produce
from tests.support.commandline import run_command

CLOCK = SystemClock()
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
QUICK = {"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "10", "snapshot.time-retained": "1 ms"}


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    made = ts.open_catalog(str(tmp_path / "wh"))
    made.create_database("shop")
    return made


def keyed(catalog: ts.Catalog, name: str = "shop.t", **options: str) -> ts.Table:
    return catalog.create_table(name, schema=SCHEMA, primary_key=["id"], options={"bucket": "2", **options})


def content(table: ts.Table) -> list[tuple[int, str]]:
    return sorted((row["id"], row["v"]) for row in table.refresh().scan().to_arrow().to_pylist())


@pytest.mark.deep
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_a_topic_is_in_the_table_once_whatever_is_killed(kills: int, catalog: ts.Catalog, broker: KafkaBroker) -> None:
    """Into an append table, where a record that came twice would be there twice; snapshots expire all the time."""
    chance, topic, per_kill = random.Random(41), f"killed-ingest-{kills}", 3000
    make_topic(broker.servers, topic, 3)
    table = catalog.create_table("shop.t", schema=SCHEMA, options={"bucket": "-1", **QUICK})
    letters = ts.dead_letter_table(catalog, "shop.dead")
    poison: dict[int, int] = {0: 0, 1: 0, 2: 0}
    number = 0
    for kill in range(kills):
        messages: list[tuple[int, Message]] = []
        for _ in range(per_kill):
            partition = number % 3
            if chance.random() < 0.002:
                messages.append((partition, (None, b'{"after":{"id":"x%d"},"op":"c"}' % number)))
                poison[partition] += 1
            else:
                messages.append((partition, change("c", None, {"id": number, "v": f"v{number}"})))
                number += 1
        produce(broker.servers, topic, messages, transaction="feeder" if kill % 2 else None)
        process = PROCESSES.Process(
            target=ingest_for_ever, args=(table.location, letters.location, broker.servers, topic), daemon=True
        )
        process.start()
        _wait_for_a_commit(table)
        CLOCK.sleep(0.5 * chance.random())
        process.kill()
        process.join()
    report = ts.ingest(table, topic, servers=broker.servers, dead_letters=letters)
    assert report.records == ts.ingest(table, topic, servers=broker.servers, dead_letters=letters).records + report.records
    assert [id for id, _ in content(table)] == list(range(number))
    dead = letters.refresh().scan().to_arrow().to_pylist()
    assert {partition: sum(row["partition"] == partition for row in dead) for partition in poison} == poison
    assert all("'x" in row["reason"] for row in dead)


def _wait_for_a_commit(table: ts.Table) -> None:
    snapshots = table.context.snapshots
    before, deadline_s = snapshots.listed_ids()[-1:], CLOCK.steady_s() + 120
    while snapshots.listed_ids()[-1:] == before:
        assert CLOCK.steady_s() < deadline_s, "the ingest does not get to work"
        CLOCK.sleep(0.01)


def test_changes_of_a_key_follow_each_other_and_what_was_not_committed_is_not_there(
    catalog: ts.Catalog, broker: KafkaBroker
) -> None:
    topic = "ingest-changes"
    make_topic(broker.servers, topic, 2)
    model: dict[int, str] = {}
    messages: list[tuple[int, Message]] = []
    chance = random.Random(3)
    for step in range(4000):
        id = chance.randrange(50)
        row = {"id": id, "v": f"s{step}"}
        if id not in model:
            messages.append((id % 2, change("c", None, row)))
        elif chance.random() < 0.7:
            messages.append((id % 2, change("u", {"id": id, "v": model[id]}, row)))
        else:
            key, value = change("d", {"id": id, "v": model.pop(id)}, None)
            messages += [(id % 2, (key, value)), (id % 2, (key, None))]
            continue
        model[id] = f"s{step}"
    produce(broker.servers, topic, messages[:2000], transaction="one")
    aborted(broker.servers, topic, [(0, change("c", None, {"id": 1000, "v": "no"}))], "two")
    produce(broker.servers, topic, messages[2000:])
    table = keyed(catalog)
    report = ts.ingest(table, topic, servers=broker.servers, commit_records=777, name="job")
    assert report.records == len(messages) and report.bad_records == 0
    assert content(table) == sorted(model.items())
    # Nothing is left, and the next run knows that without a new snapshot.
    assert ts.ingest(table, topic, servers=broker.servers, name="job") == ts.IngestReport()
    produce(broker.servers, topic, [(1, change("u", None, {"id": 1, "v": "end"}))])
    assert ts.ingest(table, topic, servers=broker.servers, name="job").records == 1
    assert dict(content(table))[1] == "end"


def test_latest_is_where_the_first_run_began_and_a_topic_made_again_is_refused(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    topic, table = "ingest-latest", keyed(catalog)
    make_topic(broker.servers, topic, 1)
    produce(broker.servers, topic, [(0, change("c", None, {"id": 1, "v": "old"}))])
    assert ts.ingest(table, topic, servers=broker.servers, start="latest").records == 0
    produce(broker.servers, topic, [(0, change("c", None, {"id": 2, "v": "new"}))])
    assert ts.ingest(table, topic, servers=broker.servers, start="latest").records == 1
    assert content(table) == [(2, "new")]
    assert ts.ingest(table, topic, servers=broker.servers, reset=True).records == 2
    assert content(table) == [(1, "old"), (2, "new")]
    with pytest.raises(ts.InvalidInputError, match="has read topic ingest-latest"):
        make_topic(broker.servers, "ingest-other", 1)
        ts.ingest(table, "ingest-other", name=topic, servers=broker.servers)
    with pytest.raises(ts.NotFoundError, match="there is no topic nowhere"):
        ts.ingest(table, "nowhere", servers=broker.servers)


def test_the_slower_of_two_runs_of_one_name_is_fenced(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    topic, table = "ingest-fenced", keyed(catalog)
    make_topic(broker.servers, topic, 1)
    produce(broker.servers, topic, [(0, change("c", None, {"id": n, "v": "a"})) for n in range(10)])

    def overtake(commit: ts.IngestCommit) -> None:
        if commit.records == 4 and not overtaken:
            overtaken.append(ts.ingest(ts.open_table(table.location), topic, servers=broker.servers).records)

    overtaken: list[int] = []
    with pytest.raises(ts.ConflictError, match="another process ingests") as error:
        ts.ingest(table, topic, servers=broker.servers, commit_records=4, on_commit=overtake)
    assert error.value.kind == "fenced" and overtaken == [6]
    assert len(content(table)) == 10


def test_a_bad_record_stops_the_ingest_unless_it_is_told_what_to_do_with_it(catalog: ts.Catalog, broker: KafkaBroker) -> None:
    topic, table = "ingest-bad", keyed(catalog)
    make_topic(broker.servers, topic, 1)
    rows: list[Message] = [(None, json.dumps({"id": n, "v": "a"}).encode()) for n in range(3)]
    produce(broker.servers, topic, [(0, row) for row in (rows[0], (b"k", b"\xff"), rows[1], (b"2", None), (None, None))])
    with pytest.raises(ts.TablestoreError, match="offset 1 of partition 0 of topic ingest-bad") as error:
        ts.ingest(table, topic, format="json", servers=broker.servers)
    assert error.value.kind == "bad-record" and content(table) == []
    letters = ts.dead_letter_table(catalog, "shop.dead")
    report = ts.ingest(
        table, topic, format="json", servers=broker.servers, dead_letters=letters, commit_every=timedelta(seconds=60)
    )
    assert (report.records, report.rows, report.bad_records) == (5, 3, 2)
    assert content(table) == [(0, "a"), (1, "a")]
    found = sorted((row["offset"], row["key"], row["value"]) for row in letters.refresh().scan().to_arrow().to_pylist())
    assert found == [(1, b"k", b"\xff"), (4, None, None)]


def test_the_command_line_and_sql_ingest(tmp_path: Path, catalog: ts.Catalog, broker: KafkaBroker) -> None:
    topic, table, warehouse = "ingest-cli", keyed(catalog), tmp_path / "wh"
    make_topic(broker.servers, topic, 2)
    produce(broker.servers, topic, [(n % 2, change("c", None, {"id": n, "v": "a"})) for n in range(6)] + [(0, (None, b"x"))])
    ran = run_command("ingest", "shop.t", topic, "-w", warehouse, "--brokers", broker.servers, "--json", "--commit-records", 4)
    *commits, last = ran.rows
    assert [commit["records"] for commit in commits] == [4, 3] and commits[-1]["lag"] == 0
    assert (last["records"], last["rows"], last["bad_records"], last["commits"]) == (7, 6, 1, 2)
    assert catalog.table("shop.t_dead_letters").scan().to_arrow().column("value").to_pylist() == [b"x"]
    assert (
        "0 records became 0 rows"
        in run_command("ingest", table.location, topic, "--on-error", "stop", "--brokers", broker.servers).out
    )
    run_command("ingest", table.location, topic, "--brokers", broker.servers, code=2)
    produce(broker.servers, topic, [(0, change("d", {"id": 0}, None)), (0, (None, b"y"))])
    with ts.TableEnvironment.create(warehouse) as sql:
        call = f"CALL sys.ingest('shop.t', '{topic}', servers => '{broker.servers}', dead_letters => 'shop.t_dead_letters')"
        assert sql.execute_sql(call).to_arrow().to_pylist()[0]["bad_records"] == 1
    assert [id for id, _ in content(table)] == [1, 2, 3, 4, 5]


def test_sql_ingests_avro_by_its_schema(tmp_path: Path, catalog: ts.Catalog, broker: KafkaBroker) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": "string"}]}
    table, topic = keyed(catalog), "ingest-avro-sql"
    make_topic(broker.servers, topic, 1)
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, {"id": 7, "v": "a"})
    # As a schema registry of Confluent has it: a zero, the number of the schema, the record.
    produce(broker.servers, topic, [(0, (None, struct.pack(">bI", 0, 5) + body.getvalue()))])
    given = f"format => 'avro', avro_schema => '{json.dumps(schema)}', avro_schema_id => 5"
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as sql:
        assert sql.execute_sql(f"CALL sys.ingest('shop.t', '{topic}', servers => '{broker.servers}', {given})").to_arrow().num_rows
    assert content(table) == [(7, "a")]
