"""Gives readers of formats whose files are read from beginning to end what they share: one part, of unknown size."""

import hashlib
from collections.abc import Collection, Sequence

import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.format.parquet.parquetread import RowGroup


class UnsplitFileReader:
    """An open data file that is one part. ``schema`` and ``row_count`` are set by the reader of the format."""

    schema: pa.Schema
    row_count: int
    group_count = 1

    def __init__(self, file_name: str, batch_bytes: int) -> None:
        self._file_name, self._batch_bytes = file_name, batch_bytes

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """All rows, without bounds."""
        return (RowGroup(index=0, row_count=self.row_count, bounds={}),) if self.row_count else ()

    def bounded_groups(self, columns: Collection[str]) -> tuple[RowGroup, ...]:
        """The same: the formats have no bounds that Arrow reads."""
        return self.row_groups

    def decoded_bytes(self, group: int, columns: Sequence[str], enough: int) -> int | None:
        """None: it is not known before it is read."""
        return None

    def check_pages(self, columns: Collection[str] | None = None, *, content: bool = False) -> int:
        """Nothing beside reading checks such a file: none."""
        return 0

    def _chosen(self, columns: Sequence[str] | None, row_groups: Sequence[int] | None) -> list[str]:
        """The columns to read, none where no rows are asked for. Raises FormatError for one that the file does not have."""
        names = self.schema.names if columns is None else list(columns)
        if missing := [name for name in names if name not in self.schema.names]:
            raise FormatError(
                f"{self._file_name}: expected the columns {', '.join(missing)}, found only {', '.join(self.schema.names)}"
            )
        return [] if row_groups is not None and not row_groups else names

    def _check_digest(self, data: bytes, digest: bytes) -> None:
        if hashlib.sha256(data).digest() != digest:
            raise FormatError(
                f"{self._file_name}: its bytes are not those that the manifest names; restore the file from a copy", kind="checksum"
            )

    def _check_size(self, file_size: int, size: int | None) -> None:
        if size is not None and file_size != size:
            raise FormatError(f"{self._file_name}: expected {size} bytes, found {file_size}; the file was cut or replaced")
