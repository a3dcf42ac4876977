"""Casts assigned values to a column's type by the rules of an SQL INSERT (Spark's ANSI store assignment)."""

import pyarrow as pa

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.types.arrays import one_chunk
from tablestore.types.arrowtypes import fields_from_arrow, to_arrow_type
from tablestore.types.conform import conform
from tablestore.types.datatypes import (
    BINARY_ROOTS,
    FLOAT_ROOTS,
    INTEGER_ROOTS,
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    Field,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VariantType,
    as_map,
    as_row,
)
from tablestore.types.expression.coercion import cast_to
from tablestore.types.expression.evaluate import ColumnValues, evaluate_expression
from tablestore.types.expression.expression import Expression, expression_text
from tablestore.types.typestring import type_to_sql

_NUMBERS = INTEGER_ROOTS | FLOAT_ROOTS | {TypeRoot.DECIMAL}
_MOMENTS = frozenset({TypeRoot.DATE, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})


def assigned_values(expression: Expression, field: Field, rows: ColumnValues) -> pa.Array:
    """The values of an expression as a column has them. Raises InvalidInputError for a type or a value that it does not take."""
    values = evaluate_expression(expression, rows)
    if values.type == to_arrow_type(field.type):
        return values
    text = expression_text(expression)
    if pa.types.is_nested(values.type) and not isinstance(field.type, AtomicType):
        if missing := _missing_fields(values.type, to_arrow_type(field.type)):
            raise InvalidInputError(
                f"the column {field.name!r} is {type_to_sql(field.type)}, and {text:.200} lacks {', '.join(missing)}; "
                "name all fields",
                kind="columns",
            )
        return one_chunk(conform(pa.table({field.name: values}), [field], where=f"an update ({text:.200})", fill=False).column(0))
    if not pa.types.is_null(values.type):
        (value_field,), _ = fields_from_arrow(pa.schema([("value", values.type)]), where=text)
        if not assignable(value_field.type, field.type):
            type_text = type_to_sql(field.type)
            raise InvalidInputError(
                f"the column {field.name!r} is {type_text} and takes no {type_to_sql(value_field.type)} ({text:.200}); "
                f"write CAST(… AS {type_text})",
                kind="columns",
            )
    try:
        return cast_to(values, field.type)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"the column {field.name!r} is {type_to_sql(field.type)}, and a value of {text:.200} does not fit ({error})",
            kind="wrong-value",
        ) from error
    except TablestoreError as error:
        raise type(error)(f"column {field.name!r}, set to {text:.200}: {error}", kind=error.kind) from error
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise UnsupportedError(
            f"column {field.name!r} is not set to {text:.200} here ({error}); run the statement with SQL: "
            "tablestore.TableEnvironment",
            kind="unsupported-cast",
        ) from error


def _missing_fields(source_type: pa.DataType, target_type: pa.DataType) -> list[str]:
    """The fields of structs, inside of others too, that a value does not say anything about."""
    if pa.types.is_struct(source_type) and pa.types.is_struct(target_type):
        types_by_name = {field.name: field.type for field in source_type}
        inner = (_missing_fields(types_by_name[field.name], field.type) for field in target_type if field.name in types_by_name)
        return [field.name for field in target_type if field.name not in types_by_name] + [
            name for names in inner for name in names
        ]
    if pa.types.is_list(source_type) and pa.types.is_list(target_type):
        return _missing_fields(source_type.value_type, target_type.value_type)
    if pa.types.is_map(source_type) and pa.types.is_map(target_type):
        return _missing_fields(source_type.item_type, target_type.item_type)
    return []


def assignable(source_type: DataType | None, target_type: DataType) -> bool:
    """True if a column takes values of a type, by the rules of Spark's ANSI store assignment. ``source_type`` None: that of NULL.

    A number goes into any column of numbers (a value that does not fit is an error when it is written), a date or timestamp into
    each other, and anything without parts into a text; never a text into something else, nor a number into a boolean.
    """
    match source_type, target_type:
        case None, _:
            return True
        case AtomicType(), AtomicType():
            return (
                source_type.root is target_type.root
                or target_type.root in TEXT_ROOTS
                or {source_type.root, target_type.root} <= _NUMBERS
                or {source_type.root, target_type.root} <= _MOMENTS
                or {source_type.root, target_type.root} <= BINARY_ROOTS
            )
        case ArrayType(), ArrayType():
            return assignable(source_type.element, target_type.element)
        case ((MapType() | MultisetType()), (MapType() | MultisetType())):
            from_map, to_map = as_map(source_type), as_map(target_type)
            return assignable(from_map.key, to_map.key) and assignable(from_map.value, to_map.value)
        case RowType(), RowType():
            return len(source_type.fields) == len(target_type.fields) and all(
                assignable(left.type, right.type) for left, right in zip(source_type.fields, target_type.fields, strict=True)
            )
        case VariantType(), VariantType():
            return True
        case RowType(), VariantType():
            # What functions make on the engine duckdb.
            return assignable(source_type, as_row(target_type))
        case _:
            return False
