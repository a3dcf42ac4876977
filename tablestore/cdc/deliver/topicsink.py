"""Encodes changes as messages of a topic, and finds the connector that sends them.

    json             key     the primary key as a JSON object; none without one, which then takes new rows only
                     value   +I, +U: the row as a JSON object; -D: null, a tombstone; -U: no message
    debezium-json    key     the same
                     value   +I, +U {"before":null,"after":{row},"op":"c"}, -U, -D {"before":{row},"after":null,"op":"d"}

A package offers an :data:`OpenTopicSink` (entry point group ``tablestore.topic_sinks``). Memory: the messages of a piece of a
batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.bounds import BATCH_ROWS, TEXT_BYTES
from tablestore.cdc.deliver.changesink import ChangeSink
from tablestore.cdc.topicsource import load_topic_connector
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.json.jsontext import rows_to_json, text_bytes
from tablestore.log.changemessages import encode_changes
from tablestore.types.arrays import Kinds
from tablestore.types.rebatch import slices_of
from tablestore.types.rowkind import ROW_KIND_COLUMN, RowKind, kinds_from_symbols

GROUP = "tablestore.topic_sinks"

TopicFormat = Literal["json", "debezium-json"]
Messages = tuple[list[bytes | None], list[bytes | None]]
"""Keys, and the value of each."""
Encode = Callable[[pa.RecordBatch], Iterator[Messages]]
OpenTopicSink = Callable[[str, Mapping[str, str], str, Encode], ChangeSink]
"""(topic, client properties, name of the delivery, what encodes rows with ``_row_kind``) -> the sink."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A Kafka topic that takes changes. ``format``: ``"json"`` or ``"debezium-json"``. ``servers`` are its brokers, ``properties``
    of the client those that tables may set too; others (secrets) come from the environment (``TABLESTORE_KAFKA_…``)."""

    name: str
    servers: str | None = None
    format: TopicFormat = "json"
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.format not in ("json", "debezium-json"):
            raise InvalidInputError(
                f"topic {self.name}: expected json or debezium-json as format, found {self.format!r:.80}", kind="invalid-argument"
            )


def open_topic_sink(to: Topic, delivery: str, key: Sequence[str], columns: Sequence[str] | None) -> ChangeSink:
    """The sink of a topic. ``key``: the primary key, of which ``columns`` (None: all) may leave nothing out."""
    if columns is not None and (missing := [name for name in key if name not in columns]):
        raise InvalidInputError(
            f"topic {to.name}: expected all columns of the primary key, which is the key of the messages, found no {missing[0]!r} "
            "in columns; add it",
            kind="invalid-argument",
        )
    make: OpenTopicSink = load_topic_connector(GROUP, "kafka")
    properties = {**to.properties, **({"bootstrap.servers": to.servers} if to.servers else {})}
    return make(to.name, properties, delivery, lambda rows: encode(rows, key, to.format))


def encode(rows: pa.RecordBatch, key: Sequence[str], form: TopicFormat) -> Iterator[Messages]:
    """The messages of changes, in their order. Raises UnsupportedError for a change that ``json`` without a key cannot say."""
    for part in slices_of(pa.Table.from_batches([rows]), max_rows=BATCH_ROWS, max_bytes=TEXT_BYTES, size_of=text_bytes):
        batch = part.combine_chunks()
        kinds = np.asarray(kinds_from_symbols(batch.column(ROW_KIND_COLUMN)).to_numpy(), dtype=np.int8)
        batch = batch.drop_columns([ROW_KIND_COLUMN])
        if form == "debezium-json":
            messages = encode_changes(batch, kinds, key=key, mode="all")
            yield messages.keys, messages.values
        else:
            yield _plain(batch, kinds, key)


def _plain(rows: pa.Table, kinds: Kinds, key: Sequence[str]) -> Messages:
    if not key and (kinds != RowKind.INSERT).any():
        raise UnsupportedError(
            "a row was changed or deleted, and without a primary key a JSON message cannot say which; deliver as debezium-json",
            kind="format",
        )
    kept_rows = kinds != RowKind.UPDATE_BEFORE
    if not kept_rows.all():
        kinds, rows = kinds[kept_rows], rows.filter(pa.array(kept_rows))
    if not rows.num_rows:
        return [], []
    values = pc.if_else(
        pa.array(kinds != RowKind.DELETE), _texts(rows, rows.schema.names), pa.scalar(None, pa.binary())
    ).to_pylist()
    return (_texts(rows, key).to_pylist() if key else [None] * len(values)), values


def _texts(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    return rows_to_json([rows.column(name).combine_chunks() for name in names], names).cast(pa.binary())
