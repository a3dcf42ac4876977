"""Expiry intents: files that name the snapshots which an expiry has begun to remove.

    tablestore-expiry/<first>-<end>     {"snapshots": {"<id>": "<uuid or digest>", …}}

Written before anything is removed, and removed last. The next expiry finishes what an intent names. After a crash EARLIEST alone
would not distinguish a snapshot whose files are half removed from one that was just published late on a free id, whose files may
still be committed.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tablestore.errors import FormatError, NotFoundError
from tablestore.format.limits import DEFAULT_LIMITS, json_within_limits, parse_json_bounded
from tablestore.format.sealed import CHECKSUM_KEY, JsonObject, object_checksum
from tablestore.io.filestore import FileStore

# Stored, never renamed.
EXPIRY_DIR = "tablestore-expiry"
_ID = re.compile(r"[1-9]\d{0,18}", re.ASCII)
_NAME = re.compile(r"([1-9]\d{0,18})-([1-9]\d{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryIntent:
    """The snapshots from ``first`` up to, not including, ``end``; ``digests``: the content of each file."""

    first: int
    end: int
    digests: Mapping[int, str]

    @property
    def path(self) -> str:
        """The path of the intent."""
        return f"{EXPIRY_DIR}/{self.first}-{self.end}"


def digest_of(snapshot_file: bytes) -> str:
    """The digest by which an intent names a snapshot file."""
    return hashlib.sha256(snapshot_file).hexdigest()


def write_intent(files: FileStore, intent: ExpiryIntent) -> bool:
    """Make the intent; False if an equal one is there."""
    content: dict[str, object] = {"snapshots": {str(key): value for key, value in intent.digests.items()}}
    data = json_within_limits({**content, CHECKSUM_KEY: object_checksum(content)}, intent.path, limits=DEFAULT_LIMITS)
    return files.publish_if_absent(intent.path, data)


def remove_intent(files: FileStore, intent: ExpiryIntent) -> None:
    """Remove the intent of a finished expiry."""
    files.delete(intent.path)


def read_intents(files: FileStore) -> tuple[ExpiryIntent, ...]:
    """The intents of expiries that have not finished, oldest first. Damaged ones are left out."""
    intents = (intent for name in files.names(EXPIRY_DIR) if isinstance(intent := _read(files, name), ExpiryIntent))
    return tuple(sorted(intents, key=lambda intent: intent.first))


def damaged_intents(files: FileStore) -> tuple[str, ...]:
    """The paths of damaged intents, which no expiry finishes."""
    names = [name for name in files.names(EXPIRY_DIR) if isinstance(_read(files, name), FormatError)]
    return tuple(f"{EXPIRY_DIR}/{name}" for name in names)


def _read(files: FileStore, name: str) -> ExpiryIntent | FormatError | None:
    """One intent; None if there is none of that name."""
    if (match := _NAME.fullmatch(name)) is None:
        return None
    try:
        content = parse_json_bounded(files.read(f"{EXPIRY_DIR}/{name}"), name)
    except NotFoundError:
        return None
    except FormatError as error:
        return error
    if not isinstance(content, dict) or content.pop(CHECKSUM_KEY, None) != object_checksum(content):
        return FormatError(f"{EXPIRY_DIR}/{name} has another checksum than its content", kind="checksum")
    try:
        digests = JsonObject(content, name).text_map("snapshots")
        if not all(_ID.fullmatch(key) for key in digests):
            raise FormatError(f"{EXPIRY_DIR}/{name}: expected ids of snapshots, found {sorted(digests)[:3]!s:.100}")
    except FormatError as error:
        return error
    return ExpiryIntent(first=int(match[1]), end=int(match[2]), digests={int(key): value for key, value in digests.items()})
