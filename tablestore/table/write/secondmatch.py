"""Detects that one statement changes a row of a keyed table twice.

Rows of one key lie in one flush, where sorting shows it (``once`` of the write buffer), or in different new files of one bucket: of
several flushes, or of several tasks. Files whose key ranges do not meet cannot share a key; of others the keys are read again. So
tasks that got their rows by bucket are checked at no cost.

Memory: windows of keys (:mod:`~tablestore.store.scan.keywindows`).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import partition_intervals
from tablestore.lsm.write.writebuffer import second_match
from tablestore.store.context import TableContext
from tablestore.store.scan.keywindows import windows_of_keys
from tablestore.store.scan.lookup import SortedKeys, find_rows
from tablestore.store.scan.splitreader import SplitReader


def check_second_match(context: TableContext, entries: Iterable[ManifestEntry]) -> None:
    """Raise InvalidInputError of kind ``second-match`` that names the key if two of these new files share one."""
    # Where buckets are made as keys arrive, two tasks may have given a new key different ones.
    dynamic = context.settings.dynamic_buckets is not None
    groups: dict[tuple[bytes, int], list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        groups[entry.partition, 0 if dynamic else entry.bucket].append(entry)
    several = [group for group in groups.values() if len(group) > 1]
    if not several:
        return
    order = KeyOrder.of(context.schema.key_fields)
    reader = SplitReader.whole(context, (), None)
    for group in several:
        by_name = {entry.file.file_name: entry for entry in group}
        for section in partition_intervals([entry.file for entry in group], order):
            if section.needs_merge:
                _check(reader, [by_name[file.file_name] for file in section.files])


def _check(reader: SplitReader, entries: Sequence[ManifestEntry]) -> None:
    files = [(reader.directory(entry.partition, entry.bucket), entry.file) for entry in entries]
    distinct = sum(len(keys) for keys in windows_of_keys(reader, files))
    if distinct == sum(entry.file.row_count for entry in entries):
        return
    for keys in windows_of_keys(reader, files):
        if (row := _first_shared(reader, entries, keys)) is not None:
            raise second_match(_full_key(reader, entries[0].partition, keys.rows.slice(row, 1)))


def _first_shared(reader: SplitReader, entries: Sequence[ManifestEntry], keys: SortedKeys) -> int | None:
    """The first of the keys that more than one file holds."""
    count = np.zeros(len(keys), np.int32)
    for entry in entries:
        for matches in find_rows(reader, entry.partition, entry.bucket, [entry.file], keys):
            count[matches.keys] += 1
    shared = np.flatnonzero(count > 1)
    return int(shared[0]) if len(shared) else None


def _full_key(reader: SplitReader, partition: bytes, key: pa.RecordBatch) -> pa.Table:
    """The key with the values of its partition."""
    return pa.Table.from_batches([reader.with_partition(key, partition)]).select(reader.schema.primary_keys)
