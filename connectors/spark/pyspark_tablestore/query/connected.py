"""Tables that are not managed, through Spark's own data sources.

    filesystem    files of the option ``format`` (parquet where it is left out) at ``path``
    any other     Spark's data source of this name (jdbc, kafka, orc, delta …)

All other options are the data source's own. A table that declares columns has these, by name and of its types. A metadata column is
what the source says about a row: ``METADATA FROM 'offset'``, and of files ``METADATA FROM 'file_path'``.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampNTZType, TimestampType
from pyspark.sql.utils import is_remote

from pyspark_tablestore.native import column
from pyspark_tablestore.query.queryerrors import query_errors
from pyspark_tablestore.typemapping import spark_schema, spark_type
from tablestore.environment.engine import WAY_OF_TOPICS, ConnectorRelation, MetadataField
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import Field

_FILESYSTEM, _FORMAT, _PATH = "filesystem", "format", "path"
_KAFKA = "kafka"
_JDBC, _WITHOUT_ZONE = "jdbc", "preferTimestampNTZ"
# Files that do not say themselves which columns they hold.
_OF_FILES = ("file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time")
_WITHOUT_SCHEMA = ("csv", "json")


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
    with query_errors(f"reading {relation.name} (connector {relation.connector!r})"):
        _activate(spark)
        reader = spark.read.format(source).options(**options)
        declares = fields and source.lower() in _WITHOUT_SCHEMA
        frame = reader.schema(spark_schema(fields)).load() if declares else reader.load()
        about = [_metadata(frame, relation, one) for one in relation.metadata]
        if declares:
            return frame.select(sf.col("*"), *about) if about else frame
        there = {name.casefold(): name for name in frame.columns}
        if missing := [field.name for field in fields if field.name.casefold() not in there]:
            raise InvalidInputError(
                f"table {relation.name} declares the column {missing[0]!r}, which {relation.connector!r} does not give"
                f"{did_you_mean(missing[0], frame.columns)}; there are {', '.join(frame.columns)}",
                kind="unknown-column",
            )
        chosen: list[Column] = [
            _typed(frame, there[field.name.casefold()], field, of_database=relation.connector == _JDBC) for field in fields
        ]
        return frame.select(*(chosen or [sf.col("*")]), *about) if chosen or about else frame


def _typed(frame: DataFrame, name: str, field: Field, *, of_database: bool) -> Column:
    """A column as a table declares it."""
    found, wanted = column(name), spark_type(field.type)
    if of_database and wanted == TimestampType() and frame.schema[name].dataType == TimestampNTZType():
        # Spark keeps a moment there as the time that a clock in the JVM's zone shows. A cast would take the session's zone.
        zone = frame.sparkSession.sql("SELECT reflect('java.time.ZoneId', 'systemDefault')").collect()[0][0]
        second = sf.extract(sf.lit("SECOND"), found)
        parts = (sf.year(found), sf.month(found), sf.day(found), sf.hour(found), sf.minute(found), second)
        return sf.make_timestamp_ltz(*parts, sf.lit(zone)).alias(field.name)
    return found.cast(wanted).alias(field.name)


def _metadata(frame: DataFrame, relation: ConnectorRelation, wanted: MetadataField) -> Column:
    """What the source says about a row: a column of its own (Kafka's offset), or a hidden one (the path of a file)."""
    names = {name.casefold(): column(name) for name in frame.columns}
    if relation.connector == _FILESYSTEM:
        names |= {name: sf.col(f"_metadata.{name}") for name in _OF_FILES}
    found = names.get(wanted.key.casefold())
    if found is None:
        raise InvalidInputError(
            f"table {relation.name}: {relation.connector!r} has no metadata {wanted.key!r}{did_you_mean(wanted.key, names)}; "
            f"there are {', '.join(names)}",
            kind="unknown-column",
        )
    return found.cast(spark_type(wanted.type)).alias(wanted.name)


def write_connected(frame: DataFrame, target: ConnectorRelation, *, overwrite: bool) -> None:
    """Write rows, as additions or in place of what is there. Declared columns that they lack are NULL."""
    source, options = _source(target)
    if fields := _declared(target):
        # All of them in their order: some formats know columns by place alone.
        given = set(frame.columns)
        none = sf.lit(None)
        frame = frame.select(
            *(column(one.name) if one.name in given else none.cast(spark_type(one.type)).alias(one.name) for one in fields)
        )
    with query_errors(f"writing to {target.name} (connector {target.connector!r})"):
        _activate(frame.sparkSession)
        frame.write.format(source).options(**options).mode("overwrite" if overwrite else "append").save()


def _declared(relation: ConnectorRelation) -> Sequence[Field]:
    return () if relation.schema is None else fields_from_arrow(relation.schema, where=f"table {relation.name}")[0]


def _source(relation: ConnectorRelation) -> tuple[str, dict[str, str]]:
    """Spark's data source, and the options that it takes."""
    options = dict(relation.options)
    if relation.connector == _JDBC and any(pa.types.is_timestamp(one) and one.tz is None for one in _types(relation)):
        # A database's TIMESTAMP has no zone; Spark takes it for a moment in the JVM's zone unless it is told.
        options = {_WITHOUT_ZONE: "true", **options}
    if relation.connector != _FILESYSTEM:
        return relation.connector, options
    if not options.get(_PATH):
        raise InvalidInputError(f"table {relation.name} has the connector filesystem and no option 'path'", kind="missing-option")
    return options.pop(_FORMAT, "parquet").lower(), options


def _types(relation: ConnectorRelation) -> Sequence[pa.DataType]:
    return () if relation.schema is None else relation.schema.types


def _activate(spark: Any) -> None:
    """Spark looks data sources in Python up through the active session of the thread, and only some threads have one."""
    if not is_remote():
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
