"""Opens data files for reading, by the format that their names say.

data-….parquet    :mod:`tablestore.format.parquet.parquetread`
data-….orc        :mod:`tablestore.format.datafiles.orcfile`
data-….avro       :mod:`tablestore.format.datafiles.avrofile`
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import BinaryIO, Protocol

import pyarrow as pa

from tablestore.bounds import BATCH_BYTES
from tablestore.errors import UnsupportedError
from tablestore.format.parquet.parquetread import RowGroup, open_parquet_file
from tablestore.format.paths import file_format_of
from tablestore.options import FILE_FORMATS
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore.types.schema import KEY_PREFIX


class DataFileReader(Protocol):
    """An open data file. ``schema``: its columns, in their own types; ``row_count``: as the file itself says; ``group_count``: the
    number of parts that can be read alone."""

    schema: pa.Schema
    row_count: int
    group_count: int

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The parts that can be read alone; one for a format that does not say what its parts hold."""

    def bounded_groups(self, columns: Collection[str]) -> tuple[RowGroup, ...]:
        """These parts, with the bounds of some columns as far as the format has them."""

    def read(
        self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None, *, side_by_side: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Batches of bounded rows and bytes, with the columns in the order asked for and the file's own Arrow types.

        ``side_by_side``: columns may be decoded on several cores. Raises FormatError for what is damaged, UnsupportedError for
        values that Arrow's reader of the format cannot hold.
        """

    def decoded_bytes(self, group: int, columns: Sequence[str], enough: int) -> int | None:
        """The decoded size of these columns of a part, at most; None if unknown. ``enough``: more need not be exact."""

    def check_pages(self, columns: Collection[str] | None = None, *, content: bool = False) -> int:
        """Checks what reading alone does not; the number of pages that were looked at. Raises FormatError."""

    def close(self) -> None:
        """Closes the source."""


def unread_format(file_name: str) -> UnsupportedError:
    """The error for a data file in a format that is not read."""
    return UnsupportedError(
        f"data file {file_name} has format {file_format_of(file_name)!r}; tablestore reads {', '.join(FILE_FORMATS)}: compact the "
        "table with the engine that wrote it and file.format = parquet",
        kind="file-format",
    )


def open_data_file(
    source: BinaryIO | pa.NativeFile,
    *,
    file_name: str,
    fields: Callable[[], Sequence[Field]],
    footer_digest: bytes | None = None,
    size: int | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> DataFileReader:
    """Opens a data file, and checks what can be checked before its rows are read. ``source`` is closed with the reader, or at once
    if this fails.

    ``fields``: the columns of the table when the file was written, for formats that do not say enough of types. ``size``: the
    bytes that the manifest says. Raises FormatError, and UnsupportedError for another format.
    """
    match file_format_of(file_name):
        case "parquet":
            return open_parquet_file(source, file_name=file_name, footer_digest=footer_digest, size=size, batch_bytes=batch_bytes)
        case "orc":
            from tablestore.format.datafiles.orcfile import OrcFileReader

            return OrcFileReader(
                source,
                file_name=file_name,
                footer_digest=footer_digest,
                size=size,
                batch_bytes=batch_bytes,
                padded=() if footer_digest is not None else _of_fixed_length(fields()),
            )
        case "avro":
            from tablestore.format.datafiles.avrofile import AvroFileReader

            return AvroFileReader(
                source, fields(), file_name=file_name, footer_digest=footer_digest, size=size, batch_bytes=batch_bytes
            )
    source.close()
    raise unread_format(file_name)


def _of_fixed_length(fields: Sequence[Field]) -> list[str]:
    """The columns of type CHAR, and their names as keys."""
    names = [field.name for field in fields if isinstance(field.type, AtomicType) and field.type.root is TypeRoot.CHAR]
    return [*names, *(KEY_PREFIX + name for name in names)]
