"""Limits an engine: it only reads (or also changes managed tables), and ends what takes longer or gives more than a restricted
session allows.

query -> the engine beneath -> batch -> counted -> batch
                ^
         a watch that ends it at its time, and again until it is gone
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread, get_ident
from typing import Any, NoReturn

import pyarrow as pa

from tablestore.environment.engine import BoundQuery, ChangeTarget, Function, InsertTarget, ListsFunctions, QueryEngine, QueryRows
from tablestore.environment.restricted.restrictions import Restrictions
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.sql.sqldialect import SqlDialect

_DUCKDB_MEMORY_BYTES = 1 << 30
# As many as DuckDB computes at once: no more of a result is made before its size is looked at.
_DUCKDB_BATCH_ROWS = "2048"
_SPILLED_PER_MEMORY = 4
# A query may only begin to run when its time is over: so often it is ended.
_AGAIN_S = 0.2


def limited(engine: QueryEngine, restrictions: Restrictions) -> "LimitedEngine":
    """The engine within limits. Raises UnsupportedError for a limit that it cannot keep."""
    if engine.name == "duckdb":
        memory = restrictions.memory_bytes or _DUCKDB_MEMORY_BYTES
        engine.set_option("memory_limit", f"{memory}B")
        engine.set_option("max_temp_directory_size", f"{memory * _SPILLED_PER_MEMORY}B")
        engine.set_option("duckdb.batch-rows", _DUCKDB_BATCH_ROWS)
        if restrictions.threads is not None:
            engine.set_option("threads", str(restrictions.threads))
        return LimitedEngine(engine, restrictions, memory)
    for name in ("memory_bytes", "threads"):
        if getattr(restrictions, name) is not None:
            raise UnsupportedError(
                f"Restrictions: {name} is a limit that the engine {engine.name} cannot keep for one environment: set it where its "
                "session is made, or use the engine duckdb",
                kind="engine",
            )
    return LimitedEngine(engine, restrictions, None)


class LimitedEngine:
    """The engine ``beneath`` within limits. ``result_bytes``: how large a result may be; None: any."""

    def __init__(self, beneath: QueryEngine, restrictions: Restrictions, result_bytes: int | None) -> None:
        self._beneath, self._restrictions, self._result_bytes = beneath, restrictions, result_bytes

    @property
    def name(self) -> str:
        return self._beneath.name

    @property
    def takes_hints(self) -> bool:
        return self._beneath.takes_hints

    def query(self, query: BoundQuery) -> "LimitedRows":
        with self.watched():
            return LimitedRows(self, self._beneath.query(query))

    def read(self, query: BoundQuery) -> pa.RecordBatchReader:
        return self.query(query).to_reader()

    def explain(self, query: BoundQuery) -> str:
        with self.watched():
            return self._beneath.explain(query)

    def counted(self, reader: Callable[[], pa.RecordBatchReader]) -> Iterator[pa.RecordBatch]:
        """The batches of a reading that begins now, within the limits."""
        limits, rows, size = self._restrictions, 0, 0
        with self.watched() as check, reader() as batches:
            for batch in batches:
                check()
                rows, size = rows + batch.num_rows, size + batch.nbytes
                if rows > limits.rows:
                    raise _exceeded(f"rows = {limits.rows:,}", "aggregate them, or say LIMIT")
                if self._result_bytes is not None and size > self._result_bytes:
                    raise _exceeded(f"memory_bytes = {self._result_bytes:,} for its result", "select fewer or shorter values")
                yield batch
                check()

    @contextmanager
    def watched(self, *, lands: bool = False) -> Iterator[Callable[[], None]]:
        """Ends what this thread runs inside when its time is over; the check that it gives raises then, too. ``lands``: what was
        done to its end counts, however late."""
        over, done, thread = Event(), Event(), get_ident()

        def watch() -> None:
            wait_s = self._restrictions.time_s
            while not done.wait(wait_s):
                over.set()
                self._beneath.cancel(thread)
                wait_s = _AGAIN_S

        def check() -> None:
            if over.is_set():
                raise self._too_late()

        watcher = Thread(target=watch, name="tablestore-limits", daemon=True)
        watcher.start()
        try:
            yield check
            if not lands:
                check()
        except TablestoreError as error:
            if over.is_set() and error.kind == "cancelled":
                raise self._too_late() from error
            if error.kind == "out-of-memory":
                raise _exceeded(f"memory_bytes = {self._result_bytes or 0:,}", "read less, or group by fewer values") from error
            raise
        finally:
            done.set()
            watcher.join()

    def _too_late(self) -> UnsupportedError:
        return _exceeded(f"time_s = {self._restrictions.time_s:g}", "read less, or ask for a part of it")

    def insert(self, query: BoundQuery, target: InsertTarget) -> Snapshot | None:
        if not self._restrictions.changes:
            self._only_reads()
        with self.watched(lands=True):
            return self._beneath.insert(query, target)

    def change(self, query: BoundQuery, target: ChangeTarget) -> Snapshot | None:
        if not self._restrictions.changes:
            self._only_reads()
        with self.watched(lands=True):
            return self._beneath.change(query, target)

    def compact(self, table: object, pin: object, partitions: Sequence[Mapping[str, Any]] | None) -> object:
        self._only_reads()

    def knows(self, parts: tuple[str, ...]) -> bool:
        return False

    def list_views(self) -> tuple[str, ...]:
        return ()

    def register_function(self, name: str, function: Function) -> None:
        self._beneath.register_function(name, function)

    def drop_function(self, name: str) -> None:
        self._beneath.drop_function(name)

    def has_function(self, name: str) -> bool:
        return self._beneath.has_function(name)

    def function_names(self, dialect: SqlDialect) -> tuple[str, ...] | None:
        return self._beneath.function_names(dialect) if isinstance(self._beneath, ListsFunctions) else None

    def is_native(self, value: object) -> bool:
        return self._beneath.is_native(value)

    def execute(self, text: str) -> QueryRows | None:
        if text != "SHOW FUNCTIONS":
            self._only_reads()
        return self._beneath.execute(text)

    def set_option(self, key: str, value: str | None) -> None:
        self._beneath.set_option(key, value)

    def cancel(self, thread: int | None = None) -> None:
        self._beneath.cancel(thread)

    def close(self) -> None:
        self._beneath.close()

    def _only_reads(self) -> NoReturn:
        raise UnsupportedError("the engine of a restricted environment only runs queries", kind="restricted")


class LimitedRows:
    """The rows of a query, each reading of which has limits of its own."""

    def __init__(self, engine: LimitedEngine, rows: QueryRows) -> None:
        self._engine, self._rows = engine, rows

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._rows.schema

    @property
    def native(self) -> Any:
        """None: the engine's own object knows no limits."""
        return None

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, streamed as far as the engine can."""
        return pa.RecordBatchReader.from_batches(self.schema, self._engine.counted(self._rows.to_reader))

    def streamed(self) -> pa.RecordBatchReader:
        """The rows, streamed."""
        return pa.RecordBatchReader.from_batches(self.schema, self._engine.counted(self._rows.streamed))


def _exceeded(limit: str, way_out: str) -> UnsupportedError:
    return UnsupportedError(f"the query is over the limit {limit} of its environment; {way_out}", kind="limit-exceeded")
