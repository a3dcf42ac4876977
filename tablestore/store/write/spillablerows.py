"""Holds the rows of one writer until all of them are there, so that they are laid out by ranges of their values.

    flushes -> rows by partition, in memory, then on local disk -> sorted (clusteredrows) -> one file a range

Memory: ``memory_bytes`` of rows, and what sorting takes. Disk: the rows once as Arrow, in the directory of temporary files.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tablestore.errors import StorageError
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.store.write.clusteredrows import clustered_rows

Partition = tuple[object, ...]


class SpillableRows:
    """Rows by partition. :meth:`close` removes what lies on disk."""

    def __init__(self, order: ClusterOrder, memory_bytes: int) -> None:
        self._order, self._memory_bytes = order, memory_bytes
        self._held: dict[Partition, list[pa.Table]] = defaultdict(list)
        self._bytes = 0
        self._counts: dict[Partition, int] = defaultdict(int)
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        # Of each partition the files that have rows of it, and which of their batches these are.
        self._spilled: dict[Partition, list[tuple[Path, range]]] = defaultdict(list)
        self._files = 0

    def add(self, partition: Partition, rows: pa.Table) -> None:
        """Take rows of one partition. Raises StorageError if the disk for temporary files is full."""
        if self._held and self._bytes + rows.nbytes > self._memory_bytes:
            self._spill()
        self._held[partition].append(rows)
        self._counts[partition] += rows.num_rows
        self._bytes += rows.nbytes

    def partitions(self) -> Iterator[tuple[Partition, int, Iterator[pa.RecordBatch]]]:
        """Each partition with the number of its rows, and these in order."""
        for partition, count in self._counts.items():
            yield partition, count, self._ordered(partition, count)

    def close(self) -> None:
        """Forget the rows."""
        self._held.clear()
        self._counts.clear()
        self._spilled.clear()
        self._bytes = 0
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def _ordered(self, partition: Partition, count: int) -> Iterator[pa.RecordBatch]:
        def columns() -> Iterator[pa.RecordBatch]:
            return (batch.select(list(self._order.columns)) for batch in self._rows(partition))

        return clustered_rows(lambda: self._rows(partition), columns, self._order, row_count=count)

    def _rows(self, partition: Partition) -> Iterator[pa.RecordBatch]:
        for path, batches in self._spilled[partition]:
            with pa.memory_map(str(path)) as source:
                reader = pa.ipc.open_file(source)
                for number in batches:
                    yield reader.get_batch(number)
        for rows in self._held[partition]:
            yield from rows.to_batches()

    def _spill(self) -> None:
        try:
            if self._scratch is None:
                self._scratch = tempfile.TemporaryDirectory(prefix="tablestore-ranges-")
            path = Path(self._scratch.name) / str(self._files)
            schema = next(iter(self._held.values()))[0].schema
            written = 0
            with pa.ipc.new_file(str(path), schema) as writer:
                for partition, tables in self._held.items():
                    first = written
                    for batch in (batch for rows in tables for batch in rows.to_batches()):
                        writer.write_batch(batch)
                        written += 1
                    self._spilled[partition].append((path, range(first, written)))
        except OSError as error:
            raise StorageError(
                f"the temporary directory {tempfile.gettempdir()} could not hold the rows that a write orders: {error}; free space "
                "there, or set TMPDIR to a larger disk"
            ) from error
        self._files += 1
        self._held.clear()
        self._bytes = 0
