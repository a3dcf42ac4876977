"""Locks by a database, for writers on several machines: one row a place, locked by a transaction.

    BEGIN; SELECT … FOR UPDATE NOWAIT; UPDATE … SET token = token + 1      the row is ours, others are refused
    publish
    COMMIT                                                                 it succeeds: the row was ours all the time

The database frees the row when its holder dies. The token is written first and committed last: if the transaction was lost in
between (the connection broke, the server restarted), the commit fails, and the publish has an unknown outcome, which the committer
settles by looking. One danger is left: a holder that loses its connection and stands still between its last look and its write may
replace a file that another wrote meanwhile. Only a conditional publish excludes that.

SQLite serves the processes of one machine, and locks all places together. Every database that SQLAlchemy knows and that has row
locks serves several machines (SQLite and PostgreSQL are tested).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from tablestore.clock import Clock, SystemClock
from tablestore.errors import StorageError
from tablestore.io.lock.cataloglock import LONGEST_WAIT_S, TIMEOUT_S, timed_out, wait_for
from tablestore.io.lock.databaseurl import complete_url, ensure_table, exc, open_engine, parse_url, reason, sa

T = TypeVar("T")

_OPTION = "catalog.lock.location"
# Databases index names of this length. Of a longer place its end counts: places with equal ends wait for each other.
_MOST_CHARACTERS = 255
# The time for which a commit in SQLite waits for those who read the file in this moment.
_COMMIT_WAIT_MS = 30_000

LOCKS = sa.Table(
    "tablestore_locks",
    sa.MetaData(),
    sa.Column("place", sa.String(_MOST_CHARACTERS), primary_key=True),
    sa.Column("token", sa.BigInteger, nullable=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCatalogLock:
    """A :class:`~tablestore.io.lock.cataloglock.CatalogLock` in the database at ``url``, which may hold a password."""

    url: str = field(repr=False)
    timeout_s: float = TIMEOUT_S
    longest_wait_s: float = LONGEST_WAIT_S
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        parse_url(self.url, _OPTION)

    def run_with_lock(self, place: str, run: Callable[[], T]) -> T:
        name = place[-_MOST_CHARACTERS:]
        # SQLite is not to wait by itself: there is one loop that waits, for every database.
        engine = open_engine(parse_url(complete_url(self.url), _OPTION), _OPTION, sqlite={"timeout": 0})
        where = f"{name} in {engine.url.render_as_string(hide_password=True)}"
        connection = self._acquired(engine, name, where)
        try:
            with connection:
                result = run()
                connection.commit()
        except exc.SQLAlchemyError as error:
            raise StorageError(
                f"the lock {where} was lost while it was held ({reason(error)}), so whether the publish under it stands is not "
                "known; repeat it with the same bytes, and if the name is then occupied compare the content",
                kind="unknown-outcome",
            ) from error
        return result

    def _acquired(self, engine: sa.Engine, name: str, where: str) -> sa.Connection:
        refused = "the database was not asked"

        def attempt() -> sa.Connection | None:
            nonlocal refused
            try:
                return _locked(engine, name)
            except (exc.OperationalError, exc.IntegrityError) as error:  # busy, away, or another made the table or row first
                refused = reason(error)
                return None

        try:
            connection = wait_for(attempt, clock=self.clock, timeout_s=self.timeout_s, longest_wait_s=self.longest_wait_s)
        except exc.SQLAlchemyError as error:
            raise StorageError(
                f"cannot lock {where}: {reason(error)}; check the rights of the user in catalog.lock.location to create and "
                f"update the table {LOCKS.name}"
            ) from error
        if connection is None:
            raise timed_out(where, self.timeout_s, f"look at the database, which said: {refused}")
        return connection


def _locked(engine: sa.Engine, name: str) -> sa.Connection:
    """A connection whose transaction holds the row of ``name``."""
    mine = LOCKS.c.place == name
    connection = engine.connect()
    try:
        ensure_table(connection, LOCKS)
        if connection.execute(sa.select(LOCKS.c.token).where(mine).with_for_update(nowait=True)).first() is None:
            connection.execute(sa.insert(LOCKS).values(place=name, token=0))
            connection.commit()
            connection.execute(sa.select(LOCKS.c.token).where(mine).with_for_update(nowait=True))
        connection.execute(sa.update(LOCKS).where(mine).values(token=LOCKS.c.token + 1))
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {_COMMIT_WAIT_MS}")
    except BaseException:
        with suppress(exc.SQLAlchemyError):
            connection.close()
        raise
    return connection
