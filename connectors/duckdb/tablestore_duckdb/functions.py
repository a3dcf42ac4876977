"""Functions of Python's in DuckDB. A null comes as None, as in Spark."""

from collections.abc import Callable
from inspect import Parameter, Signature, isgeneratorfunction
from itertools import count
from typing import Any, cast

import duckdb
import pyarrow as pa

from tablestore.environment.engine import Function
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.arrowtypes import from_arrow_type
from tablestore_duckdb.rowtypes import duckdb_type


def create_function(connection: duckdb.DuckDBPyConnection, name: str, function: Function) -> None:
    """Register a function under a name. InvalidInputError if its types are not known, UnsupportedError if it gives rows."""
    if isgeneratorfunction(function.call):
        raise UnsupportedError(
            f"function {function.name}: DuckDB has no functions of Python's that give rows (UDTF); run the query on the engine "
            "spark, or return a list and explode it",
            kind="engine",
        )
    if function.arguments is None or function.returns is None:
        raise InvalidInputError(
            f"function {function.name}: DuckDB needs the types of its arguments and of what it returns; say arguments=[…] and "
            "returns=…, or write type hints",
            kind="function",
        )
    # Its annotations know no texts for what are texts too.
    create: Any = connection.create_function
    create(
        name,
        _called(function.call, len(function.arguments), function.returns if function.by_column else None),
        [_type(one, function) for one in function.arguments],
        _type(function.returns, function),
        type="arrow" if function.by_column else "native",
        null_handling="special",
    )


def _called(call: Callable[..., Any], arguments: int, returns: pa.DataType | None) -> Callable[..., Any]:
    """What DuckDB calls: with values, or where ``returns`` is given with columns. It counts the parameters of the signature."""

    def by_value(*values: Any) -> Any:
        return call(*values)

    def by_column(*columns: Any) -> Any:
        whole = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns)
        return call(*whole).cast(returns)

    called: Any = by_value if returns is None else by_column
    called.__signature__ = Signature([Parameter(f"p{place}", Parameter.POSITIONAL_ONLY) for place in range(arguments)])
    return cast(Callable[..., Any], called)


def _type(arrow: pa.DataType, function: Function) -> str:
    return duckdb_type(from_arrow_type(arrow, True, count().__next__, where=f"function {function.name}"))
