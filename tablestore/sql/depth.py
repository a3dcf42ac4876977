"""Limits how deep a query may be nested.

Parentheses are counted where tokens are made (``extent``): ``MOST_LEVELS`` of them. ``deep`` makes room for these, and for
chains of operators, while a tree is made, read and written; what does not fit is refused as too deep.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tablestore.errors import InvalidInputError
from tablestore.recursion import deep_stack

MOST_LEVELS = 300


def too_deep(place: str = "") -> InvalidInputError:
    """The error for a query that is nested too deep; ``place``: its place, marked."""
    return InvalidInputError(
        f"the query is nested too deep: expected at most {MOST_LEVELS} levels of parentheses, no chain of thousands of operators; "
        f"name parts of it in a WITH, or write a long chain of OR as IN (…){place}",
        kind="limit",
    )


@contextmanager
def deep() -> Iterator[None]:
    """Makes room for a deep query. Raises InvalidInputError of the kind ``limit`` where even that is not enough."""
    try:
        with deep_stack():
            yield
    except RecursionError as error:
        raise too_deep() from error
