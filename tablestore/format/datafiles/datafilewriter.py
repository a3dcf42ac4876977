"""Opens data files for writing, in the formats that are also read (:mod:`tablestore.format.datafiles.datafilereader`).

data-….parquet    :mod:`tablestore.format.parquet.parquetfile`
data-….orc        :mod:`tablestore.format.datafiles.orcwriter`
data-….avro       :mod:`tablestore.format.datafiles.avrowriter`
"""

from collections.abc import Collection
from typing import BinaryIO, Protocol

import pyarrow as pa

from tablestore.errors import UnsupportedError
from tablestore.format.parquet.parquetfile import DataFileOptions, FileFooter, ParquetFileWriter
from tablestore.format.paths import file_format_of
from tablestore.options import FILE_FORMATS
from tablestore.types.schema import TableSchema


class DataFileWriter(Protocol):
    """A data file that is being written into a sink, which the caller opens and closes."""

    def reached(self, size: int) -> bool:
        """True if the file has that many bytes, or as much as a file of its format should hold: then another follows it."""

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Appends rows, whose columns are those of the file's schema in its order. Raises InvalidInputError for rows that do not
        fit it."""

    def close(self) -> FileFooter:
        """Writes what is buffered and ends the file. The sink stays open."""


def create_data_file(
    sink: BinaryIO | pa.NativeFile,
    schema: pa.Schema,
    *,
    file_name: str,
    options: DataFileOptions,
    unique_columns: frozenset[str] = frozenset(),
) -> DataFileWriter:
    """Begins a data file in the format that its name says. ``schema`` comes from ``file_schema``; ``unique_columns``: those where
    hardly a value repeats."""
    match file_format_of(file_name):
        case "orc":
            from tablestore.format.datafiles.orcwriter import OrcFileWriter

            return OrcFileWriter(sink, schema, file_name=file_name, options=options)
        case "avro":
            from tablestore.format.datafiles.avrowriter import AvroFileWriter

            return AvroFileWriter(sink, schema, file_name=file_name, options=options)
    return ParquetFileWriter(sink, schema, file_name=file_name, options=options, unique_columns=unique_columns)


def check_formats(formats: Collection[str], schema: TableSchema, compression: str, *, table: str) -> None:
    """Refuses formats that are not written, and what a format does not hold of a table's columns, before a row is written.

    Raises UnsupportedError that names the option, or the column.
    """
    for file_format in sorted(formats):
        if file_format not in FILE_FORMATS:
            raise UnsupportedError(
                f"table {table} has file.format = {file_format}: tablestore writes {', '.join(FILE_FORMATS)}; set file.format to "
                "one of them (files of several formats lie in one table), or write the table with another engine",
                kind="read-only-table",
            )
        if file_format == "orc":
            from tablestore.format.datafiles.orcwriter import check_orc

            check_orc(schema, table=table)
        if file_format == "avro":
            from tablestore.format.datafiles.avrowriter import check_avro

            check_avro(schema, compression, table=table)
