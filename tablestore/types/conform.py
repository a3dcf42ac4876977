"""Checks rows against a table's columns and casts them to canonical Arrow before they are written.

Every write passes this check. Columns are matched by name, put in table order and cast where no value
changes; missing nullable columns become null, and nulls of a column with a default value that value. Everything
else is refused with the column, what it takes and what came: extra or duplicate columns, overflow, lost digits,
nulls in NOT NULL, text that is too long. A column that is already canonical is passed on as it is, without a copy.

    integers <- integers, whole floats and decimals        TIMESTAMP          <- timestamps without zone, dates
    floats   <- floats, integers that stay exact           … LOCAL TIME ZONE  <- timestamps with any zone
    decimal  <- decimals, integers                         text, bytes, bool  <- their own kind in any layout
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.types.arrays import binary_array
from tablestore.types.arrowtypes import is_list_like, timestamp_unit, to_arrow_schema, to_arrow_type
from tablestore.types.datatypes import (
    LENGTH_ROOTS,
    MAX_LENGTH,
    TEXT_ROOTS,
    TIMESTAMP_ROOTS,
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
from tablestore.types.defaults import default_scalar
from tablestore.types.numbercast import to_decimal
from tablestore.types.typestring import type_to_sql

# What other readers take at most.
MAX_VARIANT_BYTES = 128 << 20
# The number of names, and where the first one begins.
_LEAST_METADATA_BYTES = 3
# The first byte of the metadata: the version 1 in the lower half, whether names are sorted and how long offsets are in the upper.
_VERSIONS = binary_array([bytes([upper << 4 | 1]) for upper in range(16)])
_UNIT_DIGITS = {"ms": 3, "us": 6, "ns": 9}


def conform(
    rows: pa.RecordBatch | pa.Table, fields: Sequence[Field], *, where: str, fill: bool | pa.ChunkedArray = True
) -> pa.Table:
    """The rows as a table of the canonical schema of ``fields``, in that column order.

    ``where`` names the table in messages. ``fill``: whether default values apply; a boolean for each row: they
    apply to these rows, and to the others only in columns that are NOT NULL. Raises InvalidInputError if a row does not
    fit; nothing is changed then.
    """
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    fill_mask = fill if isinstance(fill, pa.ChunkedArray) else None
    counts = fill_mask is not None or bool(fill)
    defaults = {field.name: default for field in fields if counts and (default := default_scalar(field)) is not None}
    _check_columns(table.schema.names, fields, where, filled=defaults)
    columns = [_conform_column(table, field, where, defaults.get(field.name), fill_mask) for field in fields]
    return pa.Table.from_arrays(columns, schema=to_arrow_schema(fields))


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a value, for messages: column, type and table."""

    column: str
    data_type: DataType
    where: str

    def inside(self, part: str, data_type: DataType) -> "_Place":
        return _Place(f"{self.column}{part}", data_type, self.where)

    def refusal(self, actual: object, hint: str) -> InvalidInputError:
        return InvalidInputError(
            f"column {self.column!r} of {self.where} takes {type_to_sql(self.data_type)}, found {actual}; {hint}",
            kind="type-mismatch",
        )


def _check_columns(names: Sequence[str], fields: Sequence[Field], where: str, filled: Container[str] = ()) -> None:
    column_names = [field.name for field in fields]
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InvalidInputError(
            f"the rows for {where} have duplicate columns: {', '.join(twice)}; rename or drop them",
            kind="duplicate-column",
        )
    if extra := [name for name in names if name not in set(column_names)]:
        raise InvalidInputError(
            f"the rows have a column {extra[0]!r} that {where} does not have{did_you_mean(extra[0], column_names)} "
            f"(columns: {', '.join(column_names)}); drop it, or add it to the table",
            kind="unknown-column",
        )
    present = set(names)
    needed = (field.name for field in fields if not field.type.nullable and field.name not in filled)
    if missing := [name for name in needed if name not in present]:
        raise InvalidInputError(f"the rows for {where} lack the NOT NULL columns {', '.join(missing)}", kind="missing-column")


def _conform_column(
    table: pa.Table, field: Field, where: str, default: pa.Scalar | None, filled: pa.ChunkedArray | None
) -> pa.ChunkedArray:
    index = table.schema.get_field_index(field.name)
    if index < 0:
        rows, target = table.num_rows, to_arrow_type(field.type)
        nulls = pa.chunked_array([pa.nulls(rows, target)])
        return nulls if default is None else _filled(nulls, field, default, filled)
    column, place = table.column(index), _Place(field.name, field.type, where)
    if default is not None and column.null_count:
        chunks = [_convert(chunk, field.type, place) for chunk in column.chunks]
        return _filled(pa.chunked_array(chunks, to_arrow_type(field.type)), field, default, filled)
    if not field.type.nullable and (nulls := column.null_count):
        raise InvalidInputError(
            f"column {field.name!r} of {where} is NOT NULL, found nulls in {nulls} of {len(column)} rows; fill or drop them",
            kind="null-in-not-null",
        )
    target = to_arrow_type(field.type)
    if column.type == target and not _is_restricted(field.type):
        return column
    chunks = [_convert(chunk, field.type, place) for chunk in column.chunks]
    return pa.chunked_array(chunks, target)


def _filled(column: pa.ChunkedArray, field: Field, default: pa.Scalar, rows: pa.ChunkedArray | None) -> pa.ChunkedArray:
    """The column with its default where it is null, of a nullable column only in ``rows`` (None: in all)."""
    if rows is None or not field.type.nullable:
        return pc.fill_null(column, default)
    return pc.if_else(pc.and_(rows, pc.is_null(column)), default, column)


def _is_restricted(data_type: DataType) -> bool:
    """True if the type forbids values that its canonical Arrow type can hold (nulls at the top set aside)."""
    match data_type:
        case AtomicType():
            return _length_limit(data_type) is not None or _step(data_type) is not None
        case ArrayType() | MultisetType():
            return not data_type.element.nullable or _is_restricted(data_type.element)
        case MapType():
            return not data_type.value.nullable or _is_restricted(data_type.key) or _is_restricted(data_type.value)
        case VariantType():
            return True
        case RowType():
            return any(not field.type.nullable or _is_restricted(field.type) for field in data_type.fields)


def _convert(array: pa.Array, data_type: DataType, place: _Place) -> pa.Array:
    """One chunk in the canonical type, checked at every depth except for nulls at the top."""
    array = _decoded(array, place)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), to_arrow_type(data_type))
    match data_type:
        case AtomicType():
            return _convert_atomic(array, data_type, place)
        case ArrayType():
            return _convert_list(array, data_type, place)
        case MapType() | MultisetType():
            return _convert_map(array, as_map(data_type), place)
        case RowType():
            return _convert_row(array, data_type, place)
        case VariantType():
            converted = _convert_row(array, as_row(data_type), place)
            _check_variants(converted, place)
            return converted


def _convert_part(array: pa.Array, data_type: DataType, place: _Place) -> pa.Array:
    """Converts a part of a nested value as :func:`_convert` does; its nulls are checked here."""
    if not data_type.nullable and array.null_count:
        raise InvalidInputError(
            f"{place.column!r} of {place.where} is NOT NULL, found {array.null_count} nulls; fill or drop them",
            kind="null-in-not-null",
        )
    if array.type == to_arrow_type(data_type) and not _is_restricted(data_type):
        return array
    return _convert(array, data_type, place)


def _decoded(array: pa.Array, place: _Place) -> pa.Array:
    """The values without extension, dictionary or run-end encoding."""
    if isinstance(array.type, pa.BaseExtensionType):
        return _decoded(array.storage, place)
    if pa.types.is_dictionary(array.type):
        values = _decoded(array.dictionary, place)
        # Arrow neither takes nor casts views; polars' categories are such.
        if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
            values = _cast(values, pa.string() if pa.types.is_string_view(values.type) else pa.binary(), place)
        return values.take(array.indices)
    if pa.types.is_run_end_encoded(array.type):
        return _decoded(pc.run_end_decode(array), place)
    return array


def _cast(array: pa.Array, target: pa.DataType, place: _Place) -> pa.Array:
    try:
        return to_decimal(array, target) if pa.types.is_decimal(target) else pc.cast(array, target, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise place.refusal(f"{array.type} with a value that does not fit ({error})", "correct the value") from error


def _convert_atomic(array: pa.Array, data_type: AtomicType, place: _Place) -> pa.Array:
    target = to_arrow_type(data_type)
    if array.type != target:
        if hint := _refusal_hint(array.type, target):
            raise place.refusal(array.type, hint)
        array = _cast_exactly(array, target, place)
    _check_length(array, data_type, place)
    _check_step(array, data_type, place)
    return array


def _refusal_hint(source: pa.DataType, target: pa.DataType) -> str | None:
    """The reason why no value of one Arrow type may become another one, or None if some may."""
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and (source.tz is None) != (target.tz is None):
        if target.tz is None:
            return "convert to local time and drop the time zone, or declare TIMESTAMP WITH LOCAL TIME ZONE"
        return "give the timestamps a time zone (for example UTC), or declare TIMESTAMP without time zone"
    return None if _family(source) in _ACCEPTED[_family(target)] else "cast it first"


def _family(arrow_type: pa.DataType) -> str:
    types = pa.types
    tests = (
        ("bool", types.is_boolean),
        ("int", types.is_integer),
        ("float", types.is_floating),
        ("decimal", types.is_decimal),
        ("text", lambda t: types.is_string(t) or types.is_large_string(t) or types.is_string_view(t)),
        ("bytes", lambda t: types.is_binary(t) or types.is_large_binary(t) or types.is_binary_view(t)),
        ("bytes", types.is_fixed_size_binary),
        ("date", types.is_date),
        ("time", types.is_time),
        ("timestamp", types.is_timestamp),
    )
    return next((name for name, holds in tests if holds(arrow_type)), "other")


_ACCEPTED: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "int": ("int", "float", "decimal"),
    "float": ("float", "int"),
    "decimal": ("decimal", "int"),
    "text": ("text",),
    "bytes": ("bytes",),
    "date": ("date", "timestamp"),
    "time": ("time",),
    "timestamp": ("timestamp", "date"),
}


def _cast_exactly(array: pa.Array, target: pa.DataType, place: _Place) -> pa.Array:
    source = array.type
    if _family(source) == "date" and pa.types.is_timestamp(target) and target.tz is not None:
        raise place.refusal(source, "cast it to a timestamp with a time zone first")
    cast = _cast(array, target, place)
    if _family(source) == "timestamp" and pa.types.is_date(target):
        _check_same(array, cast, source, place)
    if pa.types.is_floating(source) and pa.types.is_floating(target) and source.bit_width > target.bit_width:
        # Arrow narrows floats silently.
        _check_same(array, cast, source, place)
    return cast


def _check_same(array: pa.Array, cast: pa.Array, source: pa.DataType, place: _Place) -> None:
    """Refuse values that do not come back from a cast as they were; NaN comes back as NaN."""
    differs = pc.not_equal(pc.cast(cast, source), array)
    if pa.types.is_floating(source):
        differs = pc.and_(differs, pc.invert(pc.is_nan(array)))
    _refuse_first(array, differs, place, "it would lose precision; round it first, or widen the column")


def _refuse_first(array: pa.Array, bad: pa.Array, place: _Place, hint: str) -> None:
    if pc.any(bad).as_py():
        first = array.filter(bad)[0]
        raise place.refusal(f"the value {_shown(first):.100} of type {array.type}", hint)


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value)
    except (OverflowError, ValueError):
        # Python has no dates beyond the years 1 to 9999.
        return str(value.cast(pa.int64() if value.type.bit_width == 64 else pa.int32()))


def _length_limit(data_type: AtomicType) -> int | None:
    length = data_type.length
    return length if data_type.root in LENGTH_ROOTS and length is not None and length < MAX_LENGTH else None


def _check_length(array: pa.Array, data_type: AtomicType, place: _Place) -> None:
    limit = _length_limit(data_type)
    if limit is None:
        return
    is_text = data_type.root in TEXT_ROOTS
    bad = pc.greater(pc.utf8_length(array) if is_text else pc.binary_length(array), limit)
    if pc.any(bad).as_py():
        first = array.filter(bad)[0].as_py()
        unit = "characters" if is_text else "bytes"
        raise place.refusal(f"{first!r:.60} of {len(first)} {unit}", "shorten it, or widen the column")


def _step(data_type: AtomicType) -> int | None:
    """The multiple that every stored value must be (``TIMESTAMP(0)`` is stored in ms: 1000), or None for 1."""
    if data_type.root is TypeRoot.TIME:
        digits = 3
    elif data_type.root in TIMESTAMP_ROOTS:
        digits = _UNIT_DIGITS[timestamp_unit(data_type)]
    else:
        return None
    step = 10 ** max(0, digits - (data_type.precision or 0))
    return int(step) if step > 1 else None


def _check_step(array: pa.Array, data_type: AtomicType, place: _Place) -> None:
    step = _step(data_type)
    if step is None:
        return
    ticks = array.cast(pa.int32()).cast(pa.int64()) if pa.types.is_time32(array.type) else array.cast(pa.int64())
    # Integer division truncates: a multiple comes back, whatever its sign.
    bad = pc.not_equal(pc.multiply(pc.divide(ticks, step), step), ticks)
    _refuse_first(array, bad, place, "it has more fractional digits than the column; round it, or widen the column")


def _convert_list(array: pa.Array, data_type: ArrayType, place: _Place) -> pa.Array:
    if not is_list_like(array.type):
        raise place.refusal(array.type, "give a list")
    if not pa.types.is_list(array.type):
        array = _cast(array, pa.list_(array.type.value_field), place)
    elements = _convert_part(array.flatten(), data_type.element, place.inside("[]", data_type.element))
    return _with_offsets(array, to_arrow_type(data_type), elements)


def _convert_map(array: pa.Array, data_type: MapType, place: _Place) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise place.refusal(array.type, "give a map")
    target = to_arrow_type(data_type)
    array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    entries = array.flatten()
    keys = _convert_part(entries.field(0), data_type.key, place.inside("[key]", data_type.key))
    values = _convert_part(entries.field(1), data_type.value, place.inside("[value]", data_type.value))
    parts = pa.struct([target.key_field, target.item_field])
    return _with_offsets(array, target, _struct_of(parts, len(entries), None, [keys, values]))


def _with_offsets(array: pa.ListArray, target: pa.DataType, flat: pa.Array) -> pa.Array:
    """A list or map array with the list lengths and nulls of ``array`` over the flattened values ``flat``."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.Array.from_buffers(
        target, len(array), [_validity(array), offsets.buffers()[1]], null_count=array.null_count, children=[flat]
    )


def _convert_row(array: pa.Array, data_type: RowType, place: _Place) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise place.refusal(array.type, "give a struct")
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    _check_columns(names, data_type.fields, f"{place.column!r} of {place.where}")
    absent = array.is_null() if array.null_count else None
    children = []
    for field in data_type.fields:
        inner = place.inside(f".{field.name}", field.type)
        if field.name not in names:
            children.append(pa.nulls(len(array), to_arrow_type(field.type)))
            continue
        child = array.field(names.index(field.name))
        if absent is not None:
            # A null row has no fields: only nulls in rows that exist count against NOT NULL.
            _convert_part(child.filter(pc.invert(absent)), field.type, inner)
            children.append(_convert(pc.if_else(absent, pa.scalar(None, child.type), child), field.type, inner))
        else:
            children.append(_convert_part(child, field.type, inner))
    return _struct_of(to_arrow_type(data_type), len(array), array, children)


def _check_variants(array: pa.Array, place: _Place) -> None:
    """Refuses what cannot be a VARIANT: a reader of another engine fails on the first such row."""
    values, metadata = array.filter(array.is_valid()).flatten()
    has_version = pc.is_in(pc.binary_slice(metadata, 0, 1), value_set=_VERSIONS)
    value_bytes, metadata_bytes = pc.binary_length(values), pc.binary_length(metadata)
    is_long = pc.and_(pc.greater_equal(value_bytes, 1), pc.greater_equal(metadata_bytes, _LEAST_METADATA_BYTES))
    is_short = pc.less_equal(pc.max_element_wise(value_bytes, metadata_bytes), MAX_VARIANT_BYTES)
    if not pc.all(pc.and_(has_version, pc.and_(is_long, is_short)), min_count=0).as_py():
        raise place.refusal(
            "bytes that are none",
            "give a struct of the value and the metadata in the binary form of Parquet's Variant specification, of at most 128 MiB "
            "each, as parse_json makes it",
        )


def _struct_of(target: pa.DataType, length: int, like: pa.Array | None, children: list[pa.Array]) -> pa.Array:
    validity = None if like is None else _validity(like)
    nulls = 0 if like is None else like.null_count
    return pa.Array.from_buffers(target, length, [validity], null_count=nulls, children=children)


def _validity(array: pa.Array) -> pa.Buffer | None:
    """The validity bits of a possibly sliced array, from bit 0."""
    if not array.null_count:
        return None
    return array.is_valid().buffers()[1]
