"""Maps logical types to the types of Spark that carry them, and converts rows from one to the other.

    BOOLEAN TINYINT … DOUBLE    the same                    TIMESTAMP(p)         timestamp_ntz
    DECIMAL(p, s)               decimal(p, s)               TIMESTAMP_LTZ(p)     timestamp
    CHAR VARCHAR STRING         string                      DATE                 date
    BINARY VARBINARY BYTES      binary                      TIME(p)              time(p)
    ARRAY MAP ROW               array map struct            MULTISET<T>          map<T, int>

Spark's times count microseconds. A TIMESTAMP(7) to (9) is read as long as its values do, and refused by name when one has finer
digits; nothing is cut off. Lengths of CHAR, VARCHAR and BINARY are checked when rows are written, by the engine.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema as spark_to_arrow

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.datatypes import ArrayType, AtomicType, DataType, Field, MapType, MultisetType, RowType, TypeRoot

_FIXED: dict[TypeRoot, spark.DataType] = {
    TypeRoot.BOOLEAN: spark.BooleanType(),
    TypeRoot.TINYINT: spark.ByteType(),
    TypeRoot.SMALLINT: spark.ShortType(),
    TypeRoot.INT: spark.IntegerType(),
    TypeRoot.BIGINT: spark.LongType(),
    TypeRoot.FLOAT: spark.FloatType(),
    TypeRoot.DOUBLE: spark.DoubleType(),
    TypeRoot.CHAR: spark.StringType(),
    TypeRoot.VARCHAR: spark.StringType(),
    TypeRoot.BINARY: spark.BinaryType(),
    TypeRoot.VARBINARY: spark.BinaryType(),
    TypeRoot.DATE: spark.DateType(),
    TypeRoot.TIMESTAMP: spark.TimestampNTZType(),
    TypeRoot.TIMESTAMP_LTZ: spark.TimestampType(),
}

# Digits of the seconds that a TIME of a table has at most.
_MILLIS = 3

# NullType is that of a literal NULL: it fits every column that takes nulls.
_ATOMIC = (*(type(one) for one in _FIXED.values()), spark.DecimalType, spark.TimeType, spark.NullType)


def spark_schema(fields: Sequence[Field]) -> spark.StructType:
    """The columns of a table as Spark sees them."""
    return spark.StructType([_spark_field(field) for field in fields])


def spark_type(data_type: DataType) -> spark.DataType:
    """The Spark type that holds the values of a logical type."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return spark.DecimalType(data_type.precision or 10, data_type.scale or 0)
        case AtomicType(root=TypeRoot.TIME):
            return spark.TimeType(data_type.precision or 0)
        case AtomicType():
            return _FIXED[data_type.root]
        case ArrayType():
            return spark.ArrayType(spark_type(data_type.element), data_type.element.nullable)
        case MapType():
            return spark.MapType(spark_type(data_type.key), spark_type(data_type.value), data_type.value.nullable)
        case MultisetType():
            return spark.MapType(spark_type(data_type.element), spark.IntegerType(), False)
        case RowType():
            return spark_schema(data_type.fields)


def _spark_field(field: Field) -> spark.StructField:
    metadata = {} if field.description is None else {"comment": field.description}
    return spark.StructField(field.name, spark_type(field.type), field.type.nullable, metadata)


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema in which Spark exchanges rows of ``schema``. Raises UnsupportedError that names the column."""
    for field in schema.fields:
        if (found := _without_counterpart(field.dataType)) is not None:
            raise UnsupportedError(
                f"column {field.name!r} has the Spark type {found.simpleString()}, which no table holds; cast or drop it",
                kind="unsupported-type",
            )
    return spark_to_arrow(schema, timezone="UTC")


def result_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a query's rows: times with a zone are in UTC; a TIME of up to 3 digits has the type of tables."""
    given = spark_to_arrow(schema, timezone="UTC")
    return pa.schema([field.with_type(_result_type(one.dataType, field.type)) for one, field in zip(schema, given, strict=True)])


def collectable(rows: DataFrame) -> DataFrame:
    """The rows in types that Spark can hand over: it cannot hand over an ``array()`` or ``map()``, of no type and never NULL."""
    given = rows.schema
    types = [_with_nulls(field.dataType) for field in given]
    if types == [field.dataType for field in given]:
        return rows
    # Names may be there twice.
    numbered = rows.toDF(*(f"c{place}" for place in range(len(types))))
    return numbered.select(*(numbered[name].cast(one) for name, one in zip(numbered.columns, types, strict=True))).toDF(
        *given.names
    )


def _with_nulls(data_type: spark.DataType) -> spark.DataType:
    """The type in which what has no type may be NULL. A key cannot be, and a text is a key."""
    match data_type:
        case spark.ArrayType():
            element = _with_nulls(data_type.elementType)
            return spark.ArrayType(element, data_type.containsNull or isinstance(element, spark.NullType))
        case spark.MapType():
            key, value = _with_nulls(data_type.keyType), _with_nulls(data_type.valueType)
            key = spark.StringType() if isinstance(key, spark.NullType) else key
            return spark.MapType(key, value, data_type.valueContainsNull or isinstance(value, spark.NullType))
        case spark.StructType():
            fields = [(field, _with_nulls(field.dataType)) for field in data_type]
            return spark.StructType(
                [
                    spark.StructField(field.name, one, field.nullable or isinstance(one, spark.NullType), field.metadata)
                    for field, one in fields
                ]
            )
        case _:
            return data_type


def _result_type(data_type: spark.DataType, given: pa.DataType) -> pa.DataType:
    match data_type:
        case spark.TimeType() if data_type.precision <= _MILLIS:
            return pa.time32("ms")
        case spark.ArrayType():
            return pa.list_(given.value_field.with_type(_result_type(data_type.elementType, given.value_type)))
        case spark.MapType():
            key, item = _result_type(data_type.keyType, given.key_type), _result_type(data_type.valueType, given.item_type)
            return pa.map_(given.key_field.with_type(key), given.item_field.with_type(item))
        case spark.StructType():
            parts = zip(data_type.fields, given.fields, strict=True)
            return pa.struct([field.with_type(_result_type(one.dataType, field.type)) for one, field in parts])
        case _:
            return given


def _without_counterpart(data_type: spark.DataType) -> spark.DataType | None:
    """The type, or the part of it, that no logical type corresponds to; None if there is none."""
    match data_type:
        case spark.ArrayType():
            parts = [data_type.elementType]
        case spark.MapType():
            parts = [data_type.keyType, data_type.valueType]
        case spark.StructType():
            parts = [field.dataType for field in data_type.fields]
        case _:
            return None if isinstance(data_type, _ATOMIC) else data_type
    return next((found for part in parts if (found := _without_counterpart(part)) is not None), None)


def check_asked(asked: spark.StructType, fields: Sequence[Field]) -> tuple[str, ...]:
    """The column names of a schema that the user gave to read with; its types have to be the table's."""
    known = {field.name: field for field in spark_schema(fields).fields}
    for field in asked.fields:
        if field.name not in known:
            raise InvalidInputError(f"no column {field.name!r} to read; there are {', '.join(known)}", kind="unknown-column")
        own = known[field.name]
        if not _holds(field.dataType, field.nullable, own.dataType, own.nullable):
            raise InvalidInputError(
                f"column {field.name!r} is {_spelled(own)}, asked for as {_spelled(field)}; read it with its own type and cast in "
                "Spark",
                kind="type-mismatch",
            )
    return tuple(field.name for field in asked.fields)


def _spelled(field: spark.StructField) -> str:
    return field.dataType.simpleString() + ("" if field.nullable else " NOT NULL")


def _holds(asked: spark.DataType, asked_null: bool, own: spark.DataType, own_null: bool) -> bool:
    """True if every value of ``own`` is one of ``asked``: the same type, with nulls allowed wherever there may be some."""
    if own_null and not asked_null:
        return False
    match asked, own:
        case spark.ArrayType(), spark.ArrayType():
            return _holds(asked.elementType, asked.containsNull, own.elementType, own.containsNull)
        case spark.MapType(), spark.MapType():
            keys = _holds(asked.keyType, False, own.keyType, False)
            return keys and _holds(asked.valueType, asked.valueContainsNull, own.valueType, own.valueContainsNull)
        case spark.StructType(), spark.StructType():
            pairs = list(zip(asked.fields, own.fields, strict=False))
            same = asked.names == own.names
            return same and all(_holds(one.dataType, one.nullable, two.dataType, two.nullable) for one, two in pairs)
        case spark.CharType() | spark.VarcharType(), spark.StringType():
            return True
        case _:
            return asked == own


def to_spark(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The same rows in exactly Spark's layout. Columns that have it already are not touched."""
    columns = []
    for column, field in zip(batch.columns, target, strict=True):
        if column.type != field.type:
            try:
                column = pc.cast(column, field.type)
            except pa.ArrowException as error:
                raise UnsupportedError(
                    f"column {field.name!r} has a value that Spark cannot hold as {field.type} ({error}); leave it out with the "
                    "option columns, or read it in Python",
                    kind="spark-value",
                ) from error
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=target)
