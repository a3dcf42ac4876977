"""Reads ORC data files through Arrow's reader.

ORC has checksums nowhere: damage shows where what was read cannot be decoded, or has another number of rows. Of files that we wrote
the manifest has a digest of their end, where ORC's footer lies. Arrow holds ORC's
timestamps as nanoseconds, of the years 1677 to 2262; it says so where a file has others, and so does this reader.

Memory: one stripe of the columns that are read, which writers bound by its encoded size (64 MiB by default).
"""

from collections.abc import Collection, Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from tablestore.bounds import BATCH_BYTES, BATCH_ROWS
from tablestore.errors import FormatError, StorageError, TablestoreError, UnsupportedError
from tablestore.format.datafiles.unsplitfile import UnsplitFileReader
from tablestore.types.rebatch import slices_of

# Stored: the digest in the manifest is that of so many bytes at the end, or of the whole of a smaller file.
TAIL_DIGEST_BYTES = 64 << 10
# With these, what went wrong is the file's content.
_READ_ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, IndexError, KeyError)


class OrcFileReader(UnsplitFileReader):
    """An open ORC file. Its parts are one: Arrow does not say how many rows a stripe has, nor its bounds.

    ``padded``: columns of texts that Java's writers fill up with blanks, and its readers cut off again.
    """

    def __init__(
        self,
        source: BinaryIO | pa.NativeFile,
        *,
        file_name: str,
        footer_digest: bytes | None = None,
        size: int | None = None,
        batch_bytes: int = BATCH_BYTES,
        padded: Collection[str] = (),
    ) -> None:
        super().__init__(file_name, batch_bytes)
        self._padded = padded
        self._source = source if isinstance(source, pa.NativeFile) else pa.PythonFile(source, mode="r")
        try:
            file_size = self._source.size()
            self._check_size(file_size, size)
            if footer_digest is not None:
                self._source.seek(max(file_size - TAIL_DIGEST_BYTES, 0))
                self._check_digest(self._source.read(TAIL_DIGEST_BYTES), footer_digest)
                self._source.seek(0)
            self._file = orc.ORCFile(self._source)
            self.schema, self.row_count = self._file.schema, self._file.nrows
        except BaseException as error:
            self._source.close()
            if isinstance(error, _READ_ERRORS) and not isinstance(error, TablestoreError):
                raise self._unreadable(error) from error
            raise

    def read(
        self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None, *, side_by_side: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Reads as :meth:`DataFileReader.read`."""
        names = self._chosen(columns, row_groups)
        if not names:
            return
        rows = 0
        for stripe in range(self._file.nstripes):
            batch = self._stripe(stripe, names)
            rows += batch.num_rows
            yield from slices_of(batch, max_rows=BATCH_ROWS, max_bytes=self._batch_bytes)
        if rows != self.row_count:
            raise FormatError(f"{self._file_name}: expected {self.row_count} rows, found {rows}; the file is damaged")

    def _stripe(self, stripe: int, names: list[str]) -> pa.RecordBatch:
        try:
            # Arrow takes a dot in a name for a path into a nested column, which may be there too: then all columns are read.
            has_dot = any("." in name for name in names)
            batch = self._file.read_stripe(stripe, columns=None if has_dot else names).select(names)
            for name in self._padded:
                if (place := batch.schema.get_field_index(name)) >= 0:
                    batch = batch.set_column(place, batch.schema.field(place), pc.utf8_rtrim(batch.column(place), " "))
            return batch
        except _READ_ERRORS as error:
            if isinstance(error, TablestoreError):
                raise
            if "out of range for nanosecond" in str(error):
                raise UnsupportedError(
                    f"{self._file_name} holds timestamps before the year 1678 or after 2262 ({error}), which Arrow's reader of ORC "
                    "does not hold; leave the column out, or compact the table with the engine that wrote it and file.format = "
                    "parquet",
                    kind="file-format",
                ) from error
            raise self._unreadable(error) from error

    def close(self) -> None:
        """Closes the source."""
        self._source.close()

    def _unreadable(self, error: BaseException) -> TablestoreError:
        if isinstance(error, OSError) and error.errno is not None:
            return StorageError(f"{self._file_name}: the store failed while the file was read: {error}")
        return FormatError(f"{self._file_name}: expected a readable ORC file, found: {error}; restore it from a copy")
