"""Opens a SQLAlchemy engine from the URL of a database, with our errors: for locks and catalogs that a database keeps.

Nothing is pooled: an engine holds no connection, so there is nothing to close, and nothing that a fork or a dead server breaks.
"""

import os
from collections.abc import Mapping
from typing import Any

try:
    import sqlalchemy as sa
    from sqlalchemy import exc
except ImportError as error:
    from tablestore.lazy import missing_package

    raise missing_package(
        "a catalog or a lock in a database needs the package SQLAlchemy", "'tablestore[sql-catalog]'", error
    ) from error

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.secretnames import resolved

# SQLAlchemy is imported here alone, so that its absence is our error everywhere.
__all__ = ["ensure_table", "exc", "open_engine", "parse_url", "reason", "sa"]

# Packages to install for modules that a database needs, where they have other names.
_PACKAGES = {"psycopg": "'tablestore[postgresql]'", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}


def parse_url(url: str, option: str) -> sa.URL:
    """The URL given in ``option``. InvalidInputError if it is none, or one whose database depends on the working directory."""
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError as error:
        raise _not_a_database(option, f"found none ({type(error).__name__})") from None
    # Any other has a server, and finds its database itself.
    if parsed.get_backend_name() == "sqlite" and not os.path.isabs((parsed.database or "").removeprefix("file:")):
        found = f"found the SQLite file {parsed.database!r:.200}"
        raise _not_a_database(option, f"{found}: every writer must see the same one, whatever its working directory is")
    return parsed


def open_engine(url: sa.URL, option: str, *, sqlite: Mapping[str, Any]) -> sa.Engine:
    """An engine for the database; ``sqlite`` are connection arguments for that one. Nothing is asked yet.

    The password of the URL may be the name of one: ``postgresql://me:env:DB_PASSWORD@host/name``.
    """
    if url.password is not None:
        url = url.set(password=resolved(str(url.password), f"the password in {option}"))
    try:
        arguments = dict(sqlite) if url.get_backend_name() == "sqlite" else {}
        return sa.create_engine(url, poolclass=sa.NullPool, connect_args=arguments)
    except exc.ArgumentError as error:
        raise _not_a_database(option, f"found none ({type(error).__name__})") from None
    except ImportError as error:
        package = _PACKAGES.get(error.name or "", error.name or "the driver of the database")
        raise UnsupportedError(
            f"cannot open the database of {option}: {error}; run: pip install {package}, or name another driver in the URL "
            "(postgresql+psycopg://…)",
            kind="missing-package",
        ) from error


def ensure_table(connection: sa.Connection, table: sa.Table) -> None:
    """Make a table that is not there, in a transaction of its own. Raises what SQLAlchemy raises."""
    if not sa.inspect(connection).has_table(table.name):
        try:
            connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
            connection.commit()
        except exc.DatabaseError:
            # Two who make one table at once: PostgreSQL refuses the second in spite of IF NOT EXISTS.
            connection.rollback()
            if not sa.inspect(connection).has_table(table.name):
                raise


def reason(error: exc.SQLAlchemyError) -> str:
    """The message of the database, without the statement and its parameters."""
    return str(error.orig if isinstance(error, exc.DBAPIError) else error).strip()


def _not_a_database(option: str, found: str) -> InvalidInputError:
    return InvalidInputError(
        f"option {option}: expected the URL of a database, like postgresql://host/name or "
        f"sqlite:////shared/locks.db, {found}",
        kind="invalid-option",
    )
