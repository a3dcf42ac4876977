"""File names: built, parsed, checked; partition directories as the Java writers spell them."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pytest

from tablestore.errors import FormatError, InvalidInputError, UnsupportedError
from tablestore.format.partitiontext import partition_dir
from tablestore.format.paths import (
    bucket_dir,
    check_file_name,
    consumer_path,
    content_uuid,
    data_file_name,
    encode_hint,
    file_format_of,
    index_file_name,
    index_manifest_name,
    index_path,
    manifest_list_name,
    manifest_name,
    manifest_path,
    parse_hint,
    parse_schema_id,
    parse_snapshot_id,
    schema_path,
    snapshot_path,
    tag_path,
    verify_content_name,
)
from tablestore.types.datatypes import ArrayType, AtomicType, TypeRoot


def _type(root, **parts):
    return AtomicType(root=TypeRoot[root], **parts)


STRING = _type("VARCHAR")


def test_paths_of_the_layout():
    assert snapshot_path(3) == "snapshot/snapshot-3"
    assert schema_path(0) == "schema/schema-0"
    assert manifest_path("manifest-a-0") == "manifest/manifest-a-0"
    assert index_path("index-a-0") == "index/index-a-0"
    assert tag_path("daily") == "tag/tag-daily"
    assert consumer_path("c") == "consumer/consumer-c"
    assert data_file_name("u", 4, "data-", "orc") == "data-u-4.orc"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("snapshot-3", 3),
        ("/a/b.db/t/snapshot/snapshot-12", 12),
        ("snapshot-9223372036854775807", 2**63 - 1),
        ("snapshot-9223372036854775808", None),
        ("snapshot-", None),
        ("snapshot-03", None),
        ("snapshot--3", None),
        ("snapshot-3.tmp", None),
        ("snapshot-٣", None),
        ("xsnapshot-3", None),
        ("LATEST", None),
        ("", None),
    ],
)
def test_snapshot_ids_are_parsed_from_canonical_names_only(name, expected):
    assert parse_snapshot_id(name) == expected
    assert parse_schema_id(name.replace("snapshot-", "schema-")) == expected


@pytest.mark.parametrize(
    ("data", "expected"), [(b"12", 12), (b"12\n", 12), (b"", None), (b"x", None), (b"\xff", None), (b"1" * 40, None)]
)
def test_hints_are_numbers_or_worth_nothing(data, expected):
    assert parse_hint(data) == expected


def test_hint_round_trip():
    assert parse_hint(encode_hint(7)) == 7
    assert encode_hint(7) == b"7"


def test_names_made_from_content_are_version_8_uuids_and_are_verified():
    assert content_uuid(b"") == "e3b0c442-98fc-8c14-9afb-f4c8996fb924"
    data = b"some manifest"
    for name in (manifest_name(data, 0), manifest_list_name(data, 1), index_manifest_name(data, 2), index_file_name(data, 3)):
        verify_content_name(f"manifest/{name}", data)
        with pytest.raises(FormatError, match=name) as caught:
            verify_content_name(name, data + b"x")
        assert caught.value.kind == "checksum"


@pytest.mark.parametrize(
    "name",
    [
        "manifest-50bdbcd3-2753-46ba-9d66-18f00e19d9ed-0",
        "manifest-50bdbcd3-2753-86ba-cd66-18f00e19d9ed-0",
        "data-50bdbcd3-2753-86ba-9d66-18f00e19d9ed-0.parquet",
        "manifest-x",
    ],
)
def test_names_of_others_promise_nothing(name):
    verify_content_name(name, b"anything")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("data-a-0.parquet", "parquet"),
        ("data-a-0.zstd.parquet", "parquet"),
        ("bucket-0/data-a-0.PARQUET", "parquet"),
        ("data-a-0.csv.gz", "csv"),
        ("data-a-0.orc", "orc"),
        ("data-a-0.gz", "gz"),
        ("data-a-0", ""),
    ],
)
def test_format_is_told_by_the_extension(name, expected):
    assert file_format_of(name) == expected


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a\\b", "a\0b", "/etc/passwd", "x" * 2000])
def test_file_names_that_leave_their_directory_are_refused(name):
    with pytest.raises(FormatError, match="manifest-1"):
        check_file_name(name, "manifest-1")


@pytest.mark.parametrize(
    ("data_type", "value", "legacy", "cast"),
    [
        (STRING, "a=b/c d%", "a%3Db%2Fc d%25", None),
        (STRING, "中文:[x]", "中文%3A%5Bx%5D", None),
        (STRING, "\x00\x1f\x7f\"#'*?\\{}^", "%00%1F%7F%22%23%27%2A%3F%5C%7B%7D%5E", None),
        (STRING, "", "__DEFAULT_PARTITION__", None),
        (STRING, " \t\u2003", "__DEFAULT_PARTITION__", None),
        (STRING, "\u00a0", "\u00a0", None),
        (STRING, None, "__DEFAULT_PARTITION__", None),
        (_type("INT"), -5, "-5", None),
        (_type("BIGINT"), 2**62, str(2**62), None),
        (_type("BOOLEAN"), True, "true", None),
        (_type("DATE"), date(2024, 1, 1), "19723", "2024-01-01"),
        (_type("DATE"), date(1, 1, 1), "-719162", "0001-01-01"),
        (_type("TIME", precision=0), time(1, 2, 3), "3723000", "01%3A02%3A03"),
        (_type("TIME", precision=3), time(0, 0, 1), "1000", "00%3A00%3A01.000"),
        (_type("DECIMAL", precision=10, scale=2), Decimal("1.50"), "1.50", None),
        (_type("DECIMAL", precision=30, scale=0), Decimal("1E+20"), "1" + "0" * 20, None),
        (_type("TIMESTAMP", precision=3), datetime(2024, 1, 1), "2024-01-01T00%3A00", "2024-01-01 00%3A00%3A00.000"),
        (
            _type("TIMESTAMP", precision=6),
            datetime(1969, 12, 31, 23, 59, 59, 123456),
            "1969-12-31T23%3A59%3A59.123456",
            "1969-12-31 23%3A59%3A59.123456",
        ),
        (
            _type("TIMESTAMP", precision=6),
            datetime(2024, 1, 1, 5, 6, 0, 120000),
            "2024-01-01T05%3A06%3A00.120",
            "2024-01-01 05%3A06%3A00.120000",
        ),
        (
            _type("TIMESTAMP", precision=9),
            np.datetime64("2024-01-01T00:00:01.000000001", "ns"),
            "2024-01-01T00%3A00%3A01.000000001",
            "2024-01-01 00%3A00%3A01.000000001",
        ),
        (_type("TIMESTAMP_LTZ", precision=0), datetime(2024, 1, 1, 7, tzinfo=UTC), "2024-01-01T07%3A00", "2024-01-01 07%3A00%3A00"),
        (_type("DOUBLE"), 1.0, "1.0", None),
        (_type("DOUBLE"), 1e7, "1.0E7", None),
        (_type("DOUBLE"), 9999999.5, "9999999.5", None),
        (_type("DOUBLE"), 0.001, "0.001", None),
        (_type("DOUBLE"), 0.0001, "1.0E-4", None),
        (_type("DOUBLE"), -1.25e-10, "-1.25E-10", None),
        (_type("DOUBLE"), -0.0, "-0.0", None),
        (_type("DOUBLE"), float("nan"), "NaN", None),
        (_type("DOUBLE"), float("-inf"), "-Infinity", None),
        (_type("FLOAT"), 0.1, "0.1", None),
        (_type("FLOAT"), 1.5e20, "1.5E20", None),
    ],
)
def test_partition_directories_of_each_key_type(data_type, value, legacy, cast):
    assert partition_dir(["k"], [data_type], [value]) == f"k={legacy}"
    assert partition_dir(["k"], [data_type], [value], legacy=False) == f"k={legacy if cast is None else cast}"


def test_partition_directories_follow_the_key_order_and_escape_names():
    types = [STRING, _type("DATE")]
    assert partition_dir(["a:b", "d"], types, ["x", None], "none") == "a%3Ab=x/d=none"
    assert partition_dir([], [], []) == ""


def test_values_without_a_directory_name_are_refused():
    with pytest.raises(UnsupportedError, match="legacy-name"):
        partition_dir(["k"], [_type("VARBINARY")], [b"x"])
    assert partition_dir(["k"], [_type("VARBINARY")], [b"x"], legacy=False) == "k=x"
    with pytest.raises(UnsupportedError):
        partition_dir(["k"], [ArrayType(element=STRING)], [["x"]])
    with pytest.raises(InvalidInputError):
        partition_dir(["k"], [_type("DATE")], ["2024-01-01"])
    with pytest.raises(InvalidInputError):
        partition_dir(["k"], [STRING], [5])
    with pytest.raises(InvalidInputError):
        partition_dir(["k"], [STRING], [])


def test_bucket_directories():
    assert bucket_dir("", 0) == "bucket-0"
    assert bucket_dir("a=b", 12) == "a=b/bucket-12"
    assert bucket_dir("", -2) == "bucket-postpone"
