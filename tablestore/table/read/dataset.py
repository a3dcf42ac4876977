"""Presents a scan as a dataset of pyarrow, which reads only the columns and rows that others choose of it.

    dataset.scanner(columns, filter)  ->  the columns that these name, and the rows that a weaker predicate keeps
                                      ->  Arrow's own scanner over the stream, which tests the whole filter and projects

So DuckDB, polars and pandas get exactly what Arrow would give them, and what of a filter no predicate can say (see
:mod:`~tablestore.types.filter.weakening`) costs reading, not rightness.

Memory: that of the scan, and the pieces of at most ``PIECE_BYTES`` that Arrow's scanner holds: about a hundred.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.options import MIB
from tablestore.table.read.narrowing import Narrowable
from tablestore.types.filter.weakening import PushedDown, push_expression
from tablestore.types.rebatch import slices_of

PIECE_ROWS = 16_384
PIECE_BYTES = MIB
# The file name that an engine finds which looks past `scanner`: Arrow itself cannot merge rows.
_NO_FILE = "a dataset of a tablestore scan is read by its methods scanner, to_batches and to_table"
# Columns that Arrow's scanner makes itself.
_MADE = ("__fragment_index", "__batch_index", "__last_in_fragment", "__filename")


class ScanDataset(ds.UnionDataset):  # type: ignore[misc]
    """Rows of one snapshot as a ``pyarrow.dataset.Dataset``. Made by ``scan.to_dataset()``.

    It can be read again and again, and pickles as its scan does.
    """

    def __init__(self, scan: Narrowable, filter: pc.Expression | None = None) -> None:
        fragment = ds.IpcFileFormat().make_fragment(_NO_FILE, LocalFileSystem())
        schema = scan.schema
        super().__init__(schema, [ds.FileSystemDataset([fragment], schema, ds.IpcFileFormat())])
        self._scan, self._filter = scan, filter

    def __reduce__(self) -> tuple[object, ...]:
        return ScanDataset, (self._scan, self._filter)

    def __repr__(self) -> str:
        return f"ScanDataset({self._scan!r}{'' if self._filter is None else f', filter={self._filter}'})"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._scan.schema

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = PIECE_ROWS,
        memory_pool: pa.MemoryPool | None = None,
        **_: object,
    ) -> ds.Scanner:
        """A scanner of some columns (or of expressions by name) and rows; it is read once.

        ``batch_size``: the most rows of a batch, up to 16,384. How far Arrow reads ahead and in how many threads is not asked, so
        that memory stays bounded. Raises InvalidInputError for columns that are not there.
        """
        whole = _both(self._filter, filter)
        pushed = PushedDown(None, frozenset()) if whole is None else self._push(whole)
        scan = self._scan.narrowed(self._needed(self._named(columns), pushed.columns), pushed.predicate)
        rows = max(min(batch_size, PIECE_ROWS), 1)
        try:
            return ds.Scanner.from_batches(
                pa.RecordBatchReader.from_batches(scan.schema, _cut(scan.to_batches(), rows)),
                columns=self.schema.names if columns is None else columns if isinstance(columns, Mapping) else list(columns),
                filter=whole,
                use_threads=False,
                memory_pool=memory_pool,
            )
        except (pa.ArrowException, TypeError) as error:
            raise InvalidInputError(
                f"Arrow cannot evaluate the filter {whole} and the columns {columns} on rows of {scan.schema.names}: {error}",
                kind="expression",
            ) from error

    def count_rows(self, filter: pc.Expression | None = None, **_: object) -> int:
        """The number of rows, reading no more columns than that needs."""
        if filter is None and self._filter is None:
            return self._scan.count()
        count: int = self.scanner(columns=[], filter=filter).count_rows()
        return count

    def filter(self, expression: pc.Expression) -> "ScanDataset":
        """The same rows, of them those for which the expression is true."""
        return ScanDataset(self._scan, _both(self._filter, expression))

    def sort_by(self, sorting: Any, **options: Any) -> ds.InMemoryDataset:
        """All rows in memory, sorted."""
        return ds.InMemoryDataset(self.to_table()).sort_by(sorting, **options)

    def join(self, right_dataset: ds.Dataset, *arguments: Any, **options: Any) -> ds.InMemoryDataset:
        """All rows in memory, joined with those of another dataset."""
        return ds.InMemoryDataset(self.to_table()).join(ds.InMemoryDataset(right_dataset.to_table()), *arguments, **options)

    def join_asof(self, right_dataset: ds.Dataset, *arguments: Any, **options: Any) -> ds.InMemoryDataset:
        """All rows in memory, joined with the nearest of another dataset."""
        return ds.InMemoryDataset(self.to_table()).join_asof(ds.InMemoryDataset(right_dataset.to_table()), *arguments, **options)

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Refused: the columns are those of the table."""
        raise UnsupportedError("the schema of a scan is that of its table; name columns in table.scan(columns=…)")

    def get_fragments(self, filter: pc.Expression | None = None) -> NoReturn:
        """Refused: rows of several files may have to be merged."""
        raise UnsupportedError("a scan has no fragments, since rows of several files may have to be merged; use scan.splits()")

    def _push(self, expression: pc.Expression) -> PushedDown:
        return push_expression(expression, self._scan.fields)

    def _named(self, columns: Sequence[str] | Mapping[str, pc.Expression] | None) -> frozenset[str] | None:
        """The columns that a projection looks at; None for all."""
        if columns is None:
            return None
        if not isinstance(columns, Mapping):
            return frozenset(columns)
        named = [self._push(expression).columns for expression in columns.values()]
        return None if None in named else frozenset().union(*(names for names in named if names is not None))

    def _needed(self, *named: frozenset[str] | None) -> tuple[str, ...]:
        """The columns to read: all that are named, where None stands for all. Raises InvalidInputError."""
        column_names = self.schema.names
        for name in frozenset().union(*(names for names in named if names is not None)):
            if name not in column_names and name not in _MADE:
                raise InvalidInputError(
                    f"no column {name!r} in this dataset{did_you_mean(str(name), column_names)}; it has {', '.join(column_names)}",
                    kind="unknown-column",
                )
        return tuple(name for name in column_names if any(names is None or name in names for names in named))


def _both(first: pc.Expression | None, second: pc.Expression | None) -> pc.Expression | None:
    return second if first is None else first if second is None else first & second


def _cut(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from slices_of(batch, max_rows=rows, max_bytes=PIECE_BYTES)
