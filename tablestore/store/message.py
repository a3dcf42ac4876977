"""What one writer hands to the committer, as a value and as bytes.

A message crosses process boundaries (Spark tasks, pools), so its bytes are versioned JSON: nothing is unpickled. The files
inside travel as the manifest that they would become, in the format's own encoding.
"""

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass

from tablestore.errors import ConflictError, FormatError
from tablestore.format.manifest import ManifestEntry, decode_manifest, encode_manifest

VERSION = 1
# Messages live for one commit, so their Avro container needs no unique marker, only a valid (non-zero) one.
_MARKER = b"tablestore:msg:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """New files of one writer, in the order in which it flushed them.

    ``base_snapshot_id`` is the snapshot (0: none) that the writer's sequence numbers were drawn from, ``schema_id`` the
    schema its rows have, ``created_millis`` when its first file was begun.
    """

    table_uuid: str | None
    schema_id: int
    base_snapshot_id: int
    created_millis: int
    entries: tuple[ManifestEntry, ...]

    def to_bytes(self) -> bytes:
        """Versioned JSON, UTF-8."""
        return json.dumps(
            {
                "version": VERSION,
                "table": self.table_uuid,
                "schema": self.schema_id,
                "base": self.base_snapshot_id,
                "created": self.created_millis,
                "entries": base64.b64encode(encode_manifest(self.entries, _MARKER)).decode(),
            },
            separators=(",", ":"),
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "CommitMessage":
        """Parse what :meth:`to_bytes` made. Raises FormatError for anything else."""
        try:
            parsed = json.loads(data)
            if parsed["version"] != VERSION:
                raise FormatError(
                    f"commit message of version {parsed['version']}, this release reads version {VERSION}: run the same "
                    "release of tablestore on driver and executors",
                    kind="too-new",
                )
            entries = decode_manifest(base64.b64decode(parsed["entries"], validate=True), "commit message")
            return cls(
                table_uuid=parsed["table"],
                schema_id=int(parsed["schema"]),
                base_snapshot_id=int(parsed["base"]),
                created_millis=int(parsed["created"]),
                entries=entries,
            )
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
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
    for message in messages[1:]:
        if (message.table_uuid, message.schema_id) != (first.table_uuid, first.schema_id):
            raise ConflictError(
                f"the writers of one commit disagree: one wrote table {first.table_uuid} with schema {first.schema_id}, another "
                f"table {message.table_uuid} with schema {message.schema_id}; nothing was committed, run the write again",
                kind="schema-changed",
            )
    return CommitMessage(
        table_uuid=first.table_uuid,
        schema_id=first.schema_id,
        base_snapshot_id=min(message.base_snapshot_id for message in messages),
        created_millis=min(message.created_millis for message in messages),
        entries=tuple(entry for message in messages for entry in message.entries),
    )
