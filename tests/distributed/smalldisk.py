"""A disk that is soon full."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A file system of its own of 4 MiB at ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, *, but: int = 0) -> None:
        """Leave so many pages free."""
        self.clear()
        there = os.statvfs(self.folder)
        with self._ballast.open("wb") as file:
            file.write(bytes((there.f_bavail - but) * there.f_frsize))

    def clear(self) -> None:
        """Give back what was filled."""
        self._ballast.unlink(missing_ok=True)

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mount one. Skips the test where this process may not."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
