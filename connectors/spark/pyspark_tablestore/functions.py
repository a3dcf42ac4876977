"""Registers functions of Python's in Spark: by value, by column (Arrow), or Spark's own UDFs and UDTFs as they are."""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.udtf import UserDefinedTableFunction

from pyspark_tablestore.sparkversion import arrow_udf, lacks
from tablestore.environment.engine import Function
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
    make: Any = arrow_udf if function.by_column else sf.udf

    def called(*values: Any) -> Any:
        try:
            return call(*values)
        except Exception as error:
            raise function.failed(error) from error

    # A method of an object has no place for what Spark notes on a function, and type hints would choose how Spark calls it.
    spark.udf.register(name, make(lambda *values: called(*values), returnType=returns))


def _is_table_function(call: object) -> bool:
    # That of Spark Connect is a class of its own.
    return type(call).__name__ == UserDefinedTableFunction.__name__
