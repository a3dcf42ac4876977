"""Every bit of a data file but those that no reader looks at: flipped, it is told."""

import io
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore.errors import FormatError, TablestoreError
from tablestore.format.parquet.footer import TAIL_BYTES
from tablestore.format.parquet.pages import check_pages, check_values, plain_page, read_header
from tablestore.format.parquet.parquetfile import DataFileOptions, FileFooter, ParquetFileWriter, with_system_columns
from tablestore.format.parquet.parquetread import open_parquet_file
from tablestore.format.parquet.parquetschema import file_schema
from tablestore.types.newschema import new_schema

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("n", pa.int32()),
        ("few", pa.string()),
        ("yes", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("pair", pa.struct([("a", pa.int8()), ("b", pa.float32())])),
    ]
)
GOLDEN = Path(__file__).parents[2] / "golden" / "paimon"


def written(count: int, options: DataFileOptions) -> tuple[bytes, FileFooter]:
    chance = random.Random(count)
    rows = pa.Table.from_pylist(
        [
            {
                "id": i,
                "n": chance.choice([None, i]),
                "few": chance.choice(["a", "bb", None]),
                "yes": chance.choice([None, True, False]),
                "tags": chance.choices("xyz", k=chance.randrange(3)),
                "pair": {"a": i % 5, "b": i / 7} if i % 4 else None,
            }
            for i in range(count)
        ],
        schema=SCHEMA,
    )
    table = new_schema(schema=SCHEMA, primary_key=("id",), partition_by=(), options={}, comment=None, time_millis=0)
    columns = file_schema(table, thin=True)
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, columns, file_name="f", options=options, unique_columns=frozenset({"id"}))
    writer.write(with_system_columns(rows, columns, sequence=7, kinds=np.zeros(count, dtype=np.int8)))
    footer = writer.close()
    return sink.getvalue(), footer


def read(data: bytes, footer: FileFooter, *, pages: bool) -> pa.Table:
    reader = open_parquet_file(pa.py_buffer(data), file_name="f", footer_digest=footer.digest, size=footer.file_size)
    if pages:
        assert reader.check_pages() > 0
    return pa.Table.from_batches(reader.read(), schema=reader.schema)


def headers(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the page headers of a file lie."""
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    for group in range(metadata.num_row_groups):
        for position in range(metadata.num_columns):
            column = metadata.row_group(group).column(position)
            at = column.dictionary_page_offset or column.data_page_offset
            stop = at + column.total_compressed_size
            while at < stop:
                header, end = read_header(data, at)
                yield at, end
                at = end + header[3]


def without_statistics(data: bytes, at: int) -> object:
    """What a page header says beside its statistics; None if it says nothing."""
    try:
        header, end = read_header(data, at)
    except FormatError:
        return None
    return {key: {k: v for k, v in part.items() if k != 5} if isinstance(part, dict) else part for key, part in header.items()}, end


def flipped(data: bytes, bit: int) -> bytes:
    out = bytearray(data)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


def test_the_checksums_of_the_pages_of_chosen_columns_are_checked_on_request() -> None:
    data, footer = written(16, DataFileOptions(compression="none", compression_level=None, row_group_rows=8))
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1)
    (column,) = (column for column in map(group.column, range(group.num_columns)) if column.path_in_schema == "few")
    _, page = read_header(data, column.dictionary_page_offset or column.data_page_offset)
    reader = open_parquet_file(pa.py_buffer(flipped(data, page * 8 + 1)), file_name="f", footer_digest=footer.digest)
    assert reader.check_pages() > reader.check_pages(["id", "n"], content=True) > 0
    with pytest.raises(FormatError, match=r"column few in row group 1 .* page 0 does not match its checksum"):
        reader.check_pages(["few"], content=True)
    with pytest.raises(FormatError, match="checksum"):
        reader.check_pages(content=True)


@pytest.mark.deep
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_every_flipped_bit_of_page_headers_and_magic_is_told_but_those_of_statistics(compression: str) -> None:
    data, footer = written(16, DataFileOptions(compression=compression, compression_level=None, row_group_rows=8))
    sound = read(data, footer, pages=True)
    spans = [(0, 4), *headers(data), (len(data) - TAIL_BYTES, len(data))]
    outcomes: Counter[str] = Counter()
    for start, stop in spans:
        for bit in range(start * 8, stop * 8):
            damaged = flipped(data, bit)
            try:
                found = read(damaged, footer, pages=True)
            except TablestoreError:
                outcomes["told"] += 1
                continue
            outcomes["not told"] += 1
            assert found.equals(sound), f"bit {bit % 8} of byte {bit // 8} gives other rows, silently"
            assert without_statistics(damaged, start) == without_statistics(data, start) is not None, f"bit {bit}"
    assert outcomes["told"] > 4_000 and outcomes["not told"] < outcomes["told"], outcomes


def read_unchecked(data: bytes) -> pa.Table | None:
    """What Arrow alone makes of a file, None if it notices something."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        return pa.Table.from_batches(file.iter_batches(), schema=file.schema_arrow)
    except (pa.ArrowException, OSError):
        return None


@pytest.mark.deep
@pytest.mark.parametrize("count", [20, pytest.param(50_000, marks=pytest.mark.slow)])
def test_a_header_that_counts_too_many_values_shifts_rows_in_arrow_and_is_told_by_every_read(count: int) -> None:
    data, footer = written(count, DataFileOptions(row_group_rows=max(10, count // 2)))
    sound, arrow = read(data, footer, pages=False), read_unchecked(data)
    silent = 0
    for start, stop in headers(data):
        for bit in range(start * 8, stop * 8):
            damaged = flipped(data, bit)
            try:
                assert read(damaged, footer, pages=False).equals(sound), f"bit {bit % 8} of byte {bit // 8} is not told"
            except TablestoreError:
                alone = read_unchecked(damaged)
                silent += alone is not None and not alone.equals(arrow)
    assert silent, "Arrow tells this by itself now: reading needs no more, and this check can go"


@pytest.mark.deep
def test_a_sample_of_flipped_bits_of_a_large_file_is_told() -> None:
    data, footer = written(3_000, DataFileOptions(row_group_rows=1_000))
    chance = random.Random(20268)
    spans = list(headers(data))
    missed = 0
    for _ in range(400):
        bit = chance.randrange(len(data) * 8)
        try:
            read(flipped(data, bit), footer, pages=True)
        except TablestoreError:
            continue
        assert any(start <= bit // 8 < stop for start, stop in spans), f"bit {bit} is in no page header"
        missed += 1
    assert missed < 10


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("**/*.parquet"))[:40], ids=lambda path: path.name)
def test_page_headers_of_other_engines_are_sound(path: Path) -> None:
    assert check_pages(pa.OSFile(str(path)), pq.ParquetFile(path).metadata, path.name, ours=False) >= 0


@pytest.mark.parametrize("bit", [None, *range(8)])
def test_the_short_way_reads_of_a_header_what_the_long_one_does_or_leaves_it_to_it(bit: int | None) -> None:
    data, _ = written(20, DataFileOptions(row_group_rows=5))
    short = 0
    for start, end in headers(data):
        for place in range(start, end if bit is not None else start + 1):
            header = bytearray(data[start : start + 256])
            if bit is not None:
                header[place - start] ^= 1 << bit
            if (page := plain_page(bytes(header))) is None:
                continue
            short += 1
            fields, length = read_header(bytes(header), 0)
            # The numbers of the fields, from the format's description: compressed bytes, and values of a data page.
            assert page == (fields[5][1], fields[3], length)
    assert short > 0


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_header_that_is_cut_is_left_to_the_long_way(cut: int) -> None:
    data, _ = written(20, DataFileOptions(row_group_rows=5))
    whole = [(data[start:end], plain_page(data[start:end])) for start, end in headers(data)]
    assert all(plain_page(header[:-cut]) is None for header, page in whole if page is not None)


def test_data_pages_of_our_files_are_counted_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = written(500, DataFileOptions(row_group_rows=100))
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    long_reads: list[int] = []

    def counted(start: bytes, at: int) -> tuple[object, int]:
        long_reads.append(at)
        return read_header(start, at)

    monkeypatch.setattr("tablestore.format.parquet.pages.read_header", counted)
    columns = [metadata.row_group(g).column(c) for g in range(metadata.num_row_groups) for c in range(metadata.num_columns)]
    for column in columns:
        check_values(pa.BufferReader(data), column, "f")
    assert len(long_reads) <= sum(column.dictionary_page_offset is not None for column in columns)
