"""Finds dead holds: snapshots that tables keep for a materialized table that is gone, was never made, or does not read them.

    holds on all tables ── records of creations ── tables that are there, and what they read

A hold names the uuid of its target, and where this lay. It is dead if its target lay in this warehouse, no creation has that uuid,
and no table of that uuid has a query that names what is held. The order matters: a target is on record before it holds anything
for a query that it does not have yet, and stays on record until it has it. So whoever sees the hold first, and then looks for the
target, finds one or the other of a target that may read what is held. Where the target lay elsewhere, or an earlier release took
the hold, nothing is known, and the hold stays.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tablestore.catalog.identifier import Identifier
from tablestore.errors import NotFoundError
from tablestore.format.paths import MAIN_BRANCH
from tablestore.io.filestore import FileStore
from tablestore.options import MATERIALIZED_DEFINITION_QUERY
from tablestore.store.history.branchfiles import branch_files
from tablestore.store.history.references import branch_directories
from tablestore.store.history.retentionleases import RetentionLease, RetentionLeases, hold_uuid
from tablestore.store.schemas import Schemas, table_uuid_of
from tablestore.table.creation.creationtools import CreationTools
from tablestore.table.system.systemkinds import SEPARATOR
from tablestore.types.typestring import quote_identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadHold:
    """A table that keeps the snapshots of a branch from ``next_snapshot`` on for nobody. ``owner``: for whom they were kept."""

    table: str
    branch: str
    next_snapshot: int
    owner: str

    def __str__(self) -> str:
        branch = "" if self.branch == MAIN_BRANCH else f" (branch {self.branch})"
        snapshots_text = f"snapshots of table {self.table}{branch} from {self.next_snapshot} on"
        return f"{snapshots_text}, kept for {self.owner}, which is gone, or does not read it"


def release_dead_holds(tools: CreationTools, *, dry_run: bool) -> tuple[DeadHold, ...]:
    """Release the holds for targets of this warehouse that are gone, so that expiry may have the snapshots; with ``dry_run``
    only list them.

    Raises FormatError, StorageError if a table cannot be read: it may be the target.
    """
    warehouse_prefix = f"{tools.meta.files.root_uri.rstrip('/')}/"
    held = [lease for lease in _held(tools) if lease.hold.target_uuid and (lease.hold.target or "").startswith(warehouse_prefix)]
    # Each of these holds was there before its target is looked for.
    making = frozenset(_on_record(tools)) if held else frozenset()
    queries = dict(_queries_by_uuid(tools)) if held else {}
    dead = [lease for lease in held if lease.hold.target_uuid not in making and not _is_read(lease, queries)]
    if not dry_run:
        for lease in dead:
            RetentionLeases(lease.files).release(lease.hold.name)
    return tuple(
        DeadHold(table=str(lease.table), branch=lease.branch, next_snapshot=lease.hold.next_snapshot, owner=lease.hold.owner)
        for lease in dead
    )


@dataclass(frozen=True, slots=True)
class _Held:
    table: Identifier
    branch: str
    files: FileStore
    hold: RetentionLease


def _held(tools: CreationTools) -> Iterator[_Held]:
    for table in _tables(tools):
        try:
            main = tools.meta.table_files(table)
        except NotFoundError:
            continue  # Its holds went with it.
        for branch in (MAIN_BRANCH, *branch_directories(main)):
            files = branch_files(main, branch)
            for hold in RetentionLeases(files).all():
                yield _Held(table, branch, files, hold)


def _on_record(tools: CreationTools) -> Iterator[str]:
    """The tables that are being made or replaced, or whose dead creation was not swept yet."""
    for record in tools.creations.all():
        yield hold_uuid(record.table_uuid)
        if record.replaced_uuid is not None:
            yield hold_uuid(record.replaced_uuid)


def _queries_by_uuid(tools: CreationTools) -> Iterator[tuple[str, str | None]]:
    """The tables that are there, each with its query; None where it has none that is ours to read."""
    for table in _tables(tools):
        try:
            schema = Schemas(tools.meta.table_files(table)).latest()
        except NotFoundError:
            continue
        if (uuid := table_uuid_of(schema)) is not None:
            yield hold_uuid(uuid), schema.options.get(MATERIALIZED_DEFINITION_QUERY.key)


def _is_read(lease: _Held, queries: Mapping[str, str | None]) -> bool:
    """True if the target is there, and may read what it holds."""
    uuid = lease.hold.target_uuid
    if uuid is None or uuid not in queries:
        return False
    query = queries[uuid]
    # A query that we have stored has its names between backticks. Behind the name of a table there may be a branch of it.
    name = f"{quote_identifier(lease.table.database)}.{quote_identifier(lease.table.table)}"[:-1]
    return query is None or "`" not in query or any(f"{name}{end}" in query for end in ("`", SEPARATOR))


def _tables(tools: CreationTools) -> Iterator[Identifier]:
    for database in tools.meta.list_databases():
        try:
            names = tools.meta.list_tables(database)
        except NotFoundError:
            continue  # Dropped meanwhile.
        for name in names:
            yield Identifier(database, name)
