"""Holds what all handlers of the protocol work on: a catalog, the name that it is served under, and who hands out storage keys.

A table is named as clients do: ``orders`` or ``orders$branch_b``. What names no table or branch is not there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from tablestore.clock import Clock
from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.format.paths import content_uuid, schema_path
from tablestore.ids import Ids
from tablestore.memo import RecentlyUsed
from tablestore.server.access.queryrules import QueryRule
from tablestore.server.access.roles import Principal, Resource
from tablestore.server.protocol.errorresponse import ResourceType, missing
from tablestore.store.context import TableContext
from tablestore.store.schemas import table_uuid_of
from tablestore.table.catalog import Catalog
from tablestore.table.system.systemkinds import BRANCH_PREFIX, SEPARATOR
from tablestore.table.table import Table

_TOKEN_MILLIS = 3_600_000
_TURNS = 256
# Snapshots whose figures are kept: about 300 bytes each.
_MOST_FIGURES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class TableToken:
    """Keys to the storage of one table: options of the client's file system, and until when they hold."""

    options: Mapping[str, str]
    expires_at_millis: int


class TableTokens(Protocol):
    """Hands out keys to the storage of one table."""

    def issue(self, location: str, principal: Principal, resource: Resource, now_millis: int) -> TableToken | None:
        """Keys that reach the files at ``location``, for reading and, by the caller's role, for writing; None where clients bring
        keys of their own."""
        ...


class NoTokens:
    """Hands out no keys: whoever reads a local folder needs none."""

    def issue(self, location: str, principal: Principal, resource: Resource, now_millis: int) -> TableToken | None:
        """An empty token for files; None for a store that needs keys."""
        if "://" in location and not location.startswith("file://"):
            return None
        return TableToken(options={}, expires_at_millis=now_millis + _TOKEN_MILLIS)


Rules = Callable[[], Sequence[QueryRule]]
"""The rules for queries as they are now."""


def without_rules() -> Sequence[QueryRule]:
    """No rules: who may read a table sees all of it."""
    return ()


class CommitTurns:
    """Lets commits to one table come one after another in this process: who loses the race finds out before it writes anything.
    What decides is the store all the same."""

    def __init__(self) -> None:
        self._locks = tuple(Lock() for _ in range(_TURNS))

    def of(self, context: TableContext) -> Lock:
        """The lock of a table's branch; others may share it."""
        return self._locks[hash((context.files.root_uri, context.branch)) % _TURNS]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFigures:
    """The sums over the files of a snapshot."""

    file_count: int
    file_size_bytes: int
    newest_millis: int


def _few_figures() -> RecentlyUsed[TableFigures]:
    return RecentlyUsed(lambda _: 1, most=_MOST_FIGURES, most_weight=_MOST_FIGURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestService:
    """A catalog that is served. ``name``: what clients call it, which is also the prefix of their paths."""

    catalog: Catalog
    name: str
    clock: Clock
    ids: Ids
    tokens: TableTokens = field(default_factory=NoTokens)
    rules: Rules = without_rules
    commit_timeout_s: float = 20.0
    turns: CommitTurns = field(default_factory=CommitTurns)
    figures: RecentlyUsed[TableFigures] = field(default_factory=_few_figures)

    def check_database(self, database: str) -> None:
        """Raises RequestRefused if there is no such database."""
        if not self.has_database(database):
            raise missing(ResourceType.DATABASE, database, f"there is no database {database!r:.140}")

    def has_database(self, database: str) -> bool:
        """True if there is a database of that name; a name that none may have is not there."""
        try:
            return self.catalog.database_exists(database)
        except InvalidInputError:
            return False

    def table(self, names: Mapping[str, str]) -> Table:
        """The table or branch that a path names. Raises RequestRefused."""
        return self.table_named(names["database"], names["table"])

    def table_named(self, database: str, name: str) -> Table:
        """The table or branch of a database. Raises RequestRefused."""
        try:
            table = self.catalog.table(f"{database}.{name}")
        except InvalidInputError as error:
            if error.kind != "invalid-name":
                raise
            raise missing(ResourceType.TABLE, name, f"there is no table {database}.{name}") from error
        except NotFoundError as error:
            if error.kind not in ("no-such-table", "no-such-branch"):
                raise
            raise missing(ResourceType.TABLE, name, error.message) from error
        if not isinstance(table, Table):
            raise missing(ResourceType.TABLE, name, f"{database}.{name} is a system table, which clients make of the table itself")
        return table


def plain_name(name: str) -> str:
    """The name of a table without that of its branch."""
    return name.partition(f"{SEPARATOR}{BRANCH_PREFIX}")[0]


def table_id(context: TableContext) -> str:
    """The identity of a table, which a commit names: that of its creation, else one made from its first schema."""
    own = table_uuid_of(context.schema)
    return content_uuid(context.main_files.read(schema_path(0))) if own is None else own


def location_of(root_uri: str) -> str:
    """The address of a directory as clients take it: a URL."""
    return root_uri if "://" in root_uri else f"file://{root_uri}"
