"""Row kinds: whether a change inserts, updates (before and after) or deletes its row.

Codes are stored in data and changelog files (column ``_VALUE_KIND``) and never renumbered. At the API a change
carries its kind as text in the column ``_row_kind``: ``+I``, ``-U``, ``+U`` or ``-D``.
"""

from enum import IntEnum
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError

ROW_KIND_COLUMN = "_row_kind"
# The row that an update replaces, as a struct of the table's columns.
ROW_BEFORE_COLUMN = "_row_before"
_SYMBOLS = ("+I", "-U", "+U", "-D")


@cache
def _texts() -> pa.Array:
    # Made when needed: the first array that Arrow makes of Python values imports pandas.
    return pa.array(_SYMBOLS, pa.string())


class RowKind(IntEnum):
    """Stored codes."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def symbol(self) -> str:
        """``+I``, ``-U``, ``+U`` or ``-D``."""
        return _SYMBOLS[self]


def kinds_from_symbols(symbols: pa.Array | pa.ChunkedArray, column: str = ROW_KIND_COLUMN) -> pa.Array | pa.ChunkedArray:
    """int8 codes of a text column of symbols (dictionary-encoded and large text too), in the same layout.

    Raises InvalidInputError for nulls, for other texts and for columns of another type; ``column`` is its name.
    """
    text = symbols.type.value_type if pa.types.is_dictionary(symbols.type) else symbols.type
    if not (pa.types.is_string(text) or pa.types.is_large_string(text) or pa.types.is_string_view(text)):
        raise InvalidInputError(f"expected text in the column {column} (one of {', '.join(_SYMBOLS)}), found {symbols.type}")
    plain = symbols if pa.types.is_string(symbols.type) else symbols.cast(pa.string())
    codes = pc.index_in(plain, _texts())
    if codes.null_count:
        bad = plain.filter(pc.is_null(codes))[0].as_py()
        raise InvalidInputError(
            f"expected a row kind (one of {', '.join(_SYMBOLS)}) in the column {column}, "
            f"found {bad!r} ({codes.null_count} such rows)"
        )
    return codes.cast(pa.int8())


def symbols_from_kinds(kinds: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The text symbols of stored codes, in the same layout; InvalidInputError for a null or an unknown code."""
    if len(kinds) and (kinds.null_count or pc.min(kinds).as_py() < 0 or pc.max(kinds).as_py() >= len(_SYMBOLS)):
        raise InvalidInputError(f"expected row kind codes from 0 to 3, found {pc.unique(kinds).to_pylist()[:10]!r}")
    if isinstance(kinds, pa.ChunkedArray):
        return pa.chunked_array([_texts().take(chunk) for chunk in kinds.chunks], pa.string())
    return _texts().take(kinds)
