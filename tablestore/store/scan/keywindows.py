"""Reads the distinct keys of some files of a bucket, in key order, a window of bounded size at a time.

    f1   a c d ...
    f2   b c e ...      ->  [a b c d]  [e ...]

Only key columns are read. Memory: one batch of keys per file, which share the bytes of a window, and one window of keys, bounded by
bytes as well.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.functions.survivors import WindowKeys
from tablestore.lsm.keys import key_at, plain_columns
from tablestore.lsm.merge.mergespec import MergeSpec, SortedSource
from tablestore.lsm.merge.sortedmerge import merge_section
from tablestore.store.scan.lookup import SortedKeys
from tablestore.store.scan.splitreader import SplitReader
from tablestore.types.rebatch import rebatched

# Row groups hold 128 k rows, so a window over dense keys reads each row group at most twice.
WINDOW_KEYS = 262_144


def key_windows(
    reader: SplitReader, partition: bytes, bucket: int, files: Sequence[DataFileMeta], *, window_keys: int = WINDOW_KEYS
) -> Iterator[SortedKeys]:
    """The keys of these files of a bucket. Raises FormatError for files that are damaged or not sorted."""
    directory = reader.directory(partition, bucket)
    return windows_of_keys(reader, [(directory, file) for file in files], window_keys=window_keys)


def windows_of_keys(
    reader: SplitReader, files: Sequence[tuple[str, DataFileMeta]], *, window_keys: int = WINDOW_KEYS
) -> Iterator[SortedKeys]:
    """Reads as :func:`key_windows`, the keys of files in any directories of the table."""
    fields = reader.schema.key_fields
    spec = MergeSpec(
        key_fields=fields,
        output_columns=tuple(field.name for field in fields),
        function=MergeFunction(),
        drop_retractions=False,
        ordered=True,
        batch_rows=window_keys,
        batch_bytes=reader.bounds.batch_bytes,
    )
    # Any order of the files will do, since it does not matter here which version of a key survives.
    shared = reader.of_runs(len(files))
    runs = [[_source(shared, directory, file, number)] for number, (directory, file) in enumerate(files)]
    last: tuple[int | bytes, ...] = ()
    for rows in rebatched(merge_section(runs, spec), max_rows=window_keys, max_bytes=reader.bounds.batch_bytes):
        plain = plain_columns(rows.columns, [field.type.nullable for field in fields])
        if (last and last >= key_at(plain, 0)) or not WindowKeys([plain]).ascending():
            raise FormatError(
                f"{reader.files.root_uri} has a file among {', '.join(f'{place}/{file.file_name}' for place, file in files)} whose "
                "rows are not in strictly ascending key order; find it with `tablestore verify` and rewrite it",
                kind="unsorted",
            )
        last = key_at(plain, rows.num_rows - 1)
        yield SortedKeys(rows, plain)


def _source(reader: SplitReader, directory: str, file: DataFileMeta, number: int) -> SortedSource:
    return SortedSource(min_sequence=number, max_sequence=number, read=lambda: _key_rows(reader, directory, file))


def _key_rows(reader: SplitReader, directory: str, file: DataFileMeta) -> Iterator[pa.RecordBatch]:
    path = f"{directory}/{file.file_name}"
    source = reader.open_file(path, file)
    try:
        projection = reader.projection(source, file, reader.schema.trimmed_primary_keys, (KIND_COLUMN,), path)
        for batch in source.read(projection.file_columns):
            yield projection.apply(batch)
    finally:
        source.close()
