"""Finds the files of a table with the connector ``filesystem``, as Spark finds them: all below a folder but hidden ones."""

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tablestore.environment.engine import WAY_OF_TOPICS, ConnectorRelation
from tablestore.environment.filelayout import FILESYSTEM, NULL_FOLDER, folder_key, is_hidden
from tablestore.errors import InvalidInputError, StorageError, UnsupportedError
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import Field

FORMATS = ("parquet", "csv", "json", "orc", "avro")
_GLOB = re.compile(r"[*?\[{]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTable:
    """A table of files. ``options``: all others, by their names in lower case; ``fields``: None where it declares no columns."""

    name: str
    path: str
    file_format: str
    options: dict[str, str]
    fields: tuple[Field, ...] | None
    partition_by: tuple[str, ...]

    @staticmethod
    def of(relation: ConnectorRelation, *, verb: str = "read") -> "FileTable":
        """The table of a relation. Raises InvalidInputError, and UnsupportedError for what only Spark reads or writes."""
        if relation.connector != FILESYSTEM:
            is_topic = relation.connector == "kafka" and verb == "read"
            raise UnsupportedError(
                f"the engine duckdb does not {verb} table {relation.name} with the connector {relation.connector!r}, only "
                f"filesystem; {WAY_OF_TOPICS if is_topic else 'run the statement on the engine spark'}",
                kind="engine",
            )
        options = {key.lower(): value for key, value in relation.options.items()}
        path, file_format = options.pop("path", None), options.pop("format", "parquet").lower()
        if not path:
            raise InvalidInputError(
                f"table {relation.name} has the connector filesystem and no option 'path'", kind="missing-option"
            )
        if file_format not in FORMATS:
            raise UnsupportedError(
                f"the engine duckdb {verb}s files of the formats {', '.join(FORMATS)}, table {relation.name} has format = "
                f"{file_format!r}; run the statement on the engine spark",
                kind="engine",
            )
        fields = None if relation.schema is None else fields_from_arrow(relation.schema, where=f"table {relation.name}")[0]
        return FileTable(
            name=relation.name,
            path=re.sub(r"^file:(//)?(?=/)", "", path),
            file_format=file_format,
            options=options,
            fields=None if fields is None else tuple(fields),
            partition_by=relation.partition_by,
        )

    @property
    def is_pattern(self) -> bool:
        """True if the path names no place, but those that it matches, or is an address."""
        return not Path(self.path).exists() and (_GLOB.search(self.path) is not None or self.is_address)

    @property
    def is_address(self) -> bool:
        """True if the path is none of this machine."""
        return _SCHEME.match(self.path) is not None

    @property
    def is_below_pairs(self) -> bool:
        """True if a folder of the path itself has the name of a partition's."""
        return "=" in self.path

    def keys_below(self, places: Sequence[str]) -> frozenset[str]:
        """The names that folders below the path give to values, of its first file."""
        depth = len([part for part in self.path.split("/") if part])
        folders = [part for part in places[0].split("/") if part][depth:-1] if places else []
        return frozenset(part.partition("=")[0] for part in folders if "=" in part)

    @property
    def stored_fields(self) -> list[Field]:
        """The declared columns that files hold."""
        return [field for field in self.fields or () if field.name not in self.partition_by]

    def files(self) -> list[str]:
        """All files of a path that is there, ascending. Raises StorageError where nothing is."""
        if not Path(self.path).exists():
            raise StorageError(
                f"table {self.name}: expected files in path = {self.path!r:.200}, found nothing there; correct the path, or write "
                "rows, which makes the folder"
            )
        if not Path(self.path).is_dir():
            return [self.path]
        return sorted(visible_files(self.path))

    def matches(self) -> list[str]:
        """All files of a path or pattern of this machine, ascending."""
        if not self.is_pattern:
            return self.files()
        places = (place for place in glob.glob(self.path, recursive=True) if not is_hidden(os.path.basename(place)))
        return sorted({file for place in places for file in (visible_files(place) if os.path.isdir(place) else (place,))})


def visible_files(folder: str) -> Iterator[str]:
    """The files below a folder that are part of its table."""
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (os.path.join(place, name) for name in names if not is_hidden(name))


def connector_folder(relation: ConnectorRelation) -> Iterator[str]:
    """The folder that the files of a table lie in, if it has one: of a pattern all before its first special letter.

    One with special letters in its name comes twice: as it is, and as the patterns of DuckDB name it.
    """
    path = next((value for key, value in relation.options.items() if key.lower() == "path"), "")
    if relation.connector == FILESYSTEM and path:
        path = path.removeprefix("file://")
        plain = path if Path(path).exists() else _GLOB.split(path, maxsplit=1)[0]
        folder = plain if Path(plain).is_dir() else os.path.dirname(plain) or "."
        yield from {folder, glob.escape(folder)}


def partition_texts(file: str, partition_by: Sequence[str]) -> list[str | None]:
    """The texts of the partition values of a file, by the names of its folders. Raises InvalidInputError where these do not say."""
    values = dict(part.split("=", 1) for part in file.split("/")[:-1] if "=" in part)
    texts: list[str | None] = []
    for name in partition_by:
        value = values.get(folder_key(name))
        if value is None:
            raise InvalidInputError(
                f"{file}: expected a folder {folder_key(name)}=… above it, as the table is PARTITIONED BY {name}; move the file "
                "into one, or leave PARTITIONED BY out",
                kind="invalid-partitioning",
            )
        texts.append(None if value == NULL_FOLDER else unquote(value))
    return texts
