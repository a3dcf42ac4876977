"""Reads and writes tables that are not managed, through Spark's own data sources.

    filesystem    files of the option ``format`` (parquet where it is left out) at ``path``
    any other     Spark's data source of this name (jdbc, kafka, orc, delta …)

All other options are the data source's own. A table that declares columns has these, by name and of its types. A metadata column is
what the source says about a row: ``METADATA FROM 'offset'``, and of files ``METADATA FROM 'file_path'``. Files of a partitioned
table lie in folders that are named by the values of its partition columns (``day=2026-01-31``), as Spark and Hive name them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType, TimestampNTZType, TimestampType
from pyspark.sql.utils import is_remote

from pyspark_tablestore.native import column
from pyspark_tablestore.query.queryerrors import query_errors
from pyspark_tablestore.typemapping import spark_schema, spark_type
from tablestore.environment.engine import WAY_OF_TOPICS, ConnectorRelation, MetadataField
from tablestore.environment.filelayout import FILESYSTEM, STAGING_PREFIX, check_file_columns, partition_folder
from tablestore.errors import InvalidInputError, StorageError, UnsupportedError
from tablestore.ids import SystemIds
from tablestore.names import did_you_mean
from tablestore.redaction import HARMLESS, is_harmless
from tablestore.secretnames import resolved
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import Field

_FORMAT, _PATH = "format", "path"
_KAFKA = "kafka"
_JDBC, _WITHOUT_ZONE = "jdbc", "preferTimestampNTZ"
# Files that do not say themselves which columns they hold.
_OF_FILES = ("file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time")
_WITHOUT_SCHEMA = ("csv", "json")
# The setting for the keys of options whose values Spark hides.
_REDACTED = "spark.sql.redaction.options.regex"
_NOT_HARMLESS = rf"(?is)^(?!(?:{'|'.join(map(re.escape, sorted(HARMLESS - {'url', 'uri'})))})$)"
# Spark's mark of a whole write.
_DONE = "_SUCCESS"
# Where nothing is said: Spark would cut off digits and blanks as it writes, and read each line as a row. By the lower case of their
# names, those of writers and of readers.
_ALL_DIGITS = {
    "timestampformat": ("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX"),
    "timestampntzformat": ("timestampNTZFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"),
}
_AS_WRITTEN = {
    "ignoreleadingwhitespace": ("ignoreLeadingWhiteSpace", "false"),
    "ignoretrailingwhitespace": ("ignoreTrailingWhiteSpace", "false"),
}
_WRITING = {"json": _ALL_DIGITS, "csv": _ALL_DIGITS | _AS_WRITTEN}
_READING = {"csv": {"multiline": ("multiLine", "true")}}


def read_connected(spark: SparkSession, relation: ConnectorRelation) -> DataFrame:
    """The rows of a table with a connector. Raises InvalidInputError, UnsupportedError for a connector that nobody has."""
    try:
        return _read(spark, relation)
    except UnsupportedError as error:
        if relation.connector != _KAFKA or error.kind != "no-connector":
            raise
        raise UnsupportedError(f"{error.message}; {WAY_OF_TOPICS}", kind=error.kind) from error


def _read(spark: SparkSession, relation: ConnectorRelation) -> DataFrame:
    source, options = _source(relation)
    fields = _declared(relation)
    if relation.connector == FILESYSTEM:
        options = _completed(options, _READING.get(source, {}))
    with query_errors(f"reading {relation.name} (connector {relation.connector!r})"):
        _activate(spark)
        reader = spark.read.format(source).options(**options)
        declares = fields and source.lower() in _WITHOUT_SCHEMA
        frame = reader.schema(spark_schema(fields)).load() if declares else _loaded(reader, fields)
        if fields and not declares and relation.partition_by:
            # The values of folders are texts: what they are is not to be guessed.
            declared = {field.name.casefold(): field for field in spark_schema(fields) if field.name in relation.partition_by}
            read_fields = [declared.get(field.name.casefold(), field) for field in frame.schema]
            frame = reader.schema(StructType(read_fields)).load()
        metadata_columns = [_metadata(frame, relation, metadata) for metadata in relation.metadata]
        if declares:
            # The values of folders come behind those of files.
            stored = [column(field.name) for field in fields] if relation.partition_by else [sf.col("*")]
            return frame.select(*stored, *metadata_columns) if metadata_columns or relation.partition_by else frame
        names = {name.casefold(): name for name in frame.columns}
        if missing := [field.name for field in fields if field.name.casefold() not in names]:
            raise InvalidInputError(
                f"table {relation.name} declares the column {missing[0]!r}, which {relation.connector!r} does not give"
                f"{did_you_mean(missing[0], frame.columns)}; there are {', '.join(frame.columns)}",
                kind="unknown-column",
            )
        chosen: list[Column] = [
            _typed(frame, names[field.name.casefold()], field, of_database=relation.connector == _JDBC) for field in fields
        ]
        return frame.select(*(chosen or [sf.col("*")]), *metadata_columns) if chosen or metadata_columns else frame


def _loaded(reader: DataFrameReader, fields: Sequence[Field]) -> DataFrame:
    """The rows of files that say which columns they have; no rows of a folder that has none of them, where columns are declared."""
    try:
        return reader.load()
    except AnalysisException as error:
        if not fields or error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        return reader.schema(spark_schema(fields)).load()


def _completed(options: dict[str, str], others: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The options with those that are not among them."""
    names = {name.lower() for name in options}
    return {**dict(option for name, option in others.items() if name not in names), **options}


def _typed(frame: DataFrame, name: str, field: Field, *, of_database: bool) -> Column:
    """A column as a table declares it."""
    value, target_type = column(name), spark_type(field.type)
    if of_database and target_type == TimestampType() and frame.schema[name].dataType == TimestampNTZType():
        # Spark keeps a moment there as the time that a clock in the JVM's zone shows. A cast would take the session's zone.
        zone = frame.sparkSession.sql("SELECT reflect('java.time.ZoneId', 'systemDefault')").collect()[0][0]
        second = sf.extract(sf.lit("SECOND"), value)
        parts = (sf.year(value), sf.month(value), sf.day(value), sf.hour(value), sf.minute(value), second)
        return sf.make_timestamp_ltz(*parts, sf.lit(zone)).alias(field.name)
    return value.cast(target_type).alias(field.name)


def _metadata(frame: DataFrame, relation: ConnectorRelation, metadata_field: MetadataField) -> Column:
    """The column of what the source says about a row: one of its own (Kafka's offset), or a hidden one (the path of a file)."""
    names = {name.casefold(): column(name) for name in frame.columns}
    if relation.connector == FILESYSTEM:
        names |= {name: sf.col(f"_metadata.{name}") for name in _OF_FILES}
    source_column = names.get(metadata_field.key.casefold())
    if source_column is None:
        raise InvalidInputError(
            f"table {relation.name}: {relation.connector!r} has no metadata "
            f"{metadata_field.key!r}{did_you_mean(metadata_field.key, names)}; there are {', '.join(names)}",
            kind="unknown-column",
        )
    return source_column.cast(spark_type(metadata_field.type)).alias(metadata_field.name)


def check_connected(target: ConnectorRelation) -> None:
    """Raises UnsupportedError for columns that the files of a table do not hold, InvalidInputError for a missing option."""
    if target.connector == FILESYSTEM:
        source, _ = _source(target)
        check_file_columns(target.name, source, _declared(target), target.partition_by)


def write_connected(
    frame: DataFrame, target: ConnectorRelation, *, overwrite: bool, partition: Mapping[str, str | None] | None = None
) -> None:
    """Writes rows, as additions or in place of what is there. Declared columns that they lack are NULL.

    In a partitioned table of files the partitions are replaced that the rows fall into; ``partition``, the texts of all partition
    values, is emptied where there are no rows. A write that fails leaves the rows that were there, and removes the folders that it
    made, those above the path too (but not through Spark Connect, which has no hand on files: there Spark deletes those of an
    unpartitioned table first).
    """
    source, options = _source(target)
    fields = _declared(target)
    if target.connector == FILESYSTEM:
        options = _completed(options, _WRITING.get(source, {}))
    if fields:
        # All of them in their order: some formats know columns by place alone.
        frame_columns = set(frame.columns)
        none = sf.lit(None)
        frame = frame.select(
            *(
                column(field.name) if field.name in frame_columns else none.cast(spark_type(field.type)).alias(field.name)
                for field in fields
            )
        )
    with query_errors(f"writing to {target.name} (connector {target.connector!r})"), _hidden_options(frame.sparkSession):
        _activate(frame.sparkSession)
        if target.connector != FILESYSTEM:
            frame.write.format(source).options(**options).mode("overwrite" if overwrite else "append").save()
            return
        if target.partition_by and overwrite:
            options = {**options, "partitionOverwriteMode": "dynamic"}
        rows = Observation()
        counted = frame if partition is None else frame.observe(rows, sf.count(sf.lit(1)).alias("n"))
        replaces_all = overwrite and not target.partition_by
        written = _replacing if replaces_all else _removed_if_failing
        # The empty text and NULL have one folder, which Spark would begin twice.
        texts = [name for name in target.partition_by if isinstance(counted.schema[name].dataType, StringType)]
        counted = counted.withColumns({name: sf.nullif(column(name), sf.lit("")) for name in texts}) if texts else counted
        with written(frame.sparkSession, options[_PATH]) as folder:
            writer = counted.write.format(source).options(**{**options, _PATH: folder})
            writer.mode("overwrite" if overwrite else "append").partitionBy(*target.partition_by).save()
        if partition is not None and rows.get["n"] == 0:
            emptied = "/".join([options.pop(_PATH).rstrip("/"), *(_folder(frame, name, text) for name, text in partition.items())])
            if is_remote():
                frame.drop(*partition).limit(0).write.format(source).options(**options).mode("overwrite").save(emptied)
            else:
                files, path = _files(frame.sparkSession, emptied)
                files.delete(path, True)


@contextmanager
def _hidden_options(spark: SparkSession) -> Iterator[None]:
    """Has Spark's plans and pages show the values of options only where they hold no secret; a write shows all of its options."""
    before = spark.conf.get(_REDACTED, None)
    spark.conf.set(_REDACTED, _NOT_HARMLESS)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_REDACTED)
        else:
            spark.conf.set(_REDACTED, before)


def _folder(frame: DataFrame, name: str, text: str | None) -> str:
    """The folder of a value of a partition column: its text as Spark writes it."""
    text_of_value = None
    if text is not None:
        value = sf.lit(text).cast(frame.schema[name].dataType).cast("string")
        text_of_value = frame.sparkSession.range(1).select(value).collect()[0][0]
    return partition_folder(name, text_of_value)


@contextmanager
def _replacing(spark: SparkSession, path: str) -> Iterator[str]:
    """The folder to write rows to that take the place of all at ``path``.

    Spark deletes the old files before it runs the query, so a failure, or a query that reads them, would lose their rows. Here the
    new files are written below a hidden folder, and come before the old ones go: whoever reads right then may see both.
    """
    if is_remote() or not _is_folder(spark, path):
        with _removed_if_failing(spark, path):
            yield path
        return
    files, folder = _files(spark, path)
    staging_folder = folder.suffix(f"/{STAGING_PREFIX}{SystemIds().uuid()}")
    try:
        yield staging_folder.toString()
        old = [
            entry.getPath()
            for entry in files.listStatus(folder)
            if entry.getPath().getName() not in (staging_folder.getName(), _DONE)
        ]
        for new in files.listStatus(staging_folder):
            name = new.getPath().getName()
            if name != _DONE and not files.rename(new.getPath(), folder.suffix(f"/{name}")):
                raise StorageError(f"{new.getPath().toString()} could not be moved to {path}; the old rows are there still")
        for old_file in old:
            files.delete(old_file, True)
    finally:
        files.delete(staging_folder, True)


@contextmanager
def _removed_if_failing(spark: SparkSession, path: str) -> Iterator[str]:
    """The folder itself; what was not there before of it and of those above it is removed if what runs inside fails.

    Those above it only where they are empty: others may have come to lie in them.
    """
    if is_remote():
        yield path
        return
    files, folder = _files(spark, path)
    missing = _missing(files, folder)
    try:
        yield path
    except BaseException:
        if missing:
            files.delete(missing[0], True)
        # What cannot be removed must not hide why the write failed; a folder with files refuses by itself.
        with suppress(Exception):
            for above in missing[1:]:
                if not files.exists(above) or files.listStatus(above) or not files.delete(above, False):
                    break
        raise


def _missing(files: Any, folder: Any) -> list[Any]:
    """The folder and those above it that are not there, the innermost first."""
    missing = []
    while folder is not None and not files.exists(folder):
        missing.append(folder)
        folder = folder.getParent()
    return missing


def _is_folder(spark: SparkSession, path: str) -> bool:
    files, folder = _files(spark, path)
    return bool(files.exists(folder)) and bool(files.getFileStatus(folder).isDirectory())


def _files(spark: Any, path: str) -> tuple[Any, Any]:
    """Hadoop's file system of a path, and the path as it takes it."""
    folder = spark._jvm.org.apache.hadoop.fs.Path(path)
    return folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), folder


def _declared(relation: ConnectorRelation) -> Sequence[Field]:
    return () if relation.schema is None else fields_from_arrow(relation.schema, where=f"table {relation.name}")[0]


def _source(relation: ConnectorRelation) -> tuple[str, dict[str, str]]:
    """Spark's data source, and the options that it takes."""
    # An option that names a place may begin with file: itself.
    options = {
        key: value if is_harmless(key) and not value.startswith("env:") else resolved(value, f"table {relation.name}: {key}")
        for key, value in relation.options.items()
    }
    if relation.connector == _JDBC and any(
        pa.types.is_timestamp(arrow_type) and arrow_type.tz is None for arrow_type in _types(relation)
    ):
        # A database's TIMESTAMP has no zone; Spark takes it for a moment in the JVM's zone unless it is told.
        options = {_WITHOUT_ZONE: "true", **options}
    if relation.connector != FILESYSTEM:
        return relation.connector, options
    if not options.get(_PATH):
        raise InvalidInputError(f"table {relation.name} has the connector filesystem and no option 'path'", kind="missing-option")
    return options.pop(_FORMAT, "parquet").lower(), options


def _types(relation: ConnectorRelation) -> Sequence[pa.DataType]:
    return () if relation.schema is None else relation.schema.types


def _activate(spark: Any) -> None:
    """Makes a session the active one of the thread: Spark looks data sources in Python up through it, and only some threads have
    one."""
    if not is_remote():
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
