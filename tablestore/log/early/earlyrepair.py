"""Repairs early rows: sends for each of their keys the row that the table holds, or a tombstone.

    keys -> the bucket at the snapshot -> found: +I with the row      not found: -D

A repair stands behind all changes of its snapshot, so to readers of landed changes it brings nothing new.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.format.snapshot import Snapshot
from tablestore.json.jsonrows import rows_from_json
from tablestore.log.changemessages import LogFormat, encode_changes
from tablestore.log.identity import snapshot_name
from tablestore.log.record import EARLY_SNAPSHOT, LogRecords
from tablestore.store.context import TableContext
from tablestore.store.scan.scanplan import WantedFiles, plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.types.filter.predicate import IsIn, Predicate, all_of
from tablestore.types.rowkind import RowKind

# So few keys prune what is read; for more the bucket is read whole.
_FEW = 1_000


def repairs(
    context: TableContext,
    snapshot: Snapshot | None,
    bucket: int,
    keys: Sequence[bytes],
    schema_id: int,
    *,
    first: int,
    form: LogFormat = "debezium-json",
) -> Iterator[LogRecords]:
    """The records that say what the table holds at ``snapshot`` for these message keys of one bucket.

    ``schema_id``: of the schema that the keys were written with; ``first``: the ordinal of the first record. Raises NotFoundError
    if the snapshot expires meanwhile.
    """
    snapshot_context = context if snapshot is None else context.at_schema(context.schemas.read(snapshot.schema_id))
    key_rows = _parsed(snapshot_context, keys, schema_id)
    missing = np.ones(key_rows.num_rows, dtype=np.bool_)
    for rows in _rows(snapshot_context, snapshot, bucket, key_rows):
        held, at = _matched(rows, key_rows)
        missing[at] = False
        if held.num_rows:
            yield _encoded(snapshot_context, snapshot, bucket, held, RowKind.INSERT, first, form)
            first += held.num_rows
    if missing.any():
        yield _encoded(snapshot_context, snapshot, bucket, key_rows.filter(pa.array(missing)), RowKind.DELETE, first, form)


def _parsed(context: TableContext, keys: Sequence[bytes], schema_id: int) -> pa.Table:
    """The keys as columns under the names that they have now, each once."""
    written, schema = context.schemas.read(schema_id), context.schema
    columns = pa.schema([written.arrow_schema.field(name) for name in written.primary_keys])
    named = rows_from_json(list(keys), columns).rename_columns(list(schema.primary_keys))
    target = pa.schema([schema.arrow_schema.field(name) for name in schema.primary_keys])
    distinct: pa.Table = named.cast(target).group_by(list(schema.primary_keys), use_threads=False).aggregate([])
    return distinct.select(list(schema.primary_keys))


def _rows(context: TableContext, snapshot: Snapshot | None, bucket: int, key_rows: pa.Table) -> Iterator[pa.Table]:
    if snapshot is None:
        return
    predicate: Predicate | None = None
    if key_rows.num_rows <= _FEW:
        predicate = all_of(IsIn(name, tuple(key_rows.column(name).unique().to_pylist())) for name in key_rows.schema.names)
    plan = plan_scan(context, snapshot, predicate, wanted=WantedFiles(in_place=lambda place: place[1] == bucket))
    reader = SplitReader.whole(context, context.schema.field_names, predicate)
    for split in plan.splits:
        for batch in reader.read(split):
            yield pa.Table.from_batches([batch])


def _matched(rows: pa.Table, key_rows: pa.Table) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The rows that have a wanted key, and the places of these keys."""
    key = key_rows.schema.names
    left = rows.select(key).append_column("_row", pa.array(np.arange(rows.num_rows, dtype=np.int64)))
    right = key_rows.append_column("_key", pa.array(np.arange(key_rows.num_rows, dtype=np.int64)))
    both = left.join(right, key, join_type="inner", use_threads=False)
    return rows.take(both.column("_row").combine_chunks()), both.column("_key").to_numpy()


def _encoded(
    context: TableContext, snapshot: Snapshot | None, bucket: int, rows: pa.Table, kind: RowKind, first: int, form: LogFormat
) -> LogRecords:
    kinds = np.full(rows.num_rows, int(kind), dtype=np.int8)
    messages = encode_changes(rows, kinds, key=context.schema.primary_keys, mode="upsert", form=form)
    return LogRecords(
        bucket=bucket,
        snapshot_id=snapshot.id if snapshot else EARLY_SNAPSHOT,
        time_millis=context.clock.now_ms(),
        ordinals=messages.places + first,
        kinds=messages.kinds,
        keys=messages.keys,
        values=messages.values,
        snapshot_uuid=snapshot_name(snapshot) if snapshot else None,
    )
