"""Projects a data file's columns onto the columns of a newer (or older) table schema.

By field id, at every depth: a column is read under the name that it had when the file was written, then cast to its
present type. What the file does not have is null. Casts that lose values are refused by evolution, so a cast that
fails here means a file that does not match its schema.
"""

from collections.abc import Sequence

import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.format.parquet.casts import convert
from tablestore.format.parquet.variants import variants_of
from tablestore.types.arrowtypes import to_arrow_field, to_arrow_type
from tablestore.types.datatypes import ArrayType, AtomicType, DataType, Field, MapType, MultisetType, RowType, VariantType, as_map
from tablestore.types.evolution.widening import is_same


class Projection:
    """Batches of files written with ``file_fields`` as batches of ``table_fields``.

    ``file_columns`` are the columns to read from the file; columns named in ``keep`` (system columns) pass through
    and come first. ``file_names`` are the columns that the file really has; None is all of ``file_fields``.
    """

    def __init__(
        self,
        file_fields: Sequence[Field],
        table_fields: Sequence[Field],
        *,
        keep: Sequence[str] = (),
        file_names: Sequence[str] | None = None,
        where: str = "data file",
    ) -> None:
        by_id = {field.id: field for field in file_fields if file_names is None or field.name in file_names}
        self._pairs = [(by_id.get(field.id), field) for field in table_fields]
        self._keep = tuple(keep)
        self._schema = pa.schema([to_arrow_field(field) for field in table_fields])
        self._where = where
        self.file_columns: tuple[str, ...] = (*self._keep, *(old.name for old, _ in self._pairs if old is not None))

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One batch with the file's columns as one with the table's; columns that fit already are not copied."""
        columns: list[pa.Array] = [batch.column(name) for name in self._keep]
        fields: list[pa.Field] = [batch.schema.field(name) for name in self._keep]
        for (old, new), target in zip(self._pairs, self._schema, strict=True):
            if old is None:
                columns.append(pa.nulls(batch.num_rows, target.type))
                # A column added NOT NULL later is still missing in old files.
                fields.append(target.with_nullable(True))
                continue
            try:
                columns.append(_convert(batch.column(old.name), old.type, new.type))
            except (pa.ArrowException, ValueError) as error:
                raise FormatError(
                    f"{self._where}: column {old.name!r} holds {batch.schema.field(old.name).type} values that do not "
                    f"fit {target.type} ({error})"
                ) from error
            fields.append(target)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _convert(array: pa.Array, old: DataType, new: DataType) -> pa.Array:
    """An array of the file as the canonical Arrow type of ``new``."""
    target = to_arrow_type(new)
    # Equal Arrow types can hide that a nested field was dropped and added again: its id differs.
    unchanged = is_same(old, new) if isinstance(new, AtomicType) else _same_ids(old, new)
    if unchanged and array.type.equals(target):
        return array
    match old, new:
        case RowType(), RowType():
            return _convert_row(array, old, new)
        case ArrayType(), ArrayType():
            values = _convert(array.values, old.element, new.element)
            return _with_values(array, target, values)
        case ((MapType() | MultisetType()), (MapType() | MultisetType())):
            return _convert_map(array, as_map(old), as_map(new))
        case VariantType(), VariantType():
            return variants_of(array)
        case _:
            return convert(array, old, new)


def _convert_row(array: pa.StructArray, old: RowType, new: RowType) -> pa.Array:
    by_id = {field.id: field for field in old.fields}
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    children: list[pa.Array] = []
    fields: list[pa.Field] = []
    for field in new.fields:
        source = by_id.get(field.id)
        arrow_field = to_arrow_field(field)
        if source is None or source.name not in names:
            children.append(pa.nulls(len(array), arrow_field.type))
            fields.append(arrow_field.with_nullable(True))
        else:
            # ``field`` respects the array's offset, but not the row's own nulls: those stay in the mask.
            children.append(_convert(array.field(names.index(source.name)), source.type, field.type))
            fields.append(arrow_field)
    return pa.StructArray.from_arrays(children, fields=fields, mask=_null_mask(array))


def _convert_map(array: pa.MapArray, old: MapType, new: MapType) -> pa.Array:
    keys, items = _convert(array.keys, old.key, new.key), _convert(array.items, old.value, new.value)
    target = to_arrow_type(new)
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    return _with_values(array, target, entries)


def _with_values(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """The same lists, slices and nulls included, over other values."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(target, len(array), [validity, offsets], offset=array.offset, children=[values])


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _same_ids(old: DataType, new: DataType) -> bool:
    match old, new:
        case RowType(), RowType():
            return len(old.fields) == len(new.fields) and all(
                a.id == b.id and _same_ids(a.type, b.type) for a, b in zip(old.fields, new.fields, strict=True)
            )
        case ArrayType(), ArrayType():
            return _same_ids(old.element, new.element)
        case ((MapType() | MultisetType()), (MapType() | MultisetType())):
            before, after = as_map(old), as_map(new)
            return _same_ids(before.key, after.key) and _same_ids(before.value, after.value)
        case _:
            return isinstance(old, VariantType) == isinstance(new, VariantType)
