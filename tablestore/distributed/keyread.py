"""The rows of a table that have given keys, cut into tasks for other processes.

    driver    plan_key_read -> tasks (bytes)      of a task: files, and the keys that may lie in them
    executor                   read_keys -> batches

Keys choose their buckets, and in these the files whose key ranges they meet. There the keys are looked up
(:mod:`~tablestore.store.scan.lookup`): key columns are read of the row groups that a key may lie in, other columns where one does.
Only the versions that were found are merged. A task can be run again.

Memory: the keys, and in a task what looking up takes (:mod:`~tablestore.bounds`).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from tablestore.bounds import BATCH_BYTES, PASS_BYTES
from tablestore.distributed.read import BATCH_ROWS, TASK_BYTES, ReadPin, decode_splits, encode_split, pack_weights
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.taskjson import bytes_to_text, decode_task, encode_task, text_to_bytes
from tablestore.format.binaryrow import encode_row
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.write.writebuffer import WriteBuffer
from tablestore.store.changes.statediff import BucketState, StateDiff
from tablestore.store.context import TableContext
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.scan.lookup import SortedKeys, keys_in_range, sorted_keys
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import SPLIT_BYTES, Split, plan_scan
from tablestore.table.read.keylookup import stored_keys
from tablestore.table.read.scan import check_columns
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.filter.filters import parse_filter
from tablestore.types.pieces import gathered
from tablestore.types.schema import TableSchema

_KIND = "key read task"


def plan_key_read(
    pin: ReadPin,
    keys: pa.Table,
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    task_bytes: int = TASK_BYTES,
    parallelism: int = 1,
) -> tuple[bytes, ...] | None:
    """Tasks for :func:`read_keys`; None where other ways to read are better.

    ``keys`` has the columns of the primary key, of whole numbers, dates or text; keys in any order, some perhaps twice or NULL.
    They have to say in which bucket they lie. ``columns``, ``task_bytes`` and ``parallelism`` as in
    :func:`~tablestore.distributed.read.plan_read`; ``filter`` leaves out files, and not their rows.
    """
    context = pin.open()
    schema, settings = context.schema, context.settings
    names = check_columns(columns, schema.field_names)
    if not schema.is_keyed or settings.total_buckets < 1:
        return None
    stored = stored_keys(keys, [schema.field(name) for name in schema.primary_keys])
    if stored is None:
        return None
    sought = stored.drop_null()
    snapshot = pin.read_snapshot(context)
    splits = plan_scan(context, snapshot, parse_filter(filter, schema.fields), split_bytes=min(SPLIT_BYTES, task_bytes)).splits
    if any(split.total_buckets != settings.total_buckets for split in splits):
        # A partition that has not been rescaled yet.
        return None
    placed = _by_bucket(context, sought)
    found = [(split, part) for split in splits if (part := _keys_of(schema, split, placed)) is not None]
    packed = pack_weights([split.weight for split, _ in found], task_bytes=task_bytes, parallelism=parallelism)
    head = {"schema": schema.id, "snapshot": pin.snapshot_id, "columns": list(names)}
    return tuple(
        encode_task(
            _KIND,
            {
                **head,
                "splits": [encode_split(found[place][0]) for place in chosen],
                "keys": [bytes_to_text(_to_bytes(found[place][1])) for place in chosen],
            },
        )
        for chosen in packed
    )


def read_keys(spec: TableSpec, task: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of one task of :func:`plan_key_read`, in batches as those of :func:`~tablestore.distributed.read.read_task`."""
    parsed = decode_task(_KIND, task, {"schema", "snapshot", "columns", "splits", "keys"})
    context = spec.open(int(parsed["schema"]))
    columns = check_columns(parsed["columns"], context.schema.field_names)
    vectors = None
    if context.settings.deletion_vectors:
        vectors = context.deletion_vectors(context.snapshots.read(int(parsed["snapshot"])))
    parts = zip(decode_splits(parsed["splits"]), parsed["keys"], strict=True)
    batches = (
        batch
        for split, text in parts
        for batch in _rows(context, split, _from_bytes(text_to_bytes(_KIND, text), context.schema), columns, vectors)
    )
    return gathered(batches, max_rows=2 * BATCH_ROWS, max_bytes=BATCH_BYTES, small_rows=BATCH_ROWS)


def _rows(
    context: TableContext, split: Split, keys: SortedKeys, columns: tuple[str, ...], vectors: DeletionVectors | None
) -> Iterator[pa.RecordBatch]:
    reader = SplitReader.of(context, columns, None)
    states = StateDiff(reader=reader, partition=split.partition, bucket=split.bucket, columns=columns)
    schema = to_arrow_schema([context.schema.field(name) for name in columns])
    for _, state in states.rows_at(BucketState(files=split.files, vectors=vectors), [keys]):
        rows = state.rows if state.places is None else state.rows.take(state.places)
        for batch in rows.combine_chunks().to_batches():
            whole = reader.with_partition(batch, split.partition)
            yield pa.RecordBatch.from_arrays([whole.column(name) for name in columns], schema=schema)


def _by_bucket(context: TableContext, keys: pa.Table) -> dict[tuple[bytes, int], SortedKeys]:
    """The distinct keys of each bucket, in order."""
    schema = context.schema
    only_keys = replace(schema, fields=tuple(schema.field(name) for name in schema.primary_keys))
    buffer = WriteBuffer(only_keys, total_buckets=context.settings.total_buckets, budget_bytes=PASS_BYTES, merge=MergeFunction())
    buffer.add(keys)
    types = [field.type for field in schema.partition_fields]
    found: dict[tuple[bytes, int], list[pa.Table]] = defaultdict(list)
    for run in buffer.flush():
        found[encode_row(run.partition, types), run.bucket].append(run.rows)
    return {place: sorted_keys(pa.concat_tables(parts), schema.key_fields) for place, parts in found.items()}


def _keys_of(schema: TableSchema, split: Split, placed: dict[tuple[bytes, int], SortedKeys]) -> SortedKeys | None:
    """The keys that may lie in the files of a split, None for none."""
    if (keys := placed.get((split.partition, split.bucket))) is None:
        return None
    ranges = [keys_in_range(schema.key_fields, file, keys) for file in split.files]
    held = [(first, last) for first, last in ranges if first < last]
    return keys.slice(min(first for first, _ in held), max(last for _, last in held)) if held else None


def _to_bytes(keys: SortedKeys) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.rows.schema) as writer:
        writer.write_batch(keys.rows)
    return bytes(sink.getvalue())


def _from_bytes(data: bytes, schema: TableSchema) -> SortedKeys:
    with pa.ipc.open_stream(data) as reader:
        return sorted_keys(reader.read_all(), schema.key_fields)
