"""Checks that a table is whole: reads everything that its snapshots, tags and branches lead to, and names what is wrong.

    branch (main, each branch)
      schemas      every file reads, none that a snapshot names is missing
      snapshots    an unbroken range, each reads; hints agree; no expiry of them stopped on the way
      tags         each reads; kept changelogs, consumers and holds too
        metadata   lists, manifests, index manifests: there, unchanged (their checksums), readable
        files      data, changelog and index files: there, with the size that the manifest says
      newest       levels above 0 are sorted runs, the row count adds up
      deep         every column of every file reads, page headers included; every NaN in a key lies in the bucket of NaN

Nothing is changed and nothing raised: damage is what is looked for. A finding that costs rows is a *problem*, anything else a
*warning*; what can be put right without losing anything names its repair (:mod:`~tablestore.table.inspect.repair`). Bytes that no
reader looks at (statistics inside of page headers) are not looked at here either. A snapshot's files are looked at where they came:
of one that goes on from another, those that it added. Memory: about 1.3 KB of each file of the table, what is
cached of its manifests among it (``python -m benchmarks scale``); with ``deep`` its manifest entry too.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow.compute as pc

from tablestore.errors import NotFoundError, TablestoreError
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.paths import (
    EARLIEST_HINT,
    INDEX_DIR,
    LATEST_HINT,
    SNAPSHOT_DIR,
    STATISTICS_DIR,
    branch_directory,
    index_path,
    manifest_path,
    parse_hint,
    schema_path,
)
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.keyorder import KeyOrder
from tablestore.progress import Progress, no_progress
from tablestore.store.changes.expiredchanges import change_files, changelog_lists
from tablestore.store.context import TableContext
from tablestore.store.datapaths import file_paths
from tablestore.store.history.branches import branch_exists
from tablestore.store.history.branchfiles import open_branch
from tablestore.store.history.expire import produces_changelog
from tablestore.store.history.expiryintents import EXPIRY_DIR, damaged_intents, read_intents
from tablestore.store.history.references import LOOKS, BranchMetadata, metadata_lists, other_branches, own_branch
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.store.history.unfinishedbranches import is_given_up, own_files
from tablestore.store.snapshots import unbroken_tail
from tablestore.table.inspect.contents import check_contents
from tablestore.table.inspect.findings import RESTORE, TABLE, Finding, Findings

T = TypeVar("T")

_FILE_COLUMNS = ("partition", "bucket", "file_name", "file_size", "external_path")
_BOUND_COLUMNS = ("min_key", "max_key", "file_name")
_RUN_COLUMNS = ("level", "min_key", "max_key")


def check_table(context: TableContext, *, deep: bool = False, progress: Progress | None = None) -> tuple[Finding, ...]:
    """The faults of a table, with what to do; empty if it is whole. ``deep`` reads every row of every file too."""
    show = progress or no_progress
    findings = Findings()
    with findings.noting("branches", "the list of branches", "look at the branch directory"):
        for branch in (this_branch := own_branch(context), *other_branches(this_branch)):
            if branch_exists(branch.main, branch.name):
                findings.all.extend(_check_branch(branch, context, deep, show))
            else:
                _unfinished_branch(context, branch.name, findings)
    return tuple(findings.all)


def _check_branch(branch: BranchMetadata, context: TableContext, deep: bool, show: Progress) -> list[Finding]:
    for _ in range(LOOKS):
        first = branch.snapshots.live_ids()[:1]
        findings = _Check(branch, context, deep, show).run()
        # A file that an expiry took meanwhile is not missing: then all is looked at again.
        if not any(finding.severity == "problem" for finding in findings) or branch.snapshots.live_ids()[:1] == first:
            break
    return findings


def _unfinished_branch(context: TableContext, name: str, findings: Findings) -> None:
    older_than = context.clock.now_ms() - round(context.settings.orphan_age_s * 1000)
    if own_paths := own_files(context.main_files, name):
        findings.problem(
            "branch-damaged",
            f"branch {name}",
            f"has no {schema_path(0)}, and {len(own_paths)} file(s) of its own, such as {own_paths[0]}: the schema was lost, or "
            "another engine or an older version deleted the branch in part",
            f"restore {branch_directory(name)}/{schema_path(0)} from a copy, or delete the branch by name: "
            f"tablestore branch delete {TABLE} {name}",
        )
        return
    fault = ("branch-unfinished", f"branch {name}", "was half made or half deleted, and keeps files")
    if is_given_up(context.main_files, name, older_than):
        findings.repairable(*fault, "remove-branch", target=name)
    else:
        later = "wait until all of its files are older than tablestore.orphan-age: somebody may be at work on it"
        findings.warn(*fault, later)


@dataclass(slots=True)
class _Expected:
    """The files that something names: path to size (None: unknown) and to what needs it first."""

    sizes: dict[str, int | None] = field(default_factory=dict)
    needed_by: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, size: int | None, user: str) -> None:
        self.sizes.setdefault(path, size)
        self.needed_by.setdefault(path, user)


class _Check:
    """The check of one branch."""

    def __init__(self, branch: BranchMetadata, context: TableContext, deep: bool, show: Progress) -> None:
        self._branch, self._files, self._deep, self._show = branch, branch.files, deep, show
        self._clock, self._ids = context.clock, context.ids
        self._context: TableContext = context
        self._findings = Findings(branch.name)
        self._expected = _Expected()
        self._entries: dict[str, ManifestEntry] = {}
        self._damaged: dict[str, tuple[str, list[str]]] = {}
        self._whole, self._listed = set[str](), set[str]()
        self._live: set[str] = set()

    def run(self) -> list[Finding]:
        schema_ids = self._schemas()
        with self._findings.noting("schema", "the newest schema", "restore the schema file from a copy"):
            self._context = open_branch(self._branch.main, self._branch.name, clock=self._clock, ids=self._ids)
            snapshots = self._snapshots(schema_ids)
            self._expiries()
            self._readers()
            named = [*((f"snapshot {snapshot.id}", snapshot) for snapshot in snapshots), *self._tags()]
            # Oldest first: of each are looked at the files that the ones before it had not.
            named.sort(key=lambda user: user[1].id)
            for number, (user, snapshot) in enumerate(named):
                self._show(f"{self._findings.name('metadata')} of {user}", number, len(named))
                self._metadata(user, snapshot)
            self._changelogs()
            self._damage()
            self._presence()
            if snapshots:
                self._newest(snapshots[-1])
            if self._deep:
                index = [path for path in self._expected.sizes if path.startswith(f"{INDEX_DIR}/")]
                check_contents(self._context, self._entries, live=self._live, index=index, findings=self._findings, show=self._show)
        return self._findings.all

    # -- schemas, snapshots, tags

    def _schemas(self) -> set[int]:
        readable = set()
        with self._findings.noting("schema", "the list of schemas", RESTORE):
            for schema_id in self._branch.schemas.ids():
                with self._findings.noting(
                    "schema", f"schema {schema_id}", "restore the schema file from a copy; files written with it need it"
                ):
                    self._branch.schemas.read(schema_id)
                    readable.add(schema_id)
        return readable

    def _snapshots(self, schema_ids: set[int]) -> list[Snapshot]:
        store = self._branch.snapshots
        # A commit publishes before it writes LATEST, an expiry writes EARLIEST before it removes. In this order neither of them
        # makes a snapshot look lost while it is at work.
        latest = self._hint(LATEST_HINT)
        listed = store.listed_ids()
        earliest = self._hint(EARLIEST_HINT)
        self._hints(latest, earliest, listed[-1] if listed else None)
        if listed:
            self._gaps(listed, earliest or 0)
        snapshots = []
        for snapshot_id in store.live_ids():
            with self._findings.noting("snapshot", f"snapshot {snapshot_id}", "restore the file from a copy, or expire up to it"):
                snapshot = store.read(snapshot_id)
                snapshots.append(snapshot)
                if snapshot.schema_id not in schema_ids:
                    self._findings.problem(
                        "schema-missing",
                        f"snapshot {snapshot_id}",
                        f"names schema {snapshot.schema_id}, which is missing or damaged",
                        "restore the schema file from a copy",
                    )
        return snapshots

    def _hint(self, name: str) -> int | None:
        """The snapshot id in a hint: None if it is missing, 0 if it says nothing."""
        try:
            return parse_hint(self._files.read(f"{SNAPSHOT_DIR}/{name}", max_bytes=64)) or 0
        except NotFoundError:
            return None
        except TablestoreError:
            return 0

    def _hints(self, latest: int | None, earliest: int | None, newest: int | None) -> None:
        """Checks the hints. ``newest``: the greatest id that has a file. A hint that is missing or lags behind is in order:
        readers look further."""
        if latest is not None and newest is not None and latest > newest:
            self._findings.problem(
                "snapshot-missing",
                _span(newest + 1, latest),
                f"missing: LATEST, which is written after a commit, says {latest}, and the newest snapshot is {newest}; snapshot "
                "files were lost, or another engine rolled the table back",
                "restore the files from a copy before the next commit takes their ids; after a rollback remove "
                f"{SNAPSHOT_DIR}/{LATEST_HINT}, which is a hint only",
            )
        for name, hinted in ((LATEST_HINT, latest), (EARLIEST_HINT, earliest)):
            path = f"{SNAPSHOT_DIR}/{name}"
            if hinted is None:
                continue
            if newest is None:
                if hinted:
                    fix = "restore the snapshot files from a copy; or remove the file, if the table is to be empty"
                    self._findings.problem("snapshots-gone", path, f"says {hinted}, and there is no snapshot at all", fix)
            elif hinted == 0 or hinted > max(latest or 0, newest):
                message = (
                    f"says {hinted or 'no number'}, the newest snapshot is {newest}; tablestore does not follow it, others may"
                )
                self._findings.repairable("hint", path, message, "write-hints")

    def _gaps(self, listed: tuple[int, ...], earliest: int) -> None:
        """Ids without a file. Below EARLIEST they have expired, and who slept meanwhile may have published below them."""
        tail = unbroken_tail(listed)
        if dead := [snapshot_id for snapshot_id in listed if snapshot_id < tail[0] and (snapshot_id < earliest or not earliest)]:
            clean = f"remove them with: tablestore clean {TABLE}"
            self._findings.warn(
                "dead-snapshots",
                f"snapshots {_shortened(dead)}",
                "lie below a gap: a committer that slept while others expired published them; nobody reads them",
                clean if earliest else f"EARLIEST is missing: if the snapshots in the gap were lost, restore them; else {clean}",
            )
        retained = [snapshot_id for snapshot_id in listed if 0 < earliest <= snapshot_id]
        # EARLIEST may be turned back for a moment while two expiries are at work.
        below = [earliest - 1] if retained and not read_intents(self._files) else []
        for previous, other in pairwise([*below, *retained]):
            if other - previous > 1:
                or_else = ", or another engine's expiry stopped before it wrote EARLIEST" if other == retained[0] else ""
                self._findings.problem(
                    "snapshot-missing",
                    _span(previous + 1, other - 1),
                    f"missing, and EARLIEST says that {earliest} and what follows is retained: files were lost{or_else}; "
                    "nobody reads what lies below the gap",
                    f"restore the files from a copy, or expire up to snapshot {other}",
                )

    def _expiries(self) -> None:
        """Intents of expiries that did not finish."""
        with self._findings.noting("storage", EXPIRY_DIR, "look at the storage's own messages"):
            for intent in read_intents(self._files):
                message = f"an expiry of snapshots {intent.first} to {intent.end - 1} has begun and not finished, or is at work"
                self._findings.repairable("expiry-unfinished", intent.path, message, "finish-expiry", target=intent.path)
            for path in damaged_intents(self._files):
                message = "is damaged: what expiry it stands for is not known, so nobody acts on it"
                self._findings.repairable("intent-damaged", path, message, "remove-intent", target=path)

    def _readers(self) -> None:
        """Progress that holds snapshots back: while it cannot be read, nothing expires."""
        with self._findings.noting(
            "consumer", "a consumer", f"remove it with: tablestore consumer delete {TABLE} NAME; it begins anew then"
        ):
            self._branch.consumers.all()
        with self._findings.noting("hold", "a hold of the log", f"make it anew with: tablestore log rebuild {TABLE}"):
            RetentionLeases(self._files).all()

    def _tags(self) -> list[tuple[str, Snapshot]]:
        tags = []
        with self._findings.noting("tag", "the list of tags", RESTORE):
            for name in self._branch.tags.names():
                fix = "delete the tag and make it again from a snapshot, or restore the file"
                with self._findings.noting("tag", f"tag {name}", fix):
                    tags.append((f"tag {name}", self._branch.tags.get(name).snapshot))
        return tags

    # -- what they lead to

    def _metadata(self, user: str, snapshot: Snapshot) -> None:
        manifests = self._context.manifests
        for name in metadata_lists(snapshot):
            for manifest in self._readable(user, name, manifests.read_list):
                self._manifest(user, manifest)
        if snapshot.index_manifest is not None:
            for index in self._readable(user, snapshot.index_manifest, lambda _: manifests.read_index(snapshot)):
                if index.external_path is None:
                    self._expected.add(index_path(index.file_name), index.file_size, user)
        if snapshot.statistics is not None:
            self._expected.add(f"{STATISTICS_DIR}/{snapshot.statistics}", None, user)
        # Metadata that cannot be read was noted above, and names nothing.
        with suppress(TablestoreError):
            self._live_files(user, snapshot)
        if snapshot.changelog_manifest_list is not None:
            with suppress(TablestoreError):
                self._expect(user, manifests.added_columns(snapshot.changelog_manifest_list, self._columns))

    def _live_files(self, user: str, snapshot: Snapshot) -> None:
        """Notes the files of a snapshot, but those that are known of the ones before it."""
        manifests = self._context.manifests
        base = {manifest.file_name for manifest in manifests.read_list(snapshot.base_manifest_list)}
        delta = {manifest.file_name for manifest in manifests.read_list(snapshot.delta_manifest_list)}
        if not base <= self._listed or not self._listed:
            self._expect(user, manifests.live_columns(snapshot, self._columns))
        elif not delta <= self._listed:
            self._expect(user, manifests.kept_columns(snapshot.delta_manifest_list, self._columns))
        self._listed |= base | delta

    def _changelogs(self) -> None:
        """The changes of expired snapshots that are kept for readers of changes."""
        with self._findings.noting("changelog", "the list of kept changelogs", RESTORE):
            for snapshot_id in self._branch.changelogs.ids():
                user = f"the kept changelog of snapshot {snapshot_id}"
                with self._findings.noting("changelog", user, RESTORE):
                    if (changelog := self._branch.changelogs.find(snapshot_id)) is not None:
                        self._changes(user, changelog)

    def _changes(self, user: str, changelog: Snapshot) -> None:
        manifests, produced = self._context.manifests, produces_changelog(self._context, changelog)
        for name in changelog_lists(changelog, produced=produced):
            for manifest in self._readable(user, name, manifests.read_list):
                self._manifest(user, manifest)
        with suppress(TablestoreError):
            self._expect(user, EntryColumns.of(change_files(changelog, manifests, produced=produced), self._columns))

    def _readable(self, user: str, name: str, read: Callable[[str], tuple[T, ...]]) -> tuple[T, ...]:
        """The content of a metadata file; nothing if it cannot be read, which is noted once, with all who need it."""
        if name not in self._damaged:
            try:
                return read(name)
            except TablestoreError as error:
                self._damaged[name] = (error.message, [])
        self._damaged[name][1].append(user)
        return ()

    def _manifest(self, user: str, manifest: ManifestFile) -> None:
        """Reads a manifest, once."""
        name = manifest.file_name
        if name in self._whole:
            return
        if name not in self._damaged:
            try:
                self._context.manifests.check(manifest)
            except TablestoreError as error:
                self._damaged[name] = (error.message, [])
            else:
                self._whole.add(name)
                return
        self._damaged[name][1].append(user)

    def _damage(self) -> None:
        for name, (message, users) in self._damaged.items():
            more_users = f" and {len(users) - 1} more" if len(users) > 1 else ""
            self._findings.problem("metadata", manifest_path(name), f"{message} (needed by {users[0]}{more_users})", RESTORE)

    @property
    def _columns(self) -> Sequence[str]:
        return ENTRY_SCHEMA.names if self._deep else _FILE_COLUMNS

    def _expect(self, user: str, files: EntryColumns) -> None:
        context = self._context
        files = files.take(np.flatnonzero(pc.is_null(files.column("external_path")).to_numpy(zero_copy_only=False)))
        paths = file_paths(context.paths, files, context.schema).to_pylist()
        if self._deep:
            new_places = [place for place, path in enumerate(paths) if path not in self._entries]
            for place, entry in zip(new_places, files.take(np.array(new_places, np.int64)).entries(), strict=True):
                self._entries.setdefault(paths[place], entry)
        for path, size in zip(paths, files.column("file_size").to_pylist(), strict=True):
            self._expected.add(path, size, user)

    def _presence(self) -> None:
        """Every directory is listed once."""
        by_directory: dict[str, list[str]] = {}
        for path in self._expected.sizes:
            by_directory.setdefault(path.rpartition("/")[0], []).append(path)
        for number, (directory, paths) in enumerate(sorted(by_directory.items())):
            self._show(self._findings.name("files"), number, len(by_directory))
            sizes: dict[str, int] = {}
            with self._findings.noting("storage", directory, "look at the storage's own messages"):
                sizes = {info.name: info.size for info in self._files.list(directory) if not info.is_dir}
                for path in paths:
                    self._one_file(path, sizes.get(path.rpartition("/")[2]))

    def _one_file(self, path: str, size: int | None) -> None:
        user, noted_size = self._expected.needed_by[path], self._expected.sizes[path]
        if size is None:
            self._findings.problem("file-missing", path, f"is missing; {user} needs it", RESTORE)
        elif noted_size is not None and size != noted_size:
            self._findings.problem("file-size", path, f"has {size} bytes, its manifest says {noted_size}; {user} needs it", RESTORE)

    # -- the newest snapshot

    def _newest(self, snapshot: Snapshot) -> None:
        with suppress(TablestoreError):
            context = self._context
            runs = _RUN_COLUMNS if context.schema.is_keyed else ()
            live = context.manifests.live_columns(snapshot, (*_FILE_COLUMNS, "row_count", *runs))
            if (rows := int(live.numbers("row_count").sum())) != snapshot.total_record_count:
                self._findings.warn(
                    "row-count",
                    f"snapshot {snapshot.id}",
                    f"says that it stores {snapshot.total_record_count:,} rows, its files hold {rows:,}",
                    "counts are for statistics only; nothing has to be done",
                )
            if runs:
                self._sorted_runs(live.take(np.flatnonzero(live.numbers("level") > 0)))
            self._live = set(file_paths(context.paths, live, context.schema).to_pylist()) if self._deep else set()

    def _sorted_runs(self, files: EntryColumns) -> None:
        """Checks the files above level 0. Memory: the keys of one run at a time."""
        key_of = KeyOrder.of(self._context.schema.key_fields)
        places, which = files.groups("partition", "bucket", "level")
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which, minlength=len(places))).tolist()
        for (_, bucket, level), start, end in zip(places, [0, *ends], ends, strict=False):
            if end - start < 2:
                continue
            run = files.select(_BOUND_COLUMNS).take(order[start:end]).table.to_pydict()
            keyed = zip(map(key_of, run["min_key"]), map(key_of, run["max_key"]), run["file_name"], strict=True)
            for (_, high, previous), (low, _, other) in pairwise(sorted(keyed)):
                if low <= high:
                    self._findings.problem(
                        "overlap",
                        f"level {level} of bucket {bucket}",
                        f"is no sorted run: the keys of {previous} and {other} overlap",
                        f"a full compaction puts the bucket in order: tablestore compact {TABLE} --full",
                    )


def _shortened(ids: list[int]) -> str:
    return ", ".join(map(str, ids[:5])) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _span(first: int, last: int) -> str:
    return f"snapshot {first}" if first == last else f"snapshots {first} to {last}"
