"""A row that is larger than its topic takes is refused when it is written. One that came into the table all the same is named, what
came before it is published, and there are two ways on: a higher limit, or another log."""

from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

import tablestore as ts
from tablestore.errors import InvalidInputError
from tablestore.log.publish.ownerfile import read_log_owner
from tablestore.store.postcommit import read_undone
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.early import make, told

PLAIN = {"log.consistency": "transactional", "write-only": "true", "bucket": "1"}


def row(number: int, text: str) -> pa.Table:
    return pa.table({"id": [number], "v": [text]})


def three_rows() -> pa.Table:
    return pa.table({"id": [2, 3, 4], "v": ["b", "x" * 100_000, "c"]})


def limit_by_hand(broker: KafkaBroker, topic: str, limit: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(limit), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.incremental_alter_configs([resource])[resource].result()


@pytest.mark.deep
def test_a_row_over_the_limit_is_refused_until_the_limit_is_raised(tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, "large-refused", **PLAIN)
    owner = read_log_owner(table.context.files)
    assert owner is not None and owner.record_bytes == 1_000_000, "CREATE has asked the topic"
    with pytest.raises(InvalidInputError, match=r'the row with key {"id":3} makes a record of') as refused:
        table.upsert(pa.table({"id": [2, 3], "v": ["b", "x" * 1_500_000]}))
    assert refused.value.kind == "log-record-too-large" and table.snapshots() == ()
    raised = table.alter(ts.SetOption("log.kafka.message.max.bytes", "4000000"))
    raised.upsert(row(3, "x" * 3_900_000))
    assert sorted(told(raised, broker.servers)) == [3] and read_undone(raised.context.files) == ()
    lowered = raised.alter(ts.SetOption("log.kafka.message.max.bytes", "50000"))
    with pytest.raises(InvalidInputError, match="expected at most 50,000"):
        lowered.upsert(row(4, "x" * 60_000))
    lowered.upsert(pa.table({"id": list(range(10, 20)), "v": ["x" * 45_000] * 10}))
    assert sorted(told(lowered, broker.servers)) == [3, *range(10, 20)], "batches of records are within the limit"


@pytest.mark.deep
def test_a_topic_whose_limit_was_lowered_names_the_row_and_goes_on_once_it_is_raised(
    tmp_path: Path, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(tmp_path, broker, "large-lowered", **PLAIN)
    table.upsert(row(1, "a"))
    limit_by_hand(broker, "large-lowered", 50_000)
    # The slot is open since, and goes by the limit of before: the broker refuses the transaction.
    table.upsert(three_rows())
    assert 'the row with key {"id":3} makes a record of 100,0' in caplog.text and "refused as too large" in caplog.text
    (undone,) = read_undone(table.context.files)
    assert (undone.task, undone.error_kind) == ("publish", "log-record-too-large")
    assert sorted(told(table, broker.servers, "read_committed")) == [1]
    # Opened anew it asks for the limit.
    with pytest.raises(InvalidInputError, match=r'{"id":3} makes a record of 100,0\d\d bytes, expected at most 41,808'):
        table.change_log.publish()
    assert sorted(told(table, broker.servers, "read_committed")) == [1, 2], "what comes before it is there"
    with pytest.raises(InvalidInputError, match="expected at most 41,808"):
        ts.open_table(table.location).upsert(row(9, "x" * 60_000))
    table.upsert(row(3, "overwritten"))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert len(table.snapshots()) > 1, "what is not published is kept"
    status = table.change_log.status()
    assert status.problem is not None and '{"id":3}' in status.problem and "log.kafka.message.max.bytes" in status.problem
    raised = table.alter(ts.SetOption("log.kafka.message.max.bytes", "4000000"))
    raised.change_log.publish()
    assert told(raised, broker.servers, "read_committed") == {1: "a", 2: "b", 3: "overwritten", 4: "c"}
    raised.upsert(row(6, "e"))
    assert read_undone(raised.context.files) == () and raised.change_log.status().problem is None
    raised.expire_snapshots(retain_min=1, retain_max=1)
    assert len(raised.snapshots()) == 1


@pytest.mark.deep
def test_a_row_may_be_given_up_and_another_log_begun_behind_it(tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, "large-given-up", **PLAIN)
    limit_by_hand(broker, "large-given-up", 50_000)
    table.upsert(three_rows())
    assert [one.error_kind for one in read_undone(table.context.files)] == ["log-record-too-large"]
    ended = table.alter(ts.SetOption("log.system", "filestore"))
    ended.upsert(row(3, "overwritten"))
    ended.expire_snapshots(retain_min=1, retain_max=1)
    assert len(ended.snapshots()) == 1
    begun = ended.alter(ts.SetOption("log.system", "kafka"))
    begun.upsert(row(5, "d"))
    assert told(begun, broker.servers, "read_committed") == {5: "d"} and read_undone(begun.context.files) == ()
    assert begun.scan().count() == 4


def test_a_table_may_begin_with_a_larger_limit(tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, "large-from-the-start", **PLAIN, **{"log.kafka.message.max.bytes": "4000000"})
    table.upsert(row(1, "x" * 3_000_000))
    assert sorted(told(table, broker.servers)) == [1]


@pytest.mark.deep
@pytest.mark.parametrize("limit", ["1000", None])
def test_a_row_of_just_the_limit_is_published_and_one_byte_more_is_refused(
    tmp_path: Path, broker: KafkaBroker, limit: str | None
) -> None:
    table = make(tmp_path, broker, f"limit-{limit}", **PLAIN, **({"log.kafka.message.max.bytes": limit} if limit else {}))
    fitting = int(limit or 1_000_000) - len('{"id":1}') - len('{"before":null,"after":{"id":1,"v":""},"op":"c"}')
    table.upsert(pa.table({"id": [1, 2, 3], "v": ["x" * fitting, "y" * fitting, "z" * fitting]}))
    assert read_undone(table.context.files) == () and sorted(told(table, broker.servers)) == [1, 2, 3]
    with pytest.raises(InvalidInputError, match=r'the row with key {"id":4} makes a record of'):
        table.upsert(row(4, "x" * (fitting + 1)))
