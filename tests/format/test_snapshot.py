"""Snapshot files: golden bytes, damage, foreign files."""

import json
from dataclasses import replace

import pytest

from tablestore.errors import FormatError
from tablestore.format.sealed import CHECKSUM_KEY, object_checksum
from tablestore.format.snapshot import (
    BATCH_IDENTIFIER,
    WRITER_VERSION,
    CommitKind,
    Snapshot,
    decode_snapshot,
    encode_snapshot,
)

SNAPSHOT = Snapshot(
    uuid="27bde403-7a8c-4a07-8097-715924a7cb2b",
    id=2,
    schema_id=0,
    base_manifest_list="manifest-list-a-0",
    base_manifest_list_size=1364,
    delta_manifest_list="manifest-list-b-0",
    delta_manifest_list_size=1361,
    commit_user="6bff25ed-6730-4019-9c9e-d74e15b3aba2",
    commit_identifier=BATCH_IDENTIFIER,
    commit_kind=CommitKind.APPEND,
    time_millis=1795196499508,
    total_record_count=16,
    delta_record_count=-4,
    watermark=-(2**63),
    properties={"tablestore.next-sequence": "7", "é": "ü"},
    operation="WRITE",
)
GOLDEN = b"""{
  "version": 3,
  "uuid": "27bde403-7a8c-4a07-8097-715924a7cb2b",
  "id": 2,
  "schemaId": 0,
  "baseManifestList": "manifest-list-a-0",
  "baseManifestListSize": 1364,
  "deltaManifestList": "manifest-list-b-0",
  "deltaManifestListSize": 1361,
  "commitUser": "6bff25ed-6730-4019-9c9e-d74e15b3aba2",
  "writerVersion": "tablestore 1",
  "commitIdentifier": 9223372036854775807,
  "commitKind": "APPEND",
  "timeMillis": 1795196499508,
  "totalRecordCount": 16,
  "deltaRecordCount": -4,
  "watermark": -9223372036854775808,
  "properties": {
    "tablestore.next-sequence": "7",
    "\xc3\xa9": "\xc3\xbc",
    "tablestore.checksum": "8c25294e6ba8031a82505e02dd85b7265ad7a552f4bab19216fe0ccc19d00094"
  },
  "operation": "WRITE"
}"""
FOREIGN = {
    "version": 3,
    "id": 4,
    "schemaId": 1,
    "baseManifestList": "a",
    "deltaManifestList": "b",
    "changelogManifestList": None,
    "commitUser": "u",
    "commitIdentifier": 1,
    "commitKind": "COMPACT",
    "timeMillis": 5,
    "logOffsets": {},
    "totalRecordCount": 8,
    "deltaRecordCount": 0,
}


def test_golden_bytes_both_ways():
    assert encode_snapshot(SNAPSHOT) == GOLDEN
    assert decode_snapshot(GOLDEN, "snapshot/snapshot-2") == SNAPSHOT


@pytest.mark.deep
def test_every_flipped_bit_is_refused_or_harmless():
    data = encode_snapshot(SNAPSHOT)
    silent = []
    for position in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << position % 8
        try:
            value = decode_snapshot(bytes(damaged), "snapshot-2")
        except FormatError:
            continue
        if value != SNAPSHOT:
            silent.append(position)
    assert silent == []


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("size", [1, 4, 16, 64, 512])
def test_every_truncation_and_zeroed_block_is_refused(size):
    data = encode_snapshot(SNAPSHOT)
    for start in range(len(data)):
        with pytest.raises(FormatError):
            decode_snapshot(data[:start] + bytes(min(size, len(data) - start)) + data[start + size :], "snapshot-2")
        with pytest.raises(FormatError):
            decode_snapshot(data[:start], "snapshot-2")


def test_edited_value_is_reported_as_a_checksum_mismatch():
    damaged = encode_snapshot(SNAPSHOT).replace(b'"totalRecordCount": 16', b'"totalRecordCount": 17')
    with pytest.raises(FormatError, match="snapshot-2: expected the content") as caught:
        decode_snapshot(damaged, "snapshot-2")
    assert caught.value.kind == "checksum"


def test_our_file_without_its_checksum_is_refused():
    content = json.loads(encode_snapshot(SNAPSHOT))
    del content["properties"]
    with pytest.raises(FormatError) as caught:
        decode_snapshot(json.dumps(content).encode(), "snapshot-2")
    assert caught.value.kind == "checksum"


def test_layout_of_the_json_does_not_matter():
    compact = json.dumps(json.loads(encode_snapshot(SNAPSHOT)), sort_keys=True).encode()
    assert decode_snapshot(compact, "snapshot-2") == SNAPSHOT


def test_foreign_snapshot_with_unknown_keys_and_nulls_is_read_without_checks():
    snapshot = decode_snapshot(json.dumps(FOREIGN | {"newKey": [1]}).encode(), "snapshot-4")
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert snapshot.changelog_manifest_list is None
    assert snapshot.writer_version is None
    assert snapshot.properties == {}


def test_writing_a_foreign_snapshot_again_names_us_as_the_writer():
    foreign = decode_snapshot(json.dumps(FOREIGN | {"writerVersion": "python-2.1.0"}).encode(), "snapshot-4")
    again = decode_snapshot(encode_snapshot(foreign), "snapshot-4")
    assert again == replace(foreign, writer_version=WRITER_VERSION)


def test_a_copy_that_lacks_only_the_operation_is_still_checked():
    content = json.loads(encode_snapshot(SNAPSHOT))
    assert content.pop("operation") is not None
    assert decode_snapshot(json.dumps(content).encode(), "tag/tag-daily") == replace(SNAPSHOT, operation=None)
    content["totalRecordCount"] += 1
    with pytest.raises(FormatError) as damaged:
        decode_snapshot(json.dumps(content).encode(), "tag/tag-daily")
    assert damaged.value.kind == "checksum"


def test_tag_that_a_foreign_writer_made_of_our_snapshot_is_read():
    content = json.loads(encode_snapshot(SNAPSHOT))
    content |= {"tagCreateTime": [2024, 1, 1, 0, 0, 0, 0], "tagTimeRetained": 3600.0}
    assert decode_snapshot(json.dumps(content).encode(), "tag/tag-daily") == SNAPSHOT
    del content["writerVersion"], content["uuid"], content["operation"]
    older = decode_snapshot(json.dumps(content).encode(), "tag/tag-daily")
    assert older == replace(SNAPSHOT, uuid=None, operation=None, writer_version=None)
    with pytest.raises(FormatError):
        decode_snapshot(json.dumps(content).encode(), "snapshot/snapshot-2")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"version": 4}, "too-new"),
        ({"id": 5}, "swapped"),
        ({"id": 2**62}, "swapped"),
        ({"id": "4"}, "corrupt"),
        ({"id": True}, "corrupt"),
        ({"id": 2**63}, "corrupt"),
        ({"schemaId": -1}, "corrupt"),
        ({"schemaId": None}, "corrupt"),
        ({"commitKind": "MERGE"}, "corrupt"),
        ({"baseManifestList": "../../etc/passwd"}, "corrupt"),
        ({"indexManifest": ""}, "corrupt"),
        ({"timeMillis": 1.5}, "corrupt"),
        ({"properties": {"a": 1}}, "corrupt"),
        ({"properties": []}, "corrupt"),
    ],
)
def test_impossible_values_are_refused(change, kind):
    with pytest.raises(FormatError, match="snapshot-4") as caught:
        decode_snapshot(json.dumps(FOREIGN | change).encode(), "snapshot-4")
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"id": 1, "id": 2}',
        b'{"id": NaN}',
        b'{"a": "\\ud800"}',
        b'{"a":' + b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"id": ' + b"9" * 10_000 + b"}",
    ],
)
def test_bytes_that_are_no_bounded_json_object_are_refused(data):
    with pytest.raises(FormatError, match="snapshot-1"):
        decode_snapshot(data, "snapshot-1")


@pytest.mark.parametrize("change", [{"id": 2**63}, {"total_record_count": 2**63}, {"delta_record_count": -(2**63) - 1}])
def test_a_number_that_cannot_be_read_back_is_not_written(change):
    with pytest.raises(FormatError, match="an integer of 64 bits"):
        encode_snapshot(replace(SNAPSHOT, **change))


def test_key_of_a_newer_tablestore_is_not_ignored():
    content = json.loads(encode_snapshot(SNAPSHOT)) | {"newKey": 1}
    del content["properties"][CHECKSUM_KEY]
    content["properties"][CHECKSUM_KEY] = object_checksum(json.loads(json.dumps(content)))
    with pytest.raises(FormatError, match="newKey") as caught:
        decode_snapshot(json.dumps(content).encode(), "snapshot-2")
    assert caught.value.kind == "too-new"
