"""Restores an older state of a table, or fast-forwards it to that of a branch, by a new commit.

    rollback_to     the live files become those of an older snapshot or of a tag
    fast_forward    the live files become those of a branch, if main did not change since the branch began

Nothing is removed from the history, so a rollback can be rolled back. The newest schema stays (older files are read through it, as
always; a column that was dropped since does not come back), and so do the marks against replays and the sequence numbers.

Memory: about 1.3 KB of each file, what is cached of manifests among it (``python -m benchmarks scale``), and the entries of the
files that come back or go.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from tablestore.errors import ConflictError, FormatError, NotFoundError, StorageError, TablestoreError, UnsupportedError
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import MAIN_BRANCH, schema_path
from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import UNKNOWN_ROWS
from tablestore.log.opening import ChangeLogs
from tablestore.log.port import ChangeLog
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.commit.rollback import COMPARED_COLUMNS, check_bucket_count, plan_removal, plan_restore, restored_index
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_directory
from tablestore.store.history.branches import check_branch, fork_of
from tablestore.store.history.references import BranchMetadata
from tablestore.store.indexfiles import IndexFiles
from tablestore.store.scan.violations import check_rows, constraints_of
from tablestore.table.history.copyfiles import copy_data_file
from tablestore.table.write.committing import Origin, check_takes_rows, commit_message, overwriting

# In the properties of a fast-forward: the snapshot of the branch.
FAST_FORWARD_PROPERTY = "tablestore.fast-forward"
ROLLBACK_PROPERTY = "tablestore.rollback"

Check = Callable[[Snapshot | None], None]


def rollback_to(context: TableContext, logs: ChangeLogs, target: Snapshot, *, newest: int | None = None) -> Snapshot | None:
    """Give the table the files of ``target``. Returns the new snapshot, None if nothing changes. ``newest``: the id that the newest
    snapshot must have.

    Raises NotFoundError if the target expires meanwhile, ConflictError if others commit faster than this can plan, or (kind
    ``moved-on``) if another snapshot is the newest one, UnsupportedError if its rows lack a column that is NOT NULL now,
    InvalidInputError of kind ``constraint`` if one violates a constraint that the table has now.
    """

    def check(latest: Snapshot | None) -> None:
        if newest is not None and (latest is None or latest.id != newest):
            raise ConflictError(
                f"the newest snapshot of table {context.files.root_uri} is {latest.id if latest else 0}, expected {newest}: others "
                "have committed meanwhile, and would be undone; look at them, and repeat",
                kind="moved-on",
            )

    if newest is not None:
        # Before anything is copied; each round of the commit looks again.
        check(context.snapshots.latest())
    return restore(context, logs, target, properties={ROLLBACK_PROPERTY: _pointer(None, target)}, check=check)


def restored_snapshot_id(snapshot: Snapshot) -> int | None:
    """The id of the snapshot whose files a rollback gave the table by ``snapshot``; None if that is none."""
    text = snapshot.properties.get(ROLLBACK_PROPERTY)
    return None if text is None else _pointed(text, ROLLBACK_PROPERTY)[1]


def _check_has_values(context: TableContext, target: Snapshot) -> None:
    """Refuses columns that older rows lack and that take no NULL; only a replaced table has such."""
    schema = context.schema
    needed = [field for field in schema.fields if not field.type.nullable and field.name not in schema.primary_keys]
    if not needed or target.schema_id == schema.id:
        return
    stored_ids = {field.id for field in context.schemas.read(target.schema_id).fields}
    if missing := [field.name for field in needed if field.id not in stored_ids]:
        raise UnsupportedError(
            f"the rows of snapshot {target.id} have no column {missing[0]!r}, which is NOT NULL since table "
            f"{context.files.root_uri} was replaced; read them by time travel, and replace it once more with what is to come back",
            kind="rollback",
        )


def fast_forward(context: TableContext, logs: ChangeLogs, name: str, *, discard_newer: bool = False) -> Snapshot | None:
    """Give main the files of branch ``name``. With ``discard_newer`` even if main changed since the branch began.

    Raises NotFoundError, ConflictError (kind ``not-a-fast-forward`` or ``schema-changed``).
    """
    context.check_sees_all("a return to other rows")
    check_branch(context.main_files, name)
    branch = BranchMetadata(context.main_files, name)
    target = branch.snapshots.latest()
    if target is None:
        return None

    def check(latest: Snapshot | None) -> None:
        if not discard_newer:
            _check_behind(context, branch, target, latest)

    latest = context.snapshots.latest()
    if _is_there(context, branch, target, latest):
        return None
    check(latest)
    _bring_schemas(context, branch, target)
    context = context.reopened()
    return restore(context, logs, target, properties={FAST_FORWARD_PROPERTY: _pointer(name, target)}, check=check)


def restore(
    context: TableContext, logs: ChangeLogs, target: Snapshot, *, properties: Mapping[str, str], check: Check | None = None
) -> Snapshot | None:
    """Commit the live files of ``target``. ``check`` gets the newest snapshot in every round of the commit."""
    context.check_sees_all("a return to other rows")
    deadline_s = context.clock.steady_s() + context.settings.commit_timeout_s
    attempts = 0
    while True:
        context = context.at_newest_schema()
        check_takes_rows(context)
        _check_has_values(context, target)
        for constraint in constraints_of(context) if context.settings.constrained else ():
            check_rows(context, target, constraint)
        try:
            return _restore_once(context, logs.of(context), target, properties, check)
        except StalePlan as error:
            attempts += 1
            if context.clock.steady_s() >= deadline_s:
                raise ConflictError(
                    f"the files of table {context.files.root_uri} changed {attempts} times while snapshot {target.id} was "
                    f"restored, and commit.timeout ({context.settings.commit_timeout_s:.0f} s) is over; repeat it when fewer "
                    "writers are at work"
                ) from error


def _restore_once(
    context: TableContext, log: ChangeLog, target: Snapshot, properties: Mapping[str, str], check: Check | None
) -> Snapshot | None:
    manifests, table = context.manifests, context.files.root_uri
    base = context.snapshots.latest()
    target_files = manifests.live_columns(target, COMPARED_COLUMNS)
    check_bucket_count(target_files, context.settings.total_buckets, table)
    plan = plan_restore(target_files, manifests.live_columns(base, COMPARED_COLUMNS), partial(manifests.live_named, target))
    index_then = manifests.read_index(target)
    message = context.message(base)
    copies = _copies(context, plan.coming_back)
    renamed = {old.file.file_name: new.file.file_name for old, new in zip(plan.coming_back, copies, strict=True)}
    index_files = IndexFiles(context.files, context.ids)

    def plan_deletes(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        if check is not None:
            check(latest)
        return plan_removal(plan, manifests.live_columns(latest, COMPARED_COLUMNS), partial(manifests.live_named, latest), table)

    def plan_index(latest: Snapshot | None, deletes: Sequence[ManifestEntry]) -> Sequence[IndexEntry]:
        live_index = manifests.read_index(latest) if latest is not None else ()
        return restored_index(index_then, live_index, renamed, index_files)

    effect = overwriting(
        plan_deletes=plan_deletes, plan_index=plan_index, properties=properties, keeps_rows=True, rows=UNKNOWN_ROWS
    )
    return commit_message(context, log, replace(message, entries=copies), effect, Origin(user=context.ids.uuid()))


def _copies(context: TableContext, entries: Sequence[ManifestEntry]) -> tuple[ManifestEntry, ...]:
    copies: list[ManifestEntry] = []
    try:
        for entry in entries:
            copies.append(copy_data_file(context, entry))
        for directory in sorted({entry_directory(context.paths, entry, context.schema) for entry in copies}):
            context.files.sync(directory)
    except TablestoreError:
        for copy in copies:
            with suppress(StorageError):
                context.remove_file(copy)
        raise
    return tuple(copies)


def _check_behind(context: TableContext, branch: BranchMetadata, target: Snapshot, latest: Snapshot | None) -> None:
    """Raise ConflictError unless main has not changed since the branch began, or since it was last fast-forwarded to it."""
    fork = fork_of(branch)
    began = fork.snapshot.id if fork is not None else 0
    snapshot = _before_compactions(context, latest, began)
    if snapshot is None or snapshot.id <= began or _source(snapshot, branch, target) is not None:
        return
    if snapshot.commit_kind.keeps_rows:
        raise ConflictError(
            f"whether table {context.files.root_uri} changed between snapshots {began} and {snapshot.id} is no longer known, "
            f"because those in between have expired; pass discard_newer=True to take branch {branch.name!r}",
            kind="not-a-fast-forward",
        )
    raise ConflictError(
        f"table {context.files.root_uri} changed since branch {branch.name!r} began (at snapshot {began}): snapshot {snapshot.id} "
        f"by {snapshot.commit_user} is a {snapshot.commit_kind}, and would be undone; overwrite the table with the rows of the "
        "branch, or pass discard_newer=True",
        kind="not-a-fast-forward",
    )


def _is_there(context: TableContext, branch: BranchMetadata, target: Snapshot, latest: Snapshot | None) -> bool:
    """True if the table was fast-forwarded to ``target`` before and has not changed since."""
    snapshot = _before_compactions(context, latest, 0)
    return snapshot is not None and _source(snapshot, branch, target) == target.id


def _before_compactions(context: TableContext, latest: Snapshot | None, floor: int) -> Snapshot | None:
    """The newest snapshot above ``floor`` that changed rows. If it has expired, the oldest compaction after it; None for none."""
    snapshot = latest
    while snapshot is not None and snapshot.id > floor and snapshot.commit_kind.keeps_rows:
        previous = context.snapshots.find(snapshot.id - 1) if snapshot.id - 1 > floor else None
        if previous is None:
            return snapshot if snapshot.id - 1 > floor else None
        snapshot = previous
    return snapshot


def _source(snapshot: Snapshot, branch: BranchMetadata, target: Snapshot) -> int | None:
    """The snapshot of the branch that ``snapshot`` fast-forwarded to, None unless it is that and not after ``target``."""
    text = snapshot.properties.get(FAST_FORWARD_PROPERTY)
    if text is None:
        return None
    name, source, uuid = _pointed(text, FAST_FORWARD_PROPERTY)
    if name != branch.name or source > target.id:
        return None
    source_snapshot = target if source == target.id else branch.snapshots.find(source)
    return source if source_snapshot is None or source_snapshot.uuid == uuid else None


def _pointer(branch: str | None, target: Snapshot) -> str:
    return json.dumps({"branch": branch or MAIN_BRANCH, "snapshot": target.id, "uuid": target.uuid}, separators=(",", ":"))


def _pointed(text: str, key: str) -> tuple[str, int, str]:
    """The branch, the snapshot's id and its uuid of a property that :func:`_pointer` wrote. Raises FormatError."""
    try:
        pointer = json.loads(text)
        return pointer["branch"], int(pointer["snapshot"]), pointer["uuid"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"snapshot property {key} is not what tablestore writes: {text[:80]!r}") from error


def _bring_schemas(context: TableContext, branch: BranchMetadata, target: Snapshot) -> None:
    """Publish the schemas that files of the branch use and main lacks. Raises ConflictError if main has others of these ids."""
    used = {target.schema_id, *context.manifests.live_columns(target, ("schema_id",)).numbers("schema_id").tolist()}
    main_ids = set(context.schemas.ids())
    for schema_id in sorted(branch.schemas.ids()):
        if schema_id > max(used):
            continue
        theirs = branch.schemas.read(schema_id)
        if schema_id not in main_ids:
            context.files.publish_if_absent(schema_path(schema_id), branch.files.read(schema_path(schema_id)))
        try:
            ours = context.schemas.read(schema_id)
        except NotFoundError:
            ours = None
        if ours is None or (ours.fields, ours.primary_keys, ours.partition_keys) != (
            theirs.fields,
            theirs.primary_keys,
            theirs.partition_keys,
        ):
            raise ConflictError(
                f"schema {schema_id} of table {context.files.root_uri} is not that of branch {branch.name!r}: both were altered "
                "since the branch began, and files keep the schema they were written with; read the branch and overwrite the table "
                "with its rows",
                kind="schema-changed",
            )
