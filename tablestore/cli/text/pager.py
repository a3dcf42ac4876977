"""Picks the user's pager and shows long text in it: ``$PAGER``, else less where it is installed.

An empty ``PAGER``, and ``cat``, mean none. less gets ``FRX`` where ``LESS`` says nothing, as it does from git: colours pass, what
fits the screen is printed, and stays.
"""

import shlex
import subprocess
from collections.abc import Callable, Mapping

_LESS = "FRX"
PAGER_VARIABLE = "PAGER"


def pick_pager(environ: Mapping[str, str], find: Callable[[str], str | None]) -> tuple[str, ...]:
    """The words of the pager's command, none where there is no pager. ``find``: the path of a program, None if it is not there."""
    named = environ.get(PAGER_VARIABLE)
    try:
        words = ("less",) if named is None else tuple(shlex.split(named))
    except ValueError:
        return ()
    return words if words and words[0] != "cat" and find(words[0]) is not None else ()


def show_in_pager(words: tuple[str, ...], text: str, *, environ: Mapping[str, str]) -> bool:
    """Shows text in a pager and waits until the user leaves it; False if it cannot be started."""
    try:
        subprocess.run(words, input=text.encode(), env={"LESS": _LESS, **environ}, check=False)
    except OSError:
        return False
    return True
