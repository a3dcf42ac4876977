"""Removes orphan files: files that no snapshot, tag or branch names.

    list candidates: old files of the table's own kinds
      -> read what all branches reference with their snapshots, tags and kept changelogs; twice
      -> remove the candidates that neither pass found

Candidates are listed before references are read, so a file that a concurrent commit adds is either young or referenced. A
commit whose files are older than half of ``tablestore.orphan-age`` is refused, so with that age or more no running commit
loses a file. If metadata that must be there cannot be read, nothing is removed, because what it names is unknown.

Besides data files and metadata these are removed: files half published (``.tmp-…``), snapshots outside of the history (below a
gap, in the intent of an expiry that died, or published late), expiry intents, and half-made or half-deleted branches.
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
from tablestore.htmltext import PrintedInNotebooks
from tablestore.io.filestore import TEMPORARY_PREFIX, FileInfo, FileStore
from tablestore.store.context import TableContext
from tablestore.store.history.branchfiles import OWN_DIRECTORIES
from tablestore.store.history.expire import produces_changelog
from tablestore.store.history.expiryintents import EXPIRY_DIR
from tablestore.store.history.references import BranchMetadata, Needs, branch_directories, held_snapshots, reread
from tablestore.store.history.tags import HOLD_PREFIX
from tablestore.store.history.unfinishedbranches import DELETING, is_given_up, is_passing, walk
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
class CleanReport(PrintedInNotebooks):
    """The files that were removed, or with ``dry_run`` would be. Print it."""

    dry_run: bool
    orphans: tuple[Orphan, ...] = ()
    examined: int = 0

    @property
    def bytes(self) -> int:
        """The size of the orphans together."""
        return sum(orphan.bytes for orphan in self.orphans)

    def __str__(self) -> str:
        """One branch, by kind."""
        counts = Counter(orphan.kind for orphan in self.orphans)
        kinds = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) or "none"
        verb = "would remove" if self.dry_run else "removed"
        return f"{verb} {len(self.orphans)} orphan file(s) ({kinds}) of {self.bytes:,} bytes; {self.examined} old file(s) examined"


def remove_orphan_files(context: TableContext, *, older_than_millis: int, dry_run: bool) -> CleanReport:
    """Remove files that nothing names and that were last modified before ``older_than_millis`` (since the epoch).

    Raises NotFoundError (kind ``metadata-gone``) if metadata that must be there is missing; nothing is removed then.
    """
    main = context.main_files
    candidates = list(_candidates(context, main, older_than_millis))
    data_names = {name_of(orphan.path) for orphan in candidates if orphan.kind == "data"}
    given_up = {orphan.path for orphan in candidates if orphan.kind in ("branch", "temporary")}
    needed: set[str] = set()
    for _ in range(2):
        needed |= _needed(context, main, data_names, given_up)
    orphans = tuple(o for o in candidates if o.path not in needed and (o.kind in _BY_PLACE or name_of(o.path) not in needed))
    if not dry_run:
        for orphan in sorted(orphans, key=_turn):
            main.delete(orphan.path)
    return CleanReport(dry_run=dry_run, orphans=orphans, examined=len(candidates))


def _turn(orphan: Orphan) -> tuple[int, bool, int]:
    """The order in which orphans go: snapshots first, oldest first, as in an expiry; of a branch last the mark of its deletion."""
    return KINDS.index(orphan.kind), name_of(orphan.path) == DELETING, parse_snapshot_id(orphan.path) or 0


# References to these are compared by path, to the others by name.
_BY_PLACE = frozenset({"snapshot", "note", "branch", "temporary"})


def name_of(path: str) -> str:
    """The last segment."""
    return path.rpartition("/")[2]


def _needed(context: TableContext, main: FileStore, data_names: set[str], given_up: set[str]) -> set[str]:
    """Names of files, and paths of snapshots, that must stay. ``given_up``: old files that reference nothing any more."""
    old_holds = {name_of(path) for path in given_up if name_of(path).startswith(HOLD_PREFIX)}

    def read() -> set[str]:
        needs = Needs(context.manifests, wanted=data_names)
        held: set[str] = set()
        for branch in _branches(main, given_up):
            prefix = "" if branch.name == MAIN_BRANCH else f"{branch_directory(branch.name)}/"
            snapshots = held_snapshots(branch, context.manifests)
            needs.add_branch(branch, lambda snapshot: produces_changelog(context, snapshot), without_holds=old_holds)
            held |= {f"{prefix}{snapshot_path(snapshot.id)}" for snapshot in snapshots}
        return held | needs.data | needs.metadata | needs.index | needs.statistics

    try:
        return reread(read)
    except NotFoundError as error:
        raise NotFoundError(f"table {main.root_uri} was not cleaned, nothing was removed: {error}", kind="metadata-gone") from error


def _branches(main: FileStore, given_up: set[str]) -> tuple[BranchMetadata, ...]:
    # Half-made branches count unless they are given up, because they may become whole.
    given_up_branches = {path.split("/")[1] for path in given_up if path.startswith(f"{BRANCH_DIR}/") and not is_passing(path)}
    names = [name for name in branch_directories(main) if f"{BRANCH_PREFIX}{name}" not in given_up_branches]
    return tuple(BranchMetadata(main, name) for name in (MAIN_BRANCH, *names))


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
            yield from (Orphan(path=path, bytes=info.size, kind="branch") for path, info in walk(main, directory))


def _of_history(main: FileStore, prefix: str, older_than: int) -> Iterator[Orphan]:
    """Old files of one branch: snapshots (also those in use, which the caller leaves out), intents, files half published."""
    marks = [f"{MARKS_DIR}/{info.name}" for info in main.list(f"{prefix}{MARKS_DIR}") if info.is_dir and not info.is_link]
    for directory in (*sorted(OWN_DIRECTORIES), *marks):
        for info in _old(main, f"{prefix}{directory}", older_than):
            if is_passing(info.name):
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
            if not info.is_dir or info.is_link:
                continue
            if _BUCKET.fullmatch(info.name):
                yield path
            elif "=" in info.name:
                pending.append(path)


def _old(main: FileStore, directory: str, older_than: int) -> Sequence[FileInfo]:
    return [info for info in main.list(directory) if not info.is_dir and info.modified_ms < older_than]


def _orphan(directory: str, info: FileInfo, kind: str) -> Orphan:
    if info.name.startswith(TEMPORARY_PREFIX):
        kind = "temporary"
    return Orphan(path=f"{directory}/{info.name}", bytes=info.size, kind=kind)
