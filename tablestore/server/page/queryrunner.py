"""Runs the queries of people on a page: read only, over the tables that they may read, within limits of time, rows and memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Protocol, TypeVar

import pyarrow as pa

from tablestore.environment.restricted.restrictions import Restrictions
from tablestore.errors import UnsupportedError
from tablestore.server.access.roles import Principal
from tablestore.server.page.readabletables import ReadableTables
from tablestore.table.catalog import Catalog
from tablestore.tableenvironment import TableEnvironment
from tablestore.units import human_bytes

T = TypeVar("T")
PAGE_LIMITS = Restrictions(time_s=20.0, rows=100_000, memory_bytes=512 << 20, threads=2, characters=8_000, words=2_000)
MOST_AT_ONCE = 4


class QueryRunner(Protocol):
    """The port to what runs queries for a page. Errors are TablestoreErrors, with what to do."""

    @property
    def limits_text(self) -> str:
        """The limits of each query, in words."""
        ...

    def run(self, principal: Principal, text: str, database: str) -> pa.Table:
        """The rows of a query; names without a database are those of ``database``."""
        ...

    def explain(self, principal: Principal, text: str, database: str) -> str:
        """The plan of a query, as text. Nothing is run."""
        ...


def unshown(error: pa.ArrowException) -> UnsupportedError:
    """The error for a result whose type has no form here."""
    return UnsupportedError(f"the result has a type that cannot be shown or written so ({error}); CAST it to STRING", kind="result")


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckdbRunner:
    """Runs queries on DuckDB, each in a restricted environment of its own. At most ``MOST_AT_ONCE`` run at one time."""

    catalog: Catalog
    limits: Restrictions = PAGE_LIMITS
    _places: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(MOST_AT_ONCE))

    @property
    def limits_text(self) -> str:
        memory = "" if self.limits.memory_bytes is None else f", {human_bytes(self.limits.memory_bytes)} of memory"
        return f"{self.limits.time_s:g} s, {self.limits.rows:,} rows{memory}"

    def run(self, principal: Principal, text: str, database: str) -> pa.Table:
        try:
            return self._in_environment(principal, database, lambda environment: environment.execute_sql(text).to_arrow())
        except pa.ArrowException as error:
            raise unshown(error) from error

    def explain(self, principal: Principal, text: str, database: str) -> str:
        return self._in_environment(
            principal, database, lambda environment: environment.execute_sql(f"EXPLAIN {text}").text or "there is no plan"
        )

    def _in_environment(self, principal: Principal, database: str, work: Callable[[TableEnvironment], T]) -> T:
        if not self._places.acquire(blocking=False):
            raise UnsupportedError(f"{MOST_AT_ONCE} queries run at this moment; try again when one has ended", kind="busy")
        try:
            readable = self.catalog.narrowed(lambda meta: ReadableTables(meta, principal))
            with TableEnvironment.create(readable, engine="duckdb", restricted=self.limits) as environment:
                if database:
                    environment.use_database(database)
                return work(environment)
        finally:
            self._places.release()
