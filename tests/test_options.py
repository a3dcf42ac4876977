"""Options: text in, typed values out, mistakes named."""

import pytest

from tablestore import options as o
from tablestore.errors import InvalidInputError, UnsupportedError


@pytest.mark.parametrize(
    ("text", "size"),
    [("128 mb", 128 << 20), ("128MB", 128 << 20), ("1 GiB", 1 << 30), ("5", 5), ("5 b", 5), ("2k", 2048)],
)
def test_sizes_are_parsed(text: str, size: int) -> None:
    assert o.parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "ms"),
    [("1 h", 3_600_000), ("10min", 600_000), ("5", 5), ("5 ms", 5), ("2 d", 172_800_000), ("1m", 60_000)],
)
def test_durations_are_parsed(text: str, ms: int) -> None:
    assert o.parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "mb", "-1 mb", "1.5 gb", "1 zb", "1 h", "٣ mb"])
def test_no_sizes_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="128 mb"):
        o.parse_bytes(text)


@pytest.mark.parametrize("text", ["", "h", "-1 h", "1 mb", "1 month"])
def test_no_durations_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="1 h"):
        o.parse_duration(text)


def test_typed_access_falls_back_to_defaults() -> None:
    given = o.TableOptions.parse({"bucket": "4", "write-only": "TRUE", "bucket-key": "a, b", "foreign": "x"})
    assert given.get(o.BUCKET) == given.integer(o.BUCKET) == 4
    assert given.flag(o.WRITE_ONLY) and not given.flag(o.IGNORE_DELETE)
    assert given.names(o.BUCKET_KEY) == ("a", "b")
    assert given.integer(o.WRITE_BUFFER_SIZE) == 256 << 20
    assert given.integer(o.COMMIT_TIMEOUT) == 600_000
    assert given.text(o.MERGE_ENGINE) == "deduplicate"
    assert given.get(o.TARGET_FILE_SIZE) is None
    assert given.get("foreign") == given["foreign"] == "x" and given.get("absent", "y") == "y"
    assert dict(given) == {"bucket": "4", "write-only": "TRUE", "bucket-key": "a, b", "foreign": "x"}


def test_a_bad_value_that_nobody_asks_for_does_not_disturb() -> None:
    given = o.TableOptions.parse({"bucket": "4", "num-levels": "many"})
    assert given.integer(o.BUCKET) == 4
    with pytest.raises(InvalidInputError, match=r"num-levels.*'many'"):
        given.get(o.NUM_LEVELS)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket": "-1", "tablestore.table-uuid": "1", "log.kafka.linger.ms": "5", "fields.password.aggregate-function": "sum"},
        {"metadata.stats-mode": "truncate(16)", "merge-engine": "First-Row", "data-evolution.enabled": "false"},
        {"snapshot.num-retained.min": "3", "snapshot.num-retained.max": "3"},
        {"log.scan": "from-timestamp", "log.scan.timestamp-millis": "7"},
    ],
    ids=str,
)
def test_good_options_pass(options: dict[str, str]) -> None:
    o.validate_options(options)
    assert o.TableOptions(options).text(o.TYPE) == "table"


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"bukket": "1"}, "unknown-option", "did you mean 'bucket'"),
        ({"target-file-sizes": "1"}, "unknown-option", "did you mean 'target-file-size'"),
        ({"log.consistancy": "eventual"}, "unknown-option", "did you mean 'log.consistency'"),
        ({"log.compaction": "true"}, "unknown-option", "'log.compaction'"),
        ({"bucket": "x"}, "invalid-option", "bucket"),
        ({"bucket": "99999999999999999999"}, "invalid-option", "bucket"),
        ({"bucket": "0"}, "invalid-option", "bucket"),
        ({"bucket": 4}, "invalid-option", "expected text"),
        ({"tablestore.password": "x"}, "unknown-option", "'tablestore.password'"),
        ({"fields.a.password": "x"}, "unknown-option", "'fields.a.password'"),
        ({"log.kafka.sasl.password": "x"}, "invalid-option", "TABLESTORE_KAFKA_SASL_PASSWORD"),
        ({"log.kafka.acks": "all"}, "invalid-option", "Tables may set"),
        ({"write-only": "yes"}, "invalid-option", "true or false"),
        ({"target-file-size": "0"}, "invalid-option", "at least 1"),
        ({"changelog-producer": "both"}, "invalid-option", "none, input, full-compaction, lookup"),
        ({"file.format": "csv"}, "invalid-option", "parquet, orc, avro"),
        ({"file.format.per.level": "0:avro,x"}, "invalid-option", "0:avro,5:orc"),
        ({"file.format.per.level": "0:avro,5:lance"}, "invalid-option", "lance"),
        ({"changelog-file.format": "text"}, "invalid-option", "parquet, orc, avro"),
        ({"file.compression.zstd-level": "23"}, "invalid-option", "1 to 22"),
        ({"snapshot.num-retained.min": "0"}, "invalid-option", "at least 1"),
        ({"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "4"}, "invalid-option", "must not exceed"),
        ({"changelog.num-retained.min": "5", "changelog.num-retained.max": "4"}, "invalid-option", "must not exceed"),
        ({"metadata.stats-mode": "some"}, "invalid-option", "truncate"),
        ({"metadata.stats-mode": "truncate(0)"}, "invalid-option", "metadata.stats-mode: expected none"),
        ({"fields.a.b.stats-mode": "truncated(1)"}, "invalid-option", "fields.a.b.stats-mode: expected none"),
        ({"manifest.compression": "lzo"}, "invalid-option", "zstd"),
        ({"data-file.prefix": "../x"}, "invalid-option", "letters"),
        ({"partition.default-name": "a/b"}, "invalid-option", "letters"),
        ({"partition.default-name": ".."}, "invalid-option", "letters"),
        ({"log.scan.timestamp-millis": "noon"}, "invalid-option", "log.scan.timestamp-millis: expected a number"),
        ({"log.scan.timestamp-millis": "-1"}, "invalid-option", "log.scan.timestamp-millis: expected at least 0"),
        ({"log.scan.timestamp-mills": "5", "log.scan.timestamp-millis": "6"}, "invalid-option", "are one option; give one"),
        ({"log.kafka.compression.type": "lz4", "log.kafka.compression.codec": "lz4"}, "invalid-option", "are one option; give one"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options: dict[str, str], kind: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        o.validate_options(options)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "options",
    [
        {"data-evolution.enabled": "TRUE"},
        {"sequence.snapshot-ordering": "true"},
        {"deletion-vectors.bitmap64": "true"},
        {"pk-clustering-override": "true"},
        {"type": "format-table"},
        {"merge-engine": "custom"},
    ],
    ids=str,
)
def test_tables_with_features_that_change_their_files_are_refused(options: dict[str, str]) -> None:
    for check in (o.refuse_unsupported, o.validate_options):
        with pytest.raises(UnsupportedError, match=next(iter(options))):
            check(options)


def test_foreign_tables_keep_unknown_options() -> None:
    foreign = {"owner": "me", "file.format": "orc", "type": "table", "row-tracking.enabled": "false"}
    o.refuse_unsupported(foreign)
    assert o.TableOptions(foreign)["owner"] == "me"
