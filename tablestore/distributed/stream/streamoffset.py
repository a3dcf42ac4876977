"""Offsets of a stream: the two places between which a batch lies, as text for an engine's checkpoint.

An engine keeps offsets in its own checkpoint, and asks for the rows between two of them, perhaps much later and in another
process. So an offset says all that repeating a batch takes:

    at         the position (:mod:`tablestore.log.position`) of the snapshot in which the batch ends; absent: nothing was read yet
    pieces     how many pieces of that snapshot are done
    reading    the fingerprint of those pieces, and of what is read of them
    begin      where the batch begins, if not where the one before it ended: the first batch, and one that begins anew
    consumer   the name under which the stream is registered with the table

    {"offset":1,"at":{"position":1,"table":"2c…","frame":[7,"8f…"],"rows":0,"reading":""},"pieces":12,"reading":"a1…",
     "begin":{…},"consumer":"stream-5d…"}

*Pieces* are what a snapshot is read by: of its rows sections of files, of its changes files, in an order that its manifests alone
decide (:mod:`~tablestore.distributed.stream.streamsteps`). The text of an offset is the same for the same value.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tablestore.errors import InvalidInputError
from tablestore.log.position import Position, parse_position

# Stored, never renumbered.
VERSION = 1
_KEYS = {"offset", "at", "pieces", "reading", "begin", "consumer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """An offset; without ``at`` it is the one before the first batch."""

    at: Position | None = None
    pieces: int = 0
    reading: str = ""
    begin: Position | None = None
    consumer: str = ""

    def to_json(self) -> dict[str, object]:
        """The offset as a JSON object; what is not there has no key."""
        parts: dict[str, object] = {"offset": VERSION}
        if self.at is not None:
            parts["at"] = self.at.to_json()
        if self.pieces:
            parts |= {"pieces": self.pieces, "reading": self.reading}
        if self.begin is not None:
            parts["begin"] = self.begin.to_json()
        if self.consumer:
            parts["consumer"] = self.consumer
        return parts


START = StreamOffset()


def parse_offset(value: object) -> StreamOffset:
    """Parses what :meth:`StreamOffset.to_json` made. Raises InvalidInputError of kind ``stream-offset``, and as
    parse_position."""
    if not isinstance(value, Mapping) or value.get("offset") != VERSION or not set(value) <= _KEYS:
        raise refused_offset(value)
    pieces, reading, consumer = value.get("pieces", 0), value.get("reading", ""), value.get("consumer", "")
    if not isinstance(pieces, int) or isinstance(pieces, bool) or pieces < 0:
        raise refused_offset(value)
    if not isinstance(reading, str) or not isinstance(consumer, str):
        raise refused_offset(value)
    at, begin = (parse_position(value[key]) if key in value else None for key in ("at", "begin"))
    return StreamOffset(at=at, pieces=pieces, reading=reading, begin=begin, consumer=consumer)


def refused_offset(value: object) -> InvalidInputError:
    """The error for a value that is no offset of ours, or none that can stand where it stands."""
    return InvalidInputError(
        f"expected an offset that a stream of a table made, found {json.dumps(value)[:200]}: the checkpoint is of another source, "
        "or of a newer release; give each stream a checkpoint of its own, and read on with the release that made it",
        kind="stream-offset",
    )
