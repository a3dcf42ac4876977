"""Entries that stay encoded are the entries: as a sequence, in what is read of their columns, and in the manifests made of them."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tablestore.format.manifest import encodedentries
from tablestore.format.manifest.encodedentries import EncodedEntries, decode_entries, each_place, joined, names_of
from tablestore.format.manifest.entrycolumns import encode_records
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry, decode_manifest, encode_manifest
from tests.format.manifest.test_entrycolumns import _entry

NONCE = b"n" * 16


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodedentries, "FEWEST_ENTRIES", 10)


def entries_of(seed: int, count: int = 60) -> list[ManifestEntry]:
    rng = random.Random(seed)
    entries = []
    for number in range(count):
        entry = _entry(seed * 1_000 + number, delete_row_count=rng.choice([0, 2, 2**60]))
        entries.append(replace(entry, kind=EntryKind.ADD, partition=bytes(12) + rng.choice([b"a", b"b"]), bucket=rng.randrange(3)))
    return entries


def encoded(parts: Sequence[Sequence[ManifestEntry]]) -> list[EncodedEntries]:
    decoded = decode_entries([encode_manifest(part, NONCE) for part in parts], "messages")
    assert decoded is not None
    return decoded


def test_they_are_a_sequence_of_the_same_entries() -> None:
    # One after the other they would be decoded record by record.
    parts = [entries_of(seed, 3) for seed in range(20)]
    every = [entry for part in parts for entry in part]
    decoded = encoded(parts)
    assert [tuple(part) for part in decoded] == list(map(tuple, parts)) and decoded[3] == tuple(parts[3]) != decoded[4]
    whole = joined(decoded)
    assert isinstance(whole, EncodedEntries) and whole == tuple(every) and hash(whole) == hash(tuple(every))
    assert len(whole) == 60 and whole[7] == every[7] and whole[-1] == every[-1] and tuple(whole[5:9]) == tuple(every[5:9])
    assert joined([whole]) is whole and joined([(), whole]) is whole
    mixed = joined([whole, every[:1]])
    assert mixed == (*every, every[0]), "as objects"
    assert joined([]) == ()


def test_what_is_read_of_columns_is_what_the_objects_say() -> None:
    entries = [entry for seed in range(20) for entry in entries_of(seed, 5)]
    whole = joined(encoded([entries[start : start + 5] for start in range(0, 100, 5)]))
    assert isinstance(whole, EncodedEntries)
    files = [entry.file for entry in entries]
    assert names_of(whole) == names_of(entries) == [file.file_name for file in files]
    assert whole.rows == sum(file.row_count for file in files)
    assert whole.deleted_rows == sum(file.delete_row_count or 0 for file in files)
    assert whole.max_sequence_number == max(file.max_sequence_number for file in files)
    places = [(entry.partition, entry.bucket, entry.total_buckets) for entry in each_place(whole)]
    assert sorted(places) == sorted({(entry.partition, entry.bucket, entry.total_buckets) for entry in entries})
    twice = joined([whole, whole[3:4]])
    assert whole.are_different and isinstance(twice, EncodedEntries) and not twice.are_different


def test_deletes_that_are_not_noted_are_unknown() -> None:
    entries = entries_of(1)
    entries[4] = replace(entries[4], file=replace(entries[4].file, delete_row_count=None))
    whole = joined(encoded([entries[start : start + 3] for start in range(0, 60, 3)]))
    assert isinstance(whole, EncodedEntries) and whole.deleted_rows is None


@pytest.mark.parametrize("most_bytes", [1, 3_000, 1 << 30])
def test_the_manifests_of_them_have_the_entries_by_place_and_in_each_in_order(most_bytes: int) -> None:
    entries = [entry for seed in range(20) for entry in entries_of(seed, 5)]
    whole = joined(encoded([entries[start : start + 5] for start in range(0, 100, 5)]))
    assert isinstance(whole, EncodedEntries)
    manifests = [(columns.entries(), encode_records(records, NONCE)) for columns, records in whole.parts(most_bytes)]
    assert len(manifests) == {1: 100, 3_000: len(manifests), 1 << 30: 1}[most_bytes] and (most_bytes > 3_000 or len(manifests) > 2)
    assert all(decode_manifest(data, "manifest") == columns for columns, data in manifests)
    written = [entry for columns, _ in manifests for entry in columns]
    assert written == sorted(entries, key=lambda entry: (entry.partition, entry.bucket))


def test_few_entries_damaged_ones_and_deletes_are_left_to_be_read_as_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [encode_manifest(entries_of(seed, 3), NONCE) for seed in range(20)]
    assert decode_entries(parts, "messages") is not None
    deletes = [replace(entries_of(90, 1)[0], kind=EntryKind.DELETE)]
    for others in (parts[:3], [*parts, parts[0][:-20]], [*parts, b""], [*parts, encode_manifest(deletes, NONCE)]):
        assert decode_entries(others, "messages") is None
    monkeypatch.setattr(encodedentries, "FEWEST_ENTRIES", 61)
    assert decode_entries(parts, "messages") is None
