"""How long work tells how far it is."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""What is being done, how much of how much is done (the same unit: bytes, files)."""


def unseen(what: str, done: int, total: int) -> None:
    """For work that nobody watches."""
