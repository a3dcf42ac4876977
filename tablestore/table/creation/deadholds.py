"""Which tables keep snapshots for a materialized table that is no more, or never came to be?

    holds on all tables ── records of creations ── tables that are there

A hold names the uuid of its target, and where this lay. It is dead if its target lay in this warehouse and no table and no creation
has that uuid. The order matters: a target is on record before it holds anything, and stays so until it has its name. So what is
found nowhere after its hold was seen has neither. Where the target lay elsewhere, or an earlier release took the hold, nothing is
known, and the hold stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tablestore.catalog.identifier import Identifier
from tablestore.errors import NotFoundError
from tablestore.format.paths import MAIN_BRANCH
from tablestore.io.filestore import FileStore
from tablestore.store.history.branchfiles import branch_files
from tablestore.store.history.holds import Hold, Holds, hold_uuid
from tablestore.store.history.references import branch_directories
from tablestore.table.creation.creationtools import CreationTools


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadHold:
    """A table that keeps the snapshots of a branch from ``next_snapshot`` on for nobody. ``owner``: for whom they were kept."""

    table: str
    branch: str
    next_snapshot: int
    owner: str

    def __str__(self) -> str:
        branch = "" if self.branch == MAIN_BRANCH else f" (branch {self.branch})"
        return f"snapshots of table {self.table}{branch} from {self.next_snapshot} on, kept for {self.owner}, which is gone"


def release_dead_holds(tools: CreationTools, *, dry_run: bool) -> tuple[DeadHold, ...]:
    """Let expiry have what is kept for targets of this warehouse that are gone; with ``dry_run`` only say what that is.

    Raises FormatError, StorageError if a record or a table cannot be read: it may be the target.
    """
    here = f"{tools.meta.files.root_uri.rstrip('/')}/"
    held = [one for one in _held(tools) if one.hold.target_uuid and (one.hold.target or "").startswith(here)]
    # Each of these holds was there before its target is looked for.
    alive = {*_on_record(tools), *_there(tools)} if held else set()
    dead = [one for one in held if one.hold.target_uuid not in alive]
    if not dry_run:
        for one in dead:
            Holds(one.files).release(one.hold.name)
    return tuple(
        DeadHold(table=str(one.table), branch=one.branch, next_snapshot=one.hold.next_snapshot, owner=one.hold.owner)
        for one in dead
    )


@dataclass(frozen=True, slots=True)
class _Held:
    table: Identifier
    branch: str
    files: FileStore
    hold: Hold


def _held(tools: CreationTools) -> Iterator[_Held]:
    for table in _tables(tools):
        try:
            main = tools.meta.table_files(table)
        except NotFoundError:
            continue  # Its holds went with it.
        for branch in (MAIN_BRANCH, *branch_directories(main)):
            files = branch_files(main, branch)
            for hold in Holds(files).all():
                yield _Held(table, branch, files, hold)


def _on_record(tools: CreationTools) -> Iterator[str]:
    """The tables that are being made or replaced, or whose dead creation was not swept yet."""
    for job_id in tools.creations.job_ids():
        if (record := tools.creations.find(job_id)) is not None:
            yield hold_uuid(record.table_uuid)
            if record.replaced_uuid is not None:
                yield hold_uuid(record.replaced_uuid)


def _there(tools: CreationTools) -> Iterator[str]:
    for table in _tables(tools):
        try:
            uuid = tools.uuid_of(table)
        except NotFoundError:
            continue
        if uuid is not None:
            yield hold_uuid(uuid)


def _tables(tools: CreationTools) -> Iterator[Identifier]:
    for database in tools.meta.list_databases():
        try:
            names = tools.meta.list_tables(database)
        except NotFoundError:
            continue  # Dropped meanwhile.
        for name in names:
            yield Identifier(database, name)
