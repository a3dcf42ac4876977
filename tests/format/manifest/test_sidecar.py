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
from tablestore.format.manifest.entrycolumns import (
    ENTRY_SCHEMA,
    BoundedColumn,
    EntryColumns,
    RecordPlaces,
    decode_with_records,
    encode_records,
    entries_at,
    places_of_records,
)
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry, decode_manifest, encode_manifest
from tablestore.format.manifest.sidecar import SidecarColumns, encode_sidecar, open_sidecar
from tablestore.format.paths import manifest_name
from tablestore.format.stats import SimpleStats
from tests.format.manifest.test_entrycolumns import ENTRIES, _entry, _plain

NAME = "manifest-00000000-0000-4000-8000-000000000000-0"
BOUND = BoundedColumn("key 0 of 1", "BIGINT")


def decoded(entries: Sequence[ManifestEntry]) -> tuple[bytes, EntryColumns]:
    data = encode_manifest(entries, b"n" * 16)
    columns, records = decode_with_records("m", data)
    columns.records = places_of_records(data, records)
    return data, columns


def encoded(entries: Sequence[ManifestEntry], lows: Sequence[int | None] | None = None) -> bytes:
    bounds = pa.array(range(len(entries)) if lows is None else lows, pa.int64())
    data = encode_sidecar(decoded(entries)[1], NAME, {BOUND: (bounds, bounds)})
    assert data is not None
    return data


def opened(data: bytes, count: int) -> SidecarColumns:
    return SidecarColumns(lambda: open_sidecar(data, NAME, count))


def read_whole(data: bytes, manifest: str, count: int) -> None:
    names = sorted(open_sidecar(data, manifest, count).names)
    assert len(SidecarColumns(lambda: open_sidecar(data, manifest, count)).select(names)) == count


def in_order(entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    return sorted(entries, key=lambda entry: entry.file.file_name)


def stored(entries: EntryColumns) -> pa.Table:
    """The columns of a sidecar."""
    table = entries.select([name for name in sidecar._SCHEMA.names if name not in (*sidecar._RECORD_PLACES, sidecar._ROW)]).table
    for name in (*sidecar._RECORD_PLACES, sidecar._ROW):
        table = table.append_column(name, pa.array(range(len(entries)), pa.int32()))
    return table


@pytest.mark.deep
@settings(max_examples=60)
@given(ENTRIES, st.integers(0, 4))
def test_it_has_the_entries_whatever_they_are(drawn: list[ManifestEntry], entries_of_a_record: int) -> None:
    entries = list({entry.file.file_name: entry for entry in (*drawn, _entry(3))}.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sidecar, "_ENTRIES_OF_A_RECORD", entries_of_a_record)
        if not _plain(entries):
            odd = EntryColumns.of(entries)
            odd.records = RecordPlaces(np.zeros(len(entries), np.int64), np.arange(len(entries)))
            assert encode_sidecar(odd, NAME, {}) is None
            return
        manifest, data = decoded(entries)[0], encoded(entries)
        columns = SidecarColumns(lambda: open_sidecar(data, NAME, len(entries)), lambda places: entries_at(manifest, places, "m"))
        assert in_order(EntryColumns(columns.table).entries()) == in_order(entries)
        places = np.array([place for place in range(len(entries)) if place % 2 == 0], np.int64)
        whole = EntryColumns(columns.table).entries()
        assert columns.take(places).entries() == tuple(whole[place] for place in places)
        assert columns.take(places[::-1]).entries() == tuple(whole[place] for place in places[::-1])
        assert columns.take(places[:0]).entries() == ()
        rows = columns.stored_rows()
        assert [entries[row] for row in rows] == list(whole)
        assert columns.at_rows(np.arange(len(entries)), ENTRY_SCHEMA.names).entries() == tuple(entries)
        names = columns.at_rows(np.arange(len(entries)), ["file_name"]).column("file_name")
        assert names.to_pylist() == [entry.file.file_name for entry in entries]
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
    read_whole(data, NAME, 200)
    rng = random.Random(7)
    # From the first piece on.
    for place in {4, 5, *range(len(data) - 60, len(data)), *(rng.randrange(4, len(data)) for _ in range(300))}:
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.randrange(8)
        with pytest.raises(FormatError):
            read_whole(bytes(damaged), NAME, 200)
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
    assert encode_sidecar(decoded([first, other, again])[1], NAME, {}) is None
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
    sink = io.BytesIO()
    pq.write_table(stored(odd), sink, compression="zstd", use_dictionary=["partition"], write_statistics=False)
    with pytest.raises(FormatError):
        opened(sidecar._sealed(sink.getvalue(), NAME), 3).take(np.arange(3))


def test_values_that_stand_for_many_bytes_are_refused() -> None:
    table = stored(EntryColumns.of([_entry(number) for number in range(200)]))
    place = table.column_names.index("min_key")
    wide = table.set_column(place, "min_key", pa.array([b"\0" * 100_000] * 200, pa.binary()))
    for dictionary in (True, False):
        sink = io.BytesIO()
        pq.write_table(wide, sink, compression="zstd", use_dictionary=dictionary, write_statistics=False)
        with pytest.raises(FormatError, match="expected plain values" if dictionary else "bytes of columns"):
            open_sidecar(sidecar._sealed(sink.getvalue(), NAME), NAME, 200).read(["min_key"])


@pytest.mark.deep
def test_threads_share_one() -> None:
    entries = [_entry(number) for number in range(500)]
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


def test_few_entries_are_read_from_the_manifest_and_many_from_the_columns() -> None:
    entries = [_entry(number) for number in range(1_000)]
    manifest, columns = decoded(entries)
    data = encode_sidecar(columns, NAME, {})
    assert data is not None
    reads: list[int] = []

    def read_entries(places: RecordPlaces) -> tuple[ManifestEntry, ...]:
        reads.append(len(places.blocks))
        return entries_at(manifest, places, "m")

    read = SidecarColumns(lambda: open_sidecar(data, NAME, 1_000), read_entries)
    whole = EntryColumns(read.table).entries()
    for places in ([0], [999, 3, 3], [600, 6, 7], list(range(0, 1_000, 3)), []):
        assert read.take(np.array(places, np.int64)).entries() == tuple(whole[place] for place in places)
    assert reads == [1, 3, 3]
    size = read.size_bytes
    for places in ([5, 6], [5, 6], [6, 5]):
        assert read.take(np.array(places, np.int64)).entries() == tuple(whole[place] for place in places)
    assert reads == [1, 3, 3, 2, 2] and read.size_bytes < size, "the last ones stay, and are counted"
    reads[3:] = []
    unknown = encode_sidecar(EntryColumns.of(entries), NAME, {})
    assert unknown is not None, "of a manifest that is decoded record by record"
    read = SidecarColumns(lambda: open_sidecar(unknown, NAME, 1_000), read_entries)
    assert set(read.take(np.array([0, 9])).entries()) < set(entries) and reads == [1, 3, 3]
    assert read.at_rows(np.array([7, 3]), ENTRY_SCHEMA.names).entries() == (entries[7], entries[3])


def test_records_are_read_at_their_places_and_nowhere_else() -> None:
    manifest, columns = decoded([_entry(number) for number in range(200)])
    assert columns.records is not None
    blocks = columns.records.blocks
    assert len(set(blocks.tolist())) == 4 and entries_at(manifest, columns.records, "m") == columns.entries()
    for block, offset in ((int(blocks[0]) + 1, 0), (len(manifest), 0), (int(blocks[0]), 1 << 30), (-1, 0)):
        with pytest.raises(FormatError):
            entries_at(manifest, RecordPlaces(np.array([block]), np.array([offset])), "m")


@pytest.mark.deep
def test_records_of_wide_entries_are_read_however_few_there_are() -> None:
    wide = SimpleStats(min_values=EMPTY_ROW, max_values=EMPTY_ROW, null_counts=(0,) * 400)
    entries = [_entry(number, value_stats=wide) for number in range(64)]
    data = encode_manifest(entries, b"n" * 16)
    columns, records = decode_with_records(manifest_name(data, 0), data)
    assert columns.entries() == tuple(entries)
    assert decode_manifest(encode_records(records, b"m" * 16), "again") == tuple(entries)
