"""Which known name did the caller probably mean?"""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name`` (case ignored first), or None if none is near."""
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in reversed(names)}
    if name.casefold() in folded:
        return folded[name.casefold()]
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'price'?"``, or nothing."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near is not None else ""
