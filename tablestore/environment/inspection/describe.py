"""Runs DESCRIBE: lists the columns of a table; EXTENDED, how it is stored, with the rows of FLIP-188.

DESCRIBE t                                  name type null key extras watermark comment
DESCRIBE EXTENDED t                         name log.* file.path watermark file.format bucket change-tracking
                                            last-modified num-files
DESCRIBE EXTENDED t PARTITION (day = …)     partition file.path last-modified num-files
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore import options as opt
from tablestore.environment.definition.databases import database_path
from tablestore.environment.definition.partitions import partition_of
from tablestore.environment.inspection.columns import COLUMNS_SCHEMA, column_rows, view_rows
from tablestore.environment.inspection.watermark import newest_watermark
from tablestore.environment.managed.nonphysical import read_unstored
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result, records
from tablestore.environment.session.objects import VIEWS, ConnectorTable
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.partitiontext import partition_dir
from tablestore.options import TableOptions
from tablestore.redaction import shown_options
from tablestore.sql.statements.session import Describe
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.types.typestring import quote_identifier

Details = Iterator[tuple[str, str, object]]

DETAILS_SCHEMA = pa.schema([("name", pa.string()), ("type", pa.string()), ("value", pa.string())])


def describe(
    session: Session, statement: Describe, source: Source, more: Callable[[ObjectPath, Table], Details] = lambda *_: iter(())
) -> Result:
    """The description of a table, database or catalog. ``more`` gives the rows of a table that others know, behind the options.

    Raises NotFoundError, InvalidInputError.
    """
    if statement.what == "catalog":
        return _catalog(session, statement, source)
    if statement.what in ("database", "schema"):
        return _database(session, statement, source)
    if statement.partition is None and not statement.extended:
        return _columns(session, statement, source)
    target = session.find(statement.path, source)
    if isinstance(target, ConnectorTable) and statement.partition is None:
        return _details(_connector_rows(target))
    table = session.table(statement.path, "DESCRIBE EXTENDED", source)
    path = session.expand(statement.path)
    if statement.partition is None:
        return _details(_table_rows(session, path, table, more(path, table)))
    return _details(_partition_rows(table, partition_of(table, statement.partition, source), source))


def _columns(session: Session, statement: Describe, source: Source) -> Result:
    target = session.find(statement.path, source)
    if isinstance(target, Table | SystemTable | ConnectorTable):
        return records(COLUMNS_SCHEMA, column_rows(target))
    if isinstance(target, VIEWS):
        return records(COLUMNS_SCHEMA, view_rows(session, target))
    name = ".".join(map(quote_identifier, statement.path.parts))
    rows = session.engine_for("DESCRIBE").execute(f"DESCRIBE {name}")
    assert rows is not None, "an engine describes what it knows"
    return Result(rows)


def _details(rows: Details) -> Result:
    shown = ({"name": name, "type": kind, "value": _text(value)} for name, kind, value in rows)
    return records(DETAILS_SCHEMA, shown)


def _text(value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(sep=" ", timespec="milliseconds")
    return str(value)


def _table_rows(session: Session, path: ObjectPath, table: Table, more: Details) -> Details:
    stored = table.options()
    options, settings = TableOptions(stored), table.change_log.settings
    kafka = settings.system == "kafka"
    yield "name", "String", path
    yield "log.system", "String", settings.system
    yield "log.kafka.bootstrap.servers", "String", stored.get(opt.LOG_KAFKA_BOOTSTRAP_SERVERS.key) if kafka else None
    yield "log.retention", "Duration", stored.get(opt.LOG_RETENTION.key)
    yield "file.path", "String", table.location
    yield "log.kafka.topic", "String", settings.topic if kafka else None
    if (watermark := read_unstored(stored, table.table_schema.field_names).watermark) is not None:
        yield "watermark", "Timestamp", newest_watermark(session.engine, table, watermark)
    yield "file.format", "String", options.get(opt.FILE_FORMAT.key, opt.FILE_FORMAT.default)
    yield "bucket", "Integer", options.value(opt.BUCKET)
    yield "change-tracking", "Boolean", options.flag(opt.CHANGE_TRACKING)
    for name, condition in sorted(opt.checks_of(stored).items()):
        yield f"constraint {name}", "String", f"CHECK ({condition})"
    yield from more
    context = table.context.still_there()
    yield from _files_rows(context.manifests.live_columns(context.snapshots.latest(), ("creation_time_millis",)))


def _partition_rows(table: Table, spec: Mapping[str, object], source: Source) -> Details:
    context = table.context.still_there()
    context.check_sees_all("a look at a partition")
    schema = context.schema
    missing = [name for name in table.partition_by if name not in spec]
    if missing:
        raise InvalidInputError(
            f"DESCRIBE EXTENDED … PARTITION: expected a value of each partition column, found none of {', '.join(missing)}",
            kind="partition",
        )
    types = [field.type for field in schema.partition_fields]
    values = [spec[name] for name in table.partition_by]
    live = context.manifests.live_columns(context.snapshots.latest(), ("partition", "bucket", "creation_time_millis"))
    entries = live.take(np.flatnonzero(live.in_partitions(lambda partition: decode_row(partition, types) == tuple(values))))
    if not len(entries):
        shown = ", ".join(f"{name}={_text(value)}" for name, value in spec.items())
        raise NotFoundError(
            source.mark(f"table {table.name} has no partition ({shown})", source.word("PARTITION")), kind="no-such-partition"
        )
    # The spelling of SQL; the directory has its own.
    settings = context.settings
    yield "partition", "String", partition_dir(table.partition_by, types, values, settings.default_partition, legacy=False)
    bucket = context.paths.bucket(decode_row(entries.column("partition")[0].as_py(), types), entries.column("bucket")[0].as_py())
    yield "file.path", "String", f"{table.location}/{bucket.rpartition('/')[0]}"
    yield from _files_rows(entries)


def _files_rows(entries: EntryColumns) -> Details:
    newest = pc.max(entries.column("creation_time_millis")).as_py()
    # Files have the local time of their writer.
    yield "last-modified", "Timestamp", None if not newest else datetime.fromtimestamp(newest / 1000, UTC).replace(tzinfo=None)
    yield "num-files", "Integer", len(entries)


def _connector_rows(table: ConnectorTable) -> Details:
    yield "name", "String", table.path
    yield "connector", "String", table.connector
    for key, value in sorted(shown_options(table.options).items()):
        yield key, "String", value


def _database(session: Session, statement: Describe, source: Source) -> Result:
    catalog, name = database_path(session, statement.path, source)
    with placing(source, statement.path.span):
        tables = session.catalogs.tables(catalog, name)
    return _details(iter([("name", "String", f"{catalog}.{name}"), ("tables", "Integer", len(tables))]))


def _catalog(session: Session, statement: Describe, source: Source) -> Result:
    with placing(source, statement.path.span):
        entry = session.catalogs.entry(str(statement.path))
    rows: list[tuple[str, str, object]] = [("name", "String", str(statement.path))]
    return _details(iter([*rows, *((key, "String", value) for key, value in entry.shown().items())]))
