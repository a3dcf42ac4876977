"""Detects replayed commits of a writer with a stable ``commit_user``, so that each takes effect once.

A writer with a stable ``commit_user`` numbers its commits. A commit whose number is not above the user's highest is a replay
and must not be applied again, however long ago the first one was. The highest number of a user is found in

1. the retained snapshots, newest first: the user's own newest one, or the marks that our snapshots carry in ``properties``;
2. a small file per user, because another engine's commit drops ``properties`` and expiry removes snapshots. Marks only rise: each
   is a file of its own (``tablestore-marks/<user>/<number>``), published if absent; the greatest counts. It is written after the
   snapshot has landed and before the commit returns. If that fails, expiry writes it before it removes the snapshot.

A user that reads a source outside of the table (a topic, another table) notes with each commit where it is to go on there: in the
snapshot's properties, and as the text of the mark.

A user whose commits are numbered by something that can be copied, such as the checkpoint of a stream, has an *origin*: the place of
that, kept beside the mark (``tablestore-marks/<user>/origin-<digest>``). Two places that number for one user would each take the
other's commits for replays of its own.
"""

import hashlib
import json
from collections.abc import Mapping

from tablestore.errors import FormatError, InvalidInputError, NotFoundError
from tablestore.format.limits import parse_json_bounded
from tablestore.format.sealed import JsonObject
from tablestore.format.snapshot import BATCH_IDENTIFIER, CommitKind, Snapshot
from tablestore.io.filestore import FileStore
from tablestore.names import is_number
from tablestore.store.snapshots import Snapshots

MARKS_DIR = "tablestore-marks"
MARKS_PROPERTY = "tablestore.commit-marks"
# Where the commit's user goes on in its source.
SOURCE_POSITION_PROPERTY = "tablestore.source-position"
# Marks beyond this many users live in their files only: a snapshot must not grow with every job that ever wrote.
MARKS_IN_SNAPSHOT = 100
_ORIGIN = "origin-"


def marks_of(properties: Mapping[str, str]) -> dict[str, int]:
    """The high-water marks by user that a snapshot carries."""
    return numbers_of(properties, MARKS_PROPERTY, "numbers")


def numbers_of(properties: Mapping[str, str], name: str, what: str) -> dict[str, int]:
    """The whole numbers that a property of a snapshot maps texts to; empty without it. Raises FormatError."""
    text = properties.get(name)
    if text is None:
        return {}
    try:
        members = JsonObject(parse_json_bounded(text.encode(), name), name)
        return {key: members.integer(key) for key in members.content}
    except FormatError as error:
        raise FormatError(f"snapshot property {name} is not a map of {what}: {text[:80]!r}") from error


def raised_marks(marks: Mapping[str, int], user: str, identifier: int | None) -> dict[str, int]:
    """The marks of the next snapshot: ``user`` last, the longest-silent users left out."""
    raised = {name: value for name, value in marks.items() if name != user}
    if identifier is not None:
        raised[user] = identifier
    elif user in marks:
        raised[user] = marks[user]
    return dict(list(raised.items())[-MARKS_IN_SNAPSHOT:])


def encode_marks(marks: Mapping[str, int]) -> str:
    """The text of the property; order is kept, the user that was silent for longest comes first."""
    return json.dumps(marks, separators=(",", ":"))


def marks_directory(user: str) -> str:
    """The directory of the files about the commits of ``user``."""
    return f"{MARKS_DIR}/{_digest(user)}"


class Replays:
    """The replay filter of one table."""

    def __init__(self, files: FileStore, snapshots: Snapshots) -> None:
        self._files, self._snapshots = files, snapshots

    def highest(self, user: str, latest: Snapshot | None) -> int | None:
        """The highest identifier that ``user`` has committed, None if there is none."""
        return max((i for i in (self._from_snapshots(user, latest), self._from_files(user)) if i is not None), default=None)

    def find(self, user: str, identifier: int) -> Snapshot | None:
        """The retained snapshot of this very commit, if it is still there."""
        for snapshot_id in reversed(self._snapshots.live_ids()):
            snapshot = self._snapshots.find(snapshot_id)
            if snapshot and snapshot.commit_user == user and snapshot.commit_identifier == identifier:
                return snapshot
        return None

    def progress(self, user: str, latest: Snapshot | None) -> tuple[int, str | None] | None:
        """The highest identifier that ``user`` has committed, and the source position that it noted with it, if any; None if it
        has committed nothing."""
        highest = self.highest(user, latest)
        if highest is None:
            return None
        landed = self.find(user, highest)
        if landed is not None and landed.properties:
            return highest, landed.properties.get(SOURCE_POSITION_PROPERTY)
        try:
            text = self._files.read(f"{marks_directory(user)}/{highest:020d}").decode()
        except NotFoundError:
            return highest, None
        return highest, None if text == user else text

    def raise_mark(self, user: str, identifier: int, position: str | None = None) -> None:
        """Record that ``user`` has committed ``identifier``, with this source position; lower marks are removed."""
        directory = marks_directory(user)
        self._files.publish_if_absent(f"{directory}/{identifier:020d}", (position or user).encode())
        for name in self._files.names(directory):
            if is_number(name) and int(name) < identifier:
                self._files.delete(f"{directory}/{name}")

    def keep_mark(self, user: str, identifier: int, position: str | None = None) -> None:
        """Raises the mark as :meth:`raise_mark`, unless it is as high already."""
        recorded = self._from_files(user)
        if recorded is None or recorded < identifier:
            self.raise_mark(user, identifier, position)

    def origins(self, user: str) -> Mapping[str, str]:
        """The places that number the commits of ``user``, by the name of the file that says it; empty if that was never kept."""
        directory = marks_directory(user)
        names = self._files.names(directory, prefix=_ORIGIN)
        return {name: self._files.read(f"{directory}/{name}").decode(errors="replace") for name in names}

    def keep_origin(self, user: str, origin: str) -> None:
        """Record that the commits of ``user`` are numbered at ``origin``, and nowhere else from now on."""
        directory, origin_name = marks_directory(user), f"{_ORIGIN}{_digest(origin)}"
        self._files.publish_if_absent(f"{directory}/{origin_name}", origin.encode())
        for name in self._files.names(directory, prefix=_ORIGIN):
            if name != origin_name:
                self._files.delete(f"{directory}/{name}")

    def check_identifier(self, user: str, identifier: int | None, highest: int | None, latest: Snapshot | None) -> None:
        """One user either numbers all of its commits or none. Raises InvalidInputError."""
        if identifier is not None and highest is None and latest is not None and self._has_unnumbered(user):
            raise InvalidInputError(
                f"commit user {user!r} has committed without identifiers, this one has identifier {identifier}; go on without, or "
                "use another commit_user",
                kind="commit-identifier",
            )
        if identifier is None and highest is not None:
            raise InvalidInputError(
                f"commit user {user!r} numbers its commits (highest: {highest}), this one has no identifier; pass "
                f"identifier={highest + 1} or more, or use another commit_user",
                kind="commit-identifier",
            )
        if identifier is not None and not 0 <= identifier < BATCH_IDENTIFIER:
            raise InvalidInputError(
                f"commit identifier {identifier} is outside of 0 to 2^63 - 2; number the commits of {user!r} upwards from 0",
                kind="commit-identifier",
            )

    def _has_unnumbered(self, user: str) -> bool:
        # Reads all retained snapshots, but only for the first numbered commit of a user.
        return any(
            snapshot.commit_user == user
            and snapshot.commit_identifier == BATCH_IDENTIFIER
            and snapshot.commit_kind is not CommitKind.COMPACT
            for snapshot in self._snapshots.stream()
        )

    def _from_snapshots(self, user: str, latest: Snapshot | None) -> int | None:
        for snapshot in self._snapshots.back_from(latest):
            if snapshot.commit_user == user and snapshot.commit_kind is not CommitKind.COMPACT:
                return None if snapshot.commit_identifier == BATCH_IDENTIFIER else snapshot.commit_identifier
            if MARKS_PROPERTY in snapshot.properties:
                return marks_of(snapshot.properties).get(user)
        return None

    def _from_files(self, user: str) -> int | None:
        names = self._files.names(marks_directory(user))
        return max((int(name) for name in names if is_number(name)), default=None)


def _digest(text: str) -> str:
    # The text is free; a digest is always a safe file name.
    return hashlib.sha256(text.encode()).hexdigest()[:32]
