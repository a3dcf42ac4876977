"""Expires snapshots: removes old ones and the files that only they needed.

    write an intent -> compare its file time with our clock -> write EARLIEST = end -> read consumers, tags, branches
      -> remove data files · changelog files · index files · manifests · lists that nothing else references
      -> remove snapshot files, oldest first -> write EARLIEST again if it was turned back -> remove the intent

Data files to remove: for every snapshot in (first, end] those that its delta deleted and did not add again later in the same
delta (a file that moves to another level keeps its name). A file is deleted once and never comes back under its name, so this
list stays true however long a run is suspended.

EARLIEST is written before an id is free, so that a snapshot published late on a free id is not taken for history; and before
tags, branches and consumers are read, so that one made later finds its snapshot gone. A run that dies leaves its intent, and
the next run finishes it. Listings decide whether a snapshot is there. A snapshot that no later one was built on (published
late) stays with all that it names, because its committer has yet to learn of that.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from tablestore.errors import NotFoundError, TablestoreError
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.paths import STATISTICS_DIR, index_path, manifest_path, snapshot_path
from tablestore.format.snapshot import BATCH_IDENTIFIER, Snapshot
from tablestore.htmltext import PrintedInNotebooks
from tablestore.options import CHANGELOG_PRODUCER
from tablestore.store.changes.changeplan import looks_back, rule_of
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_directory
from tablestore.store.history.expiryintents import ExpiryIntent, digest_of, read_intents, remove_intent, write_intent
from tablestore.store.history.references import (
    Needs,
    is_expiring,
    metadata_lists,
    nearest_tags,
    other_branches,
    own_branch,
    reread,
    tags_twice,
)
from tablestore.store.history.retention import NothingDue, Retention, consumer_lifetime, pick_end
from tablestore.store.history.storeclock import check_clock, check_clock_by
from tablestore.store.manifests import metadata_names
from tablestore.store.replay import MARKS_PROPERTY, SOURCE_POSITION_PROPERTY, Replays
from tablestore.store.settings import table_settings
from tablestore.store.snapshots import follows


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireReport(PrintedInNotebooks):
    """The files that an expiry removed, or with ``dry_run`` would remove. Print it."""

    dry_run: bool = False
    snapshots: tuple[int, ...] = ()
    changelogs: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    data_files: int = 0
    metadata_files: int = 0
    bytes: int = 0
    kept_by: str | None = None

    def __str__(self) -> str:
        """One sentence per kind of thing."""
        verb = "would expire" if self.dry_run else "expired"
        snapshot_text = f"{len(self.snapshots)} snapshot(s)"
        if self.snapshots:
            snapshot_text += f" ({self.snapshots[0]} to {self.snapshots[-1]})"
        lines = [
            f"{verb} {snapshot_text}, {self.data_files} data file(s) of {self.bytes:,} bytes, {self.metadata_files} metadata "
            "file(s)"
        ]
        if self.changelogs:
            lines.append(f"{verb} the changes of {len(self.changelogs)} snapshot(s)")
        if self.tags:
            lines.append(f"{verb} tag(s) {', '.join(self.tags)}")
        if self.kept_by:
            lines.append(f"held back by {self.kept_by}")
        return "\n".join(lines)

    def plus(self, other: "ExpireReport") -> "ExpireReport":
        """Both together."""
        return replace(
            self,
            snapshots=(*self.snapshots, *other.snapshots),
            changelogs=(*self.changelogs, *other.changelogs),
            tags=(*self.tags, *other.tags),
            data_files=self.data_files + other.data_files,
            metadata_files=self.metadata_files + other.metadata_files,
            bytes=self.bytes + other.bytes,
            kept_by=self.kept_by or other.kept_by,
        )


@dataclass(slots=True)
class Removal:
    """Files to remove: paths of data files with their bytes, and paths of metadata in the order in which they go."""

    data: dict[str, int] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)


def expire_snapshots(
    context: TableContext, retention: Retention, *, decoupled: bool = False, dry_run: bool = False
) -> ExpireReport:
    """Expire the snapshots that ``retention`` lets go. ``decoupled``: keep their changes in ``changelog/``.

    Raises StorageError if the store fails (what is left then is finished by the next run), or if the host's clock is ahead of the
    store's (kind ``clock-skew``; nothing is removed).
    """
    expiry = _Expiry(context, decoupled=decoupled)
    if dry_run:
        return expiry.preview(retention)
    return expiry.all_of(retention)


def expire_due(context: TableContext, retention: Retention, latest: Snapshot, *, decoupled: bool) -> ExpireReport:
    """Expires as :func:`expire_snapshots` with the table's own ``retention``, after the commit of ``latest``. Reads nothing
    while the last run shows that nothing can be due."""
    seen = context.once(_Seen)
    if seen.nothing_due.holds(latest.id, context.clock.now_ms()):
        return ExpireReport()
    expiry = _Expiry(context, decoupled=decoupled)
    report = expiry.all_of(retention)
    seen.nothing_due = expiry.nothing_due
    return report


class _Seen:
    """The result of the last expiry of an open table."""

    def __init__(self, _context: TableContext) -> None:
        self.nothing_due = NothingDue()


def finish_expiries(context: TableContext, *, decoupled: bool) -> ExpireReport:
    """Finish the expiries that others began, and begin none. Raises what :func:`expire_snapshots` raises."""
    return _Expiry(context, decoupled=decoupled).what_others_began()


def due_snapshots(context: TableContext, retention: Retention) -> tuple[int, str | None]:
    """The number of snapshots that may go by now, and the reason why others that are due may not."""
    first, end, kept_by = _Expiry(context, decoupled=False).pick(replace(retention, limit=2**62))
    return end - first, kept_by


class _Expiry:
    """One run on one branch."""

    def __init__(self, context: TableContext, *, decoupled: bool) -> None:
        self._context, self._decoupled = context, decoupled
        self._files, self._snapshots, self._manifests = context.files, context.snapshots, context.manifests
        self._branch = own_branch(context)
        self._read_before: dict[int, Snapshot] = {}
        self.nothing_due = NothingDue()

    def all_of(self, retention: Retention) -> ExpireReport:
        """Finish what others began, then what is due."""
        report = self.what_others_began()
        return report.plus(self.run(retention))

    def what_others_began(self) -> ExpireReport:
        report = ExpireReport()
        for intent in read_intents(self._files):
            report = report.plus(self.finish(intent))
        return report

    def run(self, retention: Retention) -> ExpireReport:
        first, end, kept_by = self.pick(retention)
        if first >= end:
            return ExpireReport(kept_by=kept_by)
        digests = {}
        for snapshot_id in range(first, end):
            try:
                digests[snapshot_id] = digest_of(self._snapshots.read_file(snapshot_id))
            except NotFoundError:
                return ExpireReport()  # another run is at it
        intent = ExpiryIntent(first=first, end=end, digests=digests)
        begun_ms = self._context.clock.now_ms()
        intent_written = write_intent(self._files, intent)
        try:
            if intent_written:
                # If it is gone by now, another run has finished it, and looked at its own clock.
                check_clock_by(self._files, begun_ms, intent.path)
            else:
                check_clock(self._files, self._context.clock, self._context.ids)
        except TablestoreError:
            if intent_written:
                # No run may finish what a wrong clock decided.
                remove_intent(self._files, intent)
            raise
        report = self.finish(intent)
        return replace(report, kept_by=report.kept_by or kept_by)

    def preview(self, retention: Retention) -> ExpireReport:
        first, end, kept_by = self.pick(retention)
        if first >= end:
            return ExpireReport(dry_run=True, kept_by=kept_by)
        removal = self._removal(first, end)
        return _report(range(first, end), removal, dry_run=True, kept_by=kept_by)

    def finish(self, intent: ExpiryIntent) -> ExpireReport:
        """Remove what an intent names, as far as it is still there and unreferenced."""
        ids = [i for i in self._snapshots.tail_ids() if i in intent.digests and is_expiring(i, self._snapshots, (intent,))]
        first, end = (ids[0], ids[-1] + 1) if ids else (intent.end, intent.end)
        if first >= end or self._snapshots.find(end) is None:
            # Done by another run, which may have gone further.
            remove_intent(self._files, intent)
            return ExpireReport()
        begun = self._snapshots.earliest_hint() >= end
        if not begun:
            self._snapshots.write_earliest_hint(end)
        needed, kept_by = self._needed_from()
        if needed is not None and needed < end:
            if begun:
                # Whatever an earlier run has removed, the rest waits for the consumer.
                return ExpireReport(kept_by=kept_by)
            # The consumer registered before it could see EARLIEST. Nothing has been removed yet: turn EARLIEST back.
            if self._snapshots.earliest_hint() == end:
                self._snapshots.write_earliest_hint(max(needed, first))
            end = max(needed, first)
            if first >= end:
                remove_intent(self._files, intent)
                return ExpireReport(kept_by=kept_by)
        try:
            removal = self._removal(first, end)
        except NotFoundError:
            if self._snapshots.find(end) is not None:
                raise
            remove_intent(self._files, intent)
            return ExpireReport()
        expiring = range(first, end)
        if self._decoupled:
            self._keep_changes(expiring)
        self._keep_marks(expiring)
        for path in (*removal.data, *removal.metadata):
            self._files.delete(path)
        for snapshot_id in expiring:
            self._files.delete(snapshot_path(snapshot_id))
        if self._snapshots.earliest_hint() < end:
            self._snapshots.write_earliest_hint(end)
        remove_intent(self._files, intent)
        return _report(expiring, removal, kept_by=kept_by)

    # ---- which

    def pick(self, retention: Retention) -> tuple[int, int, str | None]:
        """The range (first, end) that may expire, and what holds back the rest. If it is empty, sets ``nothing_due``."""
        ids = self._snapshots.live_ids()
        if len(ids) <= retention.num_min:
            self.nothing_due = NothingDue.of(ids[0], None, retention) if ids else NothingDue()
            return 0, 0, None
        first, latest = ids[0], ids[-1]
        needed, kept_by = None, None
        while True:
            end = self._end(first, latest, retention)
            if end > first and needed is None:
                needed, kept_by = self._needed_from()
            if needed is not None and needed < end:
                end = max(needed, first)
            else:
                kept_by = None
            dead = self._highest_dead(first, end)
            if dead is None:
                second = self._read_before.get(first + 1)
                if end == first and kept_by is None and second is not None:
                    self.nothing_due = NothingDue.of(first, second.time_millis, retention)
                return first, end, kept_by
            first = dead + 1

    def _end(self, first: int, latest: int, retention: Retention) -> int:
        try:
            return pick_end(
                first,
                latest,
                time_of=lambda snapshot_id: self._read(snapshot_id).time_millis,
                now_millis=self._context.clock.now_ms(),
                retention=retention,
            )
        except NotFoundError:
            return first  # another run is at it

    def _highest_dead(self, first: int, end: int) -> int | None:
        """The highest id below ``end`` that the snapshot above it was not built on."""
        for snapshot_id in range(end, first, -1):
            try:
                chained = follows(self._read(snapshot_id), self._read(snapshot_id - 1))
            except NotFoundError:
                return None
            if chained is False:
                return snapshot_id - 1
        return None

    def _needed_from(self) -> tuple[int | None, str | None]:
        needed = self._branch.needed_from(consumers_alive_since(self._context))
        if needed is None:
            return None, None
        # Files that the reader's next snapshot deletes are removed with the snapshot before it.
        before = 1 if self._looks_back() else 0
        return needed[0] - before, needed[1]

    def _looks_back(self) -> bool:
        """True if readers of changes compare with the state before a snapshot, or did under any schema."""
        schemas = (self._context.schemas.read(schema_id) for schema_id in self._context.schemas.ids())
        try:
            return any(looks_back(rule_of(schema, table_settings(schema))) for schema in schemas)
        except TablestoreError:
            return True  # Another engine's options: one snapshot more does no harm.

    def _read(self, snapshot_id: int) -> Snapshot:
        if (snapshot := self._read_before.get(snapshot_id)) is None:
            snapshot = self._read_before[snapshot_id] = self._snapshots.read(snapshot_id)
        return snapshot

    # ---- what

    def _removal(self, first: int, end: int) -> Removal:
        return reread(lambda: self._find_unreferenced(first, end))

    def _find_unreferenced(self, first: int, end: int) -> Removal:
        expiring = [snapshot for i in range(first, end) if (snapshot := self._snapshots.find(i)) is not None]
        staying = self._snapshots.read(end)
        data = self._dead_files([*expiring[1:], staying])
        if not self._decoupled:
            data.update(self._changelog_files(expiring))
        needs = Needs(self._manifests, wanted=data.keys())
        needs.add_metadata(staying)
        for tag in nearest_tags(tags_twice(self._branch.tags), first, end):
            needs.add_snapshot(tag.snapshot, changelog=False)
        needs.add_changelogs(self._branch.changelogs.all(), self.produces)
        if self._decoupled:
            needs.add_changelogs(expiring, self.produces)
        for branch in other_branches(self._branch):
            needs.add_branch(branch, self.produces)
        removal = Removal()
        for name, entry in data.items():
            if name not in needs.data:
                removal.data.update(paths_of(self._context, entry))
        removal.metadata = metadata_paths(expiring, needs)
        return removal

    def _dead_files(self, snapshots: Sequence[Snapshot]) -> dict[str, ManifestEntry]:
        """The files that these snapshots' deltas deleted for good, by name."""
        dead: dict[str, ManifestEntry] = {}
        for snapshot in snapshots:
            deleted: dict[str, ManifestEntry] = {}
            # Metadata is gone only if an earlier run removed it, after the data.
            with suppress(NotFoundError):
                # Of large manifests, only DELETEs and what follows them under the same name: most commits only add.
                for entries in self._manifests.matching(
                    self._manifests.read_list(snapshot.delta_manifest_list), partial(_with_names_deleted, before=deleted)
                ):
                    for entry in entries:
                        if entry.kind is EntryKind.DELETE:
                            deleted[entry.file.file_name] = entry
                        else:
                            deleted.pop(entry.file.file_name, None)
            dead.update(deleted)
        return dead

    def _changelog_files(self, snapshots: Iterable[Snapshot]) -> dict[str, ManifestEntry]:
        files: dict[str, ManifestEntry] = {}
        for snapshot in snapshots:
            with suppress(NotFoundError):
                files.update((entry.file.file_name, entry) for entry in self._manifests.changelog(snapshot))
        return files

    def produces(self, snapshot: Snapshot) -> bool:
        return produces_changelog(self._context, snapshot)

    def _keep_marks(self, expiring: range) -> None:
        """Keep the marks by which replays of numbered commits are known, also those that a dead writer did not write."""
        highest: dict[str, Snapshot] = {}
        for snapshot_id in expiring:
            snapshot = self._snapshots.find(snapshot_id)
            if snapshot is not None and MARKS_PROPERTY in snapshot.properties and snapshot.commit_identifier != BATCH_IDENTIFIER:
                # A user's identifiers rise with the snapshots.
                highest[snapshot.commit_user] = snapshot
        replays = Replays(self._files, self._snapshots)
        for user, last in highest.items():
            replays.keep_mark(user, last.commit_identifier, last.properties.get(SOURCE_POSITION_PROPERTY))

    def _keep_changes(self, expiring: range) -> None:
        changelogs = self._branch.changelogs
        for snapshot_id in expiring:
            with suppress(NotFoundError):
                changelogs.keep(snapshot_id, self._snapshots.read_file(snapshot_id))
        ids = changelogs.ids()
        if ids:
            changelogs.write_hints(earliest=ids[0], latest=ids[-1])


def _with_names_deleted(entries: EntryColumns, before: Mapping[str, ManifestEntry]) -> npt.NDArray[np.bool_]:
    """True for each entry of a file name that a DELETE here, or ``before``, names."""
    deleted = entries.column("file_name").filter(pc.equal(entries.column("kind"), int(EntryKind.DELETE)))
    return entries.is_in("file_name", {*before, *deleted.to_pylist()})


def consumers_alive_since(context: TableContext) -> int | None:
    """Consumers that last moved before this time are dead (``consumer.expiration-time``); None: none is."""
    lifetime = context.once(_consumer_lifetime)
    return context.clock.now_ms() - lifetime if lifetime is not None else None


def _consumer_lifetime(context: TableContext) -> int | None:
    return consumer_lifetime(context.schema.options)


def produces_changelog(context: TableContext, snapshot: Snapshot) -> bool:
    """True if the table wrote its changes to changelog files when ``snapshot`` was committed."""
    try:
        options: Mapping[str, str] = context.schemas.read(snapshot.schema_id).options
    except NotFoundError:
        options = context.schema.options
    return options.get(CHANGELOG_PRODUCER.key, "none").strip().lower() != "none"


def paths_of(context: TableContext, entry: ManifestEntry) -> dict[str, int]:
    """The paths of a data file and its side files, with their bytes where known; none for a file outside of the table."""
    if entry.file.external_path is not None:
        return {}
    directory = entry_directory(context.paths, entry, context.schema)
    return {
        f"{directory}/{entry.file.file_name}": entry.file.file_size,
        **{f"{directory}/{name}": 0 for name in entry.file.extra_files},
    }


def metadata_paths(expiring: Sequence[Snapshot], needs: Needs) -> list[str]:
    """Index files, statistics, manifests, index manifests and lists of ``expiring`` that nothing needs, in the order to remove
    them: lists last, because they name the others."""
    expiring_needs = Needs(needs.manifests)
    for snapshot in expiring:
        _add_what_is_left(expiring_needs, snapshot)
    lists = {name for snapshot in expiring for name in metadata_lists(snapshot)}
    return [
        *(index_path(name) for name in sorted(expiring_needs.index - needs.index)),
        *(f"{STATISTICS_DIR}/{name}" for name in sorted(expiring_needs.statistics - needs.statistics)),
        *(manifest_path(name) for name in sorted(expiring_needs.metadata - needs.metadata - lists)),
        *(manifest_path(name) for name in sorted(lists - needs.metadata)),
    ]


def _add_what_is_left(needs: Needs, snapshot: Snapshot) -> None:
    """Adds as :meth:`Needs.add_metadata`, for a snapshot of which part may have been removed."""
    for name in metadata_lists(snapshot):
        needs.metadata.add(name)
        with suppress(NotFoundError):
            needs.metadata.update(metadata_names(needs.manifests.read_list(name)))
    if snapshot.index_manifest is not None:
        needs.metadata.add(snapshot.index_manifest)
        with suppress(NotFoundError):
            inside = (entry for entry in needs.manifests.read_index(snapshot) if entry.external_path is None)
            needs.index.update(entry.file_name for entry in inside)
    if snapshot.statistics is not None:
        needs.statistics.add(snapshot.statistics)


def _report(expiring: Iterable[int], removal: Removal, *, dry_run: bool = False, kept_by: str | None = None) -> ExpireReport:
    return ExpireReport(
        dry_run=dry_run,
        snapshots=tuple(expiring),
        data_files=len(removal.data),
        metadata_files=len(removal.metadata),
        bytes=sum(removal.data.values()),
        kept_by=kept_by,
    )
