"""The options of the data source ``tablestore`` in Spark, parsed once.

    the table   path                     its directory or URL (what load() and save() take), or
                warehouse and table      the warehouse of a catalog, and database.table in it
                                         (both may end in $files or another system table, or in $branch_<name>)
                storage.<key>            an option of the file system: storage.key, storage.secret, storage.endpoint_url, …
                                         or of the catalog: storage.metastore, storage.uri, …
    reading     columns                  names separated by commas, or a JSON list of names
                filter                   SQL text: price > 10 AND day = '2024-01-01'
                snapshot-id              reads the table as of this snapshot
                timestamp-millis         reads the table as of this time, in milliseconds since the epoch
                split-size               the most bytes of data files that one task reads, such as 64 mb (default 128 mb)
    streams     log.scan                 begins with all rows (full), with what comes (latest), at a time (from-timestamp) or
                                         behind a snapshot (from-snapshot); default: the table's option
                log.scan.timestamp-mills milliseconds since the epoch, and
                from-snapshot            the id of that snapshot, 0 for all changes
                row-kinds                true: all changes, with _row_kind (+I, +U, -D) first; else only new rows
                pairs                    true: the rows before updates too (-U)
                on-discontinuity         raise, skip or restart at a snapshot that does not say what it changed
                consumer-id              the name under which the table knows the stream, so that expiry waits for it
                max-rows-per-trigger, max-bytes-per-trigger, max-files-per-trigger      at most so much in a batch
    writing     commit-user and          identify the commit: a job that is run again with the same (or a lower) identifier changes
                commit-identifier        nothing
                missing-columns          rows may lack columns of the table: refuse (where stored values would be lost), null
                                         (the columns become NULL) or keep (the stored values stay)

Spark passes each option to reads and to writes, so a view may have options of both. An option that nobody knows is refused.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tablestore import open_catalog, open_table
from tablestore.distributed.read import TASK_BYTES
from tablestore.distributed.spec import TableSpec
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.names import did_you_mean
from tablestore.options import parse_bytes
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table

STORAGE_PREFIX = "storage."
# Set by `pyspark_tablestore.read`, which has planned already: JSON with the snapshot and schema that it fixed, and by which rule it
# gives plain files to Spark's own Parquet scan (null: it gives none), and whether rows come with their positions.
PINNED = "pinned"
_READING = ("columns", "filter", "snapshot-id", "timestamp-millis")
_STREAMING = (
    "log.scan",
    "log.scan.timestamp-mills",
    "log.scan.timestamp-millis",
    "from-snapshot",
    "row-kinds",
    "pairs",
    "on-discontinuity",
    "consumer-id",
    "max-rows-per-trigger",
    "max-bytes-per-trigger",
    "max-files-per-trigger",
)
_WRITING = ("commit-user", "commit-identifier", "missing-columns")
_KNOWN = ("path", "warehouse", "table", *_READING, "split-size", *_STREAMING, *_WRITING, PINNED)
_FORMS = (
    'spark.read.format("tablestore").load(path), '
    '.option("warehouse", "/data/warehouse").option("table", "db.t").load() (and the same with df.write … .save()), or '
    "CREATE TEMPORARY VIEW v USING tablestore OPTIONS (path '/data/warehouse/db.db/t'); tables are made by "
    "TableEnvironment.create(warehouse, spark=spark).execute_sql('CREATE TABLE …'), or catalog.create_table(…)"
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of one relation. Exactly one of ``path`` and ``warehouse`` with ``name`` is set."""

    path: str | None
    warehouse: str | None
    name: str | None
    storage: Mapping[str, Any] = field(repr=False)
    columns: tuple[str, ...] | None
    filter: str | None
    snapshot_id: int | None
    timestamp_millis: int | None
    task_bytes: int
    commit_user: str | None
    commit_identifier: int | None
    missing_columns: str
    pinned: Mapping[str, Any] | None
    # As texts: what they mean, and what goes together, is for whoever makes a stream (``streaming.sourcerequest``).
    stream: Mapping[str, str]

    def open(self) -> tuple[Table, TableSpec]:
        """The table, and how another process finds it: by an absolute location. Raises NotFoundError, UnsupportedError."""
        table, spec = self.open_any()
        if isinstance(table, SystemTable):
            raise UnsupportedError(
                f"{table.name} is a system table, which is computed and cannot be written; write to the table itself",
                kind="read-only-table",
            )
        return table, spec

    def open_any(self) -> tuple[Table | SystemTable, TableSpec]:
        """Opens as :meth:`open` does, a system table too; the table that it is about is what another process finds."""
        table: Table | SystemTable
        storage = self.storage
        if self.path is not None:
            table = open_table(self.path, **storage)
        else:
            assert self.warehouse is not None and self.name is not None, "the parser saw to it"
            catalog = open_catalog(self.warehouse, **storage)
            table, storage = catalog.table(self.name), catalog.storage_options
        base = table.base if isinstance(table, SystemTable) else table
        return table, TableSpec(location=base.location, storage_options=storage, branch=base.context.branch)

    @property
    def positions(self) -> bool:
        """True if rows come with their positions, behind the columns."""
        return self.pinned is not None and bool(self.pinned["positions"])

    @property
    def travels(self) -> bool:
        """True if a certain snapshot is asked for, and not the newest."""
        return self.snapshot_id is not None or self.timestamp_millis is not None or self.pinned is not None

    def check_batch(self) -> None:
        """Refuses options that say how a stream begins or goes on."""
        if self.stream:
            raise InvalidInputError(
                f"{', '.join(self.stream)}: such options are of streams (spark.readStream); leave them out to read or write once",
                kind="stream-option",
            )

    def check_writable(self) -> None:
        """Refuses options that say what to read where something is written."""
        read_options = {
            "columns": self.columns,
            "filter": self.filter,
            "snapshot-id": self.snapshot_id,
            "timestamp-millis": self.timestamp_millis,
            **self.stream,
        }
        if set_keys := [key for key, value in read_options.items() if value is not None]:
            raise InvalidInputError(
                f"a write takes no {' and no '.join(set_keys)}: such options make a view of a part, or of the past, of a table; "
                "write through a view or df.write without them",
                kind="read-option-on-write",
            )


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Parses what Spark collected. Keys are lower case there. Raises InvalidInputError that names the working forms."""
    folded = {key.lower(): value for key, value in options.items()}
    storage = {key.removeprefix(STORAGE_PREFIX): value for key, value in folded.items() if key.startswith(STORAGE_PREFIX)}
    plain = {key: value for key, value in folded.items() if not key.startswith(STORAGE_PREFIX)}
    if "paths" in plain:
        raise InvalidInputError(f"expected one table, found the paths {plain['paths']}; load each table by itself and union them")
    path, warehouse, name = (plain.get(key) or None for key in ("path", "warehouse", "table"))
    # Spark's own catalog adds these when it keeps a table: it would lose the other options, so it is refused at once.
    from_catalog = any(key in ("location", "provider") or key.startswith("option.") for key in plain)
    if from_catalog or (path is None and (warehouse is None or name is None)):
        nothing = "no options at all, as a table of Spark's own catalog has none (DROP TABLE removes it there)"
        source_text = "a table of Spark's own catalog" if from_catalog else ", ".join(sorted(plain)) or nothing
        raise InvalidInputError(
            f"expected a path, or the options warehouse and table; found {source_text}. What works: {_FORMS}. Spark forgets the "
            "options of CREATE TABLE … USING tablestore, saveAsTable, writeTo and CREATE TABLE … AS, so these do not work",
            kind="no-table",
        )
    if path is not None and (warehouse is not None or name is not None):
        raise InvalidInputError("expected either a path or the options warehouse and table, found both; leave one out")
    if unknown := sorted(set(plain) - set(_KNOWN)):
        raise InvalidInputError(
            f"tablestore has no option {unknown[0]!r}{did_you_mean(unknown[0], _KNOWN)}; options are "
            f"{', '.join(key for key in _KNOWN if key != PINNED)} and {STORAGE_PREFIX}<key>",
            kind="unknown-option",
        )
    user, identifier = plain.get("commit-user") or None, parsed(plain, "commit-identifier", int, "a whole number")
    if (user is None) != (identifier is None):
        raise InvalidInputError(
            "commit-user and commit-identifier name a commit together: give both, the identifier above the user's last one"
        )
    return SourceOptions(
        path=path,
        warehouse=warehouse,
        name=name,
        storage={key: _storage_value(value) for key, value in storage.items()},
        columns=parsed(plain, "columns", _parse_columns, "names separated by commas, or a JSON list of names"),
        filter=plain.get("filter") or None,
        snapshot_id=parsed(plain, "snapshot-id", int, "a whole number"),
        timestamp_millis=parsed(plain, "timestamp-millis", int, "milliseconds since the epoch"),
        task_bytes=parsed(plain, "split-size", parse_size, "a size such as 64 mb") or TASK_BYTES,
        commit_user=user,
        commit_identifier=identifier,
        missing_columns=MissingColumns.of(plain.get("missing-columns") or MissingColumns.REFUSE),
        pinned=parsed(plain, PINNED, json.loads, "JSON"),
        stream={key: plain[key] for key in _STREAMING if plain.get(key)},
    )


def placed(table: str, warehouse: str | None = None, storage_options: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The options that name a table by its path, or by its name in a warehouse, and its file system."""
    storage = {f"{STORAGE_PREFIX}{key}": value for key, value in (storage_options or {}).items()}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in storage.items()}
    return {**texts, **({"path": str(table)} if warehouse is None else {"warehouse": str(warehouse), "table": table})}


def parsed(options: Mapping[str, str], key: str, parse: Callable[[str], T], expected: str) -> T | None:
    """The value of an option, None if it is not given. Raises InvalidInputError for one that cannot be parsed."""
    text = options.get(key)
    if not text:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidInputError(f"option {key}: expected {expected}, found {text!r}", kind="option-value") from error


def _parse_columns(text: str) -> tuple[str, ...]:
    names = json.loads(text) if text.lstrip().startswith("[") else [name.strip() for name in text.split(",")]
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError(text)
    return tuple(names)


def parse_size(text: str) -> int:
    """Bytes, one or more."""
    size = int(parse_bytes(text))
    if size < 1:
        raise ValueError(text)
    return size


def _storage_value(text: str) -> Any:
    """Text as it is; what is spelled as JSON true, false, a number or an object as that (``client_kwargs`` is a dict)."""
    if text in ("true", "false") or text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
