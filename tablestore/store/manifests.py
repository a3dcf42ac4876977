"""Reads and writes the manifests of one table, with a cache.

Manifests and lists are immutable and named after their content, so decoded ones are kept in a bounded cache, which the handles of
one catalog share. Every attempt to commit writes its own (a nonce makes two attempts differ), so the loser of a race may remove
what it wrote: no other commit can have used those names.

A large manifest is written a second time as columns (:mod:`tablestore.format.manifest.sidecar`), which plans read instead where
they are there and whole. Of manifests without one, those of other engines, the columns are kept in a cache of this machine.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import attrgetter
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.errors import FormatError, NotFoundError, TablestoreError
from tablestore.format.manifest.avro import CODEC
from tablestore.format.manifest.blockdigests import BlockDigests
from tablestore.format.manifest.encodedentries import EncodedEntries
from tablestore.format.manifest.entrycolumns import (
    MANIFEST,
    NO_ENTRIES,
    ROW,
    EntryColumns,
    EntryObjects,
    Places,
    RecordPlaces,
    StoredBounds,
    decode_all_with_records,
    decode_manifests,
    decode_with_records,
    encode_records,
    entries_at,
    places_of_records,
)
from tablestore.format.manifest.indexmanifest import IndexEntry, decode_index_manifest, encode_index_manifest
from tablestore.format.manifest.livecolumns import Names, live_parts
from tablestore.format.manifest.liveset import Fold, fold_entries, live_entries
from tablestore.format.manifest.manifestfile import (
    LEAST_ENTRY_BYTES,
    EntryKind,
    FileIdentity,
    ManifestEntry,
    decode_manifest,
    encode_manifest,
    entry_bytes,
    record_bytes,
)
from tablestore.format.manifest.manifestlist import (
    ManifestFile,
    decode_manifest_list,
    encode_manifest_list,
    summarise,
    summarise_columns,
)
from tablestore.format.manifest.sidecar import (
    FEWEST_ENTRIES,
    SIDECAR_PREFIX,
    SidecarColumns,
    SidecarFile,
    encode_sidecar,
    open_sidecar,
    sidecar_name,
)
from tablestore.format.paths import (
    MANIFEST_DIR,
    index_manifest_name,
    index_path,
    manifest_list_name,
    manifest_name,
    manifest_path,
    verify_content_name,
)
from tablestore.format.snapshot import Snapshot
from tablestore.ids import Ids
from tablestore.io.diskcache import DiskCache
from tablestore.io.filestore import FileStore
from tablestore.memo import RecentlyUsed
from tablestore.store.snapshots import parent_uuid
from tablestore.types.arrays import places_array
from tablestore.types.datatypes import DataType

T = TypeVar("T")
V = TypeVar("V")
Keeps = Callable[[EntryColumns], npt.NDArray[np.bool_]]
"""True for each entry that is to be read."""
BoundsToStore = Callable[[EntryColumns], StoredBounds]
"""The bounds that the sidecar of entries gets."""

# The usual target size of a manifest file, before compression. Readers take twice as much, whatever it compresses to.
MANIFEST_BYTES = 8 * 1024 * 1024
CACHED_BYTES = 256 * 1024 * 1024
# The bytes in memory of an entry's objects, beside its own.
_OBJECT_BYTES = 1_100
# Manifests of fewer entries are read as objects: they are small, and read again and again.
_FEW_ENTRIES = 1_000
# Beside large ones too, unless they are so many together that side by side is faster.
_FEWEST_COLUMNS = 3_000
# Enough to decode the blocks of many side by side; the bytes of so many are held at a time.
_MANIFESTS_AT_A_TIME = 8
# Manifests whose columns wait to be kept on this machine, while the next ones are decoded.
_MOST_WAITING = 1
# Of small manifests that are decoded together.
_ENTRIES_AT_A_TIME = 32_000
# Lists of at most so many entries are folded once; one is looked for that lacks at most so many of the manifests.
_MOST_FOLDED, _MOST_NEW = 2_000, 4
_MOST_FOLDS, _MOST_ENTRIES = 128, 64_000

# What entries store that come from a manifest itself.
_NO_BOUNDS = EntryColumns(NO_ENTRIES)


class _Cache(Generic[V]):
    """Least recently used values by place, bounded by the memory they take. Thread-safe."""

    def __init__(self, budget: int, size_of: Callable[[V], int]) -> None:
        self._budget, self._used, self._size_of = budget, 0, size_of
        self._values: OrderedDict[str, V] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._lock = Lock()

    def get(self, name: str) -> V | None:
        with self._lock:
            if (value := self._values.get(name)) is not None:
                self._values.move_to_end(name)
            return value

    def put(self, name: str, value: V) -> None:
        size = self._size_of(value) + _OBJECT_BYTES
        with self._lock:
            self._used -= self._sizes.pop(name, 0)
            self._values.pop(name, None)
            if size > self._budget:
                return
            self._values[name], self._sizes[name] = value, size
            self._used += size
            while self._used > self._budget:
                evicted, _ = self._values.popitem(last=False)
                self._used -= self._sizes.pop(evicted)


class DecodedManifests:
    """Manifests and lists as they were read or written, by their places. ``disk`` keeps the columns of manifests without a sidecar
    for other processes."""

    def __init__(self, disk: DiskCache | None = None) -> None:
        self.disk = disk
        self.manifests: _Cache[tuple[ManifestEntry, ...]] = _Cache(CACHED_BYTES, _entries_bytes)
        self.columns: _Cache[EntryColumns] = _Cache(CACHED_BYTES, lambda columns: columns.size_bytes)
        # Those whose bytes were what their names say.
        self.verified: _Cache[bool] = _Cache(CACHED_BYTES // 16, lambda _: 0)
        self.lists: _Cache[tuple[ManifestFile, ...]] = _Cache(CACHED_BYTES, _list_bytes)
        self.folds: RecentlyUsed[Fold] = RecentlyUsed(_entries_of, most=_MOST_FOLDS, most_weight=_MOST_ENTRIES)


@dataclass(kw_only=True)
class WrittenMetadata:
    """The metadata files that one commit attempt wrote, so that a lost attempt can take them back. ``pending``: those that
    wait to be written together, by path."""

    names: list[str] = field(default_factory=list)
    pending: dict[str, bytes] = field(default_factory=dict)
    index_names: list[str] = field(default_factory=list)

    @property
    def has_large_manifest(self) -> bool:
        """True if a manifest is large enough for a sidecar, and has one."""
        return any(name.startswith(SIDECAR_PREFIX) for name in self.names)


class Manifests:
    """The manifest directory of one table. ``decoded``: the cache of decoded manifests, of this and other tables. ``bounds``: those
    that sidecars get; None: none are written."""

    def __init__(
        self,
        files: FileStore,
        ids: Ids,
        partition_types: Sequence[DataType],
        *,
        codec: str = CODEC,
        decoded: DecodedManifests | None = None,
        bounds: BoundsToStore | None = None,
    ) -> None:
        self._files, self._ids, self._codec, self._bounds = files, ids, codec, bounds
        self._partition_types = tuple(partition_types)
        self._decoded = decoded or DecodedManifests()

    @property
    def location(self) -> str:
        """The location of the table, for messages."""
        return self._files.root_uri

    # -- reading

    def read_list(self, name: str) -> tuple[ManifestFile, ...]:
        """The manifests that a manifest list names, in order."""
        place = self._describe(name)
        if (manifests := self._decoded.lists.get(place)) is None:
            manifests = decode_manifest_list(self._read(name), place)
            self._decoded.lists.put(place, manifests)
        return manifests

    def has_list(self, name: str) -> bool:
        """True if a manifest list is still there."""
        return self._files.exists(manifest_path(name))

    def read_manifest(self, name: str) -> tuple[ManifestEntry, ...]:
        """The entries of one manifest, in order."""
        place = self._describe(name)
        if (entries := self._decoded.manifests.get(place)) is None:
            entries = decode_manifest(self._read(name), place)
            self._decoded.manifests.put(place, entries)
        return entries

    def check(self, manifest: ManifestFile) -> None:
        """Read a manifest whole, whatever its sidecar says. Raises as :meth:`read_manifest`."""
        if _is_large(manifest):
            place = self._describe(manifest.file_name)
            deque(decode_manifests([(place, self._read(manifest.file_name))]), maxlen=0)
        else:
            self.read_manifest(manifest.file_name)

    def matching(self, manifests: Sequence[ManifestFile], keeps: Keeps) -> Iterator[tuple[ManifestEntry, ...]]:
        """The entries of each manifest, of large ones only those that ``keeps`` is true for. Memory: the columns of some manifests
        at a time, beside the cache."""
        if not any(map(_is_large, manifests)):
            return map(self.read_manifest, [manifest.file_name for manifest in manifests])

        def kept(_: ManifestFile, columns: EntryColumns) -> tuple[ManifestEntry, ...]:
            return columns.take(np.flatnonzero(keeps(columns))).entries()

        return self._each(manifests, kept, lambda _, entries: entries)

    def each(self, manifests: Sequence[ManifestFile], value: Callable[[EntryColumns], T]) -> Iterator[T]:
        """A value of all entries of each manifest. Memory: the columns of some manifests at a time, beside the cache."""
        return self._each(manifests, lambda _, columns: value(columns), lambda _, entries: value(EntryColumns.of(entries)))

    def _each(
        self,
        manifests: Sequence[ManifestFile],
        of_columns: Callable[[ManifestFile, EntryColumns], T],
        of_entries: Callable[[ManifestFile, tuple[ManifestEntry, ...]], T],
    ) -> Iterator[T]:
        """A value of the entries of each manifest: of a large one by its columns, of a small one by its objects."""
        values: dict[str, T] = {}
        small = {manifest.file_name for manifest in self._small_columns(manifests)}
        with _Behind(self._keep) as keeping:
            for start in range(0, len(manifests), _MANIFESTS_AT_A_TIME):
                some = manifests[start : start + _MANIFESTS_AT_A_TIME]
                missing = [one for one in some if one.file_name not in values and (_is_large(one) or one.file_name in small)]
                if not all(map(_may_have_sidecar, missing)):
                    # Few blocks cost as many steps as many do.
                    following = (one for one in manifests[start:] if one.file_name in small or _is_bare(one))
                    missing = [*filter(_may_have_sidecar, missing), *_first(following, _ENTRIES_AT_A_TIME)]
                values |= self._of_large(missing, of_columns, keeping.do)
                for manifest in some:
                    name = manifest.file_name
                    yield values.pop(name) if name in values else of_entries(manifest, self.read_manifest(name))

    def _small_columns(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """The manifests that are read as columns although they are not large: those that are no objects by now, if they have many
        entries together."""
        small = [one for one in manifests if not _is_large(one)]
        small = [one for one in small if self._decoded.manifests.get(self._describe(one.file_name)) is None]
        return small if sum(map(_entry_count, small)) > _FEWEST_COLUMNS else []

    def _of_large(
        self,
        manifests: Sequence[ManifestFile],
        value: Callable[[ManifestFile, EntryColumns], T],
        keep: Callable[[ManifestFile, EntryColumns], None],
    ) -> Iterator[tuple[str, T]]:
        """A value of the columns of each of these manifests, by its name: out of the cache, of its sidecar, or of itself. ``keep``
        gets those that were decoded."""
        missing = []
        for manifest in manifests:
            if values := self._of_stored(manifest, value):
                yield manifest.file_name, values[0]
            else:
                missing.append(manifest)
        decoded = decode_manifests((self._describe(one.file_name), self._read(one.file_name)) for one in missing)
        for manifest, columns in zip(missing, decoded, strict=True):
            keep(manifest, columns)
            yield manifest.file_name, value(manifest, columns)

    def _of_stored(self, manifest: ManifestFile, value: Callable[[ManifestFile, EntryColumns], T]) -> tuple[T, ...]:
        """The value of columns that are in the cache or in a sidecar; none without these, or where they are damaged."""
        place = self._describe(manifest.file_name)
        # Whatever is wrong with a sidecar, or that it has gone since it was opened: the manifest says the same.
        with suppress(TablestoreError):
            columns = self._decoded.columns.get(place)
            if columns is None and _may_have_sidecar(manifest):
                # From afar, a manifest takes longer to come than the columns that are here take to decode.
                read_entries = partial(self._read_entries, manifest.file_name) if "://" not in self._files.root_uri else None
                columns = SidecarColumns(partial(self._open_sidecar, manifest), read_entries)
            if columns is not None:
                result = value(manifest, columns)
                # What it was asked for stays with it.
                columns.close()
                self._decoded.columns.put(place, columns)
                return (result,)
        return ()

    def read_index(self, snapshot: Snapshot) -> tuple[IndexEntry, ...]:
        """The live index files of a snapshot."""
        if snapshot.index_manifest is None:
            return ()
        return decode_index_manifest(self._read(snapshot.index_manifest), self._describe(snapshot.index_manifest))

    def all_manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of ``snapshot`` for a reader: base, then delta."""
        return self.read_list(snapshot.base_manifest_list) + self.read_list(snapshot.delta_manifest_list)

    def entries(self, manifests: Iterable[ManifestFile]) -> list[ManifestEntry]:
        """The entries of these manifests, in list order."""
        return [entry for manifest in manifests for entry in self.read_manifest(manifest.file_name)]

    def delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """The entries that this snapshot's commit added and deleted."""
        return self.entries(self.read_list(snapshot.delta_manifest_list))

    def changelog(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """The changelog files of this snapshot's commit, in stored order."""
        return self.entries(self.read_list(snapshot.changelog_manifest_list)) if snapshot.changelog_manifest_list else []

    def live(self, snapshot: Snapshot | None) -> list[ManifestEntry]:
        """Every live file of a snapshot. Memory: all its entries, about 1.5 KiB each."""
        if snapshot is None:
            return []
        return list(self.live_of(self.all_manifests(snapshot)).values())

    def live_of(self, manifests: Sequence[ManifestFile]) -> Mapping[FileIdentity, ManifestEntry]:
        """The live files of a list of manifests, base before delta."""
        if sum(map(_entry_count, manifests)) > _MOST_FOLDED:
            return live_entries(self.read_manifest(manifest.file_name) for manifest in manifests)
        return self._fold(manifests)[0]

    def live_before(self, snapshot: Snapshot, delta: Sequence[ManifestEntry]) -> Mapping[FileIdentity, ManifestEntry]:
        """The files that were live before the commit of a snapshot, whose entries are ``delta``. Whoever goes from snapshot to
        snapshot reads the base list of the first one: those of the others say the same."""
        parent = parent_uuid(snapshot)
        fold = None if parent is None else self._decoded.folds.get((self.location, parent))
        if fold is None:
            manifests = self.read_list(snapshot.base_manifest_list)
            if sum(map(_entry_count, manifests)) > _MOST_FOLDED:
                return live_entries(self.read_manifest(manifest.file_name) for manifest in manifests)
            fold = self._fold(manifests)
        before = fold
        if snapshot.uuid is not None and len(before[0]) + len(delta) <= _MOST_FOLDED:
            self._decoded.folds.find((self.location, snapshot.uuid), lambda: fold_entries([delta], onto=before))
        return before[0]

    def _fold(self, manifests: Sequence[ManifestFile]) -> Fold:
        """Few entries folded, and kept: most lists are one that was folded lately, and a manifest or two behind it."""
        files = [manifest.file_name for manifest in manifests]
        names = tuple(map(self._describe, files))

        def fold() -> Fold:
            for start in range(len(names) - 1, max(len(names) - _MOST_NEW, 0) - 1, -1):
                if (onto := self._decoded.folds.get(names[:start])) is not None:
                    break
            else:
                start, onto = 0, None
            return fold_entries(map(self.read_manifest, files[start:]), onto=onto)

        return self._decoded.folds.find(names, fold)

    def live_columns(self, snapshot: Snapshot | None, names: Sequence[str]) -> EntryColumns:
        """The columns ``names`` of every live file of a snapshot, in the order of the manifests. Memory: these columns, and 20
        bytes of each entry."""
        manifests = () if snapshot is None else self.all_manifests(snapshot)
        if not any(map(_is_large, manifests)):
            return EntryColumns.of(self.live_of(manifests).values(), names)
        parts = self._live_parts(manifests, lambda _: names, lambda part: part.select(names))
        places = np.concatenate([places for places, _ in parts])
        entries = EntryColumns.concat([EntryColumns.of((), names), *(part for _, part in parts)])
        # Those that were deleted and added again come last.
        return entries if (places[1:] > places[:-1]).all() else entries.take(np.argsort(places))

    def live_parts(self, snapshot: Snapshot | None, names: Names, value: Callable[[EntryColumns], T]) -> list[T]:
        """A value of some columns of every live file of a snapshot, manifest by manifest, in no order. It may be computed twice,
        and of no files. Memory: the columns of some manifests at a time, 20 bytes of each entry, and the values."""
        manifests = () if snapshot is None else self.all_manifests(snapshot)
        if not any(map(_is_large, manifests)):
            return [value(EntryColumns.of(self.live_of(manifests).values(), names(_NO_BOUNDS)))]
        return [part for _, part in self._live_parts(manifests, names, value)]

    @staticmethod
    def are_columns(manifests: Sequence[ManifestFile]) -> bool:
        """True if the entries of some of these manifests are too many for an object each."""
        return any(map(_is_large, manifests))

    def live_among(
        self,
        manifests: Sequence[ManifestFile],
        names: Names,
        value: Callable[[EntryColumns], T],
        *,
        keeps: Keeps | None,
        whole: bool = False,
    ) -> list[T]:
        """A value of some columns of the live files of some manifests, in the order of these; ``keeps``: of the entries that it is
        true for; ``whole``: where it is true for a DELETE it is for its ADD. Memory: as :meth:`live_parts`."""
        return [part for _, part in self._live_parts(manifests, names, value, whole=whole or keeps is None, keeps=keeps)]

    def load_rows(self, manifest: ManifestFile, rows: Places, names: Sequence[str]) -> EntryColumns:
        """The columns ``names`` of the entries at some rows of a manifest. Memory: these columns of the manifest."""
        if not _is_large(manifest):
            entries = self.read_manifest(manifest.file_name)
            return EntryColumns.of([entries[row] for row in rows.tolist()], names)
        ((_, loaded),) = self._of_large([manifest], lambda _, columns: columns.at_rows(rows, names), self._keep)
        return loaded

    def _live_parts(
        self,
        manifests: Sequence[ManifestFile],
        names: Names,
        value: Callable[[EntryColumns], T],
        *,
        whole: bool = True,
        keeps: Keeps | None = None,
    ) -> list[tuple[Places, T]]:
        numbers = {manifest.file_name: number for number, manifest in enumerate(manifests)}

        def read(wanted: Names) -> Iterator[EntryColumns]:
            def selected(manifest: ManifestFile, columns: EntryColumns) -> EntryColumns:
                kept = columns if keeps is None else columns.take(np.flatnonzero(keeps(columns)))
                names = wanted(kept)
                if ROW not in names:
                    # Of most manifests a predicate keeps nothing.
                    return kept.select(names) if keeps is None or len(kept) else _no_entries(tuple(names))
                few = kept.select([name for name in names if name not in (MANIFEST, ROW)]).table
                number = places_array(np.full(len(few), numbers[manifest.file_name]))
                return EntryColumns(few.append_column(MANIFEST, number).append_column(ROW, places_array(columns.stored_rows())))

            return self._each(manifests, selected, lambda one, entries: selected(one, EntryObjects(entries)))

        may_delete = any(manifest.num_deleted for manifest in manifests)
        return live_parts(read, names, value, may_delete=may_delete, whole=whole)

    def kept_columns(self, manifest_list: str, names: Sequence[str]) -> EntryColumns:
        """The columns ``names`` of the files that the manifests of a list add, and do not delete again, in no order.
        Memory: as :meth:`live_columns`."""
        manifests = self.read_list(manifest_list)
        if not any(map(_is_large, manifests)):
            few = live_entries((self.read_manifest(manifest.file_name) for manifest in manifests), whole=False)
            return EntryColumns.of(few.values(), names)
        parts = self._live_parts(manifests, lambda _: names, lambda part: part.select(names), whole=False)
        return EntryColumns.concat([EntryColumns.of((), names), *(part for _, part in parts)])

    def added_columns(self, manifest_list: str, names: Sequence[str]) -> EntryColumns:
        """The columns ``names`` of all files that the manifests of a list add. Memory: as :meth:`live_columns`."""
        columns = ("kind", *(name for name in names if name != "kind"))
        parts = self._selected(self.read_list(manifest_list), columns)
        entries = EntryColumns.concat([EntryColumns.of((), columns), *parts])
        return entries.select(names).take(np.flatnonzero(entries.numbers("kind") == EntryKind.ADD))

    def live_in(self, snapshot: Snapshot | None, wanted: Callable[[tuple[bytes, int]], bool]) -> list[ManifestEntry]:
        """The live files of a snapshot in the partitions and buckets that ``wanted`` is true for."""
        return self._live_where(
            snapshot, lambda columns: columns.in_places(wanted), lambda entry: wanted((entry.partition, entry.bucket))
        )

    def live_named(self, snapshot: Snapshot | None, names: Collection[str]) -> list[ManifestEntry]:
        """The live files of a snapshot of these names."""
        return self._live_where(
            snapshot, lambda columns: columns.is_in("file_name", names), lambda entry: entry.file.file_name in names
        )

    def _live_where(self, snapshot: Snapshot | None, keeps: Keeps, wanted: Callable[[ManifestEntry], bool]) -> list[ManifestEntry]:
        manifests = () if snapshot is None else self.all_manifests(snapshot)
        if not any(map(_is_large, manifests)):
            return list(filter(wanted, self.live_of(manifests).values()))
        return list(live_entries(filter(wanted, group) for group in self.matching(manifests, keeps)).values())

    def _selected(self, manifests: Sequence[ManifestFile], names: Sequence[str]) -> Iterator[EntryColumns]:
        """The columns ``names`` of each manifest."""
        return self._each(manifests, lambda _, columns: columns.select(names), lambda _, entries: EntryColumns.of(entries, names))

    def _open_sidecar(self, manifest: ManifestFile) -> SidecarFile:
        name, count = manifest.file_name, _entry_count(manifest)
        disk = self._decoded.disk
        if disk is not None and (kept := disk.get(self._describe(name))) is not None:
            with suppress(FormatError):
                return open_sidecar(kept, name, count)
        return open_sidecar(self._files.read(manifest_path(sidecar_name(name))), name, count)

    def _read_entries(self, name: str, places: RecordPlaces) -> tuple[ManifestEntry, ...]:
        """Some entries of a manifest, of which no more is decoded than their blocks, and no more read if these can be checked."""
        place = self._describe(name)
        if places.digests is not None and (blocks := self._read_blocks(name, places.digests, places.blocks)) is not None:
            data, starts = blocks
            return entries_at(data, RecordPlaces(starts, places.offsets), place)
        data = self._read(name)
        if not self._decoded.verified.get(place):
            verify_content_name(place, data)
            self._decoded.verified.put(place, True)
        return entries_at(data, places, place)

    def _read_blocks(self, name: str, digests: BlockDigests, blocks: Places) -> tuple[bytes, Places] | None:
        """A file of some blocks of a manifest, and where they begin in it; None if they are not what was sealed."""
        # What a disk refuses is told when the manifest is read whole.
        with suppress(OSError), self._files.open_input(manifest_path(name)) as file:

            def read(start: int, end: int) -> bytes:
                file.seek(start)
                return file.read(end - start)

            return digests.read(read, blocks)
        return None

    def _keep(self, manifest: ManifestFile, entries: EntryColumns) -> None:
        """Keep the columns of a manifest without a sidecar: on this machine, where plans read those that they need, else in
        memory."""
        place = self._describe(manifest.file_name)
        if not self._keep_on_disk(manifest.file_name, place, entries):
            self._decoded.columns.put(place, entries)

    def _keep_on_disk(self, name: str, place: str, entries: EntryColumns) -> bool:
        if self._decoded.disk is None or len(entries) < FEWEST_ENTRIES or self._bounds is None:
            return False
        sidecar = encode_sidecar(entries, name, self._bounds(entries))
        return sidecar is not None and self._decoded.disk.put(place, sidecar)

    # -- writing

    def write_manifests(self, entries: Sequence[ManifestEntry], written: WrittenMetadata) -> tuple[ManifestFile, ...]:
        """Write entries as one or more manifest files and describe them for a list. Many are put in the order of their partitions
        and buckets: what a plan reads of them lies side by side then. In a bucket their order stays."""
        if isinstance(entries, EncodedEntries):
            parts = enumerate(entries.parts(MANIFEST_BYTES))
            return tuple(self.write_records(columns, records, number, written) for number, (columns, records) in parts)
        if len(entries) >= FEWEST_ENTRIES:
            entries = sorted(entries, key=attrgetter("partition", "bucket"))
        return tuple(self._write_manifest(part, number, written) for number, part in enumerate(_parts(entries)))

    def read_records(self, name: str) -> tuple[EntryColumns, pa.Array]:
        """The entries of a manifest as columns, and as the records that they are stored as. Neither is kept."""
        return decode_with_records(self._describe(name), self._read(name))

    def read_records_of(self, names: Sequence[str]) -> list[tuple[EntryColumns, pa.Array]]:
        """:meth:`read_records` of some manifests, which are decoded side by side where they can be."""
        return decode_all_with_records([(self._describe(name), self._read(name)) for name in names])

    def write_records(self, entries: EntryColumns, records: pa.Array, number: int, written: WrittenMetadata) -> ManifestFile:
        """Write a manifest of records of :meth:`read_records`, at once; ``entries``: the same as columns."""
        data = encode_records(records, self._ids.nonce(), codec=self._codec)
        entries.records = places_of_records(data, records)
        name = manifest_name(data, number)
        self._write(name, data, written)
        self._write_sidecar(entries, name, written)
        self.flush(written)
        return summarise_columns(entries, name, len(data), self._partition_types)

    def has_sidecar(self, manifest: ManifestFile) -> bool:
        """True if a manifest has a whole sidecar of this version, which is read for that, or is too small for one."""
        name, count = manifest.file_name, _entry_count(manifest)
        if count < FEWEST_ENTRIES:
            return True
        with suppress(FormatError, NotFoundError):
            open_sidecar(self._files.read(manifest_path(sidecar_name(name))), name, count)
            return True
        return False

    def is_full(self, manifest: ManifestFile) -> bool:
        """True if a manifest holds about as much as one may, so that there is nothing to be won by merging it with others. Of a
        large one no entry is decoded."""
        enough = MANIFEST_BYTES // 3
        if manifest.file_size > enough or _entry_count(manifest) * LEAST_ENTRY_BYTES > enough:
            return True
        if _is_large(manifest) and self._decoded.manifests.get(self._describe(manifest.file_name)) is None:
            return record_bytes(self._read(manifest.file_name), self._describe(manifest.file_name)) > enough
        return sum(map(entry_bytes, self.read_manifest(manifest.file_name))) > enough

    def write_list(self, manifests: Sequence[ManifestFile], number: int, written: WrittenMetadata) -> tuple[str, int]:
        """Write a manifest list; returns its name and size in bytes."""
        data = encode_manifest_list(manifests, self._ids.nonce(), codec=self._codec)
        name = manifest_list_name(data, number)
        self._write(name, data, written)
        self._decoded.lists.put(self._describe(name), tuple(manifests))
        return name, len(data)

    def write_index(self, entries: Sequence[IndexEntry], written: WrittenMetadata) -> str:
        """Write the complete list of a snapshot's index files; returns its name."""
        data = encode_index_manifest(entries, self._ids.nonce(), codec=self._codec)
        name = index_manifest_name(data, 0)
        self._write(name, data, written)
        return name

    def remove(self, written: WrittenMetadata) -> None:
        """Remove the files that a lost attempt wrote."""
        written.pending.clear()
        for name in written.names:
            self._files.delete(manifest_path(name))
        for name in written.index_names:
            self._files.delete(index_path(name))
        written.names.clear()
        written.index_names.clear()

    def flush(self, written: WrittenMetadata) -> None:
        """Write the pending files, all at once. Their names become durable with :meth:`sync`."""
        pending, written.pending = written.pending, {}
        self._files.write_all(pending)

    def sync(self) -> None:
        """Make the names of written metadata durable, before a snapshot refers to them."""
        self._files.sync(MANIFEST_DIR)

    def _write_manifest(self, entries: Sequence[ManifestEntry], number: int, written: WrittenMetadata) -> ManifestFile:
        data = encode_manifest(entries, self._ids.nonce(), codec=self._codec)
        name = manifest_name(data, number)
        self._write(name, data, written)
        if len(entries) >= FEWEST_ENTRIES:
            self._write_sidecar(next(decode_manifests([(name, data)])), name, written)
        self._decoded.manifests.put(self._describe(name), tuple(entries))
        return summarise(entries, name, len(data), self._partition_types)

    def _write_sidecar(self, entries: EntryColumns, manifest: str, written: WrittenMetadata) -> None:
        if len(entries) < FEWEST_ENTRIES or self._bounds is None:
            return
        if (sidecar := encode_sidecar(entries, manifest, self._bounds(entries))) is not None:
            self._write(sidecar_name(manifest), sidecar, written)

    def _write(self, name: str, data: bytes, written: WrittenMetadata) -> None:
        written.names.append(name)
        written.pending[manifest_path(name)] = data

    def _read(self, name: str) -> bytes:
        try:
            return self._files.read(manifest_path(name))
        except NotFoundError as error:
            raise NotFoundError(
                f"{self._describe(name)} is gone: the snapshot that names it has expired, or a file was removed by hand; "
                "read a retained snapshot",
                kind="metadata-gone",
            ) from error

    def _describe(self, name: str) -> str:
        return f"{self._files.root_uri}/{manifest_path(name)}"


class _Behind:
    """Hands each of some manifests to another thread, in their order, while its caller decodes the next ones. Most of
    it is work of Arrow, which two threads do at once. An error comes out of a later call, or at the end.

    Memory: the columns of :data:`_MOST_WAITING` manifests.
    """

    def __init__(self, act: Callable[[ManifestFile, EntryColumns], None]) -> None:
        self._act, self._threads = act, ExitStack()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()

    def do(self, manifest: ManifestFile, entries: EntryColumns) -> None:
        """Have it done, and wait while too many are due."""
        if self._pool is None:
            self._pool = self._threads.enter_context(ThreadPoolExecutor(1))
        while len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(self._act, manifest, entries))

    def __enter__(self) -> "_Behind":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        with self._threads:
            while self._waiting and error is None:
                self._waiting.popleft().result()


@lru_cache(maxsize=64)
def _no_entries(names: tuple[str, ...]) -> EntryColumns:
    return _NO_BOUNDS.select(names)


def _may_have_sidecar(manifest: ManifestFile) -> bool:
    return _entry_count(manifest) >= FEWEST_ENTRIES


def _is_large(manifest: ManifestFile) -> bool:
    return _entry_count(manifest) > _FEW_ENTRIES


def _is_bare(manifest: ManifestFile) -> bool:
    """True for a large manifest that is too small for a sidecar."""
    return _is_large(manifest) and not _may_have_sidecar(manifest)


def _first(manifests: Iterable[ManifestFile], entries: int) -> Iterator[ManifestFile]:
    """The first manifests, until they have so many entries."""
    for manifest in manifests:
        yield manifest
        entries -= _entry_count(manifest)
        if entries <= 0:
            return


def _parts(entries: Sequence[ManifestEntry]) -> Iterator[Sequence[ManifestEntry]]:
    """The entries in order, in parts of about :data:`MANIFEST_BYTES` and at most an eighth more; a larger entry alone."""
    sizes = list(map(entry_bytes, entries))
    start = size = 0
    left = sum(sizes)
    for place, weight in enumerate(sizes):
        # A small rest would be a manifest without a sidecar.
        if place > start and size + weight > MANIFEST_BYTES and size + left > MANIFEST_BYTES + MANIFEST_BYTES // 8:
            yield entries[start:place]
            start, size = place, 0
        size, left = size + weight, left - weight
    if start < len(entries):
        yield entries[start:]


def metadata_names(manifests: Iterable[ManifestFile]) -> Iterator[str]:
    """The names of manifests and of the sidecars that they may have."""
    for manifest in manifests:
        yield manifest.file_name
        if _may_have_sidecar(manifest):
            yield sidecar_name(manifest.file_name)


def _entry_count(manifest: ManifestFile) -> int:
    return manifest.num_added + manifest.num_deleted


def _entries_of(fold: Fold) -> int:
    return sum(map(len, fold))


def _entries_bytes(entries: tuple[ManifestEntry, ...]) -> int:
    return sum(map(entry_bytes, entries)) + _OBJECT_BYTES * len(entries)


def _list_bytes(manifests: tuple[ManifestFile, ...]) -> int:
    stats = [manifest.partition_stats for manifest in manifests]
    return _OBJECT_BYTES * len(manifests) + sum(len(bounds.min_values) + len(bounds.max_values) for bounds in stats)


def max_sequence_number(entries: Iterable[ManifestEntry]) -> int:
    """The greatest sequence number in the files of these entries, -1 for none."""
    if isinstance(entries, EncodedEntries):
        return entries.max_sequence_number
    return max(map(attrgetter("file.max_sequence_number"), entries), default=-1)
