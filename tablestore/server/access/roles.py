"""Defines the roles of a warehouse, and decides which of them a caller has.

    catalog ── database ── table, view or function
    admin      owner       writer, reader …

A role on something holds for all that lies in it. ``reader`` looks and reads rows, ``writer`` also commits, ``owner`` also creates,
alters, drops, rolls back and gives roles away, ``admin`` also makes databases and tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """A role; each includes those before it. Stored in files of tokens."""

    READER = "reader"
    WRITER = "writer"
    OWNER = "owner"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """The place in the order: 0 is the least."""
        return tuple(Role).index(self)

    def includes(self, other: "Role") -> bool:
        """True if who has this role may do all that ``other`` may."""
        return self.rank >= other.rank


@dataclass(frozen=True, slots=True)
class Resource:
    """The object of a request: a table (view, function) of a database; ``name`` None: the database; both None: the catalog."""

    database: str | None = None
    name: str | None = None

    def scopes(self) -> Iterator["Resource"]:
        """The object itself and all that it lies in, innermost first."""
        if self.name is not None:
            yield self
        if self.database is not None:
            yield Resource(self.database)
        yield CATALOG

    def __str__(self) -> str:
        return ".".join(part for part in (self.database, self.name) if part is not None) or "the catalog"


CATALOG = Resource()


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on an object and all that lies in it."""

    role: Role
    resource: Resource = CATALOG


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller of a request, known by a token, or the one user of a service without tokens."""

    name: str
    grants: tuple[Grant, ...]

    def role_on(self, resource: Resource) -> Role | None:
        """The highest role that the caller has on ``resource``; None if there is none."""
        scopes = set(resource.scopes())
        return max((grant.role for grant in self.grants if grant.resource in scopes), key=lambda role: role.rank, default=None)

    def may(self, role: Role, resource: Resource) -> bool:
        """True if the caller has ``role``, or one that includes it, on ``resource``."""
        own = self.role_on(resource)
        return own is not None and own.includes(role)

    def sees(self, resource: Resource) -> bool:
        """True if the caller has a role on ``resource`` or on something in it: then its name is no secret."""
        return self.role_on(resource) is not None or any(resource in grant.resource.scopes() for grant in self.grants)
