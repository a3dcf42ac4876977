"""Registers the Arrow functions that a text calls in DuckDB, each once a database."""

import re
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, cast
from weakref import WeakKeyDictionary

import duckdb
import pyarrow as pa

from tablestore.sql.binding.sqltypes import engine_words
from tablestore.sql.duckdb.functions.arrowfunction import ARROW_PREFIX, ArrowFunction
from tablestore.sql.duckdb.functions.functiontable import ARROW_FUNCTIONS

_CALLED = re.compile(rf"\b{ARROW_PREFIX}(\w+)")


class ArrowCalls:
    """Knows which functions are registered in which databases, by the connections that opened them."""

    def __init__(self) -> None:
        self._registered: WeakKeyDictionary[duckdb.DuckDBPyConnection, set[str]] = WeakKeyDictionary()

    def register(self, text: str, connection: duckdb.DuckDBPyConnection, database: duckdb.DuckDBPyConnection) -> None:
        """Registers what a text calls, by a connection of a database on which nothing runs."""
        if ARROW_PREFIX not in text:
            return
        known_names = self._registered.setdefault(database, set())
        for name in sorted(set(_CALLED.findall(text)) - known_names):
            if (function := ARROW_FUNCTIONS.get(name.lower())) is not None:
                _create(connection, function)
                known_names.add(name)


def _create(connection: duckdb.DuckDBPyConnection, function: ArrowFunction) -> None:
    # Its annotations know no texts for what are texts too.
    create: Any = connection.create_function
    try:
        create(
            function.engine_name,
            _called(function),
            [engine_words(kind).sql(dialect="duckdb") for kind in function.arguments],
            engine_words(function.result).sql(dialect="duckdb"),
            type="arrow",
            null_handling="special",
            side_effects=function.is_volatile,
        )
    except duckdb.Error as error:
        # Another environment over the same connection has registered it.
        if "already" not in str(error):
            raise


def _called(function: ArrowFunction) -> Callable[..., Any]:
    """The function that DuckDB calls, which counts the parameters of its signature."""

    def by_column(*columns: Any) -> Any:
        return function.call(*map(_whole, columns))

    called: Any = by_column
    called.__signature__ = Signature(
        [Parameter(f"p{place}", Parameter.POSITIONAL_ONLY) for place in range(len(function.arguments))]
    )
    return cast(Callable[..., Any], called)


def _whole(column: Any) -> pa.Array:
    """A column in one array: of one chunk this, which ``combine_chunks`` would copy."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
