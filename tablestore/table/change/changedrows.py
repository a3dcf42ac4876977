"""Makes the changed rows of a statement, of one kind at a time, as :mod:`~tablestore.table.write.rowchange` has them."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tablestore.store.context import TableContext
from tablestore.table.write.rowchange import ChangeColumns
from tablestore.types.arrays import one_chunk, text_scalar
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.rowkind import ROW_BEFORE_COLUMN, ROW_KIND_COLUMN, RowKind
from tablestore.types.rowposition import POSITION_FIELDS


def change_rows(
    context: TableContext, kind: RowKind, columns: Mapping[str, pa.Array], count: int, old: pa.Table | None
) -> pa.Table:
    """Rows of one kind. Columns that are not given are NULL.

    ``old``: the rows that they change, with their positions where the table has such; None for new ones.
    """
    schema, needed = context.schema.arrow_schema, ChangeColumns.of(context)
    arrays = {field.name: columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schema}
    arrays[ROW_KIND_COLUMN] = pa.repeat(text_scalar(kind.symbol), count)
    if needed.positions:
        for field in to_arrow_schema(POSITION_FIELDS):
            arrays[field.name] = pa.nulls(count, field.type) if old is None else one_chunk(old.column(field.name))
    if needed.before:
        is_update = kind is RowKind.UPDATE_AFTER and old is not None
        before = [schema.field(name) for name in needed.before]
        arrays[ROW_BEFORE_COLUMN] = _structs(old, before) if is_update else pa.nulls(count, pa.struct(before))
    return pa.table(arrays)


def _structs(rows: pa.Table | None, fields: Sequence[pa.Field]) -> pa.Array:
    assert rows is not None, "an update has an old row"
    return pa.StructArray.from_arrays([one_chunk(rows.column(field.name)) for field in fields], fields=list(fields))
