"""Manifests, manifest lists and index manifests: golden bytes, versions, impossible entries, damage."""

import random
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest

from tablestore.errors import FormatError
from tablestore.format.binaryrow import EMPTY_ROW, encode_row
from tablestore.format.manifest.avro import write_container
from tablestore.format.manifest.datafile import FILE_RECORD, DataFileMeta, FileSource
from tablestore.format.manifest.indexmanifest import (
    DELETION_VECTORS,
    DeletionVectorRange,
    GlobalIndexMeta,
    IndexEntry,
    decode_index_manifest,
    encode_index_manifest,
)
from tablestore.format.manifest.liveset import fold_entries, live_entries
from tablestore.format.manifest.manifestfile import (
    MANIFEST_SCHEMA,
    EntryKind,
    ManifestEntry,
    decode_manifest,
    encode_manifest,
)
from tablestore.format.manifest.manifestlist import (
    MANIFEST_LIST_RECORD,
    decode_manifest_list,
    encode_manifest_list,
    summarise,
)
from tablestore.format.paths import manifest_name
from tablestore.format.stats import EMPTY_STATS, ColumnStats, SimpleStats, decode_stats
from tablestore.types.datatypes import AtomicType, TypeRoot

NONCE = b"0123456789abcdef"
INT = AtomicType(root=TypeRoot.INT)
STRING = AtomicType(root=TypeRoot.VARCHAR)
DATE = AtomicType(root=TypeRoot.DATE)
KEY = encode_row([1], [INT])
FILE = DataFileMeta(
    file_name="data-a-0.parquet",
    file_size=100,
    row_count=7,
    min_key=KEY,
    max_key=encode_row([9], [INT]),
    key_stats=SimpleStats(min_values=KEY, max_values=KEY, null_counts=(0,)),
    value_stats=EMPTY_STATS,
    min_sequence_number=3,
    max_sequence_number=3,
    schema_id=2,
    level=0,
    creation_time_millis=1795196499508,
    delete_row_count=1,
    file_source=FileSource.APPEND,
    value_stats_cols=(),
    footer_digest=b"digest",
)
ENTRY = ManifestEntry(kind=EntryKind.ADD, partition=EMPTY_ROW, bucket=0, total_buckets=1, file=FILE)
FULL = replace(
    ENTRY,
    kind=EntryKind.DELETE,
    bucket=-2,
    file=replace(
        FILE,
        extra_files=("data-a-0.parquet.index",),
        embedded_index=b"\0",
        external_path="s3://b/data-a-0.parquet",
        first_row_id=5,
        write_cols=("a", "b"),
        write_cols_sequences=(1, 2),
        value_stats=SimpleStats(min_values=KEY, max_values=KEY, null_counts=(None,)),
        value_stats_cols=("a",),
        file_source=1,
    ),
)


def _record(**changes):
    return {
        "_VERSION": 2,
        "_KIND": 0,
        "_PARTITION": EMPTY_ROW,
        "_BUCKET": 0,
        "_TOTAL_BUCKETS": 1,
        "_FILE": FILE_RECORD.encode(FILE),
    } | changes


def _file(**changes):
    return _record(_FILE=FILE_RECORD.encode(FILE) | changes)


def test_entries_survive_encoding_in_order():
    entries = (ENTRY, FULL, replace(ENTRY, bucket=5))
    data = encode_manifest(entries, NONCE)
    assert decode_manifest(data, "m") == entries
    assert encode_manifest(entries, NONCE) == data
    assert encode_manifest(entries, NONCE[::-1]) != data


GOLDEN_ENTRY = bytes.fromhex(
    "040018000000000000000000000000000220646174612d612d302e70617271756574c8010e28000000010000000000000000"
    "0100000000000000280000000100000000000000000900000000000000280000000100000000000000000100000000000000"
    "2800000001000000000000000001000000000000000202020000180000000000000000000000001800000000000000000000"
    "00000200060604000002e8d8e5a0bf680202000200020000000000020c646967657374"
)


def test_golden_bytes_of_an_entry_both_ways():
    data = encode_manifest([ENTRY], NONCE)
    assert b'"name":"org.apache.paimon.avro.generated.record__FILE__KEY_STATS"' in data
    assert b'{"name":"_DELETE_ROW_COUNT","type":["null","long"],"default":null}' in data
    assert b'{"name":"_TABLESTORE_FOOTER_DIGEST","type":["null","bytes"],"default":null}]}}]}' in data
    start = data.index(NONCE) + 16
    assert data[start] == 2  # one record, zigzag
    body = pa.CompressedInputStream(pa.BufferReader(data[start + 3 : -16]), "zstd").read()
    assert body == GOLDEN_ENTRY
    # The same record in a container without compression, whose bytes do not depend on a library's version.
    header = data[:start].replace(b"\x12zstandard", b"\x08null")
    size = len(GOLDEN_ENTRY) * 2
    plain = header + bytes([2, size & 0x7F | 0x80, size >> 7]) + GOLDEN_ENTRY + NONCE
    assert decode_manifest(plain, "m") == (ENTRY,)


def test_content_is_checked_against_a_name_made_from_it():
    data = encode_manifest([ENTRY], NONCE)
    name = manifest_name(data, 0)
    assert decode_manifest(data, name) == (ENTRY,)
    for position in range(len(data)):
        damaged = data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
        with pytest.raises(FormatError) as caught:
            decode_manifest(damaged, name)
        assert caught.value.kind == "checksum"


@pytest.mark.deep
def test_damage_under_a_foreign_name_raises_nothing_but_format_errors():
    data = encode_manifest([ENTRY, FULL], NONCE)
    lists = encode_manifest_list([summarise([ENTRY], "manifest-x", 10, [])], NONCE)
    seed = random.Random(7)
    messages = []
    for _ in range(3000):
        source, decode = seed.choice([(data, decode_manifest), (lists, decode_manifest_list)])
        damaged = bytearray(source)
        for _ in range(seed.randint(1, 3)):
            damaged[seed.randrange(len(damaged))] = seed.randrange(256)
        try:
            decode(bytes(damaged), "manifest-foreign")
        except FormatError as error:
            messages.append(error.message)
    assert len(messages) > 1500
    assert all("manifest-foreign" in message for message in messages)


@pytest.mark.parametrize("version", [0, 1, 3])
def test_other_versions_are_refused_and_newer_ones_as_too_new(version):
    data = write_container([_record(_VERSION=version)], MANIFEST_SCHEMA, nonce=NONCE)
    with pytest.raises(FormatError, match=f"version 2, found version {version}") as caught:
        decode_manifest(data, "m")
    assert caught.value.kind == ("too-new" if version > 2 else "corrupt")
    listed = {
        "_VERSION": version,
        "_FILE_NAME": "m",
        "_FILE_SIZE": 1,
        "_NUM_ADDED_FILES": 1,
        "_NUM_DELETED_FILES": 0,
        "_PARTITION_STATS": {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW},
        "_SCHEMA_ID": 0,
    }
    with pytest.raises(FormatError, match="manifest list of version 2"):
        decode_manifest_list(write_container([listed], MANIFEST_LIST_RECORD.schema, nonce=NONCE), "m")


@pytest.mark.parametrize(
    "record",
    [
        _record(_KIND=2),
        _record(_KIND=-1),
        _record(_BUCKET=-3),
        _record(_PARTITION=b""),
        _file(_FILE_NAME="../x"),
        _file(_FILE_NAME=""),
        _file(_EXTRA_FILES=["a/b"]),
        _file(_FILE_SIZE=-1),
        _file(_ROW_COUNT=-1),
        _file(_LEVEL=-1),
        _file(_SCHEMA_ID=-1),
        _file(_MIN_SEQUENCE_NUMBER=4),
        _file(_MIN_KEY=b"x"),
    ],
)
def test_entries_that_no_writer_makes_are_refused(record):
    with pytest.raises(FormatError, match="manifest-1"):
        decode_manifest(write_container([record], MANIFEST_SCHEMA, nonce=NONCE), "manifest-1")


def test_null_where_a_value_must_be_is_refused():
    schema = {
        **MANIFEST_SCHEMA,
        "fields": [
            {**field, "type": ["null", field["type"]]} if field["name"] == "_BUCKET" else field
            for field in MANIFEST_SCHEMA["fields"]
        ],
    }
    assert decode_manifest(write_container([_record()], schema, nonce=NONCE), "m") == (ENTRY,)
    with pytest.raises(FormatError, match="bucket None"):
        decode_manifest(write_container([_record(_BUCKET=None)], schema, nonce=NONCE), "m")


def test_summary_has_exact_ranges_counts_and_partition_bounds():
    types = [STRING, DATE]
    rows = [("b", date(2024, 1, 2)), ("é", None), (None, date(2023, 1, 1)), ("b", date(2024, 1, 2))]
    entries = [
        replace(ENTRY, partition=encode_row(row, types), bucket=index, file=replace(FILE, level=index % 3, schema_id=index))
        for index, row in enumerate(rows)
    ]
    entries[1] = replace(entries[1], kind=EntryKind.DELETE)
    made = summarise(entries, "manifest-1", 55, types)
    assert (made.file_name, made.file_size, made.num_added, made.num_deleted) == ("manifest-1", 55, 3, 1)
    assert (made.schema_id, made.min_bucket, made.max_bucket, made.min_level, made.max_level) == (3, 0, 3, 0, 2)
    assert decode_stats(made.partition_stats, types) == [
        ColumnStats(min="b", max="é", null_count=1),
        ColumnStats(min=date(2023, 1, 1), max=date(2024, 1, 2), null_count=1),
    ]
    data = encode_manifest_list([made], NONCE)
    assert decode_manifest_list(data, "manifest-list-1") == (made,)
    assert decode_manifest_list(encode_manifest_list([], NONCE), "manifest-list-2") == ()
    with pytest.raises(ValueError, match="without entries"):
        summarise([], "m", 0, types)


def test_delete_removes_its_add_and_an_upgrade_keeps_the_file():
    delete = replace(ENTRY, kind=EntryKind.DELETE)
    upgraded = replace(ENTRY, file=replace(FILE, level=5))
    assert live_entries([[ENTRY], [delete]]) == {}
    assert list(live_entries([[ENTRY], [delete, upgraded]]).values()) == [upgraded]
    assert list(live_entries([[ENTRY], [delete], [ENTRY]]).values()) == [ENTRY]


def test_delete_without_its_add_is_kept_aside():
    delete = replace(ENTRY, kind=EntryKind.DELETE)
    other = replace(ENTRY, bucket=1)
    assert live_entries([[delete, other]]) == {other.identity: other}
    assert fold_entries([[delete, other]]) == ({other.identity: other}, {delete.identity: delete})


@pytest.mark.parametrize("first", [EntryKind.ADD, EntryKind.DELETE])
def test_adding_an_identity_again_is_refused(first):
    with pytest.raises(FormatError, match=r"data-a-0\.parquet") as caught:
        live_entries([[replace(ENTRY, kind=first)], [ENTRY]])
    assert caught.value.kind == "double-add"


@pytest.mark.parametrize(
    "other",
    [
        replace(ENTRY, partition=KEY),
        replace(ENTRY, bucket=1),
        replace(ENTRY, file=replace(FILE, level=1)),
        replace(ENTRY, file=replace(FILE, file_name="x")),
        replace(ENTRY, file=replace(FILE, extra_files=("x",))),
        replace(ENTRY, file=replace(FILE, embedded_index=b"x")),
        replace(ENTRY, file=replace(FILE, external_path="x")),
    ],
)
def test_identity_has_seven_parts(other):
    assert other.identity != ENTRY.identity
    assert replace(ENTRY, file=replace(FILE, row_count=1, file_size=1)).identity == ENTRY.identity


def test_index_manifest_survives_encoding():
    entries = (
        IndexEntry(
            kind=EntryKind.ADD,
            partition=EMPTY_ROW,
            bucket=0,
            index_type=DELETION_VECTORS,
            file_name="index-a-0",
            file_size=100,
            row_count=1,
            deletion_vectors=(DeletionVectorRange(data_file="data-a-0.parquet", offset=1, length=22, cardinality=3),),
        ),
        IndexEntry(
            kind=EntryKind.DELETE,
            partition=KEY,
            bucket=1,
            index_type="other",
            file_name="index-a-1",
            file_size=4,
            row_count=1,
            external_path="s3://x",
            global_index=GlobalIndexMeta(
                row_range_start=0, row_range_end=9, index_field_id=3, extra_field_ids=(1, 2), index_meta=b"m"
            ),
        ),
    )
    data = encode_index_manifest(entries, NONCE)
    assert decode_index_manifest(data, "index-manifest-1") == entries


@pytest.mark.parametrize(
    "vector",
    [
        DeletionVectorRange(data_file="../x", offset=1, length=2),
        DeletionVectorRange(data_file="x", offset=-1, length=2),
        DeletionVectorRange(data_file="x", offset=1, length=100),
    ],
)
def test_deletion_vector_outside_of_its_file_is_refused(vector):
    entry = IndexEntry(
        kind=EntryKind.ADD,
        partition=EMPTY_ROW,
        bucket=0,
        index_type=DELETION_VECTORS,
        file_name="index-a-0",
        file_size=100,
        row_count=1,
        deletion_vectors=(vector,),
    )
    with pytest.raises(FormatError, match="index-manifest-1"):
        decode_index_manifest(encode_index_manifest([entry], NONCE), "index-manifest-1")
