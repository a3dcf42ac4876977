"""Everything that one open table consists of, wired together.

A context is bound to one schema: what a handle read when it was opened. It can be made again from plain values
(:class:`TableSpec`), which is how tasks on other processes get theirs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.clock import Clock, SystemClock
from tablestore.errors import NotFoundError, StorageError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import WRITER_VERSION, Snapshot
from tablestore.ids import Ids, SystemIds
from tablestore.io.filestore import FileStore
from tablestore.lsm.bucketmap import BucketMap
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.write.missingcolumns import Path
from tablestore.lsm.write.writebuffer import AssignBuckets
from tablestore.store.changes.changeplan import ChangeRule, change_rule
from tablestore.store.commit.committer import CommitSettings, Committer, Revise
from tablestore.store.commit.conflict import TABLE_UUID_OPTION, check_is_same
from tablestore.store.datapaths import DataPaths, entry_path
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.indexfiles import IndexFiles
from tablestore.store.manifests import Manifests
from tablestore.store.message import KeptColumns
from tablestore.store.producer import INPUT, ChangelogSettings, changelog_settings
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.schemas import FieldsById, Schemas
from tablestore.store.sequence import HEADROOM, SequenceNumbers
from tablestore.store.settings import TableSettings, check_writable, table_settings
from tablestore.store.snapshots import Snapshots
from tablestore.store.write.datawriter import DataWriter, rewrite_with_sequence
from tablestore.store.write.dynamicbuckets import Assigner, DynamicCommit, HashIndex
from tablestore.store.write.keepcolumns import KeepCommit, Keeper
from tablestore.types.datatypes import Field
from tablestore.types.filter.predicate import Predicate
from tablestore.types.schema import TableSchema

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContext:
    """One table, at one schema."""

    files: FileStore
    schema: TableSchema
    settings: TableSettings
    schemas: Schemas
    snapshots: Snapshots
    manifests: Manifests
    sequence: SequenceNumbers
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, make: Callable[["TableContext"], T]) -> T:
        """What ``make`` reads out of this context's schema, worked out at the first call and kept: the schema never changes."""
        if make not in self._known:
            self._known[make] = make(self)
        found: T = self._known[make]
        return found

    def check_writable(self, *, new_rows: bool = True) -> None:
        """Refuse to write what others would read wrong, see :func:`~tablestore.store.settings.check_writable`."""
        self.once(_check_writable if new_rows else _check_compactable)

    @property
    def changelog_settings(self) -> ChangelogSettings:
        """What the options say about the changelog."""
        return self.once(_changelog_settings)

    @property
    def change_rule(self) -> ChangeRule:
        """How the changes of its snapshots are found."""
        return self.once(_change_rule)

    @property
    def table_uuid(self) -> str | None:
        """The identity that a table of ours got when it was created; None for foreign ones."""
        return self.schema.options.get(TABLE_UUID_OPTION)

    def check_is_there(self) -> None:
        """Raise NotFoundError if the table was dropped, ConflictError if another one is in its place: its files have other columns.

        To be asked after the newest snapshot was looked at. Costs nothing while what is seen goes on from what was seen before.
        """
        seen = self.snapshots.histories
        if self._known.get("history") != seen:
            check_is_same(self.table_uuid, Schemas(self.files).latest(), table=self.files.root_uri)
            self._known["history"] = seen

    @property
    def paths(self) -> DataPaths:
        """Where its data files lie."""
        return DataPaths(self.schema, self.settings)

    def at_schema(self, schema: TableSchema) -> "TableContext":
        """The same table seen through another of its schemas."""
        if schema == self.schema:
            return self
        return replace(self, schema=schema, settings=table_settings(schema))

    def reader(self, columns: tuple[str, ...], predicate: Predicate | None) -> SplitReader:
        """A reader of splits."""
        return SplitReader(
            files=self.files,
            schema=self.schema,
            settings=self.settings,
            columns=columns,
            predicate=predicate,
            schema_of=self.schemas.read,
            bounds=self.settings.bounds,
        )

    @property
    def index_files(self) -> IndexFiles:
        """Where its index files lie."""
        return IndexFiles(self.files, self.ids)

    def deletion_vectors(self, snapshot: Snapshot) -> DeletionVectors:
        """The deletion vectors of a snapshot."""
        return DeletionVectors(self.index_files, self.manifests.read_index(snapshot))

    def data_writer(
        self,
        first_sequence: int,
        *,
        assign: AssignBuckets | None = None,
        replaces: bool = False,
        changelog: bool = True,
        keeper: Keeper | None = None,
        own_before: Sequence[ManifestEntry] = (),
    ) -> DataWriter:
        """A writer of data files. Raises UnsupportedError for tables that are only read.

        ``replaces``: its rows take the place of what their partitions hold, which is no change that a changelog tells. ``assign``
        gives the buckets of a table with dynamic ones in another way than by its hash indexes. ``changelog`` False: the rows were
        written before, and their changelog with them. ``keeper`` looks up what rows lack elsewhere than in the newest snapshot;
        ``own_before`` as in :class:`DataWriter`.
        """
        self.check_writable()
        if self.settings.dynamic_buckets is not None and assign is None:
            load = _no_buckets if replaces else self._buckets_now
            assign = Assigner(self.schema, self.settings.dynamic_buckets, load)
        return DataWriter(
            files=self.files,
            schema=self.schema,
            settings=self.settings,
            clock=self.clock,
            ids=self.ids,
            first_sequence=first_sequence,
            assign=assign,
            changelog=self.settings.tracking if changelog and not replaces and self.changelog_settings.producer == INPUT else None,
            keeper=keeper or self._keeper(None),
            own_before=own_before,
        )

    def keep_commit(self, kept: tuple[KeptColumns, ...], move: Revise | None) -> KeepCommit:
        """What a commit has to do about files for which something was looked up; ``move`` gives own files other buckets before."""
        return KeepCommit(
            reader=self.reader((), None),
            snapshots=self.snapshots,
            manifests=self.manifests,
            first_sequence=lambda latest, attempt: self.sequence.next_after(latest) + HEADROOM * (attempt + 1),
            rewrite=self._keep_again,
            kept=kept,
            move=move,
        )

    def _keeper(self, pinned: Snapshot | None) -> Keeper:
        return Keeper(
            reader=self.reader((), None),
            snapshots=self.snapshots,
            manifests=self.manifests,
            vectors_of=self.deletion_vectors,
            pinned=pinned,
        )

    def dynamic_commit(self, replaces: Callable[[bytes], bool] | None = None) -> DynamicCommit | None:
        """What a commit has to plan if the table's buckets are dynamic; ``replaces``: the partitions that it replaces."""
        if self.settings.dynamic_buckets is None:
            return None
        return DynamicCommit(
            reader=self.reader((), None),
            policy=self.settings.dynamic_buckets,
            index_of=self._hash_index,
            first_sequence=lambda latest, attempt: self.sequence.next_after(latest) + HEADROOM * (attempt + 1),
            rewrite=self._write_again,
            replaces=replaces,
        )

    def committer(self) -> Committer:
        """The one that publishes snapshots."""
        return Committer(
            files=self.files,
            schemas=self.schemas,
            snapshots=self.snapshots,
            manifests=self.manifests,
            sequence=self.sequence,
            clock=self.clock,
            ids=self.ids,
            settings=CommitSettings(
                timeout_s=self.settings.commit_timeout_s,
                orphan_age_s=self.settings.orphan_age_s,
                tombstone_retention_ms=self.settings.tombstone_retention_ms,
                merge_policy=self.settings.manifest_merge,
                tracking=self.settings.tracking,
                writer_version=WRITER_VERSION,
            ),
            is_keyed=self.schema.is_keyed,
            in_frame=self.change_rule.in_frame,
            keys=KeyOrder.of(self.schema.key_fields),
            rewrite=self._rewrite,
            remove_file=self.remove_file,
            has_file=lambda entry: self.files.exists(entry_path(self.paths, entry, self.schema)),
        )

    def remove_file(self, entry: ManifestEntry) -> None:
        """Remove the data file of an own entry that was not committed."""
        self.files.delete(entry_path(self.paths, entry, self.schema))

    def fields_by_schema(self) -> Mapping[int, tuple[Field, ...]]:
        """The columns of every schema of the table, by schema id."""
        return FieldsById(self.schemas)

    def _hash_index(self, snapshot: Snapshot | None) -> HashIndex:
        return HashIndex.of(self.index_files, self.manifests.read_index(snapshot) if snapshot else ())

    def _buckets_now(self, partition: bytes) -> BucketMap:
        while True:
            latest = self.snapshots.latest()
            try:
                return self._hash_index(latest).partition(partition)
            except NotFoundError:
                # It expired while it was read, which takes a newer one; else a file is missing.
                if not self.snapshots.has_moved_on(latest):
                    raise

    def _write_again(
        self, first_sequence: int, assigner: Assigner, rows: Iterator[tuple[pa.Table, pa.Array]]
    ) -> tuple[ManifestEntry, ...]:
        writer = self.data_writer(first_sequence, assign=assigner, changelog=False)
        try:
            for part, kinds in rows:
                writer.write(part, kinds)
            return writer.finish()
        except BaseException:
            with suppress(StorageError):
                writer.abort()
            raise

    def _keep_again(
        self,
        first_sequence: int,
        bucket: tuple[bytes, int],
        snapshot: Snapshot | None,
        own_before: Sequence[ManifestEntry],
        rows: Iterator[tuple[pa.Table, pa.Array, tuple[Path, ...]]],
    ) -> tuple[tuple[ManifestEntry, ...], tuple[KeptColumns, ...]]:
        def stay(part: pa.Table, _partitions: object, _partition_of: object) -> npt.NDArray[np.int32]:
            return np.full(part.num_rows, bucket[1], dtype=np.int32)

        keeper = self._keeper(snapshot)
        writer = self.data_writer(
            first_sequence,
            # Where buckets are fixed, the key gives the same one again.
            assign=stay if self.settings.dynamic_buckets is not None else None,
            changelog=False,
            keeper=keeper,
            own_before=own_before,
        )
        try:
            for part, kinds, lacks in rows:
                writer.write(part, kinds, lacks=lacks)
            return writer.finish(), writer.take_kept()
        except BaseException:
            with suppress(StorageError):
                writer.abort()
            raise

    def _rewrite(self, entry: ManifestEntry, number: int) -> DataFileMeta:
        partition = decode_row(entry.partition, [f.type for f in self.schema.partition_fields])
        return rewrite_with_sequence(self.files, self.paths, entry, number, ids=self.ids, partition=partition)


def open_context(
    files: FileStore, *, clock: Clock | None = None, ids: Ids | None = None, schema: TableSchema | None = None
) -> TableContext:
    """Open the table in ``files`` (rooted at its directory) at its newest schema.

    Raises NotFoundError if there is no table, FormatError or UnsupportedError if it cannot be understood.
    """
    ids = ids or SystemIds()
    schemas = Schemas(files)
    schema = schema or schemas.latest()
    snapshots = Snapshots(files)
    manifests = Manifests(files, ids, [f.type for f in schema.partition_fields])
    return TableContext(
        files=files,
        schema=schema,
        settings=table_settings(schema),
        schemas=schemas,
        snapshots=snapshots,
        manifests=manifests,
        sequence=SequenceNumbers(snapshots, manifests, KeyOrder.of(schema.key_fields)),
        clock=clock or SystemClock(),
        ids=ids,
    )


def _check_writable(context: TableContext) -> None:
    check_writable(context.schema, context.settings, context.files.root_uri)


def _check_compactable(context: TableContext) -> None:
    check_writable(context.schema, context.settings, context.files.root_uri, new_rows=False)


def _changelog_settings(context: TableContext) -> ChangelogSettings:
    return changelog_settings(context.schema.options)


def _change_rule(context: TableContext) -> ChangeRule:
    return change_rule(context.schema, context.settings)


def _no_buckets(_partition: bytes) -> BucketMap:
    return BucketMap()
