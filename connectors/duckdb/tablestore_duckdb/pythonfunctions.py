"""Registers functions of Python's, which users hand in, in DuckDB. A null comes as None, as in Spark."""

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
    """Registers a function under a name. InvalidInputError if its types are not known, UnsupportedError if it gives rows."""
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
        _called(function, len(function.arguments)),
        [_type(one, function) for one in function.arguments],
        _type(function.returns, function),
        type="arrow" if function.by_column else "native",
        null_handling="special",
    )


def _called(function: Function, arguments: int) -> Callable[..., Any]:
    """The function that DuckDB calls, with values or with columns. It counts the parameters of the signature, and keeps the text of
    an error."""

    def by_value(*values: Any) -> Any:
        try:
            return function.call(*values)
        except Exception as error:
            raise function.failed(error) from error

    def by_column(*columns: Any) -> Any:
        whole = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns)
        try:
            return _column(function.call(*whole), columns).cast(function.returns)
        except Exception as error:
            raise function.failed(error) from error

    called: Any = by_column if function.by_column else by_value
    called.__signature__ = Signature([Parameter(f"p{place}", Parameter.POSITIONAL_ONLY) for place in range(arguments)])
    return cast(Callable[..., Any], called)


def _column(result: Any, columns: tuple[Any, ...]) -> "pa.Array | pa.ChunkedArray":
    """The result of a function by column. Raises TypeError unless it is an array with a value for each row."""
    rows = len(columns[0]) if columns else None
    if not isinstance(result, (pa.Array, pa.ChunkedArray)) or (rows is not None and len(result) != rows):
        size = f" of {len(result)} values" if isinstance(result, (pa.Array, pa.ChunkedArray)) else ""
        raise TypeError(f"expected an array{'' if rows is None else f' of {rows} values'}, found {type(result).__name__}{size}")
    return result


def _type(arrow: pa.DataType, function: Function) -> str:
    return duckdb_type(from_arrow_type(arrow, True, count().__next__, where=f"function {function.name}"))
