"""Writes keyed tables whose buckets are created as keys arrive (``bucket = -1``).

    a writer     hashes of its rows -> the partition's hash index of the newest snapshot -> buckets, new ones for new keys
    its commit   in every round: the keys of its files -> the hash index of *that* snapshot
                     agrees        the buckets' index files are written again with the new hashes
                     disagrees     another writer gave one of these keys another bucket: the files are written again with the
                                   buckets that the keys have now, and checked again

So a key lies in one bucket with any number of writers, tasks of one distributed write among them, and rows are written a second
time only where writers disagree. The check reads only the key columns of the commit's files, so it works for files that another
process wrote.

Memory: for each partition that a writer touches, 8 bytes a key of the partition (twice that while keys are added). In a commit
the same for one partition after the other, and 4 bytes a row of the commit's own files.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.format.binaryrow import encode_row
from tablestore.format.bucket import Hashes, hash_columns
from tablestore.format.index.hashindex import decode_hash_index, encode_hash_index
from tablestore.format.manifest.indexmanifest import HASH, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.bucketmap import NO_BUCKET, BucketMap, BucketPolicy
from tablestore.store.indexfiles import IndexFiles
from tablestore.store.scan.splitreader import SplitReader
from tablestore.types.arrays import U64
from tablestore.types.schema import TableSchema
from tablestore.types.sortedsets import distinct, union

Replaces = Callable[[bytes], bool]
Rewriter = Callable[[int, "Assigner", Iterator[tuple[pa.Table, pa.Array]]], tuple[ManifestEntry, ...]]
"""Writes rows (with their kinds) as new files, numbered from a first sequence number on, in the buckets that are assigned."""


class Assigner:
    """Gives rows their buckets, the same key always the same. ``load``: the buckets of the keys of a partition."""

    def __init__(self, schema: TableSchema, policy: BucketPolicy, load: Callable[[bytes], BucketMap]) -> None:
        self._schema, self._policy, self._load = schema, policy, load
        self._types = [f.type for f in schema.partition_fields]
        self._maps: dict[bytes, BucketMap] = {}

    def __call__(self, rows: pa.Table, partitions: Sequence[tuple[object, ...]], partition_of: U64 | None) -> npt.NDArray[np.int32]:
        hashes = key_hashes(rows, self._schema)
        if partition_of is None:
            return self._map_of(partitions[0]).assign(hashes, self._policy)
        buckets = np.empty(len(hashes), np.int32)
        order = np.argsort(partition_of, kind="stable")
        bounds = np.searchsorted(partition_of[order], np.arange(len(partitions) + 1, dtype=np.uint64))
        for number, partition in enumerate(partitions):
            members = order[bounds[number] : bounds[number + 1]]
            buckets[members] = self._map_of(partition).assign(hashes[members], self._policy)
        return buckets

    def _map_of(self, partition: tuple[object, ...]) -> BucketMap:
        key = encode_row(partition, self._types)
        if key not in self._maps:
            self._maps[key] = self._load(key)
        return self._maps[key]


@dataclass(frozen=True, slots=True)
class HashIndex:
    """The hash indexes of one snapshot."""

    files: IndexFiles
    entries: tuple[IndexEntry, ...]

    @classmethod
    def of(cls, files: IndexFiles, index: Sequence[IndexEntry]) -> "HashIndex":
        """The hash indexes among the index files of a snapshot."""
        return cls(files, tuple(entry for entry in index if entry.index_type == HASH))

    def partition(self, partition: bytes) -> BucketMap:
        """The buckets of one partition's keys."""
        parts: dict[int, Hashes] = {}
        for bucket, entries in self._buckets(partition).items():
            parts[bucket] = self.bucket(entries)
        return BucketMap.of(parts, f"table {self.files.files.root_uri}, partition {partition[4:].hex() or '()'}")

    def bucket(self, entries: Sequence[IndexEntry]) -> Hashes:
        """The hashes in the index files of one bucket, ascending."""
        hashes = [self._read(entry) for entry in entries]
        return hashes[0] if len(hashes) == 1 else union(np.empty(0, np.int32), *hashes)

    def with_hashes(self, partition: bytes, added: Mapping[int, Hashes], *, anew: bool) -> list[IndexEntry]:
        """The index changes that add hashes to buckets; with ``anew`` the partition has no others afterwards."""
        entries_by_bucket = self._buckets(partition)
        changes = [replace(e, kind=EntryKind.DELETE) for b, es in entries_by_bucket.items() if anew or b in added for e in es]
        for bucket, hashes in sorted(added.items()):
            bucket_entries = entries_by_bucket.get(bucket, ())
            all_hashes = hashes if anew or not bucket_entries else union(self.bucket(bucket_entries), hashes)
            changes.append(
                self.files.write(
                    encode_hash_index(all_hashes),
                    partition=partition,
                    bucket=bucket,
                    index_type=HASH,
                    row_count=len(all_hashes),
                )
            )
        return changes

    def _read(self, entry: IndexEntry) -> Hashes:
        data = self.files.read(entry.file_name)
        return decode_hash_index(data, self.files.describe(entry.file_name), row_count=entry.row_count)

    def _buckets(self, partition: bytes) -> dict[int, list[IndexEntry]]:
        by_bucket: dict[int, list[IndexEntry]] = defaultdict(list)
        for entry in self.entries:
            if entry.partition == partition:
                by_bucket[entry.bucket].append(entry)
        return by_bucket


@dataclass(slots=True, kw_only=True)
class DynamicCommit:
    """The plan of a commit to dynamic buckets in each round: :meth:`revise`, then :meth:`plan_index`.

    ``replaces`` says which partitions an overwrite replaces: their keys are given buckets as if there were no others.
    """

    reader: SplitReader
    policy: BucketPolicy
    index_of: Callable[[Snapshot | None], HashIndex]
    first_sequence: Callable[[Snapshot | None, int], int]
    rewrite: Rewriter
    replaces: Replaces | None = None
    _hashes: dict[str, Hashes] = field(default_factory=dict)
    _added: dict[bytes, dict[int, Hashes]] = field(default_factory=dict)

    def revise(self, latest: Snapshot | None, new_entries: tuple[ManifestEntry, ...], attempt: int) -> tuple[ManifestEntry, ...]:
        """The commit's files, written again where their keys have other buckets in ``latest``."""
        index = self.index_of(latest)
        astray = [p for p, entries in _by_partition(new_entries).items() if not self._agrees(index, p, entries)]
        if not astray:
            return new_entries
        moving = [entry for entry in new_entries if entry.partition in astray]
        assigner = Assigner(self.reader.schema, self.policy, lambda partition: self._bucket_map(index, partition))
        # In the order in which they were flushed: of equal keys the later row wins again.
        rows = (part for entry in moving for part in self._rows(entry))
        moved = self.rewrite(self.first_sequence(latest, attempt), assigner, rows)
        for partition, entries in _by_partition(moved).items():
            agreed = self._agrees(index, partition, entries)
            assert agreed, "the same assigner gives the same key the same bucket"
        return (*(entry for entry in new_entries if entry.partition not in astray), *moved)

    def plan_index(self, latest: Snapshot | None, _deletes: Sequence[ManifestEntry]) -> list[IndexEntry]:
        """The index files that hold the new keys, and none of partitions that are replaced."""
        index = self.index_of(latest)
        replaced = {e.partition for e in index.entries if self._is_replaced(e.partition)}
        changes: list[IndexEntry] = []
        for partition in sorted({*self._added, *replaced}):
            added = self._added.get(partition, {})
            changes += index.with_hashes(partition, added, anew=self._is_replaced(partition))
        if any(change.kind is EntryKind.ADD for change in changes):
            index.files.sync()
        return changes

    def _agrees(self, index: HashIndex, partition: bytes, entries: Sequence[ManifestEntry]) -> bool:
        """True if every key of these files has one bucket, and no other in the index. Notes the keys that the index lacks."""
        assigned = self._bucket_map(index, partition)
        by_bucket: dict[int, Hashes] = {}
        for entry in entries:
            hashes = self._hashes_of(entry)
            by_bucket[entry.bucket] = union(by_bucket[entry.bucket], hashes) if entry.bucket in by_bucket else hashes
        self._added.pop(partition, None)
        all_hashes = np.concatenate(list(by_bucket.values()))
        if len(by_bucket) > 1 and len(distinct(all_hashes)) < len(all_hashes):
            return False
        added: dict[int, Hashes] = {}
        for bucket, hashes in by_bucket.items():
            buckets = assigned.find(hashes)
            if not ((buckets == bucket) | (buckets == NO_BUCKET)).all():
                return False
            if (new := hashes[buckets == NO_BUCKET]).size:
                added[bucket] = new
        if added:
            self._added[partition] = added
        return True

    def _bucket_map(self, index: HashIndex, partition: bytes) -> BucketMap:
        return BucketMap() if self._is_replaced(partition) else index.partition(partition)

    def _is_replaced(self, partition: bytes) -> bool:
        return self.replaces is not None and self.replaces(partition)

    def _hashes_of(self, entry: ManifestEntry) -> Hashes:
        """The distinct hashes in one of the commit's files; a file never changes, so it is read once."""
        name = entry.file.file_name
        if name not in self._hashes:
            names = self.reader.schema.trimmed_primary_keys
            parts = [key_hashes(pa.Table.from_batches([b]), self.reader.schema) for b in self._batches(entry, names, ())]
            self._hashes[name] = union(np.empty(0, np.int32), *parts)
        return self._hashes[name]

    def _rows(self, entry: ManifestEntry) -> Iterator[tuple[pa.Table, pa.Array]]:
        schema = self.reader.schema
        for batch in self._batches(entry, schema.field_names, (KIND_COLUMN,)):
            rows = pa.Table.from_batches([batch])
            yield rows.select(list(schema.field_names)).cast(schema.arrow_schema), batch.column(KIND_COLUMN)

    def _batches(self, entry: ManifestEntry, names: Sequence[str], system: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        return self.reader.file_rows(self.reader.directory(entry.partition, entry.bucket), entry.file, names, system)


def key_hashes(rows: pa.Table, schema: TableSchema) -> Hashes:
    """The hash of each row's trimmed primary key."""
    fields = schema.key_fields
    return hash_columns([rows.column(f.name) for f in fields], [f.type for f in fields])


def _by_partition(entries: Sequence[ManifestEntry]) -> dict[bytes, list[ManifestEntry]]:
    by_partition: dict[bytes, list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        by_partition[entry.partition].append(entry)
    return by_partition
