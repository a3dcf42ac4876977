"""Entries as columns are the entries as objects, whoever wrote the manifest; damage has the same outcome both ways."""

import io
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError
from tablestore.format.binaryrow import EMPTY_ROW
from tablestore.format.limits import DEFAULT_LIMITS, Limits
from tablestore.format.manifest.avro import AVRO_MAGIC, CODECS, write_container
from tablestore.format.manifest.datafile import FILE_RECORD, DataFileMeta, FileSource
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns, decode_manifests
from tablestore.format.manifest.manifestfile import (
    MANIFEST_SCHEMA,
    EntryKind,
    ManifestEntry,
    decode_manifest,
    encode_manifest,
    entry_bytes,
)
from tablestore.format.paths import manifest_name
from tablestore.format.stats import EMPTY_STATS, SimpleStats

NONCE = b"0123456789abcdef"
MODULE = "tablestore.format.manifest.entrycolumns"
GOLDEN = Path(__file__).parents[2] / "golden" / "paimon"

INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**63 - 1)
ROWS = st.binary(min_size=12, max_size=40) | st.just(EMPTY_ROW)
BOUNDS = st.binary(max_size=40) | st.just(EMPTY_ROW) | st.just(b"\xff" * 100_000)
TEXTS = st.text(max_size=12) | st.just("é中🦉" * 400)
NAMES = (
    st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
        lambda name: name not in (".", "..")
    )
    | st.just("é" * 1024)
    | st.sampled_from(["...", "a\n", "data-é中🦉.parquet"])
)
STATS = st.just(EMPTY_STATS) | st.builds(
    SimpleStats,
    min_values=BOUNDS,
    max_values=BOUNDS,
    null_counts=st.lists(st.none() | LONGS, max_size=5).map(tuple) | st.just((None, 0) * 400),
)
FILES = st.builds(
    DataFileMeta,
    file_name=NAMES,
    file_size=COUNTS,
    row_count=COUNTS,
    min_key=ROWS,
    max_key=ROWS,
    key_stats=STATS,
    value_stats=STATS,
    min_sequence_number=st.integers(-(2**63), 0),
    max_sequence_number=st.integers(0, 2**63 - 1),
    schema_id=COUNTS,
    level=st.integers(0, 2**31 - 1),
    extra_files=st.lists(NAMES, max_size=3).map(tuple),
    creation_time_millis=st.none() | LONGS,
    delete_row_count=st.none() | LONGS,
    embedded_index=st.none() | BOUNDS,
    file_source=st.none() | INTS | st.sampled_from(FileSource),
    value_stats_cols=st.none() | st.lists(TEXTS, max_size=4).map(tuple) | st.just(tuple(f"column{i}" for i in range(300))),
    external_path=st.none() | TEXTS,
    first_row_id=st.none() | LONGS,
    write_cols=st.none() | st.lists(TEXTS, max_size=4).map(tuple),
    write_cols_sequences=st.none() | st.lists(LONGS, max_size=4).map(tuple),
    footer_digest=st.none() | st.binary(max_size=40),
)
ENTRIES = st.lists(
    st.builds(
        ManifestEntry,
        kind=st.sampled_from(EntryKind),
        partition=ROWS,
        bucket=st.integers(-2, 2**31 - 1),
        total_buckets=INTS,
        file=FILES,
    ),
    max_size=6,
)


@contextmanager
def _side_by_side(*, only: bool) -> Iterator[None]:
    """Decode side by side however few blocks there are; ``only``: fail for what would be decoded record by record."""
    with mock.patch(f"{MODULE}._FEWEST_LANES", 0):
        if not only:
            yield
            return
        with mock.patch(f"{MODULE}.decode_manifest", side_effect=AssertionError("record by record")):
            yield


def _encode(entries: Sequence[ManifestEntry], *, block: int = 64, codec: str = "zstandard") -> bytes:
    with mock.patch("tablestore.format.manifest.avro.BLOCK_RECORDS", block):
        return encode_manifest(entries, NONCE, codec=codec)


def _entry(number: int, **changes: Any) -> ManifestEntry:
    key = EMPTY_ROW + bytes([number % 256])
    file = DataFileMeta(
        file_name=f"data-{number}.parquet",
        file_size=number,
        row_count=2 * number,
        min_key=EMPTY_ROW,
        max_key=key,
        key_stats=SimpleStats(min_values=EMPTY_ROW, max_values=key, null_counts=(None, number)),
        value_stats=EMPTY_STATS,
        min_sequence_number=number,
        max_sequence_number=number,
        schema_id=0,
        level=number % 6,
        extra_files=("x.index",) * (number % 3),
        file_source=FileSource.COMPACT,
        value_stats_cols=None if number % 2 else ("a", "b"),
        write_cols=("c",) if number % 4 == 0 else None,
    )
    partition = EMPTY_ROW + f"p{number // 3}".encode()
    entry = ManifestEntry(kind=EntryKind(number % 2), partition=partition, bucket=number, total_buckets=9, file=file)
    return replace(entry, file=replace(file, **changes))


def _plain(entries: Sequence[ManifestEntry]) -> bool:
    """True if all names are short and not of dots alone: others are left to the objects."""
    names = [name for entry in entries for name in (entry.file.file_name, *entry.file.extra_files)]
    return all(len(name.encode()) <= 1024 and name.strip(".") for name in names)


MANIFESTS = {
    "manifests": st.lists(ENTRIES, max_size=4),
    "block": st.sampled_from([1, 2, 64, 4096]),
    "codec": st.sampled_from(sorted(set(CODECS.values()))),
    "repeat": st.sampled_from([1, 1, 30]),
}


def _check_manifests(manifests: list[list[ManifestEntry]], block: int, codec: str, repeat: int) -> None:
    if sum(entry_bytes(entry) for entries in manifests for entry in entries) > 10**5:
        repeat = 1
    manifests = [entries * repeat for entries in manifests]
    files = [_encode(entries, block=block, codec=codec) for entries in manifests]
    with _side_by_side(only=all(map(_plain, manifests)) and repeat == 1):
        columns = list(decode_manifests([(manifest_name(data, 0), data) for data in files]))
    # Compared outside of the assert: pytest would spend minutes on showing how such entries differ.
    is_same = [part.entries() for part in columns] == [decode_manifest(data, "m") for data in files]
    assert is_same
    is_same = [list(part.entries()) for part in columns] == manifests
    assert is_same
    assert all(part.table.schema == ENTRY_SCHEMA for part in columns)
    for part in columns:
        part.table.validate(full=True)


@pytest.mark.deep
@settings(max_examples=8)
@given(**MANIFESTS)
def test_columns_of_manifests_are_the_entries_that_were_written(
    manifests: list[list[ManifestEntry]], block: int, codec: str, repeat: int
) -> None:
    _check_manifests(manifests, block, codec, repeat)


@pytest.mark.slow
@settings(max_examples=100)
@given(**MANIFESTS)
def test_columns_of_many_manifests_are_the_entries_that_were_written(
    manifests: list[list[ManifestEntry]], block: int, codec: str, repeat: int
) -> None:
    _check_manifests(manifests, block, codec, repeat)


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("codec", sorted(set(CODECS.values())))
@pytest.mark.parametrize("block", [1, 2, 64])
def test_manifests_of_different_sizes_are_decoded_together_and_come_in_order(block: int, codec: str) -> None:
    manifests = [[_entry(1000 * place + number) for number in range(size)] for place, size in enumerate((3, 0, 70, 1, 64, 0, 65))]
    files = [("m", _encode(entries, block=block, codec=codec)) for entries in manifests]
    with _side_by_side(only=True):
        assert [list(part.entries()) for part in decode_manifests(files)] == manifests
        with mock.patch(f"{MODULE}._GROUP_BYTES", 5_000):
            assert [list(part.entries()) for part in decode_manifests(files)] == manifests
    assert [list(part.entries()) for part in decode_manifests(files)] == manifests
    assert list(decode_manifests([])) == []


def test_few_blocks_are_read_record_by_record_and_many_side_by_side() -> None:
    # A step costs as much as sixteen records.
    entries = [_entry(number) for number in range(15 * 4)]
    with (
        pytest.raises(AssertionError, match="record by record"),
        mock.patch(f"{MODULE}.decode_manifest", side_effect=AssertionError("record by record")),
    ):
        list(decode_manifests([("m", _encode(entries, block=4))]))
    with mock.patch(f"{MODULE}.decode_manifest", side_effect=AssertionError("record by record")):
        assert len(next(decode_manifests([("m", _encode([*entries, *entries[:4]], block=4))]))) == 64


def _nullable(fields: list[dict[str, Any]], *, last: bool) -> list[dict[str, Any]]:
    """The fields with every type in a union with null, also inside of records."""

    def with_null(kind: Any) -> Any:
        plain = next(branch for branch in kind if branch != "null") if isinstance(kind, list) else kind
        if isinstance(plain, dict) and plain["type"] == "record":
            plain = {**plain, "fields": _nullable(plain["fields"], last=last)}
        return [plain, "null"] if last else ["null", plain]

    return [{"name": field["name"], "type": with_null(field["type"])} for field in fields]


def _longer(kind: Any) -> Any:
    """The type with long where it says int, and the other way round."""
    if isinstance(kind, list):
        return [_longer(branch) for branch in kind]
    if isinstance(kind, dict):
        fields = {"fields": [{**field, "type": _longer(field["type"])} for field in kind["fields"]]} if "fields" in kind else {}
        return {**kind, "type": _longer(kind["type"]), **fields, **({"items": _longer(kind["items"])} if "items" in kind else {})}
    return {"int": "long", "long": "int"}.get(kind, kind)


MORE = [
    {"name": "_MORE_BOOLEAN", "type": ["null", "boolean"]},
    {"name": "_MORE_DOUBLES", "type": {"type": "array", "items": "double"}},
    {"name": "_MORE_RECORD", "type": {"type": "record", "name": "more", "fields": [{"name": "_FILE_NAME", "type": "string"}]}},
    {"name": "_MORE_RECORDS", "type": {"type": "array", "items": ["null", "more"]}},
    {"name": "_MORE_UNION", "type": ["null", "string", "long", {"type": "array", "items": "bytes"}]},
]
MORE_VALUES = {
    "_MORE_BOOLEAN": True,
    "_MORE_DOUBLES": [1.5, 2.5],
    "_MORE_RECORD": {"_FILE_NAME": "other"},
    "_MORE_RECORDS": [None, {"_FILE_NAME": "another"}],
    "_MORE_UNION": [b"x", b""],
}


def _fields(change: Any) -> dict[str, Any]:
    """The schema of manifests with the fields of entries and of files changed."""
    plain = json.loads(json.dumps(MANIFEST_SCHEMA))
    plain["fields"][-1]["type"]["fields"] = change(plain["fields"][-1]["type"]["fields"])
    plain["fields"] = change(plain["fields"])
    return dict(plain)


SCHEMAS: dict[str, Any] = {
    "nullable": _fields(lambda fields: _nullable(fields, last=False)),
    "nullable at the end": _fields(lambda fields: _nullable(fields, last=True)),
    "in a union": ["null", dict(MANIFEST_SCHEMA)],
    "alone in a union": [dict(MANIFEST_SCHEMA)],
    "in reverse": _fields(lambda fields: fields[::-1]),
    "required ones alone": _fields(lambda fields: [field for field in fields if not isinstance(field["type"], list)]),
    "required ones that may be null": _fields(
        lambda fields: [
            {**field, "type": field["type"][1]} if isinstance(field["type"], list) and field["name"] != "_NULL_COUNTS" else field
            for field in fields
        ]
    ),
    "int and long": _longer(json.loads(json.dumps(MANIFEST_SCHEMA))),
    "more at the end": {**MANIFEST_SCHEMA, "fields": [*MANIFEST_SCHEMA["fields"], *MORE]},  # type: ignore[misc]
    "more before": {**MANIFEST_SCHEMA, "fields": [*MORE, *MANIFEST_SCHEMA["fields"]]},  # type: ignore[misc]
}
WITH_MAP = {
    **MANIFEST_SCHEMA,
    "fields": [*MANIFEST_SCHEMA["fields"], {"name": "_MAP", "type": {"type": "map", "values": "string"}}],  # type: ignore[misc]
}


def _record(entry: ManifestEntry, **changes: Any) -> dict[str, Any]:
    return {
        "_VERSION": 2,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": FILE_RECORD.encode(entry.file),
        "_MAP": {"a": "b"},
        **MORE_VALUES,
        **changes,
    }


def _full(number: int) -> ManifestEntry:
    return _entry(
        number,
        creation_time_millis=1,
        delete_row_count=2,
        embedded_index=b"index",
        external_path="s3://é",
        first_row_id=3,
        write_cols_sequences=(1, 2),
        footer_digest=b"digest",
        value_stats_cols=("a",),
        write_cols=(),
    )


@pytest.mark.parametrize("name", SCHEMAS)
def test_manifests_of_other_schemas_are_decoded_side_by_side(name: str) -> None:
    with mock.patch("tablestore.format.manifest.avro.BLOCK_RECORDS", 3):
        data = write_container([_record(_full(number)) for number in range(10)], SCHEMAS[name], nonce=NONCE)
    expected = decode_manifest(data, "m")
    assert name == "required ones alone" or list(expected) == [_full(number) for number in range(10)]
    with _side_by_side(only=True):
        assert next(decode_manifests([("m", data)])).entries() == expected


def test_manifests_whose_schemas_differ_in_order_alone_are_not_mixed_up() -> None:
    text = json.dumps(MANIFEST_SCHEMA).replace("_FILE_SIZE", "?").replace("_ROW_COUNT", "_FILE_SIZE").replace("?", "_ROW_COUNT")
    entries = [_entry(number) for number in range(40)]
    other = write_container([_record(entry) for entry in entries], json.loads(text), nonce=NONCE)
    with _side_by_side(only=False):
        assert [list(part.entries()) for part in decode_manifests([("m", _encode(entries)), ("m", other)])] == [entries] * 2


def test_manifests_with_a_map_are_read_record_by_record() -> None:
    data = write_container([_record(_full(number)) for number in range(10)], WITH_MAP, nonce=NONCE)
    with _side_by_side(only=False):
        assert next(decode_manifests([("m", data)])).entries() == tuple(_full(number) for number in range(10))


@pytest.mark.deep
def test_manifests_of_several_writers_are_decoded_in_one_call() -> None:
    paths = [path for path in sorted(GOLDEN.glob("*/manifest/manifest-*")) if not path.name.startswith("manifest-list-")]
    files = [(path.name, path.read_bytes()) for path in paths]
    expected = [decode_manifest(data, name) for name, data in files]
    assert len(files) > 20
    with _side_by_side(only=True):
        assert [next(decode_manifests([file])).entries() for file in files] == expected
    assert [part.entries() for part in decode_manifests(files)] == expected


def _outcome(files: Sequence[tuple[str, bytes]], *, columns: bool, limits: Limits = DEFAULT_LIMITS) -> Any:
    try:
        if not columns:
            return [decode_manifest(data, name, limits) for name, data in files]
        return [part.entries() for part in decode_manifests(files, limits)]
    except FormatError as error:
        return error.kind, error.message


def _assert_same_outcome(files: Sequence[tuple[str, bytes]], limits: Limits = DEFAULT_LIMITS) -> Any:
    expected = _outcome(files, columns=False, limits=limits)
    with _side_by_side(only=False):
        is_same = _outcome(files, columns=True, limits=limits) == expected
        assert is_same, (files, expected)
    return expected


NULLABLE = SCHEMAS["nullable"]


@pytest.mark.deep_after(11)
@pytest.mark.parametrize(
    "change",
    [
        {"_VERSION": 1},
        {"_VERSION": 3},
        {"_VERSION": None},
        {"_KIND": 2},
        {"_KIND": None},
        {"_PARTITION": b"short"},
        {"_PARTITION": None},
        {"_BUCKET": -3},
        {"_BUCKET": None},
        {"_TOTAL_BUCKETS": None},
        {"_FILE": None},
        *(
            {"_FILE": FILE_RECORD.encode(_entry(7).file) | change}
            for change in (
                {"_FILE_NAME": None},
                {"_FILE_NAME": ""},
                {"_FILE_NAME": ".."},
                {"_FILE_NAME": "a/b"},
                {"_FILE_NAME": "a\\b"},
                {"_FILE_NAME": "a\0b"},
                {"_FILE_NAME": "n" * 1025},
                {"_EXTRA_FILES": None},
                {"_EXTRA_FILES": ["a", "."]},
                {"_FILE_SIZE": -1},
                {"_FILE_SIZE": None},
                {"_ROW_COUNT": -1},
                {"_MIN_KEY": b"short"},
                {"_MAX_KEY": b"short"},
                {"_MAX_KEY": None},
                {"_KEY_STATS": None},
                {"_VALUE_STATS": None},
                {"_VALUE_STATS": {"_MIN_VALUES": None, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": []}},
                {"_VALUE_STATS": {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": None, "_NULL_COUNTS": [1]}},
                {"_VALUE_STATS": {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": None}},
                {"_MIN_SEQUENCE_NUMBER": 8},
                {"_SCHEMA_ID": -1},
                {"_LEVEL": -1},
                {"_LEVEL": None},
            )
        ),
    ],
)
def test_impossible_entries_have_the_same_outcome(change: dict[str, Any]) -> None:
    good = write_container([_record(_entry(number)) for number in range(5)], NULLABLE, nonce=NONCE)
    data = write_container([_record(_entry(1)), _record(_entry(7), **change)], NULLABLE, nonce=NONCE)
    _assert_same_outcome([("manifest-bad", data)])
    _assert_same_outcome([("manifest-1", good), ("manifest-bad", data), ("manifest-2", good)])


LONG_NUMBERS: Any = json.loads(json.dumps(MANIFEST_SCHEMA).replace('"int"', '"long"'))


@pytest.mark.parametrize("field", ["_KIND", "_BUCKET", "_TOTAL_BUCKETS", "_LEVEL", "_FILE_SOURCE"])
@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**63 - 1])
def test_numbers_that_no_int_holds_are_refused_both_ways(field: str, number: int) -> None:
    record = _record(_entry(7))
    (record if field in record else record["_FILE"])[field] = number
    kind, message = _assert_same_outcome([("m", write_container([record], LONG_NUMBERS, nonce=NONCE))])
    assert kind == "corrupt" and message.startswith("m:")


def test_names_made_from_content_are_checked() -> None:
    data = _encode([_entry(1)])
    other = _encode([_entry(2)])
    kind, _ = _assert_same_outcome([("manifest-1", data), (manifest_name(data, 0), other)])
    assert kind == "checksum"


@pytest.mark.parametrize("kind", ["null", {"type": "array", "items": "null"}, {"type": "array", "items": {"type": "record"}}])
def test_schemas_with_types_of_no_bytes_are_refused(kind: Any) -> None:
    schema = {**MANIFEST_SCHEMA, "fields": [{"name": "_NOTHING", "type": kind}, *MANIFEST_SCHEMA["fields"]]}  # type: ignore[misc]
    data = _encode([_entry(1)], codec="null")
    text, other = json.dumps(MANIFEST_SCHEMA, separators=(",", ":")).encode(), json.dumps(schema).encode()
    assert data.count(text) == 1
    out = io.BytesIO()
    for size in (len(text), len(other)):
        fastavro.schemaless_writer(out, "long", size)
    sizes = out.getvalue()
    cut = sizes[:2], sizes[2:]
    damaged = data.replace(cut[0] + text, cut[1] + other)
    assert damaged.startswith(AVRO_MAGIC) and damaged != data
    assert _assert_same_outcome([("m", damaged)])[0] == "corrupt"


@pytest.mark.parametrize(
    "limits",
    [Limits(max_bytes=100), Limits(records_floor=9, record_bytes=10**9), Limits(expansion_floor_bytes=900, max_expansion=1)],
)
def test_limits_hold_both_ways(limits: Limits) -> None:
    _assert_same_outcome([("m", _encode([_entry(number) for number in range(40)]))], limits)


def _check_damage(rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    with mock.patch("tablestore.format.manifest.avro.BLOCK_RECORDS", 2):
        records = [_record(_full(number) if number % 2 else _entry(number)) for number in range(5)]
        sources = [write_container(records, schema, nonce=NONCE, codec="null") for schema in (MANIFEST_SCHEMA, NULLABLE)]
        whole = write_container(records[:3], MANIFEST_SCHEMA, nonce=NONCE)
    kinds: set[str | None] = set()
    decoded = 0
    for _ in range(rounds):
        source = chance.choice(sources)
        damaged = bytearray(source)
        first = source.index(NONCE) + 16
        for _ in range(chance.randint(1, 2)):
            # Seldom in the header: damage to be found lies in the blocks.
            place = chance.randrange(first if chance.random() < 0.95 else 0, len(damaged))
            damaged[place] = chance.choice((chance.randrange(256), damaged[place] ^ 1 << chance.randrange(8), 0x80, 0xFF))
        if chance.random() < 0.1:
            del damaged[chance.randrange(first, len(damaged)) :]
        files = [("manifest-1", bytes(damaged))]
        if chance.random() < 0.3:
            files = [("manifest-0", whole), *files, ("manifest-2", source)]
        outcome = _assert_same_outcome(files)
        decoded += isinstance(outcome, list)
        kinds |= {outcome[0]} if isinstance(outcome, tuple) else set()
    assert rounds // 20 < decoded < rounds
    assert {"corrupt"} <= kinds


@pytest.mark.deep
def test_damaged_manifests_have_the_same_outcome() -> None:
    _check_damage(120, 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 24))
def test_much_damage_in_manifests_has_the_same_outcome(seed: int) -> None:
    _check_damage(2_000, seed)


@settings(max_examples=30)
@given(ENTRIES, st.randoms(use_true_random=False))
def test_entries_survive_columns_and_any_choice_of_them(entries: list[ManifestEntry], chance: random.Random) -> None:
    columns = EntryColumns.of(iter(entries))
    assert columns.table.schema == ENTRY_SCHEMA
    assert len(columns) == len(entries)
    is_same = list(columns.entries()) == entries
    assert is_same
    places = [chance.randrange(len(entries)) for _ in range(chance.randrange(9))] if entries else []
    chosen = columns.take(np.array(places, np.int64))
    is_same = list(chosen.entries()) == [entries[place] for place in places]
    assert is_same
    start, size = chance.randrange(len(entries) + 1), chance.randrange(4)
    part = EntryColumns(columns.table.slice(start, size))
    assert len(part) == len(entries[start : start + size])
    is_same = list(part.entries()) == entries[start : start + size]
    assert is_same
    is_same = part.column("file_name").to_pylist() == [entry.file.file_name for entry in entries[start : start + size]]
    assert is_same
    is_same = part.column("partition").to_pylist() == [entry.partition for entry in entries[start : start + size]]
    assert is_same


def test_a_manifest_counts_its_own_bytes_only() -> None:
    manifests = [[_entry(300 * place + number) for number in range(size)] for place, size in enumerate((300, 3, 300))]
    files = [("m", _encode(entries)) for entries in manifests]
    with _side_by_side(only=True):
        together = list(decode_manifests(files))
        alone = [next(decode_manifests([file])) for file in files]
    for part, single, entries in zip(together, alone, manifests, strict=True):
        assert abs(part.size_bytes - single.size_bytes) < 100 + single.size_bytes // 50
        assert part.column("partition").dictionary.to_pylist() == list(dict.fromkeys(entry.partition for entry in entries))
        assert 150 * len(entries) < part.size_bytes < 700 * len(entries) + 500


def test_entries_of_one_partition_share_its_bytes() -> None:
    entries = [replace(_entry(number), partition=EMPTY_ROW + b"p") for number in range(100)]
    for columns in (EntryColumns.of(entries), next(decode_manifests([("m", _encode(entries, block=2))]))):
        assert len(columns.column("partition").dictionary) == 1
