"""Refuses servers that speak Spark Connect and are no Apache Spark, such as Sail: there queries would give other values in silence.

Spark says as ``version()`` its version and the revision that it was built from: ``4.3.0 98bc02…``; Sail says ``0.7.2``. Sail hands
a data source a schema of Arrow where Spark hands its own. What Sail answers otherwise is in docs/decisions/0012-sail.md.
"""

import re
from typing import Any

from tablestore.errors import UnsupportedError

_SPARK = re.compile(r"\d+\.\d+\.\S+ [0-9a-f]*")
_ATTRIBUTE = "_tablestore_is_spark"
_WHY = (
    "Sail, and others that speak Spark Connect, give other rows than Apache Spark without an error; connect to a server of Apache "
    "Spark, or use engine='duckdb'"
)


def check_server(spark: Any) -> None:
    """Raises UnsupportedError if the server of a session is no Apache Spark. Asks the server of a remote session, once."""
    if hasattr(spark, "_jsparkSession") or vars(spark).get(_ATTRIBUTE):
        return
    version = str(spark.sql("SELECT version()").collect()[0][0])
    if not _SPARK.fullmatch(version):
        raise UnsupportedError(
            f"expected a session of Apache Spark, found one of a server whose version() is {version!r}; {_WHY}", kind="engine"
        )
    vars(spark)[_ATTRIBUTE] = True


def check_schema(schema: object) -> None:
    """Raises UnsupportedError if a data source was handed a schema that is none of Spark's."""
    kind = type(schema)
    if kind.__module__.partition(".")[0] != "pyspark":
        raise UnsupportedError(
            f"the data source tablestore: expected a StructType of Apache Spark, found a {kind.__module__}.{kind.__qualname__}; "
            f"{_WHY}",
            kind="engine",
        )
