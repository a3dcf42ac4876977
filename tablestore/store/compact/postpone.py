"""Distributes the rows of postponed buckets (``bucket = -2``): writers leave the choice of a bucket to a compaction.

    bucket-postpone   data-…-0.parquet  data-…-0.avro         nobody reads these
                          | in the order of the manifests, so that of equal keys the later commit's row wins
    bucket-0, …       level-0 files, as any write makes them; the postponed ones are deleted in the same commit

A partition keeps the number of buckets that it has. The first time it gets ``postpone.default-bucket-num`` of them, or as many as
its rows or bytes need. Memory: one postponed file, and a write buffer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tablestore import options as opt
from tablestore.errors import NotFoundError, UnsupportedError
from tablestore.format.datafiles.avrofile import read_avro_rows
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.format.parquet.projection import Projection
from tablestore.format.paths import file_format_of
from tablestore.format.snapshot import Snapshot
from tablestore.options import TableOptions
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_path
from tablestore.store.message import CommitMessage
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.write.datawriter import DataWriter
from tablestore.store.write.runwriter import RunTarget
from tablestore.types.schema import POSTPONE_BUCKET

KIND_FIELD = pa.field(KIND_COLUMN, pa.int8())


def postponed_files(live: Sequence[ManifestEntry]) -> dict[bytes, list[ManifestEntry]]:
    """The postponed files of each partition, in the order in which they were committed."""
    by_partition: dict[bytes, list[ManifestEntry]] = {}
    for entry in live:
        if entry.bucket == POSTPONE_BUCKET:
            by_partition.setdefault(entry.partition, []).append(entry)
    return by_partition


def distribute(
    context: TableContext,
    live: Sequence[ManifestEntry],
    postponed: Sequence[ManifestEntry],
    *,
    base: Snapshot | None,
    first_sequence: int,
) -> CommitMessage:
    """Write the rows of one partition's postponed files into its buckets; returns the message to be committed.

    Raises FormatError for damaged files, UnsupportedError for formats and types that are not read, NotFoundError for files that
    expired meanwhile. Then nothing is left behind.
    """
    created = context.clock.now_ms()
    partition = postponed[0].partition
    bucket_counts = {entry.total_buckets for entry in live if entry.partition == partition and entry.bucket >= 0}
    count = max(bucket_counts) if bucket_counts else first_bucket_count(context.schema.options, [entry.file for entry in postponed])
    target = RunTarget.of(context, replace(context.settings, total_buckets=count, postpones=False))
    with DataWriter(target, first_sequence=first_sequence) as writer:
        for entry in postponed:
            for batch in _rows(context, entry):
                rows = pa.Table.from_batches([batch])
                writer.write(rows.drop_columns([KIND_COLUMN]).cast(context.schema.arrow_schema), rows.column(KIND_COLUMN))
        entries = writer.finish()
    before = tuple(replace(entry, kind=EntryKind.DELETE) for entry in postponed)
    return replace(context.message(base, created_millis=created), entries=entries, compact_before=before)


def first_bucket_count(options: Mapping[str, str], files: Sequence[DataFileMeta]) -> int:
    """The number of buckets of a partition that has none yet, whose rows lie in these files. Pure."""
    parsed = TableOptions(options)
    if opt.POSTPONE_DEFAULT_BUCKETS.key not in options:
        for option, size in (
            (opt.POSTPONE_TARGET_ROWS, sum(file.row_count for file in files)),
            (opt.POSTPONE_TARGET_SIZE, sum(file.file_size for file in files)),
        ):
            if isinstance(target := parsed.value(option), int):
                return max(-(-size // target), 1)
    return parsed.integer(opt.POSTPONE_DEFAULT_BUCKETS)


def _rows(context: TableContext, entry: ManifestEntry) -> Iterator[pa.RecordBatch]:
    """The rows of one postponed file, in the table's columns, each with its kind in front."""
    file = entry.file
    path = entry_path(context.paths, entry, context.schema)
    where = f"{context.files.root_uri}/{path}"
    file_format = file_format_of(file.file_name)
    if file_format in ("parquet", "orc"):
        reader = SplitReader.whole(context, (), None)
        directory = reader.directory(entry.partition, entry.bucket)
        yield from reader.file_rows(directory, file, context.schema.field_names, (KIND_COLUMN,))
        return
    if file_format != "avro":
        raise UnsupportedError(
            f"postponed data file {where} has format {file_format!r}; tablestore reads avro, orc and parquet there: compact the "
            "table with the engine that wrote it",
            kind="file-format",
        )
    try:
        data = context.files.read(path, max_bytes=file.file_size)
    except NotFoundError as error:
        raise NotFoundError(
            f"postponed data file {where} is gone: another compaction took it, or it was removed by hand; compact again",
            kind="data-file-gone",
        ) from error
    written = context.schema if file.schema_id == context.schema.id else context.schemas.read(file.schema_id)
    projection = Projection(written.fields, context.schema.fields, keep=(KIND_COLUMN,), where=where)
    for batch in read_avro_rows(data, written.fields, name=where, system=[KIND_FIELD]):
        yield projection.apply(batch)
