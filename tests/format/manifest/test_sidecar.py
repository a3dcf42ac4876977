"""A sidecar has the entries of its manifest, and whatever else lies under its name is refused."""

import io
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError
from tablestore.format.binaryrow import EMPTY_ROW
from tablestore.format.manifest import sidecar
from tablestore.format.manifest.entrycolumns import BoundedColumn, EntryColumns, decode_with_records, encode_records
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry, decode_manifest, encode_manifest
from tablestore.format.manifest.sidecar import SidecarColumns, encode_sidecar, open_sidecar
from tablestore.format.paths import manifest_name
from tablestore.format.stats import SimpleStats
from tests.format.manifest.test_entrycolumns import ENTRIES, _entry, _plain

NAME = "manifest-00000000-0000-4000-8000-000000000000-0"
BOUND = BoundedColumn("key 0 of 1", "BIGINT")


def encoded(entries: Sequence[ManifestEntry], lows: Sequence[int | None] | None = None) -> bytes:
    bounds = pa.array(range(len(entries)) if lows is None else lows, pa.int64())
    data = encode_sidecar(EntryColumns.of(entries), NAME, {BOUND: (bounds, bounds)})
    assert data is not None
    return data


def opened(data: bytes, count: int) -> SidecarColumns:
    return SidecarColumns(lambda: open_sidecar(data, NAME, count))


def in_order(entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    return sorted(entries, key=lambda entry: entry.file.file_name)


@pytest.mark.deep
@settings(max_examples=60)
@given(ENTRIES, st.integers(1, 4))
def test_it_has_the_entries_whatever_they_are(drawn: list[ManifestEntry], rows_of_a_group: int) -> None:
    entries = list({entry.file.file_name: entry for entry in (*drawn, _entry(3))}.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sidecar, "_ROWS_OF_A_GROUP", rows_of_a_group)
        if not _plain(entries):
            assert encode_sidecar(EntryColumns.of(entries), NAME, {}) is None
            return
        columns = opened(encoded(entries), len(entries))
        assert in_order(EntryColumns(columns.table).entries()) == in_order(entries)
        places = np.array([place for place in range(len(entries)) if place % 2 == 0], np.int64)
        whole = EntryColumns(columns.table).entries()
        assert columns.take(places).entries() == tuple(whole[place] for place in places)
        assert columns.take(places[:0]).entries() == ()
        columns.close()
        assert columns.column("file_name").to_pylist() == [entry.file.file_name for entry in whole]


def test_entries_lie_by_partition_and_bucket_and_bounds_lie_beside_them() -> None:
    entries = [_entry(number, extra_files=()) for number in range(300)]
    random.Random(1).shuffle(entries)
    lows = [None if entry.file.file_size % 7 == 0 else entry.file.file_size for entry in entries]
    columns = opened(encoded(entries, lows), 300)
    stored = EntryColumns(columns.table).entries()
    places = [(entry.kind is EntryKind.ADD, entry.partition, entry.bucket) for entry in stored]
    assert places == sorted(places), "DELETEs first"
    low, high = columns.bounds(BOUND) or (None, None)
    assert low is not None and low.equals(high)
    assert low.to_pylist() == [None if entry.file.file_size % 7 == 0 else entry.file.file_size for entry in stored]
    assert (
        columns.bounds(BoundedColumn("key 0 of 1", "INT")) is None and columns.bounds(BoundedColumn("key 0 of 2", "BIGINT")) is None
    )


def test_columns_that_were_asked_for_stay_and_are_counted() -> None:
    columns = opened(encoded([_entry(number) for number in range(300)]), 300)
    assert columns.size_bytes == 0 and len(columns) == 300
    assert columns.column("file_size") is columns.column("file_size")
    assert 300 * 8 <= columns.size_bytes < 400 * 8


def test_any_reader_of_parquet_reads_it() -> None:
    table = pq.read_table(pa.BufferReader(encoded([_entry(number) for number in range(50)])))
    assert sorted(table["file_name"].to_pylist()) == sorted(f"data-{number}.parquet" for number in range(50))
    assert table["low key 0 of 1 BIGINT"].to_pylist() == table["high key 0 of 1 BIGINT"].to_pylist()


def test_one_that_is_damaged_cut_or_of_another_manifest_is_refused() -> None:
    entries = [_entry(number) for number in range(200)]
    data = encoded(entries)
    open_sidecar(data, NAME, 200)
    rng = random.Random(7)
    for place in {0, 1, *range(len(data) - 60, len(data)), *(rng.randrange(len(data)) for _ in range(300))}:
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.randrange(8)
        with pytest.raises(FormatError):
            open_sidecar(bytes(damaged), NAME, 200)
    for other in (
        b"",
        b"PAR1",
        data[:-1],
        data[1:],
        data + b"\0",
        data + data,
        data[: len(data) // 2] + data[-8:],
        bytes(len(data)),
    ):
        with pytest.raises(FormatError):
            open_sidecar(other, NAME, 200)
    with pytest.raises(FormatError, match="expected the sealed columns of manifest-other"):
        open_sidecar(data, "manifest-other", 200)
    with pytest.raises(FormatError, match="expected 201 entries"):
        open_sidecar(data, NAME, 201)
    plain = io.BytesIO()
    pq.write_table(EntryColumns.of(entries).table, plain)
    with pytest.raises(FormatError):
        open_sidecar(plain.getvalue(), NAME, 200)


def test_a_manifest_whose_order_says_something_has_none() -> None:
    first, other = _entry(1), _entry(2)
    again = replace(first, kind=EntryKind.ADD)
    assert encode_sidecar(EntryColumns.of([first, other, again]), NAME, {}) is None
    moved = replace(again, file=replace(again.file, level=3))
    assert opened(encoded([first, other, moved]), 3).take(np.arange(3)).entries() == (first, moved, other), "another file"


@pytest.mark.parametrize(
    ("column", "values"),
    [("kind", pa.array([7] * 3, pa.int8())), ("kind", pa.nulls(3, pa.int8())), ("bucket", pa.array([-9] * 3, pa.int32())),
     ("file_name", pa.array(["../a", "b", "c"])), ("bucket", pa.array(["1", "2", "3"]))],
)  # fmt: skip
def test_entries_that_no_manifest_may_have_are_left_to_the_manifest(column: str, values: pa.Array) -> None:
    entries = EntryColumns.of([_entry(2), _entry(4), _entry(6)])
    odd = EntryColumns(entries.table.set_column(entries.table.column_names.index(column), column, values))
    odd = odd.select(sidecar._SCHEMA.names)
    sink = io.BytesIO()
    pq.write_table(odd.table, sink, compression="zstd", use_dictionary=["partition"], write_statistics=False)
    with pytest.raises(FormatError):
        opened(sidecar._sealed(sink.getvalue(), NAME), 3).take(np.arange(3))


def test_values_that_stand_for_many_bytes_are_refused() -> None:
    table = EntryColumns.of([_entry(number) for number in range(200)]).select(sidecar._SCHEMA.names).table
    place = table.column_names.index("min_key")
    wide = table.set_column(place, "min_key", pa.array([b"\0" * 100_000] * 200, pa.binary()))
    for dictionary in (True, False):
        sink = io.BytesIO()
        pq.write_table(wide, sink, compression="zstd", use_dictionary=dictionary, write_statistics=False)
        with pytest.raises(FormatError, match="expected plain values" if dictionary else "bytes of columns"):
            open_sidecar(sidecar._sealed(sink.getvalue(), NAME), NAME, 200).read(["min_key"])


@pytest.mark.deep
def test_threads_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [_entry(number) for number in range(500)]
    monkeypatch.setattr(sidecar, "_ROWS_OF_A_GROUP", 16)
    columns = opened(encoded(entries), 500)

    def use(seed: int) -> int:
        rng = random.Random(seed)
        for _ in range(40):
            columns.column(rng.choice(["file_size", "kind", "level", "file_name"]))
            columns.take(np.array([rng.randrange(500)]))
            columns.select(["file_name", "bucket"])
            columns.close()
        return columns.size_bytes

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(use, range(4)))) == 1


def test_groups_of_rows_of_any_size_are_read_by_what_the_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [_entry(number) for number in range(100)]
    monkeypatch.setattr(sidecar, "_ROWS_OF_A_GROUP", 7)
    columns = opened(encoded(entries), 100)
    monkeypatch.undo()
    whole = EntryColumns(columns.table).entries()
    for places in ([0], [6, 7, 99], [98, 3, 3, 50], list(range(100)), []):
        assert columns.take(np.array(places, np.int64)).entries() == tuple(whole[place] for place in places)


@pytest.mark.deep
def test_records_of_wide_entries_are_read_however_few_there_are() -> None:
    wide = SimpleStats(min_values=EMPTY_ROW, max_values=EMPTY_ROW, null_counts=(0,) * 400)
    entries = [_entry(number, value_stats=wide) for number in range(64)]
    data = encode_manifest(entries, b"n" * 16)
    columns, records = decode_with_records(manifest_name(data, 0), data)
    assert columns.entries() == tuple(entries)
    assert decode_manifest(encode_records(records, b"m" * 16), "again") == tuple(entries)
