"""Memory bounds: the bytes of rows that each part of the engine holds at most.

    reading one file          a batch: BATCH_BYTES, what one row takes if that is more
    merging the runs          WINDOW_BYTES of all runs together, so each of k runs reads batches of WINDOW_BYTES / k;
                              a sorted copy of the window, and BATCH_BYTES on their way out
    reading several splits    the bounds above, shared by the threads that read side by side; BATCHES_AHEAD batches of each
    writing one file          a row group: ROW_GROUP_BYTES, before it is encoded; the option ``file.block-size`` for less
    buffering rows to write   the option ``write-buffer-size``, and PASS_BYTES of sorted copy while it is flushed
    clustering rows           ``MEMORY_BYTES`` of :mod:`tablestore.store.write.clusteredrows`, and their sorted copy
    looking rows up           WINDOW_BYTES of the rows that were found, and of what is made of them
    JSON text for a log       TEXT_BYTES, a few times over while it is put together

Bytes are those of Arrow in memory: a file of a few kilobytes may hold rows of gigabytes, so the size of a file says nothing. All
rows that are put together stay far below the 2 GiB that one Arrow column of text addresses. A single row may be larger than any
bound; it then goes alone.
"""

from dataclasses import dataclass, replace

from tablestore.options import MIB

BATCH_BYTES = 64 * MIB
BATCH_ROWS = 131_072
WINDOW_BYTES = 128 * MIB
ROW_GROUP_BYTES = 64 * MIB
ROW_GROUP_ROWS = 131_072
# Smaller ones would cost more than they hold.
LEAST_ROW_GROUP_BYTES = 64 * 1024
PASS_BYTES = 1024 * MIB
TEXT_BYTES = 16 * MIB
# Files that one merge holds open. More runs take turns: a file is opened again where it was left.
OPEN_FILES = 32
BATCHES_AHEAD = 2
# More than this is never put together in one Arrow column: its offsets have 32 bits.
TOGETHER_BYTES = 1024 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBounds:
    """Memory bounds of a reader of one table: a batch of a file, all batches of the files that are merged, and open files."""

    batch_rows: int = BATCH_ROWS
    batch_bytes: int = BATCH_BYTES
    window_bytes: int = WINDOW_BYTES
    open_files: int = OPEN_FILES

    def of_runs(self, count: int) -> "ReadBounds":
        """The bounds of one of so many runs that are merged."""
        return replace(self, batch_bytes=max(min(self.batch_bytes, self.window_bytes // max(count, 1)), 1))

    def of_threads(self, count: int) -> "ReadBounds":
        """The bounds of one of so many threads that read side by side."""
        return replace(
            self,
            batch_bytes=max(self.batch_bytes // count, 1),
            window_bytes=max(self.window_bytes // count, 1),
            open_files=max(self.open_files // count, 1),
        )


DEFAULT_BOUNDS = ReadBounds()
