"""Checks that every row of every file reads: the deep part of a check. Each data, changelog and index file is read once, as it is,
without merging.

Bytes that no reader looks at (statistics inside of page headers) are not looked at here either. Memory: one batch of rows.
"""

from collections.abc import Collection, Iterable, Mapping

from tablestore.errors import FormatError
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import file_format_of
from tablestore.progress import Progress
from tablestore.store.context import TableContext
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.inspect.findings import RESTORE, Findings
from tablestore.table.inspect.nanbuckets import float_bucket_keys, misplaced_rows


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
    reader = SplitReader.of(context, context.schema.field_names, None)
    misplaced = 0
    for number, (path, entry) in enumerate(entries.items()):
        show(findings.name("rows"), number, len(entries))
        if file_format_of(entry.file.file_name) != "parquet":
            # Another engine's postponed rows: only whether they are there can be said.
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
    keys = float_bucket_keys(reader.schema, context.settings) if is_live and entry.total_buckets > 1 else ()
    opened = reader.open_file(path, entry.file)
    misplaced = 0
    try:
        if opened.row_count != entry.file.row_count:
            raise FormatError(f"{path}: the manifest says {entry.file.row_count} rows, the file holds {opened.row_count}")
        opened.check_pages()
        projection = reader.projection(opened, entry.file, names, (), path)
        for batch in opened.read():
            rows = projection.apply(batch.select(projection.file_columns))
            misplaced += misplaced_rows(rows, keys, entry, context.settings.bucket_function) if keys else 0
    finally:
        opened.close()
    return misplaced
