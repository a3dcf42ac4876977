"""Decides which files a scan may leave out, by their partition, bucket, keys and statistics.

    partition values, bucket number    any file of another one
    key bounds                         any file: a row of the key could not be in it
    value bounds                       a file whose rows hide none of another file

Pure. :mod:`tablestore.store.scan.entrypruning` asks the same of many manifest entries at once, and keeps more.
"""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.stats import ColumnStats, decode_stats
from tablestore.lsm.run import Section
from tablestore.store.context import TableContext
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import INTEGER_ROOTS, TEXT_ROOTS, AtomicType, DataType, Field, is_float
from tablestore.types.filter.predicate import Predicate, columns, equalities, keep_only, to_scalar
from tablestore.types.filter.pruning import ColumnRange, may_match, values_may_match
from tablestore.types.schema import TableSchema


def file_pruning(context: TableContext, predicate: Predicate | None) -> Callable[[DataFileMeta], bool]:
    """A test for files that may hold a row that a predicate keeps. Not every other one may be left out: it may hide rows (see
    above)."""
    if predicate is None:
        return lambda _: True
    pruning = FilePruning(context.schema, predicate, context.fields_by_schema())
    return lambda file: pruning.file_may_match(predicate, file)


class FilePruning:
    """The parts of a predicate that prune partitions, buckets and files."""

    def __init__(self, schema: TableSchema, predicate: Predicate | None, file_fields: Mapping[int, Sequence[Field]]) -> None:
        self._schema = schema
        self._predicate = predicate
        self._file_fields = file_fields
        self._partition = keep_only(predicate, schema.partition_keys) if predicate is not None else None
        self._key = keep_only(predicate, schema.trimmed_primary_keys) if predicate is not None else None
        self._partition_types = [field.type for field in schema.partition_fields]
        # -0.0 and 0.0 are equal to a filter and lie in different buckets.
        hashable = schema.bucket_keys and not any(is_float(schema.field(name).type) for name in schema.bucket_keys)
        self._bucket_keys = equalities(predicate, schema.bucket_keys) if predicate is not None and hashable else None
        self._wanted_buckets: dict[int, frozenset[int]] = {}
        # A partition that was kept tells all of a predicate on partition columns: bounds of files tell no more.
        self._is_on_partitions = frozenset() < columns(predicate) <= {*schema.partition_keys}
        self._is_on_key = schema.is_keyed and frozenset() < columns(predicate) <= {*schema.trimmed_primary_keys}

    @property
    def prunes_buckets(self) -> bool:
        """True if rows that match lie in some buckets only."""
        return self._bucket_keys is not None

    @property
    def prunes_files(self) -> bool:
        """True if it matters which keys and values a file has."""
        return self._predicate is not None and not self._is_on_partitions

    def keeps_partition(self, partition: bytes) -> bool:
        """True if rows of a partition may match."""
        if self._partition is None:
            return True
        values = decode_row(partition, self._partition_types)
        return values_may_match(self._partition, dict(zip(self._schema.partition_keys, values, strict=True)))

    def keeps_bucket(self, bucket: int, total_buckets: int) -> bool:
        """True if rows of a bucket may match."""
        if self._bucket_keys is None or total_buckets < 1:
            return True
        if total_buckets == 1 and self._bucket_keys:
            return bucket == 0
        if total_buckets not in self._wanted_buckets:
            self._wanted_buckets[total_buckets] = self._buckets_of(self._bucket_keys, total_buckets)
        return bucket in self._wanted_buckets[total_buckets]

    def keep_section(self, section: Section) -> Section | None:
        """The section without files that cannot matter, None if none is left."""
        if self._predicate is None or not self.prunes_files:
            return section
        if not section.needs_merge:
            files = [file for file in section.files if self.file_may_match(self._predicate, file)]
            return Section((tuple(files),)) if files else None
        if self._key is None:
            return section
        runs = (tuple(file for file in run if self._key_may_match(file)) for run in section.runs)
        pruned_runs = tuple(run for run in runs if run)
        return Section(pruned_runs) if pruned_runs else None

    def _buckets_of(self, keys: Sequence[Mapping[str, object]], total_buckets: int) -> frozenset[int]:
        fields = [self._schema.field(name) for name in self._schema.bucket_keys]
        columns = [_literals([key[field.name] for key in keys], to_arrow_type(field.type)) for field in fields]
        function = self._schema.options.get("bucket-function.type", "default")
        from tablestore.format.bucket import bucket_of

        buckets = bucket_of(columns, [field.type for field in fields], total_buckets, function)
        return frozenset(int(bucket) for bucket in buckets)

    def _key_may_match(self, file: DataFileMeta) -> bool:
        if self._key is None:
            return True
        return may_match(self._key, self._key_ranges(file))

    def file_may_match(self, predicate: Predicate, file: DataFileMeta) -> bool:
        """True if a file may hold a row for which a predicate holds."""
        keys = self._key_ranges(file)
        # The key says so of most files, without the statistics of the other columns.
        if self._key is not None and not may_match(self._key, keys):
            return False
        if self._is_on_key and predicate is self._predicate:
            return may_match(predicate, keys)
        return may_match(predicate, {**self.value_ranges(file), **keys})

    def _key_ranges(self, file: DataFileMeta) -> dict[str, ColumnRange]:
        if not self._schema.is_keyed:
            return {}
        fields = self._schema.key_fields
        types = [field.type for field in fields]
        low, high = decode_row(file.min_key, types), decode_row(file.max_key, types)
        stats = decode_stats(file.key_stats, types)
        ranges = {}
        for position, field in enumerate(fields):
            column = stats[position] if position < len(stats) else None
            # The first key column is bounded by the exact first and last key, whatever the statistics say. NaN has no bound.
            bounded = position == 0 and not is_float(field.type)
            ranges[field.name] = ColumnRange(
                min=low[0] if bounded else column.min if column else None,
                max=high[0] if bounded else column.max if column else None,
                null_count=column.null_count if column else None,
                row_count=file.row_count,
            )
        return ranges

    def value_ranges(self, file: DataFileMeta) -> dict[str, ColumnRange]:
        """The ranges of the columns of which a file's statistics tell."""
        written = self._schema.fields if file.schema_id == self._schema.id else self._file_fields.get(file.schema_id)
        if written is None:
            return {}
        by_name = {field.name: field for field in written}
        names = file.value_stats_cols if file.value_stats_cols is not None else tuple(by_name)
        if any(name not in by_name for name in names):
            raise FormatError(
                f"data file {file.file_name}: statistics name the columns {', '.join(names)}, its schema {file.schema_id} has only "
                f"{', '.join(by_name)}"
            )
        columns = [by_name[name] for name in names]
        stats = decode_stats(file.value_stats, [field.type for field in columns])
        by_id = {field.id: (field, column) for field, column in zip(columns, stats, strict=False)}
        written_ids = {field.id for field in written}
        ranges = {}
        for field in self._schema.fields:
            if field.id not in written_ids:
                ranges[field.name] = ColumnRange(min=None, max=None, null_count=file.row_count, row_count=file.row_count)
            elif field.id in by_id and _comparable(by_id[field.id][0].type, field.type):
                column = by_id[field.id][1]
                ranges[field.name] = column_range(column, file.row_count, nan_free=file.footer_digest is not None)
        return ranges


def _literals(values: Sequence[object], arrow_type: pa.DataType) -> pa.Array:
    # A handful of filter literals, not rows. Arrow takes a nanosecond literal with a zone only as a scalar.
    return pa.concat_arrays([pa.repeat(to_scalar(value, arrow_type), 1) for value in values]) if values else pa.nulls(0, arrow_type)


def column_range(column: ColumnStats, rows: int, *, nan_free: bool = False) -> ColumnRange:
    """The range of a column of so many rows by its statistics."""
    # Our own bounds are unknown where a NaN is among the values; others just leave NaN out.
    return ColumnRange(min=column.min, max=column.max, null_count=column.null_count, row_count=rows, nan_free=nan_free)


def _comparable(old: DataType, new: DataType) -> bool:
    """True if bounds of the old type bound the same values read as the new one."""
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType):
        return False
    if old.root in INTEGER_ROOTS and new.root in INTEGER_ROOTS:
        return True
    if old.root in TEXT_ROOTS and new.root in TEXT_ROOTS:
        return True
    return old.root is new.root and old.precision == new.precision and old.scale == new.scale
