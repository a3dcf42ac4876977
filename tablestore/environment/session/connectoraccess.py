"""Decides which permanent tables with a connector a session reads and writes.

    declared by this session (CREATE TABLE)                          yes: it is its own statement
    its connector, or its place, is in table.connectors.allowed      yes
    plain files inside of the warehouse of its catalog               read only
    else                                                             refused, with what to do

A definition is written by whoever may write into the warehouse. Reading one must not open files or addresses with the rights of
the reader, nor send the reader's secrets to a host that the definition names. Files inside of the warehouse are those that a reader
of it reads anyway: without patterns, without links, and outside of the directories of databases, whose files belong to tables. What
is written there by the word of another could take the place of anything, so it is only read.
"""

import os
import re
from collections.abc import Iterator, Mapping

from tablestore.environment.filelayout import FILESYSTEM
from tablestore.environment.session.keptobjects import check_computed
from tablestore.environment.session.objects import ConnectorTable
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import split_names

ALLOWED = "table.connectors.allowed"
_FORMATS = frozenset(["parquet", "csv", "json", "orc", "avro", "text"])
# Options of readers of files that name no other file, class or address.
_READING = frozenset([
    "charset", "codec", "compression", "dateformat", "delimiter", "emptyvalue", "encoding", "escape", "format", "header",
    "ignoreleadingwhitespace", "ignoretrailingwhitespace", "inferschema", "linesep", "mergeschema", "mode", "multiline",
    "nullvalue", "path", "prefertimestampntz", "quote", "sep", "timestampformat", "timestampntzformat", "timezone",
])  # fmt: skip
_PATTERN = re.compile(r"[*?\[\]{},\\%\x00-\x1f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SAME_STORES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_DATABASE = ".db"


def check_access(table: ConnectorTable, warehouse: str, allowed: str, *, writes: bool = False) -> None:
    """Raises UnsupportedError of kind ``connector-not-allowed`` for a permanent table that this session must not touch.

    ``warehouse``: the address of the catalog that keeps it; ``allowed``: the value of the setting.
    """
    if table.temporary or table.declared:
        return
    check_computed(table)
    names = split_names(allowed)
    path = next((value for key, value in table.options.items() if key.lower() == "path"), "")
    if table.connector in names or (table.connector == FILESYSTEM and any(_is_below(path, name) for name in names)):
        return
    reason = _outside(table.options, path, warehouse) if table.connector == FILESYSTEM else "it leads out of the warehouse"
    if reason is None and not writes:
        return
    place = f"the path {path!r:.200}" if table.connector == FILESYSTEM else f"the connector {table.connector!r:.80}"
    setting = path if table.connector == FILESYSTEM and path and "," not in path else table.connector
    reason = reason or "the definition of another is only read"
    raise UnsupportedError(
        f"{table.path} was defined by another session, with {place}, and this session does not {'write' if writes else 'read'} it: "
        f"{reason}. If you trust who writes into this warehouse, SET '{ALLOWED}' = '{setting:.200}' allows it; else "
        "CREATE TEMPORARY TABLE declares a table of your own",
        kind="connector-not-allowed",
    )


def check_allowed_setting(value: str) -> None:
    """Raises InvalidInputError for a value of the setting that allows nothing, or more than it says."""
    for name in split_names(value):
        if ".." in name.split("/") or ("/" in name and _SCHEME.match(name) is None and not os.path.isabs(name)):
            raise InvalidInputError(
                f"{ALLOWED}: expected names of connectors, whole paths and URLs, found {name!r:.200}; write the whole path",
                kind="invalid-option",
            )


def _is_below(path: str, place: str) -> bool:
    if "/" not in place or not path or ".." in re.split(r"[/\\]", path):
        return False
    path, place = _normal(path), _normal(place).rstrip("/")
    if "://" not in path:
        # A pattern is resolved up to its first special letter.
        plain = _PATTERN.split(path, maxsplit=1)[0]
        real, root = os.path.realpath(plain), os.path.realpath(place)
        return os.path.isabs(path) and (real == root or real.startswith(f"{root}/"))
    return path == place or path.startswith(f"{place}/")


def _outside(options: Mapping[str, str], path: str, warehouse: str) -> str | None:
    """The reason why a table is not plain files inside of a warehouse; None if it is."""
    keys = [key.lower() for key in options]
    if len(set(keys)) != len(keys):
        return "it has an option twice, in two spellings"
    if others := sorted(set(keys) - _READING):
        return f"its option {others[0]!r:.80} is none of a plain reader of files"
    file_format = next((value for key, value in options.items() if key.lower() == "format"), "parquet")
    if file_format.lower() not in _FORMATS:
        return f"its format {file_format!r:.80} is none of {', '.join(sorted(_FORMATS))}"
    if not path or _PATTERN.search(path) or ".." in path.split("/"):
        return "its path is none of a single file or folder"
    path, root = _normal(path), _normal(warehouse).rstrip("/")
    is_local = "://" not in root
    if is_local:
        if "://" in path or not os.path.isabs(path):
            return f"it lies outside of the warehouse {warehouse}"
        path, root = os.path.realpath(path), os.path.realpath(root)
    if not path.startswith(f"{root}/"):
        return f"it lies outside of the warehouse {warehouse}"
    first = path[len(root) + 1 :].split("/", 1)[0]
    if not first or first.endswith(_DATABASE) or first.startswith((".", "_")):
        return "it lies in a directory of the warehouse that belongs to tables"
    if is_local and (link := next(_links(path), None)) is not None:
        return f"{link!r:.200} is a link"
    return None


def _links(path: str) -> Iterator[str]:
    """The links below a local folder."""
    for folder, folders, files in os.walk(path):
        yield from (name for name in (*folders, *files) if os.path.islink(os.path.join(folder, name)))


def _normal(path: str) -> str:
    """A path or URL in the form that equal places share."""
    path = re.sub(r"^file:(//)?(?=/)", "", path)
    match = _SCHEME.match(path)
    if match is None:
        return path
    scheme = match[1].lower()
    return f"{_SAME_STORES.get(scheme, scheme)}://{path[match.end() :]}"
