"""Removing files that nothing names.

    list candidates: old files of the table's own kinds
      -> what is needed, over all branches with their snapshots, tags and kept changelogs; then the same once more
      -> candidates that neither look found: removed

Candidates are listed before anything is looked up, so a file that a commit brings in meanwhile is either young, or in what it
finds. A commit whose files are older than half of ``tablestore.orphan-age`` is refused, so with an age of that option or more no
running commit can lose a file. If anything that must be there cannot be read, what it names is unknown: nothing is removed.

Besides data files and metadata these go: files half published (``.tmp-…``), snapshots that are nobody's parent any more (below a
gap, named by the intent of an expiry that died, or published late beside the history), notes about expiries, and branches that were
half made or half deleted.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tablestore.errors import NotFoundError
from tablestore.format.paths import (
    BRANCH_DIR,
    BRANCH_PREFIX,
    INDEX_DIR,
    MAIN_BRANCH,
    MANIFEST_DIR,
    STATISTICS_DIR,
    branch_directory,
    parse_snapshot_id,
    schema_path,
    snapshot_path,
)
from tablestore.io.filestore import TEMPORARY_PREFIX, FileInfo, FileStore
from tablestore.store.context import TableContext
from tablestore.store.history.branchfiles import OWN_DIRECTORIES
from tablestore.store.history.expire import LOOKS, produces_changelog
from tablestore.store.history.expiryintents import EXPIRY_DIR
from tablestore.store.history.references import Line, Needs, branch_directories, held_snapshots
from tablestore.store.history.tags import HOLD_PREFIX
from tablestore.store.replay import MARKS_DIR

_BUCKET = re.compile(r"bucket-(\d+|postpone)", re.ASCII)
_SHARED = (MANIFEST_DIR, INDEX_DIR, STATISTICS_DIR)
KINDS = ("snapshot", "note", "branch", "temporary", "metadata", "index", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A file that nothing names: its path inside the table, its bytes, and one of ``KINDS``."""

    path: str
    bytes: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanReport:
    """What was removed, or with ``dry_run`` would be. Print it."""

    dry_run: bool
    orphans: tuple[Orphan, ...] = ()
    examined: int = 0

    @property
    def bytes(self) -> int:
        """The size of the orphans together."""
        return sum(orphan.bytes for orphan in self.orphans)

    def __str__(self) -> str:
        """One line, by kind."""
        counts = Counter(orphan.kind for orphan in self.orphans)
        kinds = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) or "none"
        verb = "would remove" if self.dry_run else "removed"
        return f"{verb} {len(self.orphans)} orphan file(s) ({kinds}) of {self.bytes:,} bytes; {self.examined} old file(s) examined"


def remove_orphan_files(context: TableContext, *, older_than_millis: int, dry_run: bool) -> CleanReport:
    """Remove what was last modified before ``older_than_millis`` (since the epoch) and is not named by anything.

    Raises NotFoundError (kind ``metadata-gone``) if something that must be there is missing; nothing is removed then.
    """
    main = context.main_files
    found = list(_candidates(context, main, older_than_millis))
    wanted = {name_of(orphan.path) for orphan in found if orphan.kind == "data"}
    given_up = {orphan.path for orphan in found if orphan.kind in ("branch", "temporary")}
    needed: set[str] = set()
    for _ in range(2):
        needed |= _needed(context, main, wanted, given_up)
    orphans = tuple(o for o in found if o.path not in needed and (o.kind in _BY_PLACE or name_of(o.path) not in needed))
    if not dry_run:
        # Snapshots first and oldest first, as expiry does.
        for orphan in sorted(orphans, key=lambda orphan: (KINDS.index(orphan.kind), parse_snapshot_id(orphan.path) or 0)):
            main.delete(orphan.path)
    return CleanReport(dry_run=dry_run, orphans=orphans, examined=len(found))


# These are judged by where they lie; the others by whether their name is in use.
_BY_PLACE = frozenset({"snapshot", "note", "branch", "temporary"})


def name_of(path: str) -> str:
    """The last segment."""
    return path.rpartition("/")[2]


def _needed(context: TableContext, main: FileStore, wanted: set[str], given_up: set[str]) -> set[str]:
    """Names of files, and paths of snapshots, that must stay. ``given_up``: old files that hold on to nothing any more."""
    old_holds = {name_of(path) for path in given_up if name_of(path).startswith(HOLD_PREFIX)}
    for look in range(LOOKS):
        needs = Needs(context.manifests, wanted=wanted)
        held: set[str] = set()
        try:
            for line in _lines(main, given_up):
                prefix = "" if line.branch == MAIN_BRANCH else f"{branch_directory(line.branch)}/"
                snapshots = held_snapshots(line, context.manifests)
                needs.add_line(line, lambda snapshot: produces_changelog(context, snapshot), without_holds=old_holds)
                held |= {f"{prefix}{snapshot_path(snapshot.id)}" for snapshot in snapshots}
            return held | needs.data | needs.metadata | needs.index | needs.statistics
        except NotFoundError as error:
            # Snapshots and tags may go while we read them. What is missing for good must not be taken for unused.
            if look == LOOKS - 1:
                raise NotFoundError(
                    f"table {main.root_uri} was not cleaned, nothing was removed: {error}", kind="metadata-gone"
                ) from error
    raise AssertionError("the loop returns or raises")


def is_passing(path: str) -> bool:
    """Whether a file is of the kinds that are only there for a moment."""
    return name_of(path).startswith((TEMPORARY_PREFIX, HOLD_PREFIX))


def _lines(main: FileStore, given_up: set[str]) -> tuple[Line, ...]:
    # Half made branches too, unless they are given up: they may become whole.
    gone = {path.split("/")[1] for path in given_up if path.startswith(f"{BRANCH_DIR}/") and not is_passing(path)}
    names = [name for name in branch_directories(main) if f"{BRANCH_PREFIX}{name}" not in gone]
    return tuple(Line(main, name) for name in (MAIN_BRANCH, *names))


def _candidates(context: TableContext, main: FileStore, older_than: int) -> Iterator[Orphan]:
    for directory in _SHARED:
        kind = "index" if directory == INDEX_DIR else "metadata"
        for info in _old(main, directory, older_than):
            yield _orphan(directory, info, kind)
    for directory in _bucket_directories(main, context.settings.data_directory):
        for info in _old(main, directory, older_than):
            yield _orphan(directory, info, "data")
    yield from _of_history(main, "", older_than)
    for name in branch_directories(main):
        directory = branch_directory(name)
        if main.exists(f"{directory}/{schema_path(0)}"):
            yield from _of_history(main, f"{directory}/", older_than)
        elif is_given_up(main, name, older_than):
            yield from (Orphan(path=path, bytes=info.size, kind="branch") for path, info in _walk(main, directory))


def is_given_up(main: FileStore, branch: str, older_than: int) -> bool:
    """Whether nobody is at work any more on a branch that is half made or half deleted: all of its files are old."""
    return all(info.modified_ms < older_than for _, info in _walk(main, branch_directory(branch)))


def _of_history(main: FileStore, prefix: str, older_than: int) -> Iterator[Orphan]:
    """Old files of one line: its snapshots (all of them; those that are held are needed), notes, what was half published."""
    marks = [f"{MARKS_DIR}/{info.name}" for info in main.list(f"{prefix}{MARKS_DIR}") if info.is_dir]
    for directory in (*sorted(OWN_DIRECTORIES), *marks):
        for info in _old(main, f"{prefix}{directory}", older_than):
            if info.name.startswith((TEMPORARY_PREFIX, HOLD_PREFIX)):
                yield _orphan(f"{prefix}{directory}", info, "temporary")
            elif directory == EXPIRY_DIR:
                yield _orphan(f"{prefix}{directory}", info, "note")
            elif parse_snapshot_id(info.name) is not None:
                yield _orphan(f"{prefix}{directory}", info, "snapshot")


def _bucket_directories(main: FileStore, data_directory: str) -> Iterator[str]:
    start = data_directory.strip("/")
    pending = [start]
    while pending:
        directory = pending.pop()
        for info in main.list(directory):
            path = f"{directory}/{info.name}" if directory else info.name
            if not info.is_dir:
                continue
            if _BUCKET.fullmatch(info.name):
                yield path
            elif "=" in info.name:
                pending.append(path)


def _old(main: FileStore, directory: str, older_than: int) -> Sequence[FileInfo]:
    return [info for info in main.list(directory) if not info.is_dir and info.modified_ms < older_than]


def _walk(main: FileStore, directory: str) -> Iterator[tuple[str, FileInfo]]:
    for info in main.list(directory):
        path = f"{directory}/{info.name}"
        if info.is_dir:
            yield from _walk(main, path)
        else:
            yield path, info


def _orphan(directory: str, info: FileInfo, kind: str) -> Orphan:
    if info.name.startswith(TEMPORARY_PREFIX):
        kind = "temporary"
    return Orphan(path=f"{directory}/{info.name}", bytes=info.size, kind=kind)
