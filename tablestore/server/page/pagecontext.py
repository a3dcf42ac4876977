"""Defines the request of a page: whose warehouse it shows, to whom, and what else of the process may be shown.

    principal ── sees? ── catalog ── views (values, bounded) ── templates

A page shows only what its caller sees. A table that the caller does not see answers as one that is not there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablestore.catalog.definitions import DefinitionKind
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.catalogs import DEFAULT_CATALOG
from tablestore.environment.session.keptobjects import KeptObject, decode
from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.names import is_name, is_number
from tablestore.server.access.roles import CATALOG, Principal, Resource, Role
from tablestore.server.page.queryrunner import QueryRunner
from tablestore.server.page.warehousesurvey import WarehouseSurvey
from tablestore.table.catalog import Catalog
from tablestore.table.system.systemkinds import BRANCH_PREFIX, SEPARATOR
from tablestore.table.table import Table

_MOST_PAGE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """One job of the process, or one refresh of a materialized table."""

    id: str
    what: str
    database: str | None = None
    table: str | None = None
    status: str
    began_ms: int | None = None
    took_ms: int | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLine:
    """One grant: who may do what, on what."""

    name: str
    role: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """The parts of a request. ``grants``: who may do what on an object, None if nothing is known of it; ``jobs``: those of the
    process; ``runner``: runs queries, None where nobody may; ``survey``: what was seen of tables by other requests."""

    catalog: Catalog
    principal: Principal
    now_ms: int
    jobs: Callable[[], Sequence[JobLine]] = tuple
    grants: Callable[[Resource], Sequence[AccessLine]] | None = None
    runner: QueryRunner | None = None
    query_role: Role = Role.READER
    survey: WarehouseSurvey[Any] = field(default_factory=WarehouseSurvey)
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def sees(self, database: str, name: str | None = None) -> bool:
        """True if the caller may know of a database or a table."""
        return self.principal.sees(Resource(database, name))

    def may_query(self) -> bool:
        """True if there is a runner, and the caller has the role for it on something."""
        return self.runner is not None and any(grant.role.includes(self.query_role) for grant in self.principal.grants)

    def databases(self) -> tuple[str, ...]:
        """The databases that the caller sees, ascending."""
        return tuple(name for name in self.catalog.list_databases() if self.sees(name))

    def tables(self, database: str) -> tuple[str, ...]:
        """The tables of a database that the caller sees, ascending; none of a database that is gone."""
        try:
            names = self.catalog.list_tables(database)
        except NotFoundError:
            return ()
        return tuple(name for name in names if self.sees(database, name))

    def kept(self, database: str) -> tuple[str, ...]:
        """The views and tables with a connector of a database that the caller sees, ascending."""
        names = self.catalog.list_definitions(database, DefinitionKind.RELATION)
        return tuple(name for name in names if self.sees(database, name))

    def kept_object(self, database: str, name: str) -> KeptObject | None:
        """A view or table with a connector; None if there is none. Raises FormatError for a damaged one."""
        text = self.catalog.find_definition(f"{database}.{name}", DefinitionKind.RELATION)
        return None if text is None else decode(ObjectPath(DEFAULT_CATALOG, database, name), text, declared=False)

    def visible_jobs(self) -> tuple[JobLine, ...]:
        """The jobs that the caller sees: of tables that it sees, and all others for who may read the whole catalog."""
        reads_all = self.principal.may(Role.READER, CATALOG)
        return tuple(one for one in self.jobs() if (reads_all if one.database is None else self.sees(one.database, one.table)))

    def table(self) -> Table:
        """The table that the path names, or its branch. Raises NotFoundError, also for one that the caller does not see."""
        database, name = self.names["database"], self.names["table"]
        plain = name.partition(SEPARATOR)[0]
        if not (is_name(database) and is_name(plain) and self.sees(database, plain)):
            raise missing_table(database, name)
        table = self.catalog.table(f"{database}.{name}")
        if not isinstance(table, Table):
            raise missing_table(database, name)
        return table

    def number(self, key: str, default: int = 1) -> int:
        """A whole number of the query, at least 1. Raises InvalidInputError."""
        text = self.query.get(key, "")
        if not text:
            return default
        if not is_number(text) or not 1 <= int(text) <= _MOST_PAGE:
            raise InvalidInputError(f"expected a number from 1 to {_MOST_PAGE:,} as {key}, found {text!r:.80}", kind="invalid-page")
        return int(text)

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """One of the choices: the first where the query says none. Raises InvalidInputError."""
        text = self.query.get(key, "") or choices[0]
        if text not in choices:
            raise InvalidInputError(f"expected one of {', '.join(choices)} as {key}, found {text!r:.80}", kind="invalid-page")
        return text


def missing_table(database: str, name: str) -> NotFoundError:
    """The error for a table that is not there, or not for the caller."""
    return NotFoundError(f"there is no table {database:.150}.{name:.150}", kind="no-such-table")


def branch_table(name: str, branch: str) -> str:
    """The name under which a branch of a table is opened."""
    return f"{name}{SEPARATOR}{BRANCH_PREFIX}{branch}"
