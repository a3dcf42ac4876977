"""Finds the versions of a materialized table: the one that readers see, and at most two beside it.

    sales               what readers see
    sales__staged       what is to take its place
    sales__previous     what it was before the last promotion

The ones beside it are suspended materialized tables, so they are read, refreshed and verified as any other. Each version has an id,
which stays with it wherever it goes: a table beside another one of the same id is what an interrupted statement has left, and
whoever finds it drops it.
"""

import logging
from dataclasses import replace
from enum import StrEnum

from tablestore.environment.definition.drop import stored_context
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.session import Session
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, TablestoreError
from tablestore.materialized.incremental.holding import release_sources
from tablestore.materialized.refreshing import refresh_session
from tablestore.materialized.storing import StoredTable, open_materialized, read_stored
from tablestore.materialized.upkeep import end_upkeep
from tablestore.options import OWN_MATERIALIZED_PREFIX, PREVIOUS_VERSION_RETAINED, TableOptions, is_materialized
from tablestore.table.table import Table

LOG = logging.getLogger(__name__)

# Stored, never renamed.
VERSION = f"{OWN_MATERIALIZED_PREFIX}version"
VERSION_OF = f"{OWN_MATERIALIZED_PREFIX}version-of"
_FIRST = "first"


class Role(StrEnum):
    """The purpose of a version beside a table. Stored in its name: never renamed."""

    STAGED = "staged"
    PREVIOUS = "previous"


def version_path(path: ObjectPath, role: Role) -> ObjectPath:
    """The name of the version of a table."""
    return replace(path, name=f"{path.name}__{role}")


def version_id(stored: StoredTable) -> str:
    """The id of a version."""
    return stored.table.options().get(VERSION, _FIRST)


def is_version(table: Table) -> bool:
    """True if a table lies beside another one as a version of it."""
    return VERSION_OF in table.options()


def find_version(session: Session, stored: StoredTable, role: Role) -> StoredTable | None:
    """The version of a table, None if there is none; what an interrupted statement has left of one is dropped.

    Raises AlreadyExistsError if another table has its name.
    """
    version = look_for_version(session, stored, role)
    if version is not None and version_id(version) == version_id(stored):
        drop_stored(session, version)
        return None
    return version


def look_for_version(session: Session, stored: StoredTable, role: Role) -> StoredTable | None:
    """The table that lies at the name of a version. Raises AlreadyExistsError if another table has its name."""
    path = version_path(stored.path, role)
    if not session.exists(path):
        return None
    try:
        table = session.open_table(path)
    except NotFoundError:
        return None
    if not isinstance(table, Table) or not is_materialized(table.options()) or table.options().get(VERSION_OF) != stored.path.name:
        raise AlreadyExistsError(
            f"table {path} is no version of {stored.path}, and has the name that its {role} version takes: rename it",
            kind="version-name",
        )
    return read_stored(path, table)


def get_version(session: Session, stored: StoredTable, role: Role) -> StoredTable:
    """The version of a table. Raises NotFoundError if there is none."""
    version = find_version(session, stored, role)
    if version is None:
        way_out = {
            Role.STAGED: "ALTER MATERIALIZED TABLE … STAGE AS query makes one",
            Role.PREVIOUS: "it was not promoted, or that version was discarded",
        }
        raise NotFoundError(f"materialized table {stored.path} has no {role} version: {way_out[role]}", kind="no-such-version")
    return version


def check_is_no_version(stored: StoredTable) -> None:
    """Raises InvalidInputError for a table that is a version of another one itself."""
    of = stored.table.options().get(VERSION_OF)
    if of is not None:
        raise InvalidInputError(
            f"{stored.path} is a version of the materialized table {of}: stage, promote and discard versions of that one",
            kind="materialized-version",
        )


def drop_stored(session: Session, stored: StoredTable) -> None:
    """Drops a materialized table, and ends what refreshes it; one that is gone already is fine."""
    end_upkeep(session, stored)
    release_sources(refresh_session(session), stored.table)
    session.factory.on_drop_table(stored_context(session, stored.path), True)


def drop_whole(session: Session, stored: StoredTable) -> None:
    """Drops a table with the versions that lie beside it."""
    drop_versions(session, stored)
    drop_stored(session, stored)
    if not session.exists(stored.path):
        # Another session may have staged one meanwhile.
        drop_versions(session, stored)


def drop_expired(session: Session, path: ObjectPath, now_ms: int) -> None:
    """Drops the previous version of a table if it was kept for as long as the table says; what cannot be dropped is tried again."""
    try:
        stored = open_materialized(session, path)
        options = TableOptions(stored.table.options())
        if options.value(PREVIOUS_VERSION_RETAINED) is None or is_version(stored.table):
            return
        retained_ms = options.integer(PREVIOUS_VERSION_RETAINED)
        previous = find_version(session, stored, Role.PREVIOUS)
        if previous is not None and previous.upkeep.since_ms + retained_ms <= now_ms:
            drop_stored(session, previous)
    except NotFoundError:
        pass
    except TablestoreError as error:
        LOG.warning("the previous version of %s could not be dropped, it is tried again: %s", path, error)


def drop_versions(session: Session, stored: StoredTable) -> None:
    """Drops what lies beside a table, which is about to be dropped itself."""
    if is_version(stored.table):
        return
    for role in Role:
        try:
            version = find_version(session, stored, role)
        except AlreadyExistsError:
            continue
        if version is not None:
            drop_stored(session, version)
