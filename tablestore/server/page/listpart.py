"""Cuts a long list into parts that a page shows one at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tablestore.errors import NotFoundError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPart(Generic[T]):
    """One part of a list. ``page`` counts from 1; ``total``: lines in all parts, None where nobody counted them."""

    lines: tuple[T, ...]
    page: int
    size: int
    total: int | None
    has_next: bool

    @property
    def pages(self) -> int | None:
        """The number of parts."""
        return None if self.total is None else max(-(-self.total // self.size), 1)

    @property
    def first(self) -> int:
        """The number of the first line, from 1."""
        return (self.page - 1) * self.size + 1

    @property
    def last(self) -> int:
        """The number of the last line."""
        return self.first + len(self.lines) - 1


def part_of(lines: Sequence[T], page: int, size: int) -> ListPart[T]:
    """The part of a whole list. Raises NotFoundError behind its end."""
    start = (page - 1) * size
    if page > 1 and start >= len(lines):
        raise NotFoundError(f"there is no page {page}: the last one is {max(-(-len(lines) // size), 1)}", kind="no-such-page")
    return ListPart(
        lines=tuple(lines[start : start + size]), page=page, size=size, total=len(lines), has_next=start + size < len(lines)
    )


def window(page: int, size: int) -> slice:
    """The lines of a page in a list that is cut elsewhere."""
    return slice((page - 1) * size, page * size)


def cut_part(lines: Sequence[T], page: int, size: int, total: int) -> ListPart[T]:
    """A part that was cut already, of a list of ``total`` lines. Raises NotFoundError behind its end."""
    if page > 1 and not lines:
        raise NotFoundError(f"there is no page {page}: the last one is {max(-(-total // size), 1)}", kind="no-such-page")
    return ListPart(lines=tuple(lines), page=page, size=size, total=total, has_next=page * size < total)
