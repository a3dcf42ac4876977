"""Reads VARIANT columns of data files: the value and the metadata, by their names.

A file may be *shredded*: parts of its values lie in columns of their own, and are put together again (:mod:`shreddedvariants`).

    plain      {value, metadata}
    shredded   {metadata, value, typed_value: …}
"""

import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import SHREDDED_PART, VARIANT_PARTS, VariantType


def variants_of(array: pa.Array) -> pa.Array:
    """A column of a file as that of a table. Raises FormatError for one that is no VARIANT, UnsupportedError for a type in a
    shredded one that is not read."""
    kind = array.type
    names = {part.name for part in kind} if pa.types.is_struct(kind) else set()
    value, metadata = VARIANT_PARTS
    if metadata not in names or names.isdisjoint((value, SHREDDED_PART)):
        raise FormatError(f"expected a VARIANT column of {value} and {metadata}, found {kind}; restore the file from a copy")
    metadata_array = array.field(kind.get_field_index(metadata)).cast(pa.binary())
    values = _whole(array, metadata_array) if SHREDDED_PART in names else array.field(kind.get_field_index(value)).cast(pa.binary())
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([values, metadata_array], fields=list(to_arrow_type(VariantType())), mask=mask)


def _whole(array: pa.Array, metadata: pa.Array) -> pa.Array:
    # Loads what few files need, and pandas, if that is installed.
    from tablestore.format.parquet.shreddedvariants import whole_values

    return whole_values(array, metadata)
