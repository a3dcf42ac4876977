"""Progress reports of long work: the type of the callback."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""What is being done, how much of how much is done (the same unit: bytes, files)."""


def no_progress(what: str, done: int, total: int) -> None:
    """Reports to nobody."""
