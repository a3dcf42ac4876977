"""Maps logical types to the types of Spark that carry them, and converts rows from one to the other.

    BOOLEAN TINYINT … DOUBLE    the same                    TIMESTAMP(p)         timestamp_ntz
    DECIMAL(p, s)               decimal(p, s)               TIMESTAMP_LTZ(p)     timestamp
    CHAR VARCHAR STRING         string                      DATE                 date
    BINARY VARBINARY BYTES      binary                      TIME(p)              time(p)
    ARRAY MAP ROW               array map struct            MULTISET<T>          map<T, int>
    VARIANT                     variant

Spark's times count microseconds. A TIMESTAMP(7) to (9) is read as long as its values do, and refused by name when one has finer
digits; nothing is cut off. Lengths of CHAR, VARCHAR and BINARY are checked when rows are written, by the engine.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from pyspark_tablestore.sparkversion import TimeType, has_time, lacks, spark_to_arrow
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.datatypes import ArrayType, AtomicType, DataType, Field, MapType, MultisetType, RowType, TypeRoot, VariantType

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
_ATOMIC = (*(type(data_type) for data_type in _FIXED.values()), spark.DecimalType, spark.VariantType, TimeType, spark.NullType)


def spark_schema(fields: Sequence[Field]) -> spark.StructType:
    """The columns of a table as Spark sees them."""
    return spark.StructType([_spark_field(field) for field in fields])


def spark_type(data_type: DataType) -> spark.DataType:
    """The Spark type that holds the values of a logical type."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return spark.DecimalType(data_type.precision or 10, data_type.scale or 0)
        case AtomicType(root=TypeRoot.TIME):
            if not has_time:
                raise lacks("type TIME", "4.1", "leave the column out, or read the table with table.scan()")
            time_type: spark.DataType = TimeType(data_type.precision or 0)
            return time_type
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
        case VariantType():
            return spark.VariantType()


def _spark_field(field: Field) -> spark.StructField:
    metadata = {} if field.description is None else {"comment": field.description}
    return spark.StructField(field.name, spark_type(field.type), field.type.nullable, metadata)


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema in which Spark exchanges rows of ``schema``. Raises UnsupportedError that names the column."""
    for field in schema.fields:
        if (unmapped := _without_counterpart(field.dataType)) is not None:
            raise UnsupportedError(
                f"column {field.name!r} has the Spark type {unmapped.simpleString()}, which no table holds; cast or drop it",
                kind="unsupported-type",
            )
    return spark_to_arrow(schema)


def result_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a query's rows: times with a zone are in UTC; a TIME of up to 3 digits has the type of tables."""
    exchange_schema = spark_to_arrow(schema)
    return pa.schema(
        [
            field.with_type(_result_type(spark_field.dataType, field.type))
            for spark_field, field in zip(schema, exchange_schema, strict=True)
        ]
    )


def collectable(rows: DataFrame) -> DataFrame:
    """The rows in types that Spark can hand over: it cannot hand over an ``array()`` or ``map()``, of no type and never NULL."""
    schema = rows.schema
    types = [_with_nulls(field.dataType) for field in schema]
    if types == [field.dataType for field in schema]:
        return rows
    # Names may be there twice.
    numbered = rows.toDF(*(f"c{place}" for place in range(len(types))))
    return numbered.select(*(numbered[name].cast(data_type) for name, data_type in zip(numbered.columns, types, strict=True))).toDF(
        *schema.names
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
                    spark.StructField(
                        field.name, member_type, field.nullable or isinstance(member_type, spark.NullType), field.metadata
                    )
                    for field, member_type in fields
                ]
            )
        case _:
            return data_type


def _result_type(data_type: spark.DataType, arrow_type: pa.DataType) -> pa.DataType:
    match data_type:
        case TimeType() if data_type.precision <= _MILLIS:
            return pa.time32("ms")
        case spark.ArrayType():
            return pa.list_(arrow_type.value_field.with_type(_result_type(data_type.elementType, arrow_type.value_type)))
        case spark.MapType():
            key, item = (
                _result_type(data_type.keyType, arrow_type.key_type),
                _result_type(data_type.valueType, arrow_type.item_type),
            )
            return pa.map_(arrow_type.key_field.with_type(key), arrow_type.item_field.with_type(item))
        case spark.StructType():
            parts = zip(data_type.fields, arrow_type.fields, strict=True)
            return pa.struct([field.with_type(_result_type(spark_field.dataType, field.type)) for spark_field, field in parts])
        case _:
            return arrow_type


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
    return next((unmapped for part in parts if (unmapped := _without_counterpart(part)) is not None), None)


def check_asked(schema: spark.StructType, fields: Sequence[Field]) -> tuple[str, ...]:
    """The column names of a schema that the user gave to read with; its types have to be the table's."""
    table_fields = {field.name: field for field in spark_schema(fields).fields}
    for field in schema.fields:
        if field.name not in table_fields:
            raise InvalidInputError(f"no column {field.name!r} to read; there are {', '.join(table_fields)}", kind="unknown-column")
        table_field = table_fields[field.name]
        if not _holds(field.dataType, field.nullable, table_field.dataType, table_field.nullable):
            raise InvalidInputError(
                f"column {field.name!r} is {_spelled(table_field)}, asked for as {_spelled(field)}; read it with its own type and "
                "cast in Spark",
                kind="type-mismatch",
            )
    return tuple(field.name for field in schema.fields)


def _spelled(field: spark.StructField) -> str:
    return field.dataType.simpleString() + ("" if field.nullable else " NOT NULL")


def _holds(read_type: spark.DataType, read_null: bool, stored_type: spark.DataType, stored_null: bool) -> bool:
    """True if every value of ``stored_type`` is one of ``read_type``: the same type, nulls allowed wherever there may be some."""
    if stored_null and not read_null:
        return False
    match read_type, stored_type:
        case spark.ArrayType(), spark.ArrayType():
            return _holds(read_type.elementType, read_type.containsNull, stored_type.elementType, stored_type.containsNull)
        case spark.MapType(), spark.MapType():
            keys = _holds(read_type.keyType, False, stored_type.keyType, False)
            return keys and _holds(
                read_type.valueType, read_type.valueContainsNull, stored_type.valueType, stored_type.valueContainsNull
            )
        case spark.StructType(), spark.StructType():
            pairs = list(zip(read_type.fields, stored_type.fields, strict=False))
            same = read_type.names == stored_type.names
            return same and all(_holds(one.dataType, one.nullable, two.dataType, two.nullable) for one, two in pairs)
        case spark.CharType() | spark.VarcharType(), spark.StringType():
            return True
        case _:
            return read_type == stored_type


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
