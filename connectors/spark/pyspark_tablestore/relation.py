"""Reads and writes from the user's own process, around the limits of a Python data source.

``read`` makes a union of plans. Spark's own vectorised Parquet scan reads files that need no merge, where it gives the same rows
(``native``), and files under a few newer rows, where a key says which rows count (``layers``). tablestore's tasks read all others.
So a well-compacted table reads at Spark's own speed, and one that was upserted into since then not much slower.

``write`` runs the tasks with ``mapInArrow`` and commits here: the snapshot comes back to the caller, errors are ours, and any
thread may call it. With ``cluster`` the rows are first brought together by bucket, so that each bucket gets one sorted run.

Both work in classic sessions and through Spark Connect.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyspark_tablestore.conditions import condition, has_condition
from pyspark_tablestore.layers import ReadyLayer, layer_scans, ready
from pyspark_tablestore.native import (
    MOST_SCANS,
    NativeRule,
    column,
    listing_threshold,
    names_unicode_paths,
    native_scan,
    orc_terms,
    quoted,
    reads_alike,
    renewed,
)
from pyspark_tablestore.publish import spark_log
from pyspark_tablestore.reader import pin_options
from pyspark_tablestore.sourceoptions import PINNED, parse_options, placed
from pyspark_tablestore.sparkserver import check_server
from pyspark_tablestore.systemtables import MetadataPin
from pyspark_tablestore.tasks import Batches, placed_by, run_tasks
from pyspark_tablestore.writer import prepare, write_task
from tablestore.distributed.layers import Layer
from tablestore.distributed.read import ReadPin, ReadPlan, filter_text, pinned_fields, plan_read, planned_layer
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import WriteJob, abort_messages, commit_messages
from tablestore.errors import InvalidInputError
from tablestore.format.bucket import bucket_of
from tablestore.format.snapshot import Snapshot
from tablestore.memo import RecentlyUsed
from tablestore.options import MIB
from tablestore.store.message import CommitMessage
from tablestore.store.rowview import rules_to_json
from tablestore.store.settings import RangeLayout
from tablestore.table.table import Table
from tablestore.table.write.committing import CommitNote
from tablestore.types.conform import conform
from tablestore.types.datatypes import AtomicType, Field
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import Predicate
from tablestore.types.filter.predicate import columns as filter_columns
from tablestore.types.rowposition import POSITION_COLUMNS

# So many layers, whose arrays take so much memory here and in the JVM, and so many scans.
KEPT_BYTES, MOST_KEPT = 64 * MIB, 16
# The most files of a scan that is kept: Spark holds some kilobytes for each.
MOST_KEPT_FILES = 1000
_ATTRIBUTE = "_tablestore_scans"


class KeptScans:
    """Keeps the scans that a session read last. They stay true: the files that they were made of never change.

    So of what is read again no keys are read, no arrays are handed to the JVM and no files are listed.
    """

    def __init__(self) -> None:
        self.layers: RecentlyUsed[ReadyLayer] = RecentlyUsed(lambda layer: layer.bytes, most=MOST_KEPT, most_weight=KEPT_BYTES)
        self.scans: RecentlyUsed[DataFrame] = RecentlyUsed(lambda _: 1, most=MOST_KEPT, most_weight=MOST_KEPT)

    @classmethod
    def of(cls, spark: SparkSession) -> "KeptScans":
        """The scans of a session: they last as long as it does."""
        kept_scans: KeptScans = vars(spark).setdefault(_ATTRIBUTE, cls())
        return kept_scans


def read(
    spark: SparkSession,
    table: str,
    *,
    warehouse: str | None = None,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    snapshot_id: int | None = None,
    timestamp_millis: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """A table as a DataFrame, pinned to one snapshot; plain files are read by Spark's own Parquet scan.

    ``table`` is a path, or ``database.table`` with a ``warehouse``. ``filter`` is SQL text with the meaning that it has in a scan.
    It also leaves out files, which ``where`` on the DataFrame does not. Raises tablestore's errors.
    """
    check_server(spark)
    texts = {"snapshot-id": snapshot_id, "timestamp-millis": timestamp_millis, "filter": filter}
    relation_options = {
        **placed(table, warehouse, storage_options),
        **{key: str(value) for key, value in texts.items() if value is not None},
    }
    options = parse_options(relation_options)
    pin = pin_options(options)
    if isinstance(pin, MetadataPin):
        # There is nothing to read natively.
        columns_option = {} if columns is None else {"columns": json.dumps(list(columns))}
        return spark.read.format("tablestore").options(**relation_options, **columns_option).load()
    return read_pinned(spark, pin, columns=columns, filter=filter)


def read_pinned(
    spark: SparkSession,
    pin: ReadPin,
    *,
    columns: Sequence[str] | None = None,
    filter: str | Predicate | None = None,
    positions: bool = False,
    filtered: bool = True,
) -> DataFrame:
    """The rows of a pinned read; the columns are in the order asked for. ``positions``: of an append table, where each row lies.

    ``filtered`` of False: some rows that do not pass the filter may come too, for a query that filters all of them itself.
    """
    predicate = parse_filter(filter, pin.open().schema.fields)
    names = tuple(field.name for field in pinned_fields(pin, columns))
    if not names:
        # Tasks cannot say how many rows they have without any column.
        cheapest = _cheapest(pin.open().schema.fields)
        counted = read_pinned(spark, pin, columns=[cheapest], filter=filter, positions=positions, filtered=filtered)
        return counted.select(*POSITION_COLUMNS if positions else ())
    rule = _native_rule(spark, pin, names, predicate, positions=positions)
    plan, rule = _planned(spark, pin, names, predicate, rule, positions=positions)
    parts = [_native_part(spark, plan, predicate, filtered=filtered)] if plan.plain_files or plan.layers else []
    if plan.tasks or not parts:
        parts.append(_our_part(spark, plan, filter, rule))
    return reduce(DataFrame.union, parts)


def read_by(spark: SparkSession, pin: ReadPin, columns: Sequence[str] | None, filter: Predicate | None, *, positions: bool) -> str:
    """Describes who reads the files of a pinned read: Spark's own scan, or tasks of tablestore's."""
    fields = pin.open().schema.fields
    names = tuple(field.name for field in pinned_fields(pin, columns)) or (_cheapest(fields),)
    rule = _native_rule(spark, pin, names, filter, positions=positions)
    plan, _ = _planned(spark, pin, names, filter, rule, positions=positions)
    layered = [file for layer in plan.layers for file in layer.files]
    newer = f" ({len(layered)} without the keys of newer files)" if layered else ""
    merged = sum(len(split.files) for task in plan.tasks for split in task.splits)
    return f"Spark {len(plan.plain_files) + len(layered)} files{newer}, tablestore {merged} files in {len(plan.tasks)} tasks"


def write(
    df: DataFrame,
    table: str,
    mode: str = "append",
    *,
    warehouse: str | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    cluster: bool = False,
    missing_columns: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Snapshot | None:
    """Writes ``df`` and commits here; returns the new snapshot, None if there was nothing to publish.

    ``mode`` is ``append`` (upsert in a keyed table, changes with ``_row_kind``) or ``overwrite``. ``cluster`` shuffles the rows of
    a table with a fixed number of buckets, so that one task writes all of a bucket: slower to write, and read without a merge.
    ``missing_columns`` as in ``Table.upsert``. Raises tablestore's errors for what it refuses, Spark's for tasks that failed.
    """
    check_server(df.sparkSession)
    if mode not in ("append", "overwrite"):
        raise InvalidInputError(f"expected the mode append or overwrite, found {mode!r}")
    commit_options = {"commit-user": commit_user, "commit-identifier": commit_identifier, "missing-columns": missing_columns}
    options = parse_options(
        {
            **placed(table, warehouse, storage_options),
            **{key: str(value) for key, value in commit_options.items() if value is not None},
        }
    )
    return write_job(
        df,
        prepare(options, df.schema, overwrite=mode == "overwrite"),
        commit_user=options.commit_user,
        commit_identifier=options.commit_identifier,
        cluster=cluster,
    )


def write_job(
    df: DataFrame,
    job: WriteJob,
    *,
    table: Table | None = None,
    partition: Mapping[str, Any] | None = None,
    dynamic: bool | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    cluster: bool = False,
    note: CommitNote | None = None,
) -> Snapshot | None:
    """Writes the rows in tasks and commits here, through ``table`` (its log stays open) or a handle of its own.

    ``partition`` and ``dynamic``: what a job that overwrites replaces, ``note``: what the snapshot says of its rows, as in
    ``commit_messages``. Raises tablestore's errors for what it refuses and Spark's for tasks that failed; what the other tasks
    wrote is removed then, or left for the removal of orphan files where Spark does not say what it was.
    """
    handle = table or job.spec.table()
    messages = write_messages(df, job, handle, cluster=cluster)
    return commit_messages(
        handle,
        messages,
        overwrite=job.overwrite,
        partition=partition,
        dynamic=dynamic,
        commit_user=commit_user,
        identifier=commit_identifier,
        log=spark_log(df.sparkSession, job.spec, handle),
        note=note,
    )


def write_messages(df: DataFrame, job: WriteJob, table: Table, *, cluster: bool = False) -> list[CommitMessage]:
    """Runs the tasks; gives their messages in order, one at least. ``cluster`` as in :func:`write`, errors as :func:`write_job`."""
    rows = clustered(df, job.spec, job.schema_id) if cluster else df
    if (ranges := table.context.settings.ranges) is not None:
        rows, job = _by_range(rows, job, ranges, table)
    outputs, error = run_tasks(rows, partial(_write_rows, job))
    written = CommitMessage.all_from_bytes(outputs)
    if error is not None:
        abort_messages(table, written)
        raise error
    return written or [CommitMessage.from_bytes(write_task(job, iter(())))]


def _write_rows(job: WriteJob, batches: Batches) -> Iterator[bytes]:
    yield write_task(job, batches)


def clustered(df: DataFrame, spec: TableSpec, schema_id: int) -> DataFrame:
    """The rows moved so that the task of number b has all rows of bucket b."""
    context = spec.open(schema_id)
    schema, count = context.schema, context.settings.total_buckets
    if count < 1 or not schema.bucket_keys:
        raise InvalidInputError(
            f"cluster=True needs a fixed number of buckets, table {spec.location} has bucket = {schema.options.get('bucket')}; "
            "write without it"
        )
    if missing := [name for name in schema.bucket_keys if name not in df.columns]:
        raise InvalidInputError(f"the rows lack the columns {', '.join(missing)} that choose the bucket", kind="missing-column")
    fields = tuple(schema.field(name) for name in schema.bucket_keys)
    function = context.settings.bucket_function
    where = f"table {spec.location}"

    def buckets(*columns: pa.Array) -> pa.Array:
        rows = pa.RecordBatch.from_arrays(list(columns), names=[field.name for field in fields])
        keys = conform(rows, fields, where=where).combine_chunks()
        chunks = [keys.column(name).chunk(0) for name in keys.column_names] if keys.num_rows else list(columns)
        return pa.array(bucket_of(chunks, [field.type for field in fields], count, function), pa.int32())

    return placed_by(df, count, buckets, [field.name for field in fields])


def _by_range(df: DataFrame, job: WriteJob, ranges: RangeLayout, table: Table) -> tuple[DataFrame, WriteJob]:
    """The rows moved so that a task has a range of them, by bounds that Spark samples, or (of a partitioned table) all of a
    partition; and the job whose tasks take it so."""
    wanted = table.partition_by or ranges.order.columns
    if not set(wanted) <= set(df.columns):
        return df, job
    columns = [column(name) for name in wanted]
    if table.partition_by:
        return df.repartition(*columns), job
    ranged = df.repartitionByRange(ranges.count, *columns) if ranges.count else df.repartitionByRange(*columns)
    return ranged, replace(job, ranged=True)


def _native_rule(
    spark: SparkSession, pin: ReadPin, names: Sequence[str], predicate: Predicate | None, *, positions: bool
) -> NativeRule | None:
    """The rule for the plain files that Spark may read for these columns and this filter; None if it may read none."""
    if not pin.spec.location.startswith("/"):
        return None
    schema = pin.open().schema
    fields = {field.name: field for field in schema.fields}
    if not all(reads_alike(fields[name].type) for name in names) or not (predicate is None or has_condition(predicate, fields)):
        return None
    threshold = listing_threshold(spark)
    orc = None if positions else orc_terms(spark, schema, {*names, *filter_columns(predicate)})
    return NativeRule(ascii_only=False, most_files=threshold * MOST_SCANS if threshold > 0 else None, orc=orc)


def _planned(
    spark: SparkSession,
    pin: ReadPin,
    names: Sequence[str],
    predicate: Predicate | None,
    rule: NativeRule | None,
    *,
    positions: bool,
) -> tuple[ReadPlan, NativeRule | None]:
    """The plan, and the rule that holds for its plain files."""
    if rule is None or not rule.can_name(pin.spec.location):
        return plan_read(pin, columns=names, filter=predicate, positions=positions), None
    plan = plan_read(pin, columns=names, filter=predicate, plain_files=rule.choose, layers=True, orc=rule.orc, positions=positions)
    native = [*plan.plain_files, *(file.path for layer in plan.layers for file in layer.files)]
    if all(f"{pin.spec.location}/{path}".isascii() for path in native) or rule.ascii_only or names_unicode_paths(spark):
        return plan, rule
    return _planned(spark, pin, names, predicate, replace(rule, ascii_only=True), positions=positions)


def _cheapest(fields: Sequence[Field]) -> str:
    """The column that counts rows at the least cost: one that Spark reads natively, of numbers if there is one."""
    alike = [field for field in fields if reads_alike(field.type)]
    small = [field for field in alike if isinstance(field.type, AtomicType) and field.type.length is None]
    return (*small, *alike, *fields)[0].name


def _our_part(spark: SparkSession, plan: ReadPlan, filter: str | Predicate | None, rule: NativeRule | None) -> DataFrame:
    """The rows of a plan's tasks, through the data source, planned again on the same snapshot and schema."""
    native = rule.to_json() if rule is not None and (plan.plain_files or plan.layers) else None
    pin = plan.pin
    pinned = {
        "table": pin.table_uuid,
        "snapshot": pin.snapshot_id,
        "schema": pin.schema_id,
        "native": native,
        "positions": plan.positions,
        "rules": rules_to_json(pin.rules),
    }
    read_options = {PINNED: json.dumps(pinned), "columns": json.dumps([field.name for field in plan.fields])}
    if (text := filter_text(filter)) is not None:
        read_options["filter"] = text
    place = placed(pin.spec.location + pin.suffix, storage_options=pin.spec.storage_options)
    return spark.read.format("tablestore").options(**read_options, **place).load()


def _native_part(spark: SparkSession, plan: ReadPlan, predicate: Predicate | None, *, filtered: bool) -> DataFrame:
    """The rows of a plan's plain files and layers."""
    kept_scans = KeptScans.of(spark)
    if len(plan.plain_files) > MOST_KEPT_FILES:
        return _scan(spark, plan, predicate, filtered=filtered, layers=kept_scans.layers)
    # Files are told apart by all that a table knows of them, their digests too.
    table = plan.pin.spec.location, plan.pin.table_uuid, plan.pin.schema_id
    key = *table, plan.plain_files, plan.layers, plan.fields, plan.positions, predicate, filtered
    return renewed(kept_scans.scans.find(key, lambda: _scan(spark, plan, predicate, filtered=filtered, layers=kept_scans.layers)))


def _scan(
    spark: SparkSession, plan: ReadPlan, predicate: Predicate | None, *, filtered: bool, layers: RecentlyUsed[ReadyLayer]
) -> DataFrame:
    schema = plan.pin.open().schema
    row_filter = predicate if filtered else None
    names = [field.name for field in plan.fields]
    fields = [*plan.fields, *(field for field in schema.fields if field.name in filter_columns(row_filter) - set(names))]

    def path_of(path: str) -> str:
        return f"{plan.pin.spec.location}/{path}"

    plain = [path_of(path) for path in plan.plain_files]
    scans = [native_scan(spark, plain, fields, positions=plan.positions)] if plain else []
    for layer in plan.layers:
        key = plan.pin.spec.location, plan.pin.table_uuid, plan.pin.schema_id, predicate, layer
        scans += layer_scans(spark, layers.find(key, partial(_ready, spark, plan, layer, predicate)), fields, path_of)
    if row_filter is not None:
        kept_rows = condition(row_filter, {field.name: field for field in schema.fields})
        scans = [scan.where(kept_rows) for scan in scans]
    rows = reduce(DataFrame.union, scans)
    return rows if len(fields) == len(names) else rows.select(*map(quoted, plan.schema.names))


def _ready(spark: SparkSession, plan: ReadPlan, layer: Layer, predicate: Predicate | None) -> ReadyLayer:
    return ready(spark, planned_layer(plan, layer, predicate))
