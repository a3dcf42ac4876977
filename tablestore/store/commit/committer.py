"""The commit loop: publishes commit messages as the next snapshot, round after round until one lands.

    each round:   read latest -> filter replays -> check the table -> plan deletes -> renumber -> check the delta
                  -> write metadata -> publish
                  LANDED       write hint and mark, return
                  LOST, DEAD   remove this attempt's metadata, next round

A round decides on the newest snapshot only, and only data files outlive it. A compaction whose inputs are gone raises StalePlan,
and its files are removed. ``commit.timeout`` bounds the rounds, not a count. The decisions lie in modules of their own:
`replay`, `conflict`, `sequence`, `metadata`, `outcome`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter

from tablestore.clock import Clock
from tablestore.errors import (
    CommitOutcomeUnknown,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
)
from tablestore.format.manifest.encodedentries import each_place, files_and_bytes, joined, names_of, rows_in
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.paths import index_path
from tablestore.format.snapshot import BATCH_IDENTIFIER, ROW_CHANGE_PROPERTY, CommitKind, Snapshot
from tablestore.format.writecounts import COUNTS_PROPERTY, NO_ROWS, RowCounts, encode_counts
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.lsm.keyorder import KeyOrder
from tablestore.options import BUCKET
from tablestore.store.commit.changecount import keyed_rows, overwritten_rows, unkeyed_rows
from tablestore.store.commit.conflict import (
    changed_index,
    check_buckets,
    check_deletes,
    check_levels,
    check_own_delta,
    check_table,
    check_vectors,
)
from tablestore.store.commit.deduplication import LANDINGS_PROPERTY, CommitDeduplication, digest_of, encode_noted_commits
from tablestore.store.commit.metadata import merged_base
from tablestore.store.commit.outcome import Outcome, SnapshotPublisher
from tablestore.store.commit.rowcount import count_change, count_keyed, count_unkeyed, keep_count
from tablestore.store.commit.snapshotcommit import ServiceCommit, SnapshotCommit
from tablestore.store.history.references import BranchMetadata
from tablestore.store.manifests import Manifests, WrittenMetadata, max_sequence_number
from tablestore.store.message import CommitMessage, Revise
from tablestore.store.postcommit import PostCommitTask, attempt
from tablestore.store.replay import MARKS_PROPERTY, SOURCE_POSITION_PROPERTY, Replays, encode_marks, marks_of, raised_marks
from tablestore.store.schemas import Schemas, table_uuid_of
from tablestore.store.sequence import (
    NEXT_SEQUENCE_PROPERTY,
    Rewrite,
    SequenceNumbers,
    is_base,
    pick_lower,
    pick_outdated,
    renumber,
)
from tablestore.store.settings import MergePolicy
from tablestore.store.snapshots import CONTENT_PREFIX, LOG_OFFSETS_PROPERTY, PARENT_PROPERTY, Snapshots
from tablestore.store.tombstones import SEQUENCE_TIMES_PROPERTY, noted_times
from tablestore.store.tracking import Tracking
from tablestore.telemetry.tracing import Tracer, traced
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema

FIRST_WAIT_S = 0.005
LONGEST_WAIT_S = 0.5

ReplaceManifests = Callable[[Sequence[ManifestFile]], Sequence[ManifestFile]]
PlanDeletes = Callable[[Snapshot | None], Sequence[ManifestEntry]]
"""The DELETE entries of a commit, planned on the newest snapshot. May raise StalePlan."""

Guard = Callable[[Snapshot | None], None]
"""Looks at the newest snapshot before a commit lands on it. Raises ConflictError where it must not."""

PlanIndex = Callable[[Snapshot | None, Sequence[ManifestEntry]], Sequence[IndexEntry]]
"""Index files to add and to delete, planned on the newest snapshot and the DELETE entries. May raise StalePlan. What it writes
is taken back with the round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSettings:
    """The commit options of a table. ``shows_new_rows``: readers see rows before a compaction has taken them up.
    ``takes_up_new_rows``: the writer that commits them compacts them."""

    timeout_s: float = 600.0
    orphan_age_s: float = 86_400.0
    tombstone_retention_ms: int | None = None
    shows_new_rows: bool = True
    takes_up_new_rows: bool = True
    merge_policy: MergePolicy = field(default_factory=MergePolicy)
    tracking: Tracking
    writer_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """One logical commit.

    ``identifier`` None: only the snapshot's uuid identifies it. ``is_new_user``: no commit of ``user`` had an identifier before.
    ``prepared``: its message has crossed processes, so it may have landed before. ``plan_deletes``, ``plan_index`` and ``revise``
    are called in every round, and so is ``guard`` before them. ``replace_manifests`` gives the base list, instead of a merge of
    small manifests. ``adds_no_row``, and what ``count_replaced`` gives behind ``revise``: see `rowcount`. ``rows``: those that it
    inserts, updates and deletes, where the commit cannot tell or somebody knows more; see `changecount`. ``statistics`` names a
    file that is there.
    """

    user: str
    identifier: int | None = None
    is_new_user: bool = False
    kind: CommitKind = CommitKind.APPEND
    operation: str | None = None
    message: CommitMessage
    prepared: bool = False
    guard: Guard | None = None
    plan_deletes: PlanDeletes | None = None
    plan_index: PlanIndex | None = None
    revise: Revise | None = None
    replaces_everything_it_meets: bool = False
    adds_no_row: bool = False
    count_replaced: Callable[[], int | None] = lambda: None
    rows: RowCounts | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    allow_empty: bool = False
    replace_manifests: ReplaceManifests | None = None
    statistics: str | None = None

    @property
    def leaves_traces(self) -> bool:
        """True if an earlier landing of its message is to be looked for: it has files, or deletes those of others."""
        return self.prepared and (bool(self.message.new_files) or self.plan_deletes is not None)


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a request. ``snapshot`` None: there was nothing to publish, or the snapshot of a replay has expired.
    ``is_replay``: it had landed before, and nothing was done. ``entries``: the new files that landed now, which may lie in other
    buckets than those of the request. ``schema``: the table's newest when it landed now. ``wrote_large_manifest``: of its own
    files, or by a merge of small ones."""

    snapshot: Snapshot | None
    is_replay: bool = False
    entries: Sequence[ManifestEntry] = ()
    schema: TableSchema | None = None
    wrote_large_manifest: bool = False


@dataclass(slots=True)
class _OwnFiles:
    """The commit's message; a round may replace its entries. ``retired``: files of the request's message that were replaced."""

    message: CommitMessage
    retired: list[ManifestEntry] = field(default_factory=list)

    def private(self, request: "CommitRequest") -> list[ManifestEntry]:
        """The files that only this commit knows of."""
        shared = set(request.message.new_names)
        return [entry for entry in self.message.new_files if entry.file.file_name not in shared]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delta:
    """The changes that one round is about to publish. ``index`` None: the index files stay as they were, ``index_before``."""

    deletes: tuple[ManifestEntry, ...]
    message: CommitMessage
    index: tuple[IndexEntry, ...] | None
    index_before: tuple[IndexEntry, ...]

    @property
    def entries(self) -> Sequence[ManifestEntry]:
        """The entries in stored order: deletes go first, so that a file that moves to another level is not deleted after it
        was added."""
        return joined((self.deletes, self.message.entries, self.message.compact_after))

    def files(self) -> tuple[Sequence[ManifestEntry], Sequence[ManifestEntry]]:
        """The files that the table gets and those that it gives up, without those that only move to another level."""
        message = self.message
        if not message.compact_after:
            return message.entries, self.deletes
        after = {entry.file.file_name for entry in message.compact_after}
        return (*message.entries, *message.rewritten), [entry for entry in self.deletes if entry.file.file_name not in after]

    def visible(self, kind: CommitKind, in_frame: Callable[[int], bool]) -> Iterable[ManifestEntry]:
        """Entries of all buckets whose changes readers see: of a compaction, those it brings into the frame (see ``producer``)."""
        if kind is not CommitKind.COMPACT:
            return each_place(self.entries)
        return (e for e in self.message.compact_before if e.bucket == POSTPONE_BUCKET or not in_frame(e.file.level))

    @property
    def marks(self) -> Sequence[ManifestEntry]:
        """The entries by which a landed commit is recognised: upgraded files were there before."""
        return joined((self.deletes, self.message.entries, self.message.rewritten))

    @property
    def is_empty(self) -> bool:
        """True if it changes nothing."""
        return not self.entries and not self.message.changelog and self.index is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Commits to one table. ``rewrite`` and ``remove_file`` act on data files of the commit; ``in_frame``: whether the changes of
    files at a level were published (see ``producer``). ``service``: the one that publishes, which writes the hint, and tells who
    has lost so when its next attempt is waited for."""

    branch: BranchMetadata
    publishing: SnapshotCommit
    service: ServiceCommit | None = None
    schemas: Schemas
    snapshots: Snapshots
    manifests: Manifests
    sequence: SequenceNumbers
    clock: Clock
    ids: Ids
    settings: CommitSettings
    is_keyed: bool
    in_frame: Callable[[int], bool]
    keys: KeyOrder
    rewrite: Rewrite
    remove_file: Callable[[ManifestEntry], None]
    has_file: Callable[[ManifestEntry], bool]
    tracer: Tracer | None = None

    @property
    def files(self) -> FileStore:
        """The table's files as its branch sees them."""
        return self.branch.files

    @property
    def landings(self) -> CommitDeduplication:
        """The messages that have landed."""
        return CommitDeduplication(branch=self.branch, snapshots=self.snapshots, manifests=self.manifests, has_file=self.has_file)

    def commit(self, request: CommitRequest) -> Snapshot | None:
        """Commits as :meth:`commit_once`; returns the snapshot alone."""
        return self.commit_once(request).snapshot

    def commit_once(self, request: CommitRequest) -> Committed:
        """Publish ``request``, unless it has landed before: by its user and identifier, or by its ``prepared`` message.

        Raises ConflictError, CommitOutcomeUnknown, StorageError; on the first and the last nothing of the request is visible.
        """
        files = _OwnFiles(request.message)
        try:
            with traced(self.tracer, "commit", self.files.root_uri) as span:
                committed = self._rounds(request, files)
                if self.tracer is not None and committed.snapshot is not None and not committed.is_replay:
                    counts = committed.snapshot.counts
                    span.record(
                        rows=counts.rows_affected,
                        files=counts.files_added,
                        size_bytes=counts.bytes_added,
                        snapshot_id=committed.snapshot.id,
                    )
                return committed
        except (ConflictError, InvalidInputError):
            # It certainly has not landed, so no snapshot will ever name these files.
            self._discard(request, files)
            raise

    def _rounds(self, request: CommitRequest, files: _OwnFiles) -> Committed:
        replays = Replays(self.files, self.snapshots)
        publisher = SnapshotPublisher(
            files=self.files,
            commit=self.publishing,
            snapshots=self.snapshots,
            manifests=self.manifests,
            clock=self.clock,
            ids=self.ids,
            is_same_table=lambda: self._is_table(request.message.table_uuid),
        )
        uuid = self.ids.uuid()
        deadline_s = self.clock.steady_s() + self.settings.timeout_s
        attempt = 0
        if self.service is not None:
            self.service.await_turn(request.user)
        while True:
            latest = self.snapshots.latest()
            if request.kind is not CommitKind.COMPACT and not (request.is_new_user and request.identifier is None):
                highest = replays.highest(request.user, latest)
                replays.check_identifier(request.user, request.identifier, highest, latest)
                if request.identifier is not None and highest is not None and request.identifier <= highest:
                    self._discard(request, files)
                    return Committed(replays.find(request.user, request.identifier), is_replay=True)
            written = WrittenMetadata()
            try:
                if request.leaves_traces and (landing := self.landings.find(request.message, latest)) is not None:
                    self._remove(files.private(request))
                    return Committed(landing.snapshot, is_replay=True)
                self._check_age(request.message)
                newest = self.schemas.refreshed_latest()
                check_table(
                    request.message,
                    latest=newest,
                    snapshot=latest,
                    read_schema=self.schemas.read,
                    replaces_rows=self.is_keyed or request.plan_deletes is not None or bool(request.message.compact_before),
                    table=self.files.root_uri,
                )
                if request.guard is not None:
                    request.guard(latest)
                if request.prepared:
                    self.landings.check_files(request.message)
                planned = tuple(request.plan_deletes(latest)) if request.plan_deletes else ()
                deletes = (*planned, *request.message.compact_before)
                if not (deletes or _has_changes(files.message) or request.plan_index or request.allow_empty):
                    return Committed(None)
                self._check_bucket_counts(files.message.entries, deletes, latest)
                files.message = replace(files.message, entries=self._revised(request, files, latest, attempt))
                renumbered = self._with_winning_numbers(request, files, latest, attempt)
                files.message = replace(files.message, entries=renumbered)
                delta = self._delta(request, files.message, deletes, latest, written)
                if delta.is_empty and not request.allow_empty:
                    return Committed(None)
                snapshot = self._build(request, delta, latest, uuid, written)
                # Again, because the steps above may have taken hours, and the removal of orphans relies on it.
                self._check_age(request.message)
                outcome = publisher.publish(snapshot, latest, delta.marks, deadline_s=deadline_s)
            except CommitOutcomeUnknown:
                raise
            except NotFoundError:
                # The base of this round may have expired. Then the next round starts from a newer snapshot.
                self._take_back(written)
                if not self.snapshots.has_moved_on(latest):
                    raise
                outcome = Outcome.LOST
            except TablestoreError:
                self._take_back(written)
                raise
            if outcome is Outcome.LANDED:
                self._acknowledge(request, snapshot, replays)
                self._remove(files.retired)
                return Committed(
                    snapshot,
                    entries=files.message.entries,
                    schema=newest,
                    wrote_large_manifest=written.has_large_manifest,
                )
            self._take_back(written)
            attempt += 1
            self._wait(attempt, deadline_s, latest)

    def _with_winning_numbers(
        self, request: CommitRequest, files: _OwnFiles, latest: Snapshot | None, attempt: int
    ) -> Sequence[ManifestEntry]:
        entries, base = files.message.entries, request.message
        if latest is None or not entries:
            return entries
        if not self.is_keyed and self.schemas.option_is_constant(BUCKET.key):
            # Without a key the numbers are in the metadata alone: to give others costs less than to look at all that has landed.
            if request.replaces_everything_it_meets or is_base(latest, base.base_snapshot_id, base.base_snapshot_uuid):
                return entries
            next_sequence = self.sequence.next_after(latest)
            outdated = pick_lower(entries, next_sequence)
        else:
            landed = self.sequence.landed_since(base.base_snapshot_id, base.base_snapshot_uuid, latest)
            if not landed:
                return entries
            check_buckets(each_place(entries), landed, table=self.files.root_uri)
            if request.replaces_everything_it_meets:
                return entries
            outdated = pick_outdated(entries, landed, self.keys.overlap)
            next_sequence = self.sequence.next_after(latest) if outdated else 0
        if not outdated:
            return entries
        renewed = renumber(entries, outdated, next_sequence=next_sequence, attempt=attempt, rewrite=self.rewrite)
        self._retire(request, files, renewed)
        return renewed

    def _revised(self, request: CommitRequest, files: _OwnFiles, latest: Snapshot | None, attempt: int) -> Sequence[ManifestEntry]:
        entries = files.message.entries
        if request.revise is None or not entries:
            return entries
        revised = request.revise(latest, tuple(entries), attempt)
        self._retire(request, files, revised)
        return revised

    def _retire(self, request: CommitRequest, files: _OwnFiles, staying: Sequence[ManifestEntry]) -> None:
        """Remove own files that a rewrite replaced. Files of a prepared message stay until this commit has landed, because another
        process may be committing it too; from then on that one finds the landing."""
        names = {entry.file.file_name for entry in staying}
        shared = {entry.file.file_name for entry in request.message.entries} if request.prepared else set()
        replaced = [entry for entry in files.message.entries if entry.file.file_name not in names]
        files.retired += [entry for entry in replaced if entry.file.file_name in shared]
        self._remove([entry for entry in replaced if entry.file.file_name not in shared])

    def _is_table(self, table_uuid: str | None) -> bool:
        try:
            return table_uuid_of(self.schemas.refreshed_latest()) == table_uuid
        except NotFoundError:
            return False

    def _check_bucket_counts(
        self, new_entries: Sequence[ManifestEntry], deletes: Sequence[ManifestEntry], latest: Snapshot | None
    ) -> None:
        """A partition keeps its bucket count until it is overwritten, whatever the newest schema says."""
        if latest is None or not new_entries or self.schemas.option_is_constant(BUCKET.key):
            return
        new_entries, replaced = tuple(each_place(new_entries)), {entry.identity for entry in deletes}
        partitions = {entry.partition for entry in new_entries}
        live = self.manifests.live_in(latest, lambda place: place[0] in partitions)
        staying = (entry for entry in live if entry.identity not in replaced)
        check_buckets(new_entries, staying, table=self.files.root_uri)

    def _delta(
        self,
        request: CommitRequest,
        message: CommitMessage,
        deletes: tuple[ManifestEntry, ...],
        latest: Snapshot | None,
        written: WrittenMetadata,
    ) -> _Delta:
        """The checked delta of this round. Raises ConflictError, StalePlan among them."""
        table = self.files.root_uri
        index = self.manifests.read_index(latest) if latest else ()
        planned = tuple(request.plan_index(latest, deletes)) if request.plan_index else ()
        written.index_names += [change.file_name for change in planned if change.kind is EntryKind.ADD]
        changes = (*message.index_changes, *planned)
        entries = joined((deletes, message.entries, message.compact_after))
        changed = changed_index(index, changes, entries, keeps_rows=request.kind is CommitKind.COMPACT, table=table)
        delta = _Delta(deletes=deletes, message=message, index=None if changed == index else changed, index_before=index)
        check_own_delta(delta.entries, table=table)
        if deletes or message.compact_after or changes:
            # A file is in conflict with others of its bucket only.
            places = {(entry.partition, entry.bucket) for entry in delta.entries}
            places |= {(change.partition, change.bucket) for change in changes}
            live = self.manifests.live_in(latest, places.__contains__)
            check_vectors(changes, delta.entries, live, table=table)
            check_deletes(deletes, live, latest=latest, table=table)
            if self.is_keyed:
                added = (*message.entries, *message.compact_after)
                check_levels(added, deletes, live, key_of=self.keys, table=table)
        return delta

    def _build(
        self, request: CommitRequest, delta: _Delta, latest: Snapshot | None, uuid: str, written: WrittenMetadata
    ) -> Snapshot:
        parent = self.manifests.all_manifests(latest) if latest else ()
        if request.replace_manifests is not None:
            base = tuple(request.replace_manifests(parent))
        else:
            base = merged_base(parent, self.settings.merge_policy, self.manifests, written)
        base_name, base_size = self.manifests.write_list(base, 0, written)
        delta_manifests = self.manifests.write_manifests(delta.entries, written) if delta.entries else ()
        delta_name, delta_size = self.manifests.write_list(delta_manifests, 1, written)
        changelog = delta.message.changelog
        changelog_name, changelog_size = None, None
        if changelog:
            changelog_name, changelog_size = self.manifests.write_list(
                self.manifests.write_manifests(changelog, written), 2, written
            )
        index_name = latest.index_manifest if latest else None
        if delta.index is not None:
            index_name = self.manifests.write_index(delta.index, written)
        self.manifests.flush(written)
        self.manifests.sync()
        schema_id = max(delta.message.schema_id, latest.schema_id) if latest else delta.message.schema_id
        rows = rows_in(delta.message.entries) + rows_in(delta.message.compact_after) - rows_in(delta.deletes)
        total = ((latest.total_record_count or 0) if latest else 0) + rows
        counts = self._row_count(request, delta, latest, total)
        now_ms = self.clock.now_ms()
        return Snapshot(
            uuid=uuid,
            id=latest.id + 1 if latest else 1,
            schema_id=schema_id,
            base_manifest_list=base_name,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_name,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=changelog_name,
            changelog_manifest_list_size=changelog_size,
            index_manifest=index_name,
            commit_user=request.user,
            writer_version=self.settings.writer_version,
            commit_identifier=BATCH_IDENTIFIER if request.identifier is None else request.identifier,
            commit_kind=request.kind,
            # Ids order snapshots; times must never contradict them, whatever the clocks of two writers say.
            time_millis=max(now_ms, latest.time_millis + 1) if latest else now_ms,
            total_record_count=total,
            delta_record_count=rows,
            changelog_record_count=rows_in(changelog) if changelog else None,
            watermark=latest.watermark if latest else None,
            statistics=request.statistics or (latest.statistics if latest and latest.schema_id == schema_id else None),
            properties={
                **self._properties(request, delta, latest),
                **counts,
                COUNTS_PROPERTY: self._counts(request, delta, latest, counts.get(ROW_CHANGE_PROPERTY)),
            },
            operation=request.operation,
        )

    def _properties(self, request: CommitRequest, delta: _Delta, latest: Snapshot | None) -> dict[str, str]:
        visible = map(attrgetter("partition"), delta.visible(request.kind, self.in_frame))
        properties = {**request.properties, **self.settings.tracking.notes(request.kind, visible)}
        if latest is not None and LOG_OFFSETS_PROPERTY in latest.properties:
            # A lower bound stays one, so commits without an offset of their own copy it.
            properties.setdefault(LOG_OFFSETS_PROPERTY, latest.properties[LOG_OFFSETS_PROPERTY])
        if latest is not None and request.kind.keeps_rows:
            # The notes about the rows' sources stay true while the rows only move.
            carried = {key: value for key, value in latest.properties.items() if key.startswith(CONTENT_PREFIX)}
            properties = {**carried, **properties}
        marks = raised_marks(marks_of(latest.properties) if latest else {}, request.user, request.identifier)
        if latest is not None and latest.uuid is not None:
            # By this a snapshot of the history is told from one that was published late on a freed id.
            properties[PARENT_PROPERTY] = latest.uuid
        # Also when there is none, so that a search for a user's mark ends here.
        properties[MARKS_PROPERTY] = encode_marks(marks)
        landed = self.landings.known(latest)
        if request.leaves_traces:
            landed[digest_of(request.message)] = latest.id + 1 if latest else 1
        if landed:
            properties[LANDINGS_PROPERTY] = encode_noted_commits(landed)
        used = max(map(max_sequence_number, (delta.message.entries, delta.message.changelog))) + 1
        if latest is not None and (retention := self.settings.tombstone_retention_ms) is not None:
            properties[SEQUENCE_TIMES_PROPERTY] = noted_times(latest, now_ms=self.clock.now_ms(), retention_ms=retention)
        properties[NEXT_SEQUENCE_PROPERTY] = str(max(self.sequence.next_after(latest), used))
        return properties

    def _row_count(self, request: CommitRequest, delta: _Delta, latest: Snapshot | None, total: int) -> dict[str, str]:
        if not self.is_keyed:
            return count_unkeyed(latest, total, delta.index_before, delta.index_before if delta.index is None else delta.index)
        new_files = joined((delta.message.entries, delta.message.compact_after))
        if not self.settings.shows_new_rows:
            is_counted = self.settings.takes_up_new_rows and request.kind is CommitKind.APPEND and request.adds_no_row
            return count_change(new_files) if is_counted else {}
        if request.kind.keeps_rows:
            return keep_count(latest)
        return count_keyed(
            latest,
            total,
            new_files,
            self.keys,
            removes_files=bool(delta.deletes),
            adds_no_row=request.adds_no_row,
            replaced=request.count_replaced(),
        )

    def _counts(self, request: CommitRequest, delta: _Delta, latest: Snapshot | None, row_change: str | None) -> str:
        """The counts of its commit that a snapshot keeps, as text."""
        written, change = delta.message.entries, None if row_change is None else int(row_change)
        added, removed = delta.files()
        if request.rows is not None or request.kind.keeps_rows:
            rows = request.rows or NO_ROWS
        elif not self.is_keyed:
            removes = bool(removed) or delta.index is not None
            rows = unkeyed_rows(written, removes=removes, row_change=change, adds_no_row=request.adds_no_row)
        elif request.kind is CommitKind.OVERWRITE:
            rows = overwritten_rows(written, removed, delta.index_before, self.keys, row_change=change)
        else:
            rows = keyed_rows(latest, written, self.keys, row_change=change, adds_no_row=request.adds_no_row)
        return encode_counts(rows, files_and_bytes(added), files_and_bytes(removed))

    def _acknowledge(self, request: CommitRequest, snapshot: Snapshot, replays: Replays) -> None:
        where, identifier = f"snapshot {snapshot.id} of table {self.files.root_uri}", request.identifier
        if identifier is not None:
            # Until the mark is written, the snapshots show a replay; expiry writes it before it removes them.
            position = request.properties.get(SOURCE_POSITION_PROPERTY)
            attempt(PostCommitTask.MARK, lambda: replays.raise_mark(request.user, identifier, position), where=where)
        if self.service is not None:
            return
        # Only a hint: a reader that finds it missing or stale lists the directory.
        with suppress(Exception):
            self.snapshots.write_latest_hint(snapshot.id)

    def _check_age(self, message: CommitMessage) -> None:
        age_s = (self.clock.now_ms() - message.created_millis) / 1000
        if age_s > self.settings.orphan_age_s / 2:
            raise ConflictError(
                f"the files of this commit to {self.files.root_uri} were begun {age_s:.0f} s ago, more than half of the age "
                f"({self.settings.orphan_age_s:.0f} s) at which unreferenced files may be removed: write them again",
                kind="too-old",
            )

    def _wait(self, attempt: int, deadline_s: float, latest: Snapshot | None) -> None:
        if self.clock.steady_s() >= deadline_s:
            raise ConflictError(
                f"lost {attempt} race(s) for a snapshot of table {self.files.root_uri}, the last one on top of "
                f"{latest.id if latest else 0}, and commit.timeout ({self.settings.timeout_s:.0f} s) is over; nothing was "
                "committed: raise commit.timeout or write less often",
                kind="commit-timeout",
            )
        if self.service is not None and attempt == 1:
            return
        longest = min(FIRST_WAIT_S * 2 ** min(attempt, 10), LONGEST_WAIT_S)
        self.clock.sleep(longest * self.ids.fraction())

    # A file that cannot be removed is an orphan and is removed later. It must not hide the error of the commit.

    def _take_back(self, written: WrittenMetadata) -> None:
        with suppress(StorageError):
            self.manifests.remove(written)

    def _discard(self, request: CommitRequest, files: _OwnFiles) -> None:
        """Remove the files of a commit that did not land. Of a prepared message some may have landed, with another commit."""
        new_files, message = joined((files.message.new_files, files.retired)), request.message
        if request.prepared:
            try:
                named = self.landings.named(set(names_of(new_files)) | {change.file_name for change in message.index_changes})
            except TablestoreError:
                return
            new_files = tuple(entry for entry in new_files if entry.file.file_name not in named)
            message = replace(
                message, index_changes=tuple(change for change in message.index_changes if change.file_name not in named)
            )
        self._remove(new_files)
        for change in message.index_changes:
            if change.kind is EntryKind.ADD:
                with suppress(StorageError):
                    self.files.delete(index_path(change.file_name))

    def _remove(self, entries: Sequence[ManifestEntry]) -> None:
        for entry in entries:
            with suppress(StorageError):
                self.remove_file(entry)


def _has_changes(message: CommitMessage) -> bool:
    return bool(message.entries or message.compact_after or message.changelog or message.index_changes)
