"""Pairs rows with the rows of a table that have their keys: what a MERGE by the primary key looks at.

    driver     match_by_key -> KeyMatch                    once
    executor   task_of -> numbers                          only where there are several tasks: rows of one bucket go to one
               matched_rows -> (given, looked up)          each given row once, with the row of its key, or None

Key columns are read of the row groups that a key may lie in, other columns where one does (:mod:`~tablestore.store.scan.lookup`).
A task looks up the keys of many rows together: the more there are, the fewer times a row group is read. Its process keeps decoded
row groups in scratch files, from the second look-up in a file on, for the tasks that come after it
(:mod:`~tablestore.store.scan.lookupcache`).

Memory: GIVEN_BYTES of given rows, and what looking up takes (:mod:`~tablestore.bounds`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tablestore.bounds import WINDOW_BYTES
from tablestore.distributed.keyedjoin import rows_beside
from tablestore.distributed.read import ReadPin
from tablestore.format.bucket import bucket_of
from tablestore.store.context import Shared
from tablestore.store.scan.keywindows import WINDOW_KEYS
from tablestore.store.scan.lookupcache import LookupCache
from tablestore.table.read.keylookup import KeyLookup, stored_keys
from tablestore.types.arrays import one_chunk
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.rebatch import rebatched

GIVEN_BYTES = WINDOW_BYTES
# The bytes of decoded row groups that a process keeps: Spark's workers take turns, so each of them may come to keep the same.
KEPT_BYTES = 1 << 30
# A task costs its process some tens of milliseconds: a table of fewer rows is not worth another one.
_ROWS_OF_A_TASK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMatch:
    """A match by key. ``keys``: the given columns, by number, that equal those of the primary key; ``columns``: what is looked
    up of the table."""

    pin: ReadPin
    keys: tuple[int, ...]
    columns: tuple[str, ...]

    def tasks(self, most: int) -> int:
        """The number of tasks that are worth while."""
        context = self.pin.open()
        snapshot = self.pin.read_snapshot(context)
        rows = 0 if snapshot is None else snapshot.stored_records
        return max(min(most, context.settings.total_buckets, rows // _ROWS_OF_A_TASK), 1)


def match_by_key(pin: ReadPin, row_schema: pa.Schema, keys: Sequence[int], columns: Sequence[str]) -> KeyMatch | None:
    """The way to look up the rows of these keys, given in the order of the primary key; None without one, and for types of
    which SQL takes other values for equal than keys do."""
    match = KeyMatch(pin=pin, keys=tuple(keys), columns=tuple(columns))
    if not pin.open().schema.is_keyed:
        return None
    return match if _stored(match, [pa.array([], row_schema.field(place).type) for place in keys]) is not None else None


def task_of(match: KeyMatch, keys: Sequence[pa.Array], count: int) -> pa.Array:
    """The number of the task that looks up each of these keys, of so many tasks."""
    context = match.pin.open()
    schema, settings = context.schema, context.settings
    stored = _stored(match, keys)
    assert stored is not None, "other types of keys were refused at first"
    columns = [one_chunk(stored.column(name)) for name in schema.bucket_keys]
    types = [schema.field(name).type for name in schema.bucket_keys]
    return pa.array(bucket_of(columns, types, settings.total_buckets, settings.bucket_function) % count, pa.int32())


def matched_rows(
    match: KeyMatch, batches: Iterable[pa.RecordBatch], shared: Shared | None = None
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
    """Given rows, and in the same places the rows of their keys; in another order than they came. ``shared``: what the tasks of
    this process have in common.

    Raises NotFoundError if the snapshot has expired meanwhile, FormatError for damaged files.
    """
    context = match.pin.open()
    cache = None if shared is None else shared.once(_cache)
    lookup = KeyLookup(context, match.pin.read_snapshot(context), match.columns, cache)
    schema = to_arrow_schema([context.schema.field(name) for name in match.columns])
    for rows in rebatched(batches, max_rows=WINDOW_KEYS, max_bytes=GIVEN_BYTES):
        keys = _stored(match, [rows.column(place) for place in match.keys])
        assert keys is not None, "other types of keys were refused at first"
        for given_rows, stored, places in rows_beside(lookup, rows, keys):
            if stored is None:
                yield given_rows, None
            else:
                columns = [one_chunk(column).take(pa.array(places)) for column in stored.columns]
                yield given_rows, pa.RecordBatch.from_arrays(columns, schema=schema)


def _cache() -> LookupCache:
    return LookupCache(KEPT_BYTES)


def _stored(match: KeyMatch, keys: Sequence[pa.Array]) -> pa.Table | None:
    schema = match.pin.open().schema
    names = schema.primary_keys
    return stored_keys(pa.table(list(keys), names=list(names)), [schema.field(name) for name in names])
