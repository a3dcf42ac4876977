"""Cuts lists into pages: ``maxResults`` items behind the one that ``pageToken`` names, those that a pattern fits.

A token is the last item of the page before, so a page is right whatever came and went meanwhile. A pattern is one of SQL's LIKE in
which ``%`` stands at the end; a backslash takes the meaning from the sign behind it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

from tablestore.errors import TablestoreError
from tablestore.names import is_number
from tablestore.server.protocol.errorresponse import RequestRefused, bad_request

T = TypeVar("T")

MOST_RESULTS = 10_000
MAX_RESULTS, PAGE_TOKEN = "maxResults", "pageToken"
_MOST_PATTERN = 1_000


def page_of(names: Iterable[str], query: Mapping[str, str]) -> tuple[list[str], str | None]:
    """The names of a page, ascending, and the token of the next one."""
    after, most = query.get(PAGE_TOKEN), max_results(query)
    ordered = sorted(name for name in names if after is None or name > after)
    return ordered[:most], ordered[most - 1] if len(ordered) > most else None


def readable(names: Iterable[str], describe: Callable[[str], T]) -> list[T]:
    """The descriptions of these names; those that cannot be read, or are gone by now, are left out."""
    described = []
    for name in names:
        with suppress(RequestRefused, TablestoreError):
            described.append(describe(name))
    return described


def number_page(numbers: Iterable[int], query: Mapping[str, str]) -> tuple[list[int], str | None]:
    """The numbers of a page, ascending, and the token of the next one. Raises RequestRefused for a token that is no number."""
    token, most = query.get(PAGE_TOKEN), max_results(query)
    if token is not None and not is_number(token):
        raise bad_request(f"expected a whole number as {PAGE_TOKEN}, found {token!r:.80}")
    after = -1 if token is None else int(token)
    ordered = sorted(number for number in numbers if number > after)
    return ordered[:most], str(ordered[most - 1]) if len(ordered) > most else None


def max_results(query: Mapping[str, str]) -> int:
    """The number of items of a page. Raises RequestRefused."""
    text = query.get(MAX_RESULTS)
    if text is None or not text.strip():
        return MOST_RESULTS
    if not is_number(text):
        raise bad_request(f"expected a whole number as {MAX_RESULTS}, found {text!r:.80}")
    return min(int(text), MOST_RESULTS) or MOST_RESULTS


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """The names that a pattern fits; all without one. Raises RequestRefused for a pattern with ``%`` before its end."""
    if not pattern:
        return list(names)
    expression = _expression(pattern)
    return [name for name in names if expression.fullmatch(name)]


def _expression(pattern: str) -> re.Pattern[str]:
    if len(pattern) > _MOST_PATTERN:
        raise bad_request(f"expected a pattern of at most {_MOST_PATTERN} characters, found {len(pattern)}")
    parts: list[str] = []
    is_escaped = is_open = False
    for sign in pattern:
        if is_escaped or sign not in "\\%":
            if is_open:
                raise bad_request(f"expected a pattern with % at its end alone, found {pattern!r:.80}")
            parts.append(re.escape(sign))
            is_escaped = False
        elif sign == "\\":
            is_escaped = True
        else:
            is_open = True
    return re.compile("".join(parts) + (".*" if is_open else ""), re.DOTALL)
