"""Checks the names and flags that callers give, and finds the known name that they probably meant.

Names of databases, tables, tags and branches become paths, so they come from an allow-list: letters, digits, ``_`` and ``-``, at
most 128, not starting with ``-``. Separators, control characters and ``..`` are refused before any path is made.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tablestore.errors import InvalidInputError

Names: TypeAlias = str | Sequence[str]
"""One name, or several."""

# Tags and branches may hold dots (version numbers): no path consists of their name alone.
_REFERENCE = re.compile(r"[^\W][\w.-]{0,127}", re.ASCII)
_MOST_DIGITS = 20
_NAME = re.compile(r"[^\W][\w-]{0,127}", re.ASCII)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The known name most like ``name`` (case ignored first), or None if none is near."""
    names = list(candidates)
    folded = {candidate.casefold(): candidate for candidate in reversed(names)}
    if name.casefold() in folded:
        return folded[name.casefold()]
    matches = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``"; did you mean 'price'?"``, or nothing."""
    near = nearest(name, candidates)
    return f"; did you mean {near!r}?" if near is not None else ""


def names_of(names: str | Iterable[str]) -> tuple[str, ...]:
    """One name, or several."""
    return (names,) if isinstance(names, str) else tuple(names)


def split_names(text: str) -> tuple[str, ...]:
    """The names in a text that separates them by commas; blanks around them do not count."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def check_name(name: str, what: str) -> str:
    """``name`` itself if it is allowed. Raises InvalidInputError."""
    return _matching(_NAME, name, what, "'_' or '-', not starting with '-'")


def is_name(name: str) -> bool:
    """True for a name that :func:`check_name` allows."""
    return _NAME.fullmatch(name) is not None


def check_reference(name: str, what: str) -> str:
    """Checks as :func:`check_name` the names of tags and branches, which may hold dots. Raises InvalidInputError."""
    return _matching(_REFERENCE, name, what, "'_', '-' or '.', not starting with '-' or '.'")


def _matching(allowed: re.Pattern[str], name: str, kind: str, signs: str) -> str:
    if not isinstance(name, str) or not allowed.fullmatch(name):
        raise InvalidInputError(
            f"{name!r:.120} is not a valid {kind} name: expected 1 to 128 letters, digits, {signs}", kind="invalid-name"
        )
    return name


def is_number(text: str) -> bool:
    """True for a text of at most 20 of the digits 0 to 9, as numbered files are called."""
    return 0 < len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal()


def check_flag(value: object, name: str) -> None:
    """Raise InvalidInputError for anything but True and False: the text "false" would count as true."""
    if not isinstance(value, bool):
        raise InvalidInputError(f"expected True or False as {name}, found {value!r:.100}", kind="invalid-argument")
