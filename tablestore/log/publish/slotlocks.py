"""Keeps the publishers of one user and host apart: a lock file per slot, in a folder that belongs to that user alone.

Without the locks they would fence each other, which costs both of them time. The locks do not keep the log right: two users, or two
hosts, do not see each other's locks, and there the broker's fence alone decides who may write. So a folder that somebody else could
have made, or may write into, is not used: its owner could hold every lock for ever, or make the lock file a link to another file.
"""

import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

LOG = logging.getLogger(__name__)


def user_lock_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's cache folder; for a user without a home, a folder in the temporary directory that has the user's number."""
    if cache := environ.get("XDG_CACHE_HOME") or environ.get("LOCALAPPDATA"):
        return Path(cache) / "tablestore" / "locks"
    home = Path(environ.get("HOME", ""))
    if home.is_absolute() and os.access(home, os.W_OK):
        return home / ".cache" / "tablestore" / "locks"
    user = os.getuid() if hasattr(os, "getuid") else environ.get("USERNAME", "")
    return Path(tempfile.gettempdir()) / f"tablestore-locks-{user}"


@dataclass(frozen=True, slots=True)
class SlotLocks:
    """The locks of publisher slots, as files of one folder."""

    folder: Path

    def slot(self, table_uuid: str | None, log: str, slot: int) -> FileLock:
        """Held while somebody publishes a slot; ``log`` is the log's name."""
        digest = hashlib.sha256(f"{table_uuid}\0{log}\0{slot}".encode()).hexdigest()[:32]
        return FileLock(str(self.folder / f"log-{digest}"))

    def early_writer(self, table_uuid: str | None, log: str) -> FileLock:
        """Held by the writer whose rows are in the log before they land."""
        return self.slot(table_uuid, f"{log}\0early", 0)


def try_lock(lock: FileLock) -> bool:
    """False if another process holds it. True if we hold it now, or if nobody can: then the broker's fence has to do."""
    try:
        folder = Path(lock.lock_file).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_is_private(folder)
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as error:
        LOG.warning("no lock in %s (%s): publishers of this host may fence each other", lock.lock_file, error)
    return True


def _check_is_private(folder: Path) -> None:
    """Raises PermissionError for a folder that is a link, is somebody else's, or that others may write into."""
    status = folder.lstat()
    if not hasattr(os, "getuid"):
        return
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"expected a directory of user {os.getuid()} that nobody else may write into, found mode "
            f"{stat.filemode(status.st_mode)} of user {status.st_uid}; remove it, or name another place in XDG_CACHE_HOME"
        )
