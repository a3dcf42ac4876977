"""Makes streams of the managed tables that a query follows, for Structured Streaming to run.

a query that filters, computes and looks up     changes with their kinds: SELECT _row_kind, id, v …
one that combines rows (Spark keeps its state)  rows of tables that only get new ones; where rows change it is refused
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_tablestore.sourceoptions import placed
from tablestore.distributed.read import ReadPin
from tablestore.environment.engine import BoundQuery, ManagedRelation, NativeRelation, QueryRelation, Relation
from tablestore.environment.streams.microbatches import needs_of_stream
from tablestore.environment.streams.streamedquery import carrying_query, streams_of
from tablestore.errors import UnsupportedError
from tablestore.format.paths import MAIN_BRANCH
from tablestore.sql.incremental.shapes import NoRuleError
from tablestore.store.context import TableContext
from tablestore.table.table import Table
from tablestore.types.rowkind import ROW_KIND_COLUMN


def followed_query(spark: SparkSession, query: BoundQuery, target: Table) -> BoundQuery:
    """The query over streaming DataFrames, to be written into a table. Raises UnsupportedError for a query whose state would have
    to follow updates and deletes."""
    streams = list(streams_of(query))
    if not streams:
        return query
    try:
        carrying, shape = carrying_query(query, ROW_KIND_COLUMN)
    except NoRuleError as error:
        if (changing := next((one for one in streams if _changes(one.table.context)), None)) is not None:
            raise UnsupportedError(
                f"execution.runtime-mode = streaming: rows of {changing.name} change and go, and Spark combines rows of a stream "
                f"that only come ({error.reason}). A materialized table keeps such a query up to date: CREATE MATERIALIZED TABLE "
                "name FRESHNESS = INTERVAL '1' MINUTE AS query",
                kind="streaming",
            ) from error
        return _followed(query, {one.name: _frame(spark, one, {}) for one in streams})
    options = {one.name: needs_of_stream(one, target.context, shape).pairs for one in streams}
    frames = {one.name: _frame(spark, one, {"row-kinds": "true", "pairs": str(options[one.name]).lower()}) for one in streams}
    return _followed(carrying, frames)


def _changes(context: TableContext) -> bool:
    merge = context.settings.merge
    return merge is not None and merge.engine != "first-row"


def _followed(query: BoundQuery, frames: Mapping[str, DataFrame]) -> BoundQuery:
    def replaced(relation: Relation) -> Relation:
        if isinstance(relation, QueryRelation):
            return replace(relation, query=_followed(relation.query, frames))
        if isinstance(relation, ManagedRelation) and relation.follows is not None:
            return NativeRelation(name=relation.name, value=frames[relation.name])
        return relation

    return replace(query, relations=tuple(map(replaced, query.relations)))


def _frame(spark: SparkSession, relation: ManagedRelation, kinds: Mapping[str, str]) -> DataFrame:
    """A managed table as a streaming DataFrame: its rows and then every change."""
    follows, pin = relation.follows, relation.pin
    assert follows is not None, "it is a stream"
    _check_place(relation.name, pin)
    options: dict[str, Any] = {
        **placed(pin.spec.location, None, pin.spec.storage_options),
        "log.scan": follows.scan,
        "log.scan.timestamp-mills": follows.time_millis,
        "consumer-id": follows.consumer_id,
        # Those of the statement, whatever columns the table gets; of a query that uses none of them any.
        "columns": json.dumps(list(relation.columns or relation.schema.field_names)),
        **kinds,
    }
    return spark.readStream.format("tablestore").options(**{key: one for key, one in options.items() if one is not None}).load()


def _check_place(name: str, pin: ReadPin) -> None:
    if pin.spec.branch != MAIN_BRANCH or pin.spec.files is not None:
        raise UnsupportedError(
            f"execution.runtime-mode = streaming: {name} is a branch, or lies in the memory of this process, and Spark follows the "
            "main branch of tables that its tasks can read",
            kind="streaming",
        )
