"""How far has a reader of a table come?

    frame     snapshot 7, 5000 rows     in the midst of the rows that snapshot 7 holds
    changes   snapshot 8, 20 rows       snapshot 7 is done, and 20 changes of snapshot 8

A position is a value: it is stored in a named consumer's file, or by users beside their own results, and reading goes on from it
with nothing lost and nothing twice. Rows are counted as they were handed out, so a position inside of a snapshot holds for
the same columns and filter only; ``reading`` is their fingerprint.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tablestore.errors import InvalidInputError

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

    def behind(self) -> "Position":
        """The place behind the snapshot: the first change of the one after it."""
        return Position(phase="changes", snapshot_id=self.snapshot_id + 1, reading=self.reading)

    def to_json(self) -> dict[str, object]:
        """As a JSON object."""
        return {"phase": self.phase, "snapshot": self.snapshot_id, "rows": self.rows, "reading": self.reading}

    def __str__(self) -> str:
        return json.dumps(self.to_json(), separators=(",", ":"))


def parse_position(value: object) -> Position:
    """What :meth:`Position.to_json` or ``str()`` made. Raises InvalidInputError for anything else."""
    if isinstance(value, Position):
        return value
    content: object = value
    if isinstance(value, str):
        try:
            content = json.loads(value)
        except ValueError as error:
            raise _no_position(value) from error
    if not isinstance(content, Mapping):
        raise _no_position(value)
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


def fingerprint(columns: tuple[str, ...], filter_text: str | None, pairs: bool) -> str:
    """What is read, in 16 characters."""
    text = json.dumps([list(columns), filter_text, pairs])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _no_position(value: object) -> InvalidInputError:
    return InvalidInputError(f"expected a position that a batch of table.consume(...) gave, found {value!r:.200}", kind="position")
