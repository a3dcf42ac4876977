"""Decides whether the files of a branch without ``schema-0`` may be removed.

    half made       the claim, a tag, hints, a snapshot and schemas: all of them copies of what main has, or had
    half deleted    the rest of a branch, with a mark that says so, which goes last
    damaged         anything else: it holds something of its own, which comes back with ``schema-0``

Only the first two may be removed by anybody but the user, and only once all of their files are old.
"""

from collections.abc import Iterator
from contextlib import suppress

from tablestore.errors import FormatError, NotFoundError
from tablestore.format.paths import (
    EARLIEST_HINT,
    LATEST_HINT,
    SCHEMA_DIR,
    SNAPSHOT_DIR,
    TAG_DIR,
    TAG_PREFIX,
    branch_directory,
    encode_hint,
    parse_hint,
    parse_snapshot_id,
)
from tablestore.format.snapshot import Snapshot
from tablestore.io.filestore import TEMPORARY_PREFIX, FileInfo, FileStore
from tablestore.store.history.references import BranchMetadata
from tablestore.store.history.tags import HOLD_PREFIX, Tags
from tablestore.store.snapshots import Snapshots, same_snapshot

# In the branch's directory. The process that creates this file creates the branch; it names the tag where the branch begins.
CLAIM = "tablestore-branch"
# Its deletion has begun; it holds the newest id of then, so that a branch that is written to afterwards is not taken for deleted.
DELETING = "tablestore-deleting"

_HINTS = frozenset({f"{SNAPSHOT_DIR}/{EARLIEST_HINT}", f"{SNAPSHOT_DIR}/{LATEST_HINT}"})


def is_given_up(main: FileStore, branch: str, older_than: int) -> bool:
    """True if a branch without ``schema-0`` may be removed: nobody is at work on it, and it holds nothing of its own."""
    old = all(info.modified_ms < older_than for _, info in walk(main, branch_directory(branch)))
    return old and not own_files(main, branch)


def mark_deleting(main: FileStore, branch: str) -> None:
    """Say that all of a branch is to go. To be written before anything of it goes, and removed last."""
    main.overwrite(f"{branch_directory(branch)}/{DELETING}", encode_hint(_newest_id(main, branch)))


def own_files(main: FileStore, branch: str) -> tuple[str, ...]:
    """The files of a branch that are no copies of main's; none if its deletion has begun."""
    directory = branch_directory(branch)
    with suppress(NotFoundError):
        marked = parse_hint(main.read(f"{directory}/{DELETING}", max_bytes=64))
        if marked is not None and _newest_id(main, branch) <= marked:
            return ()
    copies = _Copies(main, branch)
    return tuple(path for path, _ in walk(main, directory) if path.removeprefix(f"{directory}/") not in copies)


def _newest_id(main: FileStore, branch: str) -> int:
    return max(BranchMetadata(main, branch).snapshots.listed_ids(), default=0)


class _Copies:
    """The paths in a branch's directory whose files making the branch has written. One that cannot be read is none."""

    def __init__(self, main: FileStore, branch: str) -> None:
        self._main, self._branch = main, BranchMetadata(main, branch)
        self._begins_at = ""
        with suppress(NotFoundError):
            self._begins_at = main.read(f"{branch_directory(branch)}/{CLAIM}").decode(errors="replace")

    def __contains__(self, path: str) -> bool:
        directory, _, name = path.partition("/")
        if path in (CLAIM, DELETING) or path in _HINTS or is_passing(path):
            return True
        try:
            if directory == SCHEMA_DIR:
                return self._main.read(path) == self._branch.files.read(path)
            if directory == TAG_DIR:
                return self._is_copied_tag(name.removeprefix(TAG_PREFIX))
            if directory == SNAPSHOT_DIR and (snapshot_id := parse_snapshot_id(name)) is not None:
                return self._is_mains(self._branch.snapshots.read(snapshot_id))
        except (NotFoundError, FormatError):
            pass
        return False

    def _is_copied_tag(self, name: str) -> bool:
        tag, other = self._branch.tags.find(name), Tags(self._main).find(name)
        return name == self._begins_at or (tag is not None and other is not None and same_snapshot(tag.snapshot, other.snapshot))

    def _is_mains(self, snapshot: Snapshot) -> bool:
        # The branch's copy of the tag outlives that of main.
        tags = (*Tags(self._main).all(), self._branch.tags.find(self._begins_at) if self._begins_at else None)
        main_snapshots = (Snapshots(self._main).find(snapshot.id), *(tag.snapshot for tag in tags if tag is not None))
        return any(other is not None and other.id == snapshot.id and same_snapshot(other, snapshot) for other in main_snapshots)


def is_passing(path: str) -> bool:
    """True if a file is of a kind that exists only for a moment: half published, or the hold of a tag in the making."""
    return path.rpartition("/")[2].startswith((TEMPORARY_PREFIX, HOLD_PREFIX))


def walk(main: FileStore, directory: str) -> Iterator[tuple[str, FileInfo]]:
    """Every file below a directory, with its path. A link is a file: what it leads to is elsewhere."""
    for info in main.list(directory):
        path = f"{directory}/{info.name}"
        if info.is_dir and not info.is_link:
            yield from walk(main, path)
        else:
            yield path, info
