"""Checks that the files are sound that DuckDB reads itself.

DuckDB does not look at the checksums of pages: a flipped bit can come out as another number. So each column of each file is checked
once by an engine, before DuckDB reads it for the first time: the file's size, name and footer, the headers of the pages and their
checksums. Data files never change. It costs a read of the compressed bytes of all rows, also for a query with LIMIT;
``SET 'duckdb.verify-checksums' = 'false'`` leaves it out.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tablestore_duckdb.scans import NativeFile, PlannedScan

# The most columns of files that are remembered as sound; then all are forgotten.
_MOST_KNOWN = 100_000


class ScanChecks:
    """The files and columns that an engine has checked. Safe from several threads."""

    def __init__(self) -> None:
        self._sound: set[tuple[str, str | None]] = set()
        self._lock = threading.Lock()

    def check(self, scans: Sequence[PlannedScan], proceed: Callable[[], None]) -> None:
        """Checks what DuckDB will read in these scans; ``proceed`` is called between files and may raise. Raises FormatError."""
        files = [(scan, file) for scan in scans for file in scan.native]
        todo = [(scan, file, columns) for scan, file in files if (columns := self._missing(scan, file)) is not None]
        if not todo:
            return
        with ThreadPoolExecutor(min(len(todo), os.cpu_count() or 1)) as pool:
            try:
                for _ in pool.map(lambda one: self._check(*one), todo):
                    proceed()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _missing(self, scan: PlannedScan, file: NativeFile) -> tuple[str, ...] | None:
        """The columns of a file that are yet to be checked; none: only the footer is; None if all is known."""
        with self._lock:
            if (file.path, None) not in self._sound:
                return scan.checked_columns
            return tuple(name for name in scan.checked_columns if (file.path, name) not in self._sound) or None

    def _check(self, scan: PlannedScan, file: NativeFile, columns: tuple[str, ...]) -> None:
        reader = scan.scan.reader.open_file(file.path, file.meta)
        try:
            reader.check_pages(columns, content=True)
        finally:
            reader.close()
        with self._lock:
            if len(self._sound) > _MOST_KNOWN:
                self._sound.clear()
            self._sound.update((file.path, name) for name in (None, *columns))
