"""Table schemas: columns, keys, partitioning and options, as one schema file holds them.

A :class:`TableSchema` is what one schema file holds. Field ids are given in pre-order from 0, fields of nested rows
from the same counter, and are never re-used. What a new schema may be is said in ``newschema``.

    primary key = partition columns + trimmed primary key      (the trimmed key orders the rows of a bucket)
    bucket key  = option ``bucket-key``, else the trimmed primary key

Reading a schema file needs no Arrow: names and options are there at once, also for the completion of a command line.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.lazy import lazy
from tablestore.names import did_you_mean
from tablestore.options import BUCKET_KEY, TableOptions
from tablestore.types.datatypes import Field

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 3
KEY_PREFIX = "_KEY_"

DYNAMIC_BUCKET = -1
POSTPONE_BUCKET = -2


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """One version of a table's schema, as stored. What is worked out from it is worked out once."""

    version: int = SCHEMA_VERSION
    id: int
    fields: tuple[Field, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]
    comment: str | None = None
    time_millis: int = 0

    def field(self, name: str) -> Field:
        """The column of that name; NotFoundError names the nearest and all known ones."""
        if (field := self._by_name.get(name)) is not None:
            return field
        raise NotFoundError(
            f"no column {name!r}{did_you_mean(name, self.field_names)} (columns: {', '.join(self.field_names)})",
            kind="unknown-column",
        )

    @lazy
    def field_names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(field.name for field in self.fields)

    @lazy
    def columns_digest(self) -> bytes:
        """A digest of the columns, for caches: schemas of two branches may have one id."""
        return hashlib.sha256(repr(self.fields).encode()).digest()

    @lazy
    def _by_name(self) -> dict[str, Field]:
        # Whoever looks for each of its columns pays for each once, however many a schema has.
        return {field.name: field for field in self.fields}

    @property
    def is_keyed(self) -> bool:
        """True if the table has a primary key."""
        return bool(self.primary_keys)

    @lazy
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The primary key without the partition columns, in its order."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @lazy
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns whose hash picks the bucket, in hashing order; empty for append tables without one."""
        return TableOptions(self.options).names(BUCKET_KEY) or self.trimmed_primary_keys

    @lazy
    def partition_fields(self) -> tuple[Field, ...]:
        """The partition columns, in partitioning order."""
        return tuple(self.field(name) for name in self.partition_keys)

    @lazy
    def key_fields(self) -> tuple[Field, ...]:
        """The columns of the trimmed primary key, in key order."""
        return tuple(self.field(name) for name in self.trimmed_primary_keys)

    @lazy
    def arrow_schema(self) -> "pa.Schema":
        """The canonical Arrow schema of the columns."""
        from tablestore.types.arrowtypes import to_arrow_schema

        return to_arrow_schema(self.fields)


def check_known(schema: TableSchema, names: Sequence[str], what: str) -> None:
    """Refuse names of columns that do not exist; ``what`` is for the message. Raises InvalidInputError."""
    for name in names:
        if name not in schema.field_names:
            raise InvalidInputError(
                f"the {what} names the column {name!r}, which does not exist"
                f"{did_you_mean(name, schema.field_names)} (columns: {', '.join(schema.field_names)})",
                kind="unknown-column",
            )
