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
        "a catalog or a lock in a database needs the package SQLAlchemy", "'managed-tablestore[sql-catalog]'", error
    ) from error

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.redaction import HIDDEN, is_reference
from tablestore.secretnames import resolved

# SQLAlchemy is imported here alone, so that its absence is our error everywhere.
__all__ = ["complete_url", "ensure_table", "exc", "open_engine", "parse_url", "portable_url", "reason", "sa"]

# Packages to install for modules that a database needs, where they have other names.
_PACKAGES = {"psycopg": "'managed-tablestore[postgresql]'", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}

# Parameters of URLs whose values are no secret. Drivers take passwords under many names.
_HARMLESS = frozenset(
    {
        *("application_name", "autocommit", "cache", "channel_binding", "charset", "check_same_thread"),
        *("client_encoding", "connect_timeout", "dbname", "driver", "fallback_application_name", "gssencmode", "host"),
        *("hostaddr", "isolation_level", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval"),
        *("load_balance_hosts", "local_infile", "mode", "options", "passfile", "port", "read_timeout", "require_auth"),
        *("requiressl", "service", "ssl_ca", "ssl_cert", "ssl_key", "ssl_max_protocol_version"),
        *("ssl_min_protocol_version", "sslcert", "sslcrl", "sslcrldir", "sslkey", "sslmode", "sslnegotiation"),
        *("sslrootcert", "sslsni", "target_session_attrs", "tcp_user_timeout", "timeout", "unix_socket", "uri"),
        *("use_unicode", "user", "write_timeout"),
    }
)
# By their URLs without secrets, for catalogs and locks that come back to the process that pickled them.
_COMPLETE: dict[str, str] = {}


def parse_url(url: str, option: str) -> sa.URL:
    """The URL given in ``option``. InvalidInputError if it is none, or one whose database depends on the working directory."""
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError as error:
        raise _not_a_database(option, f"found none ({type(error).__name__})") from None
    # Any other has a server, and finds its database itself.
    if parsed.get_backend_name() == "sqlite" and not os.path.isabs((parsed.database or "").removeprefix("file:")):
        fault = f"found the SQLite file {parsed.database!r:.200}"
        raise _not_a_database(option, f"{fault}: every writer must see the same one, whatever its working directory is")
    return parsed


def open_engine(url: sa.URL, option: str, *, sqlite: Mapping[str, Any]) -> sa.Engine:
    """An engine for the database; ``sqlite`` are connection arguments for that one. Nothing is asked yet.

    The password of the URL may be the name of one, ``postgresql://me:env:DB_PASSWORD@host/name``, and so may parameters that take
    secrets.
    """
    if url.password is not None:
        url = url.set(password=resolved(str(url.password), f"the password in {option}"))
    if secret := {key: value for key, value in url.query.items() if key.lower() not in _HARMLESS}:
        resolved_query = {key: resolved(value, f"the parameter {key} in {option}") for key, value in secret.items()}
        url = url.set(query={**url.query, **resolved_query})
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


def portable_url(url: str, option: str) -> str:
    """The URL as it leaves this process, which keeps the password, and the values of parameters that may be one, unless they are
    named (``env:NAME``, ``file:PATH``)."""
    parsed = parse_url(url, option)
    query = dict(parsed.query)
    for key, value in parsed.query.items():
        if key.lower() not in _HARMLESS:
            query[key] = _portable(value) if isinstance(value, str) else tuple(map(_portable, value))
    password = None if parsed.password is None else _portable(str(parsed.password))
    if (password, query) == (parsed.password, dict(parsed.query)):
        return url
    portable = parsed.set(password=password, query=query).render_as_string(hide_password=False)
    _COMPLETE[portable] = url
    return portable


def complete_url(url: str) -> str:
    """The URL that a portable one was made from, in the process that made it; elsewhere that itself."""
    return _COMPLETE.get(url, url)


def _portable(value: str) -> str:
    return value if is_reference(value) else HIDDEN


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


def _not_a_database(option: str, fault: str) -> InvalidInputError:
    return InvalidInputError(
        f"option {option}: expected the URL of a database, like postgresql://host/name or sqlite:////shared/locks.db, {fault}",
        kind="invalid-option",
    )
