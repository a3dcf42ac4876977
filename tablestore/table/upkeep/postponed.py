"""Distributes postponed rows to real buckets, as part of a compaction on demand.

    newest snapshot -> one partition's postponed files -> level-0 files of its buckets -> COMPACT commit -> next partition

After a lost race for a partition's files the work is dropped, because the winner has moved the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tablestore.errors import NotFoundError
from tablestore.store.compact.postpone import distribute, postponed_files
from tablestore.store.context import TableContext
from tablestore.table.chosenpartitions import partition_matcher
from tablestore.table.upkeep.compaction import CompactReport, commit_compaction
from tablestore.types.schema import POSTPONE_BUCKET

# The most times that a partition is planned anew because others took its files.
_ATTEMPTS = 10


def compact_postponed(context: TableContext, partitions: Sequence[Mapping[str, Any]] | None = None) -> CompactReport:
    """Move postponed rows into buckets; ``partitions``: only those of these. Raises what reading and committing raise."""
    report = CompactReport()
    if context.settings.total_buckets != POSTPONE_BUCKET:
        return report
    matches = partition_matcher(context, partitions)
    done_partitions: set[bytes] = set()
    for _ in range(_ATTEMPTS):
        latest, live = context.snapshots.read_newest(context.manifests.live)
        todo = {p: files for p, files in postponed_files(live).items() if matches(p) and p not in done_partitions}
        if latest is None or not todo:
            break
        for partition, postponed in todo.items():
            base, first_sequence = context.sequence.start()
            try:
                message = distribute(context, live, postponed, base=base, first_sequence=first_sequence)
            except NotFoundError:
                # Its files expired while they were read, which takes a newer snapshot. Without one a file is missing.
                if not context.snapshots.has_moved_on(latest):
                    raise
                break
            part = commit_compaction(context, [message])
            if not part.dropped:
                done_partitions.add(partition)
                part = replace(
                    part,
                    buckets=len({entry.bucket for entry in message.entries}),
                    files_written=len(message.entries),
                    bytes_written=sum(entry.file.file_size for entry in message.entries),
                )
            report += part
    return report
