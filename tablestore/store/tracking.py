"""Change tracking: decides which changes readers of changes do not get.

    change-tracking = false                        all of the table
    change-tracking.untracked-partitions           those of these partitions
    overwrites, without streaming-read-overwrite   all of the overwrite

A commit notes in its properties what it leaves out. Readers go by the snapshot, not by today's options. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tablestore import options as opt
from tablestore.format.binaryrow import decode_row
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.options import TableOptions
from tablestore.types.partitionspec import PartitionSpecs, parse_partition_specs, print_partition_specs
from tablestore.types.schema import TableSchema

TRACKED_PROPERTY = "tablestore.tracked"
UNTRACKED_PARTITIONS_PROPERTY = "tablestore.untracked-partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """The changes that a table's options leave out. ``tracked`` False: everything."""

    schema: TableSchema
    tracked: bool
    overwrites: bool
    untracked: PartitionSpecs

    @property
    def is_whole(self) -> bool:
        """True if readers of changes see all that is written."""
        return self.tracked and not self.untracked.specs

    def includes(self, partition: Sequence[object]) -> bool:
        """True if they see the changes of a partition, given as the values of its columns."""
        return self.tracked and not self.untracked.covers(partition)

    def notes(self, kind: CommitKind, partitions: Iterable[bytes]) -> dict[str, str]:
        """The properties of a commit that changes rows of these partitions: the note which of them readers of changes do not
        see."""
        changed = set(partitions)
        tracked = self.tracked if kind is not CommitKind.OVERWRITE else self.tracked and self.overwrites
        notes = {TRACKED_PROPERTY: "false" if changed and not tracked else "true"}
        if tracked and self.untracked.specs:
            types = [field.type for field in self.schema.partition_fields]
            kept_back = self.untracked.of(decode_row(partition, types) for partition in changed)
            if kept_back.specs:
                notes[UNTRACKED_PARTITIONS_PROPERTY] = print_partition_specs(self.schema, kept_back)
        return notes


def tracking_of(schema: TableSchema) -> Tracking:
    """The change tracking that the options of a schema say. Raises InvalidInputError for partitions that the table cannot have."""
    options = TableOptions(schema.options)
    return Tracking(
        schema=schema,
        tracked=options.flag(opt.CHANGE_TRACKING),
        overwrites=options.flag(opt.STREAMING_READ_OVERWRITE),
        untracked=parse_partition_specs(schema, schema.options.get(opt.UNTRACKED_PARTITIONS.key)),
    )


def is_tracked(snapshot: Snapshot) -> bool:
    """True if readers of changes may see any change of a snapshot. Snapshots of other engines note nothing."""
    return snapshot.properties.get(TRACKED_PROPERTY) != "false"


def untracked_text(snapshot: Snapshot) -> str | None:
    """:func:`untracked_partitions`, as they are noted; None if there are none."""
    return snapshot.properties.get(UNTRACKED_PARTITIONS_PROPERTY)


def untracked_partitions(snapshot: Snapshot, schema: TableSchema) -> PartitionSpecs:
    """The partitions of which readers of changes see nothing in this snapshot of that schema."""
    return parse_partition_specs(schema, untracked_text(snapshot))
