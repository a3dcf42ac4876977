"""Branches: further histories of one table, beginning at one of its snapshots.

    main     1 ─ 2 ─ 3 ─ 4          tag/tag-release (snapshot 3)
                     └─ 4' ─ 5'     branch/branch-b/{snapshot,schema,tag}, with the same tag: where it began

Only metadata is copied. Data files and manifests lie where main's do, and every expiry reads all branches. The tag on both sides
is for engines that read tags only. A branch exists while its ``schema-0`` does, which is written last and removed first; any
other directory of that name is a half-made, half-deleted or damaged branch.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from tablestore.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError, StorageError, UnsupportedError
from tablestore.format.paths import (
    EARLIEST_HINT,
    LATEST_HINT,
    MAIN_BRANCH,
    SCHEMA_DIR,
    SNAPSHOT_DIR,
    branch_directory,
    encode_hint,
    schema_path,
    snapshot_path,
    tag_path,
)
from tablestore.format.snapshot import Snapshot, encode_snapshot
from tablestore.format.tagfile import Tag, encode_tag
from tablestore.io.filestore import FileStore
from tablestore.store.context import TableContext
from tablestore.store.history.branchfiles import branch_files
from tablestore.store.history.references import BranchMetadata, branch_directories, has_changelog, other_branches, own_branch
from tablestore.store.history.tags import Tags, create_tag
from tablestore.store.history.unfinishedbranches import CLAIM, mark_deleting
from tablestore.store.history.unreferenced import remove_unreferenced
from tablestore.store.snapshots import same_snapshot

# The tag of the snapshot at which a branch begins, if it does not begin at a tag.
FORK_TAG_PREFIX = "branch-"
LONGEST_NAME = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch: where it began, and its newest snapshot (None: not written, or not known)."""

    name: str
    created_from_tag: str | None = None
    created_from_snapshot: int | None = None
    latest_snapshot: int | None = None


def branch_exists(main: FileStore, name: str) -> bool:
    """True if a branch of that name exists, completely made."""
    return name == MAIN_BRANCH or branch_files(main, name).exists(schema_path(0))


def list_branches(main: FileStore) -> tuple[Branch, ...]:
    """The branches but main, by name."""
    return tuple(_describe(main, name) for name in sorted(branch_directories(main)) if branch_exists(main, name))


def check_branch(main: FileStore, name: str) -> None:
    """Raise NotFoundError unless there is a branch of that name."""
    if not branch_exists(main, name):
        branch_names = ", ".join(name for name in branch_directories(main) if branch_exists(main, name)) or "none"
        raise NotFoundError(f"table {main.root_uri} has no branch {name!r}; there are: {branch_names}", kind="no-such-branch")


def create_branch(context: TableContext, name: str, *, tag: str | None = None, snapshot: Snapshot | None = None) -> Branch:
    """Begin a branch at a tag, or at a live snapshot (which gets a tag ``branch-<name>``).

    Raises AlreadyExistsError, NotFoundError if tag or snapshot are deleted meanwhile. Nothing of the branch remains then.
    """
    files = context.files
    _check_on_main(context, "create a branch")
    if name == MAIN_BRANCH or len(name) > LONGEST_NAME:
        raise InvalidInputError(
            f"expected a branch name of at most {LONGEST_NAME} characters other than {MAIN_BRANCH!r}, found {name!r}",
            kind="invalid-name",
        )
    if branch_exists(files, name):
        raise AlreadyExistsError(f"table {files.root_uri} has a branch {name!r}; choose another name", kind="branch-exists")
    if name in branch_directories(files):
        raise AlreadyExistsError(
            f"{files.root_uri}/{branch_directory(name)} is a half-made or half-deleted branch: delete_branch({name!r}) removes it",
            kind="branch-exists",
        )
    tags = Tags(files)
    if tag is None:
        assert snapshot is not None, "a branch begins somewhere"
        fork = create_tag(
            tags,
            context.snapshots,
            f"{FORK_TAG_PREFIX}{name}",
            snapshot,
            ids=context.ids,
            clock=context.clock,
            orphan_age_s=context.settings.orphan_age_s,
        )
    else:
        fork = tags.get(tag)
    if not files.publish_if_absent(f"{branch_directory(name)}/{CLAIM}", fork.name.encode()):
        raise AlreadyExistsError(
            f"another process is creating branch {name!r} of table {files.root_uri}; choose another name",
            kind="branch-exists",
        )
    try:
        _write(context, name, fork)
    except (NotFoundError, AlreadyExistsError, ConflictError, StorageError):
        # The claim shows that this process made all of it. What cannot be removed now, delete_branch removes.
        with suppress(StorageError):
            _remove(files, name)
            if tag is None:
                tags.remove(fork.name)
        raise
    return _describe(files, name)


def delete_branch(context: TableContext, name: str) -> None:
    """Delete a branch and the files that only it references. Raises NotFoundError."""
    files = context.files
    _check_on_main(context, "delete a branch")
    if name == MAIN_BRANCH:
        raise InvalidInputError(
            f"{MAIN_BRANCH!r} is table {files.root_uri} itself: drop the table, or delete another branch", kind="invalid-name"
        )
    if name not in branch_directories(files):
        check_branch(files, name)
    branch = BranchMetadata(files, name)
    held = (*branch.snapshots.tail(), *(tag.snapshot for tag in branch.tags.all()), *branch.changelogs.all())
    fork = fork_of(branch)
    _remove(files, name)
    remove_unreferenced(context, held)
    if fork is not None and fork.name == f"{FORK_TAG_PREFIX}{name}":
        with suppress(NotFoundError):
            delete_tag(context, fork.name)


def delete_tag(context: TableContext, name: str) -> Tag:
    """Delete a tag and the files that only it references. Raises NotFoundError, InvalidInputError if a branch began at it."""
    branch = own_branch(context)
    tag = branch.tags.get(name)
    _check_unneeded(context, tag)
    branch.tags.remove(name)
    if not _is_still_there(context, tag.snapshot):
        remove_unreferenced(context, (tag.snapshot,))
    return tag


def rename_tag(context: TableContext, name: str, new_name: str) -> None:
    """Rename a tag: the new name is written before the old one is removed, so that its files are referenced all the time.

    Raises NotFoundError, AlreadyExistsError, InvalidInputError if a branch began at it.
    """
    files, tags = context.files, Tags(context.files)
    tag = tags.get(name)
    _check_unneeded(context, tag)
    try:
        data = files.read(tag_path(name))
    except NotFoundError:
        tags.get(name)
        raise
    tags.publish(new_name, data, create_time_millis=tag.create_time_millis, retained_millis=tag.retained_millis)
    if tags.find(name) is None:
        # Deleted meanwhile, with its files.
        tags.remove(new_name)
        tags.get(name)
    tags.remove(name)


def branch_that_needs(context: TableContext, tag: Tag) -> str | None:
    """The branch that began at a tag of this branch, or this branch if it began at the tag."""
    for branch in other_branches(own_branch(context)):
        if MAIN_BRANCH not in (context.branch, branch.name):
            continue
        other = branch.tags.find(tag.name)
        if other is not None and same_snapshot(other.snapshot, tag.snapshot) and branch_exists(branch.main, branch.name):
            return branch.name if branch.name != MAIN_BRANCH else context.branch
    return None


def _check_unneeded(context: TableContext, tag: Tag) -> None:
    if (branch := branch_that_needs(context, tag)) is not None:
        raise InvalidInputError(
            f"branch {branch!r} of table {context.files.root_uri} began at tag {tag.name!r}, which protects its files from other "
            f"engines: delete_branch({branch!r}) first",
            kind="tag-in-use",
        )


def fork_of(branch: BranchMetadata) -> Tag | None:
    """The tag at which a branch began: the oldest that main has too."""
    main = Tags(branch.main)
    for tag in branch.tags.all():
        other = main.find(tag.name)
        if other is not None and same_snapshot(other.snapshot, tag.snapshot):
            return tag
    return None


def _check_on_main(context: TableContext, action: str) -> None:
    if context.branch != MAIN_BRANCH:
        raise UnsupportedError(
            f"cannot {action} on branch {context.branch!r} of table {context.files.root_uri}: do it on the main branch",
            kind="not-on-main",
        )


def _write(context: TableContext, name: str, fork: Tag) -> None:
    main, branch = context.files, branch_files(context.main_files, name)
    started_millis = context.clock.now_ms()
    try:
        source = main.read(tag_path(fork.name))
    except NotFoundError as error:
        raise _tag_deleted(main, name, fork) from error
    # Without a retention time, so that it outlives the tag on main.
    create_time = fork.create_time_millis
    branch.write(tag_path(fork.name), encode_tag(source, create_time_millis=create_time, retained_millis=None))
    # Encoded anew, because other engines drop keys that they do not know from a tag.
    branch.write(snapshot_path(fork.snapshot.id), encode_snapshot(fork.snapshot))
    for hint in (EARLIEST_HINT, LATEST_HINT):
        branch.overwrite(f"{SNAPSHOT_DIR}/{hint}", encode_hint(fork.snapshot.id))
    # From here on the snapshot is referenced. But a tag keeps no changelog: one that had expired before must not be named.
    if fork.snapshot.changelog_manifest_list is not None and not has_changelog(fork.snapshot, context.manifests):
        without = replace(
            fork.snapshot, changelog_manifest_list=None, changelog_manifest_list_size=None, changelog_record_count=None
        )
        branch.overwrite(snapshot_path(fork.snapshot.id), encode_snapshot(without))
    # If the tag is still there, its files were kept until the branch referenced them.
    stored_tag = Tags(main).find(fork.name)
    if stored_tag is None or not same_snapshot(stored_tag.snapshot, fork.snapshot):
        raise _tag_deleted(main, name, fork)
    if context.clock.now_ms() - started_millis > context.settings.orphan_age_s * 1000 / 2:
        raise ConflictError(
            f"creating branch {name!r} of table {main.root_uri} took longer than half of the age at which half-made branches are "
            "removed: create it again",
            kind="too-old",
        )
    for schema_id in sorted((i for i in context.schemas.ids() if i <= fork.snapshot.schema_id), reverse=True):
        branch.publish_if_absent(schema_path(schema_id), main.read(schema_path(schema_id)))


def _tag_deleted(main: FileStore, name: str, fork: Tag) -> NotFoundError:
    return NotFoundError(
        f"tag {fork.name!r} of table {main.root_uri} was deleted while branch {name!r} was created from it; no branch was created",
        kind="no-such-tag",
    )


def _remove(files: FileStore, name: str) -> None:
    directory = branch_directory(name)
    mark_deleting(files, name)
    branch = branch_files(files, name)
    if branch.delete(schema_path(0)):
        # Without it this is no branch, also after a power failure, which may bring the rest back and none of its data. Others may
        # be removing the branch too.
        with suppress(NotFoundError):
            branch.sync(SCHEMA_DIR)
    for info in files.list(directory):
        if info.is_dir:
            files.delete_directory(f"{directory}/{info.name}")
    # The mark goes last: without it the rest would look like a branch that lost its schema.
    files.delete_directory(directory)


def _describe(files: FileStore, name: str) -> Branch:
    branch = BranchMetadata(files, name)
    fork, ids = fork_of(branch), branch.snapshots.live_ids()
    return Branch(
        name=name,
        created_from_tag=fork.name if fork is not None else None,
        created_from_snapshot=fork.snapshot.id if fork is not None else None,
        latest_snapshot=ids[-1] if ids else None,
    )


def _is_still_there(context: TableContext, snapshot: Snapshot) -> bool:
    current = context.snapshots.find(snapshot.id)
    return current is not None and same_snapshot(current, snapshot) and context.snapshots.is_retained(snapshot.id)
