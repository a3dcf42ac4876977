"""Defines the cursor: the snapshots of its sources that the rows of a target were made from. The snapshot of these rows holds it.

So rows and cursor land together: a refresh that died has either landed or it never was. Compactions keep the cursor, every other
commit drops it: rows that something else wrote are no rows of the query.
"""

import hashlib
import json
from dataclasses import dataclass

from tablestore.format.snapshot import Snapshot
from tablestore.store.snapshots import CONTENT_PREFIX
from tablestore.table.table import Table

# Stored, never renamed.
CURSOR_PROPERTY = f"{CONTENT_PREFIX}cursor"
_QUERY, _SOURCES = "query", "sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One source at one snapshot, and the schema that it was read with. None: it has no uuid, or had no snapshot."""

    name: str
    table_uuid: str | None
    schema_id: int
    snapshot_id: int | None
    snapshot_uuid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCursor:
    """The points of all sources of a query, by the digest of its text."""

    query: str
    points: tuple[Point, ...]

    def of_source(self, name: str) -> Point | None:
        """The point of a source; None if it was none then."""
        return next((point for point in self.points if point.name == name), None)

    def to_text(self) -> str:
        """The text that is stored."""
        points = {point.name: [point.table_uuid, point.schema_id, point.snapshot_id, point.snapshot_uuid] for point in self.points}
        return json.dumps({_QUERY: self.query, _SOURCES: points}, separators=(",", ":"), sort_keys=True)


def digest_of(query: str) -> str:
    """The digest that stands for the text of a query."""
    return hashlib.sha256(query.encode()).hexdigest()


def stored_cursor(snapshot: Snapshot | None) -> str | None:
    """The text of a snapshot's cursor; None if its rows are not those of a refresh."""
    return None if snapshot is None else snapshot.properties.get(CURSOR_PROPERTY)


def parse_cursor(text: str | None) -> RefreshCursor | None:
    """A stored cursor; None for what is none, also of a later release."""
    try:
        content = json.loads(text or "null")
        points = tuple(
            Point(name=name, table_uuid=table, schema_id=schema, snapshot_id=snapshot, snapshot_uuid=uuid)
            for name, (table, schema, snapshot, uuid) in content[_SOURCES].items()
        )
        return RefreshCursor(query=content[_QUERY], points=points)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def point_of(name: str, table: Table, snapshot: Snapshot | None) -> Point:
    """A source at a snapshot."""
    return Point(
        name=name,
        table_uuid=table.context.table_uuid,
        schema_id=table.context.schema.id,
        snapshot_id=snapshot.id if snapshot else None,
        snapshot_uuid=snapshot.uuid if snapshot else None,
    )
