"""Resolves names of objects: one to three parts are filled up with the current catalog and database.

orders                    current catalog, current database
shop.orders               current catalog
lake.shop.orders          as written
orders$files              a system table; orders$branch_b a branch, orders$branch_b$files a system table of it
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.sql.source import Path
from tablestore.table.system.systemkinds import SEPARATOR
from tablestore.types.typestring import quote_identifier

MOST_PARTS = 3


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """The whole name of a table or view. ``suffix`` is what follows the first ``$`` of its last part."""

    catalog: str
    database: str
    name: str
    suffix: str = ""

    def __str__(self) -> str:
        return ".".join((self.catalog, self.database, self.full_name))

    @property
    def full_name(self) -> str:
        """The last part, with its suffix."""
        return f"{self.name}{SEPARATOR}{self.suffix}" if self.suffix else self.name

    @property
    def in_catalog(self) -> str:
        """``database.name``, as the catalog knows it."""
        return f"{self.database}.{self.full_name}"

    @property
    def quoted(self) -> str:
        """The name as SQL, each part between backticks."""
        return ".".join(map(quote_identifier, (self.catalog, self.database, self.full_name)))

    @property
    def plain(self) -> "ObjectPath":
        """The table itself."""
        return replace(self, suffix="")


def expand(path: Path, catalog: str, database: str) -> ObjectPath:
    """Fills a path up. Raises InvalidInputError for more than three parts, and for an empty one."""
    if not 1 <= len(path.parts) <= MOST_PARTS or not all(path.parts):
        raise InvalidInputError(
            f"expected a name of one to three parts, such as orders, shop.orders or lake.shop.orders, found {str(path)!r:.200}",
            kind="invalid-name",
        )
    parts = (*(catalog, database)[: MOST_PARTS - len(path.parts)], *path.parts)
    name, _, suffix = parts[2].partition(SEPARATOR)
    return ObjectPath(parts[0], parts[1], name, suffix)


def check_whole(path: ObjectPath) -> None:
    """Raises InvalidInputError for the name of a part of a table, which nothing else can have."""
    if path.suffix:
        raise InvalidInputError(
            f"{path} is the name of a part of a table: choose one without $; CALL create_branch makes a branch", kind="invalid-name"
        )


def known(names: Iterable[str], wrong: str) -> str:
    """``; did you mean 'a'? (known: a, b)``: the way out for a name that nobody knows."""
    sorted_names = sorted(names)
    listed = ", ".join(sorted_names[:20]) + (f" and {len(sorted_names) - 20} more" if len(sorted_names) > 20 else "")
    return f"{did_you_mean(wrong, sorted_names)} (known: {listed or 'none'})"
