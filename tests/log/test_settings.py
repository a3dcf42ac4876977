"""What the options of a table say about its log, and the combinations that cannot be (FLIP-188's messages)."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.log.settings import LogSettings, log_settings
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema

BROKERS = {"log.kafka.bootstrap.servers": "localhost:9092"}


def made(*, keyed: bool = True, **options: str) -> TableSchema:
    return new_schema(
        schema=pa.schema([("id", pa.int64()), ("v", pa.string())]),
        primary_key=["id"] if keyed else (),
        partition_by=(),
        options={key.replace("__", "."): value for key, value in options.items()},
        comment=None,
        time_millis=0,
    )


def settings(*, keyed: bool = True, **options: str) -> LogSettings:
    return log_settings(made(keyed=keyed, **options), name="shop.orders")


def test_without_brokers_the_log_is_the_file_store_and_with_them_it_is_kafka() -> None:
    assert settings().system == "filestore"
    assert settings(**BROKERS).system == "kafka"
    assert settings(**BROKERS, **{"log.system": "filestore"}).system == "filestore"
    with pytest.raises(InvalidInputError, match="needs brokers"):
        settings(**{"log.system": "kafka"})


def test_auto_is_upsert_with_a_key_and_all_without() -> None:
    assert settings().mode == "upsert"
    assert settings(keyed=False).mode == "all"
    assert settings(**{"log.changelog-mode": "all"}).mode == "all"


def test_a_topic_has_a_partition_per_bucket_and_is_named_after_the_table() -> None:
    found = settings(**BROKERS, bucket="4", **{"log.retention": "1 d", "tablestore.log.publisher-slots": "9"})
    assert (found.topic, found.partitions, found.slots, found.retention_ms) == ("shop.orders", 4, 4, 86_400_000)
    assert settings(keyed=False, **BROKERS).partitions == 1
    assert settings(**BROKERS, **{"log.kafka.topic": "t", "log.kafka.linger.ms": "3"}).topic == "t"
    assert settings(**BROKERS, **{"log.kafka.topic": "t", "log.kafka.linger.ms": "3"}).properties == {
        "bootstrap.servers": "localhost:9092",
        "linger.ms": "3",
    }


@pytest.mark.parametrize(
    ("keyed", "options", "message"),
    [
        (False, {"log.changelog-mode": "upsert"}, "Can not use upsert changelog mode for non-pk table"),
        (False, {"log.consistency": "eventual"}, "Can not use EVENTUAL consistency mode for non-pk table"),
        (True, {"log.consistency": "eventual", "log.changelog-mode": "all"}, "needs log.consistency = transactional"),
        (True, {"log.consistency": "eventual"}, "does not support eventual consistency mode"),
    ],
)
def test_what_cannot_be_together_is_refused_with_the_way_out(keyed: bool, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        settings(keyed=keyed, **options)


def test_what_kafka_is_not_used_for_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="fixed number of buckets"):
        settings(**BROKERS, bucket="-1")
    with pytest.raises(UnsupportedError, match="publisher-slots"):
        settings(**BROKERS, bucket="2", **{"log.consistency": "eventual", "tablestore.log.publisher-slots": "2"})


def test_rows_are_sent_early_only_where_the_table_asks_for_it() -> None:
    assert settings(**BROKERS, **{"log.consistency": "eventual"}).eventual
    assert not settings(**BROKERS).eventual


@pytest.mark.parametrize("key", ["log.format", "log.key.format"])
def test_messages_of_another_format_are_refused_where_there_is_a_topic(key: str) -> None:
    stored = replace(made(), options={key: "protobuf", "bucket": "1"})
    assert log_settings(stored, name="t").system == "filestore"
    with pytest.raises(InvalidInputError, match=f"{key}: expected one of"):
        log_settings(replace(stored, options={**stored.options, **BROKERS}), name="t")


@pytest.mark.parametrize("form", ["json", "avro"])
def test_formats_of_rows_do_not_go_with_rows_taken_back(form: str) -> None:
    assert settings(**BROKERS, bucket="1", **{"log.format": form}).form == form
    with pytest.raises(InvalidInputError, match=f"log.format = {form} has no message"):
        settings(**BROKERS, bucket="1", **{"log.format": form, "log.changelog-mode": "all"})
    with pytest.raises(InvalidInputError, match="streaming-read-overwrite"):
        settings(keyed=False, **BROKERS, **{"log.format": form, "streaming-read-overwrite": "true"})
    assert settings(**BROKERS, bucket="1", **{"log.format": "canal-json", "log.changelog-mode": "all"}).form == "canal-json"


def test_columns_that_avro_does_not_hold_are_refused_by_name() -> None:
    odd = replace(made(), fields=tuple(replace(field, name=f"{field.name} ") for field in made().fields), primary_keys=("id ",))
    with pytest.raises(UnsupportedError, match=r"names of letters, digits and _ with log\.format = avro"):
        log_settings(replace(odd, options={**BROKERS, "bucket": "1", "log.format": "avro"}), name="t")
