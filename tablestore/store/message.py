"""Commit messages: the files that one writer hands to the committer, as a value and as bytes.

A message crosses process boundaries (Spark tasks, pools), so its bytes are versioned JSON: nothing is unpickled. The files
inside travel as the manifest that they would become, in the format's own encoding.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tablestore.errors import ConflictError, FormatError
from tablestore.format.manifest.encodedentries import decode_entries, joined, names_of
from tablestore.format.manifest.indexmanifest import IndexEntry, decode_index_manifest, encode_index_manifest
from tablestore.format.manifest.manifestfile import ManifestEntry, decode_manifest, encode_manifest
from tablestore.format.snapshot import Snapshot

VERSION = 6
# Messages live for one commit, so their Avro container needs no unique marker, only a valid (non-zero) one.
_MARKER = b"tablestore:msg:1"
# Of small messages, so that they are decoded side by side.
_PARSED_TOGETHER_BYTES = 1 << 20
_FILE_LISTS = ("entries", "compact_before", "compact_after", "changelog")


# No snapshot has this id: what was looked up is to be looked up again.
NOT_LOOKED_UP = -1
# No snapshot has this uuid: tasks of one write have begun on several snapshots of one id.
NO_UUID = ""

Revise = Callable[[Snapshot | None, tuple[ManifestEntry, ...], int], tuple[ManifestEntry, ...]]
"""The commit's own new files as they must be on the newest snapshot, in the n-th attempt: those given, or others written in
their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptColumns:
    """The ``columns`` (or fields in them) of a new file that were looked up in the snapshot ``snapshot_id`` (0: none).

    ``snapshot_uuid`` distinguishes it from another one of its id, after snapshots were taken back. ``replaced``: how many of its
    rows were found there, by key.
    """

    file_name: str
    columns: tuple[tuple[str, ...], ...]
    snapshot_id: int
    snapshot_uuid: str | None = None
    replaced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """The files that one writer or one compaction has prepared for a commit.

    entries           new files of a write, in the order in which it flushed them; a round may give them other numbers
    compact_before    DELETEs of files that a compaction read, each repeated exactly as it was added
    compact_after     what came of them: new files, or the same file at another level (an upgrade, nothing was rewritten)
    changelog         files that hold the row changes of this commit
    index_changes     index files to add and to delete
    kept              what of the new files was looked up, and has to be what the newest snapshot holds when they land

    ``base_snapshot_id`` is the snapshot (0: none) that the writer's sequence numbers were drawn from, ``base_snapshot_uuid`` (None:
    it has none) distinguishes it from another one of its id, ``schema_id`` is the schema its rows have, ``created_millis`` when its
    first file was begun.
    """

    table_uuid: str | None
    schema_id: int
    base_snapshot_id: int
    base_snapshot_uuid: str | None = None
    created_millis: int
    entries: Sequence[ManifestEntry] = ()
    compact_before: tuple[ManifestEntry, ...] = ()
    compact_after: tuple[ManifestEntry, ...] = ()
    changelog: tuple[ManifestEntry, ...] = ()
    index_changes: tuple[IndexEntry, ...] = ()
    kept: tuple[KeptColumns, ...] = ()

    @property
    def new_files(self) -> Sequence[ManifestEntry]:
        """Entries of the files that exist only for this commit: to be removed if it certainly does not land."""
        more = (*self.rewritten, *self.changelog)
        return (*self.entries, *more) if more else self.entries

    @property
    def new_names(self) -> list[str]:
        """The names of these files."""
        return names_of(self.new_files)

    @property
    def rewritten(self) -> tuple[ManifestEntry, ...]:
        """The files that a compaction wrote, without upgrades."""
        before = {entry.file.file_name for entry in self.compact_before}
        return tuple(entry for entry in self.compact_after if entry.file.file_name not in before)

    def to_bytes(self) -> bytes:
        """Versioned JSON, UTF-8."""
        return json.dumps(
            {
                "version": VERSION,
                "table": self.table_uuid,
                "schema": self.schema_id,
                "base": self.base_snapshot_id,
                "base_uuid": self.base_snapshot_uuid,
                "created": self.created_millis,
                **{name: _text(encode_manifest(getattr(self, name), _MARKER)) for name in _FILE_LISTS},
                "index_changes": _text(encode_index_manifest(self.index_changes, _MARKER)),
                "kept": [[note.file_name, note.columns, note.snapshot_id, note.snapshot_uuid, note.replaced] for note in self.kept],
            },
            separators=(",", ":"),
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "CommitMessage":
        """Parse what :meth:`to_bytes` made. Raises FormatError for anything else."""
        (message,) = cls.all_from_bytes([data])
        return message

    @classmethod
    def all_from_bytes(cls, many: Iterable[bytes]) -> list["CommitMessage"]:
        """Parse the messages of all tasks, in order: where they have many new files, these stay encoded. Raises FormatError."""
        messages: list[CommitMessage] = []
        waiting: list[bytes] = []
        size = 0
        for data in many:
            waiting.append(data)
            size += len(data)
            if size > _PARSED_TOGETHER_BYTES:
                messages += cls._parse(waiting)
                waiting, size = [], 0
        return messages + cls._parse(waiting)

    @classmethod
    def _parse(cls, many: Sequence[bytes]) -> list["CommitMessage"]:
        """Messages that are parsed together."""
        parsed = list(map(_parsed, many))
        try:
            encoded = decode_entries([_bytes(one["entries"]) for one in parsed], "commit message")
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"not a commit message: {error}") from error
        return [cls._of_parsed(one, None if encoded is None else encoded[place]) for place, one in enumerate(parsed)]

    @classmethod
    def _of_parsed(cls, parsed: dict[str, Any], entries: Sequence[ManifestEntry] | None) -> "CommitMessage":
        try:
            names = _FILE_LISTS if entries is None else _FILE_LISTS[1:]
            files = {name: decode_manifest(_bytes(parsed[name]), "commit message") for name in names}
            return cls(
                table_uuid=parsed["table"],
                schema_id=int(parsed["schema"]),
                base_snapshot_id=int(parsed["base"]),
                base_snapshot_uuid=parsed["base_uuid"],
                created_millis=int(parsed["created"]),
                index_changes=decode_index_manifest(_bytes(parsed["index_changes"]), "commit message"),
                kept=tuple(
                    KeptColumns(
                        file_name=name,
                        columns=tuple(map(tuple, columns)),
                        snapshot_id=snapshot_id,
                        snapshot_uuid=uuid,
                        replaced=int(replaced),
                    )
                    for name, columns, snapshot_id, uuid, replaced in parsed["kept"]
                ),
                entries=files.pop("entries") if entries is None else entries,
                **files,
            )
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"not a commit message: {error}") from error


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(data)
        if parsed["version"] != VERSION:
            raise FormatError(
                f"commit message of version {parsed['version']}, this release reads version {VERSION}: run the same "
                "release of tablestore on driver and executors",
                kind="too-new",
            )
        return dict(parsed)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"not a commit message: {error}") from error


def merge_messages(messages: Iterable[CommitMessage]) -> CommitMessage | None:
    """One message with the files of all, in the given order; None if there is no message.

    Raises ConflictError if the messages are of different tables or schemas.
    """
    messages = tuple(messages)
    if not messages:
        return None
    first = messages[0]
    if len(messages) == 1:
        return first
    for message in messages[1:]:
        if (message.table_uuid, message.schema_id) != (first.table_uuid, first.schema_id):
            raise ConflictError(
                f"the writers of one commit disagree: one wrote table {first.table_uuid} with schema {first.schema_id}, another "
                f"table {message.table_uuid} with schema {message.schema_id}; nothing was committed, run the write again",
                kind="schema-changed",
            )
    base_id = min(message.base_snapshot_id for message in messages)
    bases = {message.base_snapshot_uuid for message in messages if message.base_snapshot_id == base_id}
    return CommitMessage(
        table_uuid=first.table_uuid,
        schema_id=first.schema_id,
        base_snapshot_id=base_id,
        base_snapshot_uuid=bases.pop() if len(bases) == 1 else NO_UUID,
        created_millis=min(message.created_millis for message in messages),
        entries=joined(message.entries for message in messages),
        compact_before=tuple(entry for message in messages for entry in message.compact_before),
        compact_after=tuple(entry for message in messages for entry in message.compact_after),
        changelog=tuple(entry for message in messages for entry in message.changelog),
        index_changes=tuple(entry for message in messages for entry in message.index_changes),
        kept=_merged_kept(messages),
    )


def _merged_kept(messages: tuple[CommitMessage, ...]) -> tuple[KeptColumns, ...]:
    notes = tuple(note for message in messages for note in message.kept)
    if not notes:
        return ()
    entries = [entry for message in messages for entry in message.entries]
    lacking = {note.file_name: note.columns for note in notes}
    lacks_alike = len({lacking.get(entry.file.file_name) for entry in entries}) <= 1
    deletes = any(entry.file.delete_row_count for entry in entries)
    if sum(bool(message.entries) for message in messages) > 1 and (deletes or not lacks_alike):
        # A writer knows nothing of the rows that those before it delete, nor of what they give that its own rows lack.
        return tuple(replace(entry, snapshot_id=NOT_LOOKED_UP) for entry in notes)
    return notes


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
