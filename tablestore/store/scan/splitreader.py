"""Reads the rows of a split.

    split -> section of one run      its files one after another, without retractions and deleted rows
             section of several      its runs merged, one row a key
          -> columns of older schemas by field id, partition columns from the manifest -> filter -> columns -> batches

Memory: one batch of the columns that are needed, or, while a section is merged, a window that its runs share (see ``bounds``). A
merge of more runs than files may be open opens them in turns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.bounds import DEFAULT_BOUNDS, ReadBounds
from tablestore.errors import NotFoundError
from tablestore.format.binaryrow import decode_row
from tablestore.format.datafiles.datafilereader import DataFileReader, open_data_file
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.format.parquet.projection import Projection
from tablestore.format.paths import index_path
from tablestore.io.filestore import FileStore
from tablestore.lsm.run import Section
from tablestore.store.context import TableContext
from tablestore.store.datapaths import DataPaths
from tablestore.store.deletionvectors import live_rows
from tablestore.store.rowview import RowView
from tablestore.store.scan.splits import DeletionFile, Split
from tablestore.store.settings import TableSettings
from tablestore.types.arrowtypes import scalar_of, timestamp_unit, to_arrow_schema
from tablestore.types.datatypes import TIMESTAMP_ROOTS, AtomicType, Field, with_nullable
from tablestore.types.filter.predicate import Predicate, evaluate
from tablestore.types.filter.predicate import columns as columns_of
from tablestore.types.filter.pruning import ColumnRange, may_match
from tablestore.types.rowposition import POSITION_FIELDS, with_positions
from tablestore.types.schema import TableSchema

# The merging code is imported where there is something to merge.
if TYPE_CHECKING:
    from tablestore.lsm.merge.mergespec import SortedSource


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReader:
    """Reads splits of one table, as rows of ``schema``.

    ``columns``: what comes out, in this order. ``predicate``: only rows for which it is TRUE come out. ``positions``: the file and
    position of each row come out too (:mod:`~tablestore.types.rowposition`); only of append tables, which merge nothing.
    ``view``: what the caller sees of the rows, of which ``shown_predicate`` is then also TRUE.
    ``schema_of``: the schema of an id, for files of older schemas. ``bounds``: how much memory is used, and how many files are
    open.
    """

    files: FileStore
    schema: TableSchema
    settings: TableSettings
    columns: tuple[str, ...]
    predicate: Predicate | None = None
    positions: bool = False
    schema_of: Callable[[int], TableSchema]
    bounds: ReadBounds = DEFAULT_BOUNDS
    view: RowView | None = None
    shown_predicate: Predicate | None = None
    _vectors: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(
        cls, context: TableContext, columns: tuple[str, ...], predicate: Predicate | None, *, positions: bool = False
    ) -> "SplitReader":
        """A reader of an open table's splits, for its caller's eyes: under the rules of the table's catalog service.

        Raises UnsupportedError for what the rules do not allow, or cannot be carried out.
        """
        reader = cls.whole(context, columns, predicate, positions=positions)
        view = context.view
        if view is None:
            return reader
        if positions:
            context.check_sees_all("a change of rows where they are stored")
        view.check({*columns, *columns_of(predicate)})
        return replace(
            reader, predicate=view.stored_condition(predicate), view=view, shown_predicate=view.shown_condition(predicate)
        )

    @classmethod
    def whole(
        cls, context: TableContext, columns: tuple[str, ...], predicate: Predicate | None, *, positions: bool = False
    ) -> "SplitReader":
        """A reader that no rule restricts, for the table's own upkeep: nobody is shown its rows."""
        return cls(
            files=context.files,
            schema=context.schema,
            settings=context.settings,
            columns=columns,
            predicate=predicate,
            positions=positions,
            schema_of=context.schemas.read,
            bounds=context.settings.bounds,
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the batches."""
        fields = list(map(self.schema.arrow_schema.field, self.columns))
        fields = fields if self.view is None else self.view.arrow_fields(fields)
        return pa.schema([*fields, *to_arrow_schema(POSITION_FIELDS)] if self.positions else fields)

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The split's rows; those of a keyed table in key order within each section.

        Raises FormatError for a damaged file, NotFoundError for one that has expired.
        """
        return self._finished(self._rows(split), split.partition)

    def rows_without(self, entry: ManifestEntry, positions: npt.NDArray[np.integer]) -> Iterator[pa.RecordBatch]:
        """The rows of one file of an append table, without those at ``positions``; else as :meth:`read`. Deletion vectors do not
        count."""
        directory = self.directory(entry.partition, entry.bucket)
        rows = live_rows(self.file_rows(directory, entry.file, self._needed(), ()), entry.file, positions)
        return self._finished(rows, entry.partition)

    def _finished(self, rows: Iterator[pa.RecordBatch], partition: bytes) -> Iterator[pa.RecordBatch]:
        target = self.arrow_schema
        for batch in rows:
            batch = self.with_partition(batch, partition)
            if self.view is not None and self.view.condition is not None:
                # By itself: what the caller's condition fails on may be in a hidden row.
                batch = batch.filter(evaluate(self.view.condition, batch))
            if self.predicate is not None:
                mask = evaluate(self.predicate, batch)
                if mask.true_count < batch.num_rows:
                    batch = batch.filter(mask)
            if self.view is not None and batch.num_rows:
                batch = self._shown(batch, self.view)
            if batch.num_rows:
                yield _as(batch.select(target.names), target)

    def _shown(self, batch: pa.RecordBatch, view: RowView) -> pa.RecordBatch:
        names = (*self.columns, *sorted(columns_of(self.shown_predicate).difference(self.columns)))
        shown = view.shown(batch, names, {name: self.schema.field(name) for name in names})
        return shown if self.shown_predicate is None else shown.filter(evaluate(self.shown_predicate, shown))

    def of_runs(self, count: int) -> "SplitReader":
        """A reader for a merge of ``count`` runs: they share the window, and open their files in turns if they are too many."""
        from tablestore.io.handlepool import HandlePool

        most = self.bounds.open_files
        files = self.files if count <= most else HandlePool(self.files, most)
        return replace(self, files=files, bounds=self.bounds.of_runs(count))

    def directory(self, partition: bytes, bucket: int) -> str:
        """The directory of the data files of a bucket, relative to the table."""
        values = decode_row(partition, [f.type for f in self.schema.partition_fields])
        return DataPaths(self.schema, self.settings).bucket(values, bucket)

    def matching(self, split: Split, file: DataFileMeta) -> npt.NDArray[np.int64]:
        """The positions, ascending, of the rows of one file for which the predicate is TRUE, deleted rows among them."""
        assert self.predicate is not None, "only a predicate can match"
        start, positions = 0, [np.empty(0, np.int64)]
        for batch in self.file_rows(self.directory(split.partition, split.bucket), file, self._needed(), ()):
            mask = evaluate(self.predicate, self.with_partition(batch, split.partition))
            positions.append(start + np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False)))
            start += batch.num_rows
        return np.concatenate(positions)

    def _needed(self) -> tuple[str, ...]:
        names = set(self.columns) | columns_of(self.shown_predicate)
        names = (names if self.view is None else set(self.view.inputs(names))) | columns_of(self.predicate)
        names -= set(self.schema.partition_keys)
        return tuple(filter(names.__contains__, self.schema.field_names))

    def _rows(self, split: Split) -> Iterator[pa.RecordBatch]:
        needed = self._needed()
        directory = self.directory(split.partition, split.bucket)
        deletions = dict(split.deletions)
        for section in split.sections:
            if not self.schema.is_keyed:
                for file in section.files:
                    yield from self._live_rows(directory, file, needed, (), deletions)
            elif section.needs_merge:
                yield from self._merged(directory, section, needed)
            else:
                for file in section.files:
                    if not file.may_retract:
                        yield from self._live_rows(directory, file, needed, (), deletions)
                        continue
                    for batch in self._live_rows(directory, file, needed, (KIND_COLUMN,), deletions):
                        yield _without_retractions(batch).select(list(needed))

    def _merged(self, directory: str, section: Section, needed: Sequence[str]) -> Iterator[pa.RecordBatch]:
        from tablestore.lsm.merge.mergespec import MergeSpec
        from tablestore.lsm.merge.sortedmerge import merge_section

        merge = self.settings.merge
        assert merge is not None, "only keyed tables have sections to merge"
        read = merge.required_columns(needed) | set(self.schema.trimmed_primary_keys)
        names = [name for name in self.schema.field_names if name in read]
        spec = MergeSpec(
            key_fields=self.schema.key_fields,
            output_columns=tuple(needed),
            function=merge,
            batch_rows=self.bounds.batch_rows,
            batch_bytes=self.bounds.batch_bytes,
        )
        reader = self.of_runs(len(section.runs))
        numbered = merge.computes or bool(merge.sequence_fields) or not _runs_follow_one_another(section)
        runs = [[reader._source(directory, file, names, numbered=numbered) for file in run] for run in section.runs]
        yield from merge_section(runs, spec)

    def _source(self, directory: str, file: DataFileMeta, names: Sequence[str], *, numbered: bool) -> "SortedSource":
        """The source of one file for a merge. ``numbered``: rows are compared by their sequence numbers; else it is enough to
        know those of the files."""
        from tablestore.lsm.merge.mergespec import SortedSource

        numbers = (SEQUENCE_COLUMN,) if numbered and file.min_sequence_number != file.max_sequence_number else ()
        merge = self.settings.merge
        kinds = (KIND_COLUMN,) if file.may_retract or (merge is not None and merge.computes) else ()
        system = (*numbers, *kinds)
        return SortedSource(
            min_sequence=file.min_sequence_number,
            max_sequence=file.max_sequence_number,
            read=lambda: self.file_rows(directory, file, names, system),
            ours=file.footer_digest is not None,
        )

    def _live_rows(
        self,
        directory: str,
        file: DataFileMeta,
        names: Sequence[str],
        system: tuple[str, ...],
        deletions: Mapping[str, DeletionFile],
    ) -> Iterator[pa.RecordBatch]:
        """The file's rows without the positions that its deletion vector names."""
        vector = deletions.get(file.file_name)
        rows = self.file_rows(directory, file, names, system, pruned=vector is None and not self.positions)
        if self.positions:
            rows = with_positions(rows, file.file_name)
        return rows if vector is None else live_rows(rows, file, self._deleted_positions(vector, file))

    def _deleted_positions(self, vector: DeletionFile, file: DataFileMeta) -> "np.ndarray":
        from tablestore.format.index.deletionvector import byte_range, decode_deletion_vector
        from tablestore.format.manifest.indexmanifest import DeletionVectorRange

        path = index_path(vector.index_file)
        # One index file holds the vectors of many data files of a bucket.
        if (data := self._vectors.get(path)) is None:
            data = self._vectors[path] = self._read_index(path)
        where = DeletionVectorRange(data_file=file.file_name, offset=vector.offset, length=vector.length)
        start, size = byte_range(where)
        name = f"{self.files.root_uri}/{path}"
        return decode_deletion_vector(data[start : start + size], name, row_count=file.row_count)

    def _read_index(self, path: str) -> bytes:
        try:
            return self.files.read(path)
        except NotFoundError as error:
            raise NotFoundError(
                f"index file {self.files.root_uri}/{path} is gone: its snapshot expired while it was being read, or the file was "
                "removed by hand; scan the latest snapshot again",
                kind="data-file-gone",
            ) from error

    def file_rows(
        self, directory: str, file: DataFileMeta, names: Sequence[str], system: tuple[str, ...], *, pruned: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one file, deleted ones and retractions too: the system columns, then ``names``.

        ``pruned``: row groups without a row that the predicate keeps are left out. Not where rows count by their position, or where
        a row may hide one of another file.
        """
        path = f"{directory}/{file.file_name}"
        reader = self.open_file(path, file)
        try:
            projection = self.projection(reader, file, names, system, path)
            if projection.file_columns:
                groups = self._matching_groups(reader, file) if pruned and reader.group_count > 1 else None
                for batch in reader.read(projection.file_columns, groups):
                    yield projection.apply(batch)
            else:
                # No column is needed (a count, or columns that this file does not have): only the number of rows matters.
                for start in range(0, reader.row_count, self.bounds.batch_rows):
                    batch = _rows_without_columns(min(self.bounds.batch_rows, reader.row_count - start))
                    yield projection.apply(batch) if names else batch
        finally:
            reader.close()

    def _matching_groups(self, reader: DataFileReader, file: DataFileMeta) -> list[int] | None:
        """The row groups that may hold a row that the predicate keeps; None for all. Bounds of other writers' files, and of columns
        that had another type or name, tell nothing."""
        predicate = self.predicate
        if predicate is None or file.footer_digest is None:
            return None
        written = self.schema if file.schema_id == self.schema.id else self.schema_of(file.schema_id)
        fields = [field for field in written.fields if field.name in columns_of(predicate) and _is_bounded(field)]
        groups = reader.bounded_groups([field.name for field in fields if self._is_unchanged(field)])
        chosen = [
            group.index
            for group in groups
            if may_match(
                predicate,
                {
                    name: ColumnRange(min=low, max=high, null_count=None, row_count=group.row_count)
                    for name, (low, high) in group.bounds.items()
                },
            )
        ]
        return None if len(chosen) == len(groups) else chosen

    def _is_unchanged(self, field: Field) -> bool:
        """True if the column of a file is one of the table, under its name and with its type."""
        current = self.schema.field(field.name) if field.name in self.schema.field_names else None
        return current is not None and (current.id, with_nullable(current.type, True)) == (
            field.id,
            with_nullable(field.type, True),
        )

    def projection(
        self, reader: DataFileReader, file: DataFileMeta, names: Sequence[str], system: tuple[str, ...], path: str
    ) -> Projection:
        """The projection of the columns of an open file to the system columns and then ``names``."""
        written = self.schema if file.schema_id == self.schema.id else self.schema_of(file.schema_id)
        fields: list[Field] = list(map(self.schema.field, names))
        return Projection(
            written.fields, fields, keep=system, file_names=reader.schema.names, where=f"{self.files.root_uri}/{path}"
        )

    def open_file(self, path: str, file: DataFileMeta) -> DataFileReader:
        """Open a data file and check it against its manifest entry. Raises FormatError, and NotFoundError if it has expired."""
        try:
            source = self.files.open_input(path)
        except NotFoundError as error:
            raise data_file_gone(f"{self.files.root_uri}/{path}") from error
        return open_data_file(
            source,
            file_name=file.file_name,
            fields=lambda: self.schema_of(file.schema_id).fields,
            footer_digest=file.footer_digest,
            size=file.file_size,
            batch_bytes=self.bounds.batch_bytes,
        )

    def with_partition(self, batch: pa.RecordBatch, partition: bytes) -> pa.RecordBatch:
        """The batch with the partition's values as columns, which replace columns of these names."""
        keys = self.schema.partition_keys
        if not keys:
            return batch
        fields = self.schema.partition_fields
        values = decode_row(partition, [f.type for f in fields])
        arrow = to_arrow_schema(fields)
        columns = [
            pa.repeat(scalar_of(value, arrow.field(name).type), batch.num_rows) for name, value in zip(keys, values, strict=True)
        ]
        value_names = [name for name in batch.schema.names if name not in keys]
        return pa.RecordBatch.from_arrays(
            [*(batch.column(name) for name in value_names), *columns],
            schema=pa.schema([*(batch.schema.field(name) for name in value_names), *arrow]),
        )


def data_file_gone(path: str) -> NotFoundError:
    """The error for a data file of a snapshot that is not there."""
    return NotFoundError(
        f"data file {path} is gone: its snapshot expired while it was being read, or the file was removed by hand; scan the latest "
        "snapshot again",
        kind="data-file-gone",
    )


def _runs_follow_one_another(section: Section) -> bool:
    """True if the sequence numbers of each run lie wholly above those of another, so that runs are as old as their numbers."""
    ranges = sorted(
        (min(file.min_sequence_number for file in run), max(file.max_sequence_number for file in run)) for run in section.runs
    )
    return all(newer[0] > older[1] for older, newer in pairwise(ranges))


def _is_bounded(field: Field) -> bool:
    """True if bounds of Parquet's statistics compare with literals as values of the column do."""
    # Of nanoseconds Arrow gives values that lost some of them.
    return isinstance(field.type, AtomicType) and (field.type.root not in TIMESTAMP_ROOTS or timestamp_unit(field.type) != "ns")


def _without_retractions(batch: pa.RecordBatch) -> pa.RecordBatch:
    # -U and -D have odd codes. The count in the manifest is not trusted: some writers get it wrong.
    kinds = batch.column(KIND_COLUMN).to_numpy(zero_copy_only=False)
    retracting = (kinds & 1).astype(np.bool_)
    return batch.filter(pa.array(~retracting)) if retracting.any() else batch


def _rows_without_columns(rows: int) -> pa.RecordBatch:
    """A batch that is nothing but a number of rows."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))


def _as(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The same columns under the declared schema (field metadata, nullability)."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=target) if batch.num_columns else batch
