"""Checks that every row of every file reads: the deep part of a check. Each data, changelog and index file is read once, as it is,
without merging.

Bytes that no reader looks at (statistics inside of page headers) are not looked at here either. Memory: one batch of rows.

Rows with a NaN in their bucket key may lie outside of the bucket of NaN: hashes took the bits of a float as they were once, and
other engines still do so. A NaN has many bit patterns, and a key has one bucket. All are read, but an upsert meets only the row
that lies where NaN belongs.
"""

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError
from tablestore.format.bucket import bucket_of
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import file_format_of
from tablestore.options import FILE_FORMATS
from tablestore.progress import Progress
from tablestore.store.context import TableContext
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.settings import TableSettings
from tablestore.table.inspect.findings import RESTORE, Findings
from tablestore.types.arrays import is_true
from tablestore.types.datatypes import Field, is_float
from tablestore.types.schema import TableSchema


def check_contents(
    context: TableContext,
    entries: Mapping[str, ManifestEntry],
    *,
    live: Collection[str],
    index: Iterable[str],
    findings: Findings,
    show: Progress,
) -> None:
    """Read the files of ``entries``, by path, and the ``index`` files; ``live`` are the paths of the newest snapshot."""
    reader = SplitReader.whole(context, context.schema.field_names, None)
    misplaced = 0
    for number, (path, entry) in enumerate(entries.items()):
        show(findings.name("rows"), number, len(entries))
        if file_format_of(entry.file.file_name) not in FILE_FORMATS:
            # Another engine's: only whether it is there can be said.
            continue
        with findings.noting("data", path, RESTORE):
            misplaced += _read(reader, path, entry, context, is_live=path in live)
    if misplaced:
        findings.warn(
            "nan-buckets",
            f"{misplaced:,} row(s)",
            "have a NaN in their key and lie in another bucket than NaN does today (older versions and other engines hash its "
            "bits): an upsert or delete of such a key does not meet them",
            "read the rows, and write them back with table.overwrite(rows)",
        )
    for path in index:
        with findings.noting("data", path, RESTORE):
            context.index_files.read(path.rpartition("/")[2])


def _read(reader: SplitReader, path: str, entry: ManifestEntry, context: TableContext, *, is_live: bool) -> int:
    """Read all columns, also those that only other engines or older snapshots read; those of today become what they are read as.
    Returns how many live rows lie in a bucket that is not theirs."""
    names = [name for name in reader.schema.field_names if name not in reader.schema.partition_keys]
    keys = _float_bucket_keys(reader.schema, context.settings) if is_live and entry.total_buckets > 1 else ()
    opened = reader.open_file(path, entry.file)
    misplaced = 0
    try:
        if opened.row_count != entry.file.row_count:
            raise FormatError(f"{path}: the manifest says {entry.file.row_count} rows, the file holds {opened.row_count}")
        opened.check_pages()
        projection = reader.projection(opened, entry.file, names, (), path)
        for batch in opened.read():
            rows = projection.apply(batch.select(projection.file_columns))
            misplaced += _misplaced_rows(rows, keys, entry, context.settings.bucket_function) if keys else 0
    finally:
        opened.close()
    return misplaced


def _float_bucket_keys(schema: TableSchema, settings: TableSettings) -> tuple[Field, ...]:
    """The bucket key of a table that has floats in it and a fixed number of buckets; else nothing."""
    fields = tuple(schema.field(name) for name in schema.bucket_keys)
    floats = settings.total_buckets > 1 and any(is_float(field.type) for field in fields)
    return fields if floats else ()


def _misplaced_rows(rows: pa.RecordBatch, keys: tuple[Field, ...], entry: ManifestEntry, function: str) -> int:
    """The number of rows with a NaN in ``keys`` that belong to another bucket than that of their file."""
    floats = [rows.column(key.name) for key in keys if is_float(key.type)]
    nan = np.zeros(rows.num_rows, bool)
    for column in floats:
        nan |= is_true(pc.is_nan(column))
    if not nan.any():
        return 0
    chosen = rows.select([key.name for key in keys]).filter(pa.array(nan))
    buckets = bucket_of(chosen.columns, [key.type for key in keys], entry.total_buckets, function)
    return int(np.count_nonzero(buckets != entry.bucket))
