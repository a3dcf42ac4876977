"""Keeps bytes that can be had again in a folder of this machine, so that the next process has them without the store.

Each entry is a file that is named after its key and never changes; those that were not read for longest go first. Any number of
processes use one folder: an entry is written beside its place and renamed. Whoever reads one checks it, as it would a foreign file.
What goes wrong with the folder is not an error: then nothing is kept.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

MOST_BYTES = 2 * 1024**3
CACHE_DIR_VARIABLE = "TABLESTORE_CACHE_DIR"
_OFF = ("", "off")
_PART = ".part"
# Other files are left alone, whoever put them there.
_OWN = re.compile(rf"[0-9a-f]{{64}}|tmp\w+{re.escape(_PART)}")
_FOLDER = "tablestore-manifests"


class DiskCache:
    """A folder of at most ``most_bytes``."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder, self._most_bytes = folder, most_bytes

    def get(self, key: str) -> bytes | None:
        """The bytes of an entry; None if it is not there."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):
            # The clean-up goes by it.
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> bool:
        """Keep an entry; others go, if they are too many. False if it was not kept."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # First, as it is what helps where the disk is full.
            self._make_room(len(data))
            with NamedTemporaryFile(dir=self._folder, suffix=_PART, delete=False) as part:
                try:
                    part.write(data)
                    part.flush()
                    os.replace(part.name, self._path(key))
                    return True
                except OSError:
                    os.unlink(part.name)
        return False

    def _make_room(self, size: int) -> None:
        own = (entry for entry in os.scandir(self._folder) if _OWN.fullmatch(entry.name) and entry.is_file(follow_symlinks=False))
        entries = [(entry.stat(), entry.path) for entry in own]
        used = sum(stat.st_size for stat, _ in entries)
        for stat, path in sorted(entries, key=lambda entry: entry[0].st_mtime_ns):
            if used + size <= self._most_bytes:
                return
            os.unlink(path)
            used -= stat.st_size

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()


def user_cache(environ: Mapping[str, str] = os.environ) -> DiskCache | None:
    """The cache of this user: a folder of its own in the one that ``TABLESTORE_CACHE_DIR`` names, else in that of the system for
    caches. None where the variable is empty or ``off``, and where there is no such folder."""
    if (chosen := environ.get(CACHE_DIR_VARIABLE)) is not None:
        return None if chosen in _OFF else DiskCache(Path(chosen) / _FOLDER)
    if base := environ.get("XDG_CACHE_HOME") or environ.get("LOCALAPPDATA"):
        return DiskCache(Path(base) / _FOLDER)
    if home := environ.get("HOME"):
        return DiskCache(Path(home) / ".cache" / _FOLDER)
    return None
