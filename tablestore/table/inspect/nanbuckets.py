"""Finds rows with a NaN in their bucket key that lie outside of the bucket of NaN.

Hashes took the bits of a float as they were once, and other engines still do so. Rows of one key may lie in two buckets then: a NaN
has many bit patterns, and a key has one bucket. Each of them is read, and an upsert meets only the one that lies where NaN belongs.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.bucket import bucket_of
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.store.settings import TableSettings
from tablestore.types.datatypes import Field, is_float
from tablestore.types.schema import TableSchema


def float_bucket_keys(schema: TableSchema, settings: TableSettings) -> tuple[Field, ...]:
    """The bucket key of a table that has floats in it and a fixed number of buckets; else nothing."""
    fields = tuple(schema.field(name) for name in schema.bucket_keys)
    floats = settings.total_buckets > 1 and any(is_float(field.type) for field in fields)
    return fields if floats else ()


def misplaced_rows(rows: pa.RecordBatch, keys: tuple[Field, ...], entry: ManifestEntry, function: str) -> int:
    """The number of rows with a NaN in ``keys`` that belong to another bucket than that of their file."""
    floats = [rows.column(key.name) for key in keys if is_float(key.type)]
    nan = np.zeros(rows.num_rows, bool)
    for column in floats:
        nan |= pc.fill_null(pc.is_nan(column), False).to_numpy(zero_copy_only=False)
    if not nan.any():
        return 0
    chosen = rows.select([key.name for key in keys]).filter(pa.array(nan))
    buckets = bucket_of(chosen.columns, [key.type for key in keys], entry.total_buckets, function)
    return int(np.count_nonzero(buckets != entry.bucket))
