"""Records each decision of the service as a line of JSON in a file, which is rotated by its size.

    {"time": "2026-01-31T12:00:00.000Z", "request": "…", "principal": "reports", "address": "10.0.0.7", "method": "POST",
     "route": "/v1/{prefix}/databases/{database}/tables", "resource": "shop", "role": "owner", "decision": "denied", "status": 403,
     "duration_ms": 3}

A line holds what was decided and nothing that a request carries beside: no token, body, query or header; the path as its route.
Names come from callers: JSON escapes them, everything beyond ASCII too, and they are cut at 256 characters. ``audit.jsonl`` is
written, ``audit.jsonl.1`` is the newest before it.
"""

import json
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from io import FileIO
from pathlib import Path

from tablestore.clock import Clock
from tablestore.errors import StorageError

MOST_NAME_CHARACTERS = 256
_OWNER_ALONE = 0o600


class Decision(StrEnum):
    """The decisions about a request."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNAUTHENTICATED = "unauthenticated"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One decision. ``route`` is the template of the path, ``resource`` the name that it is about, ``role`` the least one."""

    request: str
    principal: str | None
    address: str
    method: str
    route: str
    resource: str
    role: str
    decision: Decision
    status: int
    duration_ms: int


def audit_line(record: AuditRecord, time_ms: int) -> str:
    """The line of a record, without its end."""
    time = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps(
        {
            "time": time,
            "request": _cut(record.request),
            "principal": None if record.principal is None else _cut(record.principal),
            "address": _cut(record.address),
            "method": _cut(record.method),
            "route": _cut(record.route),
            "resource": _cut(record.resource),
            "role": _cut(record.role),
            "decision": str(record.decision),
            "status": record.status,
            "duration_ms": record.duration_ms,
        }
    )


def _cut(text: str) -> str:
    return text if len(text) <= MOST_NAME_CHARACTERS else f"{text[: MOST_NAME_CHARACTERS - 1]}…"


class AuditLog:
    """Appends lines to a file of its own. Threads may share it; processes may not."""

    def __init__(self, path: Path, clock: Clock, *, max_bytes: int = 64 << 20, kept: int = 8) -> None:
        """``max_bytes``: of one file; ``kept``: the older files that stay beside it. Raises StorageError."""
        self._path, self._clock, self._max_bytes, self._kept = path, clock, max_bytes, kept
        self._lock = threading.Lock()
        try:
            self._file, self._size = self._opened()
        except OSError as error:
            raise self._failed(error) from error

    def write(self, record: AuditRecord) -> None:
        """Appends a record. Raises StorageError: what cannot be recorded must not happen unseen."""
        data = (audit_line(record, self._clock.now_ms()) + "\n").encode()
        with self._lock:
            try:
                if self._file.closed:
                    self._file, self._size = self._opened()  # a rotation that failed
                if self._size and self._size + len(data) > self._max_bytes:
                    self._rotate()
                self._file.write(data)
                self._size += len(data)
            except (OSError, ValueError) as error:
                raise self._failed(error) from error

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._file.close()

    def _opened(self) -> tuple[FileIO, int]:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _OWNER_ALONE)
        return open(descriptor, "ab", buffering=0), os.fstat(descriptor).st_size

    def _rotate(self) -> None:
        self._file.close()
        places = [self._path, *(self._path.with_name(f"{self._path.name}.{number}") for number in range(1, self._kept + 1))]
        if self._kept == 0:
            self._path.unlink()
        for older, newer in zip(reversed(places), reversed(places[:-1]), strict=False):
            if newer.exists():
                os.replace(newer, older)
        self._file, self._size = self._opened()

    def _failed(self, error: Exception) -> StorageError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return StorageError(f"cannot write the audit log {self._path}: {why}; make room, or name another file", kind="audit-log")
