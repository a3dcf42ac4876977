"""Writes values of Arrow columns as short texts for the cells of a page."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.json.jsontext import plain_texts

MOST_CHARACTERS = 160


def cell_rows(rows: pa.Table) -> tuple[tuple[str | None, ...], ...]:
    """The rows of a short table as texts, None for null."""
    columns = [cell_texts(column.combine_chunks()) for column in rows.columns]
    return tuple(zip(*columns, strict=True)) if columns else ()


def cell_texts(values: pa.Array | pa.ChunkedArray, most: int = MOST_CHARACTERS) -> Sequence[str | None]:
    """The values of a short column as texts of at most ``most`` characters."""
    if isinstance(values, pa.ChunkedArray):
        return [text for chunk in values.chunks for text in cell_texts(chunk, most)]
    try:
        texts = plain_texts(values).cast(pa.string())
        cut = pc.utf8_slice_codeunits(texts, 0, most - 1)
        is_long = pc.greater(pc.utf8_length(texts), most)
        result: list[str | None] = pc.if_else(is_long, pc.binary_join_element_wise(cut, "…", ""), texts).to_pylist()
    except pa.ArrowException:
        # A type of a query's result that no table has.
        return [None if not value.is_valid else str(value)[:most] for value in values]
    return result


def is_number_column(data_type: pa.DataType) -> bool:
    """True for a column of numbers, which stand to the right."""
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))
