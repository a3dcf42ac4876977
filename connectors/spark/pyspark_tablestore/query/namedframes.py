"""Names DataFrames in a text of SQL.

By views, which last until Spark has resolved the text. Spark's own way, ``spark.sql("… {m0} …", m0=frame)``, drops them as a user
would, and with a view it forgets what is cached of the same query: a cached source would be read again, and its owner's cache be
gone. So in a classic session the views are dropped here. Spark Connect makes no views.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from tablestore.environment.engine import BoundQuery
from tablestore.ids import Ids

# As Spark names them: errors tell them by that.
_PREFIX = "_pyspark_"


def frame_of(
    spark: SparkSession, query: BoundQuery, relations: Sequence[DataFrame], parameters: dict[str, Any] | list[Any], ids: Ids
) -> DataFrame:
    """The query as a DataFrame; ``relations``: what stands for each of its relations. Raises Spark's errors."""
    if is_remote():
        frames = {f"m{number}": frame for number, frame in enumerate(relations)}
        return spark.sql(query.edited(lambda number: f"{{m{number}}}", _without_braces), parameters or None, **frames)
    names = [_PREFIX + ids.uuid().replace("-", "") for _ in relations]
    created: list[str] = []
    try:
        for name, frame in zip(names, relations, strict=True):
            frame.createOrReplaceTempView(name)
            created.append(name)
        text = query.edited(names.__getitem__)
        if not parameters:
            _check_query(spark, text)
        return spark.sql(text, parameters or None)
    finally:
        drop = _drop(spark)
        for name in created:
            drop(name)


def _check_query(spark: SparkSession, text: str) -> None:
    """Raises Spark's error for a text that is no query: ``sql`` runs a command before anybody asks for its rows."""
    session: Any = spark
    session._jsparkSession.sessionState().sqlParser().parseQuery(text)


def _drop(spark: SparkSession) -> Callable[[str], Any]:
    """The function that drops a view, and leaves alone what is cached."""
    session: Any = spark
    catalog = session._jsparkSession.sessionState().catalog()
    return catalog.dropTempView  # type: ignore[no-any-return]


def _without_braces(text: str) -> str:
    """Doubles the user's braces, since Spark formats the text."""
    return text.replace("{", "{{").replace("}", "}}")
