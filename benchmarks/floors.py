"""What pyarrow alone takes for the same bytes: no sorting, no folding, no table, no durability.

There are two ways to write: as ``pyarrow.parquet`` does by itself with the codec given, and with the settings of a data file
(row groups, dictionaries, page checksums). Neither holds the system columns. There are two ways to read: with and without
verifying the pages' checksums, which a table's reader always does.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from tablestore.format.bucket import bucket_of
from tablestore.format.parquet.parquetfile import DataFileOptions
from tablestore.table.table import Table

_OPTIONS = DataFileOptions()


def sorted_buckets(rows: pa.Table, table: Table, buckets: int) -> list[pa.Table]:
    """The rows as the table's files will hold them: by bucket, sorted by key."""
    schema = table.table_schema
    rows = rows.combine_chunks()
    columns = [rows.column(name).chunk(0) for name in schema.bucket_keys]
    bucket = bucket_of(columns, [schema.field(name).type for name in schema.bucket_keys], buckets)
    order = [(name, "ascending") for name in schema.trimmed_primary_keys]
    return [rows.filter(pa.array(bucket == number)).sort_by(order).combine_chunks() for number in range(buckets)]


def write_plain(parts: Sequence[pa.Table], directory: Path) -> None:
    """A file per part, by pyarrow's defaults and our codec."""
    for number, part in enumerate(parts):
        pq.write_table(
            part, directory / f"{number}.parquet", compression=_OPTIONS.compression, compression_level=_OPTIONS.compression_level
        )


def write_alike(parts: Sequence[pa.Table], directory: Path) -> None:
    """A file per part with the settings of a data file."""
    for number, part in enumerate(parts):
        pq.write_table(
            part,
            directory / f"{number}.parquet",
            compression=_OPTIONS.compression,
            compression_level=_OPTIONS.compression_level,
            row_group_size=_OPTIONS.row_group_rows,
            use_dictionary=False,
            write_page_checksum=True,
            store_schema=False,
        )


def read_files(paths: Sequence[Path], columns: Sequence[str], *, verify: bool) -> int:
    """Read these columns of all files into memory, in the way that is fastest on a local disk; the number of rows."""
    rows = 0
    kept = []
    for path in paths:
        with pq.ParquetFile(path, page_checksum_verification=verify, pre_buffer=False) as file:
            part = file.read(list(columns), use_threads=False)
        kept.append(part)
        rows += part.num_rows
    return rows


def read_orc_files(paths: Sequence[Path], columns: Sequence[str]) -> int:
    """Read these columns of all ORC files into memory; the number of rows."""
    kept = [orc.read_table(path, columns=list(columns)) for path in paths]
    return sum(part.num_rows for part in kept)


def decode_files(paths: Sequence[Path], columns: Sequence[str]) -> None:
    """Decode these columns of all files batch by batch, pages verified, and keep nothing."""
    for path in paths:
        with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
            for _ in file.iter_batches(columns=list(columns), use_threads=False):
                pass


def data_files(table: Table, file_format: str = "parquet") -> list[Path]:
    """The live data files of a table on the local disk."""
    return sorted(Path(table.location).glob(f"**/bucket-*/*.{file_format}"))
