"""Keeps records that cannot become rows.

Into a table keyed by topic, partition and offset, before the rows around them are committed: a record that is read again after a
crash is the same row again. So there are exactly as many as there are such records.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.table.table import Table

DEAD_LETTER_KEY = ("topic", "partition", "offset")
DEAD_LETTER_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that cannot become a row, and why."""

    topic: str
    partition: int
    offset: int
    reason: str
    key: bytes | None
    value: bytes | None


class DeadLetters:
    """Keeps them in a table, of :data:`DEAD_LETTER_SCHEMA` with :data:`DEAD_LETTER_KEY`."""

    def __init__(self, table: Table) -> None:
        if table.primary_key != DEAD_LETTER_KEY or not set(DEAD_LETTER_SCHEMA.names) <= set(table.schema.names):
            raise InvalidInputError(
                f"table {table.name} takes no dead letters: expected the columns {', '.join(DEAD_LETTER_SCHEMA.names)} with the "
                f"primary key {', '.join(DEAD_LETTER_KEY)}; name a table that is not there, and it is made",
                kind="dead-letter-table",
            )
        self._table = table

    def keep(self, letters: Sequence[DeadLetter]) -> None:
        """Adds them, unless they are there."""
        self._table.refresh().upsert(letter_rows(letters))


def letter_rows(letters: Sequence[DeadLetter]) -> pa.Table:
    """Their rows in the table."""
    names = DEAD_LETTER_SCHEMA.names
    columns = [pa.array([getattr(letter, name) for letter in letters], DEAD_LETTER_SCHEMA.field(name).type) for name in names]
    return pa.Table.from_arrays(columns, schema=DEAD_LETTER_SCHEMA)
