"""Which snapshots did an expiry begin to remove?

    tablestore-expiry/<first>-<end>     {"snapshots": {"<id>": "<uuid or digest>", …}}

Written before anything is removed, taken away when nothing is left. Whoever finds one finishes the work: after a crash an id
below EARLIEST alone would not distinguish a snapshot whose files are half removed from one that a sleeping committer has just
published on a free id, and whose files may still be committed.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tablestore.errors import FormatError, NotFoundError
from tablestore.format.limits import DEFAULT_LIMITS, json_within_limits, parse_json_bounded
from tablestore.format.sealed import CHECKSUM_KEY, object_checksum
from tablestore.io.filestore import FileStore

# Stored, never renamed.
EXPIRY_DIR = "tablestore-expiry"
_NAME = re.compile(r"([1-9]\d{0,18})-([1-9]\d{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryIntent:
    """The snapshots from ``first`` up to, not including, ``end``; ``digests``: the content of each file."""

    first: int
    end: int
    digests: Mapping[int, str]

    @property
    def path(self) -> str:
        """Where the intent lies."""
        return f"{EXPIRY_DIR}/{self.first}-{self.end}"


def digest_of(snapshot_file: bytes) -> str:
    """What a snapshot file is known by."""
    return hashlib.sha256(snapshot_file).hexdigest()


def write_intent(files: FileStore, intent: ExpiryIntent) -> bool:
    """Make the intent; False if an equal one is there."""
    content: dict[str, object] = {"snapshots": {str(key): value for key, value in intent.digests.items()}}
    data = json_within_limits({**content, CHECKSUM_KEY: object_checksum(content)}, intent.path, limits=DEFAULT_LIMITS)
    return files.publish_if_absent(intent.path, data)


def remove_intent(files: FileStore, intent: ExpiryIntent) -> None:
    """The work is done."""
    files.delete(intent.path)


def read_intents(files: FileStore) -> tuple[ExpiryIntent, ...]:
    """The intents of expiries that have not finished, oldest first. A damaged one is worth nothing, and left alone."""
    found = []
    for name in files.names(EXPIRY_DIR):
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        try:
            data = files.read(f"{EXPIRY_DIR}/{name}")
            content = parse_json_bounded(data, name)
        except (NotFoundError, FormatError):
            continue
        if not isinstance(content, dict) or content.pop(CHECKSUM_KEY, None) != object_checksum(content):
            continue
        digests = {int(key): str(value) for key, value in content["snapshots"].items()}
        found.append(ExpiryIntent(first=int(match[1]), end=int(match[2]), digests=digests))
    return tuple(sorted(found, key=lambda intent: intent.first))
