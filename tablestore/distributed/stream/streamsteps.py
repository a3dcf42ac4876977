"""Cuts a snapshot into the pieces that a stream counts.

    its rows       sections of files, by partition, bucket and key
    its changes    steps of its plan (files, mostly), in the order of the changes

Both orders follow from the manifests of the snapshot and from its own schema. So a number of pieces says how far a reader has come,
whoever plans again, and when. What a filter leaves out is counted too.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.snapshot import Snapshot
from tablestore.store.changes.changeplan import Step, StoredChanges, change_rule
from tablestore.store.context import TableContext
from tablestore.store.scan.scanplan import WantedFiles, plan_scan
from tablestore.store.scan.splits import OPEN_COST_BYTES, Split
from tablestore.types.schema import TableSchema


def frame_pieces(context: TableContext, snapshot: Snapshot) -> Sequence[Split]:
    """The rows of a snapshot that its changes add up to, a section each."""
    snapshot_context = context.at_schema(context.schemas.read(snapshot.schema_id))
    rule = change_rule(snapshot_context)
    # No two sections weigh so little together.
    return plan_scan(snapshot_context, snapshot, wanted=WantedFiles(at_level=rule.in_frame), split_bytes=1).splits


def files_of(step: Step) -> tuple[DataFileMeta, ...]:
    """The files whose rows are the changes of a step, or decide them."""
    return (step.entry.file,) if isinstance(step, StoredChanges) else step.touched


def weight_of(step: Step) -> int:
    """The cost of reading a step, as bytes."""
    read = (step.entry.file,) if isinstance(step, StoredChanges) else (*step.touched, *step.after)
    return sum(max(file.file_size, OPEN_COST_BYTES) for file in read)


def order_groups(schema: TableSchema, steps: Sequence[Step]) -> list[list[int]]:
    """The positions of steps that one reader has to read in their order: those in which the same key may change."""
    if not schema.is_keyed:
        return [[position] for position in range(len(steps))]
    if not set(schema.partition_keys) <= set(schema.primary_keys):
        # A key may move from partition to partition.
        return [list(range(len(steps)))]
    groups: dict[tuple[bytes, int], list[int]] = {}
    for position, step in enumerate(steps):
        groups.setdefault((step.partition, step.bucket), []).append(position)
    return list(groups.values())


def reading_of(reading: str, pieces: Iterable[Split | Step]) -> str:
    """The fingerprint of some pieces, in order, as they are read by a reader of this fingerprint; in 16 characters."""
    names = [[file.file_name for file in (piece.files if isinstance(piece, Split) else files_of(piece))] for piece in pieces]
    return hashlib.sha256(json.dumps([reading, names]).encode()).hexdigest()[:16]
