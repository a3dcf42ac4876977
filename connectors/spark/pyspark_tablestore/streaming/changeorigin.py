"""Notes in the schema of a stream of changes what they are changes of, so that a sink can say which rows it misses.

    source   _row_kind with metadata {"tablestore.changes": {"key": ["id"], "order": [["ts", false]], "pairs": false, …}}
    sink     another key or order, or values that are taken back: it needs the rows before updates, or refuses to begin

Spark hands the metadata of a column on to whatever selects it as it is. Changes that come without it are taken as they are.
"""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructField, StructType

from tablestore.cdc.deliver.tablesink import asks_for_pairs
from tablestore.distributed.stream.streamrequest import StreamRequest
from tablestore.errors import InvalidInputError
from tablestore.lsm.functions.mergefunction import SequenceField
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext
from tablestore.types.rowkind import ROW_KIND_COLUMN

_NOTE = "tablestore.changes"


def with_origin(schema: StructType, source: TableContext, request: StreamRequest) -> StructType:
    """The schema of a stream of a table's changes with where they come from."""
    merge = source.settings.merge
    if merge is None or ROW_KIND_COLUMN not in schema.names:
        return schema
    note = {
        "table": source.files.root_uri,
        "key": list(source.schema.primary_keys),
        "order": [[field.name, field.descending] for field in merge.sequence_fields],
        "pairs": request.pairs,
        "given": source.changelog_settings.producer == INPUT,
    }
    return StructType([_noted(field, note) if field.name == ROW_KIND_COLUMN else field for field in schema.fields])


def check_origin(schema: StructType, target: TableContext) -> None:
    """Raises InvalidInputError if a table needs rows before updates that these changes do not hold."""
    text = schema[ROW_KIND_COLUMN].metadata.get(_NOTE) if ROW_KIND_COLUMN in schema.names else None
    if text is None:
        return
    note = json.loads(text)
    ordering = tuple(SequenceField(name=name, descending=descending) for name, descending in note["order"])
    if not asks_for_pairs(target, note["key"], ordering) or (note["pairs"] and not note["given"]):
        return
    way = (
        "with changelog-producer = input these changes are as they were written, which may lack them: deliver the table with "
        "tablestore.deliver, which looks them up"
        if note["given"]
        else "give the stream the option pairs = true"
    )
    raise InvalidInputError(
        f"table {target.files.root_uri} has another primary key or order than {note['table']}, or takes values back, so it needs "
        f"the rows before updates (-U) of its changes; {way}",
        kind="missing-pairs",
    )


def _noted(field: StructField, note: Mapping[str, Any]) -> StructField:
    return StructField(field.name, field.dataType, field.nullable, {**field.metadata, _NOTE: json.dumps(note)})
