"""What a reader gets while the log does not answer, or is not quite as it was made."""

from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.early import make

SILENT = "localhost:1"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"v{number}" for number in ids]})


def silenced(table: ts.Table, monkeypatch: pytest.MonkeyPatch) -> ts.Table:
    """The same table for a process that cannot reach its brokers."""
    table.close()
    monkeypatch.setenv("TABLESTORE_KAFKA_BOOTSTRAP_SERVERS", SILENT)
    monkeypatch.setenv("TABLESTORE_KAFKA_SOCKET_TIMEOUT_MS", "1000")
    monkeypatch.setattr("tablestore_kafka.topics.ADMIN_TIMEOUT_S", 1.0)
    monkeypatch.setattr("tablestore_kafka.logstore.CALL_TIMEOUT_S", 1.0)
    return ts.open_table(table.location)


@pytest.mark.deep
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("consistency", ["eventual", "transactional"])
def test_a_new_consumer_reads_the_snapshots_while_the_brokers_are_down(
    tmp_path: Path, broker: KafkaBroker, consistency: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(tmp_path, broker, f"down-{consistency}", **{"log.consistency": consistency, "write-only": "true"})
    table.upsert(rows(1, 2))
    with monkeypatch.context() as down:
        cut_off = silenced(table, down)
        found = [row["id"] for batch in cut_off.consume("full", consumer_id="c", follow=False) for row in batch.rows.to_pylist()]
        assert sorted(found) == [1, 2] and "read from its snapshots instead" in caplog.text
        for batch in cut_off.consume("full", consumer_id="c", follow=False):
            batch.commit()
    table.close()
    table.upsert(rows(3))
    again = ts.open_table(table.location)
    behind = [row["id"] for batch in again.consume(consumer_id="c", follow=False) for row in batch.rows.to_pylist()]
    # Rows that were sent early may come once more, before what has landed since.
    assert behind == [3] if consistency == "transactional" else behind[-1] == 3


def test_a_partition_that_somebody_adds_stops_neither_readers_nor_publishers(tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, "added-partition", **{"log.consistency": "transactional", "write-only": "true"})
    table.upsert(rows(1, 2))
    admin = AdminClient({"bootstrap.servers": broker.servers})
    for future in admin.create_partitions([NewPartitions("added-partition", 3)]).values():
        future.result()
    table.close()
    table.upsert(rows(3))
    found = [row["id"] for batch in table.consume("full", follow=False) for row in batch.rows.to_pylist()]
    assert sorted(found) == [1, 2, 3]


@pytest.mark.deep
def test_a_named_consumer_of_an_eventual_table_goes_on_behind_an_alteration_and_an_expiry(
    tmp_path: Path, broker: KafkaBroker
) -> None:
    table = make(tmp_path, broker, "altered-eventual", **{"write-only": "true"})
    table.upsert(rows(1, 2))

    def read(handle: ts.Table) -> list[int]:
        found = []
        for batch in handle.consume("full", consumer_id="c", follow=False):
            found += [row["id"] for row in batch.rows.to_pylist()]
            batch.commit()
        return found

    assert sorted(read(table)) == [1, 2]
    table.upsert(rows(3))
    assert read(table) == [3]
    table = table.alter(ts.SetOption("snapshot.num-retained.max", "20"))
    table = table.alter(ts.AddColumn("extra", "BIGINT"))
    for number in range(4, 8):
        table.upsert(rows(number).append_column("extra", pa.array([number])))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert sorted(read(table)) == [4, 5, 6, 7]
    for number in range(8, 30):
        table.upsert(rows(number).append_column("extra", pa.array([number])))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert sorted(set(read(table))) == list(range(8, 30))
