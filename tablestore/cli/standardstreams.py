"""Standard streams that the caller closed: they are empty, and take what is written without a word.

Jobs of some schedulers are started so (``<&-``, ``>&-``). Python has None for such a stream, and its number would go to the next
file that is opened.
"""

import os
import sys

_MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_closed_streams() -> None:
    """Put the null device in the place of each standard stream that is closed."""
    for name, mode in _MODES.items():
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            # Programs that are started from here have it too, as they would have the stream.
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - it stays open
