"""Deduplicates commits: finds whether a commit message has landed before, and which of its files the table names.

A message crosses processes, so a process that did not learn the outcome of its commit may commit it again. Then nothing may
happen: no file of it is added twice, renumbered or removed.

    base ──── … ──── landing ──── … ──── latest        the message was written after ``base`` and landed, if at all, after it

1. A commit of messages notes their digest in its properties, and later snapshots copy the newest of these notes. An overwrite
   with no rows leaves no other trace; any other commit without files changes nothing and may be repeated.
2. A snapshot after the base names its files.
3. Where such snapshots have expired: anything retained (snapshots, tags, branches, kept changelogs) names its files.

Not looked at: commits with an identifier (:mod:`~tablestore.store.replay`), and files that never left their process.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tablestore.errors import ConflictError, NotFoundError
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.store.history.references import BranchMetadata, Needs, other_branches
from tablestore.store.manifests import Manifests
from tablestore.store.message import CommitMessage
from tablestore.store.replay import MARKS_PROPERTY, numbers_of
from tablestore.store.snapshots import Snapshots

# Stored, never renamed: {digest of what landed: snapshot id}, the newest last.
LANDINGS_PROPERTY = "tablestore.landings"
# A snapshot must not grow with every job that ever wrote.
LANDINGS_IN_SNAPSHOT = 50


@dataclass(frozen=True, slots=True)
class EarlierCommit:
    """A commit that has landed. ``snapshot`` None: its snapshot has expired."""

    snapshot: Snapshot | None


def digest_of(message: CommitMessage) -> str:
    """The digest that identifies a message: of the names of its files; without files, of its base snapshot and its time."""
    names = sorted(message.new_names)
    if not names:
        names = [str(message.base_snapshot_id), str(message.created_millis)]
    return hashlib.sha256("\n".join([str(message.table_uuid), *names]).encode()).hexdigest()[:24]


def noted_commits(properties: Mapping[str, str]) -> dict[str, int]:
    """The landings noted in a snapshot's properties."""
    return numbers_of(properties, LANDINGS_PROPERTY, "snapshot ids")


def encode_noted_commits(landings: Mapping[str, int]) -> str:
    """The text of the property, of the newest ones."""
    return json.dumps(dict(list(landings.items())[-LANDINGS_IN_SNAPSHOT:]), separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDeduplication:
    """The messages that landed in one table. ``has_file``: whether a data file is there."""

    branch: BranchMetadata
    snapshots: Snapshots
    manifests: Manifests
    has_file: Callable[[ManifestEntry], bool]

    def known(self, latest: Snapshot | None) -> dict[str, int]:
        """The landings noted in our newest snapshot; snapshots of other engines drop them."""
        for snapshot in self.snapshots.back_from(latest):
            if LANDINGS_PROPERTY in snapshot.properties or MARKS_PROPERTY in snapshot.properties:
                return noted_commits(snapshot.properties)
        return {}

    def find(self, message: CommitMessage, latest: Snapshot | None) -> EarlierCommit | None:
        """The landing of a message, None if it has not landed.

        Raises ConflictError if some of its files landed with other messages, or if its files are gone.
        """
        if latest is None or latest.id <= message.base_snapshot_id:
            return None
        names = set(message.new_names)
        if (landed_id := self.known(latest).get(digest_of(message))) is not None:
            return EarlierCommit(self.snapshots.find(landed_id) if landed_id in self.snapshots.live_ids() else None)
        if not names:
            return self._landing_without_files(message, latest)
        first_landing: Snapshot | None = None
        landed_names: set[str] = set()
        lowest = latest.id + 1
        for snapshot in self.snapshots.back_from(latest):
            if snapshot.id <= message.base_snapshot_id:
                break
            try:
                added = names & self._added_by(snapshot)
            except NotFoundError:
                break
            # A compaction adds a file again when it moves it, so the oldest of these snapshots added it first.
            first_landing, landed_names, lowest = snapshot if added else first_landing, landed_names | added, snapshot.id
        is_whole = lowest == message.base_snapshot_id + 1
        if (
            landed_names == names
            and first_landing is not None
            and (is_whole or first_landing.commit_kind is not CommitKind.COMPACT)
        ):
            return EarlierCommit(first_landing)
        if not is_whole:
            return self._landing_of_expired(message, names)
        if landed_names:
            assert first_landing is not None
            raise ConflictError(
                f"{len(landed_names)} of the {len(names)} files of this commit to {self.branch.main.root_uri} have landed before, "
                f"with snapshot {first_landing.id}: some of these messages were committed before; commit the others only, "
                "unchanged",
                kind="partly-committed",
            )
        return None

    def check_files(self, message: CommitMessage) -> None:
        """Raise ConflictError if the message's files were removed, because a commit of it was refused. They go together: one is
        checked for all."""
        first = next(iter(message.new_files), None)
        if first is not None and not self.has_file(first):
            raise self._gone(message)

    def named(self, names: Collection[str]) -> Collection[str]:
        """The data and index files among these that anything retained references, on any branch. Reads all metadata of the
        table."""
        needs = Needs(self.manifests, wanted=names)
        for branch in (self.branch, *other_branches(self.branch)):
            needs.add_branch(branch, _always(True), changelogs=False)
            for produced in (True, False):
                with suppress(NotFoundError):
                    needs.add_changelogs(branch.changelogs.all(), _always(produced))
        return (needs.data | needs.index) & set(names)

    def _landing_without_files(self, message: CommitMessage, latest: Snapshot) -> EarlierCommit | None:
        """The landing of a message without files, which only the notes of snapshots show."""
        for snapshot in self.snapshots.back_from(latest):
            if snapshot.id <= message.base_snapshot_id:
                break
            if (landed_id := noted_commits(snapshot.properties).get(digest_of(message))) is not None:
                return EarlierCommit(self.snapshots.find(landed_id))
        return None

    def _added_by(self, snapshot: Snapshot) -> set[str]:
        entries = (*self.manifests.delta(snapshot), *self.manifests.changelog(snapshot))
        return {entry.file.file_name for entry in entries if entry.kind is EntryKind.ADD}

    def _landing_of_expired(self, message: CommitMessage, names: Collection[str]) -> EarlierCommit | None:
        """The landing of a message, where snapshots in which it may have landed have expired."""
        if self.named(names):
            return EarlierCommit(None)
        if not all(self.has_file(entry) for entry in message.new_files):
            raise self._gone(message)
        return None

    def _gone(self, message: CommitMessage) -> ConflictError:
        return ConflictError(
            f"files of this commit to {self.branch.main.root_uri}, written after snapshot {message.base_snapshot_id}, are gone: "
            "the commit was refused before, or it landed and its files were compacted and expired since; if its rows are not in "
            "the table, write them again",
            kind="files-gone",
        )


def _always(answer: bool) -> Callable[[Snapshot], bool]:
    return lambda _: answer
