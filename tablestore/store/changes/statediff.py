"""Computes how the rows of a bucket changed between two sets of its files.

    keys of the touched files, window by window
        -> the rows of these keys, looked up in the files of both states
        -> fold of the rows before  |  fold of the rows after
        -> the differences, in key order

Each state is folded by the table's own merge engine, so this is correct for every engine. Only row groups that hold a key of a
touched file are read. Memory: one window of keys, and all versions of their rows for as many of these keys at a time as the
bounds allow.

The caller decides which files make a state and which are touched (see ``changelogfiles`` and ``changeplan``).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from tablestore.bounds import TOGETHER_BYTES
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.keys import plain_columns
from tablestore.lsm.merge.mergespec import MergeSpec, SortedSource
from tablestore.lsm.merge.rowdiff import RowState, diff_rows
from tablestore.lsm.merge.sortedmerge import merge_section
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.scan.keywindows import WINDOW_KEYS, key_windows
from tablestore.store.scan.lookup import (
    FileMatches,
    Positions,
    SmallFile,
    SmallFiles,
    SortedKeys,
    find_rows,
    in_portions,
    match_sorted,
)
from tablestore.store.scan.lookupcache import LookupCache
from tablestore.store.scan.splitreader import SplitReader
from tablestore.types.arrays import Kinds, retracts
from tablestore.types.schema import KEY_PREFIX

# The number of a row among all that were found. Names with this prefix are reserved.
_PLACE = f"{KEY_PREFIX}PLACE"
# The versions that are found lie in memory twice, once more in one table; and the changes.
_SHARE = 2
# Of so many rows the last ones of each key are picked without a merge.
_FEW_ROWS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketState:
    """A state of a bucket: files that together hold its rows, without the rows that ``vectors`` deletes."""

    files: tuple[DataFileMeta, ...]
    vectors: DeletionVectors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDiff:
    """Finds changes in one bucket of one table, as ``reader`` sees it (its columns and predicate do not matter).

    ``columns``: what comes out besides ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``, which come first. ``deduplicate``: rows of
    equal values are no change, ``ignored`` columns left aside. ``cache``: where lookups keep what they decode,
    ``small_files``: those small files that they read.
    """

    reader: SplitReader
    partition: bytes
    bucket: int
    columns: tuple[str, ...]
    deduplicate: bool = False
    ignored: tuple[str, ...] = ()
    window_keys: int = WINDOW_KEYS
    cache: LookupCache | None = None
    small_files: SmallFiles | None = None

    def changes(self, before: BucketState, after: BucketState, touched: Sequence[DataFileMeta]) -> Iterator[pa.Table]:
        """The changes of the keys in ``touched``, in key order. Keys in no touched file must be the same in both states.

        Raises FormatError for files that are damaged or not sorted, NotFoundError for files that expired meanwhile.
        """
        files = {file.file_name: file for state in (before, after) for file in state.files}
        oldest_first = sorted(files.values(), key=_age)
        small = self._small_file(touched)
        windows: Iterable[SortedKeys] = [small.keys] if small is not None else ()
        if small is None:
            windows = key_windows(self.reader, self.partition, self.bucket, touched, window_keys=self.window_keys)
        for keys, fold in self._folds(oldest_first, windows):
            old, new = fold(before), fold(after)
            changes = diff_rows(old, new, len(keys), deduplicate=self.deduplicate, ignored=self.ignored)
            if changes.num_rows:
                yield self._with_partition(changes)

    def rows_at(self, state: BucketState, windows: Iterable[SortedKeys]) -> Iterator[tuple[SortedKeys, RowState]]:
        """The rows of these keys in one state, in portions of bounded size and in order."""
        for keys, fold in self._folds(sorted(state.files, key=_age), windows):
            yield keys, fold(state)

    def _small_file(self, touched: Sequence[DataFileMeta]) -> SmallFile | None:
        """The one touched file, if it is small: its keys and rows are read together."""
        if self.small_files is None or len(touched) != 1 or touched[0].row_count > self.window_keys:
            return None
        directory = self.reader.directory(self.partition, self.bucket)
        return self.small_files.read(self.reader, directory, touched[0], self._read_columns)

    def _folds(
        self, files: Sequence[DataFileMeta], windows: Iterable[SortedKeys]
    ) -> Iterator[tuple[SortedKeys, Callable[[BucketState], RowState]]]:
        """Keys in portions, and what folds a state of some of these files (oldest first) to its row of each key that has one."""

        def find(keys: SortedKeys) -> Iterator[FileMatches]:
            return find_rows(
                self.reader,
                self.partition,
                self.bucket,
                files,
                keys,
                self._read_columns,
                cache=self.cache,
                small_files=self.small_files,
            )

        for keys, hits in in_portions(find, windows, self.reader.bounds.window_bytes // _SHARE):
            hits_by_file: dict[str, list[FileMatches]] = {}
            for hit in hits:
                hits_by_file.setdefault(hit.file.file_name, []).append(hit)
            yield keys, self._computed(hits_by_file, keys) if self._merge.computes else self._chosen(hits_by_file)

    @property
    def _merge(self) -> MergeFunction:
        merge = self.reader.settings.merge
        assert merge is not None, "only keyed tables have changes to look up"
        return merge

    @property
    def _stored_columns(self) -> tuple[str, ...]:
        """Keys and wanted columns, as they are folded."""
        schema = self.reader.schema
        names = {*self.columns, *schema.trimmed_primary_keys} - set(schema.partition_keys)
        return tuple(name for name in schema.field_names if name in names)

    @property
    def _read_columns(self) -> tuple[str, ...]:
        names = self._merge.required_columns(self._stored_columns)
        return tuple(name for name in self.reader.schema.field_names if name in names)

    def _computed(self, hits_by_file: dict[str, list[FileMatches]], keys: SortedKeys) -> Callable[[BucketState], RowState]:
        """Folds a state to its row of each key that has one."""
        fields, schema = self.reader.schema.key_fields, self._folded_schema

        def fold(state: BucketState) -> RowState:
            folded = [
                pa.RecordBatch.from_arrays(b.columns, schema=schema)
                for b in self._merged(state, hits_by_file, self._stored_columns)
            ]
            rows = pa.Table.from_batches(folded, schema=schema)
            at_key, at_row = match_sorted(
                keys.plain, plain_columns([rows.column(f.name) for f in fields], [f.type.nullable for f in fields])
            )
            assert len(at_row) == rows.num_rows, "a fold gives one row per key, in key order"
            return RowState(rows, at_key)

        return fold

    def _chosen(self, hits_by_file: dict[str, list[FileMatches]]) -> Callable[[BucketState], RowState]:
        """The same where the row of a key is one of those found: they are chosen by number, and lie in one table for all states."""
        schema = self._folded_schema
        rows: list[pa.RecordBatch] = []
        numbers: list[Positions] = []
        places: dict[str, list[Positions]] = {}
        count = 0
        for name, hits in hits_by_file.items():
            for hit in hits:
                assert hit.rows is not None, "rows were asked for"
                rows.append(_as_folded(hit.rows, hit.file, schema))
                numbers.append(hit.keys)
                places.setdefault(name, []).append(np.arange(count, count + len(hit.keys), dtype=np.int64))
                count += len(hit.keys)
        table = pa.Table.from_batches(rows, schema=schema).combine_chunks()
        key = np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.int64)
        newest = _Newest.of(table, key, places) if self.reader.settings.is_plain and count <= _FEW_ROWS else None

        def fold(state: BucketState) -> RowState:
            chosen = None if newest is None else newest.rows_at(state)
            if chosen is None:
                numbered = self._numbered(hits_by_file, places)
                parts = [np.asarray(batch.column(_PLACE).to_numpy()) for batch in self._merged(state, numbered, (_PLACE,))]
                chosen = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
            return RowState(table, key[chosen], chosen)

        return fold

    def _numbered(
        self, hits_by_file: dict[str, list[FileMatches]], places: dict[str, list[Positions]]
    ) -> dict[str, list[FileMatches]]:
        """The rows that were found, each with nothing but its number and what decides which of a key counts."""
        needed_names = {*self.reader.schema.trimmed_primary_keys, *self._merge.required_columns(())}
        deciding = [SEQUENCE_COLUMN, KIND_COLUMN, *(name for name in self.reader.schema.field_names if name in needed_names)]
        numbered: dict[str, list[FileMatches]] = {}
        for name, hits in hits_by_file.items():
            for hit, hit_places in zip(hits, places[name], strict=True):
                assert hit.rows is not None, "rows were asked for"
                columns = [*(hit.rows.column(column) for column in deciding), pa.array(hit_places)]
                narrow = pa.RecordBatch.from_arrays(columns, [*deciding, _PLACE])
                numbered.setdefault(name, []).append(replace(hit, rows=narrow))
        return numbered

    def _merged(
        self, state: BucketState, hits_by_file: dict[str, list[FileMatches]], columns: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        """The state's row of each key that has one, in key order."""
        spec = MergeSpec(
            key_fields=self.reader.schema.key_fields,
            output_columns=columns,
            function=self._merge,
            ordered=True,
            emit_system_columns=True,
        )
        return merge_section(list(self._runs(state, hits_by_file)), spec)

    def _runs(self, state: BucketState, hits_by_file: dict[str, list[FileMatches]]) -> Iterator[list[SortedSource]]:
        """The rows that were found, oldest first: a run for each level, and one for each file of level 0."""
        for _, files in groupby(sorted(state.files, key=_age), key=lambda file: (file.level, file.level or file.file_name)):
            run: list[tuple[int, SortedSource]] = []
            for file in files:
                hits = hits_by_file.get(file.file_name) or []
                if batches := [rows for hit in hits if (rows := _alive(hit, state.vectors)) is not None]:
                    run.append((int(hits[0].keys[0]), _source(file, batches)))
            if run:
                yield [source for _, source in sorted(run, key=lambda item: item[0])]

    @property
    def _folded_schema(self) -> pa.Schema:
        arrow = self.reader.schema.arrow_schema
        system = [pa.field(SEQUENCE_COLUMN, pa.int64(), nullable=False), pa.field(KIND_COLUMN, pa.int8(), nullable=False)]
        return pa.schema([*system, *(arrow.field(name) for name in self._stored_columns)])

    def _with_partition(self, changes: pa.Table) -> pa.Table:
        batches = [self.reader.with_partition(batch, self.partition) for batch in changes.combine_chunks().to_batches()]
        return pa.Table.from_batches(batches).select([SEQUENCE_COLUMN, KIND_COLUMN, *self.columns])


@dataclass(frozen=True, slots=True)
class _Newest:
    """Few rows of a table in which the last row of a key counts: their keys, sequence numbers and kinds, and where those of each
    file lie."""

    keys: Positions
    sequence: Positions
    kinds: Kinds
    places: dict[str, list[Positions]]

    @classmethod
    def of(cls, rows: pa.Table, keys: Positions, places: dict[str, list[Positions]]) -> "_Newest":
        sequence, kinds = (np.asarray(rows.column(name).to_numpy()) for name in (SEQUENCE_COLUMN, KIND_COLUMN))
        return cls(keys, sequence, kinds, places)

    def rows_at(self, state: BucketState) -> Positions | None:
        """The places of the rows that count in a state, in the order of their keys; None where a merge has to find out."""
        parts = [part for file in state.files for part in self.places.get(file.file_name, ())]
        if state.vectors is not None or not parts:
            return None
        places = np.concatenate(parts)
        places = places[np.lexsort((self.sequence[places], self.keys[places]))]
        again = self.keys[places[1:]] == self.keys[places[:-1]]
        if (again & (self.sequence[places[1:]] == self.sequence[places[:-1]])).any():
            return None
        last: Positions = places[np.append(~again, True)]
        counting: Positions = last[~retracts(self.kinds[last])]
        return counting


def _age(file: DataFileMeta) -> tuple[int, int, int, str]:
    """Older files first: a higher level never holds a newer version."""
    return -file.level, file.max_sequence_number, file.min_sequence_number, file.file_name


def _as_folded(rows: pa.RecordBatch, file: DataFileMeta, schema: pa.Schema) -> pa.RecordBatch:
    """The rows as a merge takes them: where the bounds of a file are one number, that counts."""
    columns = [rows.column(name) for name in schema.names]
    if file.min_sequence_number == file.max_sequence_number:
        columns[0] = pa.array(np.full(rows.num_rows, file.min_sequence_number, dtype=np.int64))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _alive(hit: FileMatches, vectors: DeletionVectors | None) -> pa.RecordBatch | None:
    """The rows that are not deleted; None for none."""
    if vectors is None or hit.file.file_name not in vectors:
        return hit.rows
    alive = vectors.alive(hit.file, hit.positions)
    return hit.rows.filter(pa.array(alive)) if hit.rows is not None and alive.any() else None


def _source(file: DataFileMeta, batches: list[pa.RecordBatch]) -> SortedSource:
    if len(batches) > 1 and sum(batch.nbytes for batch in batches) <= TOGETHER_BYTES:
        # A merge goes from the end of one batch to the next: few long ones are faster.
        batches = [pa.concat_batches(batches)]
    return SortedSource(
        min_sequence=file.min_sequence_number,
        max_sequence=file.max_sequence_number,
        read=lambda: iter(batches),
        ours=file.footer_digest is not None,
    )
