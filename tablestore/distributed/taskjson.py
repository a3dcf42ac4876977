"""Tasks on their way to other processes: versioned JSON, so that nothing is unpickled."""

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from typing import Any

from tablestore.errors import FormatError

# Driver and executors run the same release; this says so where they do not.
VERSION = 1


def encode_task(kind: str, content: Mapping[str, Any]) -> bytes:
    """A task of this kind, such as ``read task``."""
    return json.dumps({"kind": kind, "version": VERSION, **content}, sort_keys=True).encode()


def decode_task(kind: str, data: bytes, keys: Collection[str]) -> dict[str, Any]:
    """The content of a task of this kind. Raises FormatError, of kind ``too-new`` for another version."""
    try:
        parsed = json.loads(data)
        version = parsed["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a {kind}: {error}") from error
    if version != VERSION:
        raise FormatError(
            f"{kind} of version {version}, this release reads version {VERSION}: run the same release of tablestore on driver and "
            "executors",
            kind="too-new",
        )
    if parsed.get("kind") != kind or not set(keys) <= parsed.keys():
        raise FormatError(f"not a {kind}: it has {', '.join(parsed)}")
    return dict(parsed)


def bytes_to_text(data: bytes) -> str:
    """Bytes as a task holds them."""
    return base64.b64encode(data).decode()


def text_to_bytes(kind: str, text: object) -> bytes:
    """What :func:`bytes_to_text` was given. Raises FormatError."""
    try:
        return base64.b64decode(str(text), validate=True)
    except binascii.Error as error:
        raise FormatError(f"not a {kind}: {error}") from error
