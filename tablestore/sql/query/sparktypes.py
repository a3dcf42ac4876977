"""Writes the types of columns as Spark does, and checks which values a column of a type takes."""

from tablestore.sql.query.edits import quote_name
from tablestore.types.datatypes import (
    BINARY_ROOTS,
    FLOAT_ROOTS,
    INTEGER_ROOTS,
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VariantType,
    as_map,
    is_finer_than_micros,
)
from tablestore.types.expression.assignment import assignable
from tablestore.types.typestring import type_to_sql


def spark_type(data_type: DataType) -> str:
    """A type in Spark's words. Lengths of texts and bytes are no part of it: whoever writes the rows checks them."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return f"DECIMAL({data_type.precision}, {data_type.scale})"
        case AtomicType(root=TypeRoot.TIME):
            return f"TIME({data_type.precision})"
        case AtomicType(root=TypeRoot.TIMESTAMP):
            return "TIMESTAMP_NTZ"
        case AtomicType(root=TypeRoot.TIMESTAMP_LTZ):
            return "TIMESTAMP"
        case AtomicType():
            return (
                "STRING" if data_type.root in TEXT_ROOTS else "BINARY" if data_type.root in BINARY_ROOTS else data_type.root.value
            )
        case VariantType():
            return "VARIANT"
        case ArrayType():
            return f"ARRAY<{spark_type(data_type.element)}>"
        case MapType() | MultisetType():
            entries = as_map(data_type)
            return f"MAP<{spark_type(entries.key)}, {spark_type(entries.value)}>"
        case RowType():
            return f"STRUCT<{', '.join(f'{quote_name(field.name)}: {spark_type(field.type)}' for field in data_type.fields)}>"


def cast_text(expression: str, data_type: DataType) -> str:
    """The expression, cast to a type. Spark has no timestamps finer than microseconds: a cast would lose their digits."""
    return expression if is_finer_than_micros(data_type) else f"CAST({expression} AS {spark_type(data_type)})"


def as_type(expression: str, source_type: DataType | None, target_type: DataType) -> str:
    """The expression, which has a type, as another one. Its own is written down where a cast depends on it and an engine may not
    know it."""
    if isinstance(source_type, AtomicType) and source_type.root not in FLOAT_ROOTS | {TypeRoot.DECIMAL}:
        return cast_text(expression, target_type)
    return cast_text(expression if source_type is None else cast_text(expression, source_type), target_type)


def stays_equal(source_type: DataType | None, target_type: DataType) -> bool:
    """True if values of a type that are cast to another one equal exactly the values that they equalled before."""
    match source_type, target_type:
        case AtomicType(), AtomicType():
            roots = source_type.root, target_type.root
            return set(roots) <= INTEGER_ROOTS or roots == (TypeRoot.DATE,) * 2 or roots == (TypeRoot.VARCHAR,) * 2
        case _:
            return False


def refusal(column: str, target_type: DataType, source_type: DataType | None, value: str = "") -> str | None:
    """The reason why a column does not take a value of a type; None if the column takes it. ``value``: more about the value."""
    if source_type is None or assignable(source_type, target_type):
        return None
    reason = f"the column {column!r} is {type_to_sql(target_type)} and takes no {type_to_sql(source_type)}{value}"
    if isinstance(target_type, VariantType):
        return f"{reason}; write parse_json(…) around a JSON text, to_variant_object(…) around another value"
    return f"{reason}; write CAST(… AS {spark_type(target_type)})"
