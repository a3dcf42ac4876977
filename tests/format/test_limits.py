"""What a writer may write, every reader accepts; what is far too large is refused by both, before the memory is taken."""

import json
import tracemalloc
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError, InvalidInputError
from tablestore.format.binaryrow import EMPTY_ROW, decode_row, encode_row
from tablestore.format.limits import DEFAULT_LIMITS, WRITE_LIMITS, Limits, json_within_limits, parse_json_bounded
from tablestore.format.manifest.avro import _long, read_container, write_container
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import (
    MANIFEST_SCHEMA,
    EntryKind,
    ManifestEntry,
    decode_manifest,
    encode_manifest,
    entry_bytes,
)
from tablestore.format.manifest.manifestlist import decode_manifest_list, encode_manifest_list, summarise
from tablestore.format.stats import EMPTY_STATS, ColumnStats, decode_stats, encode_stats
from tablestore.ids import SystemIds
from tablestore.io.memory import MemoryFileStore
from tablestore.store.commit.metadata import merged_base
from tablestore.store.manifests import MANIFEST_BYTES, Manifests, WrittenMetadata
from tablestore.store.settings import MergePolicy
from tablestore.types.datatypes import AtomicType, TypeRoot

NONCE = b"0123456789abcdef"
TEXT = AtomicType(root=TypeRoot.VARCHAR)
UNLIMITED = Limits(max_bytes=2**62, max_decompressed_bytes=2**62, expansion_floor_bytes=2**62)


def _entry(number: int, *, bounds: list[str] | None = None, key: str | None = None, partition: str | None = None) -> ManifestEntry:
    """An entry with a text bound in as many columns, of a table with a text key if there is one."""
    types = [TEXT] * len(bounds or ())
    columns = [ColumnStats(min=text, max=text, null_count=0) for text in bounds or ()]
    row = EMPTY_ROW if key is None else encode_row([key], [TEXT])
    stats = EMPTY_STATS if key is None else encode_stats([ColumnStats(min=key, max=key, null_count=0)], [TEXT])
    meta = DataFileMeta(
        file_name=f"data-{number:032x}-0.parquet",
        file_size=1,
        row_count=1,
        min_key=row,
        max_key=row,
        key_stats=stats,
        value_stats=encode_stats(columns, types),
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        level=0,
        footer_digest=number.to_bytes(32, "big"),
    )
    where = EMPTY_ROW if partition is None else encode_row([partition], [TEXT])
    return ManifestEntry(kind=EntryKind.ADD, partition=where, bucket=0, total_buckets=1, file=meta)


def _as_before(entries: list[ManifestEntry], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A manifest as it was written when nobody checked."""
    with monkeypatch.context() as patch:
        patch.setattr(
            "tablestore.format.manifest.manifestfile.write_container", lambda *a, **k: write_container(*a, **k, limits=UNLIMITED)
        )
        patch.setattr("tablestore.format.manifest.avro.BLOCK_RECORDS", 4096)
        return encode_manifest(entries, NONCE)


SIZES = st.sampled_from([0, 7, 100, 30_000, 2_000_000])


WRITTEN = {
    "shape": st.lists(
        st.tuples(SIZES, st.integers(0, 3), st.sampled_from([0, 1, 300, 5_000]), st.booleans()), min_size=1, max_size=6
    ),
    "repeat": st.sampled_from([1, 40]),
}


@pytest.mark.deep
@settings(max_examples=40)
@given(**WRITTEN)
def test_what_is_written_is_read_however_wide_and_many_entries_are(shape: list[tuple[int, int, int, bool]], repeat: int) -> None:
    entries = [
        _entry(
            number,
            bounds=["v" * (size if texts else 0)] * min(columns, 5_000 if size < 8 else 3),
            # Keys are exact, in four places: those of the largest size are more than a reader takes.
            key="k" * (5_000_000 if size == 2_000_000 else size) if keyed else None,
            partition=f"p{number}",
        )
        for number, (size, texts, columns, keyed) in enumerate(shape * (repeat if sum(s[0] * s[2] for s in shape) < 10**6 else 1))
    ]
    files = MemoryFileStore("written")
    store = Manifests(files, SystemIds(), [TEXT])
    written = WrittenMetadata()
    try:
        manifests = store.write_manifests(entries, written)
    except InvalidInputError:
        assert max(map(entry_bytes, entries)) > WRITE_LIMITS.expansion_floor_bytes * 0.9, "one entry is too much by itself"
        return
    store.flush(written)
    # The last one may take a small rest.
    most = MANIFEST_BYTES + MANIFEST_BYTES // 8
    assert all(sum(map(entry_bytes, store.read_manifest(m.file_name))) <= most or m.num_added == 1 for m in manifests)
    cold = Manifests(files, SystemIds(), [TEXT])
    # Compared outside of the assert: in CI, pytest would spend minutes on showing how such texts differ.
    is_same = cold.entries(manifests) == entries
    assert is_same
    name, _ = store.write_list(manifests, 0, written)
    store.flush(written)
    is_same = cold.read_list(name) == manifests
    assert is_same


def test_a_manifest_of_wide_bounds_written_before_is_read_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [_entry(i, bounds=["v" * 300_000, "short"], key="k" * 2_000 + str(i), partition="p") for i in range(200)]
    data = _as_before(entries, monkeypatch)
    assert len(data) < 1 << 20, "it expands a lot"
    tracemalloc.start()
    try:
        found = decode_manifest(data, "manifest-1")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150 << 20
    assert [entry.identity for entry in found] == [entry.identity for entry in entries]
    for entry, before in zip(found, entries, strict=True):
        assert (entry.file.min_key, entry.file.max_key) == (before.file.min_key, before.file.max_key), "keys stay exact"
        assert decode_stats(entry.file.key_stats, [TEXT]) == [ColumnStats(null_count=0)]
        assert entry.file.value_stats == EMPTY_STATS and entry.file.value_stats_cols == ()
    assert decode_manifest(encode_manifest(found, NONCE), "manifest-2") == found


@pytest.mark.deep
def test_a_manifest_of_many_mostly_null_columns_written_before_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [ColumnStats(null_count=1)] * 2_000
    stats = encode_stats(columns, [TEXT] * 2_000)
    entries = [replace(e, file=replace(e.file, value_stats=stats)) for e in map(_entry, range(520))]
    data = _as_before(entries, monkeypatch)
    with pytest.raises(FormatError, match="decompressed size"):
        read_container(data, name="manifest-1")
    assert [entry.identity for entry in decode_manifest(data, "manifest-1")] == [entry.identity for entry in entries]


def _bomb(body: bytes, count: int) -> bytes:
    text = json.dumps(MANIFEST_SCHEMA).encode()
    payload = pa.Codec("zstd").compress(body, asbytes=True)
    header = b"Obj\x01" + _long(2)
    for key, value in ((b"avro.schema", text), (b"avro.codec", b"zstandard")):
        header += _long(len(key)) + key + _long(len(value)) + value
    return header + b"\0" + NONCE + _long(count) + _long(len(payload)) + payload + NONCE


def _record(entry: ManifestEntry) -> bytes:
    data = encode_manifest([entry], NONCE)
    start = data.index(NONCE) + 16
    block = data[start:-16]
    return bytes(pa.CompressedInputStream(pa.BufferReader(block[block.index(b"\x28\xb5\x2f\xfd") :]), "zstd").read())


BOMBS = {
    # Version 2, ADD, and a partition of 300 MiB.
    "one entry that never ends": lambda: _bomb(b"\4\0" + _long(300 << 20) + bytes(300 << 20), 1),
    "entries without end": lambda: _bomb(_record(_entry(0)) * 600_000, 600_000),
    "keys that do not go away": lambda: _bomb(_record(_entry(0, key="k" * 1_000_000)) * 100, 100),
    "null counts without end": lambda: _bomb(_record(_entry(0, bounds=[""] * 9_000)) * 1_200, 1_200),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", BOMBS)
def test_a_manifest_that_costs_more_than_it_may_is_refused_in_bounded_memory(name: str) -> None:
    data = BOMBS[name]()
    assert len(data) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(FormatError) as caught:
            decode_manifest(data, "manifest-1")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.kind == "limit"
    assert peak < 256 << 20


def test_damage_in_a_manifest_that_is_read_entry_by_entry_raises_nothing_but_format_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(DEFAULT_LIMITS, expansion_floor_bytes=8_000, max_expansion=1, max_record_bytes=100_000)
    data = _as_before([_entry(i, bounds=["v" * 5_000]) for i in range(20)], monkeypatch)
    assert len(decode_manifest(data, "manifest-1", limits)) == 20
    for place in range(len(data) - 400, len(data)):
        for bit in (1, 0x80):
            damaged = bytearray(data)
            damaged[place] ^= bit
            try:
                decode_manifest(bytes(damaged), "manifest-1", limits)
            except FormatError:
                continue


@pytest.mark.parametrize(
    "limits",
    [
        Limits(max_bytes=100),
        Limits(records_floor=99, record_bytes=10**9),
        Limits(expansion_floor_bytes=500, max_expansion=1),
    ],
)
def test_a_container_over_a_limit_is_not_written(limits: Limits) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
    records = [{"a": "x" * 20}] * 100
    with pytest.raises(InvalidInputError, match="the file of this test") as caught:
        write_container(records, schema, nonce=NONCE, what="the file of this test", limits=limits)
    assert caught.value.kind == "limit"
    with pytest.raises(FormatError):
        read_container(write_container(records, schema, nonce=NONCE), name="f", limits=limits)


def test_full_manifests_of_wide_entries_are_not_merged_over_and_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablestore.store.manifests.MANIFEST_BYTES", 256 << 10)
    store = Manifests(MemoryFileStore("wide"), SystemIds(), [])
    policy = MergePolicy(min_count=5)
    manifests: tuple = ()
    bounds = ["v" * 64] * 200
    for commit in range(12):
        added = [_entry(commit * 1_000 + i, bounds=bounds) for i in range(15)]
        before = set(manifests)
        manifests = (*merged_base(manifests, policy, store, WrittenMetadata()), *store.write_manifests(added, WrittenMetadata()))
        assert before <= set(manifests), "what is full stays as it is"
    for commit in range(12):
        small = store.write_manifests([_entry(10**6 + commit)], WrittenMetadata())
        manifests = (*merged_base(manifests, policy, store, WrittenMetadata()), *small)
    assert len(store.entries(manifests)) == 12 * 15 + 12
    assert len([m for m in manifests if m.num_added < 5]) <= policy.min_count + 1, "the small ones behind them are merged"


DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.just("x" * 400_000),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=60,
)


NESTED = {"content": st.dictionaries(st.text(max_size=5), DOCUMENTS, max_size=4), "depth": st.integers(0, 140)}


@pytest.mark.deep
@given(**NESTED)
def test_a_document_that_is_written_is_read(content: dict[str, object], depth: int) -> None:
    for _ in range(depth):
        content = {"inner": [content]}
    try:
        data = json_within_limits(content, "a document")
    except InvalidInputError:
        assert depth > 20 or len(json.dumps(content)) > WRITE_LIMITS.max_json_text_bytes
        return
    assert parse_json_bounded(data, "a document") == content


@pytest.mark.deep
def test_documents_from_before_writers_checked_are_read_and_bombs_are_not() -> None:
    long = json.dumps({"comment": 'a "quoted" text ' * 2_000_000}).encode()
    assert len(long) > 16 << 20
    assert isinstance(parse_json_bounded(long, "schema-1"), dict)
    deep = b'{"a":' * 250 + b"1" + b"}" * 250
    assert isinstance(parse_json_bounded(deep, "schema-1"), dict)
    for bomb in (b'{"a":' * 300 + b"1" + b"}" * 300, b"[" + b"[]," * (6 << 20) + b"[]]", b'{"a":"' + bytes(65 << 20) + b'"}'):
        with pytest.raises(FormatError) as caught:
            parse_json_bounded(bomb, "schema-1")
        assert caught.value.kind == "limit"


def test_lists_and_rows_of_partitions_are_exact_however_long() -> None:
    entry = _entry(0, partition="p" * 10_000)
    listed = summarise([entry], "manifest-1", 1, [TEXT])
    found = decode_manifest_list(encode_manifest_list([listed], NONCE), "manifest-list-1")
    assert found == (listed,)
    assert decode_row(found[0].partition_stats.max_values, [TEXT]) == ("p" * 10_000,)
