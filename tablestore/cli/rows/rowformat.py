"""The forms in which rows enter and leave: what a command's help has to know, without what reads and writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from tablestore.errors import InvalidInputError

# What may stand behind the name of a file, and what Arrow calls it.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class RowFormat(StrEnum):
    """The format in which rows are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class FileFormat(StrEnum):
    """The formats that a file of rows may have."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"


_SUFFIXES = {
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".arrow": FileFormat.ARROW,
    ".feather": FileFormat.ARROW,
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.TSV,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
}


@dataclass(kw_only=True)
class ReadSettings:
    """The way to read a file: its format (None: by name), and how its CSV is written."""

    file_format: FileFormat | None = None
    delimiter: str | None = None
    null: str = ""
    header: bool = True
    columns: Sequence[str] | None = None


def looks_like_rows(path: str) -> bool:
    """True if the name says that it is a file of rows."""
    return _named_format(path) is not None


def _named_format(path: str) -> FileFormat | None:
    pure = PurePosixPath(path)
    if pure.suffix.lower() in COMPRESSIONS:
        pure = pure.with_suffix("")
    return _SUFFIXES.get(pure.suffix.lower())


def format_of(path: str) -> FileFormat:
    """The format that the name of a file says. Raises InvalidInputError where it does not say so."""
    file_format = _named_format(path)
    if file_format is None:
        raise InvalidInputError(
            f"cannot tell from the name what {path!r} is: expected {', '.join(_SUFFIXES)}; pass --file-format", kind="file-format"
        )
    return file_format
