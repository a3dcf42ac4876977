"""Encodes tasks and their results as they pass between processes: versioned JSON, so that nothing is unpickled."""

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from typing import Any

from tablestore import errors
from tablestore.errors import FormatError, TablestoreError

# Driver and executors run the same release; this says so where they do not.
VERSION = 1
_ERROR = "error of a task"


def encode_task(kind: str, content: Mapping[str, Any]) -> bytes:
    """A task of this kind, such as ``read task``."""
    return json.dumps({"kind": kind, "version": VERSION, **content}, sort_keys=True).encode()


def decode_task(kind: str, data: bytes, keys: Collection[str]) -> dict[str, Any]:
    """The content of a task of this kind. Raises FormatError, of kind ``too-new`` for another version."""
    try:
        parsed = json.loads(data)
        version = parsed["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
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
    """The bytes that :func:`bytes_to_text` was given. Raises FormatError."""
    try:
        return base64.b64decode(str(text), validate=True)
    except binascii.Error as error:
        raise FormatError(f"not a {kind}: {error}") from error


def encode_error(error: TablestoreError) -> bytes:
    """An error of ours, without the frames and causes behind it: its class in :mod:`tablestore.errors`, kind and message."""
    name = next(cls.__name__ for cls in type(error).__mro__ if getattr(errors, cls.__name__, None) is cls)
    return encode_task(_ERROR, {"class": name, "message": error.message, "errorKind": error.kind})


def decode_error(data: bytes) -> TablestoreError:
    """The error of :func:`encode_error`. Raises FormatError."""
    parsed = decode_task(_ERROR, data, ("class", "message", "errorKind"))
    error_class = getattr(errors, str(parsed["class"]), None)
    if not isinstance(error_class, type) or not issubclass(error_class, TablestoreError):
        raise FormatError(f"not an {_ERROR}: there is no error {parsed['class']!s:.80}")
    return error_class(str(parsed["message"]), kind=str(parsed["errorKind"]))
