"""Reads tables in Spark.

Columns are fixed where a relation is made, its snapshot where it is first used (in Spark 4.0 where it is made); tasks read what was
planned then.

Filters are never taken from Spark (``pushFilters`` is not overridden): Spark keeps one plan per relation, and a filter pushed for
one use of a DataFrame would silently drop rows from its other uses. Spark filters what it is given; the options ``filter`` and
``columns``, and ``.schema(…)``, are how to read less.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_tablestore.native import NativeRule
from pyspark_tablestore.sourceoptions import SourceOptions, parse_options
from pyspark_tablestore.sparkversion import keeps_readers
from pyspark_tablestore.streaming.changeorigin import with_origin
from pyspark_tablestore.streaming.sourcerequest import asked_fields, stream_request
from pyspark_tablestore.systemtables import MetadataPin, MetadataReader, make_metadata_reader, metadata_fields
from pyspark_tablestore.tasks import plain_errors, usable_cores
from pyspark_tablestore.typemapping import arrow_schema, check_asked, spark_schema, to_spark
from tablestore.distributed.read import ReadPin, ReadTask, at_newest, pin_read, pinned_fields, plan_read, read_task
from tablestore.distributed.spec import TableSpec
from tablestore.errors import InvalidInputError
from tablestore.store.rowview import ReadRules
from tablestore.table.read.scan import Readable
from tablestore.table.system.systemkinds import READ_OPTIMIZED
from tablestore.table.system.systemtable import SystemTable
from tablestore.types.datatypes import Field
from tablestore.types.rowposition import POSITION_COLUMNS, POSITION_FIELDS


class TableReader(DataSourceReader):
    """Plans on the driver's side, reads on executors."""

    def __init__(self, pin: ReadPin, columns: tuple[str, ...], options: SourceOptions, target: pa.Schema) -> None:
        self._pin, self._columns, self._options, self._target = pin, columns, options, target

    def partitions(self) -> list[InputPartition]:
        """Tasks of up to 128 MB, and one per core that this process may use where that is worth it."""
        with plain_errors():
            native = self._options.pinned["native"] if self._options.pinned else None
            rule = NativeRule.from_json(native) if native else None
            plan = plan_read(
                self._pin,
                columns=self._columns,
                filter=self._options.filter,
                task_bytes=self._options.task_bytes,
                parallelism=usable_cores(),
                plain_files=rule.choose if rule else None,
                layers=True,
                orc=rule.orc if rule else None,
                positions=self._options.positions,
            )
        return [InputPartition(task.to_bytes()) for task in plan.tasks]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The task's rows in Spark's layout."""
        # Spark makes a task without a value where there is none, to have something to run; Spark 4.0 one without a partition.
        if partition is None or partition.value is None:
            return iter(())
        return read_ahead(_read(self._pin.spec, partition.value, self._target))


def read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; the next one is read while Spark takes the one before, where there is a core for it.

    Two threads on one core only get into each other's way. Spark works on a batch that it has taken while the next one is read,
    without a thread too.
    """
    if usable_cores() < 2:
        yield from batches
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        pending = pool.submit(next, batches, None)
        while (batch := pending.result()) is not None:
            pending = pool.submit(next, batches, None)
            yield batch


def _read(spec: TableSpec, task: bytes, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    with plain_errors():
        for batch in read_task(spec, ReadTask.from_bytes(task)):
            yield to_spark(batch, target)


def pinned_schema(options: Mapping[str, str]) -> tuple[ReadPin | MetadataPin, StructType]:
    """Fixes the columns to read, and the snapshot if a certain one is asked for; returns the columns as Spark sees them."""
    with plain_errors():
        parsed = parse_options(options)
        pin = pin_options(parsed)
        if isinstance(pin, MetadataPin):
            return pin, spark_schema(metadata_fields(pin, parsed))
        if parsed.stream:
            context = pin.spec.open(pin.schema_id)
            return pin, with_origin(spark_schema(asked_fields(pin, parsed)), context, stream_request(parsed))
        return pin, spark_schema([*pinned_fields(pin, parsed.columns, parsed.filter), *_position_fields(parsed)])


def make_reader(options: Mapping[str, str], schema: StructType, pin: ReadPin | MetadataPin | None) -> TableReader | MetadataReader:
    """A reader of ``schema``, of the columns that ``pin`` fixed.

    Spark calls this once per relation, when it is first used, and keeps what it plans. So this is where a relation that asks for
    no certain snapshot gets the newest one: a view that was made before an INSERT shows it. Spark 4.0 calls it for each place of a
    query that reads the relation, which have to read the same rows: there the snapshot is the one of when the relation was made.
    """
    with plain_errors():
        parsed = parse_options(options)
        parsed.check_batch()
        if pin is None:
            pin = pin_options(parsed)
        elif isinstance(pin, ReadPin) and not parsed.travels and keeps_readers:
            pin = at_newest(pin)
        if isinstance(pin, MetadataPin):
            return make_metadata_reader(pin, parsed, schema)
        columns = check_asked(schema, [*pinned_fields(pin, parsed.columns, parsed.filter), *_position_fields(parsed)])
        of_table = tuple(name for name in columns if not (parsed.positions and name in POSITION_COLUMNS))
        return TableReader(pin, of_table, parsed, arrow_schema(schema))


def _position_fields(options: SourceOptions) -> tuple[Field, ...]:
    return POSITION_FIELDS if options.positions else ()


def pin_options(options: SourceOptions) -> ReadPin | MetadataPin:
    """Fixes what the options ask for: the newest snapshot, or the one of an id or a time; or a system table."""
    if options.snapshot_id is not None and options.timestamp_millis is not None:
        raise InvalidInputError("expected at most one of the options snapshot-id and timestamp-millis, found both")
    source, spec = options.open_any()
    optimised = isinstance(source, SystemTable) and source.kind == READ_OPTIMIZED
    if isinstance(source, SystemTable) and not optimised:
        return MetadataPin(spec=spec, kind=source.kind)
    table: Readable = source.base if isinstance(source, SystemTable) else source
    if options.pinned is not None:
        fixed = options.pinned
        return ReadPin(
            spec=spec,
            snapshot_id=fixed["snapshot"],
            schema_id=fixed["schema"],
            table_uuid=fixed["table"],
            read_optimised=optimised,
            rules=ReadRules.from_json(fixed["rules"]),
        )
    pin = pin_read(table, spec, snapshot_id=options.snapshot_id, timestamp=options.timestamp_millis)
    return replace(pin, read_optimised=optimised)
