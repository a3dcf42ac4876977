"""Reads the values behind ``VERSION AS OF`` and ``TIMESTAMP AS OF`` as the snapshot of a table that they name."""

from typing import Any

from tablestore.errors import InvalidInputError
from tablestore.table.table import Table
from tablestore.timepoint import epoch_millis


def version_argument(table: Table, value: object) -> dict[str, Any]:
    """``snapshot_id`` or ``tag``. Raises InvalidInputError for what names neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return {"snapshot_id": value}
    if isinstance(value, str) and value:
        # A tag comes first; a number between quotes is a snapshot where no tag has this name.
        if value.isascii() and value.isdigit() and value not in {tag.name for tag in table.tags()}:
            return {"snapshot_id": int(value)}
        return {"tag": value}
    raise InvalidInputError(f"VERSION AS OF: expected a snapshot id or the name of a tag, found {value!r:.80}", kind="time-travel")


def time_argument(value: object) -> int:
    """Milliseconds since the epoch; a number counts seconds, as Spark's do."""
    return value * 1000 if isinstance(value, int) and not isinstance(value, bool) else epoch_millis(value, "AS OF")
