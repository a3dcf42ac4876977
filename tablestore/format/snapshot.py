"""Snapshots: one JSON file per commit, naming the manifest lists of the table's state after it.

An absent key means the same as null; keys of newer writers are ignored. Our files are checked: ``properties`` holds a
checksum of the whole object, and ``writerVersion`` names us, so that damage to the name of the checksum still shows. The
checksum covers tags too, except for the two keys that a tag adds.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from tablestore.errors import FormatError
from tablestore.format.limits import DEFAULT_LIMITS, Limits, json_within_limits, parse_json_bounded
from tablestore.format.paths import check_file_name, parse_snapshot_id
from tablestore.format.sealed import (
    CHECKSUM_KEY,
    INT64_MAX,
    INT64_MIN,
    JsonObject,
    object_checksum,
    refuse_unsealed,
    verify_checksum,
)
from tablestore.format.writecounts import COUNTS_PROPERTY, UNKNOWN_ROWS, WriteCounts, decode_counts, encode_counts
from tablestore.htmltext import html_card
from tablestore.timepoint import utc_text, utc_time

# Stored, never renumbered.
SNAPSHOT_VERSION = 3
BATCH_IDENTIFIER = 2**63 - 1
WRITER_NAME = "tablestore"
WRITER_VERSION = f"{WRITER_NAME} 1"  # of the checks in this file, not of the package

# The number of rows that readers see, and the difference to that before the commit; a commit that does not know says nothing.
ROWS_PROPERTY = "tablestore.rows"
ROW_CHANGE_PROPERTY = "tablestore.row-change"

# The operations that our snapshots name.
_OPERATIONS = ("WRITE", "OVERWRITE", "DELETE", "COMPACT", "ALTER", "TRUNCATE", "UPDATE", "MERGE", "ANALYZE")
_CHANGES_OF_ROWS = frozenset({"DELETE", "UPDATE", "MERGE"})
_TAG_KEYS = frozenset({"tagCreateTime", "tagTimeRetained"})


class CommitKind(StrEnum):
    """The kind of a commit. Stored, never renamed."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"

    @property
    def keeps_rows(self) -> bool:
        """True for a commit after which readers see the rows that they saw before it."""
        return self in (CommitKind.COMPACT, CommitKind.ANALYZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a table after one commit. ``uuid`` is the identity of the commit attempt that made it.

    ``total_record_count``, ``delta_record_count``: the records in files, and the difference to those before; None where rules of a
    catalog service hide rows from who asked (:func:`without_numbers`), never in a file.
    """

    version: int = SNAPSHOT_VERSION
    uuid: str | None = None
    id: int
    schema_id: int
    base_manifest_list: str
    base_manifest_list_size: int | None = None
    delta_manifest_list: str
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    commit_user: str
    writer_version: str | None = WRITER_VERSION
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int | None
    delta_record_count: int | None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    next_row_id: int | None = None
    operation: str | None = None

    @property
    def time(self) -> datetime:
        """The time of the commit, in UTC."""
        return utc_time(self.time_millis)

    @property
    def stored_records(self) -> int:
        """The records in its files, as its own file says."""
        assert self.total_record_count is not None, "what is shown under rules is not what the table is planned by"
        return self.total_record_count

    @property
    def rows(self) -> int | None:
        """The rows of the table, where the commit could count them without reading: else ``table.scan().count()`` does."""
        return _count(self.properties.get(ROWS_PROPERTY))

    @property
    def row_change(self) -> int | None:
        """The rows that the table has more than before the commit, or less (below zero), where the commit could count them."""
        return _count(self.properties.get(ROW_CHANGE_PROPERTY))

    @property
    def counts(self) -> WriteCounts:
        """The rows, files and bytes that the commit added and removed, each None where it did not know."""
        return decode_counts(self.properties.get(COUNTS_PROPERTY))

    @property
    def size_text(self) -> str:
        """The number of rows, ``5 rows (-5)``; where nobody counted them the records in files, ``15 records in files (+5)``.

        Files also hold rows that later ones replace or delete, and the deletes: a statement that changes rows adds records,
        whatever becomes of the rows, so its text has no change of them.
        """
        rows, change = self.rows, self.row_change
        if self.total_record_count is None or self.delta_record_count is None:
            return "rows unknown"
        if rows is None and change is None:
            records = f"{self.total_record_count:,} records in files"
            return records if self.operation in _CHANGES_OF_ROWS else f"{records} ({self.delta_record_count:+,})"
        if rows is None:
            return f"{change:+,} {'row' if change in (-1, 1) else 'rows'}"
        counted = f"{rows:,} {'row' if rows == 1 else 'rows'}"
        return counted if change is None else f"{counted} ({change:+,})"

    def __repr__(self) -> str:
        return (
            f"Snapshot(id={self.id}, {self.operation or self.commit_kind}, {utc_text(self.time_millis)}, {self.size_text}, "
            f"schema_id={self.schema_id}, commit_user={self.commit_user!r})"
        )

    def _repr_html_(self) -> str:
        return html_card(
            "Snapshot",
            str(self.id),
            {
                "kind": self.operation or self.commit_kind,
                "time": utc_text(self.time_millis),
                "size": self.size_text,
                "schema": self.schema_id,
                "commit user": self.commit_user,
            },
        )


def without_numbers(snapshot: Snapshot, *, own: bool = False) -> Snapshot:
    """The snapshot as it is shown to who does not see all rows: no number in it tells of rows that are hidden.

    ``own``: of the commit of who sees it, who has only added rows; how many these were stays.
    """
    counts = snapshot.counts
    rows = UNKNOWN_ROWS._replace(affected=counts.rows_affected) if own else UNKNOWN_ROWS
    files = (counts.files_added, counts.bytes_added), (counts.files_removed, counts.bytes_removed)
    properties = {key: value for key, value in snapshot.properties.items() if key not in (ROWS_PROPERTY, ROW_CHANGE_PROPERTY)}
    if COUNTS_PROPERTY in properties:
        properties[COUNTS_PROPERTY] = encode_counts(rows, *files)
    return replace(
        snapshot,
        total_record_count=None,
        delta_record_count=None,
        changelog_record_count=None,
        statistics=None,
        properties=properties,
    )


# Stored, never renamed. The order is the order in the file. Each with its attribute and how it is read, None where that takes more.
_KEYS: dict[str, tuple[str, Callable[[JsonObject, str], object] | None]] = {
    "version": ("version", None),
    "uuid": ("uuid", JsonObject.optional_text),
    "id": ("id", JsonObject.integer),
    "schemaId": ("schema_id", JsonObject.integer),
    "baseManifestList": ("base_manifest_list", JsonObject.text),
    "baseManifestListSize": ("base_manifest_list_size", JsonObject.optional_integer),
    "deltaManifestList": ("delta_manifest_list", JsonObject.text),
    "deltaManifestListSize": ("delta_manifest_list_size", JsonObject.optional_integer),
    "changelogManifestList": ("changelog_manifest_list", JsonObject.optional_text),
    "changelogManifestListSize": ("changelog_manifest_list_size", JsonObject.optional_integer),
    "indexManifest": ("index_manifest", JsonObject.optional_text),
    "commitUser": ("commit_user", JsonObject.text),
    "writerVersion": ("writer_version", JsonObject.optional_text),
    "commitIdentifier": ("commit_identifier", JsonObject.integer),
    "commitKind": ("commit_kind", None),
    "timeMillis": ("time_millis", JsonObject.integer),
    "totalRecordCount": ("total_record_count", JsonObject.integer),
    "deltaRecordCount": ("delta_record_count", JsonObject.integer),
    "changelogRecordCount": ("changelog_record_count", JsonObject.optional_integer),
    "watermark": ("watermark", JsonObject.optional_integer),
    "statistics": ("statistics", JsonObject.optional_text),
    "properties": ("properties", None),
    "nextRowId": ("next_row_id", JsonObject.optional_integer),
    "operation": ("operation", JsonObject.optional_text),
}


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The snapshot's file; always the same bytes for the same value.

    It names us as its writer, also where ``snapshot`` was read from the file of another writer. Raises FormatError for a number
    that nobody could read back: what is counted on from a changed file may end there.
    """
    content: dict[str, object] = {}
    if not _is_ours(snapshot.writer_version):
        snapshot = replace(snapshot, writer_version=WRITER_VERSION)
    for key, (attribute, _) in _KEYS.items():
        value = getattr(snapshot, attribute)
        if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
            raise FormatError(
                f"snapshot {snapshot.id}: expected an integer of 64 bits under {key!r}, found {value}, which goes on from the "
                "snapshot before it; that one was changed or made up: restore it from a copy, or remove it"
            )
        if value is not None:
            content[key] = value
    content["commitKind"] = str(snapshot.commit_kind)
    properties = {key: value for key, value in sorted(snapshot.properties.items()) if key != CHECKSUM_KEY}
    content["properties"] = properties
    content["properties"] = {**properties, CHECKSUM_KEY: object_checksum(content)}
    return json_within_limits(content, f"snapshot {snapshot.id}", indent=2)


def decode_snapshot(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> Snapshot:
    """The snapshot in the file ``name`` (a path ending in ``snapshot-<id>``, ``tag-<tag>`` or ``changelog-<id>``).

    The checksum is verified if there is one and left out of ``properties``; a file of ours without one is refused.

    Raises FormatError: kind ``checksum`` for damage, ``too-new`` for a newer version, ``swapped`` if the file is another snapshot
    than its name says, else ``corrupt``.
    """
    source = JsonObject(parse_json_bounded(data, name, limits), name)
    version = source.integer("version") if "version" in source.content else SNAPSHOT_VERSION
    properties = source.text_map("properties")
    checksum = properties.pop(CHECKSUM_KEY, None)
    ours = _is_ours(source.content.get("writerVersion"))
    if checksum is not None and not _is_foreign_copy(source.content, name):
        sealed = {key: value for key, value in source.content.items() if key not in _TAG_KEYS}
        verify_checksum(_with_operation({**sealed, "properties": properties}, checksum), checksum, name)
        if not ours:
            refuse_unsealed(name, "writerVersion")
    elif ours:
        refuse_unsealed(name, f"properties.{CHECKSUM_KEY}")
    if version > SNAPSHOT_VERSION:
        raise FormatError(
            f"{name}: expected a snapshot of version {SNAPSHOT_VERSION} or older, found version {version}. Use a newer "
            "tablestore to read it.",
            kind="too-new",
        )
    if ours and (unknown := source.content.keys() - _KEYS.keys() - _TAG_KEYS):
        raise FormatError(
            f"{name}: expected the keys that this tablestore writes, found {sorted(unknown)} too. Use a newer "
            "tablestore to read it.",
            kind="too-new",
        )
    return _check(_from_json(source, version, properties), name)


def _from_json(source: JsonObject, version: int, properties: dict[str, str]) -> Snapshot:
    kind = source.text("commitKind")
    if kind not in CommitKind.__members__:
        source.refuse("commitKind", f"one of {', '.join(CommitKind.__members__)}", kind)
    attributes: dict[str, Any] = {attribute: read(source, key) for key, (attribute, read) in _KEYS.items() if read is not None}
    return Snapshot(version=version, commit_kind=CommitKind[kind], properties=properties, **attributes)


def _check(snapshot: Snapshot, name: str) -> Snapshot:
    promised = parse_snapshot_id(name)
    if promised is not None and promised != snapshot.id:
        raise FormatError(
            f"{name}: expected snapshot {promised}, found snapshot {snapshot.id}. The file was swapped or renamed; "
            "restore it from a copy, or read another snapshot.",
            kind="swapped",
        )
    if snapshot.id < 1 or snapshot.schema_id < 0:
        raise FormatError(
            f"{name}: expected a snapshot id from 1 and a schema id from 0, found {snapshot.id} and "
            f"{snapshot.schema_id}. The file is corrupt; restore it from a copy."
        )
    for file_name in (
        snapshot.base_manifest_list,
        snapshot.delta_manifest_list,
        snapshot.changelog_manifest_list,
        snapshot.index_manifest,
        snapshot.statistics,
    ):
        if file_name is not None:
            check_file_name(file_name, name)
    return snapshot


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,18}", text, re.ASCII) else None


def _is_ours(writer_version: object) -> bool:
    return isinstance(writer_version, str) and writer_version.startswith(f"{WRITER_NAME} ")


def _is_foreign_copy(content: Mapping[str, object], name: str) -> bool:
    """True if an older foreign writer copied one of our snapshots into a tag or changelog, dropping the keys it does not know.

    Such a copy has no ``writerVersion``. A damaged file of ours has an unknown key in its place.
    """
    last = name.rpartition("/")[2]
    copied = last.startswith(("tag-", "changelog-"))
    return copied and "writerVersion" not in content and content.keys() <= _KEYS.keys() | _TAG_KEYS


def _with_operation(content: dict[str, object], checksum: str) -> dict[str, object]:
    """The ``content`` as it was sealed, if all that a foreign copy of it lacks is ``operation``, which some writers do not
    know."""
    if "operation" in content or object_checksum(content) == checksum:
        return content
    candidates = ({**content, "operation": operation} for operation in _OPERATIONS)
    return next((sealed for sealed in candidates if object_checksum(sealed) == checksum), content)
