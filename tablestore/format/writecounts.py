"""Counts what one commit did: rows, files and bytes, as one property of its snapshot.

    tablestore.counts = {"rows_affected":3,"rows_inserted":null,"rows_updated":null,"files_added":1,"bytes_added":812}

A count that is absent is 0, and null is one that the commit did not know: an upsert does not look up which of its keys were there.
Snapshots of other writers, and of older releases, have no such property: nothing is known of them.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple

# Stored, never renamed, as are the fields of WriteCounts.
COUNTS_PROPERTY = "tablestore.counts"
_MOST = 2**63 - 1


class RowCounts(NamedTuple):
    """Counts the rows that a commit inserted, updated and deleted, and all of them together; None where it does not know.

    ``affected``: of rows that were written, and of which it is not known whether they were there, those too.
    """

    inserted: int | None
    updated: int | None
    deleted: int | None
    affected: int | None


NO_ROWS = RowCounts(0, 0, 0, 0)
UNKNOWN_ROWS = RowCounts(None, None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCounts:
    """Counts what one commit did; None where it does not know.

    ``rows_affected``: the rows inserted, updated and deleted; of an upsert or of changes, where these are not known apart, the rows
    written. Files are data files, without those that only moved to another level; their bytes are those in storage.
    """

    rows_affected: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    files_added: int | None = None
    files_removed: int | None = None
    bytes_added: int | None = None
    bytes_removed: int | None = None

    @property
    def text(self) -> str:
        """The rows in words: ``2 rows inserted, 1 row deleted``, ``3 rows written``, ``up to 3 rows deleted``, ``no row changed``;
        empty if nothing is known of them."""
        parts = ((self.rows_inserted, "inserted"), (self.rows_updated, "updated"), (self.rows_deleted, "deleted"))
        known = [f"{_rows(count)} {word}" for count, word in parts if count]
        unknown = [word for count, word in parts if count is None]
        if not unknown:
            return ", ".join(known) or "no row changed"
        if self.rows_affected is not None:
            written = _rows(self.rows_affected)
            return f"{written} written" if known or len(unknown) > 1 else f"up to {written} {unknown[0]}"
        return ", ".join([*known, f"rows {' and '.join(unknown)} not counted"]) if len(unknown) < len(parts) else ""


UNKNOWN_COUNTS = WriteCounts()
COUNT_NAMES = tuple(field.name for field in fields(WriteCounts))
NOTHING_DONE = WriteCounts(**dict.fromkeys(COUNT_NAMES, 0))


def together(many: Iterable[WriteCounts]) -> WriteCounts:
    """The sums over several commits; None where one of them does not know."""
    sums: dict[str, int | None] = dict.fromkeys(COUNT_NAMES, 0)
    for counts in many:
        for name, before in sums.items():
            count = getattr(counts, name)
            sums[name] = None if before is None or count is None else before + count
    return WriteCounts(**sums)


def encode_counts(rows: RowCounts, added: tuple[int | None, int | None], removed: tuple[int | None, int | None]) -> str:
    """The text of the property. ``added``, ``removed``: the number of files, and their bytes."""
    counts = (rows.affected, rows.inserted, rows.updated, rows.deleted, added[0], removed[0], added[1], removed[1])
    stored: dict[str, int | None] = {}
    for name, count in zip(COUNT_NAMES, counts, strict=True):
        if count != 0:
            stored[name] = count
    return json.dumps(stored, separators=(",", ":"))


def decode_counts(text: str | None) -> WriteCounts:
    """The counts in the property; of a text that is none, and where there is none, nothing is known."""
    if text is None:
        return UNKNOWN_COUNTS
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):
        return UNKNOWN_COUNTS
    if not isinstance(stored, dict):
        return UNKNOWN_COUNTS
    counts: dict[str, int | None] = {}
    for name in COUNT_NAMES:
        counts[name] = count = stored.get(name, 0)
        if count is not None and not (type(count) is int and 0 <= count <= _MOST):
            return UNKNOWN_COUNTS
    return WriteCounts(**counts)


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"
