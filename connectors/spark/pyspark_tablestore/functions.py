"""Registers functions of Python's in Spark: by value, by column (Arrow), or Spark's own UDFs and UDTFs as they are."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.udtf import UserDefinedTableFunction

from pyspark_tablestore.sparkversion import arrow_udf, lacks
from tablestore.environment.engine import Function
from tablestore.environment.folding import parts_of
from tablestore.errors import InvalidInputError


def register_function(spark: SparkSession, name: str, function: Function) -> None:
    """Registers a function under a name. Raises InvalidInputError if it is not known what it returns."""
    call: Any = function.call
    if _is_table_function(call):
        spark.udtf.register(name, call)
        return
    if hasattr(call, "asNondeterministic"):
        # Made by udf, pandas_udf or arrow_udf.
        spark.udf.register(name, call)
        return
    if function.returns is None:
        raise InvalidInputError(
            f"function {function.name}: Spark needs the type of what it returns; say returns=…, or write type hints",
            kind="function",
        )
    if function.by_column and arrow_udf is None:
        raise lacks("functions of Arrow columns", "4.1", f"let function {function.name} take and return single values")
    returns = from_arrow_type(function.returns, prefer_timestamp_ntz=True)
    if function.kind == "aggregate":
        spark.udf.register(name, _aggregate(function, returns))
        return
    if function.kind == "table":
        spark.udtf.register(name, _table_function(function, returns))
        return
    make: Any = arrow_udf if function.by_column else sf.udf

    def called(*values: Any) -> Any:
        try:
            return call(*values)
        except Exception as error:
            raise function.failed(error) from error

    # A method of an object has no place for what Spark notes on a function, and type hints would choose how Spark calls it.
    spark.udf.register(name, make(lambda *values: called(*values), returnType=returns))


def _aggregate(function: Function, returns: Any) -> Any:
    """Spark's function of groups. It gets the columns of a whole group at once: of those that take them in batches Spark 4.3 runs
    one in a query."""
    if arrow_udf is None:
        raise lacks("functions of groups of Arrow columns", "4.1", f"collect_list the values, and give {function.name} a list")
    if function.arguments is None:
        raise InvalidInputError(
            f"function {function.name} folds the rows of a group: Spark needs the types of its arguments; say arguments=[…], or "
            "write type hints",
            kind="function",
        )
    call, types, failed = function.call, function.arguments, function.failed

    # Spark reads the hints.
    def of_group(*columns: pa.Array) -> Any:
        try:
            typed_columns = [column.cast(arrow_type) for column, arrow_type in zip(columns, types, strict=True)]
            return call(parts_of(typed_columns, 0, len(columns[0])), types)
        except Exception as error:
            raise failed(error) from error

    return arrow_udf(of_group, returnType=returns)


def _table_function(function: Function, returns: Any) -> Any:
    """Spark's function that gives rows."""
    call, failed = function.call, function.failed

    class Rows:
        def eval(self, *values: Any) -> Iterator[Any]:
            try:
                yield from call(*values)
            except Exception as error:
                raise failed(error) from error

    return sf.udtf(Rows, returnType=returns)


def _is_table_function(call: object) -> bool:
    # That of Spark Connect is a class of its own.
    return type(call).__name__ == UserDefinedTableFunction.__name__
