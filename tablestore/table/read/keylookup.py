"""Looks rows of a snapshot up by key.

    keys -> sorted, each once -> partition -> bucket -> files whose key range they meet -> row groups -> rows -> one row a key

A bucket is chosen by the key's hash where a table has a fixed number of them; of other tables all buckets of the partition are
looked into. The rows are those that a scan has: found versions are merged by the table's own rules, and deleted rows are not there.

Keys are equal as they are in the table: 0.0 and -0.0 are two keys, all NaNs are one. Keys with a null match nothing.
Memory: the keys that are given, and the rows of as many of them as the bounds allow.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.binaryrow import encode_row
from tablestore.format.bucket import bucket_of
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.gather import take_rows
from tablestore.lsm.keys import plain_columns, to_words
from tablestore.lsm.merge.rowdiff import RowState
from tablestore.lsm.sorting import sort_by_group_and_key
from tablestore.store.changes.statediff import BucketState, StateDiff
from tablestore.store.context import TableContext
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.scan.keywindows import WINDOW_KEYS
from tablestore.store.scan.lookup import SortedKeys, sorted_keys
from tablestore.store.scan.lookupcache import LookupCache
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.types.arrays import Places, begins, one_chunk, python_values
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import INTEGER_ROOTS, AtomicType, Field, TypeRoot


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Some rows that were found: the given key ``keys[i]`` has the row ``places[i]`` of ``rows``. Both are numbers of rows."""

    rows: pa.Table
    keys: Places
    places: Places


@dataclass(frozen=True, slots=True)
class _Bucket:
    number: int
    total: int
    files: tuple[DataFileMeta, ...]


class KeyLookup:
    """Finds rows of one snapshot by their whole primary key. The list of its files is read once.

    ``columns``: what comes out, in this order. ``cache``: where to keep what is decoded, for the next keys.
    """

    def __init__(
        self, context: TableContext, snapshot: Snapshot | None, columns: Sequence[str], cache: LookupCache | None = None
    ) -> None:
        schema = context.schema
        assert schema.is_keyed, "only rows with a key can be found by it"
        context.check_sees_all("looking rows up by their key")
        self.context = context
        self._schema, self._settings, self._cache = schema, context.settings, cache
        # In this order sorted keys lie together by partition, and in key order within each.
        self._key_columns = (*schema.partition_keys, *schema.trimmed_primary_keys)
        self._columns = tuple(columns)
        self._reader = SplitReader.whole(context, self._columns, None)
        self._buckets: Mapping[bytes, Sequence[_Bucket]] = _buckets(context, snapshot)
        vectors = snapshot is not None and context.settings.deletion_vectors
        self._vectors: DeletionVectors | None = context.deletion_vectors(snapshot) if vectors and snapshot is not None else None

    def find(self, keys: pa.Table) -> Iterator[FoundRows]:
        """The rows of these keys, in portions of bounded size; a key that is given twice is found twice.

        ``keys``: the columns of the primary key, in canonical types. Raises FormatError for damaged files, NotFoundError for files
        that expired meanwhile.
        """
        numbers, keys = _without_nulls(keys.select(list(self._key_columns)))
        if not keys.num_rows or not self._buckets:
            return
        fields = [self._schema.field(name) for name in self._key_columns]
        plain = plain_columns([one_chunk(keys.column(f.name)) for f in fields], [f.type.nullable for f in fields])
        sorted_order = sort_by_group_and_key(None, 1, to_words(plain))
        # Where the equal keys begin, and behind the last one.
        starts = np.flatnonzero(np.append(True, ~sorted_order.repeats))
        ends = np.append(starts[1:], len(sorted_order.order))
        distinct = take_rows(keys, sorted_order.order[starts]).combine_chunks()
        for start, stored in self._looked_up(distinct):
            at_key = stored.keys + start
            places = np.arange(len(at_key)) if stored.places is None else stored.places
            counts = ends[at_key] - starts[at_key]
            # The numbers of the given keys that equal each one, side by side.
            steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            positions = sorted_order.order[np.repeat(starts[at_key], counts) + steps]
            yield FoundRows(stored.rows.select(list(self._columns)), numbers[positions], np.repeat(places, counts))

    def _looked_up(self, keys: pa.Table) -> Iterator[tuple[int, RowState]]:
        """The rows of distinct keys, sorted by partition and key: the number of the first key of a portion, and its rows."""
        for start, stop, partition in self._partitions(keys):
            partition_keys = keys.slice(start, stop - start)
            for bucket in self._buckets.get(partition, ()):
                chosen = self._chosen(partition_keys, bucket)
                if not len(chosen):
                    continue
                states = StateDiff(
                    reader=self._reader, partition=partition, bucket=bucket.number, columns=self._columns, cache=self._cache
                )
                windows = self._windows(partition_keys, chosen)
                done_keys = 0
                for part, state in states.rows_at(BucketState(files=bucket.files, vectors=self._vectors), windows):
                    of_keys = chosen[done_keys + state.keys]
                    done_keys += len(part)
                    if len(of_keys):
                        yield start, RowState(self._with_partition(state.rows, partition), of_keys, state.places)

    def _partitions(self, keys: pa.Table) -> Iterator[tuple[int, int, bytes]]:
        """Stretches of the sorted keys, and the partition of each."""
        fields = self._schema.partition_fields
        if not fields:
            yield 0, keys.num_rows, encode_row((), ())
            return
        columns = [one_chunk(keys.column(field.name)) for field in fields]
        words = to_words(plain_columns(columns, [field.type.nullable for field in fields]))
        first = np.zeros(keys.num_rows, dtype=np.bool_)
        first[0] = True
        for word in words.columns:
            first |= begins(word.at())
        bounds = np.append(np.flatnonzero(first), keys.num_rows)
        values = zip(*(python_values(column.take(pa.array(bounds[:-1]))) for column in columns), strict=True)
        types = [field.type for field in fields]
        # A step for each partition, not for each key.
        for (start, stop), value in zip(pairwise(bounds.tolist()), values, strict=True):
            yield start, stop, encode_row(value, types)

    def _chosen(self, keys: pa.Table, bucket: _Bucket) -> Places:
        """The numbers of the keys that can lie in a bucket."""
        names = self._schema.bucket_keys
        if bucket.total < 2 or not names:
            return np.arange(keys.num_rows)
        columns, types = [one_chunk(keys.column(name)) for name in names], [self._schema.field(name).type for name in names]
        return np.flatnonzero(bucket_of(columns, types, bucket.total, self._settings.bucket_function) == bucket.number)

    def _windows(self, keys: pa.Table, chosen: Places) -> Iterator[SortedKeys]:
        fields = self._schema.key_fields
        names = [field.name for field in fields]
        for start in range(0, len(chosen), WINDOW_KEYS):
            yield sorted_keys(take_rows(keys.select(names), chosen[start : start + WINDOW_KEYS]), fields)

    def _with_partition(self, rows: pa.Table, partition: bytes) -> pa.Table:
        if not set(self._columns) & set(self._schema.partition_keys):
            return rows
        return pa.Table.from_batches(
            [self._reader.with_partition(batch, partition) for batch in rows.combine_chunks().to_batches()]
        )


def stored_keys(keys: pa.Table, fields: Sequence[Field]) -> pa.Table | None:
    """The keys in the types of their columns, in their order; NULL for a number that no row can have.

    None for types of which SQL takes other values for equal than keys do: whole numbers, dates and text are left.
    """
    keys = keys.select([field.name for field in fields])
    for place, field in enumerate(fields):
        column, target_type = keys.column(place), to_arrow_type(field.type)
        root = field.type.root if isinstance(field.type, AtomicType) else None
        if root in INTEGER_ROOTS and pa.types.is_integer(column.type):
            ends = np.iinfo(target_type.to_pandas_dtype())
            numbers = column.cast(pa.int64())
            fits = pc.and_(pc.greater_equal(numbers, int(ends.min)), pc.less_equal(numbers, int(ends.max)))
            column = pc.if_else(fits, numbers, pa.scalar(None, pa.int64()))
        elif not (root is TypeRoot.DATE and pa.types.is_date32(column.type)) and not (
            root is TypeRoot.VARCHAR and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
        ):
            return None
        keys = keys.set_column(place, field.name, column.cast(target_type))
    return keys


def _buckets(context: TableContext, snapshot: Snapshot | None) -> dict[bytes, list[_Bucket]]:
    """The buckets of each partition with the files that a scan reads."""
    files: dict[tuple[bytes, int, int], list[DataFileMeta]] = defaultdict(list)
    for split in plan_scan(context, snapshot).splits:
        files[split.partition, split.bucket, split.total_buckets] += split.files
    by_partition: dict[bytes, list[_Bucket]] = defaultdict(list)
    for (partition, bucket, total), of_bucket in files.items():
        by_partition[partition].append(_Bucket(bucket, total, tuple(of_bucket)))
    return dict(by_partition)


def _without_nulls(keys: pa.Table) -> tuple[Places, pa.Table]:
    """The keys that are complete, and their numbers."""
    complete = np.ones(keys.num_rows, dtype=np.bool_)
    for column in keys.columns:
        if column.null_count:
            complete &= column.is_valid().to_numpy()
    numbers = np.flatnonzero(complete)
    return numbers, keys if len(numbers) == keys.num_rows else keys.filter(pa.array(complete))
