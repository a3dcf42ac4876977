"""Copies data files under new names, to restore them.

A deleted file never comes back under its name: other engines would drop such an ADD from their manifests, and an expiry under way
would delete the file. So a restored file is a copy. The footer of our data files holds their name, which readers check; the copy
has the same pages and another footer.
"""

from dataclasses import replace
from typing import Any

from tablestore.errors import FormatError, NotFoundError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.parquet.footer import PARQUET_MAGIC, TAIL_BYTES, footer_digest, footer_length, renamed_footer
from tablestore.format.paths import data_file_name, file_format_of, postponed_prefix
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_directory
from tablestore.types.schema import POSTPONE_BUCKET

CHUNK_BYTES = 8 << 20


def copy_data_file(context: TableContext, entry: ManifestEntry) -> ManifestEntry:
    """A copy of a data file in the same bucket at the same level; returns the entry that adds it. Memory: one chunk.

    Raises NotFoundError if the file is gone, FormatError if it is not the one of ``entry``.
    """
    directory = entry_directory(context.paths, entry, context.schema)
    meta = entry.file
    extension = meta.file_name.partition(".")[2] or "parquet"
    prefix = context.settings.data_file_prefix
    name = data_file_name(context.ids.uuid(), 0, postponed_prefix(prefix) if entry.bucket == POSTPONE_BUCKET else prefix, extension)
    where = f"{context.files.root_uri}/{directory}/{meta.file_name}"
    try:
        source = context.files.open_input(f"{directory}/{meta.file_name}")
    except NotFoundError as error:
        raise NotFoundError(
            f"data file {where} is gone: the snapshot that it was copied from expired meanwhile; tag what is to come back first",
            kind="data-file-gone",
        ) from error
    try:
        with context.files.open_output(f"{directory}/{name}") as sink:
            size, digest = _copy(source, sink, meta, name=name, where=where)
    finally:
        source.close()
    # Side files are indexes that readers may do without.
    copied = replace(meta, file_name=name, file_size=size, footer_digest=digest, extra_files=())
    return ManifestEntry(
        kind=EntryKind.ADD,
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=entry.total_buckets,
        file=copied,
    )


def _copy(source: Any, sink: Any, meta: DataFileMeta, *, name: str, where: str) -> tuple[int, bytes | None]:
    """Copy ``source`` to ``sink`` under ``name``; returns the copy's size and footer digest."""
    size = source.seek(0, 2)
    size = source.tell() if size is None else size
    if size != meta.file_size:
        raise FormatError(f"{where}: expected {meta.file_size} bytes, found {size}; restore the file from a copy")
    tail = b""
    digest = meta.footer_digest
    end = size
    if file_format_of(meta.file_name) == "parquet":
        source.seek(size - TAIL_BYTES)
        length = footer_length(source.read(TAIL_BYTES), file_size=size, name=where)
        end = size - TAIL_BYTES - length
        source.seek(end)
        footer = source.read(length)
        if digest is not None and footer_digest(footer) != digest:
            raise FormatError(
                f"{where}: the footer is not the one that the manifest names; restore the file from a copy", kind="checksum"
            )
        footer = renamed_footer(footer, meta.file_name, name, where)
        digest = footer_digest(footer) if digest is not None else None
        tail = footer + len(footer).to_bytes(4, "little") + PARQUET_MAGIC
    source.seek(0)
    left = end
    while left:
        chunk = source.read(min(left, CHUNK_BYTES))
        if not chunk:
            raise FormatError(f"{where}: the file ended {left} bytes early while it was copied; read it again")
        sink.write(chunk)
        left -= len(chunk)
    sink.write(tail)
    return end + len(tail), digest
