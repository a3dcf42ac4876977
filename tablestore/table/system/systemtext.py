"""Prints values as system tables spell them: partitions, keys and statistics as text, times as wall-clock time.

The spelling is Paimon's, so that a query of ``$files`` gives the same whichever engine runs it:

    partition of $files, $buckets     {2024-01-01, 7}      values as SQL casts them to text, null for null
    partition of $partitions          day=2024-01-01/n=7   the same, null as the name of its directory
    keys                              [1, a]               values as they are held: a date is its day number
    statistics                        {id=1, name=a}       the same, by column name
    times                             TIMESTAMP(3) of the local time zone
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from tablestore.errors import TablestoreError
from tablestore.format.binaryrow import decode_row
from tablestore.format.partitiontext import partition_value_text
from tablestore.types.datatypes import DataType, Field


def value_text(value: object, data_type: DataType, *, cast: bool) -> str:
    """One value; ``cast``: as SQL casts it. Bytes are hexadecimal."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return value.hex()
    try:
        return partition_value_text(value, data_type, legacy=not cast)
    except TablestoreError:
        return str(value)


def row_text(row: bytes, fields: Sequence[Field]) -> str:
    """A partition: ``{a, b}``."""
    types = [field.type for field in fields]
    values = decode_row(row, types)
    return "{" + ", ".join(value_text(v, t, cast=True) for v, t in zip(values, types, strict=True)) + "}"


def partition_text(row: bytes, fields: Sequence[Field], default_name: str) -> str:
    """A partition: ``a=1/b=2``."""
    values = decode_row(row, [field.type for field in fields])
    pairs = zip(fields, values, strict=True)
    return "/".join(f"{f.name}={default_name if v is None else value_text(v, f.type, cast=True)}" for f, v in pairs)


def key_text(row: bytes, fields: Sequence[Field]) -> str | None:
    """A key: ``[1, a]``; None where a table has none."""
    types = [field.type for field in fields]
    if not types:
        return None
    return "[" + ", ".join(value_text(v, t, cast=False) for v, t in zip(decode_row(row, types), types, strict=True)) + "]"


def named_text(texts: Mapping[str, str]) -> str:
    """Texts by column: ``{a=1, b=null}``, sorted by name."""
    return "{" + ", ".join(f"{name}={texts[name]}" for name in sorted(texts)) + "}"


def local_time(millis: int) -> datetime:
    """A moment as the wall clock of this process shows it, without a time zone."""
    return datetime.fromtimestamp(millis / 1000, UTC).astimezone().replace(tzinfo=None)


def stored_time(millis: int | None) -> datetime | None:
    """A creation time of a file: stored as wall-clock time already."""
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC).replace(tzinfo=None)


def duration_text(millis: int) -> str:
    """ISO 8601 as Java prints it: ``PT24H``, ``PT1M30.5S``."""
    minutes, millis_left = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{millis_left / 1000:.3f}".rstrip("0").rstrip(".")
    text = f"{f'{hours}H' if hours else ''}{f'{minutes}M' if minutes else ''}{f'{seconds}S' if millis_left else ''}"
    return f"PT{text or '0S'}"
