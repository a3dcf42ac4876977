"""Names what older versions of Spark lack: it is refused by name, or there is another way.

4.1    no streams from data sources whose batches have limits
4.0    nor streams of Arrow to data sources, the type TIME, functions of Arrow columns, rows placed by the number of their task
"""

from functools import partial
from importlib.util import find_spec
from inspect import signature
from typing import Any

from pyspark.sql import DataFrame, datasource, types
from pyspark.sql.pandas import functions
from pyspark.sql.pandas.types import to_arrow_schema

from tablestore.errors import UnsupportedError


class _NoTime(types.AtomicType):
    """Stands for TIME where Spark has none: no column is of it."""

    def __init__(self, precision: int = 6) -> None:
        self.precision = precision


spark_to_arrow: Any = (
    partial(to_arrow_schema, timezone="UTC") if "timezone" in signature(to_arrow_schema).parameters else to_arrow_schema
)
"""Gives the Arrow schema in which Spark exchanges rows, with times in UTC."""
has_time = hasattr(types, "TimeType")
TimeType: Any = types.TimeType if has_time else _NoTime
arrow_udf: Any = getattr(functions, "arrow_udf", None)
"""Makes a function of Arrow columns; None where Spark has no such functions."""
streams_arrow = hasattr(datasource, "DataSourceStreamArrowWriter")
StreamArrowWriter: Any = getattr(datasource, "DataSourceStreamArrowWriter", datasource.DataSourceStreamWriter)
keeps_readers = hasattr(datasource.DataSourceReader, "pushFilters")
"""True if a relation has one reader of a data source. Spark 4.0 makes one for each place of a query that reads the relation."""
limits_batches = find_spec("pyspark.sql.streaming.datasource") is not None
places_by_number = arrow_udf is not None and hasattr(DataFrame, "repartitionById")
"""True if rows are placed by the number of their task."""


def lacks(what: str, since: str, instead: str) -> UnsupportedError:
    """The error of what Spark has only since a later version."""
    import pyspark

    return UnsupportedError(f"Spark {pyspark.__version__} has no {what}, Spark {since} has; {instead}", kind="engine")
