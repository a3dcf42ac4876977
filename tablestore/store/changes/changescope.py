"""Decides which partitions of a snapshot's changes a reader gets.

    its partitions  -  the untracked ones  -  those that the reader's filter leaves out

Untracked partitions that the reader wants, and a snapshot without recorded changes, are a *discontinuity*. Pure.
"""

from dataclasses import dataclass

from tablestore.format.binaryrow import decode_row
from tablestore.format.snapshot import Snapshot
from tablestore.store.tracking import untracked_partitions, untracked_text
from tablestore.types.filter.predicate import Predicate, keep_only
from tablestore.types.filter.pruning import values_may_match
from tablestore.types.partitionspec import PartitionSpec, PartitionSpecs
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Discontinuity:
    """A snapshot some or all of whose changes are not recorded. A reader starts again after it, or continues without them."""

    snapshot_id: int
    reason: str


def discontinuity(snapshot: Snapshot, reason: str) -> Discontinuity:
    """The discontinuity of a snapshot, with ``reason`` after its name."""
    operation = f" ({snapshot.operation})" if snapshot.operation else ""
    return Discontinuity(
        snapshot_id=snapshot.id, reason=f"snapshot {snapshot.id} of kind {snapshot.commit_kind}{operation} {reason}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeScope:
    """The partitions whose changes a reader gets of one snapshot: those that may match ``wanted``, without ``untracked``."""

    schema: TableSchema
    wanted: Predicate | None
    untracked: PartitionSpecs

    def includes(self, partition: bytes) -> bool:
        """True if the changes of a partition are read."""
        if self.wanted is None and not self.untracked.specs:
            return True
        values = decode_row(partition, [field.type for field in self.schema.partition_fields])
        return not self.untracked.covers(values) and self._wants(dict(zip(self.schema.partition_keys, values, strict=True)))

    def gap(self, snapshot: Snapshot) -> Discontinuity | None:
        """The discontinuity, if any of the wanted changes are left out."""
        if not any(self._wants(spec) for spec in self.untracked.specs):
            return None
        return discontinuity(snapshot, f"leaves out partitions with change-tracking = false: {untracked_text(snapshot)}")

    def _wants(self, spec: PartitionSpec) -> bool:
        return self.wanted is None or values_may_match(self.wanted, spec)


def change_scope(snapshot: Snapshot, schema: TableSchema, predicate: Predicate | None) -> ChangeScope:
    """The scope of a snapshot of that schema for a reader of these rows."""
    # Where a key may lie in any partition, its row elsewhere may be the one before.
    pruned = not schema.is_keyed or set(schema.partition_keys) <= set(schema.primary_keys)
    return ChangeScope(
        schema=schema,
        wanted=keep_only(predicate, schema.partition_keys) if pruned else None,
        untracked=untracked_partitions(snapshot, schema),
    )
