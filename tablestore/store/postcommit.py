"""Runs post-commit tasks after a commit that has landed: publish, compact, tag, expire, merge. None of them raises.

    landed ── mark, hint ── publish ── compact ── tag ── expire ── merge manifests
                 └ one fails: a warning, a note in the table, then the next

A caller that gets an error repeats its write, so an error after the commit would duplicate rows. Therefore every error of a task,
of any class, becomes a warning. Only what ends the process (KeyboardInterrupt, SystemExit, GeneratorExit) passes.

    tablestore-undone/<task>      {"snapshot": 7, "time": …, "kind": "storage", "error": …}

Other processes read the note (``tablestore table describe``). There is one per task, the newest. The next commit whose task
succeeds removes it. Success costs one listing of a directory that is mostly missing.
"""

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from tablestore.clock import Clock
from tablestore.errors import FormatError, NotFoundError, TablestoreError
from tablestore.format.limits import parse_json_bounded
from tablestore.io.filestore import FileStore

LOG = logging.getLogger(__name__)

# Stored, never renamed.
UNDONE_DIR = "tablestore-undone"
_LONGEST_ERROR = 2_000


class PostCommitTask(Enum):
    """A post-commit task: the name of its note (stored), what its failure means, and what does it later."""

    MARK = ("replay-mark", "its mark against replays was not written", "expiry writes it before it removes the snapshot")
    EARLY = ("early-rows", "the rows that were sent ahead of it are not marked as landed", "the next publisher does that")
    PUBLISH = (
        "publish",
        "its changes are not in the log yet",
        "the next publisher sends them: the next write, or `tablestore log publish`",
    )
    COMPACT = ("compaction", "the compaction after it was given up", "the next write does it, or `tablestore compact`")
    SHOW = (
        "compaction",
        "the compaction after it was given up, and until the next one lands readers do not see what was written",
        "the next write does it, or `tablestore compact`",
    )
    MERGE = (
        "manifest-merging",
        "its large manifests were not merged with those before it, so plans read more of them",
        "the next large commit merges them, or `tablestore compact`",
    )
    TAG = ("tag", "the tag of the period before it was not made", "the next commit of the period makes it")
    EXPIRE = ("expiry", "the expiry after it was given up", "the next write goes on with it, or `tablestore expire snapshots`")
    END_LOG = ("end-of-log", "what it recorded of its log was not removed", "a log that begins anew removes it")
    DROP_LOG = ("end-of-log", "its topic is left behind", "delete it by hand")

    def __init__(self, label: str, failure: str, way_out: str) -> None:
        self.label, self.failure, self.way_out = label, failure, way_out


class Skipped(Exception):
    """A task does nothing, because another process or a later commit does it. This is no failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """A task that failed after ``snapshot_id`` and has not succeeded since. ``error`` is safe to be shown."""

    task: str
    snapshot_id: int
    time_millis: int
    error_kind: str
    error: str
    way_out: str


def attempt(task: PostCommitTask, step: Callable[[], object], *, where: str) -> Exception | None:
    """Runs one task after the commit that ``where`` names. An error is logged and returned, not raised."""
    try:
        step()
    except Skipped as left:
        if str(left):
            LOG.info("%s has landed; %s", where, left)
        return left
    except Exception as error:  # Everything that is an error, of whatever library: what has landed is acknowledged.
        ours = isinstance(error, TablestoreError)
        LOG.warning("%s has landed; %s (%s). What to do: %s", where, task.failure, _text(error), task.way_out, exc_info=not ours)
        return error
    return None


class PostCommit:
    """The post-commit tasks after one snapshot of the table in ``files``."""

    def __init__(self, files: FileStore, clock: Clock, snapshot_id: int) -> None:
        self._files, self._clock, self._snapshot_id = files, clock, snapshot_id
        self._done: set[str] = set()
        self._failed: set[str] = set()

    def do(self, task: PostCommitTask, step: Callable[[], object]) -> bool:
        """Runs a task; returns whether it succeeded. Raises nothing."""
        error = attempt(task, step, where=f"snapshot {self._snapshot_id} of table {self._files.root_uri}")
        if error is None:
            self._done.add(task.label)
        elif not isinstance(error, Skipped):
            self._failed.add(task.label)
            # A failing store was logged above.
            with suppress(Exception):
                _write_note(self._files, self._clock, task, self._snapshot_id, error)
        return error is None

    def clear_notes(self) -> None:
        """Remove the notes of tasks that had failed and were done now."""
        with suppress(Exception):
            for name in self._files.names(UNDONE_DIR):
                if name in self._done - self._failed:
                    self._remove_older(name)

    def _remove_older(self, label: str) -> None:
        # The note of a later commit stays.
        undone = _read(self._files, label)
        if undone is None or undone.snapshot_id <= self._snapshot_id:
            self._files.delete(f"{UNDONE_DIR}/{label}")


def read_undone(files: FileStore) -> tuple[Undone, ...]:
    """The tasks that have failed and were not done since, by name."""
    undone = [_read(files, info.name) for info in files.list(UNDONE_DIR)]
    return tuple(task for task in undone if task is not None)


def _write_note(files: FileStore, clock: Clock, task: PostCommitTask, snapshot_id: int, error: Exception) -> None:
    content = {
        "snapshot": snapshot_id,
        "time": clock.now_ms(),
        "kind": error.kind if isinstance(error, TablestoreError) else type(error).__name__,
        # The text of other libraries' errors may hold a secret, which must not be written into the table.
        "error": _text(error)[:_LONGEST_ERROR] if isinstance(error, TablestoreError) else _unknown(error),
        "way_out": task.way_out,
    }
    files.overwrite(f"{UNDONE_DIR}/{task.label}", json.dumps(content, separators=(",", ":")).encode())


def _read(files: FileStore, label: str) -> Undone | None:
    """The note of that name, None if it is gone or cannot be parsed."""
    try:
        content = parse_json_bounded(files.read(f"{UNDONE_DIR}/{label}"), label)
        assert isinstance(content, dict)
        return Undone(
            task=label,
            snapshot_id=int(content["snapshot"]),
            time_millis=int(content["time"]),
            error_kind=str(content["kind"]),
            error=str(content["error"]),
            way_out=str(content["way_out"]),
        )
    except (NotFoundError, FormatError, AssertionError, KeyError, TypeError, ValueError):
        return None


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, TablestoreError) else f"{type(error).__name__}: {error}"


def _unknown(error: Exception) -> str:
    return f"an unexpected {type(error).__name__}; the warning of the process that wrote has its text"
