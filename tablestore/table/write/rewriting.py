"""Rewrites data files of an append table without some of their rows; files without a row left are only deleted.

Memory: a batch of rows, and the writer's buffer.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.write.deletemarks import MatchedRows
from tablestore.table.write.writer import TableWriter
from tablestore.types.sortedsets import union


def rewrite_without(
    context: TableContext, writer: TableWriter, base: Snapshot, matches: Iterable[MatchedRows]
) -> tuple[ManifestEntry, ...]:
    """Write the files of ``base`` again without the rows that match; returns the DELETE entries of these files.

    A file of which no live row matches stays as it is.
    """
    vectors = context.deletion_vectors(base)
    reader = SplitReader.whole(context, context.schema.field_names, None)
    replaced: list[ManifestEntry] = []
    for match in matches:
        file = match.entry.file
        deleted = vectors.positions(file.file_name, file.row_count).astype(np.int64)
        removed = union(deleted, match.positions.astype(np.int64))
        if len(removed) == len(deleted):
            continue
        if len(removed) < file.row_count:
            for batch in reader.rows_without(match.entry, removed):
                writer.keep(batch)
        replaced.append(replace(match.entry, kind=EntryKind.DELETE))
    return tuple(replaced)
