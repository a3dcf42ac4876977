"""Random ids: the only source of UUIDs, nonces and jitter. Code that needs one is handed an :class:`Ids`."""

import os
import random
import uuid
from typing import Protocol


class Ids(Protocol):
    """Unique names, nonces, and jitter."""

    def uuid(self) -> str:
        """A fresh random UUID (version 4) in canonical text."""
        ...

    def nonce(self) -> bytes:
        """16 random bytes, never all zero (an all-zero Avro sync marker breaks the Java reader)."""
        ...

    def fraction(self) -> float:
        """A random number in [0, 1), for jitter."""
        ...


class SystemIds:
    """Ids from the operating system's randomness."""

    def uuid(self) -> str:
        return str(uuid.uuid4())

    def nonce(self) -> bytes:
        while not any(value := os.urandom(16)):
            pass
        return value

    def fraction(self) -> float:
        return random.random()
