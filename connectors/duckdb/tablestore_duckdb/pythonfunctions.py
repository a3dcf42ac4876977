"""Registers functions of Python's, which users hand in, in DuckDB. A null comes as None, as in Spark.

    of a row      a function of DuckDB's
    of a group    one of the list of its rows, which DuckDB collects: ``f(x)`` runs as ``f(list(row(x)))``
    of rows       one that gives the list of them, which DuckDB unnests

DuckDB's Python interface has functions of rows alone. So the rows of a group lie in DuckDB's memory while they are collected, and
count to its limit; they are folded part by part. The rows of a call lie there as well.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from itertools import count, pairwise
from typing import Any, cast

import duckdb
import pyarrow as pa

from tablestore.environment.engine import Function
from tablestore.environment.folding import parts_of
from tablestore.errors import InvalidInputError
from tablestore.types.arrowtypes import from_arrow_type
from tablestore_duckdb.rowtypes import duckdb_type


def create_function(connection: duckdb.DuckDBPyConnection, name: str, function: Function) -> None:
    """Registers a function under a name. InvalidInputError if its types are not known."""
    if function.arguments is None or function.returns is None:
        raise InvalidInputError(
            f"function {function.name}: DuckDB needs the types of its arguments and of what it returns; say arguments=[…] and "
            "returns=…, or write type hints",
            kind="function",
        )
    # Its annotations know no texts for what are texts too.
    create: Any = connection.create_function
    if function.kind == "aggregate":
        if not function.arguments:
            raise InvalidInputError(f"function {function.name} folds the rows of a group: expected an argument", kind="function")
        rows = pa.list_(pa.struct([pa.field(f"p{place}", one) for place, one in enumerate(function.arguments)]))
        create(
            name,
            _folding(function),
            [_type(rows, function)],
            _type(function.returns, function),
            type="arrow",
            null_handling="special",
        )
        return
    if function.kind == "table":
        rows = pa.list_(function.returns)
        create(
            name,
            _listing(function, len(function.arguments)),
            [_type(one, function) for one in function.arguments],
            _type(rows, function),
            type="native",
            null_handling="special",
        )
        return
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


def _folding(function: Function) -> Callable[..., Any]:
    """The function of a column of lists that folds each of them. A group without rows is NULL."""
    types = function.arguments or ()

    def folding(lists: Any) -> Any:
        groups = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
        columns = groups.values.flatten()
        starts, is_null = groups.offsets.to_pylist(), groups.is_null().to_pylist()
        values = []
        try:
            for group, (start, end) in enumerate(pairwise(starts)):
                parts = iter(()) if is_null[group] else parts_of(columns, start, end - start)
                values.append(function.call(parts, types))
            return pa.array(values, function.returns)
        except Exception as error:
            raise function.failed(error) from error

    called: Any = folding
    called.__signature__ = Signature([Parameter("p0", Parameter.POSITIONAL_ONLY)])
    return cast(Callable[..., Any], called)


def _listing(function: Function, arguments: int) -> Callable[..., Any]:
    """The function that gives the list of the rows of a call."""
    assert function.returns is not None, "it was checked"
    names = [one.name for one in function.returns]

    def listing(*values: Any) -> Any:
        try:
            return [_row(row, names) for row in function.call(*values)]
        except Exception as error:
            raise function.failed(error) from error

    called: Any = listing
    called.__signature__ = Signature([Parameter(f"p{place}", Parameter.POSITIONAL_ONLY) for place in range(arguments)])
    return cast(Callable[..., Any], called)


def _row(row: Any, names: list[str]) -> dict[str, Any]:
    """A row by the names of its columns. Raises TypeError for one of another number of columns."""
    if not isinstance(row, (tuple, list)) or len(row) != len(names):
        raise TypeError(f"expected a tuple of {len(names)} values ({', '.join(names)}), found {row!r:.200}")
    return dict(zip(names, row, strict=True))


def _column(result: Any, columns: tuple[Any, ...]) -> "pa.Array | pa.ChunkedArray":
    """The result of a function by column. Raises TypeError unless it is an array with a value for each row."""
    rows = len(columns[0]) if columns else None
    if not isinstance(result, (pa.Array, pa.ChunkedArray)) or (rows is not None and len(result) != rows):
        size = f" of {len(result)} values" if isinstance(result, (pa.Array, pa.ChunkedArray)) else ""
        raise TypeError(f"expected an array{'' if rows is None else f' of {rows} values'}, found {type(result).__name__}{size}")
    return result


def _type(arrow: pa.DataType, function: Function) -> str:
    return duckdb_type(from_arrow_type(arrow, True, count().__next__, where=f"function {function.name}"))
