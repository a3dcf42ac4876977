"""Finds the offsets at which an ingest goes on: its last commit names them, whatever has happened to the table's snapshots since.

Every commit has the number after the one before, and the table takes each number once: of two processes of one name only one gets
on. Positions are offsets, and offsets mean something only within one topic: one that was deleted and made again is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tablestore.cdc.ingest.ingestrequest import IngestRequest
from tablestore.cdc.sourceposition import SourcePosition, parse_position
from tablestore.cdc.topicsource import Offsets, PositionLost, TopicSource
from tablestore.errors import ConflictError, InvalidInputError
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.store.replay import SOURCE_POSITION_PROPERTY, Replays

Bounds = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The offsets at which an ingest goes on. ``identifier``: of the last commit, -1 before the first. ``recorded``: the table says
    the same."""

    identifier: int
    offsets: Offsets
    recorded: bool


def user_of(name: str) -> str:
    """The commit user of an ingest."""
    return f"ingest:{name}"


def find_beginning(context: TableContext, request: IngestRequest, source: TopicSource, source_id: str) -> Beginning:
    """Finds the offsets to begin at. Raises PositionLost, InvalidInputError (another topic), FormatError."""
    progress = Replays(context.files, context.snapshots).progress(user_of(request.name), context.snapshots.latest())
    bounds = source.bounds()
    identifier, text = (-1, None) if progress is None else progress
    if request.reset or progress is None:
        edge = 0 if request.start == "earliest" else 1
        # The end of the topic is known only now: it has to be kept, as a reset has.
        return Beginning(
            identifier=identifier,
            offsets={partition: ends[edge] for partition, ends in bounds.items()},
            recorded=progress is None and request.start == "earliest",
        )
    where = f"the ingest {request.name!r} into {context.files.root_uri}"
    position = parse_position(text or "", where=where)
    if (position.source, position.source_id) != (source.name, source_id):
        was = "another topic of that name" if position.source == source.name else f"topic {position.source}"
        raise InvalidInputError(
            f"{where} has read {was} (id {position.source_id}) so far, found topic {source.name} (id {source_id}); give this one "
            "another name, or begin anew with reset",
            kind="other-topic",
        )
    return Beginning(identifier=identifier, offsets=_checked(position.offsets, bounds, where), recorded=True)


def with_new_partitions(offsets: Offsets, bounds: Bounds) -> dict[int, int]:
    """The offsets, and the first ones of partitions that were added since."""
    return {partition: offsets.get(partition, ends[0]) for partition, ends in bounds.items()}


def _checked(offsets: Offsets, bounds: Bounds, where: str) -> Offsets:
    for partition, offset in offsets.items():
        first, end = bounds.get(partition, (0, 0))
        if not first <= offset <= end:
            loss = "records between were lost to its retention" if offset < first else "it lost records that were there"
            raise PositionLost(
                f"{where} goes on at offset {offset} of partition {partition}, and the topic has {first} to {end}: {loss}. To go "
                "on with what is there, begin anew with reset, at the earliest or the latest record"
            )
    return with_new_partitions(offsets, bounds)


def check_landed(snapshot: Snapshot | None, position: SourcePosition, name: str, table: str) -> Snapshot:
    """The snapshot of this very commit. Raises ConflictError (``fenced``) if another process has committed in its place."""
    text = snapshot.properties.get(SOURCE_POSITION_PROPERTY) if snapshot is not None else None
    if snapshot is None or text is None or parse_position(text, where=table).run != position.run:
        raise ConflictError(
            f"another process ingests {position.source} into {table} under the name {name!r} and has gone on from the same place; "
            "nothing of this commit is visible. Leave it the work, or give this ingest another name",
            kind="fenced",
        )
    return snapshot
