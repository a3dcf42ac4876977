"""Sealed JSON: objects that carry a checksum of themselves.

The checksum is the SHA-256 of the object's canonical text (keys sorted, compact, ASCII) without the checksum's own
entry. It covers the parsed object, unknown keys included, so that any change of any key or value shows, and a different
layout of the same content does not.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import NoReturn

from tablestore.errors import FormatError

# Stored, never renamed.
CHECKSUM_KEY = "tablestore.checksum"

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def object_checksum(content: Mapping[str, object]) -> str:
    """The checksum of an object that does not hold it yet."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def verify_checksum(content: Mapping[str, object], checksum: object, name: str) -> None:
    """Raise FormatError unless ``checksum`` is the checksum of ``content``."""
    expected = object_checksum(content)
    if checksum != expected:
        raise FormatError(
            f"{name}: expected the content that its checksum {str(checksum)[:64]!r} was made from, found content with the "
            f"checksum {expected}. The file was damaged or edited after it was written; restore it from a copy.",
            kind="checksum",
        )


def refuse_unsealed(name: str, missing: str) -> NoReturn:
    """Raise the error of a file that is ours by one mark and lacks the other."""
    raise FormatError(
        f"{name}: expected {missing!r}, as tablestore writes it, found none. The file was damaged or edited after it "
        "was written; restore it from a copy.",
        kind="checksum",
    )


class JsonObject:
    """Typed access to the keys of an untrusted JSON object; every refusal names the file and the key.

    A null is the same as an absent key.
    """

    __slots__ = ("content", "name")

    def __init__(self, content: object, name: str) -> None:
        if not isinstance(content, dict):
            raise FormatError(f"{name}: expected a JSON object, found {str(content)[:60]!r}. Restore it from a copy.")
        self.content: dict[str, object] = content
        self.name = name

    def integer(self, key: str) -> int:
        """A required integer of 64 bits."""
        value = self.content.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not INT64_MIN <= value <= INT64_MAX:
            self.refuse(key, "an integer of 64 bits", value)
        return value

    def optional_integer(self, key: str) -> int | None:
        """An integer of 64 bits, or None."""
        return None if self.content.get(key) is None else self.integer(key)

    def text(self, key: str) -> str:
        """A required string."""
        value = self.content.get(key)
        if not isinstance(value, str):
            self.refuse(key, "a text", value)
        return value

    def optional_text(self, key: str) -> str | None:
        """A string, or None."""
        return None if self.content.get(key) is None else self.text(key)

    def text_map(self, key: str) -> dict[str, str]:
        """A map of strings; empty if absent."""
        value = self.content.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            self.refuse(key, "a map of texts", value)
        return dict(value)

    def text_list(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty if absent."""
        value = self.content.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(key, "a list of texts", value)
        return tuple(value)

    def refuse(self, key: str, expected: str, value: object) -> NoReturn:
        """Raise FormatError: ``key`` holds something else."""
        raise FormatError(
            f"{self.name}: expected {expected} under {key!r}, found {str(value)[:80]!r}. The file is corrupt or not of "
            "this kind; restore it from a copy."
        )
