"""Every metadata file of the golden tables decodes, and says what the table's description says."""

import json
from pathlib import Path

import pytest

from tablestore.format.binaryrow import decode_row, encode_row
from tablestore.format.index.deletionvector import (
    byte_range,
    check_file_version,
    decode_deletion_vector,
    encode_deletion_vector,
    encode_vector_file,
)
from tablestore.format.manifest.avro import read_container
from tablestore.format.manifest.indexmanifest import decode_index_manifest, encode_index_manifest
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import decode_manifest, encode_manifest
from tablestore.format.manifest.manifestlist import decode_manifest_list, encode_manifest_list, summarise
from tablestore.format.partitiontext import partition_dir
from tablestore.format.paths import bucket_dir
from tablestore.format.schemafile import decode_schema, encode_schema
from tablestore.format.snapshot import decode_snapshot, encode_snapshot
from tablestore.format.stats import decode_stats, encode_stats
from tablestore.types.datatypes import with_nullable

GOLDEN = Path(__file__).parent.parent / "golden" / "paimon"
TABLES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
NONCE = b"0123456789abcdef"


def _snapshots(table):
    return [decode_snapshot(path.read_bytes(), str(path)) for path in sorted((GOLDEN / table).glob("snapshot/snapshot-*"))]


def _schemas(table):
    paths = (GOLDEN / table).glob("schema/schema-*")
    return {schema.id: schema for schema in (decode_schema(path.read_bytes(), str(path)) for path in paths)}


def _list(table, name):
    return decode_manifest_list((GOLDEN / table / "manifest" / name).read_bytes(), name)


def _manifest(table, name):
    return decode_manifest((GOLDEN / table / "manifest" / name).read_bytes(), name)


def _live(table, snapshot):
    manifests = _list(table, snapshot.base_manifest_list) + _list(table, snapshot.delta_manifest_list)
    return live_entries(_manifest(table, manifest.file_name) for manifest in manifests)


@pytest.mark.parametrize("table", TABLES)
def test_live_set_of_each_snapshot_has_the_described_record_count(table):
    described = json.loads((GOLDEN / table / "expected.json").read_text("utf-8"))["snapshots"]
    found = {}
    for snapshot in _snapshots(table):
        count = sum(entry.file.row_count for entry in _live(table, snapshot).values())
        assert count == snapshot.total_record_count
        found[str(snapshot.id)] = count
    assert found == {key: value["totalRecordCount"] for key, value in described.items()}


@pytest.mark.parametrize("table", TABLES)
def test_live_files_lie_where_their_entries_say(table):
    schemas = _schemas(table)
    for snapshot in _snapshots(table):
        schema = schemas[snapshot.schema_id]
        types = [field.type for field in schema.partition_fields]
        for entry in _live(table, snapshot).values():
            directory = partition_dir(schema.partition_keys, types, decode_row(entry.partition, types))
            path = GOLDEN / table / bucket_dir(directory, entry.bucket) / entry.file.file_name
            assert path.stat().st_size == entry.file.file_size


@pytest.mark.parametrize("table", TABLES)
def test_keys_partitions_and_statistics_decode_and_encode_back_to_the_same_bytes(table):
    schemas = _schemas(table)
    decoded = 0
    for path in (GOLDEN / table).glob("manifest/manifest-*"):
        if path.name.startswith("manifest-list-"):
            continue
        for entry in _manifest(table, path.name):
            schema = schemas[entry.file.schema_id]
            types = [field.type for field in schema.partition_fields]
            assert encode_row(decode_row(entry.partition, types), types) == entry.partition
            if schema.is_keyed:
                types = [field.type for field in schema.key_fields]
                for key in (entry.file.min_key, entry.file.max_key):
                    assert encode_row(decode_row(key, types), types) == key
                _assert_stats_round_trip(entry.file.key_stats, types)
            if entry.file.value_stats_cols is None and entry.file.write_cols is None:
                _assert_stats_round_trip(entry.file.value_stats, [field.type for field in schema.fields])
            decoded += 1
    assert decoded > 0


def _assert_stats_round_trip(stats, types):
    types = [with_nullable(data_type, True) for data_type in types]
    columns = decode_stats(stats, types)
    again = encode_stats(columns, types)
    # Unused bytes differ by writer; the values do not.
    assert decode_stats(again, types) == columns


@pytest.mark.parametrize("table", TABLES)
def test_manifests_and_lists_are_the_same_after_encoding_again(table):
    for path in (GOLDEN / table).glob("manifest/*"):
        data = path.read_bytes()
        if path.name.startswith("manifest-list-"):
            decode, encode = decode_manifest_list, encode_manifest_list
        elif path.name.startswith("index-manifest-"):
            decode, encode = decode_index_manifest, encode_index_manifest
        else:
            decode, encode = decode_manifest, encode_manifest
        value = decode(data, path.name)
        encoded = encode(value, NONCE)
        assert decode(encoded, path.name) == value
        assert encode(value, NONCE) == encoded
        assert len(read_container(data, name=path.name)) == len(value)


@pytest.mark.parametrize("table", TABLES)
def test_summary_of_a_manifest_agrees_with_its_writer(table):
    schema = _schemas(table)[0]
    types = [field.type for field in schema.partition_fields]
    for path in (GOLDEN / table).glob("manifest/manifest-list-*"):
        for manifest in _list(table, path.name):
            made = summarise(_manifest(table, manifest.file_name), manifest.file_name, manifest.file_size, types)
            assert made.num_added == manifest.num_added
            assert made.num_deleted == manifest.num_deleted
            assert made.schema_id == manifest.schema_id
            assert decode_stats(made.partition_stats, types) == decode_stats(manifest.partition_stats, types)
            for ours, theirs in (
                (made.min_bucket, manifest.min_bucket),
                (made.max_bucket, manifest.max_bucket),
                (made.min_level, manifest.min_level),
                (made.max_level, manifest.max_level),
            ):
                assert theirs in (None, ours)


@pytest.mark.parametrize("table", TABLES)
def test_schemas_snapshots_and_tags_are_the_same_after_encoding_again(table):
    for schema in _schemas(table).values():
        assert decode_schema(encode_schema(schema), f"schema-{schema.id}") == schema
    paths = [*(GOLDEN / table).glob("snapshot/snapshot-*"), *(GOLDEN / table).glob("tag/tag-*")]
    for path in paths:
        encoded = encode_snapshot(decode_snapshot(path.read_bytes(), str(path)))
        assert encode_snapshot(decode_snapshot(encoded, str(path))) == encoded
    assert paths


def test_deletion_vectors_name_the_rows_that_later_versions_replace():
    table = GOLDEN / "jv_pk_dv"
    found = set()
    for path in table.glob("manifest/index-manifest-*"):
        for entry in decode_index_manifest(path.read_bytes(), path.name):
            data = (table / "index" / entry.file_name).read_bytes()
            check_file_version(data, entry.file_name)
            parts = {v.data_file: data[byte_range(v)[0] : sum(byte_range(v))] for v in entry.deletion_vectors}
            again, ranges = encode_vector_file({name: (part, 0) for name, part in parts.items()})
            assert again == data
            assert [(r.data_file, r.offset, r.length) for r in ranges] == [
                (r.data_file, r.offset, r.length) for r in entry.deletion_vectors
            ]
            for vector in entry.deletion_vectors:
                offset, size = byte_range(vector)
                part = data[offset : offset + size]
                positions = decode_deletion_vector(part, entry.file_name, row_count=8)
                assert encode_deletion_vector(positions) == part
                found.add(tuple(positions.tolist()))
    assert found == {(7,), (2,), (1, 2)}
