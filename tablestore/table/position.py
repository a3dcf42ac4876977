"""How far has a reader of a table come?

    frame     snapshot 7, 5000 rows     in the midst of the rows that snapshot 7 holds
    changes   snapshot 8, 20 rows       snapshot 7 is done, and 20 changes of snapshot 8
    log       base 7, bucket 0 at 120   snapshot 7 is done; what follows is read from the log, each bucket from its own place

A position is a value: it is stored in a named consumer's file, or by users beside their own results, and reading goes on from it
with nothing lost and nothing twice. Rows are counted as they were handed out, so a position inside of a snapshot holds for
the same columns and filter only; ``reading`` is their fingerprint.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tablestore.errors import InvalidInputError
from tablestore.log.record import Mark

Phase = Literal["frame", "changes"]

# Stored, never renamed: an extra key of the consumer's file.
POSITION_KEY = "tablestore.position"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """``snapshot_id``: the snapshot that reading needs next, ``rows``: how many of its rows or changes were handed out."""

    phase: Phase
    snapshot_id: int
    rows: int = 0
    reading: str = ""

    @property
    def needed_snapshot(self) -> int:
        """The oldest snapshot that reading on from here needs."""
        return self.snapshot_id

    def behind(self) -> "Position":
        """The place behind the snapshot: the first change of the one after it."""
        return Position(phase="changes", snapshot_id=self.snapshot_id + 1, reading=self.reading)

    def to_json(self) -> dict[str, object]:
        """As a JSON object."""
        return {"phase": self.phase, "snapshot": self.snapshot_id, "rows": self.rows, "reading": self.reading}

    def __str__(self) -> str:
        return json.dumps(self.to_json(), separators=(",", ":"))


def parse_position(value: object) -> "Position | LogPlace":
    """What ``to_json`` or ``str()`` made of a position. Raises InvalidInputError for anything else."""
    if isinstance(value, (Position, LogPlace)):
        return value
    content: object = value
    if isinstance(value, str):
        try:
            content = json.loads(value)
        except ValueError as error:
            raise _no_position(value) from error
    if not isinstance(content, Mapping):
        raise _no_position(value)
    if content.get("phase") == "log":
        return parse_log_place(content)
    phase, snapshot_id, rows = content.get("phase"), content.get("snapshot"), content.get("rows")
    reading = content.get("reading", "")
    if (
        phase not in ("frame", "changes")
        or not _is_count(snapshot_id, 1)
        or not _is_count(rows, 0)
        or not isinstance(reading, str)
        or not isinstance(snapshot_id, int)
        or not isinstance(rows, int)
    ):
        raise _no_position(value)
    return Position(phase="frame" if phase == "frame" else "changes", snapshot_id=snapshot_id, rows=rows, reading=reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """Where a reader of the log stands: per bucket the next position, and the last change handed out.

    ``base``: everything up to this snapshot is done in every bucket. ``incarnation``: the log that the positions are of.
    """

    incarnation: str
    base: int
    offsets: Mapping[int, int]
    marks: Mapping[int, Mark] = field(default_factory=dict)

    @property
    def needed_snapshot(self) -> int:
        """The oldest snapshot that reading on from here may need, if the log does not hold it."""
        return self.base + 1

    def mark(self, bucket: int) -> Mark:
        """The last change that is done in a bucket."""
        whole = Mark(self.base, 2**62)
        return max(self.marks.get(bucket, whole), whole)

    def moved(self, bucket: int, next_offset: int, mark: Mark | None) -> "LogPlace":
        """The place behind a record of a bucket."""
        marks = self.marks if mark is None else {**self.marks, bucket: mark}
        return replace(self, offsets={**self.offsets, bucket: next_offset}, marks=marks)

    def at_base(self, snapshot_id: int) -> "LogPlace":
        """The same with everything up to ``snapshot_id`` done."""
        marks = {bucket: mark for bucket, mark in self.marks.items() if mark.snapshot_id > snapshot_id}
        return replace(self, base=snapshot_id, marks=marks)

    def to_json(self) -> dict[str, object]:
        """As a JSON object."""
        return {
            "phase": "log",
            "log": self.incarnation,
            "base": self.base,
            "offsets": {str(bucket): offset for bucket, offset in sorted(self.offsets.items())},
            "marks": {str(bucket): [mark.snapshot_id, mark.ordinal] for bucket, mark in sorted(self.marks.items())},
        }

    def __str__(self) -> str:
        return json.dumps(self.to_json(), separators=(",", ":"))


def parse_log_place(content: Mapping[str, object]) -> LogPlace:
    """What :meth:`LogPlace.to_json` made. Raises InvalidInputError."""
    try:
        offsets, marks = content["offsets"], content["marks"]
        base, incarnation = content["base"], content["log"]
        if not (
            isinstance(offsets, Mapping) and isinstance(marks, Mapping) and isinstance(base, int) and isinstance(incarnation, str)
        ):
            raise TypeError("wrong types")
        return LogPlace(
            incarnation=incarnation,
            base=base,
            offsets={int(bucket): int(offset) for bucket, offset in offsets.items()},
            marks={int(bucket): Mark(int(snapshot), int(ordinal)) for bucket, (snapshot, ordinal) in marks.items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"expected a position in the log that a batch of table.consume(...) gave, found {content!r:.200}"
        ) from error


def fingerprint(columns: tuple[str, ...], filter_text: str | None, pairs: bool) -> str:
    """What is read, in 16 characters."""
    text = json.dumps([list(columns), filter_text, pairs])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _no_position(value: object) -> InvalidInputError:
    return InvalidInputError(f"expected a position that a batch of table.consume(...) gave, found {value!r:.200}", kind="position")
