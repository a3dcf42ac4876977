"""Errors that all catalogs raise, in one wording. ``where`` names the catalog: its warehouse, or its database."""

from collections.abc import Sequence

from tablestore.catalog.identifier import Identifier
from tablestore.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError, UnsupportedError


def database_exists(name: str, where: str) -> AlreadyExistsError:
    """A database of this name is there."""
    return AlreadyExistsError(
        f"database {name!r} exists in {where}; pass ignore_if_exists=True (--if-not-exists) to use it", kind="database-exists"
    )


DEFINITIONS = "view(s), function(s) or table(s) with a connector"
"""The objects that a database keeps as definitions."""


def no_database(name: str, where: str, known: Sequence[str]) -> NotFoundError:
    """There is no database of this name; ``known`` are those that there are."""
    return NotFoundError(
        f"no database {name!r} in {where} (known: {', '.join(known) or 'none'}); catalog.create_database({name!r}), or "
        f"tablestore db create {name}, makes it",
        kind="no-such-database",
    )


def database_not_empty(name: str, held: Sequence[str], what: str = "table(s)") -> InvalidInputError:
    """A database is dropped only with what it holds; ``held``: the names, of which there are some."""
    return InvalidInputError(
        f"database {name!r} holds {len(held)} {what}, for example {held[0]!r}; drop them first or pass "
        "cascade=True (--cascade, in SQL CASCADE)",
        kind="database-not-empty",
    )


def table_exists(identifier: Identifier, warehouse: str) -> AlreadyExistsError:
    """A table of this name is there."""
    return AlreadyExistsError(
        f"table {identifier} already exists in {warehouse}; catalog.table({str(identifier)!r}) opens it, ignore_if_exists=True "
        f"(--if-not-exists) takes it as it is, catalog.drop_table({str(identifier)!r}) deletes it with its rows; or choose another "
        "name",
        kind="table-exists",
    )


def directory_exists(identifier: Identifier, warehouse: str, path: str) -> AlreadyExistsError:
    """The directory that a table would have holds something else; ``path``: its path there."""
    return AlreadyExistsError(
        f"Failed to create file store path. Reason: directory {warehouse}/{identifier.directory} exists for table {identifier} "
        f"and holds {path!r:.200}, which is no part of a table. Suggestion: choose another table name, or move what lies there "
        "elsewhere. With ignore_if_exists=True (--if-not-exists, in SQL IF NOT EXISTS) the table takes the directory as it is: "
        "dropping the table deletes all that is in it",
        kind="directory-exists",
    )


def name_taken(new: Identifier) -> AlreadyExistsError:
    """A table has the new name already."""
    return AlreadyExistsError(f"table {new} exists; drop it first or choose another name", kind="table-exists")


def defined(identifier: Identifier, warehouse: str) -> AlreadyExistsError:
    """A view, a function or a table with a connector has the name."""
    return AlreadyExistsError(
        f"{identifier} is defined in {warehouse} already, as a view, a function or a table with a connector; drop it first, or "
        "choose another name",
        kind="definition-exists",
    )


def no_table(identifier: Identifier, where: str, known: Sequence[str]) -> NotFoundError:
    """There is no table of this name; ``known`` are those of its database."""
    return NotFoundError(
        f"Table with identifier '{identifier}' does not exist. Tables of {identifier.database!r} in {where}: "
        f"{', '.join(known) or 'none'}",
        kind="no-such-table",
    )


def no_database_of_table(identifier: Identifier, where: str, known: Sequence[str]) -> NotFoundError:
    """There is no table of this name, and no database for it; ``known`` are the databases that there are."""
    return NotFoundError(
        f"Table with identifier '{identifier}' does not exist. There is no database {identifier.database!r} in {where} (known: "
        f"{', '.join(known) or 'none'})",
        kind="no-such-table",
    )


def materialized_stays(identifier: Identifier, statement: str) -> InvalidInputError:
    """A materialized table is dropped by a statement, which ends what refreshes it."""
    return InvalidInputError(
        f"table {identifier} is a materialized table: {statement} drops it, and ends what refreshes it (in Python env.execute_sql, "
        f'on the command line tablestore sql -e "{statement}")',
        kind="materialized-table",
    )


def creation_swept(place: object) -> ConflictError:
    """The creation of a table was given up for dead while it went on."""
    return ConflictError(
        f"the creation of {place} was taken for dead, and its files were removed meanwhile; begin it anew", kind="creation-swept"
    )


def cannot_exchange(identifier: Identifier, warehouse: str) -> UnsupportedError:
    """The store exchanges no directories."""
    return UnsupportedError(
        f"table {identifier} has another key, partitioning or layout than what is to replace it, and {warehouse} cannot exchange "
        "two directories in one step; create a table of another name, or drop this one first",
        kind="cannot-exchange",
    )


def cannot_rename(identifier: Identifier, new: Identifier, warehouse: str) -> UnsupportedError:
    """The store renames no directories."""
    return UnsupportedError(
        f"{warehouse} cannot rename a directory in one step, so {identifier} cannot become {new} atomically; create the new "
        "table from the old one and drop the old one"
    )
